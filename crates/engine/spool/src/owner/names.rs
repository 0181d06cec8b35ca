//! What the owner knows of its queues: their names, and the number the next record of each gets.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use vere_spoolwire::{QUEUES_MAX, QueueId, QueueStat, RecordId};

/// The number from which on a queue gets no more records: nobody has come so far.
const RECORDS_MAX: u64 = 1 << 62;

/// Names and next records. A number stays its name's from the making of a queue on, however many makings and
/// ends of it are on their way, until what is known of the last one leaves no queue there.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: BTreeMap<Box<str>, QueueId>,
    by_number: BTreeMap<QueueId, Box<str>>,
    /// How many makings are on their way, for numbers with any.
    making: BTreeMap<QueueId, u32>,
    /// Numbers below the highest one that nobody has.
    free: BTreeSet<u32>,
    next_ids: Vec<u64>,
}

impl Names {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// A queue that the node has. False when its number is beyond all limits.
    pub(super) fn learn(&mut self, queue: &QueueStat) -> bool {
        if queue.id.0 >= QUEUES_MAX {
            return false;
        }
        self.add(queue.id, &queue.name);
        let next = self.next_id_mut(queue.id);
        *next = queue.next.0.max(*next);
        true
    }

    /// The number of a queue that is to be made: its own, or the lowest free one, which is taken by this.
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

    /// The number above all that are taken.
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

    /// A queue has come to be under this number.
    pub(super) fn made(&mut self, number: QueueId) {
        if let Entry::Occupied(mut making) = self.making.entry(number) {
            *making.get_mut() -= 1;
            if *making.get() == 0 {
                making.remove();
            }
        }
    }

    /// A queue was not made.
    pub(super) fn not_made(&mut self, number: QueueId) {
        self.made(number);
        self.ended(number);
    }

    /// A queue is gone; unless it is being made anew, its number is free.
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

    /// The number of a new record. None where there are no more, by a node's word: none is given twice.
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
        // Its end and its making are on their way, and are done in this order.
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
