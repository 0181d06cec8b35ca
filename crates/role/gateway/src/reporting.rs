//! Reports to senders (DSN): composed once, stored in the batch that ends what they tell of, and noted when they are.

use std::rc::Rc;

use bytes::Bytes;
use tokio::sync::SemaphorePermit;
use vere_queue::report::Composer;
use vere_queue::{Envelope, Job, Report, ReportKind, Ret, Settlement, TlsWish};
use vere_smtp::refusal::Refusal;
use vere_spool::owner::Batch;
use vere_spoolwire as spoolwire;
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use super::ending::end_of;
use super::event_lines::Lines;
use super::group::Group;
use super::part::Part;
use super::process::Process;
use super::reading::{self, POST_RETRY};
use super::{clock, mail_log, signing};
use vere_link::link::SpoolError;

/// A report ready to be stored.
#[derive(Debug)]
pub(super) struct Notice {
    kind: ReportKind,
    to: String,
    trace: TraceId,
    /// Its records; none where the sender's address leads nowhere.
    parts: Vec<Part>,
}

impl Notice {
    /// Its trace id, if anybody gets it.
    pub(super) fn sent(&self) -> Option<TraceId> {
        (!self.parts.is_empty()).then_some(self.trace)
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = Part> {
        self.parts.iter().cloned()
    }
}

/// The reports about an attempt, and what other systems are told of them.
#[derive(Debug)]
pub(super) struct Notices {
    notices: Vec<Notice>,
    lines: Lines,
}

/// Why reports are not stored yet.
#[derive(Debug)]
pub(super) enum Unstored {
    Spool(SpoolError),
    /// The directory cannot say where the sender's mail goes.
    Directory,
}

impl From<SpoolError> for Unstored {
    fn from(error: SpoolError) -> Self {
        Self::Spool(error)
    }
}

impl Group {
    /// Waits for a turn to end another message with reports. The limit keeps a mass bounce from creating reports
    /// faster than the spool stores them.
    pub(super) async fn room_for_reports(&self) {
        drop(self.storing.acquire().await);
    }

    /// Stores the reports of a settlement, and what is told of it, together with the end of the original.
    /// Until that succeeds the original stays in the spool, so that nothing is lost.
    ///
    /// An original that the spool does not have any more is no reason to hold the report back: it goes
    /// without the message, and without the end of what is gone.
    pub(super) async fn conclude(
        self: &Rc<Self>,
        queue: u32,
        job: &mut Job,
        settlement: &mut Settlement,
        finished: Lines,
    ) {
        let mut end = end_of(queue, job, settlement);
        let mut made = None;
        let _turn = match settlement.reports.as_slice() {
            [] => None,
            _ => self.turn_to_report(job).await,
        };
        while !settlement.reports.is_empty() || !finished.is_empty() {
            let reports = &settlement.reports;
            let stored = self.try_conclude(queue, job, &end, (reports, &finished), &mut made);
            match stored.await {
                Ok(()) => return,
                Err(Unstored::Spool(SpoolError::Closed)) => return,
                Err(Unstored::Spool(SpoolError::Refused(spoolwire::Refusal::NoRecord)))
                    if !end.is_empty() =>
                {
                    tracing::error!(
                        queue_id = %job.envelope.trace,
                        "record is not in the spool, its report is stored without it"
                    );
                    end = Batch::new();
                }
                // A delay report must not block the message that is to free space.
                Err(_) if finished.is_empty() && settlement.put_delay_off() => {
                    end = end_of(queue, job, settlement);
                    made = None;
                }
                Err(error) => {
                    tracing::warn!(queue_id = %job.envelope.trace, ?error, "cannot store a report yet");
                    tokio::time::sleep(POST_RETRY).await;
                }
            }
        }
        self.post_until_taken(end).await;
    }

    /// Waits for one's turn, without the message in memory: the spool has it.
    async fn turn_to_report(&self, job: &mut Job) -> Option<SemaphorePermit<'_>> {
        if let Ok(turn) = self.storing.try_acquire() {
            return Some(turn);
        }
        job.body = None;
        self.storing.acquire().await.ok()
    }

    async fn try_conclude(
        self: &Rc<Self>,
        queue: u32,
        job: &Job,
        end: &Batch,
        (reports, finished): (&[Report], &Lines),
        made: &mut Option<Notices>,
    ) -> Result<(), Unstored> {
        let notices = match made {
            Some(notices) => notices,
            None => {
                let original = match reports {
                    [] => None,
                    _ => self.original(queue, job).await?,
                };
                let original = original.unwrap_or_default();
                made.insert(self.notices(queue, job, &original, reports).await?)
            }
        };
        self.store_notices(end.clone(), &job.envelope, notices, finished)
            .await
    }

    /// The message that a report is about; `None`: the spool does not have it.
    async fn original(&self, queue: u32, job: &Job) -> Result<Option<Bytes>, SpoolError> {
        if let Some(body) = &job.body {
            return Ok(Some(body.clone()));
        }
        let found = reading::record(&self.link, queue, job.record).await?;
        Ok(found.map(|record| record.body))
    }

    /// Makes the reports about an attempt.
    ///
    /// # Errors
    /// [`Unstored::Directory`].
    pub(super) async fn notices(
        &self,
        queue: u32,
        job: &Job,
        original: &Bytes,
        reports: &[Report],
    ) -> Result<Notices, Unstored> {
        let mut notices = Vec::with_capacity(reports.len());
        let mut lines = Lines::new();
        for report in reports {
            let notice = self.process.notice(&job.envelope, original, report).await;
            let notice = notice.map_err(|_| Unstored::Directory)?;
            lines.extend(self.report_lines(queue, job, report, notice.sent()));
            notices.push(notice);
        }
        Ok(Notices { notices, lines })
    }

    /// Stores reports and other lines together with the end of the reported messages, then registers the reports.
    ///
    /// # Errors
    /// As [`Group::store`]; the caller may retry then.
    pub(super) async fn store_notices(
        self: &Rc<Self>,
        end: Batch,
        about: &Envelope,
        made: &Notices,
        finished: &Lines,
    ) -> Result<(), Unstored> {
        let parts = made.notices.iter().flat_map(Notice::parts).collect();
        let lines = [finished.as_slice(), made.lines.as_slice()].concat();
        self.store(end, parts, &lines).await?;
        for notice in &made.notices {
            self.process.note_notice(about.trace, notice);
        }
        Ok(())
    }
}

impl Process {
    /// Makes a report about a message.
    ///
    /// # Errors
    /// When the directory cannot say where the sender's mail goes.
    pub(super) async fn notice(
        &self,
        envelope: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> Result<Notice, Refusal> {
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
        let parts = self
            .router
            .report_parts(&settings, envelope, report, trace, body, now)?;
        Ok(Notice {
            kind: report.kind,
            to: report.to.clone(),
            trace,
            parts,
        })
    }

    /// Tells of a report that is stored, or that nobody gets.
    pub(super) fn note_notice(&self, about: TraceId, notice: &Notice) {
        let (to, action) = (notice.to.as_str(), notice.kind.action());
        let sent = notice.sent();
        self.note(&Event {
            rcpt: Some(to),
            reply: Some(if sent.is_some() {
                action
            } else {
                "no such address"
            }),
            related: sent,
            ..Event::new(EventKind::Dsn, about, clock::now())
        });
        match sent {
            Some(trace) => {
                self.metrics.notified(notice.kind);
                mail_log::notified(about, trace, to, action);
            }
            None => tracing::warn!(
                queue_id = %about,
                to,
                action,
                "report not sent: its address leads nowhere"
            ),
        }
    }

    /// Whether a report may be sent: its address has not had enough in this hour. What is held back is
    /// recorded.
    pub(super) fn may_report(&self, report: &Report, about: TraceId) -> bool {
        let max = self.settings().delivery.reports_per_hour_max;
        // The wall clock may be put ahead: the hours are not over for that.
        let now = clock::steady();
        let may = self
            .report_limit
            .borrow_mut()
            .may_send(&report.to, max, now);
        if !may {
            self.metrics.limited();
            self.note(&Event {
                rcpt: Some(&report.to),
                reply: Some("limited"),
                ..Event::new(EventKind::Dsn, about, clock::now())
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
}
