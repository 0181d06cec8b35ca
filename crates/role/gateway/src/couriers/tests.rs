use vere_queue::{Mail, Notify, Recipient, ScheduleHead};
use vere_units::{Timestamp, TraceId};

use super::*;

pub(super) fn envelope() -> Envelope {
    let recipient = |address: &str| Recipient {
        address: address.to_owned(),
        notify: Notify::default(),
        orcpt: None,
    };
    Envelope {
        head: ScheduleHead::new(TraceId::new(7), Timestamp::from_millis(1), 5),
        mail: Mail {
            reverse_path: Some("a@example.net".to_owned()),
            recipients: vec![recipient("b@example.org"), recipient("c@example.org")],
            ..Mail::default()
        },
    }
}

#[test]
fn a_lost_courier_defers_each_recipient() {
    let attempt = lost_attempt("mx", &envelope());
    assert_eq!(attempt.results.len(), 2);
    let results = attempt.results.iter();
    let deferred = |result: &RecipientResult| result.disposition == Disposition::Deferred;
    assert!(results.clone().all(deferred));
    assert!(results.clone().all(|result| result.status == "4.4.2"));
}

#[tokio::test]
async fn results_count_only_where_each_recipient_has_one() {
    for (count, kept) in [(0, false), (1, false), (2, true), (3, false)] {
        let line = Rc::new(Line::default());
        let mut distant = distant(&line);
        let envelope = envelope();
        let outcome = Outcome {
            disposition: 0,
            from_remote: true,
            status: "2.0.0".to_owned(),
            reply: "taken".to_owned(),
        };
        let outcomes = Outcomes {
            usable: true,
            reports_taken_over: false,
            recipients: vec![outcome; count],
        };
        let answer = async {
            line.answered(
                1,
                Answer::Sent {
                    number: 1,
                    outcomes,
                },
            )
        };
        let sent = distant.send(&envelope, Bytes::new(), |_| Ok(()));
        let (attempt, answered) = tokio::join!(sent, answer);
        answered.unwrap();
        let results = attempt.unwrap().results;
        assert_eq!(results.len(), 2);
        let delivered = |result: &RecipientResult| result.disposition == Disposition::Delivered;
        assert_eq!(
            results.iter().filter(|one| delivered(one)).count(),
            if kept { 2 } else { 0 }
        );
        assert_eq!(distant.usable(), kept);
    }
}

#[tokio::test]
async fn an_envelope_that_no_courier_takes_defers_its_message_alone() {
    let line = Rc::new(Line::default());
    let mut distant = distant(&line);
    let mut long = envelope();
    let recipient = Recipient {
        address: "x".repeat(ENVELOPE_OCTETS_MAX / 300),
        notify: Notify::default(),
        orcpt: None,
    };
    long.mail.recipients = vec![recipient; 301];
    let begin = |_: &Distant| panic!("no attempt begins");
    let attempt = distant.send(&long, Bytes::new(), begin).await.unwrap();
    assert_eq!(attempt.results.len(), 301);
    let deferred = |result: &RecipientResult| result.disposition == Disposition::Deferred;
    assert!(attempt.results.iter().all(deferred));
    assert!(distant.usable());
}

#[tokio::test]
async fn a_destination_that_no_courier_takes_is_asked_of_none() {
    let couriers = Couriers::new(1, Duration::from_secs(3), OutboundMetrics::default());
    let long = "x".repeat(DESTINATION_OCTETS_MAX + 1);
    let found = couriers.find_lane(&long).await.map(drop);
    assert!(matches!(found, Err(Unroutable::Temporary(_))), "{found:?}");
}

#[test]
fn a_message_begins_within_a_third_of_the_lease() {
    let patience = |lease| {
        let lease = Duration::from_secs(lease);
        Couriers::new(1, lease, OutboundMetrics::default()).begin_patience
    };
    assert_eq!(patience(6), Duration::from_secs(2));
    assert_eq!(patience(90), BEGIN_PATIENCE);
}

fn distant(line: &Rc<Line>) -> Distant {
    Distant {
        lane: Rc::new(Lane::new(Rc::clone(line))),
        site: SiteName::made_elsewhere("a:25".to_owned()),
        begin_patience: BEGIN_PATIENCE,
        remote: "mx".to_owned(),
        security: "clear".to_owned(),
        usable: true,
    }
}

fn lines(lanes: &[usize]) -> Vec<(Rc<Line>, Vec<Lane>)> {
    let line = |count: &usize| {
        let line = Rc::new(Line::default());
        let lanes = (0..*count).map(|_| Lane::new(Rc::clone(&line))).collect();
        (line, lanes)
    };
    lanes.iter().map(line).collect()
}

fn chosen_of(lanes: &[usize], hash: usize) -> Option<usize> {
    let held = lines(lanes);
    let all: Vec<Rc<Line>> = held.iter().map(|(line, _)| Rc::clone(line)).collect();
    let line = chosen(&all, hash)?;
    all.iter().position(|other| Rc::ptr_eq(other, &line))
}

#[test]
fn a_destination_has_its_courier_until_that_has_too_much() {
    assert_eq!(chosen_of(&[], 1), None);
    assert_eq!(chosen_of(&[0, 0], 0), Some(0));
    assert_eq!(chosen_of(&[0, 0], 3), Some(1));
    assert_eq!(chosen_of(&[4, 4, 5], 2), Some(2));
    // More than a quarter above the share of each.
    assert_eq!(chosen_of(&[10, 0], 0), Some(1));
    assert_eq!(chosen_of(&[2, 2, 9], 2), Some(0));
}

/// The courier with the least numbers is always below the bound.
#[test]
fn some_courier_is_always_chosen() {
    for load in 0..200 {
        for hash in 0..3 {
            assert!(chosen_of(&[load, load / 2, load * 3], hash).is_some());
        }
    }
}

#[test]
fn refusals_keep_their_extent_and_status() {
    let answer = |extent, status| Answer::Unroutable {
        number: 1,
        extent,
        status,
        reply: "no".to_owned(),
    };
    let reply = || "no".to_owned();
    assert_eq!(
        unroutable(answer(Extent::Ever, 2)),
        Unroutable::Permanent {
            status: "5.4.6",
            reply: reply()
        }
    );
    assert_eq!(
        unroutable(answer(Extent::Site, 0)),
        Unroutable::Site(reply())
    );
    // A newer courier may have an unknown status: no message is returned for an unknown status.
    assert_eq!(
        unroutable(answer(Extent::Ever, 99)),
        Unroutable::Temporary(reply())
    );
}
