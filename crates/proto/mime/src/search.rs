//! What text a search sees of a message. `docs/internals/search.md` decides it, with vectors.

use std::ops::ControlFlow;

use crate::casemap::casemap;
use crate::header::fields;
use crate::structure::{Part, PartKind};
use crate::text;

/// A kind of text in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Zone {
    /// The text of a part.
    Body,
    /// A field with its name, of the message, of a part or of a message within.
    Header,
    /// The value of a From field of the message.
    From,
    /// The value of a To field of the message.
    To,
    /// The value of a Cc field of the message.
    Cc,
    /// The value of a Bcc field of the message.
    Bcc,
    /// The value of a Subject field of the message.
    Subject,
}

impl Zone {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Body,
        Self::Header,
        Self::From,
        Self::To,
        Self::Cc,
        Self::Bcc,
        Self::Subject,
    ];

    /// The zone that the values of a field of the message have for themselves.
    #[must_use]
    pub fn of_field(name: &[u8]) -> Option<Self> {
        let named: [(&[u8], Self); 5] = [
            (b"from", Self::From),
            (b"to", Self::To),
            (b"cc", Self::Cc),
            (b"bcc", Self::Bcc),
            (b"subject", Self::Subject),
        ];
        let found = named.iter().find(|(own, _)| name.eq_ignore_ascii_case(own));
        found.map(|(_, zone)| *zone)
    }
}

/// A message whose texts are looked at.
#[derive(Debug, Clone, Copy)]
pub struct Searched<'a> {
    /// Fields that stand before its header.
    pub own: &'a [u8],
    /// The message, or its header, when nothing of its body is wanted.
    pub message: &'a [u8],
    /// What was found in it.
    pub parts: &'a [Part],
}

impl Searched<'_> {
    /// Gives the texts of some zones, one after the other, in the form in which they are compared
    /// ([`casemap`]). A match lies within one of them. What stands for no character is U+FFFD in
    /// them, which is in nothing that is looked for.
    pub fn texts(
        &self,
        wanted: impl Fn(Zone) -> bool,
        each: &mut impl FnMut(Zone, &str) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if wanted(Zone::Header) {
            self.headers(each)?;
        }
        for field in self.own_fields() {
            if let Some(zone) = Zone::of_field(field.name).filter(|zone| wanted(*zone)) {
                each(zone, &casemap(&text::of_field(field.value)))?;
            }
        }
        if wanted(Zone::Body) {
            self.bodies(each)?;
        }
        ControlFlow::Continue(())
    }

    /// The values of the message's fields of one name, as they are compared.
    pub fn field<'b>(&'b self, name: &'b str) -> impl Iterator<Item = String> + 'b {
        self.own_fields()
            .filter(move |field| field.is(name))
            .map(|field| casemap(&text::of_field(field.value)))
    }

    fn octets(&self, range: &std::ops::Range<usize>) -> &[u8] {
        self.message.get(range.clone()).unwrap_or_default()
    }

    fn own_fields(&self) -> impl Iterator<Item = crate::Field<'_>> {
        let header = self.parts.first().map(|root| self.octets(&root.header));
        fields(self.own).chain(fields(header.unwrap_or_default()))
    }

    fn headers(&self, each: &mut impl FnMut(Zone, &str) -> ControlFlow<()>) -> ControlFlow<()> {
        let within = self.parts.iter().skip(1);
        let within = within.flat_map(|part| fields(self.octets(&part.header)));
        for field in self.own_fields().chain(within) {
            let value = text::of_field(field.value);
            // A line that is no field has no name.
            let whole = match field.name {
                [] => value,
                name => format!("{}: {value}", text::in_charset(name, None)),
            };
            each(Zone::Header, &casemap(&whole))?;
        }
        ControlFlow::Continue(())
    }

    fn bodies(&self, each: &mut impl FnMut(Zone, &str) -> ControlFlow<()>) -> ControlFlow<()> {
        for part in self.parts.iter().filter(|part| is_text(part)) {
            let octets = self.octets(&part.body);
            each(Zone::Body, &casemap(&text::of_single(part, octets)))?;
        }
        ControlFlow::Continue(())
    }
}

/// Whether a part's octets are text: its type says so, or it should have parts and has none.
fn is_text(part: &Part) -> bool {
    let (kind, _) = part.media_type();
    part.kind == PartKind::Single
        && (kind.eq_ignore_ascii_case(b"text") || kind.eq_ignore_ascii_case(b"multipart"))
}

#[cfg(test)]
mod tests;
