//! A value and what its content means.

use bytes::{Bytes, BytesMut};

use super::{BerError, Header, ObjectIdentifier, Tag};

/// A value in memory, as slices of the octets that were read.
#[derive(Debug, Clone)]
pub struct Element {
    header: Header,
    content: Bytes,
    whole: Bytes,
    /// Levels of values that may be within.
    pub(super) levels: u8,
}

/// A string of bits, the first bit in the highest place of the first octet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitString {
    /// Bits of the last octet that do not count: 0 to 7.
    pub unused: u8,
    /// The octets.
    pub octets: Bytes,
}

impl BitString {
    /// Whether this bit is set; bits behind the end are not.
    #[must_use]
    pub fn has(&self, bit: usize) -> bool {
        let octet = self.octets.get(bit / 8).copied().unwrap_or(0);
        octet & (0x80 >> (bit % 8)) != 0
    }
}

impl Element {
    pub(super) const fn new(header: Header, content: Bytes, whole: Bytes, levels: u8) -> Self {
        Self {
            header,
            content,
            whole,
            levels,
        }
    }

    /// The tag.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        self.header.tag
    }

    /// Whether the content consists of values.
    #[must_use]
    pub const fn is_constructed(&self) -> bool {
        self.header.constructed
    }

    /// The content without header and end-of-contents octets.
    #[must_use]
    pub const fn content(&self) -> &Bytes {
        &self.content
    }

    /// The value as it was sent.
    #[must_use]
    pub const fn whole(&self) -> &Bytes {
        &self.whole
    }

    /// The content as a BOOLEAN.
    ///
    /// # Errors
    ///
    /// [`BerError::Content`] for a content that is not one octet.
    pub fn boolean(&self) -> Result<bool, BerError> {
        match *self.primitive()? {
            [octet] => Ok(octet != 0),
            _ => Err(BerError::Content("a boolean of one octet")),
        }
    }

    /// The content as an INTEGER.
    ///
    /// # Errors
    ///
    /// [`BerError::Content`] for no octets and for more than eight.
    pub fn integer(&self) -> Result<i64, BerError> {
        let octets = self.primitive()?;
        match octets {
            [first, ..] if octets.len() <= 8 => {
                let sign = if first & 0x80 == 0 { 0 } else { -1_i64 };
                Ok(octets
                    .iter()
                    .fold(sign, |sum, octet| (sum << 8) | i64::from(*octet)))
            }
            _ => Err(BerError::Content("an integer of one to eight octets")),
        }
    }

    /// The content as an INTEGER of at most `max`, not negative.
    ///
    /// # Errors
    ///
    /// [`BerError::Content`] for other numbers.
    pub fn number(&self, max: u32) -> Result<u32, BerError> {
        let number = u32::try_from(self.integer()?).ok();
        number
            .filter(|number| *number <= max)
            .ok_or(BerError::Content("an integer within its bounds"))
    }

    /// The content as an OBJECT IDENTIFIER.
    ///
    /// # Errors
    ///
    /// [`BerError::Content`] for octets that are no identifier.
    pub fn oid(&self) -> Result<ObjectIdentifier, BerError> {
        ObjectIdentifier::from_content(self.primitive()?)
    }

    /// The content as a string of octets or characters. A constructed string is copied together.
    ///
    /// # Errors
    ///
    /// [`BerError`] for a constructed string of other values than strings.
    pub fn string(&self) -> Result<Bytes, BerError> {
        if !self.header.constructed {
            return Ok(self.content.clone());
        }
        let mut whole = BytesMut::new();
        let mut parts = self.reader()?;
        while let Some(part) = parts.read()? {
            if part.tag() != Tag::OCTET_STRING && part.tag() != self.tag() {
                return Err(BerError::Content("a string of strings"));
            }
            whole.extend_from_slice(&part.string()?);
        }
        Ok(whole.freeze())
    }

    /// The content as a BIT STRING. A constructed string is copied together.
    ///
    /// # Errors
    ///
    /// [`BerError::Content`] for a wrong number of unused bits.
    pub fn bit_string(&self) -> Result<BitString, BerError> {
        if self.header.constructed {
            return self.joined_bits();
        }
        let mut octets = self.content.clone();
        let unused = match octets.first() {
            Some(unused @ 0..=7) => *unused,
            _ => return Err(BerError::Content("a number of unused bits")),
        };
        let octets = octets.split_off(1);
        match octets.is_empty() && unused != 0 {
            true => Err(BerError::Content("a number of unused bits")),
            false => Ok(BitString { unused, octets }),
        }
    }

    fn joined_bits(&self) -> Result<BitString, BerError> {
        let mut whole = BytesMut::new();
        let mut last = 0;
        let mut parts = self.reader()?;
        while let Some(part) = parts.read()? {
            if part.tag() != Tag::BIT_STRING || last != 0 {
                return Err(BerError::Content("a bit string of whole octets"));
            }
            let bits = part.bit_string()?;
            whole.extend_from_slice(&bits.octets);
            last = bits.unused;
        }
        Ok(BitString {
            unused: last,
            octets: whole.freeze(),
        })
    }

    fn primitive(&self) -> Result<&[u8], BerError> {
        match self.header.constructed {
            false => Ok(&self.content),
            true => Err(BerError::Content("a primitive value")),
        }
    }
}
