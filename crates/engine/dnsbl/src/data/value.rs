//! What a listed address or name is answered with, and templates of texts.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::Arc;

use hashbrown::HashTable;

use super::error::Reason;

/// Octets of a text at most: one character-string of a TXT record (RFC 1035 section 3.3.14).
pub const TEXT_MAX: usize = 255;
/// Different values of a dataset at most.
const VALUES_MAX: usize = 1 << 30;
/// The address that a listing has where the file names none.
pub const DEFAULT_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The answer for a listed address or name: an A record, and the template of a TXT record.
#[derive(Debug, Clone)]
pub struct Value {
    /// The A record.
    pub address: Ipv4Addr,
    text: Option<Box<str>>,
    scope: Arc<Scope>,
}

/// What all values of a dataset share: the variables of templates, and the TTL.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// `$0` to `$9`.
    pub(super) variables: [Option<Box<str>>; 10],
    /// `$=`.
    pub(super) base: Option<Box<str>>,
    /// `$TTL`.
    pub(super) ttl: Option<u32>,
}

impl Value {
    /// The template of the text, as the file has it.
    #[must_use]
    pub fn template(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The TTL that the dataset of the value gives, in seconds.
    #[must_use]
    pub fn ttl(&self) -> Option<u32> {
        self.scope.ttl
    }

    /// The text of the TXT record for a listed address or name, at most [`TEXT_MAX`] octets: `$` in the template is the
    /// subject, `$0` to `$9` are the variables of the dataset, and `$$` is a dollar sign.
    #[must_use]
    pub fn text_for(&self, subject: &str) -> Option<Cow<'_, str>> {
        let text = self.text.as_deref()?;
        if !text.contains('$') {
            return Some(Cow::Borrowed(cut(text)));
        }
        let mut filled = String::with_capacity(TEXT_MAX);
        self.scope.fill(text, subject, &mut filled);
        filled.truncate(cut(&filled).len());
        Some(Cow::Owned(filled))
    }
}

impl Scope {
    fn fill(&self, template: &str, subject: &str, filled: &mut String) {
        let mut rest = template;
        while let Some(place) = rest.find('$') {
            filled.push_str(&rest[..place]);
            if filled.len() > TEXT_MAX {
                return;
            }
            rest = &rest[place + 1..];
            match rest.bytes().next() {
                Some(b'$') => filled.push('$'),
                Some(digit @ b'0'..=b'9') => match &self.variables[usize::from(digit - b'0')] {
                    Some(variable) => filled.push_str(variable),
                    None => filled.extend(['$', char::from(digit)]),
                },
                _ => {
                    filled.push_str(subject);
                    continue;
                }
            }
            rest = &rest[1..];
        }
        filled.push_str(rest);
    }
}

/// The start of a text, at most [`TEXT_MAX`] octets, that ends between two characters.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_MAX)]
}

/// The different values of a dataset as they are read. A value is known by its place.
#[derive(Debug, Default)]
pub(super) struct Values {
    read: Vec<(Ipv4Addr, Option<Box<str>>)>,
    places: HashTable<u32>,
    hasher: RandomState,
}

impl Values {
    /// The place of a value, which is added if it is new.
    pub(super) fn place(&mut self, address: Ipv4Addr, text: Option<&str>) -> Result<u32, Reason> {
        let hash = self.hasher.hash_one((address, text));
        let read = &self.read;
        let same = |place: &u32| {
            let (a, t) = &read[*place as usize];
            *a == address && t.as_deref() == text
        };
        if let Some(place) = self.places.find(hash, same) {
            return Ok(*place);
        }
        if read.len() >= VALUES_MAX {
            let expected = format!("at most {VALUES_MAX} different values");
            return Err(Reason::bound(expected, "more"));
        }
        let place = read.len() as u32;
        self.read.push((address, text.map(Into::into)));
        let (read, hasher) = (&self.read, &self.hasher);
        self.places.insert_unique(hash, place, |place| {
            let (address, text) = &read[*place as usize];
            hasher.hash_one((*address, text.as_deref()))
        });
        Ok(place)
    }

    /// All values, by their places.
    pub(super) fn finish(self, scope: Scope) -> Vec<Value> {
        let scope = Arc::new(scope);
        let values = self.read.into_iter().map(|(address, text)| Value {
            address,
            text,
            scope: Arc::clone(&scope),
        });
        values.collect()
    }
}
