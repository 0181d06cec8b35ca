//! Event lines: the lines for other systems about each end of a message, each report and each queue command.

use vere_queue::ledger::{FINISHED_QUEUE, NOTICES_QUEUE, OrderNotice};
use vere_queue::{Attempt, Destination, Envelope, Job, Ledger, Order, Report, Settlement, Subject};
use vere_spoolwire::{QueueId, RecordId, SpoolError};
use vere_units::{Timestamp, TraceId};

use crate::group::Group;
use crate::host::{Happened, Host};
use crate::lines::{EventLines, Lines, octets};

impl<H: Host> Group<H> {
    fn ledger<T>(&self, write: impl FnOnce(&Ledger<'_>) -> T) -> T {
        write(&Ledger {
            gateway: &self.host.gateway(),
            now: self.host.now(),
        })
    }

    fn about<T>(
        &self,
        queue: QueueId,
        record: RecordId,
        envelope: &Envelope,
        tell: impl FnOnce(&Ledger<'_>, &Subject<'_>) -> T,
    ) -> T {
        let destination = self.queues.name(queue);
        let subject = Subject {
            queue,
            record,
            destination: destination.as_deref().unwrap_or_default(),
            envelope,
        };
        self.ledger(|ledger| tell(ledger, &subject))
    }

    /// Returns the lines about the end of an attempt.
    pub(super) fn finished_lines(
        &self,
        queue: QueueId,
        job: &Job,
        attempt: &Attempt,
        settlement: &Settlement,
    ) -> Lines {
        if !self.event_lines.is_on() {
            return Vec::new();
        }
        let lines = self.about(queue, job.record, &job.envelope, |ledger, subject| {
            ledger.finished(subject, attempt, settlement)
        });
        EventLines::told(&self.event_lines.finished, lines)
    }

    /// Returns the line about a message that an operator removes.
    pub(super) fn removed_lines(
        &self,
        queue: QueueId,
        record: RecordId,
        envelope: &Envelope,
    ) -> Lines {
        if !self.event_lines.is_on() {
            return Vec::new();
        }
        let lines = self.about(queue, record, envelope, |ledger, subject| {
            ledger.removed(subject)
        });
        EventLines::told(&self.event_lines.finished, lines)
    }

    /// Returns the lines about a report to a sender; `sent`: the trace id of the report.
    pub(super) fn report_lines(
        &self,
        queue: QueueId,
        job: &Job,
        report: &Report,
        sent: Option<TraceId>,
    ) -> Lines {
        if !self.event_lines.is_on() {
            return Vec::new();
        }
        let lines = self.about(queue, job.record, &job.envelope, |ledger, subject| {
            ledger.reported(subject, report, sent)
        });
        EventLines::told(&self.event_lines.notices, lines)
    }

    /// Returns the lines about a report on a message that is being accepted.
    pub fn expanded_lines(
        &self,
        message: TraceId,
        report: &Report,
        sent: Option<TraceId>,
    ) -> Lines {
        if !self.event_lines.is_on() {
            return Vec::new();
        }
        let lines = self.ledger(|ledger| ledger.expanded(message, report, sent));
        EventLines::told(&self.event_lines.notices, lines)
    }

    /// Returns the line about a queue command for a destination.
    pub fn order_lines(&self, order: &Order, change: OrderNotice) -> Lines {
        if !self.event_lines.is_on() {
            return Vec::new();
        }
        let id = self.host.next_id();
        let line = self.ledger(|ledger| ledger.ordered(id, order, change));
        EventLines::told(&self.event_lines.notices, vec![line])
    }

    /// Returns the line about a message that an operator holds or releases.
    pub fn hold_lines(
        &self,
        destination: &Destination,
        message: TraceId,
        change: OrderNotice,
        until: Option<Timestamp>,
    ) -> Lines {
        if !self.event_lines.is_on() {
            return Vec::new();
        }
        let id = self.host.next_id();
        let line = self.ledger(|ledger| ledger.held(id, destination, message, change, until));
        EventLines::told(&self.event_lines.notices, vec![line])
    }

    /// Counts lines that are safe in the spool.
    pub fn lines_stored(&self, lines: &Lines) {
        if !lines.is_empty() {
            self.event_lines.stored(octets(lines));
            self.host.tell(&Happened::LinesStored);
        }
    }

    /// Creates the missing queues for event lines, before the first line is written.
    ///
    /// # Errors
    /// When the spool cannot create the queues now.
    pub(super) async fn prepare_records(&self, waiting: u64) -> Result<(), SpoolError> {
        if !self.event_lines.is_on() {
            return Ok(());
        }
        for (name, place) in [
            (FINISHED_QUEUE, &self.event_lines.finished),
            (NOTICES_QUEUE, &self.event_lines.notices),
        ] {
            if place.get().is_none() {
                let made = self.create_queue(name).await?;
                place.set(Some(made));
            }
        }
        self.event_lines.found(waiting);
        self.host.tell(&Happened::LinesStored);
        Ok(())
    }
}
