//! New records: parts of mail, and reports.

use bytes::Bytes;
use vere_queue::{Destination, Envelope, ReportKind};
use vere_units::TraceId;

/// The content of a future record: a destination, its envelope, and the message.
#[derive(Debug, Clone)]
pub struct Part {
    /// The destination, whose queue the record goes to.
    pub destination: Destination,
    /// The envelope.
    pub envelope: Envelope,
    /// The message.
    pub body: Bytes,
}

/// A report ready to be stored.
#[derive(Debug)]
pub struct Notice {
    /// What the report tells.
    pub kind: ReportKind,
    /// Its address.
    pub to: String,
    /// Its id.
    pub trace: TraceId,
    /// Its records; absent where the address leads nowhere.
    pub parts: Vec<Part>,
}

impl Notice {
    /// The report's id, if anybody gets the report.
    #[must_use]
    pub fn sent(&self) -> Option<TraceId> {
        (!self.parts.is_empty()).then_some(self.trace)
    }
}
