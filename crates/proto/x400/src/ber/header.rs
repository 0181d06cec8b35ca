//! The identifier and length octets of a value (X.690 clauses 8.1.2 and 8.1.3).

use super::bounds::DEPTH_MAX;
use super::error::Fault;
use super::tag::{Class, Tag};

/// The end of a value of indefinite length.
pub(crate) const END_OF_CONTENTS: &[u8] = &[0, 0];
/// Octets of a long tag number, at most.
const TAG_OCTETS_MAX: usize = 4;
/// Octets of a long length, at most; leading zeros count.
const LENGTH_OCTETS_MAX: u8 = 8;

/// The octets before the contents of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) tag: Tag,
    pub(crate) constructed: bool,
    /// The octets of the contents; none for an indefinite length.
    pub(crate) length: Option<usize>,
    /// The octets of the tag.
    pub(crate) tag_octets: usize,
    /// The octets of tag and length.
    pub(crate) octets: usize,
}

impl Header {
    /// Reads the header at `offset`.
    pub(crate) fn read(octets: &[u8], offset: usize) -> Result<Self, Fault> {
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
        if length.is_none() && !constructed {
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

    fn length(&mut self) -> Result<Option<usize>, Fault> {
        let first = self.next()?;
        if first == 0x80 {
            return Ok(None);
        }
        if first < 0x80 {
            return Ok(Some(usize::from(first)));
        }
        let count = first & 0x7F;
        if count > LENGTH_OCTETS_MAX {
            return Err(Fault::Oversized(self.offset));
        }
        let mut length: u64 = 0;
        for _ in 0..count {
            length = length << 8 | u64::from(self.next()?);
        }
        usize::try_from(length)
            .map(Some)
            .map_err(|_| Fault::Oversized(self.offset))
    }
}

/// The end of the value that begins at `offset`, including end-of-contents octets. Values inside a value of
/// definite length are skipped whole, so this is linear in the octets of indefinite length.
pub(crate) fn extent(octets: &[u8], offset: usize) -> Result<usize, Fault> {
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
            match header.length {
                Some(length) => at = end(octets, at, header.octets, length)?,
                None if open >= DEPTH_MAX => return Err(Fault::Depth),
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

/// The end of a value of definite length, inside `octets`.
pub(crate) fn end(octets: &[u8], at: usize, header: usize, length: usize) -> Result<usize, Fault> {
    at.checked_add(header)
        .and_then(|start| start.checked_add(length))
        .filter(|end| *end <= octets.len())
        .ok_or(Fault::Truncated(at))
}
