//! What a caller archives.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use vere_units::{Timestamp, TraceId};

/// The kind of a protocol data unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A message.
    Message,
    /// A probe.
    Probe,
    /// A report.
    Report,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Message, Self::Probe, Self::Report];

    /// The name: `message`, `probe` or `report`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Probe => "probe",
            Self::Report => "report",
        }
    }

    /// The octet in files.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Message => 1,
            Self::Probe => 2,
            Self::Report => 3,
        }
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| format!("expected message, probe or report; found {text:?}"))
    }
}

/// A message, probe or report to be archived.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The time of arrival, which decides about the segment.
    pub at: Timestamp,
    /// The id in the trace.
    pub trace: TraceId,
    /// The kind.
    pub kind: Kind,
    /// The MTS identifier, as text.
    pub identifier: String,
    /// The MTS identifier of the subject of a report.
    pub about: Option<String>,
    /// The O/R address of the originator, absent in a report.
    pub originator: Option<String>,
    /// The O/R addresses of the recipients, in the order of the envelope.
    pub recipients: Vec<String>,
    /// The sender: `peer:NAME`, `local`, `gateway:NAME`.
    pub source: String,
    /// The destinations of the parts.
    pub destinations: Vec<String>,
    /// The content type, as text.
    pub content_type: Option<String>,
    /// The octets of the APDU, in pieces.
    pub octets: Vec<Bytes>,
}

impl Entry {
    /// An entry without texts and octets.
    #[must_use]
    pub const fn new(at: Timestamp, trace: TraceId, kind: Kind) -> Self {
        Self {
            at,
            trace,
            kind,
            identifier: String::new(),
            about: None,
            originator: None,
            recipients: Vec::new(),
            source: String::new(),
            destinations: Vec::new(),
            content_type: None,
            octets: Vec::new(),
        }
    }

    /// The number of octets of the APDU.
    #[must_use]
    pub fn octets_len(&self) -> u64 {
        self.octets.iter().map(|piece| piece.len() as u64).sum()
    }
}
