//! What text a search sees of a message. `docs/internals/search.md` decides it, with vectors.

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

    /// Whether its texts are lists of addresses.
    const fn has_addresses(self) -> bool {
        matches!(self, Self::From | Self::To | Self::Cc | Self::Bcc)
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

/// How the texts of parts, of fields' values, and of names and addresses come about; none where that is not done.
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

/// Nothing is: what is ASCII and not encoded is its own text.
const PLAIN: Reading = Reading {
    part: |part, octets| Some(text::plain_single(part, octets)?.into()),
    value: text::plain_field,
    word: |word| Some(text::plain(word, None)?.to_owned()),
};

/// Takes texts; none for one that was not read.
type Each<'e> = &'e mut dyn FnMut(Zone, Option<&str>) -> ControlFlow<()>;

impl Searched<'_> {
    /// Gives the texts of some zones, one after the other, in the form in which they are compared
    /// ([`casemap`]). A match lies within one of them. What stands for no character is U+FFFD in
    /// them, which is in nothing that is looked for.
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

    /// Whether a text of some zones has something, as far as that is known without anything undone; none when
    /// a text that is not plain may have it, and when octets would have to be read again and again.
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

    /// The values of the message's fields of one name, as they are compared.
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

    /// Whether headers and texts of its parts have no more octets than it: they lie one behind the other. Of who
    /// lies about them each could be all of it.
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
            // A line that is no field has no name.
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

/// Gives the addresses of a field that its value does not show as those of ENVELOPE are: what is looked for is
/// theirs (RFC 9051 section 6.4.4), however the field has them.
fn addresses(zone: Zone, reading: Reading, value: &[u8], each: Each<'_>) -> ControlFlow<()> {
    if zone.has_addresses() {
        for address in respelled(&list_of(value)) {
            give(zone, (reading.word)(&address).as_deref(), each)?;
        }
    }
    ControlFlow::Continue(())
}

/// Gives a text as it is compared.
fn give(zone: Zone, text: Option<&str>, each: Each<'_>) -> ControlFlow<()> {
    each(zone, text.map(casemap).as_deref())
}

/// Whether a part's octets are text: its type says so, or it should have parts and has none.
fn is_text(part: &Part) -> bool {
    let (kind, _) = part.media_type();
    part.kind == PartKind::Single
        && (kind.eq_ignore_ascii_case(b"text") || kind.eq_ignore_ascii_case(b"multipart"))
}

#[cfg(test)]
mod tests;
