use crate::envelope::ScheduleHead;
use std::collections::BTreeSet;

use super::*;
use crate::envelope::tests::sample;
use crate::order::{self, Order};
use crate::settlement::{Attempt, Disposition, RecipientResult, Settlement};

mod detour;
mod gates;
mod heads;
mod held;
mod model;
mod overdue;
mod quarantine;
mod retire;
mod sites;
mod step;

const QUEUE: QueueId = QueueId(4);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn fresh(record: u64, accepted: Timestamp) -> Envelope {
    Envelope {
        head: ScheduleHead {
            last_reply: sample().head.last_reply,
            ..ScheduleHead::new(TraceId::new(1_000 + record), accepted, 1_024)
        },
        ..sample()
    }
}

const BODY: Bytes = Bytes::from_static(b"body");

fn queues(policy: Policy) -> Queues {
    let mut queues = Queues::new(policy);
    queues.register(QUEUE, Destination::domain("example.net".to_owned()), at(0));
    queues
}

fn queues_with(messages: u64) -> Queues {
    let mut queues = queues(Policy {
        connections_per_destination_max: 3,
        ..Policy::default()
    });
    for record in 0..messages {
        assert!(queues.admit(
            QUEUE,
            RecordId(record),
            fresh(record, at(0)),
            Some(BODY),
            at(0)
        ));
    }
    queues
}

fn attempt(disposition: Disposition, recipients: usize) -> Attempt {
    let result = RecipientResult {
        disposition,
        status: "4.0.0".to_owned(),
        reply: "451 later".to_owned(),
        from_remote: true,
    };
    Attempt {
        remote: "mx".to_owned(),
        reports_taken_over: true,
        results: vec![result; recipients],
    }
}

fn deferred() -> Attempt {
    attempt(Disposition::Deferred, 2)
}

/// Settles an attempt after which something remains; the record says so at once.
fn put_off(queues: &mut Queues, job: &Job, attempt: &Attempt, now: Timestamp) -> Settlement {
    let settled = queues.settle(QUEUE, job, attempt, now).expect("in flight");
    let rest = settled.remaining.as_ref().expect("something remains");
    queues.written(QUEUE, job, rest, now);
    settled
}

fn opened(queues: &mut Queues, now: Timestamp) -> usize {
    std::iter::from_fn(|| queues.poll(now))
        .filter(|next| matches!(next, Next::Open(_)))
        .count()
}

fn take(queues: &mut Queues, now: Timestamp) -> Option<Job> {
    queues.take(QUEUE, false, now)
}

/// Answers what the queues want to have fetched from records that all hold the same.
fn supply(queues: &mut Queues, now: Timestamp) -> Vec<Wanted> {
    let mut fetched = Vec::new();
    while let Some(next) = queues.poll(now) {
        if let Next::Fetch(wanted) = next {
            let from = wanted.from.0;
            let records = from..from + u64::from(wanted.records);
            let block: Vec<_> = records
                .map(|record| (RecordId(record), fresh(record, at(0)), BODY))
                .collect();
            assert_eq!(queues.supply(&wanted, block), Supplied::Taken);
            fetched.push(wanted);
        }
    }
    fetched
}

#[test]
fn connections_open_up_to_the_limit_and_no_more_than_messages() {
    assert_eq!(opened(&mut queues_with(1), at(0)), 1);
    assert_eq!(opened(&mut queues_with(2), at(0)), 2);
    assert_eq!(opened(&mut queues_with(100), at(0)), 3);
}

/// One connection above the share, begun again and again and given up before it carried anything, kept a
/// gateway busy whose slow destinations wanted more connections than there were.
#[test]
fn who_gave_a_connection_up_for_others_does_not_take_it_back_at_once() {
    let mut queues = queues(Policy {
        connections_max: 32,
        connections_per_destination_max: 20,
        ..Policy::default()
    });
    let come = |queues: &mut Queues, number: QueueId| {
        queues.register(number, Destination::domain(format!("d{number}")), at(0));
        for record in 0..100 {
            let envelope = fresh(u64::from(number.0) * 100 + record, at(0));
            assert!(queues.admit(number, RecordId(record), envelope, Some(BODY), at(0)));
        }
    };
    let open = |queues: &mut Queues| {
        let mut opened = Vec::new();
        while let Some(next) = queues.poll(at(0)) {
            if let Next::Open(number) = next {
                queues.destination_reached(number);
                opened.push(number);
            }
        }
        opened
    };
    come(&mut queues, QUEUE);
    assert_eq!(open(&mut queues).len(), 20);
    (1..=2).for_each(|number| come(&mut queues, QueueId(number)));
    assert_eq!(open(&mut queues).len(), 4, "a quarter of 32 is spared");
    let mut given_up = 0;
    while !queues.keeps_worker(QUEUE, at(0)) {
        queues.connection_closed(QUEUE);
        queues.worker_ended(QUEUE, true);
        let opened = open(&mut queues);
        assert!(!opened.contains(&QUEUE), "{opened:?}");
        given_up += 1;
        assert!(given_up < 20);
    }
    assert!(given_up > 0);
    // The others have their chance with their next message.
    let more = fresh(1_000, at(0));
    assert!(queues.admit(QueueId(1), RecordId(100), more, Some(BODY), at(0)));
    assert!(open(&mut queues).contains(&QueueId(1)));
}

#[test]
fn messages_are_given_out_in_acceptance_order() {
    let mut queues = queues_with(3);
    let order: Vec<_> = std::iter::from_fn(|| take(&mut queues, at(0)))
        .map(|job| job.record)
        .collect();
    assert_eq!(order, [0, 1, 2].map(RecordId));
}

#[test]
fn a_delivered_message_is_gone() {
    let mut queues = queues_with(1);
    let job = take(&mut queues, at(0)).expect("a job");
    assert_eq!(job.body, Some(BODY));
    let delivered = attempt(Disposition::Delivered, 2);
    let settled = queues
        .settle(QUEUE, &job, &delivered, at(1))
        .expect("in flight");
    assert_eq!(settled.remaining, None);
    assert_eq!((queues.messages(), queues.head_octets()), (0, 0));
    assert!(queues.settle(QUEUE, &job, &delivered, at(1)).is_none());
}

#[test]
fn a_deferred_message_comes_back_from_the_spool_at_its_time() {
    let mut queues = queues_with(1);
    let job = take(&mut queues, at(0)).expect("a job");
    put_off(&mut queues, &job, &deferred(), at(0));
    assert_eq!(queues.head_octets(), 0);
    assert!(take(&mut queues, at(1)).is_none());
    let mut wake = queues.wake_at().expect("a timer");
    while wake < at(60) {
        assert_eq!(queues.poll(wake), None);
        wake = queues.wake_at().expect("a timer");
    }
    assert_eq!(wake, at(60));
    let fetched = supply(&mut queues, wake);
    assert_eq!(
        fetched.iter().map(|one| one.from).collect::<Vec<_>>(),
        [RecordId(0)]
    );
    let again = take(&mut queues, wake).expect("ready again");
    assert_eq!((again.record, again.body), (RecordId(0), Some(BODY)));
}

#[test]
fn an_unreachable_destination_is_paused_and_probed_by_one_connection() {
    let mut queues = queues_with(10);
    assert_eq!(opened(&mut queues, at(0)), 3);
    for _ in 0..3 {
        queues.destination_failed(QUEUE, "connection refused", at(0));
        queues.worker_ended(QUEUE, true);
    }
    assert_eq!(queues.head_octets(), 0, "what stands still needs no memory");
    assert_eq!(queues.totals().paused, 1);
    assert_eq!(opened(&mut queues, at(59)), 0);
    assert!(take(&mut queues, at(59)).is_none());
    let fetched = supply(&mut queues, at(60));
    assert_eq!(fetched.len(), 1);
    assert_eq!(fetched[0].records, 1, "one message is enough for a probe");
    let summary = &queues.summaries(None, usize::MAX)[0];
    assert_eq!(summary.connections, 1, "three failures at once are one");
    queues.destination_failed(QUEUE, "connection refused", at(60));
    queues.worker_ended(QUEUE, true);
    assert_eq!(supply(&mut queues, at(60 + 299)), [], "a longer pause");
    assert_eq!(supply(&mut queues, at(60 + 300)).len(), 1);
    queues.destination_reached(QUEUE);
    assert!(queues.worker_idle(QUEUE));
    supply(&mut queues, at(360));
    let summary = &queues.summaries(None, usize::MAX)[0];
    assert_eq!(summary.connections, 3, "full concurrency again");
    assert_eq!(queues.totals().paused, 0);
}

#[test]
fn pausing_one_destination_leaves_others_alone() {
    let mut queues = queues_with(1);
    queues.register(QueueId(9), Destination::LOCAL, at(0));
    queues.destination_failed(QUEUE, "refused", at(0));
    queues.admit(QueueId(9), RecordId(0), fresh(0, at(0)), Some(BODY), at(0));
    assert_eq!(queues.poll(at(0)), Some(Next::Open(QueueId(9))));
    assert_eq!(queues.poll(at(0)), None);
}

#[test]
fn a_job_given_back_is_first_again() {
    let mut queues = queues_with(2);
    let job = take(&mut queues, at(0)).expect("a job");
    queues.give_back(QUEUE, &job);
    assert_eq!(
        take(&mut queues, at(0)).map(|job| job.record),
        Some(RecordId(0))
    );
    let stale = Job {
        record: RecordId(7),
        ..job
    };
    queues.give_back(QUEUE, &stale);
    assert_eq!(
        take(&mut queues, at(0)).map(|job| job.record),
        Some(RecordId(1))
    );
}

#[test]
fn one_message_wakes_one_of_many_idle_workers() {
    let mut queues = queues_with(3);
    assert_eq!(opened(&mut queues, at(0)), 3);
    for _ in 0..3 {
        let job = queues.take(QUEUE, true, at(0)).expect("a job");
        let delivered = attempt(Disposition::Delivered, 2);
        queues.settle(QUEUE, &job, &delivered, at(0));
        assert!(queues.worker_idle(QUEUE));
    }
    assert_eq!(queues.poll(at(0)), None);
    queues.admit(QUEUE, RecordId(3), fresh(3, at(0)), Some(BODY), at(0));
    assert_eq!(queues.poll(at(0)), Some(Next::Wake(QUEUE)));
    assert_eq!(queues.poll(at(0)), None);
    queues.admit(QUEUE, RecordId(4), fresh(4, at(0)), Some(BODY), at(0));
    assert_eq!(queues.poll(at(0)), Some(Next::Wake(QUEUE)));
    assert_eq!(queues.poll(at(0)), None);
}

#[test]
fn queues_take_turns_and_share_the_connections() {
    let mut queues = Queues::new(Policy {
        connections_per_destination_max: 10,
        connections_max: 4,
        ..Policy::default()
    });
    for number in 0..3 {
        queues.register(
            QueueId(number),
            Destination::domain(format!("{number}.example")),
            at(0),
        );
        for record in 0..20 {
            let envelope = fresh(u64::from(number) * 100 + record, at(0));
            queues.admit(
                QueueId(number),
                RecordId(record),
                envelope,
                Some(BODY),
                at(0),
            );
        }
    }
    let next: Vec<_> = std::iter::from_fn(|| queues.poll(at(0))).collect();
    assert_eq!(next, [0, 1, 2, 0].map(QueueId).map(Next::Open));
    // Whoever waits longest gets what becomes free.
    for expected in [1, 2, 0, 1] {
        queues.worker_ended(QueueId(0), true);
        assert_eq!(queues.poll(at(0)), Some(Next::Open(QueueId(expected))));
        assert_eq!(queues.poll(at(0)), None);
    }
}

#[test]
fn the_largest_holder_of_memory_gives_way() {
    let body = Bytes::from(vec![b'x'; 10_000]);
    let mut queues = queues(Policy {
        head_memory_max: 100_000,
        ..Policy::default()
    });
    queues.register(QueueId(9), Destination::LOCAL, at(0));
    for record in 0..100 {
        queues.admit(
            QUEUE,
            RecordId(record),
            fresh(record, at(0)),
            Some(body.clone()),
            at(0),
        );
        assert!(queues.head_octets() <= 100_000);
    }
    let alone = queues.head_octets();
    assert!(alone > 80_000, "the budget is used: {alone}");
    queues.admit(
        QueueId(9),
        RecordId(0),
        fresh(500, at(0)),
        Some(body.clone()),
        at(0),
    );
    assert!(queues.head_octets() <= 100_000);
    let small = queues
        .take(QueueId(9), false, at(0))
        .expect("at hand at once");
    assert_eq!(small.body, Some(body));
    let first = take(&mut queues, at(0)).expect("the first of the large one");
    assert_eq!(
        first.record,
        RecordId(0),
        "the last ones gave way, not the first"
    );
}

#[test]
fn what_the_spool_lost_is_forgotten_and_does_not_hold_up_the_rest() {
    let mut queues = queues(Policy {
        head_memory_max: 0,
        ..Policy::default()
    });
    for record in 0..3 {
        queues.admit(
            QUEUE,
            RecordId(record),
            fresh(record, at(0)),
            Some(BODY),
            at(0),
        );
    }
    let Some(Next::Fetch(wanted)) = queues.poll(at(0)) else {
        panic!("nothing wanted");
    };
    assert_eq!(queues.poll(at(0)), None, "one block at a time");
    let later = vec![(RecordId(1), fresh(1, at(0)), BODY)];
    let trace = fresh(0, at(0)).head.trace;
    assert_eq!(queues.supply(&wanted, later), Supplied::Lost(trace));
    assert_eq!(queues.messages(), 2);
    assert_eq!(supply(&mut queues, at(0))[0].from, RecordId(1));
    assert_eq!(
        take(&mut queues, at(0)).map(|job| job.record),
        Some(RecordId(1))
    );
}

#[test]
fn a_job_whose_record_is_gone_is_forgotten_and_does_not_hold_up_the_rest() {
    for policy in [Policy::default(), gates::in_order()] {
        let mut queues = queues(policy);
        for record in 0..2 {
            queues.admit(
                QUEUE,
                RecordId(record),
                fresh(record, at(0)),
                Some(BODY),
                at(0),
            );
        }
        let job = take(&mut queues, at(0)).expect("the first");
        assert!(queues.lose(QUEUE, &job));
        assert_eq!((queues.messages(), queues.totals().in_flight), (1, 0));
        assert!(!queues.lose(QUEUE, &job), "it is nobody's any more");
        let next = take(&mut queues, at(0)).expect("the one behind it");
        assert_eq!(next.record, RecordId(1));
        assert_eq!(queues.messages(), 1);
    }
}

#[test]
fn a_block_that_does_not_come_is_asked_for_again_later() {
    let mut queues = queues(Policy {
        head_memory_max: 0,
        ..Policy::default()
    });
    queues.admit(QUEUE, RecordId(0), fresh(0, at(0)), Some(BODY), at(0));
    let Some(Next::Fetch(wanted)) = queues.poll(at(0)) else {
        panic!("nothing wanted");
    };
    queues.fetch_failed(&wanted, at(1));
    assert_eq!(queues.poll(at(0)), None);
    assert_eq!(queues.wake_at(), Some(at(1)));
    assert_eq!(queues.poll(at(1)), Some(Next::Fetch(wanted)));
}

#[test]
fn expired_messages_of_a_paused_queue_are_found_and_claimed() {
    let mut queues = queues_with(3);
    let late = at(0) + queues.policy().expire;
    queues.admit(QUEUE, RecordId(3), fresh(3, late), None, late);
    let busy = take(&mut queues, late).expect("in flight");
    queues.destination_failed(QUEUE, "refused", late);
    for record in [1, 2] {
        assert_eq!(queues.first_expired(QUEUE, late), Some(RecordId(record)));
        let job = queues
            .claim(QUEUE, RecordId(record), fresh(record, at(0)), BODY)
            .expect("not in flight");
        let attempt = Queues::unreachable_attempt(&job.envelope, "example.net", "refused");
        let settled = queues
            .settle(QUEUE, &job, &attempt, late)
            .expect("in flight");
        assert_eq!((settled.remaining, settled.expired.len()), (None, 2));
    }
    assert_eq!(queues.first_expired(QUEUE, late), None);
    assert!(
        queues
            .claim(QUEUE, busy.record, fresh(0, at(0)), BODY)
            .is_none()
    );
    assert_eq!(queues.messages(), 2);
}

#[test]
fn a_record_already_known_is_not_taken_twice() {
    let mut queues = queues_with(1);
    assert!(!queues.admit(QUEUE, RecordId(0), fresh(0, at(0)), None, at(0)));
    assert_eq!(queues.messages(), 1);
    assert!(take(&mut queues, at(0)).is_some());
    assert!(take(&mut queues, at(0)).is_none());
}

/// Also where ids do not grow with the records, and where the last message of a page has left since.
#[test]
fn pages_leave_out_nothing_that_stays() {
    let mut queues = queues_with(0);
    let ids = [5, 3, 9, 1, 7, 2];
    for (record, id) in (0..).zip(ids) {
        let envelope = Envelope {
            head: ScheduleHead {
                trace: TraceId::new(id),
                ..fresh(record, at(0)).head
            },
            ..fresh(record, at(0))
        };
        assert!(queues.admit(QUEUE, RecordId(record), envelope, Some(BODY), at(0)));
    }
    let last = queues.newest(QUEUE).expect("one");
    assert_eq!((last.record, last.trace), (RecordId(5), TraceId::new(2)));
    let page = |queues: &Queues, after: Option<RecordId>| -> Vec<RecordId> {
        let after = after.map(|record| (record, TraceId::new(ids[record.0 as usize])));
        let listed = queues.list_behind(QUEUE, after, 2);
        listed.map(|one| one.record).collect()
    };
    assert_eq!(page(&queues, None), [0, 1].map(RecordId));
    assert_eq!(page(&queues, Some(RecordId(1))), [2, 3].map(RecordId));
    assert!(queues.discard(QUEUE, RecordId(1), TraceId::new(3)));
    assert_eq!(page(&queues, Some(RecordId(1))), [2, 3].map(RecordId));
    assert!(queues.discard(QUEUE, RecordId(2), TraceId::new(9)));
    assert_eq!(page(&queues, Some(RecordId(2))), [3, 4].map(RecordId));
    assert_eq!(page(&queues, Some(RecordId(0))), [3, 4].map(RecordId));
    assert!(page(&queues, Some(RecordId(5))).is_empty());
}

#[test]
fn summaries_count_what_is_there() {
    let mut queues = queues_with(4);
    queues.register(
        QueueId(5),
        Destination::domain("empty.example".to_owned()),
        at(0),
    );
    take(&mut queues, at(0));
    let job = take(&mut queues, at(0)).expect("a job");
    put_off(&mut queues, &job, &deferred(), at(0));
    let summaries = queues.summaries(None, usize::MAX);
    assert_eq!(summaries.len(), 1, "known is not active");
    assert_eq!(queues.destinations_known(), 2);
    let summary = &summaries[0];
    assert_eq!(
        (summary.messages, summary.deferred, summary.in_flight),
        (4, 1, 1)
    );
    assert_eq!(summary.last_reply.as_deref(), Some("451 later"));
    assert_eq!(summary.last_answer.as_deref(), Some("451 later"));
    let listed = |after| -> Vec<_> {
        let list = queues.list(QUEUE, after, 2);
        list.map(|one| (one.record, one.standing)).collect()
    };
    assert_eq!(
        listed(None),
        [
            (RecordId(0), Standing::InFlight),
            (RecordId(1), Standing::Deferred)
        ]
    );
    assert_eq!(listed(Some(TraceId::new(1))).len(), 2, "before all");
    let after = Some(fresh(1, at(0)).head.trace);
    assert_eq!(
        listed(after),
        [
            (RecordId(2), Standing::Ready),
            (RecordId(3), Standing::Ready)
        ]
    );
    assert_eq!(
        queues
            .places(fresh(3, at(0)).head.trace)
            .collect::<Vec<_>>(),
        [(QUEUE, RecordId(3))]
    );
    let job = take(&mut queues, at(0)).expect("a job");
    let mut taken = attempt(Disposition::Delivered, 2);
    "250 taken".clone_into(&mut taken.results[1].reply);
    queues.settle(QUEUE, &job, &taken, at(0));
    let summary = &queues.summaries(None, usize::MAX)[0];
    assert_eq!(summary.last_reply.as_deref(), Some("451 later"));
    assert_eq!(summary.last_answer.as_deref(), Some("250 taken"));
}

#[test]
fn summaries_come_in_pages_in_the_order_of_destinations() {
    let mut queues = Queues::new(Policy::default());
    let name = |number: u32| Destination::domain(format!("{:02}.example", number * 7 % 20));
    for number in 0..20 {
        queues.register(QueueId(number), name(number), at(0));
        let envelope = fresh(u64::from(number), at(0));
        queues.admit(QueueId(number), RecordId(0), envelope, Some(BODY), at(0));
    }
    let mut seen = Vec::new();
    loop {
        let page = queues.summaries(seen.last(), 6);
        assert!(page.len() <= 6);
        if page.is_empty() {
            break;
        }
        seen.extend(page.into_iter().map(|one| one.destination));
    }
    let mut all: Vec<_> = (0..20).map(name).collect();
    all.sort();
    assert_eq!(seen, all);
}

#[test]
fn what_is_held_stays_without_using_up_retries_until_its_time() {
    let mut queues = queues_with(3);
    let destination = Destination::domain("example.net".to_owned());
    let hold = |until| Order {
        held_until: Some(until),
        ..Order::none(destination.clone())
    };
    queues.set_order(hold(at(100)), RecordId(7), at(0));
    assert_eq!(queues.order_record(&destination), Some(RecordId(7)));
    assert_eq!(queues.poll(at(0)), None);
    assert!(take(&mut queues, at(99)).is_none());
    let late = at(0) + queues.policy().expire;
    queues.set_order(hold(order::FOREVER), RecordId(8), at(50));
    assert_eq!(queues.poll(late), None, "the later order holds");
    assert_eq!(queues.first_expired(QUEUE, late), None);
    queues.set_order(Order::none(destination.clone()), RecordId(8), late);
    assert_eq!(queues.order_record(&destination), None);
    supply(&mut queues, late);
    let job = take(&mut queues, late).expect("released");
    assert_eq!((job.record, job.envelope.head.attempts), (RecordId(0), 0));
    queues.set_order(
        hold(late + std::time::Duration::from_secs(1)),
        RecordId(9),
        late,
    );
    assert!(take(&mut queues, late).is_none());
    let end = late + std::time::Duration::from_secs(2);
    supply(&mut queues, end);
    assert!(take(&mut queues, end).is_some(), "it ends by itself");
    assert!(queues.orders(end).next().is_none());
}

#[test]
fn an_order_waits_for_its_queue() {
    let mut queues = Queues::new(Policy::default());
    let order = Order {
        held_until: Some(at(100)),
        refused_until: Some(at(50)),
        ..Order::none(Destination::LOCAL)
    };
    queues.set_order(order.clone(), RecordId(0), at(0));
    assert_eq!(queues.orders(at(0)).collect::<Vec<_>>(), [order]);
    assert!(queues.is_refused(&Destination::LOCAL, at(49)));
    assert!(!queues.is_refused(&Destination::LOCAL, at(50)));
    queues.register(QueueId(3), Destination::LOCAL, at(0));
    queues.admit(QueueId(3), RecordId(0), fresh(0, at(0)), Some(BODY), at(0));
    assert_eq!(queues.poll(at(99)), None);
    assert_eq!(queues.fill(&Destination::LOCAL).0, 1);
    queues.discard(QueueId(3), RecordId(0), fresh(0, at(0)).head.trace);
    assert_eq!(queues.active(), [QueueId(3)], "a held queue is shown");
    assert_eq!(queues.poll(at(100)), None);
    assert_eq!(queues.active(), [] as [QueueId; 0]);
}

#[test]
fn a_message_is_tried_again_or_discarded_by_hand() {
    let mut queues = queues_with(2);
    let trace = |record| fresh(record, at(0)).head.trace;
    let job = take(&mut queues, at(0)).expect("a job");
    assert!(
        !queues.discard(QUEUE, RecordId(0), trace(0)),
        "it is in flight"
    );
    put_off(&mut queues, &job, &deferred(), at(0));
    assert!(!queues.retry(QUEUE, RecordId(1), trace(1)), "it is ready");
    assert!(queues.retry(QUEUE, RecordId(0), trace(0)));
    assert!(queues.discard(QUEUE, RecordId(1), trace(1)));
    supply(&mut queues, at(0));
    assert_eq!(
        take(&mut queues, at(0)).map(|job| job.record),
        Some(RecordId(0))
    );
    queues.destination_failed(QUEUE, "refused", at(0));
    queues.resume(QUEUE);
    assert_eq!(queues.totals().paused, 0);
}

#[test]
fn a_pause_that_was_ended_by_hand_comes_again_as_long_as_it_was() {
    let mut queues = queues_with(1);
    let paused_until = |queues: &Queues| queues.summaries(None, 1)[0].paused_until;
    queues.destination_failed(QUEUE, "refused", at(0));
    let first = paused_until(&queues)
        .expect("a pause")
        .saturating_since(at(0));
    for second in 1..5 {
        queues.resume(QUEUE);
        queues.destination_failed(QUEUE, "refused", at(second));
        assert_eq!(paused_until(&queues), Some(at(second) + first));
    }
    let again = paused_until(&queues).expect("a pause");
    queues.destination_failed(QUEUE, "refused", again);
    let next = paused_until(&queues).expect("a pause");
    assert!(next.saturating_since(again) > first, "by itself it grows");
}

#[test]
fn those_come_first_that_are_asked_for_and_counters_only_grow() {
    let mut queues = queues_with(2);
    let names = ["a.example", "b.example", "c.example"];
    for (number, name) in (10..).zip(names) {
        queues.register(QueueId(number), Destination::domain(name.to_owned()), at(0));
        for record in 0..u64::from(number - 8) {
            let accepted = at(100 - u64::from(number));
            let mut envelope = fresh(u64::from(number) * 100 + record, accepted);
            envelope.head.not_before = (number == 10).then(|| at(1_000));
            assert!(queues.admit(QueueId(number), RecordId(record), envelope, None, at(100)));
        }
    }
    let top = |queues: &Queues, order, filter: &str, limit| {
        let (rows, count) = queues.top(order, filter, limit);
        let name = |row: QueueSummary| row.destination.to_string();
        (rows.into_iter().map(name).collect::<Vec<_>>(), count)
    };
    let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (rows, count) = top(&queues, TopOrder::Messages, "", 2);
    assert_eq!((rows, count), (list(&["c.example", "b.example"]), 4));
    let (rows, _) = top(&queues, TopOrder::Deferred, "", 1);
    assert_eq!(rows, list(&["a.example"]));
    let (rows, _) = top(&queues, TopOrder::Oldest, "", 2);
    assert_eq!(rows, list(&["example.net", "c.example"]));
    let (rows, count) = top(&queues, TopOrder::Name, ".example", 9);
    assert_eq!((rows, count), (list(&names), 3));
    let _ = opened(&mut queues, at(100));
    let (rows, _) = top(&queues, TopOrder::Connections, "", 1);
    assert_eq!(rows, list(&["example.net"]));

    let job = take(&mut queues, at(100)).expect("a job");
    queues.settle(QUEUE, &job, &attempt(Disposition::Delivered, 2), at(101));
    let (rows, _) = queues.top(TopOrder::Name, "example.net", 1);
    assert_eq!((rows[0].came, rows[0].left, rows[0].messages), (2, 1, 1));
    assert_eq!((queues.totals().came, queues.totals().left), (11, 1));
}

#[test]
fn higher_priorities_leave_first_and_the_lowest_is_not_left_waiting() {
    let mut queues = queues(Policy::default());
    let priority = |record: u64| match record {
        0 => -9,
        1..=4 => 0,
        _ => 5,
    };
    for record in 0..30 {
        let mut envelope = fresh(record, at(record));
        envelope.head.priority = priority(record);
        assert!(queues.admit(QUEUE, RecordId(record), envelope, Some(BODY), at(100)));
    }
    let (rows, _) = queues.top(TopOrder::Name, "", 1);
    assert_eq!(rows[0].priorities, [(5, 25), (0, 4), (-9, 1)]);
    // The seven that come first, then the oldest of all, and so on.
    let mut order = Vec::new();
    while let Some(job) = take(&mut queues, at(100)) {
        order.push(priority(job.record.0));
    }
    assert_eq!(order.len(), 30);
    assert_eq!(order[..7], [5; 7]);
    assert_eq!(order[7], -9);
    assert_eq!(order[8..15], [5; 7]);
    assert_eq!(order[15], 0);
    assert_eq!(order.iter().filter(|one| **one == 0).count(), 4);
}

#[test]
fn a_priority_counts_for_what_is_not_at_hand_too() {
    let mut queues = queues(Policy {
        head_memory_max: 1,
        ..Policy::default()
    });
    for record in 0..4 {
        let mut envelope = fresh(record, at(record));
        envelope.head.priority = i8::from(record == 3);
        assert!(queues.admit(QUEUE, RecordId(record), envelope, Some(BODY), at(10)));
    }
    let next = std::iter::from_fn(|| queues.poll(at(10)));
    let fetch = next.filter_map(|next| match next {
        Next::Fetch(wanted) => Some(wanted.from),
        _ => None,
    });
    assert_eq!(fetch.collect::<Vec<_>>(), [RecordId(3)]);
}
