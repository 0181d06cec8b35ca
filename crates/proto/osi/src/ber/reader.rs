//! Reads values that are in memory, as slices of the octets.

use bytes::Bytes;

use super::{BerError, Element, Header, Length, NESTING_MAX, Tag};

/// Values one after the other.
#[derive(Debug, Clone)]
pub struct Reader {
    rest: Bytes,
    levels: u8,
}

impl Reader {
    /// Reads the values of these octets.
    #[must_use]
    pub const fn new(octets: Bytes) -> Self {
        Self::nested(octets, NESTING_MAX)
    }

    const fn nested(rest: Bytes, levels: u8) -> Self {
        Self { rest, levels }
    }

    /// The octets that are not read yet.
    #[must_use]
    pub const fn rest(&self) -> &Bytes {
        &self.rest
    }

    /// The tag of the next value, if there is a value.
    #[must_use]
    pub fn peek(&self) -> Option<Tag> {
        Header::read(&self.rest)
            .ok()
            .flatten()
            .map(|header| header.tag)
    }

    /// Reads the next value; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`BerError`] for octets that are no value.
    pub fn read(&mut self) -> Result<Option<Element>, BerError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let levels = self.levels.checked_sub(1).ok_or(BerError::Nesting)?;
        let header = Header::read(&self.rest)?.ok_or(BerError::Short)?;
        let body = self.rest.get(header.octets..).ok_or(BerError::Short)?;
        let (content, trailer) = match header.length {
            Length::Definite(length) => (usize::try_from(length).unwrap_or(usize::MAX), 0),
            Length::Indefinite => (content_before_end(body, levels)?, 2),
        };
        let total = header
            .octets
            .saturating_add(content)
            .saturating_add(trailer);
        if total > self.rest.len() {
            return Err(BerError::Short);
        }
        let whole = self.rest.split_to(total);
        let content = whole.slice(header.octets..header.octets.saturating_add(content));
        Ok(Some(Element::new(header, content, whole, levels)))
    }

    /// Reads the next value if it has this tag.
    ///
    /// # Errors
    ///
    /// [`BerError`] for octets that are no value.
    pub fn optional(&mut self, tag: Tag) -> Result<Option<Element>, BerError> {
        match self.peek() == Some(tag) {
            true => self.read(),
            false => Ok(None),
        }
    }

    /// Reads the next value, which has this tag.
    ///
    /// # Errors
    ///
    /// [`BerError`] for octets that are no value, another tag, and the end.
    pub fn expect(&mut self, tag: Tag) -> Result<Element, BerError> {
        match self.read()? {
            None => Err(BerError::Missing(tag)),
            Some(element) if element.tag() == tag => Ok(element),
            Some(element) => Err(BerError::Tag {
                expected: tag,
                found: element.tag(),
            }),
        }
    }

    /// Reads the only value of the octets.
    ///
    /// # Errors
    ///
    /// [`BerError`] for octets that are no value, several values, and none.
    pub fn only(mut self) -> Result<Element, BerError> {
        let element = self.read()?.ok_or(BerError::Short)?;
        self.end()?;
        Ok(element)
    }

    /// Checks that nothing follows.
    ///
    /// # Errors
    ///
    /// [`BerError::Unexpected`] for a further value.
    pub fn end(&self) -> Result<(), BerError> {
        match Header::read(&self.rest)? {
            None if self.rest.is_empty() => Ok(()),
            None => Err(BerError::Short),
            Some(header) => Err(BerError::Unexpected(header.tag)),
        }
    }
}

impl Element {
    /// Reads the values of the content.
    ///
    /// # Errors
    ///
    /// [`BerError::Content`] for a primitive value.
    pub fn reader(&self) -> Result<Reader, BerError> {
        match self.is_constructed() {
            true => Ok(Reader::nested(self.content().clone(), self.levels)),
            false => Err(BerError::Content("a constructed value")),
        }
    }

    /// The only value within: what an explicit tag is around.
    ///
    /// # Errors
    ///
    /// [`BerError`] for no value and for several values.
    pub fn inner(&self) -> Result<Self, BerError> {
        self.reader()?.only()
    }
}

/// Octets of the values before the end-of-contents octets that belong to the value around them.
fn content_before_end(body: &[u8], levels: u8) -> Result<usize, BerError> {
    let mut open = 1_u8;
    let mut rest = body;
    loop {
        if Header::is_end(rest) {
            open = open.saturating_sub(1);
            if open == 0 {
                return Ok(body.len().saturating_sub(rest.len()));
            }
            rest = rest.get(2..).ok_or(BerError::Short)?;
            continue;
        }
        let header = Header::read(rest)?.ok_or(BerError::Short)?;
        let content = match header.length {
            Length::Definite(length) => usize::try_from(length).unwrap_or(usize::MAX),
            Length::Indefinite if open > levels => return Err(BerError::Nesting),
            Length::Indefinite => {
                open = open.saturating_add(1);
                0
            }
        };
        let next = header.octets.saturating_add(content);
        rest = rest.get(next..).ok_or(BerError::Short)?;
    }
}
