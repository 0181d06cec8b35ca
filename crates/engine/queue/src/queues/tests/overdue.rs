//! Messages with an end of their own.

use std::time::Duration;

use super::*;
use crate::order::FOREVER;

const OTHER: QueueId = QueueId(9);
const NOTHING: [u64; 0] = [];

fn trace(record: u64) -> TraceId {
    fresh(record, at(0)).head.trace
}

/// A message accepted at 0 that ends at a time.
fn dated(record: u64, expires: u64) -> Envelope {
    let mut envelope = fresh(record, at(0));
    envelope.head.expires = Some(at(expires));
    envelope
}

/// Queues with messages in the order of their records; of some the end is given, in seconds.
fn with(ends: &[Option<u64>]) -> Queues {
    let mut queues = queues(Policy::default());
    for (record, end) in (0..).zip(ends) {
        let envelope = end.map_or_else(|| fresh(record, at(0)), |end| dated(record, end));
        assert!(queues.admit(QUEUE, RecordId(record), envelope, Some(BODY), at(0)));
    }
    queues
}

fn overdue(queues: &Queues, now: u64) -> Vec<u64> {
    let found = queues.overdue(QUEUE, at(now), usize::MAX);
    found.iter().map(|one| one.record.0).collect()
}

#[test]
fn messages_end_in_any_order_and_are_found_in_that_of_records() {
    let queues = with(&[Some(300), None, Some(100), Some(200)]);
    assert_eq!(overdue(&queues, 99), NOTHING);
    assert_eq!(overdue(&queues, 100), [2]);
    assert_eq!(overdue(&queues, 1_000), [0, 2, 3]);
    let first = queues.overdue(QUEUE, at(1_000), 2);
    assert_eq!(
        first.iter().map(|one| one.record.0).collect::<Vec<_>>(),
        [2, 3]
    );
    assert!(queues.is_overdue(QUEUE, RecordId(2), trace(2), at(100)));
    assert!(!queues.is_overdue(QUEUE, RecordId(3), trace(3), at(100)));
    assert!(!queues.is_overdue(QUEUE, RecordId(1), trace(1), at(1_000)));
    assert!(!queues.is_overdue(QUEUE, RecordId(7), trace(7), at(1_000)));
}

/// The host goes from queue to queue.
#[test]
fn queues_with_overdue_messages_are_found_one_after_the_other() {
    let mut queues = with(&[Some(100)]);
    queues.register(
        OTHER,
        Destination::domain("other.example".to_owned()),
        at(0),
    );
    assert!(queues.admit(OTHER, RecordId(0), dated(5, 50), None, at(0)));
    let last = QueueId(u32::MAX);
    assert_eq!(queues.next_overdue(None, at(49)), None);
    assert_eq!(queues.next_overdue(None, at(50)), Some(OTHER));
    assert_eq!(queues.next_overdue(None, at(100)), Some(QUEUE));
    assert_eq!(queues.next_overdue(Some(QUEUE), at(100)), Some(OTHER));
    assert_eq!(queues.next_overdue(Some(OTHER), at(100)), None);
    assert_eq!(queues.next_overdue(Some(last), at(100)), None);
}

/// The search by age ends at the first young message, and messages with an end of their own are no part of it.
#[test]
fn the_search_by_age_passes_over_messages_with_an_end_of_their_own() {
    let late = at(0) + Policy::default().expire;
    let far = 10 * late.as_millis();
    let mut queues = with(&[Some(far), Some(1), None, Some(2)]);
    assert_eq!(queues.first_expired(QUEUE, late), Some(RecordId(2)));
    assert!(queues.discard(QUEUE, RecordId(2), trace(2)));
    assert_eq!(queues.first_expired(QUEUE, late), None);
    assert_eq!(queues.first_expired(QUEUE, at(far)), None);
}

#[test]
fn an_attempt_gives_up_by_the_own_end_and_not_by_age() {
    let age = Policy::default().expire;
    let longer = age.as_secs() + 500;
    for (end, now, is_over) in [
        (100, 99, false),
        (100, 100, true),
        (longer, longer - 1, false),
        (longer, longer, true),
    ] {
        let mut queues = with(&[Some(end)]);
        let job = take(&mut queues, at(now)).expect("it is ready");
        assert_eq!(overdue(&queues, now), NOTHING, "it is in flight");
        let settled = queues.settle(QUEUE, &job, &deferred(), at(now));
        let settled = settled.expect("in flight");
        assert_eq!(settled.remaining.is_none(), is_over, "{end} at {now}");
        assert_eq!(settled.expired.len(), if is_over { 2 } else { 0 });
        if let Some(rest) = settled.remaining {
            assert_eq!(rest.head.expires, Some(at(end)));
            queues.written(QUEUE, &job, &rest, at(now));
            assert_eq!(overdue(&queues, end), [0]);
        }
    }
}

#[test]
fn deferred_messages_end_before_their_next_attempt() {
    let mut queues = with(&[Some(30)]);
    let job = take(&mut queues, at(0)).expect("it is ready");
    put_off(&mut queues, &job, &deferred(), at(0));
    assert_eq!(overdue(&queues, 29), NOTHING);
    assert_eq!(overdue(&queues, 30), [0]);
    let job = queues.claim(QUEUE, RecordId(0), dated(0, 30), BODY);
    let job = job.expect("it waits");
    assert_eq!(overdue(&queues, 30), NOTHING);
    let attempt = Queues::unreachable_attempt(&job.envelope, "here", "over");
    let settled = queues.settle(QUEUE, &job, &attempt, at(30));
    assert_eq!(settled.expect("in flight").remaining, None);
    assert_eq!(queues.messages(), 0);
    assert_eq!(queues.next_overdue(None, at(30)), None);
}

#[test]
fn held_messages_and_held_queues_do_not_end() {
    let mut queues = with(&[Some(30), Some(30)]);
    assert!(queues.hold_message(QUEUE, RecordId(0), trace(0), at(60)));
    assert_eq!(overdue(&queues, 30), [1]);
    assert!(!queues.is_overdue(QUEUE, RecordId(0), trace(0), at(30)));
    // The hold ends by itself.
    while queues.poll(at(61)).is_some() {}
    assert_eq!(overdue(&queues, 61), [0, 1]);
    assert!(queues.hold_message(QUEUE, RecordId(1), trace(1), FOREVER));
    assert_eq!(overdue(&queues, 61), [0]);
    assert!(queues.release_message(QUEUE, RecordId(1), trace(1), at(61)));
    assert_eq!(overdue(&queues, 61), [0, 1]);
    let order = Order {
        held_until: Some(FOREVER),
        ..Order::none(Destination::domain("example.net".to_owned()))
    };
    queues.set_order(order, RecordId(1), at(61));
    assert_eq!(overdue(&queues, 61), NOTHING);
    assert_eq!(queues.next_overdue(None, at(61)), None);
    assert!(!queues.is_overdue(QUEUE, RecordId(0), trace(0), at(61)));
}

/// A person released the message, and not the sender's end.
#[test]
fn a_message_of_the_quarantine_ends_after_its_release() {
    let mut queues = queues(Policy::default());
    let mut envelope = dated(0, 30);
    envelope.head.held_until = Some(FOREVER);
    envelope.head.held_for = crate::envelope::HoldCause::Quarantine;
    assert!(queues.admit(QUEUE, RecordId(0), envelope, None, at(0)));
    assert_eq!(overdue(&queues, 100), NOTHING);
    assert!(queues.begin_release(QUEUE, RecordId(0), trace(0)));
    let mut released = dated(0, 30);
    released.head.accepted = at(100);
    queues.released(QUEUE, (RecordId(0), RecordId(1)), released, None, at(100));
    assert_eq!(overdue(&queues, 100), [1]);
}

/// After a start the clock may be ahead.
#[test]
fn nothing_ends_for_one_full_retry_after_a_start() {
    let mut queues = with(&[Some(30)]);
    queues.spare_until(at(10));
    let spared = 10 + Policy::default().longest_retry().as_secs();
    assert_eq!(overdue(&queues, spared - 1), NOTHING);
    assert!(!queues.is_overdue(QUEUE, RecordId(0), trace(0), at(spared - 1)));
    assert_eq!(queues.next_overdue(None, at(spared - 1)), None);
    let job = take(&mut queues, at(spared - 1)).expect("it is ready");
    let settled = put_off(&mut queues, &job, &deferred(), at(spared - 1));
    assert_eq!(settled.expired.len(), 0);
    assert_eq!(overdue(&queues, spared), [0]);
}

/// Like an age: the clock that set the end is the clock that stepped.
#[test]
fn an_end_follows_a_step_of_the_clock_into_the_record() {
    // Longer than the time in which nothing ends after a step.
    let lifetime = Policy::default().longest_retry() + Duration::from_secs(100);
    for step in [86_400, -3_600] {
        let mut queues = queues(Policy::default());
        let mut envelope = fresh(0, at(10_000));
        envelope.head.expires = Some(at(10_000) + lifetime);
        assert!(queues.admit(QUEUE, RecordId(0), envelope, Some(BODY), at(10_000)));
        let after = at(10_000_u64.saturating_add_signed(step));
        let stepped = Step::between(at(10_000), after, Duration::ZERO);
        queues.clock_stepped(stepped.expect("a step"), after);
        let ended = |seconds| {
            let now = after + lifetime + Duration::from_secs(seconds);
            queues.overdue(QUEUE, now, 9).len()
        };
        assert_eq!((ended(0), ended(1)), (1, 1), "{step}");
        let early = after + lifetime.saturating_sub(Duration::from_secs(1));
        assert_eq!(queues.overdue(QUEUE, early, 9).len(), 0, "{step}");
        let job = take(&mut queues, after).expect("it is ready");
        let settled = put_off(&mut queues, &job, &deferred(), after);
        let rest = settled.remaining.expect("it goes on");
        assert_eq!(rest.head.accepted, after);
        assert_eq!(rest.head.expires, Some(after + lifetime), "{step}");
    }
}

/// Which clock was wrong nobody knows, so that the end counts from first sight, and the record keeps both times.
#[test]
fn an_end_counts_from_first_sight_while_the_acceptance_is_in_the_future() {
    let mut record = fresh(0, at(10_000));
    record.head.expires = Some(at(10_100));
    assert!(record.head.see(at(500)));
    let mut queues = queues(Policy::default());
    assert!(queues.admit(QUEUE, RecordId(0), record, Some(BODY), at(500)));
    assert_eq!(overdue(&queues, 599), NOTHING);
    assert_eq!(overdue(&queues, 600), [0]);
    let job = take(&mut queues, at(500)).expect("it is ready");
    let settled = put_off(&mut queues, &job, &deferred(), at(500));
    let rest = settled.remaining.expect("it goes on").head;
    assert_eq!((rest.accepted, rest.seen), (at(10_000), Some(at(500))));
    assert_eq!(rest.expires, Some(at(10_100)));
}

/// The stamp of a retry may be by a wrong clock; that of a sender who wants to wait is no longer than the message.
#[test]
fn a_deferred_first_attempt_waits_longer_than_a_retry() {
    let week = 7 * 86_400;
    let longest = Policy::default().longest_retry();
    for (attempts, expires, due) in [
        (0, Some(week + 100), at(week)),
        (0, Some(week - 100), at(week - 100)),
        (0, Some(10), at(0) + longest),
        (0, None, at(0) + longest),
        (1, Some(week + 100), at(0) + longest),
    ] {
        let mut envelope = fresh(0, at(0));
        envelope.head.not_before = Some(at(week));
        envelope.head.expires = expires.map(at);
        envelope.head.attempts = attempts;
        let mut queues = queues(Policy::default());
        assert!(queues.admit(QUEUE, RecordId(0), envelope, None, at(0)));
        let message = queues.message(QUEUE, RecordId(0), trace(0));
        let found = message.and_then(|message| message.due);
        assert_eq!(found, Some(due), "{attempts} {expires:?}");
    }
}

#[test]
fn the_reply_of_a_destination_counts_while_the_destination_fails() {
    let mut queues = with(&[None, None]);
    assert_eq!(queues.failure(QUEUE), None);
    let job = take(&mut queues, at(0)).expect("it is ready");
    put_off(&mut queues, &job, &deferred(), at(0));
    assert_eq!(queues.failure(QUEUE), None, "it can be reached");
    queues.destination_failed(QUEUE, "no route", at(0));
    assert_eq!(queues.failure(QUEUE), Some("no route"));
    queues.destination_reached(QUEUE);
    assert_eq!(queues.failure(QUEUE), None);
    assert_eq!(queues.failure(OTHER), None);
}
