//! The two sides alone, then many owners with clocks that run unequally and a register that loses
//! answers and carries out late.

use super::*;

const TERMS: LeaseTerms = LeaseTerms {
    lease: Duration::from_secs(10),
    skew: Duration::from_secs(2),
};

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const EPOCH: u64 = 3;

fn value(holder: u64, counter: u64) -> Vec<u8> {
    let epoch = EPOCH;
    let record = LeaseRecord {
        adopted: false,
        epoch,
        holder,
        counter,
    };
    record.encode()
}

fn swap(expected: Option<u64>, holder: u64, counter: u64) -> Option<LeaseRequest> {
    let value = value(holder, counter);
    Some(LeaseRequest::Swap { expected, value })
}

/// A holder that got its lease by a swap sent at 0.
fn holding() -> LeaseHolder {
    let mut holder = LeaseHolder::new(7, EPOCH, TERMS, None, at(0));
    assert_eq!(holder.poll(at(0)), swap(None, 7, 1));
    holder.answered(Answer::Done(1), at(900));
    holder
}

#[test]
fn a_record_is_as_documented() {
    let record = LeaseRecord {
        adopted: false,
        epoch: 9,
        holder: 0x0102,
        counter: 3,
    };
    let octets = b"\x01\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
    assert_eq!(record.encode(), octets);
    assert_eq!(LeaseRecord::decode(octets), Some(record));
    let mut later = octets.to_vec();
    later[0] = 2;
    let adopted = LeaseRecord {
        adopted: true,
        ..record
    };
    assert_eq!(adopted.encode()[4], 1);
    assert_eq!(LeaseRecord::decode(&adopted.encode()), Some(adopted));
    let mut other = octets.to_vec();
    other[4] = 2;
    for other in [&octets[..31], &later, &other, b""] {
        assert_eq!(LeaseRecord::decode(other), None);
    }
}

#[test]
fn a_lease_counts_from_the_sending_of_its_renewal() {
    let mut holder = holding();
    assert!(holder.is_held(at(9_999)));
    assert!(!holder.is_held(at(10_000)));
    assert_eq!(holder.deadline(), Some(TERMS.renewal()));
    assert_eq!(holder.poll(at(3_000)), None);
    assert_eq!(holder.poll(at(4_000)), swap(Some(1), 7, 2));
    assert_eq!(holder.poll(at(4_000)), None);
    assert_eq!(holder.deadline(), Some(at(10_000)));
    holder.answered(Answer::Done(5), at(9_000));
    assert!(holder.is_held(at(13_999)) && !holder.is_held(at(14_000)));
}

#[test]
fn without_an_answer_the_lease_ends_unless_all_members_confirm() {
    let mut holder = holding();
    let mut now = at(4_000);
    assert!(holder.poll(now).is_some());
    holder.answered(Answer::Failed, now);
    assert_eq!(holder.poll(now), None);
    while holder.is_held(now) {
        now = holder.deadline().unwrap();
        if let Some(request) = holder.poll(now) {
            // It must first know what is there.
            assert_eq!(request, LeaseRequest::Read);
            holder.answered(Answer::Failed, now);
        }
    }
    assert_eq!(now, at(10_000));
    assert!(!holder.is_over());
    holder.confirmed_by_members(at(9_000));
    assert!(holder.is_held(at(18_999)) && !holder.is_held(at(19_000)));
    // An older confirmation takes nothing away.
    holder.confirmed_by_members(at(1_000));
    assert!(holder.is_held(at(18_999)));
    // Members alone never give one.
    let mut fresh = LeaseHolder::new(8, EPOCH, TERMS, None, at(0));
    fresh.confirmed_by_members(at(0));
    assert!(!fresh.is_held(at(0)));
}

#[test]
fn a_lost_answer_is_made_up_for_by_another_swap() {
    // The renewal happened; then it did not.
    for (there, counter) in [((4, value(7, 2)), 3), ((1, value(7, 1)), 3)] {
        let mut holder = holding();
        assert_eq!(holder.poll(at(4_000)), swap(Some(1), 7, 2));
        holder.answered(Answer::Failed, at(6_000));
        assert_eq!(holder.poll(at(7_000)), Some(LeaseRequest::Read));
        let version = there.0;
        holder.answered(Answer::There(Some(there)), at(7_100));
        // A read proves nothing about the time before.
        assert!(!holder.is_held(at(10_000)));
        assert_eq!(holder.poll(at(7_100)), swap(Some(version), 7, counter));
        holder.answered(Answer::Done(9), at(7_200));
        assert!(holder.is_held(at(17_099)));
    }
}

#[test]
fn another_holder_ends_it_at_once() {
    for other in [value(8, 1), value(NOBODY, 4), b"what is this".to_vec()] {
        let mut holder = holding();
        assert!(holder.poll(at(4_000)).is_some());
        holder.answered(Answer::There(Some((2, other))), at(4_100));
        assert!(holder.is_over() && !holder.is_held(at(4_100)));
        holder.confirmed_by_members(at(4_100));
        assert!(!holder.is_held(at(4_100)));
        assert_eq!((holder.poll(at(9_000)), holder.deadline()), (None, None));
    }
}

#[test]
fn a_record_that_vanished_is_not_begun_anew() {
    let mut holder = holding();
    assert!(holder.poll(at(4_000)).is_some());
    holder.answered(Answer::There(None), at(4_100));
    assert_eq!(holder.poll(at(5_000)), Some(LeaseRequest::Read));
    holder.answered(Answer::There(None), at(5_100));
    assert_eq!(holder.poll(at(6_000)), Some(LeaseRequest::Read));
    assert!(holder.is_held(at(9_999)) && !holder.is_held(at(10_000)));
}

#[test]
fn what_is_given_back_is_free_at_once() {
    // With nothing on the way, and with a renewal on the way.
    for renewing in [false, true] {
        let mut holder = holding();
        let renewal = renewing.then(|| holder.poll(at(4_000)));
        holder.give_back(at(4_100));
        assert!(!holder.is_held(at(4_100)));
        let mut expected = 1;
        if renewal.is_some() {
            assert_eq!(holder.poll(at(4_100)), None);
            holder.answered(Answer::Done(3), at(4_200));
            expected = 3;
        }
        assert!(!holder.is_held(at(4_200)));
        let Some(LeaseRequest::Swap {
            expected: on,
            value,
        }) = holder.poll(at(4_200))
        else {
            panic!("nothing is given back");
        };
        assert_eq!(on, Some(expected));
        holder.answered(Answer::Done(6), at(4_300));
        assert!(holder.is_over() && !holder.is_held(at(4_300)));
        let mut watcher = LeaseWatcher::new(EPOCH + 1, TERMS, at(0));
        assert_eq!(watcher.poll(at(0)), Some(LeaseRequest::Read));
        assert_eq!(watcher.watched(at(0)), Watched::Held);
        watcher.answered(Answer::There(Some((6, value))), at(0));
        let expected = Some(6);
        assert_eq!(watcher.watched(at(0)), Watched::Free { expected });
    }
}

#[test]
fn a_successor_waits_from_the_last_change_it_saw() {
    let mut watcher = LeaseWatcher::new(EPOCH + 1, TERMS, at(0));
    watcher.fenced(at(100));
    let see = |watcher: &mut LeaseWatcher, version, now| {
        assert_eq!(watcher.poll(now), Some(LeaseRequest::Read));
        watcher.answered(Answer::There(Some((version, value(7, version)))), now);
    };
    see(&mut watcher, 1, at(1_000));
    see(&mut watcher, 2, at(5_000));
    see(&mut watcher, 2, at(9_000));
    assert_eq!(watcher.poll(at(13_000)), Some(LeaseRequest::Read));
    watcher.answered(Answer::Failed, at(13_000));
    assert_eq!(watcher.watched(at(16_999)), Watched::Held);
    let expected = Some(2);
    assert_eq!(watcher.watched(at(17_000)), Watched::Free { expected });
    see(&mut watcher, 3, at(17_000));
    assert_eq!(watcher.watched(at(17_000)), Watched::Held);
}

#[test]
fn a_successor_waits_from_its_fence() {
    let mut watcher = LeaseWatcher::new(EPOCH + 1, TERMS, at(0));
    assert!(watcher.poll(at(0)).is_some());
    watcher.answered(Answer::There(Some((1, value(7, 1)))), at(0));
    // The holder may live on its members' answers for ever.
    assert_eq!(watcher.watched(at(1_000_000)), Watched::Held);
    watcher.fenced(at(1_000_000));
    // A second member's answer changes nothing.
    watcher.fenced(at(1_005_000));
    assert_eq!(watcher.watched(at(1_011_999)), Watched::Held);
    let expected = Some(1);
    assert_eq!(watcher.watched(at(1_012_000)), Watched::Free { expected });
}

#[test]
fn a_lease_that_never_was_is_free_and_can_be_taken_once() {
    let mut watcher = LeaseWatcher::new(EPOCH + 1, TERMS, at(0));
    assert!(watcher.poll(at(0)).is_some());
    watcher.answered(Answer::There(None), at(0));
    assert_eq!(watcher.watched(at(0)), Watched::Free { expected: None });
    let mut holder = LeaseHolder::new(7, EPOCH, TERMS, None, at(0));
    assert!(holder.poll(at(0)).is_some());
    holder.answered(Answer::Failed, at(0));
    assert!(!holder.is_held(at(0)));
    // Not done after all: once more.
    assert_eq!(holder.poll(at(1_000)), Some(LeaseRequest::Read));
    holder.answered(Answer::There(None), at(1_000));
    assert_eq!(holder.poll(at(2_000)), swap(None, 7, 2));
    holder.answered(Answer::There(Some((1, value(8, 1)))), at(2_000));
    assert!(holder.is_over());
}

/// An owner that was overtaken without noticing: its fence did not reach who followed.
#[test]
fn the_lease_of_a_later_epoch_is_never_taken() {
    for (there, watched) in [
        (value(8, 1), Watched::Held),
        (
            LeaseRecord {
                adopted: false,
                epoch: EPOCH + 2,
                holder: 8,
                counter: 1,
            }
            .encode(),
            Watched::Lost,
        ),
        (
            LeaseRecord {
                adopted: false,
                epoch: EPOCH + 2,
                holder: NOBODY,
                counter: 1,
            }
            .encode(),
            Watched::Lost,
        ),
        (b"of a later version".to_vec(), Watched::Lost),
    ] {
        let mut watcher = LeaseWatcher::new(EPOCH + 1, TERMS, at(0));
        watcher.fenced(at(0));
        assert!(watcher.poll(at(0)).is_some());
        watcher.answered(Answer::There(Some((1, there))), at(0));
        assert_eq!(watcher.watched(at(11_999)), watched);
        let taken = matches!(watcher.watched(at(12_000)), Watched::Free { .. });
        assert_eq!(taken, watched == Watched::Held);
    }
}

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// When the register carries out what it does not hear.
const NEVER: u64 = u64::MAX;

enum Role {
    Watching(LeaseWatcher),
    Holding(LeaseHolder, LeaseWatcher),
}

/// An owner with a separate clock.
struct Owner {
    role: Role,
    life: u64,
    epoch: u64,
    offset: u64,
    /// How many of its milliseconds pass in 1,000 of ours.
    rate: u64,
    /// Until then, in our milliseconds, it does nothing.
    paused: u64,
    /// Until then the register does not hear it.
    cut: u64,
    /// When its fence reaches a member.
    fence: u64,
    /// What it asked: when the register carries it out, whether the answer is lost, when it comes.
    asked: Option<(LeaseRequest, u64, bool, u64)>,
    answer: Option<LeaseAnswer>,
}

impl Owner {
    fn new(life: u64, world: &mut World, random: &mut Random, now: u64) -> Self {
        // 8 % each way: together within the skew of 20 %.
        let (offset, rate) = (
            random.below(1 << 40),
            [920, 1_000, 1_080][random.below(3) as usize],
        );
        let watcher = LeaseWatcher::new(0, TERMS, at(0));
        let mut owner = Self {
            role: Role::Watching(watcher),
            life,
            epoch: 0,
            offset,
            rate,
            paused: 0,
            cut: 0,
            fence: 0,
            asked: None,
            answer: None,
        };
        owner.take_over(world, random, now);
        owner
    }

    /// Raises the epoch in the register; a member hears of it later.
    fn take_over(&mut self, world: &mut World, random: &mut Random, now: u64) {
        world.newest += 1;
        self.epoch = world.newest;
        self.fence = now + random.below(20_000);
        self.role = Role::Watching(LeaseWatcher::new(self.epoch, TERMS, self.clock(now)));
        if let Some((request, due, ..)) = self.asked.take() {
            world.late.push((due, request));
        }
        self.answer = None;
    }

    fn clock(&self, now: u64) -> Duration {
        Duration::from_micros(self.offset * 1_000 + now * self.rate)
    }

    fn is_held(&self, now: u64) -> bool {
        match &self.role {
            Role::Holding(holder, _) => holder.is_held(self.clock(now)),
            Role::Watching(_) => false,
        }
    }

    fn answered(&mut self, answer: LeaseAnswer, now: u64) {
        let clock = self.clock(now);
        match &mut self.role {
            Role::Watching(watcher) => watcher.answered(answer, clock),
            Role::Holding(holder, watcher) => {
                holder.answered(answer, clock);
                if holder.is_over() {
                    self.role = Role::Watching(watcher.clone());
                }
            }
        }
    }

    fn step(&mut self, random: &mut Random, now: u64) {
        let clock = self.clock(now);
        if let Role::Watching(watcher) = &mut self.role
            && let (Watched::Free { expected }, None) = (watcher.watched(clock), &self.asked)
        {
            let holder = LeaseHolder::new(self.life, self.epoch, TERMS, expected, clock);
            self.role = Role::Holding(holder, watcher.clone());
        }
        if self.asked.is_some() {
            return;
        }
        let request = match &mut self.role {
            Role::Watching(watcher) => watcher.poll(clock),
            Role::Holding(holder, _) => holder.poll(clock),
        };
        if let Some(request) = request {
            let cut = now < self.cut;
            let carried_out = if cut { NEVER } else { now + random.below(800) };
            let lost = cut || random.percent(15);
            // A lost answer is given up perhaps before the register carries it out.
            let answered = if lost {
                now + random.below(3_000)
            } else {
                carried_out + random.below(800)
            };
            self.asked = Some((request, carried_out, lost, answered));
        }
    }
}

/// The register and what members know of epochs.
#[derive(Default)]
struct World {
    value: Option<(u64, Vec<u8>)>,
    /// Requests that were given up and are carried out all the same.
    late: Vec<(u64, LeaseRequest)>,
    newest: u64,
    /// The newest that a member has heard of: it answers no owner of an older one.
    fenced: u64,
}

impl World {
    fn carry_out(&mut self, request: &LeaseRequest) -> LeaseAnswer {
        let LeaseRequest::Swap { expected, value } = request else {
            return Answer::There(self.value.clone());
        };
        let there = self.value.as_ref().map(|(version, _)| *version);
        if there != *expected {
            return Answer::There(self.value.clone());
        }
        let version = there.unwrap_or(0) + 1;
        self.value = Some((version, value.clone()));
        Answer::Done(version)
    }

    /// One millisecond of one owner.
    fn owner(&mut self, owner: &mut Owner, random: &mut Random, now: u64) {
        if let Some((request, carried_out, lost, answered)) = owner.asked.take() {
            if carried_out == now {
                let answer = self.carry_out(&request);
                owner.answer = (!lost).then_some(answer);
            }
            // Even a paused owner's answer arrives, but is looked at later.
            if now >= answered.max(owner.paused) {
                if carried_out > now {
                    self.late.push((carried_out, request));
                }
                let answer = owner.answer.take().unwrap_or(Answer::Failed);
                owner.answered(answer, now);
            } else {
                owner.asked = Some((request, carried_out, lost, answered));
            }
        }
        if now < owner.paused {
            return;
        }
        let clock = owner.clock(now);
        if now >= owner.fence && owner.epoch > self.fenced {
            self.fenced = owner.epoch;
            let (Role::Watching(watcher) | Role::Holding(_, watcher)) = &mut owner.role;
            watcher.fenced(clock);
        }
        let overtaken = owner.epoch < self.fenced;
        match &mut owner.role {
            Role::Watching(_) if overtaken && random.below(20_000) == 0 => {
                owner.take_over(self, random, now);
            }
            // Notices at last, and asks for the group again.
            Role::Holding(..) if overtaken && random.below(8_000) == 0 => {
                owner.take_over(self, random, now);
            }
            Role::Holding(holder, _) if !overtaken && random.percent(1) => {
                holder.confirmed_by_members(clock);
            }
            Role::Holding(holder, _) if random.below(40_000) == 0 => holder.give_back(clock),
            _ => {}
        }
        owner.step(random, now);
    }
}

/// How often the lease changed hands in 4 minutes.
fn simulate(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut lives = 3;
    let mut world = World::default();
    let mut owners: Vec<Owner> = (1..=lives)
        .map(|life| Owner::new(life, &mut world, &mut random, 0))
        .collect();
    let (mut last, mut hands) = (0, 0);
    for now in 0..240_000 {
        for (_, request) in world
            .late
            .extract_if(.., |(due, _)| *due <= now)
            .collect::<Vec<_>>()
        {
            world.carry_out(&request);
        }
        for owner in &mut owners {
            match random.below(30_000) {
                // Killed; whoever comes after has a new life and knows nothing.
                0 => {
                    lives += 1;
                    if let Some((request, due, ..)) = owner.asked.take() {
                        world.late.push((due, request));
                    }
                    *owner = Owner::new(lives, &mut world, &mut random, now);
                }
                1 => owner.paused = now + random.below(25_000),
                2 => owner.cut = now + random.below(40_000),
                _ => {}
            }
            world.owner(owner, &mut random, now);
        }
        let holders: Vec<u64> = owners
            .iter()
            .filter(|owner| owner.is_held(now))
            .map(|owner| owner.life)
            .collect();
        assert!(
            holders.len() <= 1,
            "seed {seed}, {now} ms: {holders:?} at once"
        );
        if let Some(holder) = holders.first().filter(|holder| **holder != last) {
            (last, hands) = (*holder, hands + 1);
        }
    }
    hands
}

#[test]
fn two_never_hold_it_and_somebody_always_does_again() {
    let hands: u64 = (0..24).map(simulate).sum();
    // Every owner dies or stands still every 15 s; a successor waits about 12 s.
    assert!(hands > 24 * 3, "{hands}");
}
