//! Messages that an operator holds singly.

use super::*;
use crate::envelope::ScheduleHead;
use crate::order::FOREVER;

const NONE_AT_ALL: [RecordId; 0] = [];

fn trace(record: u64) -> TraceId {
    fresh(record, at(0)).head.trace
}

fn taken(queues: &mut Queues, now: Timestamp) -> Vec<RecordId> {
    supply(queues, now);
    let taken = std::iter::from_fn(|| {
        let job = take(queues, now);
        supply(queues, now);
        job
    });
    taken.map(|job| job.record).collect()
}

#[test]
fn a_held_message_stays_and_the_others_leave() {
    let mut queues = queues_with(4);
    assert!(queues.hold_message(QUEUE, RecordId(1), trace(1), FOREVER));
    assert!(queues.hold_message(QUEUE, RecordId(2), trace(2), at(50)));
    assert!(
        !queues.hold_message(QUEUE, RecordId(9), trace(9), FOREVER),
        "no such"
    );
    assert_eq!(queues.totals().held, 2);
    assert_eq!(queues.summaries(None, 1)[0].held, 2);
    let until = |queues: &Queues, record| {
        let message = queues.message(QUEUE, RecordId(record), trace(record));
        message.and_then(|message| message.held_until)
    };
    assert_eq!(until(&queues, 1), Some(FOREVER));
    assert_eq!(until(&queues, 2), Some(at(50)));
    assert_eq!(taken(&mut queues, at(0)), [0, 3].map(RecordId));
    assert!(
        !queues.hold_message(QUEUE, RecordId(0), trace(0), FOREVER),
        "busy"
    );
    assert!(!queues.retry(QUEUE, RecordId(1), trace(1)), "it stays held");
    let wakes = queues.wake_at().expect("a hold ends");
    assert!(wakes <= at(50), "{wakes}");
    assert_eq!(taken(&mut queues, at(51)), [RecordId(2)]);
    assert!(!queues.release_message(QUEUE, RecordId(2), trace(2), at(51)));
    assert!(queues.release_message(QUEUE, RecordId(1), trace(1), at(51)));
    assert_eq!(taken(&mut queues, at(51)), [RecordId(1)]);
    assert_eq!(queues.totals().held, 0);
}

#[test]
fn a_hold_neither_uses_up_an_attempt_nor_brings_one_forward() {
    let mut queues = queues_with(2);
    for record in [0, 1] {
        let job = take(&mut queues, at(0)).expect("a job");
        assert_eq!(job.record, RecordId(record));
        put_off(&mut queues, &job, &deferred(), at(0));
    }
    let due = at(60);
    assert!(queues.hold_message(QUEUE, RecordId(0), trace(0), at(20)));
    assert!(queues.hold_message(QUEUE, RecordId(1), trace(1), at(90)));
    let message = queues
        .message(QUEUE, RecordId(0), trace(0))
        .expect("it is there");
    assert_eq!((message.attempts, message.due), (1, Some(due)));
    assert_eq!(taken(&mut queues, at(21)), NONE_AT_ALL);
    let message = queues
        .message(QUEUE, RecordId(0), trace(0))
        .expect("it is there");
    assert_eq!(
        (message.standing, message.attempts, message.due),
        (Standing::Deferred, 1, Some(due))
    );
    assert_eq!(taken(&mut queues, at(61)), [RecordId(0)]);
    assert_eq!(taken(&mut queues, at(91)), [RecordId(1)]);
}

/// What an attempt left is written with its report, which may take a while. A hold that was placed before went
/// into a record that said nothing of the attempt, and was overwritten by what did.
#[test]
fn nobody_changes_a_record_before_the_end_of_an_attempt_is_in_it() {
    let mut queues = queues_with(1);
    let job = take(&mut queues, at(0)).expect("a job");
    let settled = queues.settle(QUEUE, &job, &deferred(), at(0));
    let rest = settled.and_then(|settled| settled.remaining);
    let rest = rest.expect("it is tried again");
    // Longer than until the next attempt.
    for now in [at(0), at(100)] {
        assert!(!queues.hold_message(QUEUE, RecordId(0), trace(0), FOREVER));
        assert!(!queues.retry(QUEUE, RecordId(0), trace(0)));
        assert!(!queues.discard(QUEUE, RecordId(0), trace(0)));
        let claimed = queues.claim(QUEUE, RecordId(0), fresh(0, at(0)), BODY);
        assert!(claimed.is_none());
        assert_eq!(taken(&mut queues, now), NONE_AT_ALL);
        assert_eq!(queues.totals().in_flight, 1);
    }
    queues.written(QUEUE, &job, &rest, at(100));
    assert_eq!(queues.totals().in_flight, 0);
    assert!(queues.hold_message(QUEUE, RecordId(0), trace(0), FOREVER));
    assert_eq!(taken(&mut queues, at(1_000)), NONE_AT_ALL);
    assert!(queues.release_message(QUEUE, RecordId(0), trace(0), at(1_000)));
    assert_eq!(
        taken(&mut queues, at(1_000)),
        [RecordId(0)],
        "it was due long ago"
    );
}

#[test]
fn what_is_held_does_not_leave_by_its_age() {
    let mut queues = queues_with(2);
    let late = at(0) + queues.policy().expire;
    assert!(queues.hold_message(QUEUE, RecordId(0), trace(0), FOREVER));
    assert_eq!(queues.first_expired(QUEUE, late), Some(RecordId(1)));
    assert!(queues.release_message(QUEUE, RecordId(0), trace(0), late));
    assert_eq!(queues.first_expired(QUEUE, late), Some(RecordId(0)));
}

#[test]
fn operators_end_held_messages_as_they_do_others() {
    let mut queues = queues_with(2);
    for record in [0, 1] {
        assert!(queues.hold_message(QUEUE, RecordId(record), trace(record), at(50)));
    }
    assert!(queues.discard(QUEUE, RecordId(0), trace(0)));
    let job = queues
        .claim(QUEUE, RecordId(1), fresh(1, at(0)), BODY)
        .expect("a job");
    let failed = attempt(Disposition::Failed, 2);
    assert!(queues.settle(QUEUE, &job, &failed, at(1)).is_some());
    assert_eq!((queues.messages(), queues.totals().held), (0, 0));
    assert_eq!(queues.wake_at(), None);
}

#[test]
fn a_hold_is_taken_back_from_the_record() {
    let mut queues = queues(Policy::default());
    let envelope = |record, until, not_before| Envelope {
        head: ScheduleHead {
            held_until: Some(until),
            not_before,
            ..fresh(record, at(0)).head
        },
        ..fresh(record, at(0))
    };
    let due = Some(at(200));
    assert!(queues.admit(QUEUE, RecordId(0), envelope(0, FOREVER, None), None, at(10)));
    assert!(queues.admit(QUEUE, RecordId(1), envelope(1, at(100), due), None, at(10)));
    assert!(queues.admit(QUEUE, RecordId(2), envelope(2, at(10), None), None, at(10)));
    assert_eq!(
        taken(&mut queues, at(10)),
        [RecordId(2)],
        "its hold is over"
    );
    assert_eq!(queues.totals().held, 2);
    assert_eq!(taken(&mut queues, at(101)), NONE_AT_ALL);
    let summary = &queues.summaries(None, 1)[0];
    assert_eq!((summary.held, summary.deferred), (1, 1));
    assert_eq!(taken(&mut queues, at(201)), [RecordId(1)]);
}

/// What passed it would no longer be in order.
#[test]
fn in_order_a_held_message_holds_those_behind_it() {
    let mut queues = queues(gates::in_order());
    for record in 0..3 {
        let envelope = fresh(record, at(0));
        assert!(queues.admit(QUEUE, RecordId(record), envelope, Some(BODY), at(0)));
    }
    assert!(queues.hold_message(QUEUE, RecordId(1), trace(1), at(30)));
    let first = take(&mut queues, at(0)).expect("the first");
    assert_eq!(first.record, RecordId(0));
    let delivered = attempt(Disposition::Delivered, 2);
    queues.settle(QUEUE, &first, &delivered, at(0));
    assert_eq!(taken(&mut queues, at(29)), NONE_AT_ALL);
    assert_eq!(
        taken(&mut queues, at(31)),
        [RecordId(1)],
        "and it comes before them"
    );
}
