//! Identifier and length octets (X.690 clauses 8.1.2 and 8.1.3).

use super::error::BerError;
use super::tag::{Class, Tag};

/// The length of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// This many octets.
    Definite(u64),
    /// Until the end-of-contents octets.
    Indefinite,
}

/// The octets before a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The tag.
    pub tag: Tag,
    /// Whether the content consists of values.
    pub constructed: bool,
    /// The length of the content.
    pub length: Length,
    /// Octets of the header itself.
    pub octets: usize,
}

/// The most octets of a header that is read: five of the tag, nine of the length.
pub(crate) const HEADER_MAX: usize = 14;

/// The end-of-contents octets.
const END: [u8; 2] = [0, 0];

impl Header {
    /// Reads a header at the beginning of the octets. `None` when the octets end within the header.
    ///
    /// # Errors
    ///
    /// [`BerError::Malformed`] for a tag number above 28 bits, a length above 63 bits, and an indefinite length of
    /// a primitive value.
    pub fn read(octets: &[u8]) -> Result<Option<Self>, BerError> {
        let Some((tag, constructed, rest)) = identifier(octets)? else {
            return Ok(None);
        };
        let Some((length, rest)) = length(rest)? else {
            return Ok(None);
        };
        if length == Length::Indefinite && !constructed {
            return Err(BerError::Malformed);
        }
        Ok(Some(Self {
            tag,
            constructed,
            length,
            octets: octets.len().saturating_sub(rest.len()),
        }))
    }

    /// Whether these are the end-of-contents octets.
    pub(crate) fn is_end(octets: &[u8]) -> bool {
        octets.starts_with(&END)
    }
}

type Identifier<'a> = (Tag, bool, &'a [u8]);

fn identifier(octets: &[u8]) -> Result<Option<Identifier<'_>>, BerError> {
    let Some((&first, rest)) = octets.split_first() else {
        return Ok(None);
    };
    let class = match first >> 6 {
        0 => Class::Universal,
        1 => Class::Application,
        2 => Class::Context,
        _ => Class::Private,
    };
    let constructed = first & 0x20 != 0;
    let (number, rest) = match first & 0x1f {
        0x1f => match long_number(rest)? {
            None => return Ok(None),
            Some(read) => read,
        },
        low => (u32::from(low), rest),
    };
    Ok(Some((Tag { class, number }, constructed, rest)))
}

fn long_number(octets: &[u8]) -> Result<Option<(u32, &[u8])>, BerError> {
    let mut number = 0_u32;
    let mut rest = octets;
    for _ in 0..4 {
        let Some((&octet, after)) = rest.split_first() else {
            return Ok(None);
        };
        rest = after;
        number = (number << 7) | u32::from(octet & 0x7f);
        if octet & 0x80 == 0 {
            return Ok(Some((number, rest)));
        }
    }
    Err(BerError::Malformed)
}

fn length(octets: &[u8]) -> Result<Option<(Length, &[u8])>, BerError> {
    let Some((&first, rest)) = octets.split_first() else {
        return Ok(None);
    };
    match first {
        0..0x80 => Ok(Some((Length::Definite(u64::from(first)), rest))),
        0x80 => Ok(Some((Length::Indefinite, rest))),
        0x81..=0x88 => {
            let Some((long, rest)) = rest.split_at_checked(usize::from(first & 0x7f)) else {
                return Ok(None);
            };
            let value = long
                .iter()
                .fold(0_u64, |sum, octet| (sum << 8) | u64::from(*octet));
            match i64::try_from(value) {
                Ok(_) => Ok(Some((Length::Definite(value), rest))),
                Err(_) => Err(BerError::Malformed),
            }
        }
        _ => Err(BerError::Malformed),
    }
}
