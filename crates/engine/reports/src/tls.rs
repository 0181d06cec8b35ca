//! TLS reports (TLSRPT, RFC 8460).

mod json;
mod outcome;
mod sequence;
mod values;

pub use outcome::{TlsFailureKind, TlsPolicyKind};
pub use values::{TlsFailure, TlsPolicy, TlsReport};

use crate::error::ReportError;

impl TlsReport {
    /// Reads the JSON of a report.
    ///
    /// Tolerated: `mx-host` as a text or a list, missing optional keys, unknown keys, addresses that are none.
    ///
    /// # Errors
    /// [`ReportError::Json`] with line and column, [`ReportError::Value`] for a time or kind of another form,
    /// [`ReportError::Many`] beyond a bound.
    pub fn read(octets: &[u8]) -> Result<Self, ReportError> {
        json::read(octets)
    }

    /// Writes the JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::write(self)
    }
}
