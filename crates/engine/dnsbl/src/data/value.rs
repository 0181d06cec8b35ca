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

    /// The text of the TXT record for a listed address or name, at most [`TEXT_MAX`] octets.
    ///
    /// `$` in the template is the subject, `$0` to `$9` are the variables of the dataset, and `$$` is a dollar sign. If
    /// the dataset has a base template, the base template is filled instead: its `$=` is the text of the entry, or the
    /// subject if the entry has no text. A text that begins with `=` does without the base template.
    #[must_use]
    pub fn text_for(&self, subject: &str) -> Option<Cow<'_, str>> {
        let template = self.effective()?;
        if !template.contains('$') {
            return Some(Cow::Borrowed(cut(template)));
        }
        let filled = self.fill(template, subject, Cow::Borrowed);
        Some(Cow::Owned(cut(&filled).to_owned()))
    }

    /// Whether the text differs from subject to subject, or has other variables.
    #[must_use]
    pub fn has_variables(&self) -> bool {
        let template = self.effective();
        template.is_some_and(|template| template.contains('$'))
    }

    /// A template for equal texts without variables and base template.
    #[must_use]
    pub fn resolved(&self) -> Option<String> {
        let template = self.effective()?;
        let escaped = |text| Cow::Owned(str::replace(text, "$", "$$"));
        let filled = self.fill(template, "$", escaped);
        match filled.starts_with('=') {
            true => Some(format!("={filled}")),
            false => Some(filled),
        }
    }

    /// The template that is filled, and is not empty.
    fn effective(&self) -> Option<&str> {
        let base = self.scope.base.as_deref();
        let template = match self.text.as_deref() {
            Some(own) => match own.strip_prefix('=') {
                Some(alone) => alone,
                None => base.unwrap_or(own),
            },
            None => base?,
        };
        (!template.is_empty()).then_some(template)
    }

    /// Fills a template; `plain` makes the form of a text in which a dollar sign has no meaning.
    fn fill<'a>(
        &'a self,
        template: &'a str,
        subject: &str,
        plain: impl Fn(&'a str) -> Cow<'a, str>,
    ) -> String {
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('$')
            && filled.len() <= TEXT_MAX
        {
            filled.push_str(before);
            let mut following = after.chars();
            match following.next() {
                Some('$') => filled.push_str(&plain("$")),
                Some('=') => match self.text.as_deref() {
                    Some(own) => filled.push_str(&plain(own)),
                    None => filled.push_str(subject),
                },
                Some(digit @ '0'..='9') => {
                    match self.scope.variables.get(digit as usize - '0' as usize) {
                        Some(Some(variable)) => filled.push_str(&plain(variable)),
                        _ => {
                            filled.push_str(&plain("$"));
                            filled.push(digit);
                        }
                    }
                }
                _ => {
                    filled.push_str(subject);
                    following = after.chars();
                }
            }
            rest = following.as_str();
        }
        filled.push_str(rest);
        filled
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

    /// Makes a value the only one.
    pub(super) fn only(&mut self, address: Ipv4Addr, text: Option<Box<str>>) {
        self.places.clear();
        self.read = vec![(address, text)];
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
