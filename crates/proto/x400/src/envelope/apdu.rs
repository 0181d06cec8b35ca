//! The protocol data units of P1 (`MTS-APDU`).
//!
//! ```text
//! MTS-APDU ::= CHOICE { message [0] Message, probe [2] Probe, report [1] Report }
//! Message  ::= SEQUENCE { envelope MessageTransferEnvelope, content OCTET STRING }
//! ```
//!
//! The envelope of a message is decoded; the content is not inspected, not copied and not encoded again, so
//! that a signature stays valid. The content is a list of pieces of the received octets, since a sender may cut
//! an OCTET STRING in segments.

use bytes::Bytes;
use vere_ber::{
    BerError, END_OF_CONTENTS, Element, Fault, Header, Length, Tag, Value, Writer, decode, encode,
    extent, normalise, segments,
};

use super::message::MessageTransferEnvelope;
use super::probe::ProbeTransferEnvelope;
use super::report::Report;
use crate::domain::MtsIdentifier;
use crate::trace::TraceInformation;

/// Octets of an envelope, at most; the content is not counted.
pub const ENVELOPE_OCTETS_MAX: usize = 64 << 20;
/// Pieces of a content, at most; further pieces lead to one copy. A `writev` takes 1,024 pieces.
const PIECES_MAX: usize = 512;

/// A protocol data unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Apdu {
    /// `message`
    Message(Message),
    /// `probe`
    Probe(ProbeTransferEnvelope),
    /// `report`
    Report(Box<Report>),
}

/// A message: envelope and content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// The envelope.
    pub envelope: MessageTransferEnvelope,
    /// The content.
    pub content: Content,
}

/// The octets of a content, in pieces.
#[derive(Debug, Clone, Default)]
pub struct Content {
    pieces: Vec<Bytes>,
}

/// A fault of octets as a protocol data unit of P1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApduError {
    /// An envelope of too many octets.
    #[error("expected an envelope of at most {ENVELOPE_OCTETS_MAX} octets; found {0}")]
    EnvelopeTooLong(usize),
    /// Wrong BER for the type.
    #[error(transparent)]
    Ber(#[from] BerError),
}

impl From<Fault> for ApduError {
    fn from(fault: Fault) -> Self {
        Self::Ber(fault.into())
    }
}

impl Content {
    /// The content of these octets.
    #[must_use]
    pub fn new(octets: Bytes) -> Self {
        Self {
            pieces: vec![octets],
        }
    }

    /// The number of octets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces
            .iter()
            .map(Bytes::len)
            .fold(0, usize::saturating_add)
    }

    /// Whether there are no octets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces, in order.
    #[must_use]
    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// The octets in one piece; copies if there are several pieces.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self.pieces.as_slice() {
            [] => Bytes::new(),
            [piece] => piece.clone(),
            pieces => pieces.concat().into(),
        }
    }

    /// Reads the OCTET STRING that `octets` are.
    fn read(octets: &Bytes) -> Result<Self, ApduError> {
        let mut pieces = Vec::new();
        for range in segments(octets)? {
            pieces.push(octets.slice(range));
        }
        let content = Self { pieces };
        Ok(if content.pieces.len() > PIECES_MAX {
            Self::new(content.to_bytes())
        } else {
            content
        })
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}

impl Eq for Content {}

impl Apdu {
    /// Reads a protocol data unit. A message is split into envelope and content.
    ///
    /// # Errors
    /// [`ApduError`] names the field that is wrong.
    pub fn split(octets: &Bytes) -> Result<Self, ApduError> {
        let header = Header::read(octets, 0)?;
        match header.tag {
            tag if tag == Tag::context(0) => split_message(octets, header).map(Self::Message),
            tag if tag == Tag::context(1) => {
                read(octets, "report").map(|report| Self::Report(Box::new(report)))
            }
            tag if tag == Tag::context(2) => read(octets, "probe").map(Self::Probe),
            tag => Err(BerError::unexpected("MTS-APDU", tag).into()),
        }
    }

    /// Reads a protocol data unit in pieces, as [`split`](Self::split) reads one. The content of a message stays in the pieces where it is one primitive
    /// OCTET STRING, as nearly all senders write it; other units are copied together.
    ///
    /// # Errors
    /// As [`split`](Self::split).
    pub fn split_pieces(pieces: &[Bytes]) -> Result<Self, ApduError> {
        match pieces {
            [] => Self::split(&Bytes::new()),
            [octets] => Self::split(octets),
            pieces => match message_in_pieces(pieces) {
                Some(message) => Ok(Self::Message(message)),
                None => Self::split(&pieces.concat().into()),
            },
        }
    }

    /// The identifier of the message, probe or report.
    #[must_use]
    pub fn identifier(&self) -> &MtsIdentifier {
        match self {
            Self::Message(message) => &message.envelope.message_identifier,
            Self::Probe(probe) => &probe.probe_identifier,
            Self::Report(report) => &report.envelope.report_identifier,
        }
    }

    /// The trace of the message, probe or report.
    #[must_use]
    pub fn trace_information(&self) -> &TraceInformation {
        match self {
            Self::Message(message) => &message.envelope.trace_information,
            Self::Probe(probe) => &probe.trace_information,
            Self::Report(report) => &report.envelope.trace_information,
        }
    }

    /// Writes the protocol data unit as pieces for one vectored write; the content of a message is passed on.
    #[must_use]
    pub fn to_pieces(&self) -> Vec<Bytes> {
        match self {
            Self::Message(message) => message.to_pieces(),
            Self::Probe(probe) => vec![tagged(probe, 2)],
            Self::Report(report) => vec![tagged(report.as_ref(), 1)],
        }
    }

    /// Writes the protocol data unit in one piece.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self.to_pieces().as_slice() {
            [piece] => piece.clone(),
            pieces => pieces.concat().into(),
        }
    }
}

impl Message {
    fn to_pieces(&self) -> Vec<Bytes> {
        let envelope = encode(&self.envelope);
        let mut content = Writer::default();
        content.header(Tag::OCTET_STRING, false, self.content.len());
        let content = content.finish();
        let length = [envelope.len(), content.len(), self.content.len()];
        let mut head = Writer::default();
        head.header(
            Tag::context(0),
            true,
            length.into_iter().fold(0, usize::saturating_add),
        );
        head.raw(&envelope);
        head.raw(&content);
        let mut pieces = Vec::with_capacity(self.content.pieces.len().saturating_add(1));
        pieces.push(head.finish());
        pieces.extend(
            self.content
                .pieces
                .iter()
                .filter(|piece| !piece.is_empty())
                .cloned(),
        );
        pieces
    }
}

fn tagged<T: Value>(value: &T, number: u32) -> Bytes {
    let mut out = Writer::default();
    value.write_tagged(Tag::context(number), &mut out);
    out.finish()
}

fn split_message(octets: &Bytes, header: Header) -> Result<Message, ApduError> {
    let end = extent(octets, 0)?;
    if let rest @ 1.. = octets.len().saturating_sub(end) {
        return Err(Fault::Trailing(rest).into());
    }
    let closing = if header.length == Length::Indefinite {
        END_OF_CONTENTS.len()
    } else {
        0
    };
    let inside = octets.slice(..end.saturating_sub(closing));
    let envelope_end = extent(&inside, header.octets)?;
    let envelope = inside.slice(header.octets..envelope_end);
    if envelope.len() > ENVELOPE_OCTETS_MAX {
        return Err(ApduError::EnvelopeTooLong(envelope.len()));
    }
    let content_header = Header::read(&inside, envelope_end)?;
    if content_header.tag != Tag::OCTET_STRING {
        return Err(BerError::unexpected("content", content_header.tag).into());
    }
    let content = inside.slice(envelope_end..);
    Ok(Message {
        envelope: decode(&envelope).map_err(|error| error.within("envelope"))?,
        content: Content::read(&content)?,
    })
}

/// Octets of the pieces in which the envelope of a message is looked for.
const HEAD: usize = 32 << 10;

/// A message whose content begins within the first octets and fills the rest. `None`: the unit is something else, or has a fault.
fn message_in_pieces(pieces: &[Bytes]) -> Option<Message> {
    let (head, rest) = head_of(pieces);
    let outer = Header::read(&head, 0).ok()?;
    let envelope_end = extent(&head, outer.octets).ok()?;
    let inner = Header::read(&head, envelope_end).ok()?;
    let begin = envelope_end.checked_add(inner.octets)?;
    let total = pieces.iter().map(Bytes::len).fold(0, usize::saturating_add);
    let fills = |header: Header, begin: usize| {
        let found = total
            .checked_sub(begin)
            .and_then(|rest| u64::try_from(rest).ok());
        matches!(header.length, Length::Definite(length) if Some(length) == found)
    };
    let is_message =
        outer.tag == Tag::context(0) && outer.constructed && fills(outer, outer.octets);
    let is_content = inner.tag == Tag::OCTET_STRING && !inner.constructed && fills(inner, begin);
    let is_short = rest.len() < PIECES_MAX && envelope_end <= ENVELOPE_OCTETS_MAX;
    if !(is_message && is_content && is_short && begin <= head.len()) {
        return None;
    }
    let envelope = head.slice(outer.octets..envelope_end);
    let content = [head.slice(begin..)]
        .into_iter()
        .chain(rest.iter().cloned());
    Some(Message {
        envelope: decode(&envelope).ok()?,
        content: Content {
            pieces: content.filter(|piece| !piece.is_empty()).collect(),
        },
    })
}

/// The first octets in one piece, and the pieces behind them. Short pieces are copied.
fn head_of(pieces: &[Bytes]) -> (Bytes, &[Bytes]) {
    let mut length = 0_usize;
    let short = pieces.iter().take_while(|piece| {
        length = length.saturating_add(piece.len());
        length < HEAD
    });
    let count = short.count().saturating_add(1);
    let (head, rest) = pieces.split_at_checked(count).unwrap_or((pieces, &[]));
    match head {
        [head] => (head.clone(), rest),
        head => (head.concat().into(), rest),
    }
}

/// Reads a probe or a report; a returned content does not count as envelope, since the octets are not copied.
fn read<T: Value>(octets: &Bytes, field: &'static str) -> Result<T, ApduError> {
    let octets = normalise(octets)?;
    let element = Element::only(&octets)?;
    T::read_tagged(&element).map_err(|error| error.within(field).into())
}
