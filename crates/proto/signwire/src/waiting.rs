//! A key that waits for its record.

use super::content::{Content, text};
use super::error::WireError;

/// The most octets of a record's text: RSA keys of 4,096 bits have some 750.
pub const RECORD_OCTETS_MAX: usize = 4096;

/// A key that waits for its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingKey {
    /// The domain in lower case.
    pub domain: String,
    /// The selector: the record is at `SELECTOR._domainkey.DOMAIN`.
    pub selector: String,
    /// How often the record was looked up before.
    pub looks: u32,
    /// The wanted text of the record, in ASCII, at most [`RECORD_OCTETS_MAX`] octets.
    pub record: String,
}

impl WaitingKey {
    /// Appends the key. A record beyond the maximum is cut, and then equals no record.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        text(out, &self.domain);
        text(out, &self.selector);
        out.extend_from_slice(&self.looks.to_le_bytes());
        let record = self.record.as_bytes();
        out.extend_from_slice(record.get(..RECORD_OCTETS_MAX).unwrap_or(record));
    }

    pub(super) fn decode(content: &mut Content<'_>) -> Result<Self, WireError> {
        let (domain, selector) = (content.text()?.to_owned(), content.text()?.to_owned());
        let looks = u32::from_le_bytes(content.array()?);
        let record = std::str::from_utf8(content.0).map_err(|_| WireError::Content)?;
        if !record.is_ascii() || record.len() > RECORD_OCTETS_MAX {
            return Err(WireError::Content);
        }
        let record = record.to_owned();
        Ok(Self {
            domain,
            selector,
            looks,
            record,
        })
    }
}
