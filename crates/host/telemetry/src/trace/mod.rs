//! The trace: every step of every message as one JSON line.
//!
//! [`TraceLog`] takes [`Event`]s from the thread that owns the queues and never makes it wait for the
//! disk: an event is serialised into a memory buffer, and a thread of the log's own writes the buffer
//! out every [`TraceOptions::flush_interval`]. When the disk stands still the buffer is bounded by
//! [`TraceOptions::pending_octets_max`]; further events are counted and reported in the trace as a
//! `lost` line, and no thread waits. The log is not synced: the trace is a history, and the spool
//! keeps the mail.
//!
//! [`find`] reads the files back, newest first. The format is drawn in
//! `docs/internals/trace-log.md`.
//!
//! ```
//! use vere_telemetry::trace::{Event, EventKind, Query, TraceLog, TraceOptions, find};
//! use vere_units::{Timestamp, TraceId};
//!
//! let dir = tempfile::tempdir().unwrap();
//! let log = TraceLog::open(TraceOptions::new(dir.path())).unwrap();
//! let (id, now) = (TraceId::new(7), Timestamp::from_millis(1_760_000_000_000));
//! log.append(&Event {
//!     reverse_path: Some("alice@demo.test"),
//!     size: Some(1204),
//!     ..Event::new(EventKind::Received, id, now)
//! });
//! log.close();
//! let found = find(dir.path(), &Query::TraceId(id), 10).unwrap();
//! assert_eq!(found[0].events[0].size, Some(1204));
//! ```

mod encode;
mod files;
mod read;
mod threads;
mod writer;

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vere_units::{Timestamp, TraceId};

pub use encode::{
    ADDRESS_OCTETS_MAX, FACTS_OCTETS_MAX, LINE_OCTETS_MAX, RULES_OCTETS_MAX, TEXT_OCTETS_MAX,
};
pub(crate) use encode::{cut, escape, is_plain};
pub use read::{FindError, Query, Record, Trace, find};
pub use writer::{OpenError, TraceLog, TraceOptions};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The message was taken from a client; the first event of most traces.
    Received,
    /// Rules gave the message a score and a verdict.
    Judged,
    /// The message is stored for one or several recipients in the queue of their destination.
    Queued,
    /// A delivery attempt began on a connection.
    Attempt,
    /// The next hop or the local store took responsibility.
    Delivered,
    /// An attempt failed for now; `next` says when the next one is due.
    Deferred,
    /// The next hop refused for good.
    Bounced,
    /// The message became older than the expiry of its queue.
    Expired,
    /// A delivery status notification was made; `related` is the trace id of the other message.
    Dsn,
    /// A client's command or message was refused before responsibility was taken.
    Refused,
    /// An operator removed the message from its queue.
    Purged,
    /// An operator holds the message; `next` says until when, if that has an end.
    Held,
    /// An operator released the message.
    Released,
    /// The message was removed from the quarantine by its age.
    Aged,
    /// The message was found in the spool after a restart.
    Recovered,
    /// The message has left the spool without an end recorded here: an operator or another owner
    /// ended the message.
    Lost,
    /// A kind written by a newer version.
    #[serde(other)]
    Unknown,
}

impl EventKind {
    /// The name in the `ev` field.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Judged => "judged",
            Self::Queued => "queued",
            Self::Attempt => "attempt",
            Self::Delivered => "delivered",
            Self::Deferred => "deferred",
            Self::Bounced => "bounced",
            Self::Expired => "expired",
            Self::Dsn => "dsn",
            Self::Refused => "refused",
            Self::Purged => "purged",
            Self::Held => "held",
            Self::Released => "released",
            Self::Aged => "aged",
            Self::Recovered => "recovered",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// An event to write. Fields that do not apply stay `None` and take no space in the file.
///
/// Text may come from a peer unchanged: the text is cut at the limits [`ADDRESS_OCTETS_MAX`] and
/// [`TEXT_OCTETS_MAX`] and escaped, so that no text can break the line or control a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What happened.
    pub kind: EventKind,
    /// The message of the event.
    pub id: TraceId,
    /// When.
    pub at: Timestamp,
    /// The name of the queue (the destination).
    pub queue: Option<&'a str>,
    /// The recipient, without angle brackets.
    pub rcpt: Option<&'a str>,
    /// The reverse-path, without angle brackets; empty for the null reverse-path.
    pub reverse_path: Option<&'a str>,
    /// The `Message-ID` field's value with the angle brackets.
    pub message_id: Option<&'a str>,
    /// Octets of the message.
    pub size: Option<u64>,
    /// How many recipients the transaction has.
    pub recipients: Option<u32>,
    /// The client that sent the message.
    pub peer: Option<SocketAddr>,
    /// The authenticated account.
    pub account: Option<&'a str>,
    /// TLS version of the connection, as `TLSv1.3`.
    pub tls: Option<&'a str>,
    /// Result of SPF for the reverse-path (RFC 7208 section 2.6).
    pub spf: Option<&'a str>,
    /// Result of SPF for the HELO name beside a reverse-path (RFC 7208 section 2.3).
    pub spf_helo: Option<&'a str>,
    /// The verdict about the message.
    pub verdict: Option<&'a str>,
    /// The sum of the weights of all rules that match, as `4.5`.
    pub score: Option<&'a str>,
    /// The rules that match with their weights, as `SPF_FAIL=1.5 DMARC_REJECT=5.0`.
    pub rules: Option<&'a str>,
    /// The facts that were judged, by the encoding of `vere_judge` in base64.
    pub facts: Option<&'a str>,
    /// Reply code of the next hop, or ours when we refused.
    pub code: Option<u16>,
    /// Reply text or reason.
    pub reply: Option<&'a str>,
    /// The next hop: name and address, as `mx1.example.net [192.0.2.1]:25`.
    pub remote: Option<&'a str>,
    /// How long the step took.
    pub duration: Option<Duration>,
    /// The number of the attempt, from 1.
    pub attempt: Option<u32>,
    /// When the next attempt is due.
    pub next: Option<Timestamp>,
    /// The trace id of the notification, or of the message it is about.
    pub related: Option<TraceId>,
}

impl<'a> Event<'a> {
    /// An event without any optional field.
    #[must_use]
    pub const fn new(kind: EventKind, id: TraceId, at: Timestamp) -> Self {
        Event {
            kind,
            id,
            at,
            queue: None,
            rcpt: None,
            reverse_path: None,
            message_id: None,
            size: None,
            recipients: None,
            peer: None,
            account: None,
            tls: None,
            spf: None,
            spf_helo: None,
            verdict: None,
            score: None,
            rules: None,
            facts: None,
            code: None,
            reply: None,
            remote: None,
            duration: None,
            attempt: None,
            next: None,
            related: None,
        }
    }
}

#[cfg(test)]
mod tests;
