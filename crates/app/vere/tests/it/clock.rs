//! A wrong wall clock, and its correction while mail waits.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Options, Session, Sink, System, free_address, skip, wait_until};

/// The wall clock of a system's processes, moved by libfaketime; monotonic clocks stay.
#[derive(Debug)]
pub(crate) struct FakedClock {
    library: PathBuf,
    file: PathBuf,
}

impl FakedClock {
    /// A correct clock, if the library is installed.
    pub(crate) fn in_folder(folder: &Path) -> Option<Self> {
        let folders = std::fs::read_dir("/usr/lib")
            .into_iter()
            .flatten()
            .flatten();
        let found = folders
            .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
            .find(|file| file.is_file());
        let Some(library) = found else {
            let why = "no libfaketime (scripts/install-test-tools.sh installs it)";
            skip("a clock that jumps", why);
            return None;
        };
        let clock = Self {
            library,
            file: folder.join("time"),
        };
        clock.set("+0d");
        Some(clock)
    }

    /// Moves the clock ahead or back, by an offset in the notation of libfaketime, like `+400d`.
    pub(crate) fn set(&self, offset: &str) {
        // Replaced at once, so that no process reads half of the file.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{offset}\n")).expect("the time");
        std::fs::rename(&new, &self.file).expect("the time");
    }

    /// Makes a program and its children live by the clock.
    pub(crate) fn command(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
}

/// Number of failed attempts for a message. `None`: the message is in no queue.
fn attempts(system: &System, id: &str) -> Option<u64> {
    let shown = system.json(&["queue", "show", id]);
    shown[0]["attempts"].as_u64()
}

fn wait_attempts(system: &System, id: &str, count: u64) {
    wait_until("attempts", || {
        let made = attempts(system, id).expect("the message is not given up");
        made >= count
    });
}

/// The hours of the count of reports were hours of the wall clock: after a jump ahead, an address had its number of
/// reports again.
#[test]
fn a_clock_that_is_put_ahead_gives_nobody_more_reports() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(clock) = FakedClock::in_folder(directory.path()) else {
        return;
    };
    let refuses = Sink::with_faults(&["rcpt=550 5.1.1 nobody"]);
    let options = Options::to(refuses.address).set("delivery.reports_per_hour_max", "1");
    let system = System::start_as(directory, &options, |command, _| clock.command(command));
    let mut session = Session::greeted(system.smtp);
    let mut bounce = || {
        let text = "Subject: a\r\n\r\nbody";
        session.submit("alice@example.org", &["x@refuses.test"], text)
    };
    // The hour may end meanwhile: of three, two are in the same.
    for offset in ["+0d", "+7h", "+14h"] {
        clock.set(offset);
        bounce();
        system.wait_empty();
    }
    system.wait_log(&["report not sent"]);
    assert!((1..=2).contains(&system.mail("alice").len()));
}

/// The next attempt stayed away for the length of the jump, over restarts as well; put back, retries stopped; put
/// ahead beyond `delivery.expire`, what was deferred bounced.
#[test]
fn deferred_mail_outlives_a_clock_that_is_put_ahead_and_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(clock) = FakedClock::in_folder(directory.path()) else {
        return;
    };
    let next_hop = free_address();
    let options = Options::to(next_hop)
        .set("delivery.retry", "[\"2s\"]")
        .set("delivery.expire", "\"5d\"");
    let mut system = System::start_as(directory, &options, |command, _| clock.command(command));
    let id = system.submit("a@example.net", &["x@example.com"], "A: b\r\n\r\nc");
    wait_attempts(&system, &id, 1);
    let mut before = 1;
    for offset in ["+400d", "-1d", "+6d"] {
        clock.set(offset);
        system.wait_log(&["wall clock was put ahead or back"]);
        before = attempts(&system, &id).expect("it is queued").max(before) + 2;
        wait_attempts(&system, &id, before);
        // No sender hears of a delay without a delay.
        assert_eq!(system.queued(), 1, "after {offset}");
    }
    // The time in the record is now of next week, and the process differs from the process that saw the clock move.
    system.kill();
    clock.set("+0d");
    system.start_again();
    wait_attempts(&system, &id, before + 1);
    let sink = Sink::start_at(next_hop, &[]);
    assert_eq!(sink.wait_mail(1).len(), 1);
    system.wait_empty();
}
