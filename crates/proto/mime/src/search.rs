//! The searchable text of a message. `docs/internals/search.md` is the specification, with vectors.

use std::borrow::Cow;
use std::ops::ControlFlow;

use memchr::memmem::Finder;

use crate::address::{list_of, respelled};
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
    /// The value of a From field of the message, and its addresses.
    From,
    /// The value of a To field of the message, and its addresses.
    To,
    /// The value of a Cc field of the message, and its addresses.
    Cc,
    /// The value of a Bcc field of the message, and its addresses.
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

    /// Whether the zone's texts are lists of addresses.
    const fn has_addresses(self) -> bool {
        matches!(self, Self::From | Self::To | Self::Cc | Self::Bcc)
    }
}

/// A message opened for search.
#[derive(Debug, Clone, Copy)]
pub struct Searched<'a> {
    /// Header fields added for the recipient, in front of the header.
    pub own: &'a [u8],
    /// The message, or the header alone if the search does not cover the body.
    pub message: &'a [u8],
    /// The parts of the message.
    pub parts: &'a [Part],
}

/// Functions that produce the texts of parts, of field values, and of names and addresses; `None` from a function
/// that skips the text.
#[derive(Clone, Copy)]
struct Reading {
    part: for<'a> fn(&Part, &'a [u8]) -> Option<Cow<'a, str>>,
    value: fn(&[u8]) -> Option<String>,
    word: fn(&[u8]) -> Option<String>,
}

/// Everything is undone.
const DECODED: Reading = Reading {
    part: |part, octets| Some(text::of_single(part, octets).into()),
    value: |value| Some(text::of_field(value)),
    word: |word| Some(text::in_charset(word, None)),
};

/// Decodes no text: unencoded ASCII is its own text.
const PLAIN: Reading = Reading {
    part: |part, octets| Some(text::plain_single(part, octets)?.into()),
    value: text::plain_field,
    word: |word| Some(text::plain(word, None)?.to_owned()),
};

/// A consumer of texts; `None` stands for a skipped text.
type Each<'e> = &'e mut dyn FnMut(Zone, Option<&str>) -> ControlFlow<()>;

impl Searched<'_> {
    /// Passes the texts of the wanted zones to `each`, in the form used for comparison ([`casemap`]). A match
    /// lies within a single text. Undecodable octets become U+FFFD, which no search text contains.
    pub fn texts(
        &self,
        wanted: impl Fn(Zone) -> bool,
        each: &mut impl FnMut(Zone, &str) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.read(DECODED, wanted, &mut |zone, text| match text {
            Some(text) => each(zone, text),
            None => ControlFlow::Continue(()),
        })
    }

    /// Whether a text of the wanted zones contains the search text, as far as plain texts show; `None` when an
    /// encoded text may contain the search text, and when a malicious part list would make the search read the
    /// same octets repeatedly.
    pub(crate) fn plainly_has(
        &self,
        wanted: impl Fn(Zone) -> bool,
        what: &Finder<'_>,
    ) -> Option<bool> {
        if !self.has_room_for_parts() {
            return None;
        }
        let mut are_all_plain = true;
        let found = self.read(PLAIN, wanted, &mut |_, text| {
            are_all_plain &= text.is_some();
            match text.and_then(|text| what.find(text.as_bytes())) {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        (found.is_break() || are_all_plain).then_some(found.is_break())
    }

    /// The values of the message's fields with the name, in the form used for comparison.
    pub fn field<'b>(&'b self, name: &'b str) -> impl Iterator<Item = String> + 'b {
        self.own_fields()
            .filter(move |field| field.is(name))
            .map(|field| casemap(&text::of_field(field.value)))
    }

    fn read(
        &self,
        reading: Reading,
        wanted: impl Fn(Zone) -> bool,
        each: Each<'_>,
    ) -> ControlFlow<()> {
        if wanted(Zone::Header) {
            self.headers(reading, each)?;
        }
        for field in self.own_fields() {
            if let Some(zone) = Zone::of_field(field.name).filter(|zone| wanted(*zone)) {
                give(zone, (reading.value)(field.value).as_deref(), each)?;
                addresses(zone, reading, field.value, each)?;
            }
        }
        if wanted(Zone::Body) {
            self.bodies(reading, each)?;
        }
        ControlFlow::Continue(())
    }

    /// Whether headers and texts of the parts together have no more octets than the message, as disjoint parts
    /// do. In a forged part list each part could span the whole message.
    fn has_room_for_parts(&self) -> bool {
        let texts = |part: &Part| match part.kind {
            PartKind::Single => self.octets(&part.body).len(),
            PartKind::Multipart | PartKind::Message => 0,
        };
        let of = |part: &Part| self.octets(&part.header).len().saturating_add(texts(part));
        let octets = self.parts.iter().map(of);
        octets.fold(0, usize::saturating_add) <= self.message.len()
    }

    fn octets(&self, range: &std::ops::Range<usize>) -> &[u8] {
        self.message.get(range.clone()).unwrap_or_default()
    }

    fn own_fields(&self) -> impl Iterator<Item = crate::Field<'_>> {
        let header = self.parts.first().map(|root| self.octets(&root.header));
        fields(self.own).chain(fields(header.unwrap_or_default()))
    }

    fn headers(&self, reading: Reading, each: Each<'_>) -> ControlFlow<()> {
        let within = self.parts.iter().skip(1);
        let within = within.flat_map(|part| fields(self.octets(&part.header)));
        for field in self.own_fields().chain(within) {
            let value = (reading.value)(field.value);
            // A line without a field name has no value.
            let whole = value.and_then(|value| match field.name {
                [] => Some(value),
                name => Some(format!("{}: {value}", (reading.word)(name)?)),
            });
            give(Zone::Header, whole.as_deref(), each)?;
        }
        ControlFlow::Continue(())
    }

    fn bodies(&self, reading: Reading, each: Each<'_>) -> ControlFlow<()> {
        for part in self.parts.iter().filter(|part| is_text(part)) {
            let octets = self.octets(&part.body);
            give(Zone::Body, (reading.part)(part, octets).as_deref(), each)?;
        }
        ControlFlow::Continue(())
    }
}

/// Passes the addresses that ENVELOPE would show and the field's value does not contain in this form: a search
/// looks for the addresses of ENVELOPE (RFC 9051 section 6.4.4), however the field writes the addresses.
fn addresses(zone: Zone, reading: Reading, value: &[u8], each: Each<'_>) -> ControlFlow<()> {
    if zone.has_addresses() {
        for address in respelled(&list_of(value)) {
            give(zone, (reading.word)(&address).as_deref(), each)?;
        }
    }
    ControlFlow::Continue(())
}

/// Passes a text in the form used for comparison.
fn give(zone: Zone, text: Option<&str>, each: Each<'_>) -> ControlFlow<()> {
    each(zone, text.map(casemap).as_deref())
}

/// Whether a part's octets are text: the type is text, or multipart although the part has no children.
fn is_text(part: &Part) -> bool {
    let (kind, _) = part.media_type();
    part.kind == PartKind::Single
        && (kind.eq_ignore_ascii_case(b"text") || kind.eq_ignore_ascii_case(b"multipart"))
}

#[cfg(test)]
mod tests;
