//! The identifier and length octets of a value (X.690 clauses 8.1.2 and 8.1.3).

use bytes::BufMut;

use super::bounds::DEPTH_MAX;
use super::error::Fault;
use super::tag::{Class, Tag};

/// The end of a value of indefinite length.
pub const END_OF_CONTENTS: &[u8] = &[0, 0];
/// Octets of a header, at most: five of the tag, nine of the length.
pub(crate) const HEADER_OCTETS_MAX: usize = 14;
/// Octets of a long tag number, at most.
const TAG_OCTETS_MAX: usize = 4;
/// Octets of a long length, at most; leading zeros count.
const LENGTH_OCTETS_MAX: u8 = 8;
/// The longest length that is read.
const LENGTH_MAX: u64 = u64::MAX >> 1;

/// The length of the contents of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// This number of octets.
    Definite(u64),
    /// Until the end-of-contents octets.
    Indefinite,
}

/// The octets before the contents of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The tag.
    pub tag: Tag,
    /// Whether the contents are values.
    pub constructed: bool,
    /// The length of the contents.
    pub length: Length,
    /// The octets of the tag.
    pub tag_octets: usize,
    /// The octets of tag and length.
    pub octets: usize,
}

impl Header {
    /// Reads the header at `offset`.
    ///
    /// # Errors
    /// [`Fault::Truncated`] for octets that end inside the header; [`Fault::Oversized`] for a tag number above 28 bits
    /// and a length above 63 bits; [`Fault::Indefinite`] for a primitive value without a length.
    #[inline]
    pub fn read(octets: &[u8], offset: usize) -> Result<Self, Fault> {
        let mut cursor = Cursor {
            octets,
            offset,
            at: offset,
        };
        let first = cursor.next()?;
        let number = match first & 0x1F {
            0x1F => cursor.tag_number()?,
            number => u32::from(number),
        };
        let tag_octets = cursor.at.saturating_sub(offset);
        let length = cursor.length()?;
        let constructed = first & 0x20 != 0;
        if length == Length::Indefinite && !constructed {
            return Err(Fault::Indefinite(offset));
        }
        let tag = Tag {
            class: class(first),
            number,
        };
        let octets = cursor.at.saturating_sub(offset);
        Ok(Self {
            tag,
            constructed,
            length,
            tag_octets,
            octets,
        })
    }

    /// The end of the contents of the value that begins at `at`, inside `octets`. `None` for an indefinite length.
    #[inline]
    pub(crate) fn end(&self, octets: &[u8], at: usize) -> Result<Option<usize>, Fault> {
        let Length::Definite(length) = self.length else {
            return Ok(None);
        };
        usize::try_from(length)
            .ok()
            .and_then(|length| at.checked_add(self.octets)?.checked_add(length))
            .filter(|end| *end <= octets.len())
            .map(Some)
            .ok_or(Fault::Truncated(at))
    }
}

const fn class(first: u8) -> Class {
    match first >> 6 {
        0 => Class::Universal,
        1 => Class::Application,
        2 => Class::Context,
        _ => Class::Private,
    }
}

struct Cursor<'a> {
    octets: &'a [u8],
    /// Where the value begins.
    offset: usize,
    at: usize,
}

impl Cursor<'_> {
    fn next(&mut self) -> Result<u8, Fault> {
        let octet = *self
            .octets
            .get(self.at)
            .ok_or(Fault::Truncated(self.offset))?;
        self.at = self.at.saturating_add(1);
        Ok(octet)
    }

    fn tag_number(&mut self) -> Result<u32, Fault> {
        let mut number = 0;
        for _ in 0..TAG_OCTETS_MAX {
            let octet = self.next()?;
            number = number << 7 | u32::from(octet & 0x7F);
            if octet & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Fault::Oversized(self.offset))
    }

    fn length(&mut self) -> Result<Length, Fault> {
        let first = self.next()?;
        if first == 0x80 {
            return Ok(Length::Indefinite);
        }
        if first < 0x80 {
            return Ok(Length::Definite(u64::from(first)));
        }
        let count = first & 0x7F;
        if count > LENGTH_OCTETS_MAX {
            return Err(Fault::Oversized(self.offset));
        }
        let mut length: u64 = 0;
        for _ in 0..count {
            length = length << 8 | u64::from(self.next()?);
        }
        match length {
            0..=LENGTH_MAX => Ok(Length::Definite(length)),
            _ => Err(Fault::Oversized(self.offset)),
        }
    }
}

/// The end of the value that begins at `offset`, including end-of-contents octets. Values inside a value of
/// definite length are skipped whole, so the time is linear in the octets of indefinite length.
///
/// # Errors
/// [`Fault`] of the structure.
pub fn extent(octets: &[u8], offset: usize) -> Result<usize, Fault> {
    extent_within(octets, offset, DEPTH_MAX)
}

/// As [`extent`], with at most `levels` open values of indefinite length.
pub(crate) fn extent_within(octets: &[u8], offset: usize, levels: usize) -> Result<usize, Fault> {
    let mut at = offset;
    let mut open: usize = 0;
    loop {
        if open > 0
            && octets
                .get(at..)
                .is_some_and(|rest| rest.starts_with(END_OF_CONTENTS))
        {
            at = at.saturating_add(END_OF_CONTENTS.len());
            open = open.saturating_sub(1);
        } else {
            let header = Header::read(octets, at)?;
            match header.end(octets, at)? {
                Some(end) => at = end,
                None if open >= levels => return Err(Fault::Depth),
                None => {
                    open = open.saturating_add(1);
                    at = at.saturating_add(header.octets);
                }
            }
        }
        if open == 0 {
            return Ok(at);
        }
    }
}

/// Appends a header: the octets of the tag, and a definite length in its shortest form.
pub fn put_header(out: &mut impl BufMut, tag: Tag, constructed: bool, length: u64) {
    let class = match tag.class {
        Class::Universal => 0x00,
        Class::Application => 0x40,
        Class::Context => 0x80,
        Class::Private => 0xC0,
    };
    let lead = class | if constructed { 0x20 } else { 0x00 };
    match u8::try_from(tag.number) {
        Ok(number) if number < 0x1F => out.put_u8(lead | number),
        _ => {
            out.put_u8(lead | 0x1F);
            put_base128(out, tag.number);
        }
    }
    put_length(out, length);
}

/// Appends a number in groups of seven bits, all but the last marked.
pub(crate) fn put_base128(out: &mut impl BufMut, number: u32) {
    for shift in [28, 21, 14, 7] {
        if number >> shift != 0 {
            let [.., group] = (number >> shift).to_be_bytes();
            out.put_u8(group | 0x80);
        }
    }
    let [.., group] = number.to_be_bytes();
    out.put_u8(group & 0x7F);
}

/// Appends a length in its shortest form.
pub(crate) fn put_length(out: &mut impl BufMut, length: u64) {
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.put_u8(short),
        _ => {
            let octets = length.to_be_bytes();
            let count = length_octets(length).saturating_sub(1);
            let significant = octets.get(octets.len().saturating_sub(count)..);
            out.put_u8(0x80 | u8::try_from(count).unwrap_or_default());
            out.put_slice(significant.unwrap_or_default());
        }
    }
}

/// The octets of a length in its shortest form.
pub(crate) fn length_octets(length: u64) -> usize {
    if length < 0x80 {
        return 1;
    }
    let zeros = usize::try_from(length.leading_zeros() / 8).unwrap_or_default();
    size_of::<u64>().saturating_sub(zeros).saturating_add(1)
}

/// A number of octets in memory as a length.
pub(crate) fn length(octets: usize) -> u64 {
    u64::try_from(octets).unwrap_or(u64::MAX)
}
