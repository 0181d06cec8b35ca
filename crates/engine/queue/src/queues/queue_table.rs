//! All queues by number: dense, because the spool gives the lowest free number.

use vere_units::QueueId;

use super::queue::Queue;

/// Numbers from here on are not taken: the spool's are dense, so there is no such queue.
pub(super) const NUMBERS_MAX: QueueId = QueueId(1 << 22);

/// The queues, by number.
#[derive(Debug, Default)]
pub(super) struct QueueTable {
    queues: Vec<Option<Box<Queue>>>,
    count: usize,
}

impl QueueTable {
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// The number behind the last queue.
    pub(super) fn end(&self) -> QueueId {
        u32::try_from(self.queues.len()).map_or(NUMBERS_MAX, QueueId)
    }

    /// All numbers up to the last queue, free numbers included.
    pub(super) fn numbers(&self) -> impl Iterator<Item = QueueId> + use<> {
        (0..self.end().0).map(QueueId)
    }

    pub(super) fn get(&self, number: QueueId) -> Option<&Queue> {
        self.queues.get(number.0 as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, number: QueueId) -> Option<&mut Queue> {
        self.queues.get_mut(number.0 as usize)?.as_deref_mut()
    }

    /// Takes a queue out.
    pub(super) fn remove(&mut self, number: QueueId) -> Option<Box<Queue>> {
        let queue = self.queues.get_mut(number.0 as usize)?.take();
        self.count -= usize::from(queue.is_some());
        queue
    }

    /// Puts a queue at its number, unless the number is taken. False: the number is taken or out of
    /// range.
    pub(super) fn insert(&mut self, number: QueueId, queue: Queue) -> bool {
        if number >= NUMBERS_MAX {
            return false;
        }
        let place = number.0 as usize;
        if self.queues.len() <= place {
            self.queues.resize_with(place + 1, || None);
        }
        let free = self.queues[place].is_none();
        if free {
            self.queues[place] = Some(Box::new(queue));
            self.count += 1;
        }
        free
    }
}
