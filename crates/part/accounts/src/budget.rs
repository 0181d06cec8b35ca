//! The budgets of an account: octets a day up and down, kept in a file across restarts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vere_ports::mail_accounts::{Answer, Fault, Request, Urgency};

use crate::asked::{WHOLE_OCTETS, cost};
use crate::steady::Clock;
use crate::window::{DAY, Window};

/// Octets of commands and responses around content.
const AROUND: u64 = 200;

/// The first line of the file.
const VERSION: &str = "vere budget 1";

/// The longest file.
const FILE_MAX: u64 = 16 << 10;

/// Time between two writes of the file: a killed process forgets so much at most.
const WRITE_EVERY: Duration = Duration::from_secs(2);

/// The budgets of an account, in octets a day; absent ones have no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetSettings {
    /// Octets to the account.
    pub upload: Option<u64>,
    /// Octets from the account.
    pub download: Option<u64>,
    /// The file that keeps the octets of the day across restarts.
    pub file: Option<PathBuf>,
}

/// A budget, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetState {
    /// Octets of the last 24 hours.
    pub used: u64,
    /// The most octets of 24 hours.
    pub limit: u64,
    /// The time until background work of a megabyte has room; zero if now.
    pub room_in: Duration,
}

/// The direction of a request's octets, and how many of them.
enum Weight {
    Up(u64),
    Down(u64),
}

/// The budgets at work.
#[derive(Debug)]
pub(crate) struct Budget {
    up: Option<Window>,
    down: Option<Window>,
    file: Option<PathBuf>,
    clock: Clock,
    /// Octets that the file lacks, and the time of the last write.
    changed: bool,
    written: Duration,
}

impl Budget {
    pub(crate) fn new(settings: &BudgetSettings, clock: Clock) -> Self {
        let mut budget = Self {
            up: settings.upload.map(Window::new),
            down: settings.download.map(Window::new),
            file: settings.file.clone(),
            written: clock.steady(),
            clock,
            changed: false,
        };
        if budget.up.is_some() || budget.down.is_some() {
            budget.read();
        }
        budget
    }

    /// The fault of a request without room; `None` where there is room.
    pub(crate) fn refuses(&mut self, urgency: Urgency, request: &Request) -> Option<Fault> {
        let now = self.clock.steady();
        let (name, window, octets) = match weight(request)? {
            Weight::Up(octets) => ("upload_per_day", self.up.as_mut()?, octets),
            Weight::Down(octets) => ("download_per_day", self.down.as_mut()?, octets),
        };
        let wait = window.wait(urgency, octets, now)?;
        let text = format!(
            "the budget of the account is used up ({name}: {} of {} octets in 24 hours)",
            window.used(now),
            window.limit()
        );
        let millis = u64::try_from(wait.as_millis())
            .unwrap_or(u64::MAX)
            .max(1_000);
        Some(match urgency {
            // Nothing is more urgent, so the whole account waits.
            Urgency::Commit => Fault::Throttled(text, millis),
            _ => Fault::Scarce(text, urgency, millis),
        })
    }

    /// A request is sent.
    pub(crate) fn charge(&mut self, request: &Request) {
        let now = self.clock.steady();
        let (window, octets) = match weight(request) {
            Some(Weight::Up(octets)) => (&mut self.up, octets),
            Some(Weight::Down(octets)) => (&mut self.down, octets),
            None => return,
        };
        if let Some(window) = window {
            window.charge(octets, now);
            self.changed = true;
        }
    }

    /// A request is answered: some answers have another length than expected.
    pub(crate) fn answered(&mut self, request: &Request, answer: &Result<Answer, Fault>) {
        let now = self.clock.steady();
        let Some(window) = &mut self.down else {
            return;
        };
        match (request, answer) {
            (Request::Read { parts, .. }, Ok(answer)) if parts.is_empty() => {
                let octets = match answer {
                    Answer::Read(parts) => parts.iter().map(bytes::Bytes::len).sum(),
                    _ => 0,
                };
                window.refund(long(WHOLE_OCTETS));
                window.charge(long(octets), now);
            }
            (Request::List { .. }, Ok(Answer::Listed { mails, .. })) => {
                let each = mails
                    .iter()
                    .map(|mail| long(mail.subject.len()).saturating_add(AROUND / 2));
                window.charge(each.fold(0, u64::saturating_add), now);
            }
            _ => return,
        }
        self.changed = true;
    }

    /// Both budgets for people, up and down.
    pub(crate) fn shown(&mut self) -> (Option<BudgetState>, Option<BudgetState>) {
        let now = self.clock.steady();
        let shown = |window: &mut Window| BudgetState {
            used: window.used(now),
            limit: window.limit(),
            room_in: window
                .wait(Urgency::Background, 1 << 20, now)
                .unwrap_or_default(),
        };
        (self.up.as_mut().map(shown), self.down.as_mut().map(shown))
    }

    /// Writes the file if due; the time until the next write, if one is needed.
    pub(crate) fn tend(&mut self) -> Option<Duration> {
        if !self.changed || self.file.is_none() {
            return None;
        }
        let since = self.clock.steady().saturating_sub(self.written);
        if since < WRITE_EVERY {
            return Some(WRITE_EVERY.saturating_sub(since));
        }
        self.write();
        None
    }

    fn write(&mut self) {
        self.changed = false;
        self.written = self.clock.steady();
        if let Some(file) = &self.file {
            // Without a disk the budget counts until the end of the process.
            let _kept_in_memory = replace(file, &self.text());
        }
    }

    fn text(&self) -> String {
        let now = self.clock.steady();
        let mut text = format!(
            "{VERSION}\nboot {} {}\nwall {}\n",
            self.clock.boot(),
            now.as_secs(),
            self.clock.wall().as_secs()
        );
        for (name, window) in [("up", &self.up), ("down", &self.down)] {
            for (age, octets) in window.iter().flat_map(|window| window.ages(now)) {
                text.push_str(&format!("{name} {age} {octets}\n"));
            }
        }
        text
    }

    /// Reads the file of an earlier run. A damaged file counts as absent.
    fn read(&mut self) {
        let Some(text) = self.file.as_deref().and_then(content) else {
            return;
        };
        let mut lines = text.lines();
        if lines.next() != Some(VERSION) {
            return;
        }
        let words = |line: Option<&str>, name: &str| -> Option<Vec<String>> {
            let rest = line?.strip_prefix(name)?;
            Some(rest.split_whitespace().map(str::to_owned).collect())
        };
        let boot = words(lines.next(), "boot ");
        let wall = words(lines.next(), "wall ");
        let (Some(boot), Some(wall)) = (boot, wall) else {
            return;
        };
        let number = |words: &[String], at: usize| words.get(at)?.parse::<u64>().ok();
        let (Some(steady), Some(wall)) = (number(&boot, 1), number(&wall, 0)) else {
            return;
        };
        let now = self.clock.steady();
        let same_boot = boot.first().is_some_and(|boot| boot == self.clock.boot());
        let elapsed = match same_boot {
            true => now.as_secs().saturating_sub(steady),
            // Clocks jump: time never goes back, and octets count for a day of this run at most.
            false => self.clock.wall().as_secs().saturating_sub(wall),
        };
        let elapsed = elapsed.min(DAY.as_secs().saturating_mul(2));
        for line in lines {
            let parts: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (Some(age), Some(octets)) = (number(&parts, 1), number(&parts, 2)) else {
                continue;
            };
            let window = match parts.first().map(String::as_str) {
                Some("up") => &mut self.up,
                Some("down") => &mut self.down,
                _ => continue,
            };
            if let Some(window) = window {
                window.restore(age.saturating_add(elapsed), octets, now);
            }
        }
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        if self.changed {
            self.write();
        }
    }
}

fn weight(request: &Request) -> Option<Weight> {
    match request {
        Request::Append { mail, .. } => Some(Weight::Up(long(mail.len()).saturating_add(AROUND))),
        Request::Read { parts, .. } => {
            let around = long(parts.len().max(1)).saturating_mul(AROUND);
            Some(Weight::Down(long(cost(request)).saturating_add(around)))
        }
        // The length of a listing is known afterwards.
        Request::List { .. } => Some(Weight::Down(AROUND)),
        _ => None,
    }
}

fn long(octets: usize) -> u64 {
    u64::try_from(octets).unwrap_or(u64::MAX)
}

fn content(file: &Path) -> Option<String> {
    let mut text = String::new();
    let opened = File::open(file).ok()?;
    opened.take(FILE_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = file.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&new)?.write_all(text.as_bytes())?;
    fs::rename(&new, file)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn append(octets: usize) -> Request {
        Request::Append {
            mailbox: "data".to_owned(),
            mail: Bytes::from(vec![b'x'; octets]),
            alone: false,
        }
    }

    fn settings(file: &Path) -> BudgetSettings {
        BudgetSettings {
            upload: Some(1 << 20),
            download: None,
            file: Some(file.to_owned()),
        }
    }

    fn used(budget: &mut Budget) -> u64 {
        budget.shown().0.expect("a budget").used
    }

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn octets_count_across_restarts_whatever_the_clocks_say() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("budgets/one");
        let settings = settings(&file);
        let begin = Clock::fixed("a", DAY * 30 + HOUR * 100, HOUR * 1_000);
        let mut budget = Budget::new(&settings, begin);
        budget.charge(&append(900_000));
        drop(budget);
        // The boot, the steady time, the time of the wall; whether the octets still count.
        for (boot, steady, wall, counts) in [
            ("a", HOUR * 101, HOUR * 1_001, true),
            // The wall clock means nothing within a boot.
            ("a", HOUR * 101, HOUR * 9_000, true),
            ("a", HOUR * 125, HOUR * 1, false),
            ("b", HOUR, HOUR * 1_010, true),
            ("b", HOUR, HOUR * 1_025, false),
            // A clock that was set back.
            ("b", HOUR, HOUR, true),
        ] {
            let mut again = Budget::new(&settings, Clock::fixed(boot, steady + DAY * 30, wall));
            let expected = if counts { 900_200 } else { 0 };
            assert_eq!(used(&mut again), expected, "{boot} {steady:?} {wall:?}");
            // Whatever the clocks said, a day of this run ends it.
            again.clock = Clock::fixed(boot, steady + DAY * 31 + HOUR, wall);
            assert_eq!(used(&mut again), 0);
        }
    }

    #[test]
    fn damaged_files_count_as_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("one");
        for text in [
            "",
            "vere budget 2\n",
            "vere budget 1\nboot\nwall x\nup 1 1\n",
        ] {
            fs::write(&file, text).expect("room");
            let mut budget = Budget::new(&settings(&file), Clock::fixed("a", HOUR, HOUR));
            assert_eq!(used(&mut budget), 0, "{text:?}");
        }
        let text = "vere budget 1\nboot a 3600\nwall 3600\nup 0 5\nup 99999999999999999999 1\nsideways 0 1\nup 0\n";
        fs::write(&file, text).expect("room");
        let mut budget = Budget::new(&settings(&file), Clock::fixed("a", HOUR, HOUR));
        assert_eq!(used(&mut budget), 5);
    }

    #[test]
    fn a_request_without_room_has_a_fault_with_a_time() {
        let mut budget = Budget::new(
            &BudgetSettings {
                upload: Some(1 << 20),
                ..BudgetSettings::default()
            },
            Clock::fixed("a", DAY * 30, DAY),
        );
        budget.charge(&append(950_000));
        let fault = budget.refuses(Urgency::Background, &append(10_000));
        let Some(Fault::Scarce(text, Urgency::Background, millis)) = fault else {
            panic!("{fault:?}");
        };
        assert!(text.contains("upload_per_day: 950200 of 1048576"), "{text}");
        assert!(millis > 23 * 3_600_000, "{millis}");
        assert_eq!(budget.refuses(Urgency::Commit, &append(10_000)), None);
        let full = budget.refuses(Urgency::Commit, &append(200_000));
        assert!(matches!(full, Some(Fault::Throttled(..))), "{full:?}");
        assert_eq!(budget.refuses(Urgency::Idle, &Request::Quota), None);
    }
}
