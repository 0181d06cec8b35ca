//! The kind of a frame, and the number of octets behind it.
//!
//! The number is read from every kind, also where a kind has no such field: the reader then passes over the octets.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// The kind and the octets of a frame.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) kind: String,
    pub(crate) octets: u64,
}

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadVisitor)
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with one field, the kind of the frame")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head, A::Error> {
        let Some((kind, Count(octets))) = map.next_entry()? else {
            return Err(A::Error::custom(
                "expected one field, the kind of the frame; found none",
            ));
        };
        match map.next_entry::<IgnoredAny, IgnoredAny>()? {
            Some(_) => Err(A::Error::custom(
                "expected one field, the kind of the frame; found two",
            )),
            None => Ok(Head { kind, octets }),
        }
    }
}

/// The field `octets` of a value.
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object as the value of the kind")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
        let mut octets = None;
        while let Some(field) = map.next_key::<String>()? {
            if field != "octets" {
                map.next_value::<IgnoredAny>()?;
            } else if octets.replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field("octets"));
            }
        }
        Ok(Count(octets.unwrap_or(0)))
    }
}
