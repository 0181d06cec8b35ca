//! The end of an attempt: what the schedule makes of it, in the spool and in the trace, and the reports
//! that go with it.

use std::rc::Rc;

use bytes::Bytes;
use tokio::task::spawn_local;
use vere_queue::report::Composer;
use vere_queue::{Attempt, Disposition, Envelope, Job, Report, Ret, Settlement, TlsWish};
use vere_spool::owner::Batch;
use vere_spoolwire::{QueueId, RecordId, Refusal};
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use super::records::{Finish, Lines};
use super::signing;
use super::state::{FETCH_BYTES, Gateway, POST_RETRY, Part};
use super::{clock, mail_log};
use crate::spool::link::SpoolError;

/// What an attempt makes of a record.
fn end_of(queue: u32, job: &Job, settlement: &Settlement) -> Batch {
    let (queue, record) = (QueueId(queue), RecordId(job.record));
    let mut batch = Batch::new();
    match &settlement.remaining {
        Some(rest) => batch.replace(queue, record, rest.encode().into()),
        None => batch.delete(queue, record),
    };
    batch
}

impl Gateway {
    /// Settles an attempt: updates the schedule now and the spool behind it.
    pub(super) fn settle(self: &Rc<Self>, queue: u32, job: &Job, attempt: &Attempt) {
        let settled = self
            .queues
            .borrow_mut()
            .settle(queue, job, attempt, clock::now());
        let Some(mut settlement) = settled else {
            return;
        };
        self.note_results(queue, job, attempt, &settlement);
        self.changed.notify_one();
        let mut lines = self.finished_lines(queue, job, attempt, &settlement);
        settlement.reports.retain(|report| {
            let sent = self.may_report(report, job.envelope.trace);
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
            return;
        }
        let alone = settlement.reports.is_empty() && lines.is_empty();
        if alone && self.link.post(end_of(queue, job, &settlement)).is_ok() {
            self.written(queue, job, &settlement);
            return;
        }
        let (gateway, job) = (Rc::clone(self), job.clone());
        spawn_local(async move {
            gateway.conclude(queue, &job, &mut settlement, lines).await;
            gateway.written(queue, &job, &settlement);
        });
    }

    /// What remains of a message, if anything does, is in its record from here on: now others may change that.
    fn written(&self, queue: u32, job: &Job, settlement: &Settlement) {
        if let Some(rest) = &settlement.remaining {
            let mut queues = self.queues.borrow_mut();
            queues.written(queue, job, rest, clock::now());
            drop(queues);
            self.changed.notify_one();
        }
    }

    /// Changes records in the spool for which nobody waits.
    pub(super) fn end(self: &Rc<Self>, batch: Batch) {
        if self.link.post(batch.clone()).is_err() {
            let gateway = Rc::clone(self);
            spawn_local(async move { gateway.post_until_taken(batch).await });
        }
    }

    async fn post_until_taken(&self, batch: Batch) {
        // Any other failure: after a restart the record is found again, since delivery is at least once.
        while let Err(SpoolError::Busy) = self.link.post(batch.clone()) {
            tokio::time::sleep(POST_RETRY).await;
        }
    }

    /// Stores the reports of a settlement, and what is told of it, together with the end of the original.
    /// Until that succeeds the original stays in the spool, so that nothing is lost.
    ///
    /// An original that the spool does not have any more is no reason to hold the report back: it goes
    /// without the message, and without the end of what is gone.
    async fn conclude(
        self: &Rc<Self>,
        queue: u32,
        job: &Job,
        settlement: &mut Settlement,
        finished: Lines,
    ) {
        let mut end = end_of(queue, job, settlement);
        while !settlement.reports.is_empty() || !finished.is_empty() {
            let reports = &settlement.reports;
            match self.try_store(queue, job, &end, reports, &finished).await {
                Ok(()) => {
                    for report in reports {
                        self.metrics.notified(report.kind);
                    }
                    return;
                }
                Err(SpoolError::Closed) => return,
                Err(SpoolError::Refused(Refusal::NoRecord)) if !end.is_empty() => {
                    tracing::error!(
                        queue_id = %job.envelope.trace,
                        "record is not in the spool, its report is stored without it"
                    );
                    end = Batch::new();
                }
                // It would hold up the message that is to make room.
                Err(_) if finished.is_empty() && settlement.put_delay_off() => {
                    end = end_of(queue, job, settlement);
                }
                Err(error) => {
                    tracing::warn!(queue_id = %job.envelope.trace, ?error, "cannot store a report yet");
                    tokio::time::sleep(POST_RETRY).await;
                }
            }
        }
        self.post_until_taken(end).await;
    }

    async fn try_store(
        self: &Rc<Self>,
        queue: u32,
        job: &Job,
        end: &Batch,
        reports: &[Report],
        finished: &Lines,
    ) -> Result<(), SpoolError> {
        let original = match reports {
            [] => None,
            _ => self.original(queue, job).await?,
        };
        let original = original.unwrap_or_default();
        let (parts, notices) = self.report_parts(queue, job, &original, reports).await;
        let lines = [finished.as_slice(), notices.as_slice()].concat();
        self.store(end.clone(), parts, &lines).await
    }

    /// The message that a report is about; `None`: the spool does not have it.
    async fn original(&self, queue: u32, job: &Job) -> Result<Option<Bytes>, SpoolError> {
        if let Some(body) = &job.body {
            return Ok(Some(body.clone()));
        }
        let id = RecordId(job.record);
        let block = self.link.fetch(QueueId(queue), id, 1, FETCH_BYTES).await?;
        let mut records = block.records.into_iter();
        let found = records.find(|record| record.id == id);
        Ok(found.map(|record| record.body))
    }

    /// The records of reports, and what is told of them.
    pub(super) async fn report_parts(
        &self,
        queue: u32,
        job: &Job,
        original: &Bytes,
        reports: &[Report],
    ) -> (Vec<Part>, Lines) {
        let mut parts = Vec::with_capacity(reports.len());
        let mut lines = Lines::new();
        for report in reports {
            let (trace, made) = self.report_part(&job.envelope, original, report).await;
            lines.extend(self.report_lines(queue, job, report, Some(trace)));
            parts.extend(made);
        }
        (parts, lines)
    }

    /// A report about a message as records, and its trace id.
    pub(super) async fn report_part(
        &self,
        envelope: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> (TraceId, Vec<Part>) {
        let settings = self.settings();
        let now = clock::now();
        let mut about = Envelope::clone(envelope);
        if about.tls == TlsWish::Required {
            // RFC 8689 section 5: the text does not go back.
            about.ret = Some(Ret::Headers);
        }
        let trace = self.ids.next(now);
        let unique = trace.to_string();
        let composer = Composer {
            hostname: &settings.hostname,
            now,
            unique: &unique,
        };
        let body = Bytes::from(composer.compose(report, &about, original));
        let body = signing::sign_report(self, body).await;
        self.note(&Event {
            rcpt: Some(&report.to),
            reply: Some(report.kind.action()),
            related: Some(trace),
            ..Event::new(EventKind::Dsn, envelope.trace, now)
        });
        mail_log::notified(envelope.trace, trace, &report.to, report.kind.action());
        let parts = self
            .router
            .report_parts(&settings, envelope, report, trace, body, now);
        (trace, parts)
    }

    /// Whether a report may be sent: its address has not had enough in this hour. What is held back is
    /// recorded.
    pub(super) fn may_report(&self, report: &Report, about: TraceId) -> bool {
        let (max, now) = (self.settings().delivery.reports_per_hour_max, clock::now());
        let may = self
            .report_limit
            .borrow_mut()
            .may_send(&report.to, max, now);
        if !may {
            self.metrics.limited();
            self.note(&Event {
                rcpt: Some(&report.to),
                reply: Some("limited"),
                ..Event::new(EventKind::Dsn, about, now)
            });
            tracing::warn!(
                queue_id = %about,
                to = %report.to,
                action = report.kind.action(),
                "report not sent: its address had enough in this hour"
            );
        }
        may
    }

    fn note_results(&self, queue: u32, job: &Job, attempt: &Attempt, settlement: &Settlement) {
        self.metrics.attempted(attempt, &job.envelope);
        let now = clock::now();
        let name = self
            .queues
            .borrow()
            .destination(queue)
            .map(ToString::to_string);
        for (recipient, result) in job.envelope.recipients.iter().zip(&attempt.results) {
            let expired = settlement.expired.contains(&recipient.address);
            let kind = match result.disposition {
                Disposition::Delivered => EventKind::Delivered,
                Disposition::Failed => EventKind::Bounced,
                Disposition::Deferred if expired => EventKind::Expired,
                Disposition::Deferred => EventKind::Deferred,
            };
            let local = attempt.remote == "local";
            self.metrics.settled(result.disposition, local, expired);
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
            self.note(&Event {
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
