//! The schedule beside a model that keeps only what matters, over random operations.

use crate::envelope::{HoldCause, ScheduleHead};
use proptest::prelude::*;

use super::*;
use crate::order::FOREVER;

/// Queues in the model.
const NUMBERS: u32 = 3;

#[derive(Debug, Clone)]
enum Step {
    Admit {
        queue: QueueId,
        body: usize,
        later: Option<u64>,
        aside: bool,
        lifetime: Option<u64>,
    },
    Work {
        queue: QueueId,
    },
    Settle {
        nth: usize,
        outcome: u8,
    },
    /// What an attempt left comes into the record.
    Write {
        nth: usize,
    },
    GiveBack {
        nth: usize,
    },
    Reach {
        queue: QueueId,
    },
    Fail {
        queue: QueueId,
    },
    Claim {
        nth: usize,
    },
    /// An operator holds a message, for a time or until it is released.
    Hold {
        nth: usize,
        millis: Option<u64>,
    },
    Release {
        nth: usize,
    },
    /// A person lets a message out of the quarantine; the spool does so, or not.
    LetOut {
        nth: usize,
        done: bool,
    },
    /// Everything in memory is lost, and taken back from the spool.
    Restart,
    Wait {
        millis: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let queue = (0..NUMBERS).prop_map(QueueId);
    prop_oneof![
        4 => (queue.clone(), 0_usize..3_000, proptest::option::of(0_u64..200_000), proptest::bool::weighted(0.2),
            proptest::option::of(0_u64..1_000_000))
            .prop_map(|(queue, body, later, aside, lifetime)| Step::Admit { queue, body, later, aside, lifetime }),
        6 => queue.clone().prop_map(|queue| Step::Work { queue }),
        4 => (any::<usize>(), 0_u8..3).prop_map(|(nth, outcome)| Step::Settle { nth, outcome }),
        4 => any::<usize>().prop_map(|nth| Step::Write { nth }),
        1 => any::<usize>().prop_map(|nth| Step::GiveBack { nth }),
        1 => queue.clone().prop_map(|queue| Step::Reach { queue }),
        1 => queue.prop_map(|queue| Step::Fail { queue }),
        1 => any::<usize>().prop_map(|nth| Step::Claim { nth }),
        2 => (any::<usize>(), proptest::option::of(1_u64..200_000))
            .prop_map(|(nth, millis)| Step::Hold { nth, millis }),
        1 => any::<usize>().prop_map(|nth| Step::Release { nth }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(nth, done)| Step::LetOut { nth, done }),
        1 => Just(Step::Restart),
        2 => (0_u64..400_000).prop_map(|millis| Step::Wait { millis }),
    ]
}

struct World {
    queues: Queues,
    now: Timestamp,
    /// What the spool holds: queue, record, envelope, body.
    spool: Vec<(QueueId, RecordId, Envelope, Bytes)>,
    flying: Vec<(QueueId, Job)>,
    /// What attempts left, on the way into the records.
    settled: Vec<(QueueId, Job, Envelope)>,
    next: RecordId,
}

/// Queues that know their destinations and nothing else.
fn empty() -> Queues {
    let mut queues = Queues::new(Policy {
        head_memory_max: 12_000,
        connections_max: 4,
        connections_per_destination_max: 3,
        ..Policy::default()
    });
    for number in (0..NUMBERS).map(QueueId) {
        let destination = Destination::domain(format!("{number}.example"));
        queues.register(number, destination, at(0));
    }
    queues
}

impl World {
    fn new() -> Self {
        Self {
            queues: empty(),
            now: at(1_000_000),
            spool: Vec::new(),
            flying: Vec::new(),
            settled: Vec::new(),
            next: RecordId(0),
        }
    }

    /// Fetches what is wanted and counts connections; a worker that opened goes idle.
    fn poll(&mut self) {
        while let Some(next) = self.queues.poll(self.now) {
            let Next::Fetch(wanted) = next else { continue };
            let block: Vec<_> = self
                .spool
                .iter()
                .filter(|one| one.0 == wanted.queue && one.1 >= wanted.from)
                .take(wanted.records as usize)
                .map(|one| (one.1, one.2.clone(), one.3.clone()))
                .collect();
            assert_eq!(self.queues.supply(&wanted, block), Supplied::Taken);
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Admit {
                queue,
                body,
                later,
                aside,
                lifetime,
            } => {
                let after = |millis| self.now + std::time::Duration::from_millis(millis);
                let head = ScheduleHead {
                    not_before: later.map(after),
                    expires: lifetime.map(after),
                    held_until: aside.then_some(FOREVER),
                    held_for: match aside {
                        true => HoldCause::Quarantine,
                        false => HoldCause::Operator,
                    },
                    ..fresh(self.next.0, self.now).head
                };
                self.admit(queue, body, head);
            }
            Step::Work { queue } => {
                self.poll();
                let job = self.queues.take(queue, true, self.now);
                if let Some(job) = &job {
                    assert!(!self.is_held(queue, job.record), "it is not let out");
                }
                self.flying.extend(job.map(|job| (queue, job)));
            }
            Step::Settle { nth, outcome } if !self.flying.is_empty() => {
                let (queue, job) = self.flying.swap_remove(nth % self.flying.len());
                self.settle(queue, &job, outcome);
                self.queues.worker_ended(queue, false);
            }
            Step::Write { nth } if !self.settled.is_empty() => {
                self.write(nth % self.settled.len());
            }
            Step::GiveBack { nth } if !self.flying.is_empty() => {
                let (queue, job) = self.flying.swap_remove(nth % self.flying.len());
                self.queues.give_back(queue, &job);
                // Only what a worker took is given back, and that was not held.
                self.held_until(queue, job.record, None);
                self.queues.worker_ended(queue, false);
            }
            Step::Reach { queue } => self.queues.destination_reached(queue),
            Step::Fail { queue } => self.queues.destination_failed(queue, "refused", self.now),
            Step::Claim { nth } if !self.spool.is_empty() => {
                let (queue, record, envelope, body) = self.spool[nth % self.spool.len()].clone();
                let flying = self.is_flying(queue, record) || envelope.head.is_quarantined();
                let job = self.queues.claim(queue, record, envelope, body);
                assert_eq!(job.is_some(), !flying);
                self.flying.extend(job.map(|job| (queue, job)));
            }
            Step::Hold { nth, millis } if !self.spool.is_empty() => self.hold(nth, millis),
            Step::Release { nth } if !self.spool.is_empty() => self.release(nth),
            Step::LetOut { nth, done } if !self.spool.is_empty() => {
                self.let_out(nth % self.spool.len(), done);
            }
            Step::Restart => self.restart(),
            Step::Wait { millis } => self.now = self.now + std::time::Duration::from_millis(millis),
            _ => {}
        }
    }

    fn place(&self, queue: QueueId, record: RecordId) -> usize {
        let is = |one: &(QueueId, RecordId, Envelope, Bytes)| (one.0, one.1) == (queue, record);
        self.spool.iter().position(is).expect("the spool has it")
    }

    fn held_until(&mut self, queue: QueueId, record: RecordId, until: Option<Timestamp>) {
        let place = self.place(queue, record);
        self.spool[place].2.head.held_until = until;
    }

    fn is_held(&self, queue: QueueId, record: RecordId) -> bool {
        let held = self.spool[self.place(queue, record)].2.head.held_until;
        held.is_some_and(|until| until > self.now)
    }

    fn is_flying(&self, queue: QueueId, record: RecordId) -> bool {
        let flying = self.flying.iter().map(|(queue, job)| (*queue, job.record));
        let settled = self.settled.iter();
        let settled = settled.map(|(queue, job, _)| (*queue, job.record));
        flying.chain(settled).any(|one| one == (queue, record))
    }

    fn hold(&mut self, nth: usize, millis: Option<u64>) {
        let (queue, record, envelope, _) = &self.spool[nth % self.spool.len()];
        let (queue, record, trace) = (*queue, *record, envelope.head.trace);
        let span = millis.map(std::time::Duration::from_millis);
        let until = span.map_or(FOREVER, |span| self.now + span);
        let aside = envelope.head.is_quarantined();
        let held = self.queues.hold_message(queue, record, trace, until);
        assert_eq!(held, !self.is_flying(queue, record) && !aside);
        if held {
            self.held_until(queue, record, Some(until));
        }
    }

    fn release(&mut self, nth: usize) {
        let (queue, record, envelope, _) = &self.spool[nth % self.spool.len()];
        let (queue, record, trace) = (*queue, *record, envelope.head.trace);
        let aside = envelope.head.is_quarantined();
        let was = self.is_held(queue, record) && !self.is_flying(queue, record) && !aside;
        let released = self.queues.release_message(queue, record, trace, self.now);
        // The end of a hold is seen at the next look at the clock only.
        assert!(released || !was);
        if released {
            self.held_until(queue, record, None);
        }
    }

    fn let_out(&mut self, place: usize, done: bool) {
        let (queue, record, mut envelope, body) = self.spool[place].clone();
        let trace = envelope.head.trace;
        let begun = self.queues.begin_release(queue, record, trace);
        assert_eq!(begun, envelope.head.is_quarantined());
        if !begun {
            return;
        }
        if !done {
            return self.queues.take_back(queue, record, trace);
        }
        let new = self.next;
        self.next = new.next();
        envelope.head.held_until = None;
        envelope.head.held_for = HoldCause::Operator;
        envelope.head.accepted = self.now;
        self.spool.remove(place);
        self.spool.push((queue, new, envelope.clone(), body));
        self.queues
            .released(queue, (record, new), envelope, None, self.now);
    }

    fn restart(&mut self) {
        self.queues = empty();
        self.flying.clear();
        self.settled.clear();
        for (queue, record, envelope, _) in &self.spool {
            let envelope = envelope.clone();
            assert!(self.queues.admit(*queue, *record, envelope, None, self.now));
        }
    }

    fn admit(&mut self, queue: QueueId, body: usize, head: ScheduleHead) {
        let record = self.next;
        self.next = record.next();
        let size = u32::try_from(body).expect("small");
        let envelope = Envelope {
            head: ScheduleHead { size, ..head },
            ..fresh(record.0, self.now)
        };
        let body = Bytes::from(vec![b'x'; body]);
        self.spool
            .push((queue, record, envelope.clone(), body.clone()));
        assert!(
            self.queues
                .admit(queue, record, envelope, Some(body), self.now)
        );
    }

    fn settle(&mut self, queue: QueueId, job: &Job, outcome: u8) {
        let disposition = match outcome {
            0 => Disposition::Delivered,
            1 => Disposition::Failed,
            _ => Disposition::Deferred,
        };
        let attempt = attempt(disposition, job.envelope.mail.recipients.len());
        let settled = self
            .queues
            .settle(queue, job, &attempt, self.now)
            .expect("in flight");
        let place = self.place(queue, job.record);
        match settled.remaining {
            Some(rest) => self.settled.push((queue, job.clone(), rest)),
            None => drop(self.spool.remove(place)),
        }
    }

    fn write(&mut self, nth: usize) {
        let (queue, job, rest) = self.settled.swap_remove(nth);
        self.queues.written(queue, &job, &rest, self.now);
        let place = self.place(queue, job.record);
        self.spool[place].2 = rest;
    }

    /// Every counter is what counting gives.
    fn check(&self) {
        let Self { queues, .. } = self;
        assert_eq!(queues.messages(), self.spool.len());
        assert_eq!(queues.totals().messages, self.spool.len());
        let filled: BTreeSet<_> = self.spool.iter().map(|one| one.0).collect();
        assert_eq!(queues.totals().destinations, filled.len());
        let octets: u64 = self
            .spool
            .iter()
            .map(|one| u64::from(one.2.head.size))
            .sum();
        assert_eq!(queues.totals().octets, octets);
        let in_flight = self.flying.len() + self.settled.len();
        assert_eq!(queues.totals().in_flight, in_flight);
        let (mut deferred, mut held_in_all) = (0, 0);
        for number in (0..NUMBERS).map(QueueId) {
            let queue = queues.queues.get(number).expect("registered");
            let listed: Vec<_> = queues.list(number, None, usize::MAX).collect();
            let held = self.spool.iter().filter(|one| one.0 == number);
            let (aside, held): (Vec<_>, Vec<_>) = held.partition(|one| one.2.head.is_quarantined());
            let held = held.into_iter();
            let held: BTreeSet<_> = held.map(|one| one.1).collect();
            assert_eq!(
                listed.iter().map(|one| one.record).collect::<BTreeSet<_>>(),
                held
            );
            assert!(
                listed.is_sorted_by_key(|one| one.record),
                "acceptance order"
            );
            let count = |standing| listed.iter().filter(|one| one.standing == standing).count();
            assert_eq!(queue.quarantined, aside.len());
            assert_eq!(queue.messages, listed.len() + aside.len());
            assert_eq!(queue.ready, count(Standing::Ready));
            assert_eq!(queue.in_flight, count(Standing::InFlight));
            assert_eq!(queue.deferred, count(Standing::Deferred));
            assert_eq!(queue.held, count(Standing::Held));
            for one in &listed {
                let wanted = self.spool[self.place(number, one.record)].2.head.held_until;
                assert!(one.held_until.is_none_or(|until| wanted == Some(until)));
                let busy = one.standing == Standing::InFlight;
                let held = one.standing == Standing::Held;
                assert!(held || busy || !self.is_held(number, one.record));
            }
            assert_eq!(queue.ready_at_hand, self.at_hand(number, &listed));
            assert_eq!(queue.is_active(), queues.active.contains(&number));
            deferred += queue.deferred;
            held_in_all += queue.held;
        }
        let aside = self.spool.iter().filter(|one| one.2.head.is_quarantined());
        let aside = aside.count();
        assert_eq!(queues.totals().quarantined, aside);
        assert_eq!(queues.quarantined().count(), aside);
        assert_eq!(queues.totals().deferred, deferred);
        assert_eq!(queues.totals().held, held_in_all);
        let first = (0..NUMBERS).filter_map(|number| queues.list(QueueId(number), None, 1).next());
        assert_eq!(queues.oldest(), first.map(|one| one.accepted).min());
        assert_eq!(queues.held.len(), held_in_all);
        let timed = |number| {
            let listed = queues.list(number, None, usize::MAX);
            let ends = listed.filter_map(|one| one.held_until);
            ends.filter(|until| *until != FOREVER).count()
        };
        let timed: usize = (0..NUMBERS).map(QueueId).map(timed).sum();
        assert_eq!(queues.wheel.len(), deferred + timed);
        assert!(queues.totals().connections <= 4);
        let held: usize = (0..NUMBERS)
            .filter_map(|number| queues.queues.get(QueueId(number)))
            .map(|queue| queue.head_octets)
            .sum();
        assert_eq!(queues.head_octets(), held);
    }

    /// What has an end of its own and may expire is in the set of ends, and found when the end has come.
    fn check_ends(&self, number: QueueId) {
        let Self { queues, .. } = self;
        let listed: Vec<_> = queues.list(number, None, usize::MAX).collect();
        let own = |record| self.spool[self.place(number, record)].2.head.expires;
        let dated = self.spool.iter().filter(|one| one.0 == number);
        let dated = dated.filter(|one| one.2.head.expires.is_some()).count();
        let queue = queues.queues.get(number).expect("registered");
        assert_eq!(queue.dated as usize, dated);
        let free = listed.iter().filter(|one| one.standing != Standing::Held);
        let free: BTreeSet<_> = free
            .filter(|one| own(one.record).is_some())
            .map(|one| one.record)
            .collect();
        let noted = queues.ends.slots().map(|slot| &queues.entries[slot]);
        let noted: BTreeSet<_> = noted
            .filter(|entry| entry.queue == number)
            .map(|entry| entry.record)
            .collect();
        assert_eq!(noted, free);
        let waits =
            |one: &&MessageSummary| matches!(one.standing, Standing::Ready | Standing::Deferred);
        let over = |one: &&MessageSummary| own(one.record).is_some_and(|end| end <= self.now);
        let expected: Vec<_> = listed.iter().filter(waits).filter(over).copied().collect();
        assert_eq!(queues.overdue(number, self.now, usize::MAX), expected);
        for one in &listed {
            let is_overdue = queues.is_overdue(number, one.record, one.trace, self.now);
            assert_eq!(is_overdue, expected.contains(one));
        }
        let before = number.0.checked_sub(1).map(QueueId);
        let is_next = queues.next_overdue(before, self.now) == Some(number);
        assert_eq!(is_next, !expected.is_empty());
    }

    /// How many of these messages are ready and in memory.
    fn at_hand(&self, number: QueueId, listed: &[MessageSummary]) -> usize {
        let Self { queues, .. } = self;
        let slots = listed.iter().map(|one| {
            let found = queues.entries.find_record(one.trace, number, one.record);
            found.expect("listed")
        });
        let at_hand = slots.filter(|slot| {
            let entry = &queues.entries[*slot];
            assert_eq!(entry.at_hand, queues.heads.get(*slot).is_some());
            entry.at_hand && entry.standing == Standing::Ready
        });
        at_hand.count()
    }

    /// With every destination answering and nothing held, everything leaves.
    fn drain(&mut self) {
        while !self.settled.is_empty() {
            self.write(0);
        }
        for nth in 0..self.spool.len() {
            self.release(nth);
        }
        while let Some(place) = self
            .spool
            .iter()
            .position(|one| one.2.head.is_quarantined())
        {
            self.let_out(place, true);
        }
        for round in 0.. {
            assert!(round < 10_000, "{} messages stay", self.spool.len());
            for number in 0..NUMBERS {
                self.queues.destination_reached(QueueId(number));
            }
            self.poll();
            for number in 0..NUMBERS {
                while let Some(job) = self.queues.take(QueueId(number), true, self.now) {
                    self.flying.push((QueueId(number), job));
                    self.poll();
                }
            }
            for (queue, job) in std::mem::take(&mut self.flying) {
                self.settle(queue, &job, 0);
                self.queues.worker_ended(queue, false);
            }
            if self.spool.is_empty() {
                return;
            }
            self.poll();
            if let Some(wake) = self.queues.wake_at() {
                self.now = std::cmp::max(self.now, wake);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counters_and_lists_stay_true_and_nothing_stays_behind(
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
            world.check();
            for number in (0..NUMBERS).map(QueueId) {
                world.check_ends(number);
            }
        }
        world.drain();
        world.check();
        prop_assert_eq!(world.queues.head_octets(), 0);
        prop_assert_eq!(world.queues.summaries(None, usize::MAX), vec![]);
    }
}
