//! The parts of a message (RFC 2046), found in one pass over the lines.
//!
//! | where | a line | then |
//! |---|---|---|
//! | header | empty | the body of the part begins: its own text, a preamble, or the header of a message within |
//! | header, body | `--` and the boundary of an open multipart | parts within that multipart end; the header of its next part begins |
//! | header, body | the same and `--` | they end, and so do its parts; what follows is its epilogue |
//! | body | anything else | goes on |
//!
//! A boundary counts at the beginning of a line, followed by blanks only. The line end before a boundary belongs to
//! the boundary (RFC 2046 section 5.1.1). A header ends at the first empty line, whatever the lines of the header
//! contain.

use std::ops::Range;

use crate::content::Parameterized;
use crate::envelope::Envelope;
use crate::header::{fields, header_len, unfold, without_line_end};
use crate::{DEPTH_MAX, PARTS_MAX, VALUE_OCTETS_MAX};

/// The composition of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// Octets.
    Single,
    /// Other parts.
    Multipart,
    /// A message with its own parts.
    Message,
}

/// A part of a message; also the message itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Index of the parent part; the message itself has its own index.
    pub parent: usize,
    /// The composition of the part.
    pub kind: PartKind,
    /// Range of the header, with the empty line. An inner message has its header in a child part, the only child.
    pub header: Range<usize>,
    /// Range of the body.
    pub body: Range<usize>,
    /// Lines of the body.
    pub lines: u32,
    /// `Content-Type`; `None` if missing or malformed: the type is then `text/plain`, or `message/rfc822` in a
    /// `multipart/digest` (RFC 2045 section 5.2, RFC 2046 section 5.1.5).
    pub content_type: Option<Parameterized>,
    /// Whether the parent is a `multipart/digest`.
    pub in_digest: bool,
    /// `Content-Transfer-Encoding`
    pub encoding: Option<Vec<u8>>,
    /// `Content-ID`
    pub id: Option<Vec<u8>>,
    /// `Content-Description`
    pub description: Option<Vec<u8>>,
    /// `Content-MD5`
    pub md5: Option<Vec<u8>>,
    /// `Content-Disposition`
    pub disposition: Option<Parameterized>,
    /// `Content-Language`
    pub language: Option<Vec<u8>>,
    /// `Content-Location`
    pub location: Option<Vec<u8>>,
    /// The envelope, of the message itself and of messages within.
    pub envelope: Option<Box<Envelope>>,
}

impl Part {
    /// Type and subtype, defaults applied.
    #[must_use]
    pub fn media_type(&self) -> (&[u8], &[u8]) {
        match self.given_type() {
            Some(given) => given,
            None if self.in_digest => (b"message", b"rfc822"),
            None => (b"text", b"plain"),
        }
    }

    /// Type and subtype from the field, if the field gives both.
    #[must_use]
    pub fn given_type(&self) -> Option<(&[u8], &[u8])> {
        let given = self.content_type.as_ref()?;
        let slash = memchr::memchr(b'/', &given.value)?;
        let (kind, subtype) = given.value.split_at_checked(slash)?;
        Some((kind.trim_ascii(), subtype.get(1..)?.trim_ascii()))
    }

    /// Whether the part has the type and subtype.
    #[must_use]
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        let (found, sub) = self.media_type();
        found.eq_ignore_ascii_case(kind.as_bytes()) && sub.eq_ignore_ascii_case(subtype.as_bytes())
    }

    /// Whether the body has a transfer encoding to decode.
    pub(crate) fn is_encoded(&self) -> bool {
        let encoding = self.encoding.as_deref().unwrap_or_default();
        encoding.eq_ignore_ascii_case(b"base64")
            || encoding.eq_ignore_ascii_case(b"quoted-printable")
    }
}

/// An open multipart.
#[derive(Debug)]
struct Open {
    boundary: Vec<u8>,
    /// Number of open parts outside the multipart, including the multipart itself.
    depth: usize,
}

#[derive(Debug)]
struct Scanner<'a> {
    message: &'a [u8],
    parts: Vec<Part>,
    /// Open parts, outermost first.
    stack: Vec<usize>,
    multiparts: Vec<Open>,
    /// Beginning of the header being read.
    header: Option<usize>,
}

/// Finds the parts of a message.
pub(crate) fn scan(message: &[u8]) -> Vec<Part> {
    let mut scanner = Scanner {
        message,
        parts: Vec::new(),
        stack: Vec::new(),
        multiparts: Vec::new(),
        header: Some(0),
    };
    let mut at = 0;
    let ends = memchr::memchr_iter(b'\n', message).map(|newline| newline.saturating_add(1));
    let unended = Some(message.len()).filter(|_| !message.ends_with(b"\n"));
    for end in ends.chain(unended) {
        scanner.line(at, end);
        at = end;
    }
    if let Some(start) = scanner.header.take() {
        scanner.begin(start, at);
    }
    scanner.close(0, message.len());
    childless(&mut scanner.parts);
    scanner.parts
}

/// The message as a single part, parsed from the header alone.
pub(crate) fn header_alone(message: &[u8]) -> Part {
    let end = header_len(message);
    let header = message.get(..end).unwrap_or_default();
    Part {
        envelope: Some(Box::new(Envelope::read(header))),
        ..single(message, read_header(header, 0..end))
    }
}

/// The message as a single part without any parsed field.
pub(crate) fn opaque(message: &[u8]) -> Part {
    let end = header_len(message);
    Part {
        envelope: Some(Box::default()),
        ..single(message, read_header(&[], 0..end))
    }
}

/// A part whose body is the whole text behind the header.
fn single(message: &[u8], part: Part) -> Part {
    let body = message.get(part.body.start..).unwrap_or_default();
    Part {
        body: part.body.start..message.len(),
        lines: lines(body),
        ..part
    }
}

/// Turns a multipart without children into a single part.
fn childless(parts: &mut [Part]) {
    let mut found = vec![false; parts.len()];
    for part in parts.iter().skip(1) {
        if let Some(parent) = found.get_mut(part.parent) {
            *parent = true;
        }
    }
    for (part, found) in parts.iter_mut().zip(found) {
        if part.kind == PartKind::Multipart && !found {
            part.kind = PartKind::Single;
        }
    }
}

impl Scanner<'_> {
    fn line(&mut self, at: usize, end: usize) {
        let line = without_line_end(self.message.get(at..end).unwrap_or_default());
        if let Some((index, last)) = self.delimiter(line) {
            self.delimit(index, last, at, end);
        } else if line.is_empty()
            && let Some(start) = self.header.take()
        {
            self.begin(start, end);
        }
    }

    /// The open multipart that the line delimits, and whether the line is the closing delimiter.
    fn delimiter(&self, line: &[u8]) -> Option<(usize, bool)> {
        let rest = line.strip_prefix(b"--")?;
        let line = rest.trim_ascii_end();
        for (index, open) in self.multiparts.iter().enumerate().rev() {
            if line == open.boundary {
                return Some((index, false));
            }
            if line.strip_suffix(b"--") == Some(&open.boundary) {
                return Some((index, true));
            }
        }
        None
    }

    fn delimit(&mut self, index: usize, last: bool, at: usize, end: usize) {
        if let Some(start) = self.header.take() {
            // The header had no empty line.
            self.begin(start, at);
        }
        self.multiparts.truncate(index.saturating_add(1));
        let Some(open) = self.multiparts.last() else {
            return;
        };
        // The line end before the delimiter is a part of it.
        let before = self.message.get(..at).unwrap_or_default();
        let inner = without_line_end(before).len();
        self.close(open.depth, inner);
        if last {
            self.multiparts.pop();
        } else if self.parts.len() < PARTS_MAX {
            self.header = Some(end);
        }
    }

    /// Ends the parts beyond a depth.
    fn close(&mut self, depth: usize, at: usize) {
        for part in self.stack.drain(depth.min(self.stack.len())..) {
            if let Some(part) = self.parts.get_mut(part) {
                part.body.end = at.max(part.body.start);
                let body = self.message.get(part.body.clone()).unwrap_or_default();
                part.lines = lines(body);
            }
        }
    }

    /// Begins the part with the header in this range.
    fn begin(&mut self, start: usize, end: usize) {
        let parent = self.stack.last().copied().unwrap_or_default();
        let header = self.message.get(start..end).unwrap_or_default();
        let mut part = read_header(header, start..end);
        let index = self.parts.len();
        part.parent = parent;
        part.in_digest = self.parts.get(parent).is_some_and(|parent| {
            parent.kind == PartKind::Multipart && parent.is("multipart", "digest")
        });
        let within_message = self
            .parts
            .get(parent)
            .is_none_or(|parent| parent.kind == PartKind::Message);
        if within_message {
            part.envelope = Some(Box::new(Envelope::read(header)));
        }
        let deeper = self.stack.len() < DEPTH_MAX && index.saturating_add(1) < PARTS_MAX;
        let boundary = part
            .content_type
            .as_ref()
            .and_then(|given| given.parameter("boundary"));
        let boundary = boundary
            .map(<[u8]>::trim_ascii_end)
            .filter(|boundary| !boundary.is_empty());
        let boundary = boundary.map(<[u8]>::to_vec);
        self.stack.push(index);
        let (kind, _) = part.media_type();
        if kind.eq_ignore_ascii_case(b"multipart") && deeper {
            if let Some(boundary) = boundary {
                part.kind = PartKind::Multipart;
                let depth = self.stack.len();
                self.multiparts.push(Open { boundary, depth });
            }
        } else if (part.is("message", "rfc822") || part.is("message", "global"))
            && !part.is_encoded()
            && deeper
        {
            part.kind = PartKind::Message;
            self.header = Some(end);
        }
        self.parts.push(part);
    }
}

fn lines(body: &[u8]) -> u32 {
    let ended = memchr::memchr_iter(b'\n', body).count();
    let unended = usize::from(!body.is_empty() && !body.ends_with(b"\n"));
    u32::try_from(ended.saturating_add(unended)).unwrap_or(u32::MAX)
}

/// Reads the fields that tell of a part; the first of each counts.
fn read_header(header: &[u8], place: Range<usize>) -> Part {
    let mut part = Part {
        parent: 0,
        kind: PartKind::Single,
        body: place.end..place.end,
        header: place,
        lines: 0,
        content_type: None,
        in_digest: false,
        encoding: None,
        id: None,
        description: None,
        md5: None,
        disposition: None,
        language: None,
        location: None,
        envelope: None,
    };
    for field in fields(header) {
        let Some((prefix, rest)) = field.name.split_at_checked(8) else {
            continue;
        };
        if !prefix.eq_ignore_ascii_case(b"content-") {
            continue;
        }
        let value = || unfold(field.value.get(..VALUE_OCTETS_MAX).unwrap_or(field.value));
        let lower = rest.to_ascii_lowercase();
        let text = match lower.as_slice() {
            b"type" if part.content_type.is_none() => {
                part.content_type = Some(Parameterized::read(&value()));
                continue;
            }
            b"disposition" if part.disposition.is_none() => {
                part.disposition = Some(Parameterized::read(&value()));
                continue;
            }
            b"transfer-encoding" => &mut part.encoding,
            b"id" => &mut part.id,
            b"description" => &mut part.description,
            b"md5" => &mut part.md5,
            b"language" => &mut part.language,
            b"location" => &mut part.location,
            _ => continue,
        };
        if text.is_none() {
            *text = Some(value());
        }
    }
    part.encoding = part
        .encoding
        .map(|encoding| Parameterized::read(&encoding).value);
    part
}
