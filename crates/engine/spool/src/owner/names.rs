//! What the owner knows of its queues: their names, and the number the next record of each gets.

use std::collections::BTreeMap;

use vere_spoolwire::{QUEUES_MAX, QueueId, QueueStat, RecordId};

/// Names and next records.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: BTreeMap<Box<str>, QueueId>,
    by_number: BTreeMap<QueueId, Box<str>>,
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
        let mut free = 0;
        // Numbers are dense but for dropped queues, so this is short once the count is known.
        if self
            .by_number
            .last_key_value()
            .is_some_and(|(last, _)| last.0 as usize + 1 == self.by_number.len())
        {
            free = self.by_number.len() as u32;
        } else {
            for number in self.by_number.keys() {
                if number.0 != free {
                    break;
                }
                free += 1;
            }
        }
        if free >= QUEUES_MAX {
            return None;
        }
        self.add(QueueId(free), name);
        Some(QueueId(free))
    }

    fn add(&mut self, number: QueueId, name: &str) {
        self.by_name.insert(name.into(), number);
        self.by_number.insert(number, name.into());
    }

    /// A queue is gone, or never came to be.
    pub(super) fn remove(&mut self, number: QueueId) {
        if let Some(name) = self.by_number.remove(&number) {
            self.by_name.remove(&name);
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
}
