//! What the lines say.

use crate::envelope::{Mail, ScheduleHead};
use serde_json::{Value, json};

use super::*;
use crate::envelope::tests::sample;
use crate::policy::Policy;
use crate::settlement::settle;

const NOW: Timestamp = Timestamp::from_millis(1_777_863_721_000);

fn ledger() -> Ledger<'static> {
    Ledger {
        gateway: "mx1",
        now: NOW,
    }
}

fn envelope(recipients: usize) -> Envelope {
    let sample = sample();
    let recipient = |number| Recipient {
        address: format!("r{number}@example.net"),
        ..sample.mail.recipients[0].clone()
    };
    Envelope {
        head: ScheduleHead {
            attempts: 2,
            accepted: NOW,
            ..sample.head.clone()
        },
        mail: Mail {
            recipients: (0..recipients).map(recipient).collect(),
            ..sample.mail.clone()
        },
    }
}

fn attempt(results: &[Disposition]) -> Attempt {
    let result = |disposition: &Disposition| RecipientResult {
        disposition: *disposition,
        status: "2.1.5".to_owned(),
        reply: "\"said\"\r\n".to_owned(),
        from_remote: true,
    };
    Attempt {
        remote: "mx.example.net".to_owned(),
        reports_taken_over: true,
        results: results.iter().map(result).collect(),
    }
}

fn subject(envelope: &Envelope) -> Subject<'_> {
    Subject {
        queue: QueueId(3),
        record: RecordId(17),
        destination: "example.net",
        envelope,
    }
}

fn parsed(lines: &[String]) -> Vec<Value> {
    let parse = |line: &String| serde_json::from_str(line).expect("JSON");
    lines.iter().map(parse).collect()
}

fn finished(envelope: &Envelope, results: &[Disposition]) -> Vec<Value> {
    let attempt = attempt(results);
    let settlement = settle(envelope, &attempt, &Policy::default(), NOW);
    parsed(&ledger().finished(&subject(envelope), &attempt, &settlement))
}

#[test]
fn a_line_has_every_field_of_the_schema() {
    let envelope = envelope(1);
    let lines = finished(&envelope, &[Disposition::Delivered]);
    let recipient = &envelope.mail.recipients[0];
    let expected = json!({
        "v": 1, "kind": "finished", "id": format!("{}-3-17-3", envelope.head.trace),
        "time": "2026-05-04T03:02:01.000Z", "gateway": "mx1", "message": envelope.head.trace,
        "accepted": "2026-05-04T03:02:01.000Z", "from": envelope.mail.reverse_path,
        "message_id": envelope.mail.message_id, "envid": envelope.mail.envid, "size": envelope.head.size,
        "destination": "example.net", "remote": "mx.example.net", "attempts": 3, "last": true,
        "recipients": [{"to": "r0@example.net", "orcpt": recipient.orcpt, "result": "relayed",
            "status": "2.1.5", "reply": "\"said\"  "}],
    });
    let Value::Object(mut expected) = expected else {
        panic!("an object");
    };
    expected.retain(|_, value| !value.is_null());
    let told = expected["recipients"][0].as_object_mut().expect("one");
    told.retain(|_, value| !value.is_null());
    assert_eq!(lines, [Value::Object(expected)]);
}

#[test]
fn each_recipient_is_told_of_once_when_it_ends() {
    let envelope = envelope(3);
    let results = [
        Disposition::Delivered,
        Disposition::Deferred,
        Disposition::Failed,
    ];
    let lines = finished(&envelope, &results);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["last"], false);
    let told = lines[0]["recipients"].as_array().expect("recipients");
    let told: Vec<_> = told
        .iter()
        .map(|one| (&one["to"], &one["result"]))
        .collect();
    let expected = [("r0@example.net", "relayed"), ("r2@example.net", "failed")];
    assert_eq!(told.len(), 2);
    for (found, wanted) in told.iter().zip(expected) {
        assert_eq!((found.0, found.1), (&json!(wanted.0), &json!(wanted.1)));
    }
    assert_eq!(
        finished(&envelope, &[Disposition::Deferred; 3]),
        [] as [Value; 0]
    );
    let late = Envelope {
        head: ScheduleHead {
            accepted: Timestamp::from_millis(0),
            ..envelope.head.clone()
        },
        ..envelope
    };
    let lines = finished(&late, &[Disposition::Deferred; 3]);
    assert_eq!(lines[0]["recipients"][2]["result"], "expired");
    assert_eq!(lines[0]["last"], true);
}

#[test]
fn many_recipients_take_lines_that_fit_with_ids_of_their_own() {
    let mut envelope = envelope(450);
    for recipient in &mut envelope.mail.recipients {
        recipient.address = format!("{}@example.net", "\"".repeat(308));
        recipient.orcpt = Some("\"".repeat(500));
    }
    let attempt = Attempt {
        results: vec![
            RecipientResult {
                disposition: Disposition::Failed,
                status: "5.1.1".to_owned(),
                reply: "\"".repeat(4_000),
                from_remote: true,
            };
            450
        ],
        ..attempt(&[])
    };
    let settlement = settle(&envelope, &attempt, &Policy::default(), NOW);
    let lines = ledger().finished(&subject(&envelope), &attempt, &settlement);
    assert!(lines.iter().all(|line| line.len() < 1 << 20));
    let base = format!("{}-3-17-3", envelope.head.trace);
    let found: Vec<_> = parsed(&lines)
        .iter()
        .map(|line| (line["id"].clone(), line["last"] == true))
        .collect();
    let second = json!(format!("{base}.2"));
    let third = json!(format!("{base}.3"));
    assert_eq!(
        found,
        [(json!(base), false), (second, false), (third, true)]
    );
}

#[test]
fn notices_name_the_report_or_that_there_was_none() {
    let envelope = envelope(1);
    let attempt = attempt(&[Disposition::Failed]);
    let settlement = settle(&envelope, &attempt, &Policy::default(), NOW);
    let of = subject(&envelope);
    let report = &settlement.reports[0];
    let trace = envelope.head.trace;
    let sent = &parsed(&ledger().reported(&of, report, Some(trace)))[0];
    assert_eq!(sent["id"], format!("{trace}-3-17-3-failed"));
    assert_eq!(
        (&sent["notice"], &sent["report"]),
        (&json!("failed"), &json!(trace))
    );
    let limited = &parsed(&ledger().reported(&of, report, None))[0];
    assert_eq!(limited["id"], format!("{trace}-3-17-3-failed-limited"));
    assert!(limited.get("report").is_none());
    let order = Order {
        held_until: Some(NOW),
        ..Order::none("example.net".parse().expect("a destination"))
    };
    let held = ledger().ordered(trace, &order, OrderNotice::Held);
    let held = &parsed(&[held])[0];
    assert_eq!(
        (&held["notice"], &held["until"]),
        (&json!("held"), &json!(NOW.to_string()))
    );
    let place = &order.destination;
    let held = ledger().held(
        trace,
        place,
        TraceId::new(9),
        OrderNotice::Held,
        Some(FOREVER),
    );
    let held = &parsed(&[held])[0];
    assert_eq!(held["message"], json!(TraceId::new(9).to_string()));
    assert!(held["until"].is_null(), "it has no end: {held}");
}
