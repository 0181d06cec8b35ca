//! A value in memory and what its contents mean, as slices of the surrounding octets.

use std::borrow::Cow;

use bytes::Bytes;

use super::error::Fault;
use super::header::{END_OF_CONTENTS, Header, extent_within};
use super::tag::{Class, Tag};

/// A value and the octets around it.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a> {
    /// The tag.
    pub tag: Tag,
    /// Whether the contents are values.
    pub constructed: bool,
    /// The contents without end-of-contents octets.
    pub contents: &'a [u8],
    /// The whole value, as sent.
    pub raw: &'a [u8],
    pub(crate) source: &'a Bytes,
    /// Levels of values that may be inside.
    pub(crate) levels: u8,
}

impl<'a> Element<'a> {
    /// The first value of `octets`, a part of `source`.
    #[inline]
    pub(crate) fn first(source: &'a Bytes, octets: &'a [u8], levels: u8) -> Result<Self, Fault> {
        let inside = levels.checked_sub(1).ok_or(Fault::Depth)?;
        let header = Header::read(octets, 0)?;
        let (contents_end, end) = match header.end(octets, 0)? {
            Some(end) => (end, end),
            None => indefinite(octets, levels)?,
        };
        Ok(Self {
            tag: header.tag,
            constructed: header.constructed,
            contents: octets.get(header.octets..contents_end).unwrap_or_default(),
            raw: octets.get(..end).unwrap_or_default(),
            source,
            levels: inside,
        })
    }

    /// The contents as a BOOLEAN.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for contents other than one octet.
    pub fn boolean(&self) -> Result<bool, Fault> {
        match self.primitive("BOOLEAN")? {
            [octet] => Ok(*octet != 0),
            _ => Err(Fault::Invalid("a BOOLEAN of one octet")),
        }
    }

    /// The contents as an INTEGER; octets that only repeat the sign do not count.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for no octets and for a number of more than 64 bits.
    pub fn integer(&self) -> Result<i64, Fault> {
        let octets = self.primitive("INTEGER")?;
        let first = octets
            .first()
            .ok_or(Fault::Invalid("an INTEGER with contents"))?;
        let mut value: i64 = if first & 0x80 == 0 { 0 } else { -1 };
        for octet in octets {
            if value.leading_zeros().max(value.leading_ones()) <= 8 {
                return Err(Fault::Invalid("an INTEGER of at most 8 octets"));
            }
            value = value << 8 | i64::from(*octet);
        }
        Ok(value)
    }

    /// The contents as an INTEGER from 0 to `max`.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for other numbers.
    pub fn number(&self, max: u32) -> Result<u32, Fault> {
        u32::try_from(self.integer()?)
            .ok()
            .filter(|number| *number <= max)
            .ok_or(Fault::Invalid("an INTEGER within its bounds"))
    }

    /// The octets of a string, whose segments are joined.
    ///
    /// # Errors
    /// [`Fault`] of the structure of the segments.
    pub fn string(&self) -> Result<Cow<'a, [u8]>, Fault> {
        if !self.constructed {
            return Ok(Cow::Borrowed(self.contents));
        }
        let mut joined = Vec::with_capacity(self.contents.len());
        for segment in self.segments() {
            joined.extend_from_slice(segment?);
        }
        Ok(Cow::Owned(joined))
    }

    /// The octets of a string, without a copy unless the string came in segments.
    ///
    /// # Errors
    /// [`Fault`] of the structure of the segments.
    pub fn bytes(&self) -> Result<Bytes, Fault> {
        Ok(match self.string()? {
            Cow::Borrowed(octets) => self.source.slice_ref(octets),
            Cow::Owned(octets) => octets.into(),
        })
    }

    /// The whole value as sent, without a copy.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.source.slice_ref(self.raw)
    }

    /// The contents as sent, without a copy.
    #[must_use]
    pub fn contents_to_bytes(&self) -> Bytes {
        self.source.slice_ref(self.contents)
    }

    /// The primitive segments of a string.
    pub(crate) const fn segments(&self) -> Segments<'a> {
        match self.constructed {
            true => Segments {
                rest: self.contents,
                whole: None,
            },
            false => Segments {
                rest: &[],
                whole: Some(self.contents),
            },
        }
    }

    /// The contents of a value that has to be primitive.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a constructed value.
    pub const fn primitive(&self, expected: &'static str) -> Result<&'a [u8], Fault> {
        match self.constructed {
            true => Err(Fault::Invalid(expected)),
            false => Ok(self.contents),
        }
    }
}

/// The ends of the contents and of the value, whose length is indefinite.
#[cold]
fn indefinite(octets: &[u8], levels: u8) -> Result<(usize, usize), Fault> {
    let end = extent_within(octets, 0, usize::from(levels))?;
    Ok((end.saturating_sub(END_OF_CONTENTS.len()), end))
}

/// The primitive values inside a value, at any depth. Headers of constructed values and end-of-contents octets are
/// stepped over, so the depth does not matter.
pub(crate) struct Segments<'a> {
    rest: &'a [u8],
    whole: Option<&'a [u8]>,
}

/// The tag of the end-of-contents octets.
const END_TAG: Tag = Tag {
    class: Class::Universal,
    number: 0,
};

impl<'a> Segments<'a> {
    fn segment(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        while !self.rest.is_empty() {
            let header = Header::read(self.rest, 0)?;
            if header.constructed {
                self.rest = self.rest.get(header.octets..).unwrap_or_default();
                continue;
            }
            let end = header.end(self.rest, 0)?.unwrap_or_default();
            let segment = self.rest.get(header.octets..end).unwrap_or_default();
            self.rest = self.rest.get(end..).unwrap_or_default();
            if header.tag != END_TAG {
                return Ok(Some(segment));
            }
        }
        Ok(None)
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Result<&'a [u8], Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(whole) = self.whole.take() {
            return Some(Ok(whole));
        }
        let segment = self.segment();
        if segment.is_err() {
            self.rest = &[];
        }
        segment.transpose()
    }
}
