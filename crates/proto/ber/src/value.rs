//! Types of ASN.1, read from elements and written.

use bytes::Bytes;
use vere_units::Secret;

use super::bounds::ELEMENTS_MAX;
use super::element::Element;
use super::error::{BerError, Fault};
use super::tag::Tag;
use super::writer::{Writer, shortest};

/// A type of ASN.1.
pub trait Value: Sized {
    /// The name of the type, for errors.
    const NAME: &'static str;

    /// Whether the tag is a tag of the type.
    fn accepts(tag: Tag) -> bool;

    /// Reads a value with a tag of its own.
    ///
    /// # Errors
    /// [`BerError`] if the element is not a value of this type.
    fn read(element: &Element<'_>) -> Result<Self, BerError>;

    /// Writes the value with a tag of its own.
    fn write(&self, out: &mut Writer);

    /// Reads a value under the tag of a field. The tag replaces the tag of the type, except around a CHOICE.
    ///
    /// # Errors
    /// [`BerError`] if the element is not a value of this type.
    fn read_tagged(element: &Element<'_>) -> Result<Self, BerError> {
        Self::read(element)
    }

    /// Writes the value under the tag of a field.
    fn write_tagged(&self, tag: Tag, out: &mut Writer);
}

impl Element<'_> {
    /// The value of a type.
    ///
    /// # Errors
    /// [`BerError`] if the element is not a value of this type.
    pub fn value<T: Value>(&self) -> Result<T, BerError> {
        match T::accepts(self.tag) {
            true => T::read(self),
            false => Err(BerError::unexpected(T::NAME, self.tag)),
        }
    }
}

/// Any value, as received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Any(pub Bytes);

impl Value for Any {
    const NAME: &'static str = "any value";

    fn accepts(_: Tag) -> bool {
        true
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Ok(Self(element.to_bytes()))
    }

    fn write(&self, out: &mut Writer) {
        out.raw(&self.0);
    }

    fn read_tagged(element: &Element<'_>) -> Result<Self, BerError> {
        Self::read(&element.inner()?)
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.constructed(tag, |out| self.write(out));
    }
}

/// A value under the tag of a field, kept as received with that tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Kept(pub Bytes);

impl Value for Kept {
    const NAME: &'static str = "any value";

    fn accepts(_: Tag) -> bool {
        true
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Ok(Self(element.to_bytes()))
    }

    fn write(&self, out: &mut Writer) {
        out.raw(&self.0);
    }

    fn write_tagged(&self, _: Tag, out: &mut Writer) {
        out.raw(&self.0);
    }
}

/// A value under an explicit tag of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Explicit<T>(pub T);

impl<T: Value> Value for Explicit<T> {
    const NAME: &'static str = T::NAME;

    fn accepts(tag: Tag) -> bool {
        T::accepts(tag)
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        T::read(element).map(Self)
    }

    fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }

    fn read_tagged(element: &Element<'_>) -> Result<Self, BerError> {
        element.inner()?.value().map(Self)
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.constructed(tag, |out| self.write(out));
    }
}

/// A secret value.
impl<T: Value> Value for Secret<T> {
    const NAME: &'static str = T::NAME;

    fn accepts(tag: Tag) -> bool {
        T::accepts(tag)
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        T::read(element).map(Self::new)
    }

    fn write(&self, out: &mut Writer) {
        self.expose().write(out);
    }

    fn read_tagged(element: &Element<'_>) -> Result<Self, BerError> {
        T::read_tagged(element).map(Self::new)
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        self.expose().write_tagged(tag, out);
    }
}

/// Unknown elements, as received. The writer puts unknown elements last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Unknown(pub Vec<Bytes>);

impl Unknown {
    /// Keeps an element.
    pub fn keep(&mut self, element: &Element<'_>) {
        self.0.push(element.to_bytes());
    }

    /// Writes all elements.
    pub fn write(&self, out: &mut Writer) {
        for element in &self.0 {
            out.raw(element);
        }
    }
}

/// NULL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Null;

impl Value for Null {
    const NAME: &'static str = "NULL";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::NULL
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        match element.primitive("NULL")? {
            [] => Ok(Self),
            _ => Err(BerError::invalid("NULL without contents")),
        }
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::NULL, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.primitive(tag, &[]);
    }
}

impl Value for bool {
    const NAME: &'static str = "BOOLEAN";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::BOOLEAN
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Ok(element.boolean()?)
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::BOOLEAN, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.primitive(tag, if *self { &[0xFF] } else { &[0] });
    }
}

impl Value for i64 {
    const NAME: &'static str = "INTEGER";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::INTEGER
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Ok(element.integer()?)
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::INTEGER, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.primitive(tag, shortest(&self.to_be_bytes()));
    }
}

impl Value for u32 {
    const NAME: &'static str = "INTEGER";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::INTEGER
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Self::try_from(i64::read(element)?)
            .map_err(|_| BerError::invalid("an INTEGER from 0 to 4294967295"))
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::INTEGER, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        i64::from(*self).write_tagged(tag, out);
    }
}

/// OCTET STRING.
impl Value for Bytes {
    const NAME: &'static str = "OCTET STRING";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::OCTET_STRING
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Ok(element.bytes()?)
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::OCTET_STRING, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.primitive(tag, self);
    }
}

/// SEQUENCE OF, and SET OF under a tag of a field. The order of elements is kept in both. Types with an own
/// tag declare the tag.
impl<T: Value> Value for Vec<T> {
    const NAME: &'static str = "SEQUENCE OF";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::SEQUENCE
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        let mut values = Self::new();
        for child in element.reader()? {
            let child = child?;
            if values.len() == ELEMENTS_MAX {
                return Err(Fault::Elements(ELEMENTS_MAX).into());
            }
            values.push(child.value()?);
        }
        Ok(values)
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::SEQUENCE, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.constructed(tag, |out| {
            for value in self {
                value.write(out);
            }
        });
    }
}
