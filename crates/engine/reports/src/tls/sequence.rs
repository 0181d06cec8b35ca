//! Lists and texts of JSON with a bound on each.
//!
//! serde's own lists grow with their elements: three octets of JSON can become 300 octets of memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::bounds::TEXT_OCTETS_MAX;
use crate::text::kept;

/// A list of at most `MAX` elements; a single element stands for a list of one, and `null` for none.
#[derive(Debug, Clone)]
pub(super) struct Bounded<T, const MAX: usize>(pub(super) Vec<T>);

impl<T, const MAX: usize> Default for Bounded<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct Elements<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Elements<T, MAX> {
    type Value = Bounded<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut out = Vec::new();
        while let Some(element) = list.next_element()? {
            if out.len() >= MAX {
                return Err(Error::custom(format_args!(
                    "expected at most {MAX} elements of a list; found more"
                )));
            }
            out.push(element);
        }
        Ok(Bounded(out))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let element = T::deserialize(serde::de::value::StrDeserializer::new(text))?;
        Ok(Bounded(vec![element]))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Bounded::default())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Bounded<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Elements(PhantomData))
    }
}

impl<T: Serialize, const MAX: usize> Serialize for Bounded<T, MAX> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

/// A text of at most [`TEXT_OCTETS_MAX`] octets.
#[derive(Debug, Clone, Default)]
pub(super) struct Text(pub(super) String);

struct Characters;

impl Visitor<'_> for Characters {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text of at most {TEXT_OCTETS_MAX} octets")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        kept(text).map(Text).map_err(Error::custom)
    }

    fn visit_unit<E: Error>(self) -> Result<Text, E> {
        Ok(Text::default())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Characters)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}
