//! Puts records into the spool, and takes them out of their queues for workers.

use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use vere_queue::{Destination, Envelope, Job};
use vere_spool::owner::Batch;
use vere_spoolwire::{QueueId, RecordId, Refusal};
use vere_telemetry::trace::{Event, EventKind};

use super::event_lines::{self, Lines};
use super::group::Group;
use super::known::Expected;
use super::part::Part;
use super::reading::{self, POST_RETRY};
use super::scheduler::note_lost;
use vere_link::link::{Commit, SpoolError};
use vere_process::clock;

impl Group {
    /// Stores records, with other changes and lines for other systems in the same batch, and takes them into
    /// their queues once the spool holds them safely.
    pub(super) async fn store(
        self: &Rc<Self>,
        batch: Batch,
        parts: Vec<Part>,
        lines: &Lines,
    ) -> Result<(), SpoolError> {
        let begun = Instant::now();
        let destinations = || parts.iter().map(|part| &part.destination);
        let mut expected = self.expect(destinations())?;
        let mut committed = self.put(&batch, &parts, lines, &expected).await;
        if committed == Err(SpoolError::Refused(Refusal::NoQueue)) {
            drop(expected);
            expected = self.expect_made(destinations()).await?;
            committed = self.put(&batch, &parts, lines, &expected).await;
        }
        self.process.metrics.committed(&committed, begun.elapsed());
        let committed = committed?;
        self.lines_stored(lines);
        let now = clock::now();
        let mut admitted = Vec::with_capacity(parts.len());
        let stored = parts.into_iter().zip(expected.numbers());
        for ((part, number), RecordId(record)) in stored.zip(committed.ids) {
            self.note_queued(&part.destination, &part.envelope);
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
    fn put(&self, batch: &Batch, parts: &[Part], lines: &Lines, expected: &Expected<'_>) -> Commit {
        let mut batch = batch.clone();
        for (part, number) in parts.iter().zip(expected.numbers()) {
            let envelope = part.envelope.encode().into();
            batch.put(QueueId(number), envelope, part.body.clone());
        }
        event_lines::put(lines, &mut batch);
        self.link.commit(batch)
    }

    fn note_queued(&self, destination: &Destination, envelope: &Envelope) {
        let queue = destination.to_string();
        for recipient in &envelope.recipients {
            self.process.note(&Event {
                queue: Some(&queue),
                rcpt: Some(&recipient.address),
                ..Event::new(EventKind::Queued, envelope.trace, clock::now())
            });
        }
    }

    /// The next message for a worker, if one is ready.
    pub(super) fn take(&self, queue: u32, fresh: bool) -> Option<Job> {
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

    /// The body of a job, from memory or from the spool; `None` when there is none now, and the worker should end: the
    /// job is given back, or forgotten where the spool does not have it any more.
    pub(super) async fn body(&self, queue: u32, job: &Job) -> Option<Bytes> {
        let body = match &job.body {
            Some(body) => Ok(Some(body.clone())),
            None => self.fetch_body(queue, job).await,
        };
        match body {
            // The delivery begins now: whoever fetched for long, or was stopped, may not do so any more.
            Ok(Some(body)) if self.delivering() => return Some(body),
            Ok(Some(_)) => self.give_back(queue, job),
            Ok(None) => {
                self.queues.change(|queues| queues.lose(queue, job));
                note_lost(self, job.envelope.trace, QueueId(queue));
            }
            Err(error) => {
                tracing::warn!(queue_id = %job.envelope.trace, ?error, "cannot fetch a body");
                self.give_back(queue, job);
                tokio::time::sleep(POST_RETRY).await;
            }
        }
        None
    }

    /// Puts a job back that was not tried.
    pub(super) fn give_back(&self, queue: u32, job: &Job) {
        self.queues
            .change_quietly(|queues| queues.give_back(queue, job));
    }

    /// Returns `None` if the spool has no such record.
    async fn fetch_body(&self, queue: u32, job: &Job) -> Result<Option<Bytes>, SpoolError> {
        let found = reading::record(&self.link, queue, job.record).await?;
        Ok(found.map(|record| record.body))
    }
}
