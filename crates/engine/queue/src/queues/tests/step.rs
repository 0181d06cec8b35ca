//! Wall clocks that are put ahead and back.

use crate::envelope::ScheduleHead;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const DAY: u64 = 86_400;

/// A wall clock beside true time, both in seconds, and the queues that live by it.
struct World {
    queues: Queues,
    wall: u64,
}

impl World {
    fn new(messages: u64) -> Self {
        Self::with(Policy::default(), messages)
    }

    fn with(policy: Policy, messages: u64) -> Self {
        let wall = 1_000 * DAY;
        let mut queues = queues(policy);
        for record in 0..messages {
            let envelope = fresh(record, at(wall));
            assert!(queues.admit(QUEUE, RecordId(record), envelope, Some(BODY), at(wall)));
        }
        Self { queues, wall }
    }

    fn now(&self) -> Timestamp {
        at(self.wall)
    }

    /// Puts the clock ahead, or back, and the host notices.
    fn step(&mut self, seconds: i64) {
        let before = self.now();
        self.wall = self.wall.saturating_add_signed(seconds);
        let step = Step::between(before, self.now(), Duration::ZERO).expect("a step");
        assert_eq!(step.seconds(), seconds);
        self.queues.clock_stepped(step, self.now());
    }

    /// Takes all that is ready, which fails for now; which messages these were.
    fn attempt(&mut self) -> Vec<RecordId> {
        let now = self.now();
        let mut tried = Vec::new();
        loop {
            supply(&mut self.queues, now);
            let Some(job) = take(&mut self.queues, now) else {
                return tried;
            };
            put_off(&mut self.queues, &job, &deferred(), now);
            tried.push(job.record);
        }
    }

    fn expires_at_once(&mut self) -> bool {
        let now = self.now();
        supply(&mut self.queues, now);
        let job = take(&mut self.queues, now).expect("it is due");
        let settled = self.queues.settle(QUEUE, &job, &deferred(), now);
        let settled = settled.expect("in flight");
        if let Some(rest) = &settled.remaining {
            self.queues.written(QUEUE, &job, rest, now);
        }
        !settled.expired.is_empty()
    }
}

#[test]
fn the_next_attempt_comes_when_it_would_have_come() {
    for step in [400 * DAY as i64, -(DAY as i64), 3_600, -3_600] {
        let mut world = World::new(2);
        assert_eq!(world.attempt(), [0, 1].map(RecordId));
        world.wall += 20;
        world.step(step);
        assert!(world.attempt().is_empty(), "{step}");
        world.wall += 39;
        assert!(world.attempt().is_empty(), "{step}");
        world.wall += 2;
        assert_eq!(world.attempt(), [0, 1].map(RecordId), "{step}");
        world.step(-step);
        world.wall += 59;
        assert!(world.attempt().is_empty(), "{step}, and back");
        world.wall += 2;
        assert_eq!(world.attempt(), [0, 1].map(RecordId), "{step}, and back");
    }
}

#[test]
fn nothing_expires_because_the_clock_was_put_ahead() {
    let mut world = World::new(1);
    world.attempt();
    world.step(400 * DAY as i64);
    world.wall += 61;
    assert_eq!(world.queues.first_expired(QUEUE, world.now()), None);
    assert!(!world.expires_at_once());
    // Nobody is told of a delay either.
    world.wall += 61;
    let now = world.now();
    supply(&mut world.queues, now);
    let job = take(&mut world.queues, now).expect("it is due");
    let settled = put_off(&mut world.queues, &job, &deferred(), now);
    assert_eq!(settled.reports.len(), 0);
    let accepted = settled.remaining.expect("it goes on").head.accepted;
    assert_eq!(accepted, at(1_400 * DAY));
    // By its true age it expires.
    world.wall += 5 * DAY;
    assert_eq!(
        world.queues.first_expired(QUEUE, world.now()),
        Some(RecordId(0))
    );
    assert!(world.expires_at_once());
}

/// A gateway that is started with the clock ahead knows nothing of a step.
#[test]
fn what_a_start_finds_too_old_has_one_full_retry() {
    let mut world = World::new(0);
    world.queues.spare_until(world.now());
    let old = fresh(0, at(world.wall - 6 * DAY));
    assert!(
        world
            .queues
            .admit(QUEUE, RecordId(0), old, Some(BODY), world.now())
    );
    assert_eq!(world.queues.first_expired(QUEUE, world.now()), None);
    assert!(!world.expires_at_once());
    world.wall += 4 * 3_600;
    assert_eq!(
        world.queues.first_expired(QUEUE, world.now()),
        Some(RecordId(0))
    );
    assert!(world.expires_at_once());
}

#[test]
fn times_of_a_clock_that_was_ahead_are_bounded_on_admission() {
    let mut world = World::new(0);
    let ahead = at(world.wall + 400 * DAY);
    let envelope = Envelope {
        head: ScheduleHead {
            not_before: Some(ahead),
            attempts: 1,
            ..fresh(0, ahead).head
        },
        ..fresh(0, ahead)
    };
    assert!(
        world
            .queues
            .admit(QUEUE, RecordId(0), envelope, None, world.now())
    );
    assert_eq!(world.queues.oldest(), Some(world.now()));
    world.wall += 4 * 3_600 - 1;
    assert!(world.attempt().is_empty());
    world.wall += 2;
    // What is fetched still says that it waits for more than a year.
    let wanted = loop {
        match world.queues.poll(world.now()) {
            Some(Next::Fetch(wanted)) => break wanted,
            Some(_) => {}
            None => panic!("expected a block to be fetched; found none"),
        }
    };
    let late = Envelope {
        head: ScheduleHead {
            not_before: Some(ahead),
            attempts: 1,
            ..fresh(0, ahead).head
        },
        ..fresh(0, ahead)
    };
    assert_eq!(
        world
            .queues
            .supply(&wanted, vec![(RecordId(0), late, BODY)]),
        Supplied::Taken
    );
    let now = world.now();
    let job = take(&mut world.queues, now).expect("its time has come");
    let settled = put_off(&mut world.queues, &job, &deferred(), now);
    let rest = settled.remaining.expect("it goes on");
    assert_eq!(
        (rest.head.attempts, rest.head.not_before),
        (2, Some(now + Duration::from_secs(300)))
    );
}

/// Its age counted anew from each start, as long as the clock was not there.
#[test]
fn what_is_from_the_future_ages_from_when_that_was_seen_first() {
    let mut world = World::new(0);
    let begin = world.wall;
    let ahead = at(begin + 400 * DAY);
    let mut record = fresh(0, ahead);
    for day in 0..6 {
        // A start each day; the record is written anew when it is seen.
        world.wall = begin + day * DAY;
        assert_eq!(record.head.see(world.now()), day == 0);
        world.queues = queues(Policy::default());
        world.queues.spare_until(world.now());
        assert!((world.queues).admit(QUEUE, RecordId(0), record.clone(), None, world.now()));
        world.wall += 4 * 3_600;
        let expired = world.queues.first_expired(QUEUE, world.now());
        assert_eq!(expired, (day == 5).then_some(RecordId(0)), "day {day}");
    }
}

/// Which clock was wrong nobody knows who finds an acceptance in the future, so that no attempt decides it.
#[test]
fn an_attempt_by_a_clock_that_is_behind_does_not_make_mail_old() {
    let mut world = World::new(0);
    let begin = world.wall;
    let mut record = fresh(0, at(begin));
    // A start before the clock is set.
    world.wall = DAY;
    assert!(record.head.see(world.now()));
    let body = Some(BODY);
    assert!((world.queues).admit(QUEUE, RecordId(0), record.clone(), body, world.now()));
    let now = world.now();
    let job = take(&mut world.queues, now).expect("it is ready");
    let settled = put_off(&mut world.queues, &job, &deferred(), now);
    let rest = settled.remaining.expect("it goes on");
    assert_eq!(
        (rest.head.accepted, rest.head.seen),
        (record.head.accepted, Some(now))
    );
    // The next start has the right time.
    world.wall = begin + DAY;
    world.queues = queues(Policy::default());
    assert!(
        world
            .queues
            .admit(QUEUE, RecordId(0), rest, None, world.now())
    );
    assert_eq!(world.queues.oldest(), Some(at(begin)));
    assert_eq!(world.queues.first_expired(QUEUE, world.now()), None);
    // Put ahead while it runs, it is known by how much.
    let mut world = World::new(0);
    world.wall = DAY;
    assert!((world.queues).admit(QUEUE, RecordId(0), record, Some(BODY), world.now()));
    world.step(begin as i64);
    let now = world.now();
    let job = take(&mut world.queues, now).expect("it is ready");
    let settled = put_off(&mut world.queues, &job, &deferred(), now);
    let rest = settled.remaining.expect("it goes on");
    assert_eq!(
        (rest.head.accepted, rest.head.seen),
        (at(begin + DAY), None)
    );
}

#[test]
fn what_an_operator_holds_until_a_time_is_held_until_that_time() {
    let mut world = World::new(1);
    let order = Order {
        held_until: Some(at(world.wall + 7_200)),
        ..Order::none(Destination::domain("example.net".to_owned()))
    };
    world.queues.set_order(order, RecordId(1), world.now());
    world.step(3_600);
    world.wall += 3_599;
    assert!(world.attempt().is_empty());
    world.wall += 2;
    assert_eq!(world.attempt(), [RecordId(0)]);
}

#[test]
fn only_what_is_no_slewing_is_a_step() {
    let second = Duration::from_secs(1);
    assert_eq!(Step::between(at(100), at(101), second), None);
    assert_eq!(Step::between(at(100), at(130), second), None);
    assert_eq!(Step::between(at(100), at(72), second), None);
    let seconds = |after| Step::between(at(100), at(after), second).map(Step::seconds);
    assert_eq!((seconds(131), seconds(71)), (Some(30), Some(-30)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the clock does, the same messages are tried after the same true times.
    #[test]
    fn steps_change_no_wait(
        turns in proptest::collection::vec((1_u64..4_000, prop_oneof![Just(0_i64), -500_000_i64..500_000]), 1..40)
    ) {
        // The wheel rounds up to ticks, which begin elsewhere after a step: nothing is due at a whole second.
        let policy = Policy {
            retry: [300_500, 1_200_500, 3_600_500].map(Duration::from_millis).to_vec(),
            ..Policy::default()
        };
        let mut steady = World::with(policy.clone(), 3);
        let mut moved = World::with(policy, 3);
        for (passed, step) in turns {
            steady.wall += passed;
            moved.wall += passed;
            if step.unsigned_abs() >= 30 {
                moved.step(step);
            }
            prop_assert_eq!(steady.attempt(), moved.attempt());
        }
    }
}
