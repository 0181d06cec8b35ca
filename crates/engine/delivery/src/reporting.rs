//! Reports to senders (DSN): written once, and stored in the same batch as the end of the message.

use std::rc::Rc;

use bytes::Bytes;
use vere_queue::{Envelope, Job, Report, Settlement};
use vere_spoolwire::{Batch, NodeRefusal, QueueId, SpoolError};

use crate::ending::end_of;
use crate::group::Group;
use crate::host::{DirectoryAway, Happened, Host};
use crate::lines::Lines;
use crate::notice::Notice;
use crate::reading::{self, POST_RETRY};

/// The reports about an attempt, with their lines for other systems.
#[derive(Debug)]
pub(crate) struct Notices {
    notices: Vec<Notice>,
    lines: Lines,
}

/// Why reports are not stored yet.
#[derive(Debug)]
pub(crate) enum Unstored {
    Spool(SpoolError),
    /// The directory cannot say where the sender's mail goes.
    Directory,
}

impl From<DirectoryAway> for Unstored {
    fn from(DirectoryAway: DirectoryAway) -> Self {
        Self::Directory
    }
}

impl From<SpoolError> for Unstored {
    fn from(error: SpoolError) -> Self {
        Self::Spool(error)
    }
}

impl<H: Host> Group<H> {
    /// Waits for a turn to end another message with reports. The limit keeps a mass bounce from creating reports
    /// faster than the spool stores them.
    pub(crate) async fn room_for_reports(&self) {
        drop(self.host.turn().await);
    }

    /// Stores the reports of a settlement, and its lines for other systems, together with the end of the original.
    /// Until that succeeds the original stays in the spool, so that nothing is lost.
    ///
    /// A report about a missing original is stored without the message, and without an end of the record.
    pub(crate) async fn conclude(
        self: &Rc<Self>,
        queue: QueueId,
        job: &mut Job,
        settlement: &mut Settlement,
        finished: Lines,
    ) {
        let mut end = end_of(queue, job, settlement);
        let mut made = None;
        let _turn = match settlement.reports.as_slice() {
            [] => None,
            _ => Some(self.turn_to_report(job).await),
        };
        while !settlement.reports.is_empty() || !finished.is_empty() {
            let reports = &settlement.reports;
            let stored = self.try_conclude(queue, job, &end, (reports, &finished), &mut made);
            match stored.await {
                Ok(()) => return,
                Err(Unstored::Spool(SpoolError::Closed)) => return,
                Err(Unstored::Spool(SpoolError::Refused(NodeRefusal::NoRecord)))
                    if !end.is_empty() =>
                {
                    tracing::error!(
                        queue_id = %job.envelope.head.trace,
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
                    tracing::warn!(queue_id = %job.envelope.head.trace, ?error, "cannot store a report yet");
                    self.host.pause(POST_RETRY).await;
                }
            }
        }
        self.post_until_taken(end).await;
    }

    /// Waits for a turn. The message leaves memory meanwhile; the spool has a copy.
    async fn turn_to_report(&self, job: &mut Job) -> H::Turn {
        if let Some(turn) = self.host.try_turn() {
            return turn;
        }
        job.body = None;
        self.host.turn().await
    }

    async fn try_conclude(
        self: &Rc<Self>,
        queue: QueueId,
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

    /// The reported message; `None` if its record is not in the spool.
    async fn original(&self, queue: QueueId, job: &Job) -> Result<Option<Bytes>, SpoolError> {
        if let Some(body) = &job.body {
            return Ok(Some(body.clone()));
        }
        let found = reading::record(&self.host, queue, job.record).await?;
        Ok(found.map(|record| record.body))
    }

    /// Makes the reports about an attempt.
    ///
    /// # Errors
    /// [`Unstored::Directory`].
    pub(crate) async fn notices(
        &self,
        queue: QueueId,
        job: &Job,
        original: &Bytes,
        reports: &[Report],
    ) -> Result<Notices, Unstored> {
        let mut notices = Vec::with_capacity(reports.len());
        let mut lines = Lines::new();
        for report in reports {
            let notice = self.host.write(&job.envelope, original, report).await?;
            lines.extend(self.report_lines(queue, job, report, notice.sent()));
            notices.push(notice);
        }
        Ok(Notices { notices, lines })
    }

    /// Stores reports and other lines together with the end of the reported messages, then registers the reports.
    ///
    /// # Errors
    /// As [`Group::store`]; the caller may retry then.
    pub(crate) async fn store_notices(
        self: &Rc<Self>,
        end: Batch,
        about: &Envelope,
        made: &Notices,
        finished: &Lines,
    ) -> Result<(), Unstored> {
        let parts = made
            .notices
            .iter()
            .flat_map(|notice| notice.parts.iter().cloned());
        let parts = parts.collect();
        let lines = [finished.as_slice(), made.lines.as_slice()].concat();
        self.store(end, parts, &lines).await?;
        for notice in &made.notices {
            self.host
                .tell(&Happened::Reported(about.head.trace, notice));
        }
        Ok(())
    }
}
