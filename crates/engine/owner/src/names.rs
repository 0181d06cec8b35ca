//! The owner's knowledge of its queues: names, and the next record number of each queue.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use vere_spoolwire::{QUEUES_MAX, QueueId, QueueStat, RecordId};

/// First record number that is never given out; no real queue reaches this number.
const RECORDS_MAX: u64 = 1 << 62;

/// Names and next record numbers of queues. A number belongs to its name from the queue's creation
/// on, however many creations and drops are in flight, until the last outcome leaves no queue.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: BTreeMap<Box<str>, QueueId>,
    by_number: BTreeMap<QueueId, Box<str>>,
    /// Creations in flight, by queue number.
    making: BTreeMap<QueueId, u32>,
    /// Unused numbers below the highest used one.
    free: BTreeSet<u32>,
    next_ids: Vec<u64>,
}

impl Names {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Records a queue of a node. Returns false for a number above the protocol's limit.
    pub(super) fn learn(&mut self, queue: &QueueStat) -> bool {
        if queue.id.0 >= QUEUES_MAX {
            return false;
        }
        self.add(queue.id, &queue.name);
        let next = self.next_id_mut(queue.id);
        *next = queue.next.0.max(*next);
        true
    }

    /// Returns the number for creating a queue: the name's present number, or the lowest free
    /// number, which is then reserved.
    pub(super) fn make(&mut self, name: &str) -> Option<QueueId> {
        let number = match self.by_name.get(name) {
            Some(number) => *number,
            None => self.take_free(name)?,
        };
        *self.making.entry(number).or_default() += 1;
        Some(number)
    }

    fn take_free(&mut self, name: &str) -> Option<QueueId> {
        let free = self.free.first().copied().unwrap_or_else(|| self.end());
        if free >= QUEUES_MAX {
            return None;
        }
        self.add(QueueId(free), name);
        Some(QueueId(free))
    }

    /// First number above all used ones.
    fn end(&self) -> u32 {
        self.by_number
            .last_key_value()
            .map_or(0, |(last, _)| last.0 + 1)
    }

    fn add(&mut self, number: QueueId, name: &str) {
        self.free.extend(self.end()..number.0);
        self.free.remove(&number.0);
        self.by_name.insert(name.into(), number);
        self.by_number.insert(number, name.into());
    }

    /// Records that a queue was created under the number.
    pub(super) fn made(&mut self, number: QueueId) {
        if let Entry::Occupied(mut making) = self.making.entry(number) {
            *making.get_mut() -= 1;
            if *making.get() == 0 {
                making.remove();
            }
        }
    }

    /// Records that the creation of a queue was refused.
    pub(super) fn not_made(&mut self, number: QueueId) {
        self.made(number);
        self.ended(number);
    }

    /// Records that a queue was dropped. The number becomes free unless a creation is in flight.
    pub(super) fn ended(&mut self, number: QueueId) {
        if self.making.contains_key(&number) {
            return;
        }
        if let Some(name) = self.by_number.remove(&number) {
            self.by_name.remove(&name);
            self.free.insert(number.0);
            let end = self.end();
            self.free.split_off(&end);
        }
    }

    /// Returns the number for a new record, or `None` when no numbers are left. A node's report
    /// cannot make the owner give a number twice.
    pub(super) fn next_id(&mut self, queue: QueueId) -> Option<RecordId> {
        let next = self.next_id_mut(queue);
        let id = RecordId(*next);
        if id.0 >= RECORDS_MAX {
            return None;
        }
        *next = id.next().0;
        Some(id)
    }

    fn next_id_mut(&mut self, queue: QueueId) -> &mut u64 {
        let index = queue.0 as usize;
        if self.next_ids.len() <= index {
            self.next_ids.resize(index + 1, 1);
        }
        &mut self.next_ids[index]
    }
}

#[cfg(test)]
mod tests {
    use vere_spoolwire::{KeptGrants, QueueLimits};

    use super::*;

    fn made(names: &mut Names, name: &str) -> Option<u32> {
        let number = names.make(name)?;
        names.made(number);
        Some(number.0)
    }

    #[test]
    fn gives_the_lowest_free_number() {
        let mut names = Names::default();
        assert_eq!(made(&mut names, "a"), Some(0));
        assert_eq!(made(&mut names, "b"), Some(1));
        assert_eq!(made(&mut names, "c"), Some(2));
        assert_eq!(made(&mut names, "b"), Some(1));
        names.ended(QueueId(1));
        assert_eq!(made(&mut names, "d"), Some(1));
        assert_eq!(made(&mut names, "b"), Some(3));
    }

    #[test]
    fn no_number_is_given_twice_whatever_a_node_says() {
        let mut names = Names::default();
        let told = |id, next| QueueStat {
            id: QueueId(id),
            name: format!("q{id}"),
            limits: QueueLimits::UNLIMITED,
            readers: KeptGrants::default(),
            first: RecordId(next),
            next: RecordId(next),
            length: 0,
            bytes: 0,
        };
        assert!(!names.learn(&told(QUEUES_MAX, 1)));
        assert!(names.learn(&told(0, RECORDS_MAX - 1)));
        assert!(names.learn(&told(1, u64::MAX)));
        let last = RecordId(RECORDS_MAX - 1);
        assert_eq!(names.next_id(QueueId(0)), Some(last));
        assert_eq!(names.next_id(QueueId(0)), None);
        assert_eq!(names.next_id(QueueId(1)), None);
    }

    #[test]
    fn one_that_is_made_while_its_end_is_on_its_way_is_known() {
        let mut names = Names::default();
        let a = names.make("a").expect("a number");
        names.made(a);
        // The drop and the second creation of queue `a` are in flight, and are decided in this
        // order.
        assert_eq!(names.make("a"), Some(a));
        names.ended(a);
        assert_ne!(names.make("b"), Some(a), "it is taken");
        names.made(a);
        assert_eq!(names.make("a"), Some(a));
    }

    #[test]
    fn one_that_is_not_made_is_free_unless_it_is_made_once_more() {
        let mut names = Names::default();
        let a = names.make("a").expect("a number");
        assert_eq!(names.make("a"), Some(a));
        names.not_made(a);
        assert_ne!(names.make("b"), Some(a), "the second one is on its way");
        names.not_made(a);
        assert_eq!(names.make("c"), Some(a));
    }

    #[test]
    fn knows_the_free_numbers_whatever_comes_and_goes() {
        let mut names = Names::default();
        let mut taken = BTreeMap::new();
        // Numbers of a permutation of 0..97: learned in any order, as a node lists them.
        for step in 0..97_u32 {
            let number = step * 35 % 97;
            if step % 3 == 0 {
                let name = format!("learned {number}");
                names.add(QueueId(number), &name);
                taken.insert(number, name);
            }
        }
        for step in 0..500_u32 {
            if step % 5 < 2 {
                let at = step as usize * 31 % taken.len();
                let gone = *taken.keys().nth(at).expect("one of them");
                taken.remove(&gone);
                names.ended(QueueId(gone));
            }
            let lowest = (0..).find(|number| !taken.contains_key(number));
            let name = format!("made {step}");
            let made = made(&mut names, &name);
            assert_eq!(made, lowest, "step {step}");
            taken.insert(made.expect("below the limit"), name);
        }
    }
}
