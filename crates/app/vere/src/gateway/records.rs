//! Lines about messages for other systems (`[records]`): they get into two queues of the group together with
//! what they tell of, and from there into a file or to a web server. `docs/internals/records.md` says what
//! holds for them.

mod error;

use std::cell::Cell;
use std::fs;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify};
use vere_export::{FileOptions, FileSink, Sink, SinkError, WebhookOptions, WebhookSink};
use vere_queue::ledger::{FINISHED_QUEUE, NOTICES_QUEUE, OrderNotice};
use vere_queue::order::ORDERS_QUEUE;
use vere_queue::{
    Attempt, Destination, Envelope, Job, Ledger, Order, QueueNumber, Report, Settlement, Subject,
};
use vere_settings::{RecordSink, Settings};
use vere_spool::owner::Batch;
use vere_spoolwire::{QueueId, QueueLimits, QueueStat, RecordId, Refusal};
use vere_units::{Secret, Timestamp, TraceId};

use super::clock;
use super::group::Group;
use super::reading::POST_RETRY;
use crate::spool::link::SpoolError;
pub(super) use error::RecordsError;

/// Lines taken at once.
const BLOCK_LINES: u32 = 1_000;
/// Octets taken at once, about.
const BLOCK_OCTETS: u32 = 1 << 20;
/// What comes within this time is written together: every writing is synced.
const GATHER: Duration = Duration::from_millis(200);
/// Pauses after a failure, doubled from the first to the last.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Lines with the queues they get into.
pub(super) type Lines = Vec<(QueueId, Bytes)>;

/// What takes event lines.
#[derive(Debug)]
enum Target {
    File(FileSink),
    Webhook(WebhookSink),
}

impl Sink for Target {
    async fn take(&mut self, lines: &[Bytes]) -> Result<(), SinkError> {
        match self {
            Self::File(sink) => sink.take(lines).await,
            Self::Webhook(sink) => sink.take(lines).await,
        }
    }
}

/// Where event lines go, for all groups of the process.
#[derive(Debug)]
pub(super) struct EventTarget(Mutex<Target>);

impl EventTarget {
    /// Returns the target that the settings name, if they name one.
    ///
    /// # Errors
    /// When the secret or the CA certificates cannot be read, or the library for TLS not be used.
    pub(super) fn new(settings: &Settings) -> Result<Option<Self>, RecordsError> {
        let target = match settings.records.as_ref().map(|records| &records.to) {
            None => return Ok(None),
            Some(RecordSink::File { path, size_max }) => Target::File(FileSink::new(FileOptions {
                path: path.clone(),
                size_max: *size_max,
            })),
            Some(RecordSink::Webhook {
                url,
                ca,
                secret,
                timeout,
            }) => {
                let read = fs::read_to_string(secret);
                let key = read.map_err(|source| RecordsError::Secret {
                    path: secret.clone(),
                    source,
                })?;
                let options = WebhookOptions {
                    url: url.clone(),
                    ca: ca.clone(),
                    key: Secret::new(key.trim_end_matches(['\r', '\n']).to_owned()),
                    timeout: timeout.duration(),
                };
                let sink = WebhookSink::new(options);
                Target::Webhook(sink.map_err(RecordsError::Webhook)?)
            }
        };
        Ok(Some(Self(Mutex::new(target))))
    }

    async fn take(&self, lines: &[Bytes]) -> Result<(), SinkError> {
        self.0.lock().await.take(lines).await
    }
}

/// The event lines of one group.
#[derive(Debug)]
pub(super) struct EventLines {
    /// Whether lines are kept.
    on: bool,
    finished: Cell<Option<QueueId>>,
    notices: Cell<Option<QueueId>>,
    /// Octets that wait.
    waiting: Cell<u64>,
    /// Notified when more lines are stored.
    changed: Notify,
}

impl EventLines {
    /// Returns the lines of a group whose queues are not known yet.
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            finished: Cell::new(None),
            notices: Cell::new(None),
            waiting: Cell::new(0),
            changed: Notify::new(),
        }
    }

    /// Octets of lines that wait.
    pub(super) const fn waiting(&self) -> u64 {
        self.waiting.get()
    }

    /// Whether lines are kept.
    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    /// Whether a queue of the spool is one that mail need not be looked for in; and whether it is to be
    /// emptied here.
    pub(super) fn is_other(&self, queue: &str) -> bool {
        let lines = [FINISHED_QUEUE, NOTICES_QUEUE].contains(&queue);
        queue == ORDERS_QUEUE || lines && !self.is_on()
    }

    fn stored(&self, octets: u64) {
        self.waiting.set(self.waiting.get() + octets);
        self.changed.notify_one();
    }

    fn gone(&self, octets: u64) {
        self.waiting.set(self.waiting.get().saturating_sub(octets));
    }

    fn told(queue: &Cell<Option<QueueId>>, lines: Vec<String>) -> Lines {
        let Some(queue) = queue.get() else {
            return Vec::new();
        };
        let lines = lines.into_iter();
        lines.map(|line| (queue, Bytes::from(line))).collect()
    }
}

/// Adds lines to a batch, behind everything whose numbers matter.
pub(super) fn put(lines: &Lines, batch: &mut Batch) {
    for (queue, line) in lines {
        batch.put(*queue, line.clone(), Bytes::new());
    }
}

fn octets(lines: &Lines) -> u64 {
    lines.iter().map(|(_, line)| line.len() as u64).sum()
}

/// The end of a record, with what is told of it.
#[derive(Debug)]
pub(super) struct Finish {
    pub(super) queue: QueueNumber,
    pub(super) record: u64,
    pub(super) size: u32,
    pub(super) lines: Lines,
}

impl Finish {
    /// What ends it. A node that is full takes nothing new, but lets records change places: the message
    /// becomes the record of its line, and gives its room back with it.
    fn add_to(&self, batch: &mut Batch, full: bool) {
        let (queue, record) = (QueueId(self.queue), RecordId(self.record));
        match self.lines.as_slice() {
            [(to, line)] if full => {
                batch.move_to(queue, record, *to, Some(line.clone()));
            }
            _ => {
                batch.delete(queue, record);
                put(&self.lines, batch);
            }
        }
    }
}

impl Group {
    fn ledger<T>(&self, write: impl FnOnce(&Ledger<'_>) -> T) -> T {
        write(&Ledger {
            gateway: &self.process.settings().gateway.name,
            now: clock::now(),
        })
    }

    fn about<T>(
        &self,
        queue: QueueNumber,
        record: u64,
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

    /// What is told of the end of an attempt.
    pub(super) fn finished_lines(
        &self,
        queue: QueueNumber,
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

    /// What is told of a message that an operator removes.
    pub(super) fn removed_lines(
        &self,
        queue: QueueNumber,
        record: u64,
        envelope: &Envelope,
    ) -> Lines {
        let lines = self.about(queue, record, envelope, |ledger, subject| {
            ledger.removed(subject)
        });
        EventLines::told(&self.event_lines.finished, lines)
    }

    /// What is told of a report to a sender; `sent`: its trace id.
    pub(super) fn report_lines(
        &self,
        queue: QueueNumber,
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

    /// What is told of a report about a message that is being taken.
    pub(super) fn expanded_lines(
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

    /// What is told of an operator's order.
    pub(super) fn order_lines(&self, order: &Order, change: OrderNotice) -> Lines {
        if !self.event_lines.is_on() {
            return Vec::new();
        }
        let id = self.process.trace_id();
        let line = self.ledger(|ledger| ledger.ordered(id, order, change));
        EventLines::told(&self.event_lines.notices, vec![line])
    }

    /// What is told of a message that an operator holds or releases.
    pub(super) fn hold_lines(
        &self,
        destination: &Destination,
        message: TraceId,
        change: OrderNotice,
        until: Option<Timestamp>,
    ) -> Lines {
        if !self.event_lines.is_on() {
            return Vec::new();
        }
        let id = self.process.trace_id();
        let line = self.ledger(|ledger| ledger.held(id, destination, message, change, until));
        EventLines::told(&self.event_lines.notices, vec![line])
    }

    /// Lines are safe in the spool.
    pub(super) fn lines_stored(&self, lines: &Lines) {
        if !lines.is_empty() {
            self.event_lines.stored(octets(lines));
        }
    }

    /// Whether so many lines wait that no mail is to be taken.
    pub(super) fn too_many_lines(&self) -> bool {
        let settings = self.process.settings();
        let max = settings.records.as_ref().map(|records| records.waiting_max);
        max.is_some_and(|max| self.event_lines.waiting() > max.as_u64())
    }

    /// Ends records with their lines in one transaction. Falls back to one transaction per record if some record is
    /// missing. Returns once the end is safe or the link has closed.
    pub(super) async fn finish(self: Rc<Self>, ends: Vec<Finish>) {
        if !self.try_finish(&ends).await {
            // A missing record refused the whole batch: end the remaining records one by one.
            for end in &ends {
                if !self.try_finish(std::slice::from_ref(end)).await {
                    tracing::error!(
                        record = end.record,
                        "record is not in the spool, what is told of it is lost"
                    );
                }
            }
        }
    }

    /// Ends the records in one transaction. Returns `false`, without effect, if a record is missing.
    async fn try_finish(&self, ends: &[Finish]) -> bool {
        let mut full = false;
        loop {
            let mut batch = Batch::new();
            for end in ends {
                end.add_to(&mut batch, full);
            }
            match self.link.commit(batch).await {
                Ok(_) => {
                    let moved = |end: &Finish| if full { u64::from(end.size) } else { 0 };
                    let sum = ends.iter().map(|end| octets(&end.lines) + moved(end)).sum();
                    self.event_lines.stored(sum);
                    return true;
                }
                Err(SpoolError::Closed) => return true,
                Err(SpoolError::Refused(refusal)) if refusal.is_temporary() => full = !full,
                Err(SpoolError::Refused(Refusal::NoRecord)) => return false,
                Err(error) => tracing::warn!(?error, "cannot end records yet"),
            }
            if !full {
                tokio::time::sleep(POST_RETRY).await;
            }
        }
    }

    /// A queue of lines was found in the spool.
    pub(super) fn found_lines(&self, stat: &QueueStat) {
        let place = match stat.name.as_str() {
            FINISHED_QUEUE => &self.event_lines.finished,
            _ => &self.event_lines.notices,
        };
        if self.event_lines.is_on() {
            place.set(Some(stat.id));
        } else if stat.length > 0 {
            tracing::warn!(
                queue = %stat.name,
                lines = stat.length,
                "lines wait for [records], which the settings do not have"
            );
        }
    }

    /// Creates the missing queues for event lines, before the first line is written.
    ///
    /// # Errors
    /// When the spool cannot make them now.
    pub(super) async fn prepare_records(&self, waiting: u64) -> Result<(), SpoolError> {
        if !self.event_lines.is_on() {
            return Ok(());
        }
        for (name, place) in [
            (FINISHED_QUEUE, &self.event_lines.finished),
            (NOTICES_QUEUE, &self.event_lines.notices),
        ] {
            if place.get().is_none() {
                let made = self.link.create_queue(name, QueueLimits::UNLIMITED).await?;
                place.set(Some(made));
            }
        }
        self.event_lines.waiting.set(waiting);
        self.event_lines.changed.notify_one();
        Ok(())
    }
}

/// Whether this is the name of a queue of lines.
pub(super) fn is_lines(name: &str) -> bool {
    [FINISHED_QUEUE, NOTICES_QUEUE].contains(&name)
}

/// Brings the lines of a group to where they go, until the gateway ends.
pub(super) async fn drain(group: Rc<Group>) {
    let process = Rc::clone(&group.process);
    let Some(target) = &process.event_target else {
        return;
    };
    let mut from = [RecordId(0); 2];
    let mut pause = PAUSE_MIN;
    loop {
        let queues = [
            group.event_lines.finished.get(),
            group.event_lines.notices.get(),
        ];
        let mut drained = Ok(false);
        for (queue, from) in queues.into_iter().zip(&mut from) {
            if let (Some(queue), Ok(before)) = (queue, &drained) {
                let before = *before;
                let block = drain_block(&group, target, queue, from).await;
                drained = block.map(|more| more || before);
            }
        }
        match drained {
            Ok(more) => {
                pause = PAUSE_MIN;
                if !more {
                    group.event_lines.changed.notified().await;
                    tokio::time::sleep(GATHER).await;
                }
            }
            Err(Trouble::Spool(SpoolError::Closed)) => return,
            Err(trouble) => {
                if let Trouble::Sink(error) = &trouble {
                    group.process.metrics.lines_failed();
                    tracing::warn!(%error, "records are not taken; they wait");
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

/// Why lines stay for now.
enum Trouble {
    Spool(SpoolError),
    Sink(SinkError),
}

/// Sends the next lines of a queue to the export target, then ends their records. Returns whether more lines remain.
async fn drain_block(
    group: &Group,
    target: &EventTarget,
    queue: QueueId,
    from: &mut RecordId,
) -> Result<bool, Trouble> {
    let link = &group.link;
    let block = link.fetch(queue, *from, BLOCK_LINES, BLOCK_OCTETS).await;
    let block = block.map_err(Trouble::Spool)?;
    let Some(last) = block.records.last() else {
        return Ok(false);
    };
    // A node shows what is not safe yet: nobody may hear of an end that could be undone.
    link.acknowledged().await.map_err(Trouble::Spool)?;
    let lines: Vec<_> = block.records.iter().map(|one| one.meta.clone()).collect();
    let taken = target.take(&lines).await;
    taken.map_err(Trouble::Sink)?;
    let purged = link.purge(queue, last.id).await;
    purged.map_err(Trouble::Spool)?;
    *from = block.next;
    group.process.metrics.lines_written(lines.len());
    let sizes = block
        .records
        .iter()
        .map(|one| one.meta.len() + one.body.len());
    group.event_lines.gone(sizes.sum::<usize>() as u64);
    Ok(!block.end)
}
