//! What the owner knows of its queues: their names, and the number the next record of each gets.

use std::collections::{BTreeMap, BTreeSet};

use vere_spoolwire::{QUEUES_MAX, QueueId, QueueStat, RecordId};

/// Names and next records.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: BTreeMap<Box<str>, QueueId>,
    by_number: BTreeMap<QueueId, Box<str>>,
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

    /// The number of a queue: its own, or the lowest free one, which is taken by this.
    pub(super) fn number(&mut self, name: &str) -> Option<QueueId> {
        if let Some(number) = self.by_name.get(name) {
            return Some(*number);
        }
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
    pub(super) fn made(&mut self, number: QueueId, name: &str) {
        if !self.by_number.contains_key(&number) {
            self.add(number, name);
        }
    }

    /// A queue is gone, or never came to be.
    pub(super) fn remove(&mut self, number: QueueId) {
        if let Some(name) = self.by_number.remove(&number) {
            self.by_name.remove(&name);
            self.free.insert(number.0);
            let end = self.end();
            self.free.split_off(&end);
        }
    }

    /// The number of a new record.
    pub(super) fn next_id(&mut self, queue: QueueId) -> RecordId {
        let next = self.next_id_mut(queue);
        let id = RecordId(*next);
        *next = id.next().0;
        id
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
    use super::*;

    #[test]
    fn gives_the_lowest_free_number() {
        let mut names = Names::default();
        let number = |names: &mut Names, name: &str| names.number(name).map(|number| number.0);
        assert_eq!(number(&mut names, "a"), Some(0));
        assert_eq!(number(&mut names, "b"), Some(1));
        assert_eq!(number(&mut names, "c"), Some(2));
        assert_eq!(number(&mut names, "b"), Some(1));
        names.remove(QueueId(1));
        assert_eq!(number(&mut names, "d"), Some(1));
        assert_eq!(number(&mut names, "b"), Some(3));
    }

    #[test]
    fn one_that_is_made_while_its_end_is_on_its_way_is_known() {
        let mut names = Names::default();
        let a = names.number("a").expect("a number");
        // Its end and its making are on their way, and are done in this order.
        assert_eq!(names.number("a"), Some(a));
        names.remove(a);
        names.made(a, "a");
        assert_eq!(names.number("a"), Some(a));
        assert_ne!(names.number("b"), Some(a), "it is taken");
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
                names.remove(QueueId(gone));
            }
            let lowest = (0..).find(|number| !taken.contains_key(number));
            let name = format!("made {step}");
            let made = names.number(&name).map(|number| number.0);
            assert_eq!(made, lowest, "step {step}");
            taken.insert(made.expect("below the limit"), name);
        }
    }
}
