//! Queues that are forgotten when nobody needs them.

use std::time::Duration;

use super::*;
use crate::limits::{Limits, Names, Rate, Scope};
use crate::site::SiteName;

const IDLE: Duration = Duration::from_secs(3_600);

fn domain(number: u32) -> Destination {
    Destination::domain(format!("d{number}.example"))
}

/// Has everything done that there is to do.
fn rest(queues: &mut Queues, seconds: u64) {
    while queues.poll(at(seconds)).is_some() {}
}

#[test]
fn only_queues_that_were_empty_for_long_are_vacant() {
    let mut queues = Queues::new(Policy::default());
    for number in 0..3 {
        queues.register(QueueId(number), domain(number), at(0));
    }
    assert!(queues.admit(
        QueueId(1),
        RecordId(1),
        fresh(1, at(10)),
        Some(BODY),
        at(10)
    ));
    rest(&mut queues, 3_599);
    assert!(queues.vacant(10, IDLE, at(3_599)).is_empty());
    assert_eq!(queues.vacant(10, IDLE, at(3_600)), [0, 2].map(QueueId));
    assert_eq!(queues.retire(QueueId(0), IDLE, at(3_600)), Some(domain(0)));
    assert_eq!(queues.number(&domain(0)), None);
    assert_eq!(
        queues.retire(QueueId(0), IDLE, at(3_600)),
        None,
        "it is gone"
    );
    assert_eq!(
        queues.retire(QueueId(1), IDLE, at(9_999)),
        None,
        "it has a message"
    );
    rest(&mut queues, 3_600);
    let job = queues.take(QueueId(1), true, at(3_600)).expect("a message");
    let delivered = attempt(Disposition::Delivered, job.envelope.mail.recipients.len());
    assert!(
        queues
            .settle(QueueId(1), &job, &delivered, at(3_600))
            .is_some()
    );
    assert_eq!(
        queues.retire(QueueId(1), IDLE, at(9_999)),
        None,
        "a worker is there"
    );
    for _ in 0..queues.totals().connections {
        queues.worker_ended(QueueId(1), false);
    }
    rest(&mut queues, 9_999);
    assert_eq!(queues.retire(QueueId(1), IDLE, at(9_999)), Some(domain(1)));
    assert_eq!(queues.destinations_known(), 1);
    // The number is free for another destination.
    queues.register(QueueId(1), domain(7), at(9_999));
    assert_eq!(queues.number(&domain(7)), Some(QueueId(1)));
    assert_eq!(queues.number(&domain(1)), None);
}

#[test]
fn a_queue_that_a_message_is_on_its_way_to_stays() {
    let mut queues = queues(Policy::default());
    rest(&mut queues, 0);
    let (first, second) = (queues.expect(QUEUE), queues.expect(QUEUE));
    queues.arrived(first);
    assert_eq!(queues.retire(QUEUE, IDLE, at(9_999)), None);
    queues.arrived(second);
    assert!(queues.retire(QUEUE, IDLE, at(9_999)).is_some());
}

/// A queue could not be made, and the spool gives its number again before all have heard of that.
#[test]
fn a_message_for_a_queue_that_was_not_made_does_not_count_for_the_next_of_its_number() {
    for next in [domain(0), domain(1)] {
        let mut queues = Queues::new(Policy::default());
        queues.register(QueueId(0), domain(0), at(0));
        let former = queues.expect(QueueId(0));
        queues.not_made(QueueId(0), &domain(0));
        queues.register(QueueId(0), next.clone(), at(0));
        let expected = queues.expect(QueueId(0));
        rest(&mut queues, 0);
        queues.arrived(former);
        assert_eq!(queues.retire(QueueId(0), IDLE, at(9_999)), None);
        queues.arrived(expected);
        assert_eq!(queues.retire(QueueId(0), IDLE, at(9_999)), Some(next));
    }
}

#[test]
fn holds_pauses_and_used_up_rates_are_not_forgotten() {
    let mut policy = Policy::default();
    let limits = Limits {
        rate: Some(Rate {
            messages: 1,
            per: Duration::from_secs(100_000),
            burst: 1,
        }),
        ..Limits::default()
    };
    let slow = Scope::Domains(Names::One("d2.example".to_owned()));
    policy.rules.insert(slow, limits);
    let mut queues = Queues::new(policy);
    for number in 0..4 {
        queues.register(QueueId(number), domain(number), at(0));
    }
    let mut order = Order::none(domain(0));
    order.held_until = Some(order::FOREVER);
    queues.set_order(order, RecordId(1), at(0));
    queues.destination_failed(QueueId(1), "421 no", at(0));
    assert!(queues.admit(QueueId(2), RecordId(1), fresh(1, at(0)), Some(BODY), at(0)));
    rest(&mut queues, 0);
    let job = queues.take(QueueId(2), true, at(0)).expect("a message");
    let delivered = attempt(Disposition::Delivered, job.envelope.mail.recipients.len());
    queues.settle(QueueId(2), &job, &delivered, at(0));
    queues.worker_ended(QueueId(2), false);
    assert_eq!(queues.vacant(10, IDLE, at(9_999)), [QueueId(3)]);
    rest(&mut queues, 9_999);
    assert_eq!(
        queues.vacant(10, IDLE, at(9_999)),
        [1, 3].map(QueueId),
        "its pause is over"
    );
    assert_eq!(queues.vacant(10, IDLE, at(200_000)), [1, 2, 3].map(QueueId));
}

#[test]
fn a_site_goes_with_its_last_queue() {
    let mut queues = Queues::new(Policy::default());
    let site = SiteName::new([("mx.example", 25)], None);
    for number in 0..2 {
        queues.register(QueueId(number), domain(number), at(0));
        assert!(queues.join_site(QueueId(number), &site, at(0)));
    }
    rest(&mut queues, 0);
    assert!(queues.retire(QueueId(0), IDLE, at(9_999)).is_some());
    assert_eq!(queues.gate_totals().sites, 1);
    assert!(queues.retire(QueueId(1), IDLE, at(9_999)).is_some());
    assert_eq!(queues.gate_totals().sites, 0);
}

/// A walk goes round, however many there are and whatever is taken out meanwhile.
#[test]
fn every_queue_is_looked_at_in_turn() {
    let mut queues = Queues::new(Policy::default());
    for number in 0..1_000 {
        queues.register(QueueId(number), domain(number), at(0));
    }
    rest(&mut queues, 0);
    let mut retired = 0;
    for _ in 0..12 {
        for number in queues.vacant(100, IDLE, at(9_999)) {
            retired += usize::from(queues.retire(number, IDLE, at(9_999)).is_some());
        }
    }
    assert_eq!((retired, queues.destinations_known()), (1_000, 0));
}
