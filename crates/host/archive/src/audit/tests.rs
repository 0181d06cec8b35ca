use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use vere_units::{ByteSize, Timestamp, TraceId};

use super::line::LINE_OCTETS_MAX;
use super::{Audit, AuditOptions, AuditRecipient, Line, LineKind};
use crate::name::Day;
use crate::tests::{at, folder};

fn open(folder: &Path) -> Audit {
    Audit::open(folder, &AuditOptions::default()).unwrap()
}

/// The lines of a day, without the lines that say that the log was opened.
fn lines(folder: &Path, at: Timestamp) -> Vec<Value> {
    let text = fs::read_to_string(folder.join(format!("{}.log", Day::of(at)))).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    let values = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    values.filter(|value| value["ev"] != "opened").collect()
}

/// A day that is later than all clocks of machines that run this test: files of later days come later.
fn future(day: u64) -> Timestamp {
    at(1_000 * 365 * 86_400_000 + day * 86_400_000)
}

/// As `docs/internals/archive.md` has it.
#[test]
fn a_line_has_the_documented_form() {
    let recipients = [
        AuditRecipient {
            address: "C=GB;S=A",
            number: Some(1),
            decision: "onward",
            destination: Some("peer:mta2"),
            cause: None,
        },
        AuditRecipient {
            address: "C=GB;S=B",
            number: Some(2),
            decision: "failed",
            destination: None,
            cause: Some("unrecognised-OR-name"),
        },
    ];
    let line = Line {
        trace: Some(TraceId::new(7)),
        kind: Some("message"),
        identifier: Some("[C=GB;x]"),
        source: Some("peer:mta1"),
        content_octets: Some(1_024),
        recipients: &recipients,
        ..Line::new(at(7), LineKind::Arrival)
    };
    let expected = concat!(
        r#"{"at":"2026-11-29T13:05:00.007Z","ev":"arrival","trace":"0000000000007","kind":"message","identifier":"[C=GB;x]","#,
        r#""source":"peer:mta1","content_octets":1024,"recipients":[{"address":"C=GB;S=A","number":1,"decision":"onward","#,
        r#""destination":"peer:mta2"},{"address":"C=GB;S=B","number":2,"decision":"failed","cause":"unrecognised-OR-name"}]}"#,
        "\n"
    );
    assert_eq!(String::from_utf8(line.encode().unwrap()).unwrap(), expected);
}

#[test]
fn texts_of_strangers_end_no_line_and_steer_no_terminal() {
    let said = "a\nb\u{1b}[2J\u{85}\u{202e}\"\\ö\u{2028}\u{7f}";
    let line = Line {
        said: Some(said),
        ..Line::new(at(0), LineKind::BindRefused)
    };
    let octets = line.encode().unwrap();
    let text = std::str::from_utf8(&octets)
        .unwrap()
        .strip_suffix('\n')
        .unwrap();
    assert!(!text.contains(super::steers_terminal), "{text}");
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(value["said"], said);
    assert_eq!(value["ev"], "bind_refused");
}

#[test]
fn a_line_is_bounded() {
    let address = "x".repeat(100);
    let recipient = AuditRecipient {
        address: &address,
        number: None,
        decision: "onward",
        destination: None,
        cause: None,
    };
    let recipients = vec![recipient; 20_000];
    let line = Line {
        recipients: &recipients,
        ..Line::new(at(0), LineKind::Arrival)
    };
    let octets = line.encode().unwrap();
    let value: Value = serde_json::from_slice(&octets).unwrap();
    assert_eq!(value["recipient_count"], 20_000);
    assert_eq!(value["recipients"], Value::Null);
    let frame = Line {
        said: Some(""),
        ..Line::new(at(0), LineKind::End)
    }
    .encode()
    .unwrap()
    .len();
    let mut text = "x".repeat(LINE_OCTETS_MAX - frame);
    let sized = |text: &str| {
        Line {
            said: Some(text),
            ..Line::new(at(0), LineKind::End)
        }
        .encode()
        .map(|line| line.len())
    };
    assert_eq!(sized(&text), Some(LINE_OCTETS_MAX));
    text.push('x');
    assert_eq!(sized(&text), None);
}

#[test]
fn lines_are_in_the_file_of_their_day_after_a_flush() {
    let folder = folder();
    let audit = open(folder.path());
    for (day, hop) in [(0, 1), (0, 2), (1, 3), (0, 4)] {
        audit.add(&Line {
            hops: Some(hop),
            ..Line::new(future(day), LineKind::Arrival)
        });
    }
    audit.flush();
    let hops = |day| {
        let lines = lines(folder.path(), future(day));
        lines
            .iter()
            .map(|line| line["hops"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    // The last line is of a clock that went back: it goes into the newest file.
    assert_eq!((hops(0), hops(1)), (vec![1, 2], vec![3, 4]));
    audit.add(&Line {
        hops: Some(5),
        ..Line::new(future(1), LineKind::Arrival)
    });
    drop(audit);
    assert_eq!(hops(1), [3, 4, 5]);
}

/// Without a flush, a line is in its file after a second.
#[test]
fn lines_wait_a_second_at_most() {
    let folder = folder();
    let audit = open(folder.path());
    audit.add(&Line::new(future(0), LineKind::Arrival));
    let begun = std::time::Instant::now();
    let path = folder.path().join(format!("{}.log", Day::of(future(0))));
    while fs::read(&path).map_or(0, |octets| octets.len()) == 0 {
        std::thread::sleep(Duration::from_millis(5));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    drop(audit);
}

#[test]
fn what_is_dropped_is_counted_and_told() {
    let folder = folder();
    let options = AuditOptions {
        waiting_octets_max: ByteSize::new(300),
        ..AuditOptions::default()
    };
    let audit = Audit::open(folder.path(), &options).unwrap();
    // A line of more than all room is dropped in any case.
    let long = "x".repeat(400);
    let line = Line {
        said: Some(&long),
        ..Line::new(future(0), LineKind::Arrival)
    };
    for _ in 0..3 {
        audit.add(&line);
    }
    audit.add(&Line::new(future(0), LineKind::Delivery));
    audit.flush();
    assert_eq!(audit.dropped_total(), 3);
    let values = lines(folder.path(), future(0));
    let told: Vec<_> = values
        .iter()
        .map(|value| (value["ev"].as_str().unwrap(), value["count"].as_u64()))
        .collect();
    assert_eq!(told, [("delivery", None), ("dropped", Some(3))]);
    drop(audit);
}

#[test]
fn a_line_cut_by_a_crash_is_ended() {
    let folder = folder();
    let path = folder.path().join(format!("{}.log", Day::of(future(0))));
    fs::write(&path, "{\"at\":\"x\"}\n{\"at\":").unwrap();
    let audit = open(folder.path());
    audit.add(&Line::new(future(0), LineKind::Arrival));
    drop(audit);
    let text = fs::read_to_string(&path).unwrap();
    let all: Vec<&str> = text.lines().collect();
    assert_eq!(all[..2], ["{\"at\":\"x\"}", "{\"at\":"]);
    assert!(all[2].contains("\"ev\":\"arrival\""), "{text}");
    assert!(text.ends_with('\n'));
}

#[test]
fn a_directory_that_cannot_be_made_is_told() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = Audit::open(&file.join("audit"), &AuditOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot open "), "{error}");
}

/// Lines that the disk refuses are counted; the log goes on when the disk does.
#[test]
fn a_failing_disk_drops_lines_and_says_so() {
    let folder = folder();
    let audit = open(folder.path());
    // The file of the next day is a directory.
    let taken = folder.path().join(format!("{}.log", Day::of(future(0))));
    fs::create_dir(&taken).unwrap();
    audit.add(&Line::new(future(0), LineKind::Arrival));
    audit.add(&Line::new(future(0), LineKind::Arrival));
    audit.flush();
    assert_eq!(audit.dropped_total(), 2);
    fs::remove_dir(&taken).unwrap();
    audit.add(&Line::new(future(0), LineKind::Delivery));
    audit.flush();
    let values = lines(folder.path(), future(0));
    assert_eq!(values[0]["ev"], "delivery");
    assert_eq!(
        (&values[1]["ev"], &values[1]["count"]),
        (&Value::from("dropped"), &Value::from(2))
    );
    assert_eq!(audit.dropped_total(), 2);
}
