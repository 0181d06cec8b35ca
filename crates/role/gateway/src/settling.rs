//! The end of an attempt: what the schedule makes of it, in the spool and in the trace.

use std::rc::Rc;

use tokio::task::spawn_local;
use vere_queue::{Attempt, Disposition, Job, Settlement};
use vere_telemetry::trace::{Event, EventKind};

use super::ending::{Ending, end_of};
use super::group::Group;
use super::{clock, mail_log};

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
            let end = Ending {
                queue,
                record: job.record,
                size: job.envelope.size,
                lines,
            };
            let group = Rc::clone(self);
            spawn_local(async move { group.end_records(&[end]).await });
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
