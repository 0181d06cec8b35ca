//! The encoding of [`Parsed`], drawn in `docs/internals/parsed.md`.

use std::ops::Range;

mod view;

pub use view::{AddressView, AddressesView, EnvelopeView};

use crate::{Address, Envelope, Parameterized, Parsed, Part, PartKind, SentDate};

/// The version of the encoding.
const VERSION: u8 = 1;
/// The longest list of anything.
const LIST_MAX: u64 = 100_000;

/// The octets are not an encoding of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("octets that are no parse result of this version")]
pub struct CodecError;

impl Parsed {
    /// Its octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(vec![VERSION]);
        out.list(&self.references, |out, hash| {
            out.0.extend_from_slice(&hash.to_le_bytes())
        });
        out.octets(self.preview.as_bytes());
        out.list(&self.parts, Out::part);
        out.0
    }

    /// Decodes the output of [`Parsed::encode`].
    ///
    /// # Errors
    ///
    /// [`CodecError`].
    pub fn decode(octets: &[u8]) -> Result<Self, CodecError> {
        let mut octets = In(octets);
        octets
            .parsed()
            .filter(|_| octets.0.is_empty())
            .ok_or(CodecError)
    }

    /// Whether octets were written in the version that is written now.
    #[must_use]
    pub fn is_current(octets: &[u8]) -> bool {
        octets.first() == Some(&VERSION)
    }
}

struct Out(Vec<u8>);

impl Out {
    /// Seven bits an octet, the lowest first; the high bit says that more follow.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            let [low, ..] = number.to_le_bytes();
            self.0.push(low | 0x80);
            number >>= 7;
        }
        let [low, ..] = number.to_le_bytes();
        self.0.push(low);
    }

    fn octets(&mut self, octets: &[u8]) {
        self.number(octets.len() as u64);
        self.0.extend_from_slice(octets);
    }

    fn optional<T>(&mut self, value: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn text(&mut self, text: Option<&Vec<u8>>) {
        self.optional(text, |out, text| out.octets(text));
    }

    fn list<T>(&mut self, list: &[T], write: impl Fn(&mut Self, &T)) {
        self.number(list.len() as u64);
        list.iter().for_each(|each| write(self, each));
    }

    fn range(&mut self, range: &Range<usize>) {
        self.number(range.start as u64);
        self.number(range.len() as u64);
    }

    fn parameterized(&mut self, value: &Parameterized) {
        self.octets(&value.value);
        self.list(&value.parameters, |out, (name, value)| {
            out.octets(name);
            out.octets(value);
        });
    }

    fn part(&mut self, part: &Part) {
        let kind = match part.kind {
            PartKind::Single => 0,
            PartKind::Multipart => 1,
            PartKind::Message => 2,
        };
        self.0.push(kind | if part.in_digest { 0x80 } else { 0 });
        self.number(part.parent as u64);
        self.range(&part.header);
        self.range(&part.body);
        self.number(u64::from(part.lines));
        self.optional(part.envelope.as_deref(), Self::envelope);
        self.optional(part.content_type.as_ref(), Self::parameterized);
        self.optional(part.disposition.as_ref(), Self::parameterized);
        let texts = [
            &part.encoding,
            &part.id,
            &part.description,
            &part.md5,
            &part.language,
            &part.location,
        ];
        texts.into_iter().for_each(|text| self.text(text.as_ref()));
    }

    fn envelope(&mut self, envelope: &Envelope) {
        let texts = [
            &envelope.date,
            &envelope.subject,
            &envelope.in_reply_to,
            &envelope.message_id,
        ];
        texts.into_iter().for_each(|text| self.text(text.as_ref()));
        let lists = [
            &envelope.from,
            &envelope.sender,
            &envelope.reply_to,
            &envelope.to,
            &envelope.cc,
            &envelope.bcc,
        ];
        lists
            .into_iter()
            .for_each(|list| self.list(list, Self::address));
        self.optional(envelope.sent.as_ref(), |out, sent| {
            out.0.extend_from_slice(&sent.seconds.to_le_bytes());
            out.0.extend_from_slice(&sent.day.to_le_bytes());
        });
    }

    fn address(&mut self, address: &Address) {
        let texts = [
            &address.name,
            &address.route,
            &address.mailbox,
            &address.host,
        ];
        texts.into_iter().for_each(|text| self.text(text.as_ref()));
    }
}

#[derive(Clone)]
struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn octet(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn eight(&mut self) -> Option<[u8; 8]> {
        self.take(8)?.first_chunk().copied()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.octet()?;
            number |= u64::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn borrowed(&mut self) -> Option<&'a [u8]> {
        let count = self.size()?;
        self.take(count)
    }

    fn octets(&mut self) -> Option<Vec<u8>> {
        self.borrowed().map(<[u8]>::to_vec)
    }

    /// `Some(None)` for an absent value.
    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.octet()? {
            0 => Some(None),
            1 => Some(Some(read(self)?)),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<Option<Vec<u8>>> {
        self.optional(Self::octets)
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number().filter(|count| *count <= LIST_MAX)?;
        (0..count).map(|_| read(self)).collect()
    }

    fn range(&mut self) -> Option<Range<usize>> {
        let start = self.size()?;
        let end = start.checked_add(self.size()?)?;
        Some(start..end)
    }

    fn hash(&mut self) -> Option<u64> {
        self.eight().map(u64::from_le_bytes)
    }

    fn version(&mut self) -> Option<u8> {
        self.octet().filter(|version| *version == VERSION)
    }

    fn parsed(&mut self) -> Option<Parsed> {
        self.version()?;
        let references = self.list(Self::hash)?;
        let preview = String::from_utf8(self.octets()?).ok()?;
        let parts = self.list(Self::part)?;
        Some(Parsed {
            parts,
            preview,
            references,
        })
    }

    fn parameterized(&mut self) -> Option<Parameterized> {
        Some(Parameterized {
            value: self.octets()?,
            parameters: self.list(|octets| Some((octets.octets()?, octets.octets()?)))?,
        })
    }

    fn part(&mut self) -> Option<Part> {
        let kind = self.octet()?;
        Some(Part {
            kind: match kind & 0x7f {
                0 => PartKind::Single,
                1 => PartKind::Multipart,
                2 => PartKind::Message,
                _ => return None,
            },
            in_digest: kind & 0x80 != 0,
            parent: self.size()?,
            header: self.range()?,
            body: self.range()?,
            lines: u32::try_from(self.number()?).ok()?,
            envelope: self.optional(Self::envelope)?.map(Box::new),
            content_type: self.optional(Self::parameterized)?,
            disposition: self.optional(Self::parameterized)?,
            encoding: self.text()?,
            id: self.text()?,
            description: self.text()?,
            md5: self.text()?,
            language: self.text()?,
            location: self.text()?,
        })
    }

    fn envelope(&mut self) -> Option<Envelope> {
        let mut envelope = Envelope {
            date: self.text()?,
            subject: self.text()?,
            in_reply_to: self.text()?,
            message_id: self.text()?,
            from: self.list(Self::address)?,
            sender: self.list(Self::address)?,
            reply_to: self.list(Self::address)?,
            to: self.list(Self::address)?,
            cc: self.list(Self::address)?,
            bcc: self.list(Self::address)?,
            sent: self.optional(|octets| {
                Some(SentDate {
                    seconds: i64::from_le_bytes(octets.eight()?),
                    day: i64::from_le_bytes(octets.eight()?),
                })
            })?,
        };
        // Parsers before understood fewer dates.
        if envelope.sent.is_none() {
            envelope.sent = envelope.date.as_deref().and_then(crate::sent);
        }
        Some(envelope)
    }

    fn address(&mut self) -> Option<Address> {
        Some(Address {
            name: self.text()?,
            route: self.text()?,
            mailbox: self.text()?,
            host: self.text()?,
        })
    }
}
