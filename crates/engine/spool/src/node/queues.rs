//! Creation and end of a group's queues.

use vere_spoolwire::{QueueCharter, QueueId, RecordId};

use super::memory::Memory;
use super::queue::{Queue, Slot};
use super::store::Store;

impl Store {
    /// Creates a queue, or sets the charter of an existing one and raises its next number.
    pub(super) fn create(
        &mut self,
        memory: &mut Memory,
        id: QueueId,
        name: &str,
        charter: QueueCharter<'_>,
        next: RecordId,
    ) {
        let index = id.0 as usize;
        if self.queues.len() <= index {
            self.queues.resize_with(index + 1, || None);
        }
        let queue = match &mut self.queues[index] {
            Some(queue) => {
                queue.renew(charter, next);
                queue
            }
            empty @ None => {
                self.by_name.insert(name.into(), id);
                empty.insert(Queue::new(name, charter, next))
            }
        };
        queue.count(memory);
    }

    /// Ends all records up to `through`; with `drop` also removes the queue if it is then empty.
    pub(super) fn purge(
        &mut self,
        memory: &mut Memory,
        id: QueueId,
        through: RecordId,
        drop: bool,
    ) {
        loop {
            let Some(queue) = self.queue(id) else { return };
            let within = |(id, _): (RecordId, Slot)| (id <= through).then_some(id);
            let some: Vec<_> = queue
                .iter_from(RecordId(0))
                .map_while(within)
                .take(1024)
                .collect();
            if some.is_empty() {
                break;
            }
            for record in some {
                self.remove(memory, id, record);
            }
        }
        if drop
            && let Some(mut queue) = self.queues[id.0 as usize].take_if(|queue| queue.length == 0)
        {
            queue.uncount(memory);
            self.by_name.remove(&queue.name);
        }
    }
}
