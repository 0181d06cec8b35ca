use std::collections::HashSet;

use super::{LoadEnd, LoadOptions, LoadProgress, LoadReport, run};
use crate::MessageId;
use crate::sink::RunningSink;

fn load(sink: &RunningSink, change: impl FnOnce(&mut LoadOptions)) -> LoadReport {
    let mut options = LoadOptions::new(sink.handle().address(), LoadEnd::Count(500));
    options.sessions = 7;
    change(&mut options);
    run(&options, &LoadProgress::default()).unwrap()
}

fn ids(report: &LoadReport) -> HashSet<MessageId> {
    report.acked.iter().map(|ack| ack.id).collect()
}

#[test]
fn every_message_arrives_once() {
    for (pipelining, messages_per_connection) in [(true, None), (false, Some(3)), (true, Some(1))] {
        let sink = RunningSink::faulty(&[]);
        let report = load(&sink, |options| {
            options.pipelining = pipelining;
            options.messages_per_connection = messages_per_connection;
        });
        assert_eq!(report.failures.total(), 0);
        assert_eq!(report.reply_us.len(), 500);
        assert_eq!(report.acked.len(), 500);
        let handle = sink.handle().clone();
        let counts = sink.stop().unwrap();
        assert_eq!(counts.messages, 500);
        assert_eq!(counts.octets, report.octets);
        let arrived: HashSet<_> = handle
            .deliveries()
            .iter()
            .map(|delivery| delivery.id)
            .collect();
        assert_eq!(arrived, ids(&report));
        let connections = messages_per_connection.map_or(7, |max| 500 / u64::from(max));
        assert!(counts.connections >= connections);
    }
}

#[test]
fn a_tolerant_load_gets_everything_through_and_knows_what_may_be_doubled() {
    let sink = RunningSink::faulty(&[
        "connect=421*2",
        "rcpt=450*5",
        "dot=lose*4",
        "dot=close*3",
        "dot=451*2",
    ]);
    let dir = tempfile::tempdir().unwrap();
    let acked_file = dir.path().join("acked");
    let report = load(&sink, |options| {
        options.tolerant = true;
        options.acked_file = Some(acked_file.clone());
    });
    assert_eq!(ids(&report).len(), 500);
    assert!(report.unresolved.is_empty() && report.refused.is_empty());
    let doubtful = report.acked.iter().filter(|ack| ack.may_be_doubled).count();
    assert!((1..=9).contains(&doubtful), "{doubtful}");
    assert_eq!(report.failures.temporary, 7);
    assert_eq!((report.failures.connects, report.failures.lost), (2, 7));
    let lines = std::fs::read_to_string(acked_file).unwrap();
    assert_eq!(lines.lines().count(), 500);
    assert_eq!(
        lines
            .lines()
            .filter(|line| line.ends_with("doubled?"))
            .count(),
        doubtful
    );
    // The four lost answers are the only doubles.
    assert_eq!(sink.stop().unwrap().messages, 504);
}

#[test]
fn an_intolerant_load_reports_what_failed() {
    let sink = RunningSink::faulty(&["dot=close*1", "mail=550*2"]);
    let report = load(&sink, |_| {});
    assert_eq!(report.unresolved.len(), 1);
    assert_eq!(report.refused.len(), 2);
    assert_eq!(report.acked.len(), 497);
}

#[test]
fn nobody_listening_ends_in_time() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut options = LoadOptions::new(closed, LoadEnd::Count(3));
    options.tolerant = true;
    options.duration_max = std::time::Duration::from_millis(200);
    let report = run(&options, &LoadProgress::default()).unwrap();
    assert!(report.acked.is_empty());
    assert!(report.failures.connects > 0);
}

#[test]
fn a_rate_is_kept_by_all_sessions_together() {
    let sink = RunningSink::faulty(&[]);
    let report = load(&sink, |options| {
        options.end = LoadEnd::Count(50);
        options.rate = Some(200.0);
        options.destinations = 3..4;
    });
    assert_eq!((report.acked.len(), report.failures.total()), (50, 0));
    // The last message may begin after 245 ms.
    assert!(
        report.elapsed().as_millis() >= 240,
        "{:?}",
        report.elapsed()
    );
}
