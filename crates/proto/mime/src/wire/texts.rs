//! Requests about the texts of many messages: to return the texts, or to search the texts.
//!
//! ```text
//! TEXTS  x message
//! ZONES  text: what is looked for | x message
//! FIELD  text: the name of a field | text: what is looked for | x message
//!
//! text     u32 octets | octets
//! message  u8 zones, a bit of each, counted by ZONES alone | text: fields that stand before it
//!          text: what was found in it, encoded; nothing, and what cannot be read, has it taken apart anew
//!          text: the message, or its header where that does
//!
//! answers  TEXTS  for each message x { u8 zone | text } | u8 254 these are all, 255 there are more
//!          HOLDS  for each message u8 1 when it has what is looked for, 0 when it has not
//! ```

use std::ops::{ControlFlow, Range};

use memchr::memmem::Finder;

use super::{FIELD, HEAD_OCTETS, HOLDS, TEXTS, TEXTS_FOUND, WireError, ZONES, head, read_head_of};
use crate::search::{Searched, Zone};
use crate::{Parsed, Part};

/// The most octets returned of a message's texts, separators included.
pub const TEXTS_OCTETS_MAX: usize = 16 << 20;
/// Texts have no more octets for each of a message's. Decomposed, a character of two octets may take 33
/// (U+FDFA in UTF-16), in a field whose text is told twice.
const TEXT_GROWTH: usize = 72;
/// The texts of an empty message have no more than this.
const TEXT_OCTETS_MIN: usize = 64;

/// The mark behind the complete texts of a message, and the mark behind cut texts.
const ALL: u8 = 254;
const CUT: u8 = 255;

/// A question about texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question<'a> {
    /// Returns the texts in the form used for comparison ([`crate::casemap`]).
    Texts,
    /// Asks whether the zones named by each message contain this text, in the form used for comparison.
    Zones(&'a [u8]),
    /// Whether a field of the message itself has something.
    Field {
        /// The name of the field, in any case.
        name: &'a str,
        /// The text to find in the value.
        what: &'a [u8],
    },
}

/// A message in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// A bit for each [`Zone`], at the zone's number.
    pub zones: u8,
    /// Header fields added for the recipient, in front of the header.
    pub own: &'a [u8],
    /// The parse result ([`Parsed::encode`]).
    pub record: &'a [u8],
    /// The message, or the header.
    pub message: &'a [u8],
}

impl Item<'_> {
    fn wants(&self, zone: Zone) -> bool {
        self.zones >> (zone as u8) & 1 == 1
    }

    /// The most octets that the message's texts may have.
    fn most(&self) -> usize {
        let octets = self.own.len().saturating_add(self.message.len());
        octets
            .saturating_mul(TEXT_GROWTH)
            .saturating_add(TEXT_OCTETS_MIN)
            .min(TEXTS_OCTETS_MAX)
    }

    /// The parts, in the order required by [`Searched`].
    fn parts(&self) -> Vec<Part> {
        // Fields alone: there is no message.
        if self.message.is_empty() && self.record.is_empty() {
            return Vec::new();
        }
        let known = Parsed::decode(self.record).ok();
        known.unwrap_or_else(|| Parsed::of(self.message)).parts
    }

    fn searched<'s>(&'s self, parts: &'s [Part]) -> Searched<'s> {
        Searched {
            own: self.own,
            message: self.message,
            parts,
        }
    }
}

/// Whether a message contains the search text in its zones, as far as the answer needs no decoding: plain ASCII
/// texts are only converted to upper case. The parser gives the same answer for every message that can be decided
/// here.
#[must_use]
pub fn plainly_holds(question: Question<'_>, item: &Item<'_>) -> Option<bool> {
    let Question::Zones(what) = question else {
        return None;
    };
    let parts = Parsed::decode(item.record).ok()?.parts;
    let searched = item.searched(&parts);
    searched.plainly_has(|zone| item.wants(zone), &Finder::new(what))
}

/// A request about messages: the whole frame. `None` when the frame would be too long.
#[must_use]
pub fn request<'a>(
    question: Question<'_>,
    items: impl IntoIterator<Item = Item<'a>>,
) -> Option<Vec<u8>> {
    let mut frame = vec![0; HEAD_OCTETS];
    let kind = match question {
        Question::Texts => TEXTS,
        Question::Zones(what) => {
            put(&mut frame, what)?;
            ZONES
        }
        Question::Field { name, what } => {
            put(&mut frame, name.as_bytes())?;
            put(&mut frame, what)?;
            FIELD
        }
    };
    for item in items {
        frame.push(item.zones);
        put(&mut frame, item.own)?;
        put(&mut frame, item.record)?;
        put(&mut frame, item.message)?;
    }
    let head = head(kind, frame.len().checked_sub(HEAD_OCTETS)?)?;
    frame.get_mut(..HEAD_OCTETS)?.copy_from_slice(&head);
    Some(frame)
}

fn put(into: &mut Vec<u8>, octets: &[u8]) -> Option<()> {
    into.extend_from_slice(&u32::try_from(octets.len()).ok()?.to_le_bytes());
    into.extend_from_slice(octets);
    Some(())
}

fn take<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], WireError> {
    let (len, rest) = from.split_first_chunk().ok_or(WireError::Content)?;
    let len = usize::try_from(u32::from_le_bytes(*len)).map_err(|_| WireError::Content)?;
    let (octets, rest) = rest.split_at_checked(len).ok_or(WireError::Content)?;
    *from = rest;
    Ok(octets)
}

fn take_octet(from: &mut &[u8]) -> Result<u8, WireError> {
    let (octet, rest) = from.split_first().ok_or(WireError::Content)?;
    *from = rest;
    Ok(*octet)
}

fn take_item<'a>(from: &mut &'a [u8]) -> Result<Item<'a>, WireError> {
    Ok(Item {
        zones: take_octet(from)?,
        own: take(from)?,
        record: take(from)?,
        message: take(from)?,
    })
}

/// The parser's side of [`Question::Texts`].
pub(super) fn all_of(mut content: &[u8], answer: &mut Vec<u8>) -> Result<(), WireError> {
    while !content.is_empty() {
        let item = take_item(&mut content)?;
        let parts = item.parts();
        let most = answer.len().saturating_add(TEXTS_OCTETS_MAX);
        let each = &mut |zone: Zone, text: &str| {
            // The octets before the text, and the one at the end.
            let octets = answer.len().saturating_add(text.len()).saturating_add(6);
            if octets > most {
                return ControlFlow::Break(());
            }
            answer.push(zone as u8);
            match put(answer, text.as_bytes()) {
                Some(()) => ControlFlow::Continue(()),
                None => ControlFlow::Break(()),
            }
        };
        let told = item.searched(&parts).texts(|_| true, each);
        answer.push(if told.is_break() { CUT } else { ALL });
    }
    Ok(())
}

/// The parser's side of [`Question::Zones`].
pub(super) fn zones_hold(mut content: &[u8], answer: &mut Vec<u8>) -> Result<(), WireError> {
    let finder = Finder::new(take(&mut content)?);
    while !content.is_empty() {
        let item = take_item(&mut content)?;
        let parts = item.parts();
        let each = &mut |_: Zone, text: &str| match finder.find(text.as_bytes()) {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        };
        let found = item
            .searched(&parts)
            .texts(|zone| item.wants(zone), each)
            .is_break();
        answer.push(u8::from(found));
    }
    Ok(())
}

/// The parser's side of [`Question::Field`].
pub(super) fn field_holds(mut content: &[u8], answer: &mut Vec<u8>) -> Result<(), WireError> {
    let name = std::str::from_utf8(take(&mut content)?).map_err(|_| WireError::Content)?;
    let finder = Finder::new(take(&mut content)?);
    while !content.is_empty() {
        let item = take_item(&mut content)?;
        let parts = item.parts();
        let searched = item.searched(&parts);
        let found = searched
            .field(name)
            .any(|value| finder.find(value.as_bytes()).is_some());
        answer.push(u8::from(found));
    }
    Ok(())
}

/// Parses the head of an answer to [`Question::Zones`] or [`Question::Field`] about this many messages: returns
/// the number of octets that follow.
///
/// # Errors
/// [`WireError`] for an invalid head.
pub fn holds_head(octets: &[u8; HEAD_OCTETS], messages: usize) -> Result<usize, WireError> {
    match read_head_of(octets, HOLDS, messages)? {
        content if content == messages => Ok(content),
        other => Err(WireError::Length(other)),
    }
}

/// Decodes the result of the search for each message.
///
/// # Errors
/// [`WireError::Content`].
pub fn holds(content: &[u8]) -> Result<Vec<bool>, WireError> {
    let one = |octet: &u8| match octet {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(WireError::Content),
    };
    content.iter().map(one).collect()
}

/// Parses the head of an answer to [`Question::Texts`] about these messages: returns the number of octets that
/// follow.
///
/// # Errors
/// [`WireError`] for an invalid head, and for a length above the sum of the messages' limits.
pub fn texts_head<'a>(
    octets: &[u8; HEAD_OCTETS],
    items: impl IntoIterator<Item = Item<'a>>,
) -> Result<usize, WireError> {
    let most = items.into_iter().map(|item| item.most());
    let most = most.fold(0, usize::saturating_add);
    read_head_of(octets, TEXTS_FOUND, most)
}

/// The texts of a message, in the form used for comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts {
    text: String,
    zones: Vec<(Zone, Range<usize>)>,
    /// Whether the texts are complete.
    pub complete: bool,
}

impl Texts {
    /// Each text with its zone.
    pub fn iter(&self) -> impl Iterator<Item = (Zone, &str)> {
        let text = |range: &Range<usize>| self.text.get(range.clone()).unwrap_or_default();
        self.zones.iter().map(move |(zone, at)| (*zone, text(at)))
    }

    fn take(from: &mut &[u8]) -> Result<Self, WireError> {
        let mut texts = Self::default();
        loop {
            let octet = take_octet(from)?;
            if let ALL | CUT = octet {
                texts.complete = octet == ALL;
                return Ok(texts);
            }
            let zone = Zone::ALL
                .get(usize::from(octet))
                .ok_or(WireError::Content)?;
            let text = std::str::from_utf8(take(from)?).map_err(|_| WireError::Content)?;
            let start = texts.text.len();
            texts.text.push_str(text);
            texts.zones.push((*zone, start..texts.text.len()));
        }
    }
}

/// Reads the texts of so many messages.
///
/// # Errors
/// [`WireError::Content`].
pub fn texts(mut content: &[u8], messages: usize) -> Result<Vec<Texts>, WireError> {
    let mut all = Vec::new();
    for _ in 0..messages {
        all.push(Texts::take(&mut content)?);
    }
    match content.is_empty() {
        true => Ok(all),
        false => Err(WireError::Content),
    }
}

#[cfg(test)]
mod tests;
