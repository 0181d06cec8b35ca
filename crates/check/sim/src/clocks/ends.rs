//! Ends of messages without an attempt.

use bytes::Bytes;
use vere_queue::{Envelope, Queues};
use vere_units::{QueueId, RecordId};

use super::{DEAD, World};

impl World {
    /// Ends expired messages of the unreachable destination.
    pub(super) fn end_behind(&mut self) -> Result<(), String> {
        while let Some(record) = self.queues.first_expired(DEAD, self.now()) {
            self.end(DEAD, record)?;
        }
        Ok(())
    }

    /// Ends messages whose own end has come.
    pub(super) fn end_overdue(&mut self) -> Result<(), String> {
        while let Some(queue) = self.queues.next_overdue(None, self.now()) {
            for message in self.queues.overdue(queue, self.now(), 2) {
                self.end(queue, message.record)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, queue: QueueId, record: RecordId) -> Result<(), String> {
        let kept = self.records.get(&(queue, record));
        let envelope = kept.and_then(|kept| Envelope::decode(&kept.meta).ok());
        let envelope = envelope.ok_or("a record is gone")?;
        let job = (self.queues).claim(queue, record, envelope, Bytes::new());
        let job = job.ok_or("it is in flight")?;
        let attempt = Queues::unreachable_attempt(&job.envelope, "dead.example", "no route");
        let settled = self.settle(queue, &job, &attempt)?;
        match settled.remaining {
            Some(_) => Err(format!("{record} is over, and goes on")),
            None => Ok(()),
        }
    }
}
