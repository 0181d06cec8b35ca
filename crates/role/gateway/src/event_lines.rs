//! Where lines about messages for other systems go (`[records]`): to a file or a web server. A group stores the lines
//! in two queues, together with what they tell of (`vere_delivery`), and [`export`](super::export) brings them here.
//! `docs/internals/records.md` has their promises.

mod error;

use std::fs;

use bytes::Bytes;
use tokio::sync::Mutex;
use vere_export::{FileOptions, FileSink, Sink, SinkError, WebhookOptions, WebhookSink};
use vere_settings::{RecordSink, Settings};
use vere_units::Secret;

pub use error::EventTargetError;

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
    /// Returns the target from the settings, if any.
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
