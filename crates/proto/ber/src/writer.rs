//! Writing BER: definite lengths in their shortest form.

use bytes::Bytes;

use super::header::{length, put_header, put_length};
use super::tag::Tag;

/// Octets under construction.
#[derive(Debug, Default)]
pub struct Writer {
    octets: Vec<u8>,
}

impl Writer {
    /// Writes a primitive value.
    pub fn primitive(&mut self, tag: Tag, contents: &[u8]) {
        self.header(tag, false, contents.len());
        self.octets.extend_from_slice(contents);
    }

    /// Writes a constructed value whose contents `write` writes.
    pub fn constructed(&mut self, tag: Tag, write: impl FnOnce(&mut Self)) {
        self.header(tag, true, 0);
        let start = self.octets.len();
        write(self);
        let contents = self.octets.len().saturating_sub(start);
        let mut octets = Vec::with_capacity(5);
        put_length(&mut octets, length(contents));
        // The length of no contents is one octet.
        self.octets.splice(start.saturating_sub(1)..start, octets);
    }

    /// Writes whole values.
    pub fn raw(&mut self, values: &[u8]) {
        self.octets.extend_from_slice(values);
    }

    /// The octets.
    #[must_use]
    pub fn finish(self) -> Bytes {
        self.octets.into()
    }

    /// Writes tag and length of a value; the caller sends the contents.
    pub fn header(&mut self, tag: Tag, constructed: bool, contents: usize) {
        put_header(&mut self.octets, tag, constructed, length(contents));
    }
}

/// The shortest octets of a number (X.690 clause 8.3.2).
pub(crate) fn shortest(number: &[u8; 8]) -> &[u8] {
    let mut octets = number.as_slice();
    while let [first, second, ..] = octets {
        let sign = if second & 0x80 == 0 { 0 } else { 0xFF };
        if *first != sign {
            break;
        }
        octets = octets.get(1..).unwrap_or_default();
    }
    octets
}
