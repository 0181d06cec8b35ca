//! Reports about DMARC: the observations of a day arrive at the domains with `rua=`, once, with the disposition.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::clock::FakedClock;
use crate::front::{with_front, without_rates};
use crate::harness::{Options, Session, Sink, System, assert_has, wait_for, wait_until};

const ALICE: &str = "alice@example.org";

fn options(sink: &Sink) -> Options {
    without_rates(with_front(Options::to(sink.address)))
        .set("relay.networks", "[]")
        .set("delivery.retry", "[\"1s\"]")
        .table("[judging]\n")
        .set("reports.dmarc", "\"daily\"")
        .set("reports.organization", "\"Example & Sons\"")
        .set("reports.contact", "\"dmarc@example.org\"")
        .record("x.test TXT v=spf1 ip4:127.0.0.1 -all")
        .record(
            "_dmarc.x.test TXT v=DMARC1; p=quarantine; sp=none; rua=mailto:a@x.test,mailto:b@mail.x.test,\
             mailto:c@wants.test!10m,mailto:d@stranger.test,mailto:e@x.test!1k",
        )
        .record("x.test._report._dmarc.wants.test TXT v=DMARC1")
        .record("_dmarc.quiet.test TXT v=DMARC1; p=none")
        .record("_dmarc.short.test TXT v=DMARC1; p=none; rua=mailto:a@short.test!1k")
}

/// The offset of a clock with noon of the day before yesterday.
fn noon() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.expect("a clock behind 1970").as_secs();
    format!("-{}", seconds % 86_400 + 36 * 3_600)
}

fn send(system: &System, from: &str, author: &str) {
    let mut session = Session::greeted(system.smtp);
    let text = format!("From: <{author}>\r\nTo: <{ALICE}>\r\nSubject: a\r\n\r\nbody");
    session.submit(from, &[ALICE], &text);
}

/// The counts in the files of the gateway.
fn counts(system: &System) -> String {
    let folder = system.directory.path().join("data/reports");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = files.map(|file| std::fs::read_to_string(file.path()).expect("counts"));
    texts.collect()
}

/// The mail of reports, each once for all recipients at the sink.
fn reports(sink: &Sink) -> Vec<String> {
    let mail = sink.mail().into_iter();
    mail.filter(|mail| mail.contains("Subject: Report Domain:"))
        .collect()
}

fn read(system: &System, report: &str) -> Value {
    let file = system.directory.path().join("report.eml");
    std::fs::write(&file, report).expect("the report");
    let file = file.to_str().expect("a path");
    system.json(&["reports", "read", file])
}

#[test]
fn a_domain_hears_once_what_was_seen_of_its_day() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(clock) = FakedClock::in_folder(directory.path()) else {
        return;
    };
    clock.set(&noon());
    let sink = Sink::start();
    let mut system = System::start_as(directory, &options(&sink), |command, _| {
        clock.command(command);
    });
    send(&system, "ann@x.test", "ann@x.test");
    for author in ["ann@x.test", "ann@x.test", "bob@sub.x.test"] {
        send(&system, "eve@other.test", author);
    }
    for author in ["a@quiet.test", "a@short.test", "a@none.test"] {
        send(&system, "eve@other.test", author);
    }
    wait_until("counts", || {
        let counts = counts(&system);
        ["\"sub.x.test\"", "\"quiet.test\"", "\"short.test\""]
            .iter()
            .all(|domain| counts.contains(domain))
    });
    assert!(
        !counts(&system).contains("none.test"),
        "no record, no count"
    );
    assert_eq!(reports(&sink).len(), 0, "the day is not over");
    // The clock is right after the kill, and so the day is over.
    system.crash();
    let report = wait_for("a report", || reports(&sink).into_iter().next());
    assert_has(
        &report,
        &[
            "From: postmaster@mx.example.org",
            "To: a@x.test,",
            " b@mail.x.test,",
            " c@wants.test",
            "Subject: Report Domain: x.test",
            " Submitter: mx.example.org",
            "Auto-Submitted: auto-generated",
        ],
    );
    for unwanted in ["stranger.test", "e@x.test", ALICE] {
        assert!(!report.contains(unwanted), "{unwanted}: {report}");
    }
    let read = read(&system, &report);
    let about = &read["dmarc"][0];
    assert_eq!(about["messages"], 4, "{read}");
    assert_eq!(about["failed"], 3, "{read}");
    assert_has(&read.to_string(), &["Example & Sons", "127.0.0.1"]);
    system.wait_log(&["report about DMARC sent", "x.test"]);
    system.wait_log(&["does not say that it wants them", "stranger.test"]);
    wait_until("the end of the day", || counts(&system).contains("\"*\""));
    system.crash();
    // Another message of the same day passes the whole way, and no report comes meanwhile.
    send(&system, "ann@x.test", "ann@x.test");
    let before = counts(&system).len();
    wait_until("further counts", || counts(&system).len() > before);
    system.wait_empty();
    assert_eq!(reports(&sink).len(), 1);
}

#[test]
fn without_the_setting_nothing_is_counted() {
    let sink = Sink::start();
    let system = System::start(&options(&sink).set("reports.dmarc", "\"off\""));
    send(&system, "ann@x.test", "ann@x.test");
    assert!(!system.directory.path().join("data/reports").exists());
    system.reconfigure(&options(&sink));
    wait_until("counts", || {
        send(&system, "ann@x.test", "ann@x.test");
        counts(&system).contains("\"x.test\"")
    });
}
