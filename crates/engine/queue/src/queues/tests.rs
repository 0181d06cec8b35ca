use super::*;
use crate::envelope::tests::sample;

const QUEUE: QueueNumber = 4;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn fresh(accepted: Timestamp) -> Envelope {
    Envelope {
        accepted,
        not_before: None,
        attempts: 0,
        delay_noticed: false,
        ..sample()
    }
}

fn queues_with(messages: u64) -> Queues {
    let mut queues = Queues::new(Policy {
        connections_max: 3,
        ..Policy::default()
    });
    queues.register(QUEUE, Destination::Domain("example.net".to_owned()));
    for record in 0..messages {
        queues.admit(
            QUEUE,
            record,
            fresh(at(0)),
            Some(Bytes::from_static(b"body")),
            at(0),
        );
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

fn opened(queues: &mut Queues, now: Timestamp) -> usize {
    std::iter::from_fn(|| queues.poll(now))
        .filter(|next| matches!(next, Next::Open(_)))
        .count()
}

#[test]
fn connections_open_up_to_the_limit_and_no_more_than_messages() {
    assert_eq!(opened(&mut queues_with(1), at(0)), 1);
    assert_eq!(opened(&mut queues_with(2), at(0)), 2);
    assert_eq!(opened(&mut queues_with(100), at(0)), 3);
}

#[test]
fn messages_are_given_out_in_acceptance_order() {
    let mut queues = queues_with(3);
    let order: Vec<_> = std::iter::from_fn(|| queues.take(QUEUE, at(0)))
        .map(|job| job.record)
        .collect();
    assert_eq!(order, [0, 1, 2]);
}

#[test]
fn a_delivered_message_is_gone() {
    let mut queues = queues_with(1);
    let job = queues.take(QUEUE, at(0)).expect("a job");
    assert_eq!(job.body.as_deref(), Some(&b"body"[..]));
    let settled = queues
        .settle(
            QUEUE,
            job.record,
            &attempt(Disposition::Delivered, 2),
            at(1),
        )
        .expect("in flight");
    assert_eq!(settled.remaining, None);
    assert_eq!(queues.messages(), 0);
    assert_eq!(queues.body_octets, 0);
    assert!(
        queues
            .settle(
                QUEUE,
                job.record,
                &attempt(Disposition::Delivered, 2),
                at(1)
            )
            .is_none()
    );
}

#[test]
fn a_deferred_message_returns_after_its_time_without_body_in_memory() {
    let mut queues = queues_with(1);
    let job = queues.take(QUEUE, at(0)).expect("a job");
    queues
        .settle(QUEUE, job.record, &attempt(Disposition::Deferred, 2), at(0))
        .expect("in flight");
    assert_eq!(queues.take(QUEUE, at(1)).map(|job| job.record), None);
    let wake = queues.wake_at().expect("a timer");
    assert_eq!(wake, at(60));
    assert_eq!(queues.poll(wake), Some(Next::Open(QUEUE)));
    let again = queues.take(QUEUE, wake).expect("ready again");
    assert_eq!(
        (again.record, again.envelope.attempts, again.body),
        (0, 1, None)
    );
}

#[test]
fn an_unreachable_destination_is_paused_and_probed_by_one_connection() {
    let mut queues = queues_with(10);
    assert_eq!(opened(&mut queues, at(0)), 3);
    for _ in 0..3 {
        queues.destination_failed(QUEUE, "connection refused", at(0));
        queues.worker_ended(QUEUE);
    }
    assert_eq!(opened(&mut queues, at(59)), 0);
    assert!(queues.take(QUEUE, at(59)).is_none());
    assert_eq!(
        opened(&mut queues, at(60)),
        1,
        "three failures at once are one failure"
    );
    queues.destination_failed(QUEUE, "connection refused", at(60));
    queues.worker_ended(QUEUE);
    assert_eq!(
        opened(&mut queues, at(60 + 299)),
        0,
        "the second pause is longer"
    );
    assert_eq!(opened(&mut queues, at(60 + 300)), 1);
    queues.destination_reached(QUEUE);
    queues.worker_idle(QUEUE);
    assert_eq!(queues.poll(at(360)), Some(Next::Wake(QUEUE)));
    assert_eq!(opened(&mut queues, at(360)), 2, "full concurrency again");
}

#[test]
fn pausing_one_destination_leaves_others_alone() {
    let mut queues = queues_with(1);
    queues.register(9, Destination::Local);
    queues.destination_failed(QUEUE, "refused", at(0));
    queues.admit(9, 0, fresh(at(0)), None, at(0));
    assert_eq!(queues.poll(at(0)), Some(Next::Open(9)));
    assert_eq!(queues.poll(at(0)), None);
}

#[test]
fn a_job_given_back_is_first_again() {
    let mut queues = queues_with(2);
    let job = queues.take(QUEUE, at(0)).expect("a job");
    queues.give_back(QUEUE, job.record);
    assert_eq!(queues.take(QUEUE, at(0)).map(|job| job.record), Some(0));
}

#[test]
fn bodies_beyond_the_budget_stay_in_the_spool() {
    let mut queues = Queues::new(Policy {
        body_memory_max: 5,
        ..Policy::default()
    });
    queues.register(QUEUE, Destination::Local);
    for record in 0..2 {
        queues.admit(
            QUEUE,
            record,
            fresh(at(0)),
            Some(Bytes::from_static(b"body")),
            at(0),
        );
    }
    assert!(queues.take(QUEUE, at(0)).expect("first").body.is_some());
    assert!(queues.take(QUEUE, at(0)).expect("second").body.is_none());
}

#[test]
fn expired_messages_leave_a_paused_queue() {
    let mut queues = queues_with(2);
    let late = at(0) + queues.policy().expire;
    queues.admit(QUEUE, 2, fresh(late), None, late);
    queues.destination_failed(QUEUE, "refused", late);
    let jobs = queues.take_expired(QUEUE, 10, late);
    assert_eq!(
        jobs.iter().map(|job| job.record).collect::<Vec<_>>(),
        [0, 1]
    );
    for job in jobs {
        let attempt = Queues::unreachable_attempt(&job.envelope, "example.net", "refused");
        let settled = queues
            .settle(QUEUE, job.record, &attempt, late)
            .expect("in flight");
        assert_eq!(settled.remaining, None);
        assert_eq!(settled.expired.len(), 2);
    }
    assert_eq!(queues.messages(), 1);
}

#[test]
fn a_record_already_known_is_not_taken_twice() {
    let mut queues = queues_with(1);
    queues.admit(QUEUE, 0, fresh(at(0)), None, at(0));
    assert_eq!(queues.messages(), 1);
    assert!(queues.take(QUEUE, at(0)).is_some());
    assert!(queues.take(QUEUE, at(0)).is_none());
}

#[test]
fn summaries_count_what_is_there() {
    let mut queues = queues_with(3);
    queues.take(QUEUE, at(0));
    let job = queues.take(QUEUE, at(0)).expect("a job");
    queues.settle(QUEUE, job.record, &attempt(Disposition::Deferred, 2), at(0));
    let summary = &queues.summaries()[0];
    assert_eq!(
        (summary.messages, summary.deferred, summary.in_flight),
        (3, 1, 1)
    );
    assert_eq!(summary.last_reply.as_deref(), Some("451 later"));
    assert_eq!(
        queues
            .list(QUEUE, 1, 10)
            .map(|(record, _)| record)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}
