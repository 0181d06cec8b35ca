//! Values one after the other, in memory.

use bytes::Bytes;

use super::bounds::LEVELS_MAX;
use super::element::Element;
use super::error::Fault;
use super::header::Header;
use super::tag::Tag;

/// The values of a content, one after the other.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    source: &'a Bytes,
    levels: u8,
}

impl<'a> Reader<'a> {
    /// Reads the values of all octets of `source`.
    #[must_use]
    pub fn new(source: &'a Bytes) -> Self {
        Self::nested(source, source, LEVELS_MAX)
    }

    pub(crate) const fn nested(rest: &'a [u8], source: &'a Bytes, levels: u8) -> Self {
        Self {
            rest,
            source,
            levels,
        }
    }

    /// The octets that are not read yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The tag of the next value, if there is a value.
    #[must_use]
    pub fn peek(&self) -> Option<Tag> {
        Header::read(self.rest, 0).ok().map(|header| header.tag)
    }

    /// Reads the next value; `None` at the end.
    ///
    /// # Errors
    /// [`Fault`] of the structure.
    pub fn read(&mut self) -> Result<Option<Element<'a>>, Fault> {
        self.next().transpose()
    }

    /// Reads the next value if the value has this tag.
    ///
    /// # Errors
    /// [`Fault`] of the structure.
    pub fn optional(&mut self, tag: Tag) -> Result<Option<Element<'a>>, Fault> {
        match self.peek() == Some(tag) {
            true => self.read(),
            false => Ok(None),
        }
    }

    /// Reads the next value, which has this tag.
    ///
    /// # Errors
    /// [`Fault`] of the structure, [`Fault::Tag`] for another tag, [`Fault::Absent`] at the end.
    pub fn expect(&mut self, tag: Tag) -> Result<Element<'a>, Fault> {
        match self.read()? {
            None => Err(Fault::Absent(tag)),
            Some(element) if element.tag == tag => Ok(element),
            Some(element) => Err(Fault::Tag {
                expected: tag,
                found: element.tag,
            }),
        }
    }

    /// Reads the only value of the octets.
    ///
    /// # Errors
    /// [`Fault`] of the structure; [`Fault::Trailing`] for several values.
    pub fn only(mut self) -> Result<Element<'a>, Fault> {
        let element = Element::first(self.source, self.rest, self.levels)?;
        self.rest = self.rest.get(element.raw.len()..).unwrap_or_default();
        self.end()?;
        Ok(element)
    }

    /// Checks that nothing follows.
    ///
    /// # Errors
    /// [`Fault::Trailing`] for further octets.
    pub const fn end(&self) -> Result<(), Fault> {
        match self.rest.len() {
            0 => Ok(()),
            rest => Err(Fault::Trailing(rest)),
        }
    }
}

impl<'a> Element<'a> {
    /// The value of all octets of `source`.
    ///
    /// # Errors
    /// [`Fault`] of the structure.
    pub fn only(source: &'a Bytes) -> Result<Self, Fault> {
        Reader::new(source).only()
    }

    /// The values inside this value.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a primitive value.
    pub const fn reader(&self) -> Result<Reader<'a>, Fault> {
        match self.constructed {
            true => Ok(Reader::nested(self.contents, self.source, self.levels)),
            false => Err(Fault::Invalid("a constructed value")),
        }
    }

    /// The single value inside an explicit tag.
    ///
    /// # Errors
    /// [`Fault`] of the structure; [`Fault::Missing`] and [`Fault::Trailing`] for another number of values.
    pub fn inner(&self) -> Result<Self, Fault> {
        let mut values = self.reader()?;
        let inner = values.read()?.ok_or(Fault::Missing("a value"))?;
        values.end()?;
        Ok(inner)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Element<'a>, Fault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let element = Element::first(self.source, self.rest, self.levels);
        self.rest = match &element {
            Ok(element) => self.rest.get(element.raw.len()..).unwrap_or_default(),
            Err(_) => &[],
        };
        Some(element)
    }
}
