//! Puts records into the spool, and takes them out of their queues for workers.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use vere_queue::{Job, Supplied, Wanted};
use vere_spoolwire::{Batch, NodeRefusal, QueueId, SpoolError};
use vere_units::TraceId;

use crate::group::Group;
use crate::host::{Happened, Host};
use crate::known::Expected;
use crate::lines::{self, Lines};
use crate::notice::Part;
use crate::reading::{self, POST_RETRY};

/// Pause of a queue after the spool could not give its records.
const FETCH_RETRY: Duration = Duration::from_millis(500);

impl<H: Host> Group<H> {
    /// Stores records, with further changes and event lines in the same batch, and takes the records into
    /// their queues once the spool holds the records safely.
    ///
    /// # Errors
    /// [`SpoolError`]; records that are in the spool all the same are taken back, or sent once more after a crash.
    pub async fn store(
        self: &Rc<Self>,
        batch: Batch,
        parts: Vec<Part>,
        lines: &Lines,
    ) -> Result<(), SpoolError> {
        let begun = self.host.steady();
        let destinations = || parts.iter().map(|part| &part.destination);
        let mut expected = self.expect(destinations())?;
        let mut committed = self.put(&batch, &parts, lines, &expected).await;
        if committed == Err(SpoolError::Refused(NodeRefusal::NoQueue)) {
            drop(expected);
            expected = self.expect_made(destinations()).await?;
            committed = self.put(&batch, &parts, lines, &expected).await;
        }
        let took = self.host.steady().saturating_sub(begun);
        self.host.tell(&Happened::Stored(&committed, took));
        let committed = committed?;
        self.lines_stored(lines);
        let now = self.host.now();
        let mut admitted = Vec::with_capacity(parts.len());
        let stored = parts.into_iter().zip(expected.numbers());
        for ((part, number), record) in stored.zip(committed.ids) {
            self.host
                .tell(&Happened::Queued(&part.destination, &part.envelope));
            // Usually registered already; not if two creations of this queue overlapped and one was refused.
            self.register(number, &part.destination);
            admitted.push((number, record, part));
        }
        self.queues.change(|queues| {
            for (number, record, part) in admitted {
                queues.admit(number, record, part.envelope, Some(part.body), now);
            }
        });
        Ok(())
    }

    /// Puts records into their queues, with the other changes of the batch.
    fn put(
        &self,
        batch: &Batch,
        parts: &[Part],
        lines: &Lines,
        expected: &Expected<'_, H>,
    ) -> H::Commit {
        let mut batch = batch.clone();
        for (part, number) in parts.iter().zip(expected.numbers()) {
            let envelope = part.envelope.encode().into();
            batch.put(number, envelope, part.body.clone());
        }
        lines::put(lines, &mut batch);
        self.host.commit(batch)
    }

    /// Takes the next ready message for a worker.
    pub(crate) fn take(&self, queue: QueueId, fresh: bool) -> Option<Job> {
        if !self.delivering() {
            if fresh {
                self.queues
                    .change_quietly(|queues| queues.stays_away(queue));
            }
            return None;
        }
        let now = self.queue_time();
        let (job, more) = self.queues.change_quietly(|queues| {
            let job = queues.take(queue, fresh, now);
            (job, queues.has_next())
        });
        if more {
            self.queues.wake();
        }
        job
    }

    /// Returns the body of a job, from memory or from the spool. Without a body the worker should end: the job is given
    /// back, or forgotten if its record is gone.
    pub(crate) async fn body(&self, queue: QueueId, job: &Job) -> Option<Bytes> {
        let body = match &job.body {
            Some(body) => Ok(Some(body.clone())),
            None => self.fetch_body(queue, job).await,
        };
        match body {
            // The delivery begins now: whoever fetched for long, or was stopped, may not do so any more.
            Ok(Some(body)) if self.delivering() => {
                return Some(match job.envelope.head.is_released {
                    true => self.host.as_released(body),
                    false => body,
                });
            }
            Ok(Some(_)) => self.give_back(queue, job),
            Ok(None) => {
                self.queues.change(|queues| queues.lose(queue, job));
                self.note_lost(queue, job.envelope.head.trace);
            }
            Err(error) => {
                tracing::warn!(queue_id = %job.envelope.head.trace, ?error, "cannot fetch a body");
                self.give_back(queue, job);
                self.host.pause(POST_RETRY).await;
            }
        }
        None
    }

    /// Puts an untried job back.
    pub(crate) fn give_back(&self, queue: QueueId, job: &Job) {
        self.queues
            .change_quietly(|queues| queues.give_back(queue, job));
    }

    /// Returns `None` if the spool has no such record.
    async fn fetch_body(&self, queue: QueueId, job: &Job) -> Result<Option<Bytes>, SpoolError> {
        let found = reading::record(&self.host, queue, job.record).await?;
        Ok(found.map(|record| record.body))
    }

    /// Tells that a message which was known is not in the spool.
    pub(crate) fn note_lost(&self, queue: QueueId, trace: TraceId) {
        tracing::error!(
            queue_id = %trace,
            "record is not in the spool: an operator or another owner has ended it"
        );
        let name = self.queues.name(queue);
        self.host.tell(&Happened::Lost(name.as_deref(), trace));
    }

    /// Brings the records into memory whose turn comes next. A queue whose records the spool cannot give waits a
    /// moment before it asks again.
    pub async fn bring(&self, wanted: Wanted) {
        let Wanted {
            queue,
            from,
            records,
            octets,
            ..
        } = wanted;
        let fetched = self.host.fetch(queue, from, records, octets);
        match fetched.await {
            Ok(block) => {
                let known = reading::readable(block.records);
                let supplied = self.queues.change(|queues| queues.supply(&wanted, known));
                if let Supplied::Lost(trace) = supplied {
                    self.note_lost(queue, trace);
                }
            }
            Err(error) => {
                tracing::warn!(?error, "cannot fetch the messages of a queue");
                let again = self.host.now() + FETCH_RETRY;
                self.queues
                    .change(|queues| queues.fetch_failed(&wanted, again));
            }
        }
    }
}
