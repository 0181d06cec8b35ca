//! A line and its fields; `docs/internals/archive.md` has the table.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use vere_units::{Timestamp, TraceId};

/// Octets of a line, with its line feed. A longer line loses its recipients, and then is left out.
pub(super) const LINE_OCTETS_MAX: usize = 1 << 20;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// A message, probe or report arrived and is safe.
    Arrival,
    /// A message, probe or report was refused before responsibility.
    Refused,
    /// An attempt at a destination ended.
    Attempt,
    /// A local user, a gateway or the next MTA has taken responsibility for recipients.
    Delivery,
    /// A report was made.
    Report,
    /// A message ended in another way: expired, or removed by an operator.
    End,
    /// A bind was accepted.
    BindAccepted,
    /// A bind was refused.
    BindRefused,
    /// An association ended.
    AssociationEnd,
}

/// A recipient and what was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AuditRecipient<'a> {
    /// The O/R address.
    pub address: &'a str,
    /// The originally specified recipient number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// `onward`, `redirected`, `not_ours`, `answered`, `failed`, `consumed`, `delivered`, `deferred`.
    pub decision: &'a str,
    /// The destination: `peer:NAME`, `file:NAME` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<&'a str>,
    /// The cause of a failure: the names of reason and diagnostic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'a str>,
}

/// An event. Absent fields are not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line<'a> {
    /// The time of the event, in RFC 3339.
    #[serde(serialize_with = "displayed")]
    pub at: Timestamp,
    /// The event.
    pub ev: LineKind,
    /// The id in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceId>,
    /// `message`, `probe` or `report`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'a str>,
    /// The MTS identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<&'a str>,
    /// The MTS identifier of the subject of a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<&'a str>,
    /// The sender: `peer:NAME`, `local`, `gateway:NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a str>,
    /// The originator's O/R address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originator: Option<&'a str>,
    /// The content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<&'a str>,
    /// Octets of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_octets: Option<u64>,
    /// `urgent`, `normal` or `non-urgent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<&'a str>,
    /// Domains that the message has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops: Option<u64>,
    /// The recipients, or the destination of a report.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub recipients: &'a [AuditRecipient<'a>],
    /// The number of recipients, if the line would be too long with all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient_count: Option<u64>,
    /// The destination of an attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<&'a str>,
    /// The number of the attempt, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// The result: `transferred`, `deferred`, `failed`, `in_doubt`, `accepted`, `refused`, `released`, `aborted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a str>,
    /// The enhanced status code of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'a str>,
    /// What the other side or the operating system said, or the reason of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<&'a str>,
    /// The number of the association in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association: Option<u64>,
    /// The peer's name in the settings, or the name that it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<&'a str>,
    /// The address and port of the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<&'a str>,
    /// `in`: the peer opened the association; `out`: this MTA did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<&'a str>,
    /// Transfers over the association.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<u64>,
    /// How long the step took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl Line<'_> {
    /// An event without further fields.
    #[must_use]
    pub const fn new(at: Timestamp, ev: LineKind) -> Self {
        Self {
            at,
            ev,
            trace: None,
            kind: None,
            identifier: None,
            about: None,
            source: None,
            originator: None,
            content_type: None,
            content_octets: None,
            priority: None,
            hops: None,
            recipients: &[],
            recipient_count: None,
            destination: None,
            attempt: None,
            result: None,
            status: None,
            said: None,
            association: None,
            peer: None,
            address: None,
            direction: None,
            transfers: None,
            duration_ms: None,
        }
    }

    /// The line with its line feed; nothing if it has more than 1 MiB even without recipients.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        encoded(self).or_else(|| {
            encoded(&Self {
                recipients: &[],
                recipient_count: Some(self.recipients.len() as u64),
                ..self.clone()
            })
        })
    }
}

/// Writes a value in a line of its own.
pub(super) fn encoded(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut out = Bounded(Vec::with_capacity(512));
    let mut serializer = Serializer::with_formatter(&mut out, Printable(CompactFormatter));
    value.serialize(&mut serializer).ok()?;
    out.0.push(b'\n');
    Some(out.0)
}

fn displayed<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// Octets of a line, which end with an error at the bound.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.0.len() + octets.len() >= LINE_OCTETS_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// JSON that can be shown on a terminal as it is: controls that JSON allows, and characters that change the direction of
/// text, are escaped.
struct Printable(CompactFormatter);

impl Formatter for Printable {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(steers_terminal) {
            let (plain, behind) = rest.split_at(at);
            self.0.write_string_fragment(out, plain)?;
            let mut characters = behind.chars();
            if let Some(character) = characters.next() {
                // All of these lie in the basic plane.
                write!(out, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        self.0.write_string_fragment(out, rest)
    }
}

/// Whether a character would change what a terminal shows around it.
pub(crate) fn steers_terminal(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}
