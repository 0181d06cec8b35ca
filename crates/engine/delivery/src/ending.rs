//! Ends records in the spool.
//!
//! A record ends in one of three ways: with the reports of its attempt ([`reporting`](super::reporting)), with event
//! lines or in numbers, which somebody waits for ([`Group::end_records`]), or alone after an attempt, which nobody
//! waits for ([`end_of`]).

use vere_queue::{Job, Settlement};
use vere_spoolwire::{Batch, NodeRefusal, QueueId, RecordId, SpoolError};

use crate::group::Group;
use crate::host::{Happened, Host};
use crate::lines::{self, Lines, octets};
use crate::reading::POST_RETRY;

/// The end of a record, with the event lines about it.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) queue: QueueId,
    pub(super) record: RecordId,
    /// Octets of the message.
    pub(super) size: u32,
    pub(super) lines: Lines,
}

impl Ending {
    /// Adds the end of the record to a batch. A full node takes nothing new, but lets records change places: the
    /// message becomes the record of its line, and gives its space back with the line.
    fn add_to(&self, batch: &mut Batch, full: bool) {
        let (queue, record) = (self.queue, self.record);
        match self.lines.as_slice() {
            [(to, line)] if full => {
                batch.move_to(queue, record, *to, Some(line.clone()));
            }
            _ => {
                batch.delete(queue, record);
                lines::put(&self.lines, batch);
            }
        }
    }

    fn log_missing(&self) {
        let record = self.record.0;
        if self.lines.is_empty() {
            tracing::error!(record, "record is not in the spool: it was ended before");
        } else {
            tracing::error!(
                record,
                "record is not in the spool, what is told of it is lost"
            );
        }
    }
}

/// Returns what an attempt makes of a record.
pub(super) fn end_of(queue: QueueId, job: &Job, settlement: &Settlement) -> Batch {
    let record = job.record;
    let mut batch = Batch::new();
    match &settlement.remaining {
        Some(rest) => batch.replace(queue, record, rest.encode().into()),
        None => batch.delete(queue, record),
    };
    batch
}

impl<H: Host> Group<H> {
    /// Ends records with their lines in one transaction. Falls back to one transaction per record if some record is
    /// missing. Returns once the end is safe, once the link has closed, or when records without lines cannot be ended
    /// now: they are found again after a restart.
    pub(super) async fn end_records(&self, ends: &[Ending]) {
        if ends.is_empty() || self.try_end(ends).await {
            return;
        }
        // A missing record refused the whole batch: end the remaining records in turn.
        for end in ends {
            if !self.try_end(std::slice::from_ref(end)).await {
                end.log_missing();
            }
        }
    }

    /// Ends the records in one transaction. Returns `false`, without effect, if a record is missing.
    async fn try_end(&self, ends: &[Ending]) -> bool {
        let silent = ends.iter().all(|end| end.lines.is_empty());
        let mut full = false;
        loop {
            let mut batch = Batch::new();
            for end in ends {
                end.add_to(&mut batch, full);
            }
            match self.host.commit(batch).await {
                Ok(_) if silent => return true,
                Ok(_) => {
                    let moved = |end: &Ending| if full { u64::from(end.size) } else { 0 };
                    let sum = ends.iter().map(|end| octets(&end.lines) + moved(end)).sum();
                    self.event_lines.stored(sum);
                    self.host.tell(&Happened::LinesStored);
                    return true;
                }
                Err(SpoolError::Refused(NodeRefusal::NoRecord)) => return false,
                Err(SpoolError::Closed) => return true,
                Err(SpoolError::Busy) if silent => {}
                Err(_) if silent => return true,
                Err(SpoolError::Refused(refusal)) if refusal.is_temporary() => full = !full,
                Err(error) => tracing::warn!(?error, "cannot end records yet"),
            }
            if !full {
                self.host.pause(POST_RETRY).await;
            }
        }
    }

    /// Sends a change to the spool as soon as the link takes it, and does not wait for the acknowledgement.
    pub(super) async fn post_until_taken(&self, batch: Batch) {
        // Any other failure: after a restart the record is found again, since delivery is at least once.
        while let Err(SpoolError::Busy) = self.host.post(batch.clone()) {
            self.host.pause(POST_RETRY).await;
        }
    }
}
