//! Lines about messages for other systems (`[records]`): they get into two queues of the group together with
//! what they tell of ([`ledger`](super::ledger)), and from there into a file or to a web server
//! ([`export`](super::export)). `docs/internals/records.md` says what holds for them.

mod error;

use std::cell::Cell;
use std::fs;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify};
use vere_export::{FileOptions, FileSink, Sink, SinkError, WebhookOptions, WebhookSink};
use vere_queue::ledger::{FINISHED_QUEUE, NOTICES_QUEUE};
use vere_queue::order::ORDERS_QUEUE;
use vere_settings::{RecordSink, Settings};
use vere_spool::owner::Batch;
use vere_spoolwire::QueueId;
use vere_units::Secret;

pub use error::EventTargetError;

/// Lines with their queues.
pub(super) type Lines = Vec<(QueueId, Bytes)>;

/// The target of event lines.
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
    pub(super) fn new(settings: &Settings) -> Result<Option<Self>, EventTargetError> {
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
                let key = read.map_err(|source| EventTargetError::Secret {
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
                Target::Webhook(sink.map_err(EventTargetError::Webhook)?)
            }
        };
        Ok(Some(Self(Mutex::new(target))))
    }

    /// Gives lines to the target; returns once they are safe there.
    ///
    /// # Errors
    /// When the target does not take them.
    pub(super) async fn take(&self, lines: &[Bytes]) -> Result<(), SinkError> {
        self.0.lock().await.take(lines).await
    }
}

/// The event lines of one group.
#[derive(Debug)]
pub(super) struct EventLines {
    /// Whether lines are kept.
    on: bool,
    /// The queue of lines about ends of messages, once known.
    pub(super) finished: Cell<Option<QueueId>>,
    /// The queue of notices, once known.
    pub(super) notices: Cell<Option<QueueId>>,
    /// Octets of waiting lines.
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

    /// Octets of waiting lines.
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

    /// More lines are safe in the spool.
    pub(super) fn stored(&self, octets: u64) {
        self.waiting.set(self.waiting.get() + octets);
        self.changed.notify_one();
    }

    /// So many octets of lines were found in the spool.
    pub(super) fn found(&self, octets: u64) {
        self.waiting.set(octets);
        self.changed.notify_one();
    }

    /// Returns when more lines may be stored.
    pub(super) async fn more(&self) {
        self.changed.notified().await;
    }

    /// Lines have left the spool.
    pub(super) fn gone(&self, octets: u64) {
        self.waiting.set(self.waiting.get().saturating_sub(octets));
    }

    /// Addresses lines to a queue of lines; none where that queue is not known.
    pub(super) fn told(queue: &Cell<Option<QueueId>>, lines: Vec<String>) -> Lines {
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

/// Returns the octets of lines.
pub(super) fn octets(lines: &Lines) -> u64 {
    lines.iter().map(|(_, line)| line.len() as u64).sum()
}

/// Whether this is the name of a queue of lines.
pub(super) fn is_lines(name: &str) -> bool {
    [FINISHED_QUEUE, NOTICES_QUEUE].contains(&name)
}
