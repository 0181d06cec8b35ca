//! The end of an attempt: what the schedule makes of it, in the spool and in the trace.

use std::rc::Rc;

use tokio::task::spawn_local;
use vere_queue::{Attempt, Disposition, Job, Settlement};
use vere_spool::owner::Batch;
use vere_spoolwire::{QueueId, RecordId, Refusal};
use vere_telemetry::trace::{Event, EventKind};

use super::group::Group;
use super::reading::POST_RETRY;
use super::records::Finish;
use super::{clock, mail_log};
use crate::spool::link::SpoolError;

const NO_RECORD: SpoolError = SpoolError::Refused(Refusal::NoRecord);

/// What an attempt makes of a record.
pub(super) fn end_of(queue: u32, job: &Job, settlement: &Settlement) -> Batch {
    let (queue, record) = (QueueId(queue), RecordId(job.record));
    let mut batch = Batch::new();
    match &settlement.remaining {
        Some(rest) => batch.replace(queue, record, rest.encode().into()),
        None => batch.delete(queue, record),
    };
    batch
}

impl Group {
    /// Settles an attempt: updates the schedule now and the spool behind it. Gives how many reports are on their way.
    pub(super) fn settle(self: &Rc<Self>, queue: u32, job: &Job, attempt: &Attempt) -> usize {
        let now = self.queue_time();
        let settled = self
            .queues
            .change(|queues| queues.settle(queue, job, attempt, now));
        let Some(mut settlement) = settled else {
            return 0;
        };
        self.note_results(queue, job, attempt, &settlement);
        let mut lines = self.finished_lines(queue, job, attempt, &settlement);
        settlement.reports.retain(|report| {
            let sent = self.process.may_report(report, job.envelope.trace);
            if !sent {
                lines.extend(self.report_lines(queue, job, report, None));
            }
            sent
        });
        if settlement.remaining.is_none() && settlement.reports.is_empty() && !lines.is_empty() {
            let end = Finish {
                queue,
                record: job.record,
                size: job.envelope.size,
                lines,
            };
            spawn_local(Rc::clone(self).finish(vec![end]));
            return 0;
        }
        let alone = settlement.reports.is_empty() && lines.is_empty();
        if alone && self.link.post(end_of(queue, job, &settlement)).is_ok() {
            self.written(queue, job, &settlement);
            return 0;
        }
        let reports = settlement.reports.len();
        let (group, mut job) = (Rc::clone(self), job.clone());
        spawn_local(async move {
            group
                .conclude(queue, &mut job, &mut settlement, lines)
                .await;
            group.written(queue, &job, &settlement);
        });
        reports
    }

    /// The spool has the remaining recipients of the message: other tasks may change the record now.
    fn written(&self, queue: u32, job: &Job, settlement: &Settlement) {
        if let Some(rest) = &settlement.remaining {
            let now = clock::now();
            self.queues
                .change(|queues| queues.written(queue, job, rest, now));
        }
    }

    /// Ends records in the spool; skips missing records. Returns once the end is safe.
    pub(super) async fn end(&self, queue: u32, records: &[u64]) {
        if records.is_empty() || self.try_end(queue, records).await != Err(NO_RECORD) {
            return;
        }
        // A missing record refused the whole batch: end the remaining records one by one.
        for record in records {
            if self.try_end(queue, &[*record]).await == Err(NO_RECORD) {
                tracing::error!(record, "record is not in the spool: it was ended before");
            }
        }
    }

    async fn try_end(&self, queue: u32, records: &[u64]) -> Result<(), SpoolError> {
        let mut batch = Batch::new();
        for record in records {
            batch.delete(QueueId(queue), RecordId(*record));
        }
        loop {
            match self.link.commit(batch.clone()).await {
                Err(SpoolError::Busy) => tokio::time::sleep(POST_RETRY).await,
                // Any other failure: after a restart the record is found again.
                ended => return ended.map(drop),
            }
        }
    }

    pub(super) async fn post_until_taken(&self, batch: Batch) {
        // Any other failure: after a restart the record is found again, since delivery is at least once.
        while let Err(SpoolError::Busy) = self.link.post(batch.clone()) {
            tokio::time::sleep(POST_RETRY).await;
        }
    }

    fn note_results(&self, queue: u32, job: &Job, attempt: &Attempt, settlement: &Settlement) {
        self.process.metrics.attempted(attempt, &job.envelope);
        let now = clock::now();
        let name = self.queues.name(queue);
        for (recipient, result) in job.envelope.recipients.iter().zip(&attempt.results) {
            let expired = settlement.expired.contains(&recipient.address);
            let kind = match result.disposition {
                Disposition::Delivered => EventKind::Delivered,
                Disposition::Failed => EventKind::Bounced,
                Disposition::Deferred if expired => EventKind::Expired,
                Disposition::Deferred => EventKind::Deferred,
            };
            let local = attempt.remote == "local";
            self.process
                .metrics
                .settled(result.disposition, local, expired);
            let (queue, envelope) = (name.as_deref(), &job.envelope);
            let came_to = (attempt, result);
            mail_log::settled(
                kind,
                queue,
                envelope,
                &recipient.address,
                came_to,
                settlement,
            );
            self.process.note(&Event {
                queue: name.as_deref(),
                rcpt: Some(&recipient.address),
                reply: Some(&result.reply),
                remote: Some(&attempt.remote),
                attempt: Some(u32::from(job.envelope.attempts) + 1),
                next: settlement
                    .remaining
                    .as_ref()
                    .and_then(|rest| rest.not_before),
                ..Event::new(kind, job.envelope.trace, now)
            });
        }
    }
}
