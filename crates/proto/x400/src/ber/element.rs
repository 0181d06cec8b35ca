//! A value in BER with definite lengths, as slices of the surrounding octets.

use std::borrow::Cow;

use bytes::Bytes;

use super::error::{BerError, Fault};
use super::header::{Header, end};
use super::tag::Tag;

/// A value and the octets around it.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a> {
    /// The tag.
    pub tag: Tag,
    /// Whether the contents are values.
    pub constructed: bool,
    /// The contents.
    pub contents: &'a [u8],
    /// The whole value.
    pub raw: &'a [u8],
    source: &'a Bytes,
}

impl<'a> Element<'a> {
    /// The value of all octets of `source`, whose lengths are definite (see [`normalise`](super::normalise)).
    ///
    /// # Errors
    /// [`Fault`] of the structure.
    pub fn only(source: &'a Bytes) -> Result<Self, BerError> {
        let element = Self::first(source, source)?;
        match source.len().saturating_sub(element.raw.len()) {
            0 => Ok(element),
            rest => Err(Fault::Trailing(rest).into()),
        }
    }

    fn first(source: &'a Bytes, octets: &'a [u8]) -> Result<Self, Fault> {
        let header = Header::read(octets, 0)?;
        let length = header.length.ok_or(Fault::Indefinite(0))?;
        let end = end(octets, 0, header.octets, length)?;
        Ok(Self {
            tag: header.tag,
            constructed: header.constructed,
            contents: octets.get(header.octets..end).unwrap_or_default(),
            raw: octets.get(..end).unwrap_or_default(),
            source,
        })
    }

    /// The values inside this value.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a primitive value.
    pub fn children(&self) -> Result<Children<'a>, BerError> {
        if self.constructed {
            Ok(Children {
                rest: self.contents,
                source: self.source,
            })
        } else {
            Err(BerError::invalid("a constructed value"))
        }
    }

    /// The single value inside an explicit tag.
    ///
    /// # Errors
    /// [`Fault::Missing`] and [`Fault::Trailing`] for another number of values.
    pub fn inner(&self) -> Result<Self, BerError> {
        let mut children = self.children()?;
        let inner = children.next().ok_or(Fault::Missing("a value"))??;
        match children.rest.len() {
            0 => Ok(inner),
            rest => Err(Fault::Trailing(rest).into()),
        }
    }

    /// The octets of a string, whose segments are joined.
    ///
    /// # Errors
    /// [`Fault`] of the structure of the segments.
    pub fn string(&self) -> Result<Cow<'a, [u8]>, BerError> {
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
    pub fn bytes(&self) -> Result<Bytes, BerError> {
        Ok(match self.string()? {
            Cow::Borrowed(octets) => self.source.slice_ref(octets),
            Cow::Owned(octets) => octets.into(),
        })
    }

    /// The whole value, without a copy.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.source.slice_ref(self.raw)
    }

    /// The primitive segments of a string.
    pub(crate) fn segments(&self) -> Segments<'a> {
        if self.constructed {
            Segments {
                rest: self.contents,
                whole: None,
            }
        } else {
            Segments {
                rest: &[],
                whole: Some(self.contents),
            }
        }
    }

    /// The contents of a value that has to be primitive.
    pub(crate) const fn primitive(&self, expected: &'static str) -> Result<&'a [u8], BerError> {
        if self.constructed {
            Err(BerError::invalid(expected))
        } else {
            Ok(self.contents)
        }
    }
}

/// The values inside a value.
#[derive(Debug, Clone)]
pub struct Children<'a> {
    rest: &'a [u8],
    source: &'a Bytes,
}

impl<'a> Iterator for Children<'a> {
    type Item = Result<Element<'a>, BerError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let element = Element::first(self.source, self.rest);
        self.rest = match &element {
            Ok(element) => self.rest.get(element.raw.len()..).unwrap_or_default(),
            Err(_) => &[],
        };
        Some(element.map_err(BerError::from))
    }
}

/// The primitive values inside a value, at any depth; with definite lengths the primitive values follow each other.
pub(crate) struct Segments<'a> {
    rest: &'a [u8],
    whole: Option<&'a [u8]>,
}

impl<'a> Iterator for Segments<'a> {
    type Item = Result<&'a [u8], BerError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(whole) = self.whole.take() {
            return Some(Ok(whole));
        }
        while !self.rest.is_empty() {
            let header = match Header::read(self.rest, 0) {
                Ok(header) => header,
                Err(fault) => return self.fail(fault),
            };
            if header.constructed {
                self.rest = self.rest.get(header.octets..).unwrap_or_default();
                continue;
            }
            return match end(
                self.rest,
                0,
                header.octets,
                header.length.unwrap_or_default(),
            ) {
                Ok(end) => {
                    let segment = self.rest.get(header.octets..end).unwrap_or_default();
                    self.rest = self.rest.get(end..).unwrap_or_default();
                    Some(Ok(segment))
                }
                Err(fault) => self.fail(fault),
            };
        }
        None
    }
}

impl<'a> Segments<'a> {
    const fn fail(&mut self, fault: Fault) -> Option<Result<&'a [u8], BerError>> {
        self.rest = &[];
        Some(Err(BerError::new(fault)))
    }
}
