//! What is written is found again, bounded and in order, also after a torn write.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::{any, proptest};

use super::{
    ADDRESS_OCTETS_MAX, Event, EventKind, LINE_OCTETS_MAX, Query, Record, TEXT_OCTETS_MAX,
    TraceLog, TraceOptions, encode, files, find,
};
use vere_units::{Timestamp, TraceId};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_760_000_000_000 + millis)
}

fn id(n: u64) -> TraceId {
    TraceId::new(n)
}

fn event(kind: EventKind, n: u64, millis: u64) -> Event<'static> {
    Event::new(kind, id(n), at(millis))
}

fn open(dir: &Path) -> TraceLog {
    TraceLog::open(TraceOptions::new(dir)).expect("the folder is ours")
}

fn line(event: &Event<'_>) -> String {
    let mut out = Vec::new();
    encode::line(&mut out, event);
    String::from_utf8(out).expect("made of text")
}

/// A message from reception to a deferral and a delivery, among others.
fn write_story(log: &TraceLog) {
    for n in 1..=3 {
        log.append(&Event {
            reverse_path: Some("alice@demo.test"),
            message_id: Some(
                ["<one@demo.test>", "<two@demo.test>", "<three@demo.test>"][n as usize - 1],
            ),
            size: Some(1204),
            peer: Some("[2001:db8::1]:4711".parse().expect("an address")),
            ..event(EventKind::Received, n, n)
        });
    }
    log.append(&Event {
        queue: Some("example.org"),
        rcpt: Some("Bob@example.org"),
        ..event(EventKind::Queued, 2, 10)
    });
    log.append(&Event {
        rcpt: Some("Bob@example.org"),
        code: Some(451),
        reply: Some("4.3.0 try \"later\""),
        next: Some(at(60_000)),
        ..event(EventKind::Deferred, 2, 20)
    });
    log.append(&Event {
        rcpt: Some("Bob@example.org"),
        code: Some(250),
        remote: Some("mx.example.org [192.0.2.1]:25"),
        duration: Some(Duration::from_millis(17)),
        ..event(EventKind::Delivered, 2, 60_020)
    });
}

#[test]
fn a_message_is_found_by_id_message_id_and_recipient() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = open(dir.path());
    write_story(&log);
    log.flush();
    let queries = [
        Query::TraceId(id(2)),
        Query::MessageId("<two@demo.test>".to_owned()),
        Query::MessageId("two@demo.test".to_owned()),
        Query::Recipient("bob@EXAMPLE.org".to_owned()),
        Query::Recipient("<bob@example.org>".to_owned()),
    ];
    for query in queries {
        let traces = find(dir.path(), &query, 10).expect("readable");
        assert_eq!(traces.len(), 1, "{query:?}");
        assert_eq!(traces[0].id, id(2));
        let kinds: Vec<_> = traces[0].events.iter().map(|e| e.kind.name()).collect();
        assert_eq!(
            kinds,
            ["received", "queued", "deferred", "delivered"],
            "{query:?}"
        );
        assert_eq!(
            traces[0].events[2].reply.as_deref(),
            Some("4.3.0 try \"later\"")
        );
        assert_eq!(traces[0].events[3].duration_ms, Some(17));
    }
    for query in [
        Query::TraceId(id(9)),
        Query::Recipient("ob@example.org".to_owned()),
    ] {
        assert_eq!(find(dir.path(), &query, 10).expect("readable"), []);
    }
}

#[test]
fn the_newest_messages_come_first_and_the_limit_holds() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = open(dir.path());
    for n in 0..100 {
        log.append(&event(EventKind::Received, n, n));
        log.append(&Event {
            rcpt: Some("bob@demo.test"),
            ..event(EventKind::Queued, n, n)
        });
    }
    log.close();
    let query = Query::Recipient("bob@demo.test".to_owned());
    let traces = find(dir.path(), &query, 3).expect("readable");
    assert_eq!(
        traces.iter().map(|t| t.id).collect::<Vec<_>>(),
        [id(99), id(98), id(97)]
    );
    assert!(traces.iter().all(|t| t.events.len() == 2));
    assert_eq!(find(dir.path(), &query, 0).expect("readable"), []);
}

#[test]
fn events_reach_the_file_within_the_interval_without_a_flush() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = open(dir.path());
    log.append(&event(EventKind::Received, 1, 0));
    for _ in 0..3000 {
        std::thread::sleep(Duration::from_millis(20));
        if !find(dir.path(), &Query::TraceId(id(1)), 1)
            .expect("readable")
            .is_empty()
        {
            return;
        }
    }
    panic!("not written after a minute");
}

#[test]
fn dropping_the_last_handle_writes_all() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = open(dir.path());
    let other = log.clone();
    log.append(&event(EventKind::Received, 1, 0));
    drop(log);
    other.append(&event(EventKind::Delivered, 1, 1));
    drop(other);
    let traces = find(dir.path(), &Query::TraceId(id(1)), 1).expect("readable");
    assert_eq!(traces[0].events.len(), 2);
}

/// A process killed inside a write leaves half a line; nothing after it may be lost.
#[test]
fn a_torn_line_is_passed_over_and_ended_at_the_next_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = open(dir.path());
    log.append(&event(EventKind::Received, 1, 0));
    log.close();
    let (_, path) = files::list(dir.path())
        .expect("readable")
        .pop()
        .expect("one file");
    let torn = line(&event(EventKind::Delivered, 1, 1));
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .expect("ours");
    file.write_all(&torn.as_bytes()[..torn.len() / 2])
        .expect("room");
    assert_eq!(
        find(dir.path(), &Query::TraceId(id(1)), 1).expect("readable")[0]
            .events
            .len(),
        1
    );

    let log = open(dir.path());
    log.append(&event(EventKind::Recovered, 1, 2));
    log.close();
    let traces = find(dir.path(), &Query::TraceId(id(1)), 1).expect("readable");
    let kinds: Vec<_> = traces[0].events.iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [EventKind::Received, EventKind::Recovered]);
    assert_eq!(
        files::list(dir.path()).expect("readable").len(),
        1,
        "the file is continued"
    );
}

#[test]
fn files_are_rotated_by_size_and_the_oldest_deleted() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = TraceOptions {
        segment_octets_max: 4096,
        retained_octets_max: 16 * 1024,
        ..TraceOptions::new(dir.path())
    };
    let log = TraceLog::open(options).expect("the folder is ours");
    for n in 0..400 {
        log.append(&Event {
            queue: Some("example.org"),
            ..event(EventKind::Received, n, n)
        });
        if n % 20 == 0 {
            log.flush();
        }
    }
    log.close();
    let listed = files::list(dir.path()).expect("readable");
    let total: u64 = listed
        .iter()
        .map(|(_, p)| fs::metadata(p).expect("listed").len())
        .sum();
    assert!(
        listed.len() > 2 && total < 24 * 1024,
        "{} files, {total} octets",
        listed.len()
    );
    for (_, path) in &listed {
        assert!(fs::read(path).expect("listed").starts_with(files::HEADER));
    }
    assert_eq!(
        find(dir.path(), &Query::TraceId(id(0)), 1).expect("readable"),
        []
    );
    assert_eq!(
        find(dir.path(), &Query::TraceId(id(399)), 1)
            .expect("readable")
            .len(),
        1
    );
}

/// Events of one message on both sides of a rotation belong together.
#[test]
fn a_trace_spans_files() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = TraceOptions {
        segment_octets_max: 1,
        ..TraceOptions::new(dir.path())
    };
    let log = TraceLog::open(options).expect("the folder is ours");
    for (n, kind) in [
        EventKind::Received,
        EventKind::Attempt,
        EventKind::Delivered,
    ]
    .iter()
    .enumerate()
    {
        log.append(&event(*kind, 1, n as u64));
        log.flush();
    }
    log.close();
    assert!(files::list(dir.path()).expect("readable").len() >= 3);
    let traces = find(dir.path(), &Query::TraceId(id(1)), 1).expect("readable");
    assert_eq!(traces[0].events.len(), 3);
}

/// A disk that stands still costs trace events, never memory or the caller's time.
#[test]
fn what_does_not_fit_in_memory_is_counted() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = TraceOptions {
        pending_octets_max: 1000,
        flush_interval: Duration::from_secs(3600),
        ..TraceOptions::new(dir.path())
    };
    let log = TraceLog::open(options).expect("the folder is ours");
    for n in 0..100 {
        log.append(&event(EventKind::Received, n, n));
    }
    let lost = log.lost_total();
    assert!(lost > 50, "{lost}");
    log.flush();
    log.append(&event(EventKind::Received, 1000, 1000));
    log.close();
    assert_eq!(
        find(dir.path(), &Query::TraceId(id(1000)), 1)
            .expect("readable")
            .len(),
        1
    );
    let (_, path) = files::list(dir.path())
        .expect("readable")
        .pop()
        .expect("one file");
    assert!(
        fs::read_to_string(path)
            .expect("text")
            .contains(&format!("{{\"lost\":{lost}}}\n"))
    );
}

#[test]
fn a_failing_disk_is_survived_and_the_loss_counted() {
    let dir = tempfile::tempdir().expect("a folder");
    let inner = dir.path().join("trace");
    let options = TraceOptions {
        segment_octets_max: 1,
        ..TraceOptions::new(&inner)
    };
    let log = TraceLog::open(options).expect("the folder is ours");
    fs::remove_dir_all(&inner).expect("ours");
    log.append(&event(EventKind::Received, 1, 0));
    log.flush();
    assert_eq!(log.lost_total(), 1);
    fs::create_dir_all(&inner).expect("ours");
    log.append(&event(EventKind::Received, 2, 0));
    log.close();
    assert_eq!(
        find(&inner, &Query::TraceId(id(2)), 1)
            .expect("readable")
            .len(),
        1
    );
}

#[test]
fn a_missing_folder_holds_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    assert_eq!(
        find(&dir.path().join("none"), &Query::TraceId(id(1)), 1).expect("no error"),
        []
    );
}

#[test]
fn remote_text_can_neither_break_the_line_nor_steer_the_terminal() {
    let hostile = "a\"b\\c\r\n\u{1b}[2J\u{9b}31m\u{202e}gnp.\0é";
    let text = line(&Event {
        reply: Some(hostile),
        ..event(EventKind::Bounced, 1, 0)
    });
    assert_eq!(text.matches('\n').count(), 1);
    assert!(
        !text
            .trim_end()
            .chars()
            .any(|c| c.is_control() || c == '\u{202e}'),
        "{text}"
    );
    let record: Record = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record.reply.as_deref(), Some(hostile));
}

#[test]
fn a_value_that_looks_like_a_field_is_not_found_as_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = open(dir.path());
    log.append(&Event {
        reply: Some("x\",\"rcpt\":\"bob@demo.test\""),
        ..event(EventKind::Bounced, 1, 0)
    });
    log.close();
    let query = Query::Recipient("bob@demo.test".to_owned());
    assert_eq!(find(dir.path(), &query, 1).expect("readable"), []);
}

#[test]
fn text_is_cut_between_characters() {
    let long = "é".repeat(TEXT_OCTETS_MAX);
    let text = line(&Event {
        reply: Some(&long),
        ..event(EventKind::Bounced, 1, 0)
    });
    let record: Record = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record.reply.expect("written").len(), TEXT_OCTETS_MAX);
    assert_eq!(encode::cut("éé", 3), "é");
    assert_eq!(encode::cut("éé", 0), "");
}

#[test]
fn the_longest_line_is_within_its_bound() {
    let worst = "\u{1}".repeat(10 * ADDRESS_OCTETS_MAX);
    let text = line(&Event {
        queue: Some(&worst),
        rcpt: Some(&worst),
        reverse_path: Some(&worst),
        message_id: Some(&worst),
        size: Some(u64::MAX),
        recipients: Some(u32::MAX),
        peer: Some(
            "[1111:2222:3333:4444:5555:6666:7777:8888]:65535"
                .parse()
                .expect("address"),
        ),
        account: Some(&worst),
        tls: Some(&worst),
        spf: Some(&worst),
        spf_helo: Some(&worst),
        verdict: Some(&worst),
        score: Some(&worst),
        rules: Some(&worst),
        facts: Some(&"A".repeat(super::FACTS_OCTETS_MAX)),
        code: Some(u16::MAX),
        reply: Some(&worst),
        remote: Some(&worst),
        duration: Some(Duration::MAX),
        attempt: Some(u32::MAX),
        next: Some(Timestamp::MAX),
        related: Some(id(u64::MAX)),
        ..Event::new(EventKind::Recovered, id(u64::MAX), Timestamp::MAX)
    });
    assert!(text.len() <= LINE_OCTETS_MAX, "{}", text.len());
}

#[test]
fn an_event_kind_of_a_newer_version_is_shown_as_unknown() {
    let newer = r#"{"t":1760000000000,"id":"0000000000001","ev":"teleported","how":3}"#;
    let record: Record = serde_json::from_str(newer).expect("tolerant");
    assert_eq!(record.kind, EventKind::Unknown);
}

proptest! {
    #[test]
    fn any_text_comes_back_as_it_was(rcpt in any::<String>(), reply in any::<String>()) {
        let text = line(&Event {
            rcpt: Some(&rcpt),
            reply: Some(&reply),
            ..event(EventKind::Bounced, 1, 0)
        });
        let record: Record = serde_json::from_str(&text).expect("JSON");
        assert_eq!(record.rcpt.as_deref(), Some(encode::cut(&rcpt, ADDRESS_OCTETS_MAX)));
        assert_eq!(record.reply.as_deref(), Some(encode::cut(&reply, TEXT_OCTETS_MAX)));
        assert_eq!(text.matches('\n').count(), 1);
    }

    #[test]
    fn numbers_and_addresses_come_back_as_they_were(
        size in any::<u64>(),
        code in any::<u16>(),
        ip in any::<std::net::IpAddr>(),
        port in any::<u16>(),
    ) {
        let peer = std::net::SocketAddr::from((ip, port));
        let text = line(&Event {
            size: Some(size),
            code: Some(code),
            peer: Some(peer),
            ..event(EventKind::Received, size, size)
        });
        let record: Record = serde_json::from_str(&text).expect("JSON");
        assert_eq!((record.size, record.code), (Some(size), Some(code)));
        assert_eq!(record.peer, Some(peer.to_string()));
        assert_eq!((record.id, record.at), (id(size), at(size)));
    }

    #[test]
    fn any_bytes_in_a_file_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("trace-1.jsonl"), bytes).expect("room");
        find(dir.path(), &Query::TraceId(id(1)), 1).expect("readable");
    }
}
