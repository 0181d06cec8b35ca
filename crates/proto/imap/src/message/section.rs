//! The octets of a section (RFC 9051 section 6.4.5.1).

use std::cmp::Ordering;
use std::ops::Range;

use vere_mime::{Parsed, Part, PartKind, fields, header_len, text};

use crate::command::{Part as Wanted, Section};

/// Where the octets of a section are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extract {
    /// In the message.
    Range(Range<usize>),
    /// Made of it.
    Made(Vec<u8>),
}

/// The octets of a message, or of its header where no more is needed.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// Header fields added for the recipient, followed by the message.
    pub octets: &'a [u8],
    /// How many octets the own fields have; the parser has not seen them.
    pub own: usize,
    /// Number of octets that are not in memory; ranges can be computed without the octets.
    pub behind: usize,
    /// Octets of the header, fields added for the recipient included.
    pub header: usize,
}

impl Content<'_> {
    fn len(self) -> usize {
        self.octets.len().saturating_add(self.behind)
    }

    /// Finds a section of the message itself, which needs no parsed structure.
    #[must_use]
    pub fn whole(self, wanted: &Wanted) -> Extract {
        let own = self.own.min(self.octets.len());
        let message = self.octets.get(own..).unwrap_or_default();
        let body = match self.behind {
            0 => own.saturating_add(header_len(message)),
            _ => self.header,
        };
        match wanted {
            Wanted::All => Extract::Range(0..self.len()),
            Wanted::Text => Extract::Range(body..self.len()),
            other => self.of_header(0..body, other),
        }
    }

    /// Finds a section; `None` when the part does not exist or lacks the section.
    #[must_use]
    pub fn section(self, parsed: &Parsed, section: &Section) -> Option<Extract> {
        if section.path.is_empty() {
            return Some(self.whole(&section.part));
        }
        let (index, part) = find(parsed, &section.path)?;
        match (&section.part, part.kind) {
            (Wanted::All, _) => Some(Extract::Range(self.place(&part.body))),
            (Wanted::Mime, _) => Some(Extract::Range(self.header(part))),
            // Only a message within the message has a header and a text.
            (wanted, PartKind::Message) => {
                let (_, message) = child(parsed, index, 0)?;
                Some(match wanted {
                    Wanted::Text => Extract::Range(self.place(&message.body)),
                    other => self.of_header(self.header(message), other),
                })
            }
            _ => None,
        }
    }

    /// The decoded content of a part (RFC 3516); `Ok(None)` when the part does not exist.
    ///
    /// # Errors
    ///
    /// [`UnknownEncoding`] when the content transfer encoding is unknown.
    pub fn binary(self, parsed: &Parsed, path: &[u32]) -> Result<Option<Extract>, UnknownEncoding> {
        if path.is_empty() {
            return Ok(Some(Extract::Range(0..self.octets.len())));
        }
        let Some((_, part)) = find(parsed, path) else {
            return Ok(None);
        };
        let place = self.place(&part.body);
        let body = self.octets.get(place.clone()).unwrap_or_default();
        // In a multipart or message part, only the inner parts are encoded.
        let encoding = match part.kind {
            PartKind::Single => part.encoding.as_deref().unwrap_or_default(),
            PartKind::Multipart | PartKind::Message => b"",
        };
        match encoding.to_ascii_lowercase().as_slice() {
            b"" | b"7bit" | b"8bit" | b"binary" => Ok(Some(Extract::Range(place))),
            b"quoted-printable" => Ok(Some(Extract::Made(text::quoted_printable(body)))),
            b"base64" => Ok(Some(Extract::Made(text::base64(body)))),
            _ => Err(UnknownEncoding),
        }
    }

    fn of_header(self, header: Range<usize>, wanted: &Wanted) -> Extract {
        let octets = self.octets.get(header.clone()).unwrap_or_default();
        match wanted {
            Wanted::Fields(names) => Extract::Made(header_fields(octets, names, true)),
            Wanted::FieldsNot(names) => Extract::Made(header_fields(octets, names, false)),
            Wanted::All | Wanted::Header | Wanted::Mime | Wanted::Text => Extract::Range(header),
        }
    }

    /// Where what the parser found lies behind the own fields, and within the octets at hand.
    fn place(self, range: &Range<usize>) -> Range<usize> {
        let at = |place: usize| place.saturating_add(self.own).min(self.len());
        at(range.start)..at(range.end)
    }

    /// The header of a part; the own fields belong to that of the message itself.
    fn header(self, part: &Part) -> Range<usize> {
        let header = self.place(&part.header);
        match part.header.start {
            0 => 0..header.end,
            _ => header,
        }
    }
}

/// The part with this part number (RFC 9051 section 6.4.5.1), and its index.
fn find<'a>(parsed: &'a Parsed, path: &[u32]) -> Option<(usize, &'a Part)> {
    let (mut index, mut part) = (0, parsed.parts.first()?);
    // Whether the numbers count the parts of a message; a message without multipart still has one part, the body.
    // The body may be a message in turn, with its own part numbers.
    let mut of_message = true;
    for number in path {
        if part.kind == PartKind::Message && !of_message {
            (index, part) = child(parsed, index, 0)?;
            of_message = true;
        }
        if part.kind == PartKind::Multipart {
            let number = usize::try_from(*number).ok()?.checked_sub(1)?;
            (index, part) = child(parsed, index, number)?;
        } else if !of_message || *number != 1 {
            return None;
        }
        of_message = false;
    }
    Some((index, part))
}

/// A numbered child of a part.
fn child(parsed: &Parsed, parent: usize, number: usize) -> Option<(usize, &Part)> {
    let after = parent.saturating_add(1);
    let behind = parsed.parts.iter().enumerate().skip(after);
    behind.filter(|(_, part)| part.parent == parent).nth(number)
}

/// The header fields with one of the names, or with none of the names, and an empty line.
#[must_use]
pub fn header_fields(header: &[u8], names: &[impl AsRef<str>], wanted: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_header_fields(header, names, wanted, &mut out);
    out
}

/// Writes them.
pub fn put_header_fields(
    header: &[u8],
    names: &[impl AsRef<str>],
    wanted: bool,
    out: &mut Vec<u8>,
) {
    let sorted = (names.len() > FEW).then(|| Names::new(names));
    for field in fields(header).filter(vere_mime::Field::is_named) {
        let named = match &sorted {
            Some(sorted) => sorted.have(field.name),
            None => names.iter().any(|name| field.is(name.as_ref())),
        };
        if named == wanted {
            out.extend_from_slice(field.raw);
            if !field.raw.ends_with(b"\n") {
                out.extend_from_slice(b"\r\n");
            }
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Number of names up to which a linear search is used.
const FEW: usize = 8;

/// Field names, compared without regard to case. A client may request thousands of names, in a header of as many
/// fields.
struct Names<'a>(Vec<&'a [u8]>);

impl<'a> Names<'a> {
    fn new(names: &'a [impl AsRef<str>]) -> Self {
        let mut names: Vec<_> = names.iter().map(|name| name.as_ref().as_bytes()).collect();
        names.sort_unstable_by(|one, other| in_any_case(one, other));
        Self(names)
    }

    fn have(&self, name: &[u8]) -> bool {
        let found = self.0.binary_search_by(|one| in_any_case(one, name));
        found.is_ok()
    }
}

fn in_any_case(one: &[u8], other: &[u8]) -> Ordering {
    let [one, other] = [one, other].map(|text| text.iter().map(u8::to_ascii_lowercase));
    one.cmp(other)
}

/// The content transfer encoding of a part is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEncoding;
