//! The due times of deferred messages: a hierarchical timing wheel through the entries (Varghese
//! and Lauck, 1987). A deferral allocates no memory and takes the same few steps with ten messages
//! as with a million.

use std::time::Duration;

use vere_units::Timestamp;

use super::entries::{Chain, Entries, List, Slot};

/// Due times are rounded up to this unit.
const TICK_MS: u64 = 32;
/// Lists of one level, as bits of a tick number.
const BITS: u32 = 6;
const LISTS: usize = 1 << BITS;
/// With seven levels ticks of 32 ms reach 4,000 years far.
const LEVELS: usize = 7;
const TICKS_MAX: u64 = (1 << (BITS * LEVELS as u32)) - 1;

/// The lists of all times.
#[derive(Debug)]
pub(super) struct Wheel {
    lists: Vec<List>,
    /// Bit sets of the lists with entries, per level.
    filled: [u64; LEVELS],
    /// Entries before this tick have all been returned.
    current: u64,
    /// The list that `current` has reached and whose entries are moving to lower levels.
    moving: Option<usize>,
    len: usize,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            lists: vec![List::default(); LEVELS * LISTS],
            filled: [0; LEVELS],
            current: 0,
            moving: None,
            len: 0,
        }
    }
}

impl Wheel {
    /// An empty wheel for times from `now` on.
    pub(super) fn at(now: Timestamp) -> Self {
        let current = (now.as_millis() / TICK_MS).min(TICKS_MAX);
        Self {
            current,
            ..Self::default()
        }
    }

    /// Removes all entries, due or not.
    pub(super) fn drain(&mut self, entries: &mut Entries) -> Vec<Slot> {
        let mut all = Vec::with_capacity(self.len);
        for list in &mut self.lists {
            all.extend(std::iter::from_fn(|| entries.pop_front(list, Chain::Place)));
        }
        *self = Self::default();
        all
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Inserts an entry, which the wheel returns once its `due` time is reached.
    pub(super) fn insert(&mut self, entries: &mut Entries, slot: Slot) {
        let list = self.list_of(entries[slot].due);
        self.filled[list / LISTS] |= 1 << (list % LISTS);
        entries[slot].list = list as u16;
        entries.push_back(&mut self.lists[list], Chain::Place, slot);
        self.len += 1;
    }

    /// Removes an entry before its time.
    pub(super) fn remove(&mut self, entries: &mut Entries, slot: Slot) {
        let list = usize::from(entries[slot].list);
        entries.unlink(&mut self.lists[list], Chain::Place, slot);
        self.note_removed(list);
    }

    /// The list of a time, on the level of the highest digit in which the time differs from now.
    fn list_of(&self, due: Timestamp) -> usize {
        let tick = due.as_millis().div_ceil(TICK_MS);
        let tick = tick.clamp(self.current, TICKS_MAX);
        let differs = (tick ^ self.current) | (LISTS as u64 - 1);
        let level = (63 - differs.leading_zeros()) / BITS;
        level as usize * LISTS + (tick >> (BITS * level)) as usize % LISTS
    }

    fn note_removed(&mut self, list: usize) {
        self.len -= 1;
        if self.lists[list].is_empty() {
            self.filled[list / LISTS] &= !(1 << (list % LISTS));
        }
    }

    /// The first list with entries, and the tick at which the list is due.
    fn first(&self) -> Option<(u64, usize)> {
        if let Some(list) = self.moving {
            return Some((self.current, list));
        }
        let level = self.filled.iter().position(|filled| *filled != 0)?;
        let list = self.filled[level].trailing_zeros();
        let shift = BITS * level as u32;
        let base = self.current >> (shift + BITS) << (shift + BITS);
        let tick = base | (u64::from(list) << shift);
        Some((tick, level * LISTS + list as usize))
    }

    /// Removes an entry that is due. Returns `None` if no entry is due, or `steps` are used up;
    /// every moved entry takes one step. With `steps` used up, [`wake_at`](Self::wake_at) is not
    /// after `now`.
    pub(super) fn pop_due(
        &mut self,
        entries: &mut Entries,
        now: Timestamp,
        steps: &mut u32,
    ) -> Option<Slot> {
        let now = now.as_millis() / TICK_MS;
        while let Some((tick, list)) = self.first().filter(|(tick, _)| *tick <= now) {
            *steps = steps.checked_sub(1)?;
            self.current = self.current.max(tick);
            let slot = entries.pop_front(&mut self.lists[list], Chain::Place);
            if let Some(slot) = slot {
                self.note_removed(list);
                if list < LISTS {
                    return Some(slot);
                }
                self.insert(entries, slot);
            }
            self.moving = Some(list).filter(|list| *list >= LISTS && !self.lists[*list].is_empty());
        }
        if self.len == 0 {
            self.current = self.current.max(now.min(TICKS_MAX));
        }
        None
    }

    /// The time of the next call of [`pop_due`](Self::pop_due): the due time of the first entry, or
    /// before.
    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        let (tick, _) = self.first()?;
        Some(Timestamp::from_millis(0) + Duration::from_millis(tick * TICK_MS))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use vere_units::{QueueId, RecordId, TraceId};

    use super::*;
    use crate::queues::entries::Entry;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn everything_is_given_out_at_its_time_and_in_its_order_of_time() {
        let mut entries = Entries::default();
        let mut wheel = Wheel::default();
        let mut model: BTreeSet<(u64, Slot)> = BTreeSet::new();
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut now = 1_700_000_000_000;
        for round in 0..20_000_u64 {
            match random(4) {
                0 | 1 => {
                    let span = 1 << random(32);
                    let mut entry = Entry::new(QueueId(0), RecordId(round), TraceId::new(round));
                    entry.due = at(now + random(span));
                    let slot = entries.insert(entry);
                    wheel.insert(&mut entries, slot);
                    model.insert((entry.due.as_millis(), slot));
                }
                2 if !model.is_empty() => {
                    let nth = random(model.len() as u64) as usize;
                    let gone = *model.iter().nth(nth).expect("one of them");
                    model.remove(&gone);
                    wheel.remove(&mut entries, gone.1);
                    entries.remove(gone.1);
                }
                _ => {
                    let span = 1 << random(30);
                    now += random(span);
                    let mut before = 0;
                    let pop = |wheel: &mut Wheel, entries: &mut Entries| {
                        while wheel.wake_at().is_some_and(|wake| wake <= at(now)) {
                            let mut steps = 3;
                            let slot = wheel.pop_due(entries, at(now), &mut steps);
                            if slot.is_some() {
                                return slot;
                            }
                        }
                        None
                    };
                    while let Some(slot) = pop(&mut wheel, &mut entries) {
                        let due = entries[slot].due.as_millis();
                        assert!(due <= now && due.div_ceil(TICK_MS) >= before);
                        before = due.div_ceil(TICK_MS);
                        assert!(model.remove(&(due, slot)));
                        entries.remove(slot);
                    }
                    let late = model.first().is_some_and(|(due, _)| due + TICK_MS <= now);
                    assert!(!late, "something is overdue");
                }
            }
            assert_eq!(wheel.len(), model.len());
            let wake = wheel.wake_at();
            assert_eq!(wake.is_none(), model.is_empty());
            if let (Some(wake), Some((due, _))) = (wake, model.first()) {
                assert!(wake < at(due + TICK_MS), "it would be woken too late");
            }
        }
    }

    #[test]
    fn a_wheel_that_is_woken_whenever_it_asks_gives_out_in_time() {
        let mut entries = Entries::default();
        let mut wheel = Wheel::default();
        let mut entry = Entry::new(QueueId(0), RecordId(0), TraceId::new(1));
        entry.due = at(1_700_000_123_456);
        let slot = entries.insert(entry);
        wheel.insert(&mut entries, slot);
        let mut wakes = 0;
        loop {
            let wake = wheel.wake_at().expect("it holds one");
            wakes += 1;
            if wheel.pop_due(&mut entries, wake, &mut 100).is_some() {
                assert!(wake >= entry.due && wake < entry.due + Duration::from_millis(TICK_MS));
                break;
            }
        }
        assert!(wakes <= LEVELS, "{wakes}");
    }
}
