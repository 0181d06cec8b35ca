//! DMARC aggregate reports (RFC 9990; formerly RFC 7489 appendix C).

mod read;
mod values;
mod words;
mod write;
mod xml;

use crate::error::ReportError;

pub use values::{Aggregate, Dkim, Policy, Reason, Record, Spf};
pub use words::{Alignment, AuthWord, Discovery, Disposition, Override};

impl Aggregate {
    /// Reads the XML of a report.
    ///
    /// Tolerated, as reporters differ: element names with a prefix, unknown elements, any order, words in any case or unknown
    /// ones (counted in `oddities`), charsets other than UTF-8. Not tolerated: a document type.
    ///
    /// # Errors
    /// [`ReportError`] with the place in the XML.
    pub fn read(octets: &[u8]) -> Result<Self, ReportError> {
        read::report(octets)
    }

    /// Writes the XML in the form of RFC 9990.
    #[must_use]
    pub fn to_xml(&self) -> String {
        write::xml(self)
    }

    /// The messages of all records.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let counts = self.records.iter().map(|record| record.count);
        counts.fold(0, u64::saturating_add)
    }
}
