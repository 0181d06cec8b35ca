//! Writing BER: definite lengths in their shortest form.

use bytes::Bytes;

use super::tag::{Class, Tag};

/// Octets under construction.
#[derive(Debug, Default)]
pub struct Writer {
    octets: Vec<u8>,
}

impl Writer {
    /// Writes a primitive value.
    pub fn primitive(&mut self, tag: Tag, contents: &[u8]) {
        self.tag(tag, false);
        push_length(&mut self.octets, contents.len());
        self.octets.extend_from_slice(contents);
    }

    /// Writes a constructed value whose contents `write` writes.
    pub fn constructed(&mut self, tag: Tag, write: impl FnOnce(&mut Self)) {
        self.tag(tag, true);
        let start = self.octets.len();
        write(self);
        let length = self.octets.len().saturating_sub(start);
        let mut octets = Vec::with_capacity(5);
        push_length(&mut octets, length);
        self.octets.splice(start..start, octets);
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
    pub(crate) fn header(&mut self, tag: Tag, constructed: bool, length: usize) {
        self.tag(tag, constructed);
        push_length(&mut self.octets, length);
    }

    fn tag(&mut self, tag: Tag, constructed: bool) {
        let class = match tag.class {
            Class::Universal => 0x00,
            Class::Application => 0x40,
            Class::Context => 0x80,
            Class::Private => 0xC0,
        };
        let form = if constructed { 0x20 } else { 0x00 };
        match u8::try_from(tag.number) {
            Ok(number) if number < 0x1F => self.octets.push(class | form | number),
            _ => {
                self.octets.push(class | form | 0x1F);
                push_base128(&mut self.octets, tag.number);
            }
        }
    }
}

/// Appends a number in groups of seven bits, all but the last marked.
pub(super) fn push_base128(out: &mut Vec<u8>, number: u32) {
    let mut shift: u32 = 28;
    while shift > 0 && number >> shift == 0 {
        shift = shift.saturating_sub(7);
    }
    loop {
        let [.., group] = (number >> shift & 0x7F).to_be_bytes();
        if shift == 0 {
            return out.push(group);
        }
        out.push(group | 0x80);
        shift = shift.saturating_sub(7);
    }
}

/// Appends a length in its shortest form.
pub(super) fn push_length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let octets = length.to_be_bytes();
            let zeros = octets.iter().take_while(|octet| **octet == 0).count();
            let significant = octets.get(zeros..).unwrap_or_default();
            out.push(0x80 | u8::try_from(significant.len()).unwrap_or_default());
            out.extend_from_slice(significant);
        }
    }
}

/// The octets of a length in its shortest form.
pub(super) fn length_octets(length: usize) -> usize {
    if length < 0x80 {
        return 1;
    }
    let zeros = usize::try_from(length.leading_zeros() / 8).unwrap_or_default();
    size_of::<usize>().saturating_sub(zeros).saturating_add(1)
}
