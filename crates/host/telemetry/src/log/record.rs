//! Events as packets for another process of the system, which sends them to a collector.
//!
//! A packet is one [`LogRecord`] in JSON. The sender never waits: a packet without space is lost, and the next packet says how many were.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::level::LogLevel;
use super::values::{REDACTED, VALUE_OCTETS_MAX, is_secret, now};
use crate::trace::cut;

/// The most octets of a packet.
pub const PACKET_OCTETS_MAX: usize = 64 * 1024;

/// An event of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// The time in milliseconds since 1970.
    #[serde(rename = "t")]
    pub time_ms: u64,
    /// The importance.
    #[serde(rename = "s")]
    pub severity: LogLevel,
    /// The role of the process.
    #[serde(rename = "r")]
    pub role: String,
    /// The number of the process.
    #[serde(rename = "p")]
    pub pid: u32,
    /// The text, of [`VALUE_OCTETS_MAX`] octets at most.
    #[serde(rename = "m")]
    pub message: String,
    /// The fields in their order. Values of fields whose names speak of secrets are replaced.
    #[serde(rename = "f", default)]
    pub fields: Vec<(String, FieldValue)>,
    /// The number of records lost by the process before.
    #[serde(rename = "l", default)]
    pub lost: u64,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldValue {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// Any other value as a text, of [`VALUE_OCTETS_MAX`] octets at most.
    Text(String),
}

impl LogRecord {
    /// The record as a packet; `None` for one that is too long.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let packet = serde_json::to_vec(self).ok()?;
        (packet.len() <= PACKET_OCTETS_MAX).then_some(packet)
    }

    /// Reads a packet; `None` for octets that are no record.
    #[must_use]
    pub fn decode(packet: &[u8]) -> Option<Self> {
        serde_json::from_slice(packet).ok()
    }
}

type Send = Box<dyn Fn(&[u8]) -> io::Result<()> + std::marker::Send + Sync>;

/// Where packets go, once a process knows; clones share it.
#[derive(Clone)]
pub struct Exports(Arc<Shared>);

struct Shared {
    role: String,
    send: OnceLock<Send>,
    lost: AtomicU64,
}

impl fmt::Debug for Exports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_open = self.0.send.get().is_some();
        f.debug_struct("Exports")
            .field("is_open", &is_open)
            .finish()
    }
}

impl Exports {
    pub(super) fn of(role: &str) -> Self {
        Self(Arc::new(Shared {
            role: role.to_owned(),
            send: OnceLock::new(),
            lost: AtomicU64::new(0),
        }))
    }

    /// Sends each event by `send` from now on, beside the usual output. `send` must not wait; a second call changes nothing.
    pub fn open(
        &self,
        send: impl Fn(&[u8]) -> io::Result<()> + std::marker::Send + Sync + 'static,
    ) {
        let _ = self.0.send.set(Box::new(send));
    }

    fn record(&self, event: &Event<'_>) {
        let shared = &self.0;
        let Some(send) = shared.send.get() else {
            return;
        };
        let mut fields = Gathered::default();
        event.record(&mut fields);
        let lost = shared.lost.swap(0, Ordering::Relaxed);
        let record = LogRecord {
            time_ms: now().as_millis(),
            severity: LogLevel::of(*event.metadata().level()),
            role: shared.role.clone(),
            pid: std::process::id(),
            message: fields.message,
            fields: fields.rest,
            lost,
        };
        let is_sent = record.encode().is_some_and(|packet| send(&packet).is_ok());
        if !is_sent {
            shared
                .lost
                .fetch_add(lost.saturating_add(1), Ordering::Relaxed);
        }
    }
}

/// Hands events over. The fields of spans are left out.
pub(super) struct ExportLayer(Exports);

impl ExportLayer {
    pub(super) fn new(exports: &Exports) -> Self {
        Self(exports.clone())
    }
}

impl<S: Subscriber> Layer<S> for ExportLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.record(event);
    }
}

/// The fields of an event.
#[derive(Default)]
struct Gathered {
    message: String,
    rest: Vec<(String, FieldValue)>,
}

impl Gathered {
    fn add(&mut self, field: &Field, value: FieldValue) {
        let value = match (is_secret(field.name()), value) {
            (true, _) => FieldValue::Text(REDACTED.to_owned()),
            (false, FieldValue::Text(text)) => {
                FieldValue::Text(cut(&text, VALUE_OCTETS_MAX).to_owned())
            }
            (false, other) => other,
        };
        match (field.name(), value) {
            ("message", FieldValue::Text(text)) => self.message = text,
            (name, value) => self.rest.push((name.to_owned(), value)),
        }
    }
}

impl Visit for Gathered {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, FieldValue::Text(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, FieldValue::Text(value.to_owned()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add(field, FieldValue::Text(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let value = i64::try_from(value);
        let text = |_| FieldValue::Text("more than 2^63".to_owned());
        self.add(field, value.map_or_else(text, FieldValue::Integer));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, FieldValue::Integer(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, FieldValue::Bool(value));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// What a process sends while `act` logs. The first `full` packets find no space.
    fn sent(full: usize, act: impl FnOnce()) -> Vec<LogRecord> {
        let (exports, packets) = (Exports::of("gateway"), Arc::new(Mutex::new(Vec::new())));
        let subscriber = tracing_subscriber::registry().with(ExportLayer::new(&exports));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("nobody listens yet");
            let (into, tries) = (Arc::clone(&packets), AtomicU64::new(0));
            exports.open(move |packet| {
                if tries.fetch_add(1, Ordering::Relaxed) < full as u64 {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                into.lock()
                    .unwrap()
                    .push(LogRecord::decode(packet).unwrap());
                Ok(())
            });
            act();
        });
        let packets = packets.lock().unwrap();
        packets.clone()
    }

    #[test]
    fn an_event_is_a_record_without_secrets() {
        let long = "x".repeat(3 * VALUE_OCTETS_MAX);
        let records = sent(0, || {
            tracing::warn!(peer = %"192.0.2.1", code = 550, tls = true, password = "s3cret", long, "re\"fused");
        });
        let [record] = records.as_slice() else {
            panic!("{records:?}");
        };
        assert_eq!(record.message, "re\"fused");
        assert_eq!(
            (record.role.as_str(), record.severity.number()),
            ("gateway", 13)
        );
        assert_eq!(record.pid, std::process::id());
        let text = |text: &str| FieldValue::Text(text.to_owned());
        let expected = [
            ("peer", text("192.0.2.1")),
            ("code", FieldValue::Integer(550)),
            ("tls", FieldValue::Bool(true)),
            ("password", text(REDACTED)),
        ];
        for (found, expected) in record.fields.iter().zip(expected) {
            assert_eq!((found.0.as_str(), &found.1), (expected.0, &expected.1));
        }
        assert!(
            matches!(&record.fields[4].1, FieldValue::Text(cut) if cut.len() <= VALUE_OCTETS_MAX)
        );
    }

    #[test]
    fn lost_records_are_counted_in_the_next_one() {
        let records = sent(3, || {
            for number in 0..5 {
                tracing::info!(number, "line");
            }
        });
        let lost: Vec<u64> = records.iter().map(|record| record.lost).collect();
        assert_eq!(lost, [3, 0]);
        assert_eq!(LogRecord::decode(b"{}"), None);
        assert_eq!(LogRecord::decode(b"\xff"), None);
    }
}
