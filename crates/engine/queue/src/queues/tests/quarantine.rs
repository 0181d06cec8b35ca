//! Messages that the judgement keeps aside.

use std::time::Duration;

use super::*;
use crate::envelope::HoldCause;
use crate::order::FOREVER;

const OTHER: QueueId = QueueId(5);
const MONTH: Duration = Duration::from_secs(30 * 86_400);

fn trace(record: u64) -> TraceId {
    fresh(record, at(0)).head.trace
}

fn kept(record: u64, accepted: Timestamp) -> Envelope {
    let mut envelope = fresh(record, accepted);
    envelope.head.held_until = Some(FOREVER);
    envelope.head.held_since = Some(accepted);
    envelope.head.held_for = HoldCause::Quarantine;
    envelope
}

/// A queue whose messages with these numbers are in the quarantine.
fn with(mut queues: Queues, messages: u64, aside: &[u64]) -> Queues {
    for record in 0..messages {
        let envelope = match aside.contains(&record) {
            true => kept(record, at(0)),
            false => fresh(record, at(0)),
        };
        assert!(queues.admit(QUEUE, RecordId(record), envelope, Some(BODY), at(0)));
    }
    queues
}

fn strict() -> Queues {
    queues(super::gates::in_order())
}

fn taken(queues: &mut Queues, now: Timestamp) -> Vec<RecordId> {
    let mut taken = Vec::new();
    loop {
        supply(queues, now);
        let Some(job) = take(queues, now) else {
            return taken;
        };
        taken.push(job.record);
        let done = attempt(Disposition::Delivered, 2);
        assert!(queues.settle(QUEUE, &job, &done, now).is_some());
    }
}

fn aside(queues: &Queues) -> Vec<RecordId> {
    let aside = queues.quarantined();
    aside.map(|(_, message)| message.record).collect()
}

#[test]
fn a_message_in_the_quarantine_holds_up_no_other() {
    for strict_order in [false, true] {
        let empty = if strict_order {
            strict()
        } else {
            queues(Policy::default())
        };
        let mut queues = with(empty, 5, &[0, 2]);
        assert_eq!(queues.keeps_order(QUEUE), strict_order);
        assert_eq!((queues.messages(), queues.totals().quarantined), (5, 2));
        assert_eq!(queues.totals().held, 0);
        let summary = &queues.summaries(None, 1)[0];
        assert_eq!((summary.messages, summary.quarantined), (5, 2));
        assert_eq!(taken(&mut queues, at(0)), [1, 3, 4].map(RecordId));
        assert_eq!(aside(&queues), [0, 2].map(RecordId));
        assert_eq!((queues.oldest(), queues.wake_at()), (None, None));
        let queue = &queues.summaries(None, 1)[0];
        assert_eq!((queue.messages, queue.oldest), (2, None), "it is shown");
    }
}

/// A release gives the message the place of a new one: also a strict queue sends it once those before it have left.
#[test]
fn a_released_message_is_the_newest_of_its_queue() {
    let mut queues = with(strict(), 3, &[0]);
    assert!(queues.begin_release(QUEUE, RecordId(0), trace(0)));
    assert!(
        !queues.begin_release(QUEUE, RecordId(0), trace(0)),
        "it is on its way"
    );
    assert_eq!((aside(&queues).len(), queues.totals().in_flight), (0, 1));
    let now = at(7_000_000);
    let mut envelope = fresh(0, now);
    envelope.head.trace = trace(0);
    queues.released(QUEUE, (RecordId(0), RecordId(9)), envelope, None, now);
    assert_eq!(queues.totals().quarantined, 0);
    assert_eq!(queues.totals().in_flight, 0);
    let listed: Vec<_> = queues.list(QUEUE, None, 10).collect();
    let records: Vec<_> = listed.iter().map(|one| one.record).collect();
    assert_eq!(records, [1, 2, 9].map(RecordId));
    assert!(!queues.is_expired(listed[2].accepted, now), "it is young");
    let places: Vec<_> = queues.places(trace(0)).collect();
    assert_eq!(places, [(QUEUE, RecordId(9))]);
    assert_eq!(queues.messages(), 3);
}

#[test]
fn a_release_that_was_not_written_changes_nothing() {
    let mut queues = with(queues(Policy::default()), 2, &[1]);
    assert!(queues.begin_release(QUEUE, RecordId(1), trace(1)));
    queues.take_back(QUEUE, RecordId(1), trace(1));
    assert_eq!(aside(&queues), [RecordId(1)]);
    assert_eq!(queues.totals().in_flight, 0);
    assert!(queues.begin_release(QUEUE, RecordId(1), trace(1)));
    assert!(queues.lose_released(QUEUE, RecordId(1), trace(1)));
    assert!(!queues.lose_released(QUEUE, RecordId(1), trace(1)));
    assert_eq!((queues.messages(), queues.totals().quarantined), (1, 0));
    // A message outside the quarantine is not released.
    assert!(!queues.begin_release(QUEUE, RecordId(0), trace(0)));
}

#[test]
fn a_message_in_the_quarantine_neither_expires_nor_is_told_of() {
    let mut queues = with(queues(Policy::default()), 3, &[0, 2]);
    let late = at(0) + queues.policy().expire;
    assert_eq!(queues.first_expired(QUEUE, late), Some(RecordId(1)));
    assert!(queues.discard(QUEUE, RecordId(1), trace(1)));
    assert_eq!(queues.first_expired(QUEUE, late), None);
    assert_eq!(queues.first_untold(QUEUE, late), None);
}

/// Queue commands for a destination walk along acceptance order, and commands for one message are refused.
#[test]
fn queue_commands_leave_the_quarantine_alone() {
    let mut queues = with(queues(Policy::default()), 3, &[0, 2]);
    let record = |one: MessageSummary| one.record;
    let listed: Vec<_> = queues.list_behind(QUEUE, None, 9).map(record).collect();
    assert_eq!(listed, [RecordId(1)]);
    let behind = Some((RecordId(0), trace(0)));
    let listed: Vec<_> = queues.list_behind(QUEUE, behind, 9).map(record).collect();
    assert_eq!(listed, [RecordId(1)]);
    let listed: Vec<_> = queues.list(QUEUE, Some(trace(0)), 9).map(record).collect();
    assert_eq!(listed, [RecordId(1)]);
    assert_eq!(queues.newest(QUEUE).map(record), Some(RecordId(1)));
    assert!(!queues.hold_message(QUEUE, RecordId(0), trace(0), FOREVER));
    assert!(!queues.release_message(QUEUE, RecordId(0), trace(0), at(0)));
    assert!(!queues.retry(QUEUE, RecordId(0), trace(0)));
    let claimed = queues.claim(QUEUE, RecordId(0), kept(0, at(0)), BODY);
    assert!(claimed.is_none());
    assert_eq!(queues.held_messages().count(), 0);
    let message = queues.message(QUEUE, RecordId(0), trace(0));
    let message = message.expect("it is there");
    assert_eq!(
        (message.standing, message.held_until),
        (Standing::Quarantined, Some(FOREVER))
    );
}

#[test]
fn a_queue_with_a_quarantine_stays_and_counts() {
    let mut queues = with(queues(Policy::default()), 1, &[0]);
    let idle = Duration::from_secs(1);
    assert_eq!(queues.vacant(9, idle, at(900)), []);
    assert_eq!(
        queues
            .fill(&Destination::domain("example.net".to_owned()))
            .0,
        1
    );
    assert!(queues.discard(QUEUE, RecordId(0), trace(0)));
    assert_eq!(queues.poll(at(900)), None);
    assert_eq!(queues.vacant(9, idle, at(900)), [QUEUE]);
    assert_eq!((queues.messages(), queues.totals().octets), (0, 0));
}

#[test]
fn messages_age_in_their_order() {
    let mut queues = queues(Policy::default());
    queues.register(OTHER, Destination::domain("example.com".to_owned()), at(0));
    for record in 0..4 {
        let accepted = at(record * 86_400);
        assert!(queues.admit(
            QUEUE,
            RecordId(record),
            kept(record, accepted),
            None,
            accepted
        ));
    }
    let aged = |queues: &Queues, now, limit| -> Vec<u64> {
        let aged = queues.aged(QUEUE, MONTH, now, limit);
        aged.into_iter().map(|message| message.record.0).collect()
    };
    let day = Duration::from_secs(86_400);
    assert!(aged(&queues, at(MONTH.as_secs() - 1), 9).is_empty());
    let late = at(0) + MONTH + day;
    assert_eq!(aged(&queues, late, 9), [0, 1]);
    assert_eq!(aged(&queues, late, 1), [0]);
    assert!(queues.begin_release(QUEUE, RecordId(0), trace(0)));
    assert_eq!(aged(&queues, late, 9), [1], "the first is being released");
    assert_eq!(queues.aged(OTHER, MONTH, late, 9), []);
}

/// A clock that is put ahead by 400 days does not empty the quarantine, and neither does one that is ahead at a start.
#[test]
fn ages_follow_steps_of_the_clock() {
    let mut queues = super::queues(Policy::default());
    for record in 0..2 {
        assert!(queues.admit(QUEUE, RecordId(record), kept(record, at(9)), None, at(9)));
    }
    let before = at(86_400);
    let after = before + Duration::from_secs(400 * 86_400);
    let step = Step::between(before, after, Duration::ZERO).expect("a step");
    queues.clock_stepped(step, after);
    assert_eq!(queues.aged(QUEUE, MONTH, after, 9), []);
    let retried = after + queues.policy().longest_retry();
    assert_eq!(
        queues.aged(QUEUE, MONTH, retried, 9),
        [],
        "they are a day old"
    );
    let old = after + MONTH;
    assert_eq!(queues.aged(QUEUE, MONTH, old, 9).len(), 2);

    let mut queues = with(super::queues(Policy::default()), 1, &[0]);
    queues.spare_until(after);
    assert_eq!(queues.aged(QUEUE, MONTH, after, 9), []);
    let retried = after + queues.policy().longest_retry();
    assert_eq!(queues.aged(QUEUE, MONTH, retried, 9).len(), 1);
}

/// An older program keeps what it does not know for an operator, and holds the message.
#[test]
fn the_cause_is_in_the_record() {
    let envelope = kept(7, at(3));
    let octets = envelope.encode();
    assert_eq!(octets.last(), Some(&2));
    let read = Envelope::decode(&octets).expect("a record");
    assert_eq!(read, envelope);
    assert!(read.head.is_quarantined());
    assert!(!fresh(7, at(3)).head.is_quarantined());
}
