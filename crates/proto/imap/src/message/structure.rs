//! The parts of a message (RFC 2045, RFC 2046), found in one pass over its lines.

use std::ops::Range;

use super::header::{field, is_blank, line_length};
use super::value;

/// Parts within parts; what lies deeper is content of the part at the bound.
pub const DEPTH_MAX: usize = 64;

/// Parts of one message; what comes behind is content of the last one.
pub const PARTS_MAX: usize = 10_000;

/// Octets of a boundary (RFC 2046 section 5.1.1 allows 70; some write more).
const BOUNDARY_OCTETS_MAX: usize = 256;

/// A message taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    parts: Vec<Part>,
}

/// A part, or the message itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its header with the empty line behind it.
    pub header: Range<usize>,
    /// Its body.
    pub body: Range<usize>,
    /// Lines of the body.
    pub lines: u32,
    /// What its body is.
    pub kind: Kind,
}

/// What the body of a part is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Content.
    Leaf,
    /// Other parts, by their place in the structure.
    Multipart(Vec<usize>),
    /// A message, by its place in the structure.
    Message(usize),
}

impl Structure {
    /// Takes a message apart.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        let mut scan = Scan::new();
        let mut at = 0_usize;
        while let Some(rest) = message.get(at..).filter(|rest| !rest.is_empty()) {
            let line = rest.get(..line_length(rest)).unwrap_or(rest);
            scan.line(message, at, line);
            at = at.saturating_add(line.len());
        }
        scan.close(0, message.len());
        Self { parts: scan.parts }
    }

    /// The message itself.
    #[must_use]
    pub fn root(&self) -> Option<&Part> {
        self.parts.first()
    }

    /// The part at a place.
    #[must_use]
    pub fn part(&self, place: usize) -> Option<&Part> {
        self.parts.get(place)
    }

    /// The part that a client calls by this number (RFC 9051 section 6.4.5.1); the message itself for
    /// an empty one.
    #[must_use]
    pub fn find(&self, path: &[u32]) -> Option<&Part> {
        let mut part = self.root()?;
        let mut inside = true;
        for number in path {
            if let Kind::Message(child) = part.kind {
                part = self.part(child)?;
                inside = true;
            }
            match &part.kind {
                Kind::Multipart(children) => {
                    let index = usize::try_from(*number).ok()?.checked_sub(1)?;
                    part = self.part(*children.get(index)?)?;
                    inside = matches!(part.kind, Kind::Multipart(_));
                }
                // A message that has no parts has one all the same: its body.
                _ if inside && *number == 1 => inside = false,
                _ => return None,
            }
        }
        Some(part)
    }
}

/// What the next line is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Header,
    Body,
}

/// A multipart whose end has not come.
#[derive(Debug)]
struct Open {
    /// How many parts are open with it.
    depth: usize,
    boundary: Vec<u8>,
    /// Whether parts without a type are messages (RFC 2046 section 5.1.5).
    digest: bool,
    /// Whether its last boundary has come.
    over: bool,
}

struct Scan {
    parts: Vec<Part>,
    /// Those not ended yet, from the message down.
    open: Vec<usize>,
    multiparts: Vec<Open>,
    mode: Mode,
    line: u32,
    /// Octets of the line end before the line at hand, which belongs to a boundary.
    line_end: usize,
}

impl Scan {
    fn new() -> Self {
        let mut scan = Self {
            parts: Vec::new(),
            open: Vec::new(),
            multiparts: Vec::new(),
            mode: Mode::Header,
            line: 0,
            line_end: 0,
        };
        scan.begin(0);
        scan
    }

    /// Begins a part whose header starts here.
    fn begin(&mut self, at: usize) -> usize {
        let place = self.parts.len();
        self.parts.push(Part {
            header: at..at,
            body: at..at,
            lines: 0,
            kind: Kind::Leaf,
        });
        self.open.push(place);
        self.mode = Mode::Header;
        place
    }

    fn line(&mut self, message: &[u8], at: usize, line: &[u8]) {
        let end = at.saturating_add(line.len());
        if !self.boundary(at, line) && self.mode == Mode::Header && is_blank(line) {
            self.end_header(message, end);
        }
        self.line = self.line.saturating_add(1);
        self.line_end = match line {
            [.., b'\r', b'\n'] => 2,
            [.., b'\n'] => 1,
            _ => 0,
        };
    }

    /// Takes a line that is the boundary of an open multipart.
    fn boundary(&mut self, at: usize, line: &[u8]) -> bool {
        let Some(behind) = line.strip_prefix(b"--") else {
            return false;
        };
        let found = self.multiparts.iter().rposition(|open| {
            !open.over
                && behind
                    .strip_prefix(open.boundary.as_slice())
                    .is_some_and(|rest| {
                        rest.strip_prefix(b"--")
                            .unwrap_or(rest)
                            .trim_ascii()
                            .is_empty()
                    })
        });
        let Some(index) = found.filter(|_| self.parts.len() < PARTS_MAX) else {
            return false;
        };
        self.multiparts.truncate(index.saturating_add(1));
        let Some(multipart) = self.multiparts.last_mut() else {
            return false;
        };
        let depth = multipart.depth;
        let last = behind
            .get(multipart.boundary.len()..)
            .is_some_and(|rest| rest.starts_with(b"--"));
        multipart.over = last;
        self.close(depth, at.saturating_sub(self.line_end));
        self.mode = Mode::Body;
        if !last {
            let parent = self.open.last().copied();
            let child = self.begin(at.saturating_add(line.len()));
            if let Some(Kind::Multipart(children)) = parent
                .and_then(|parent| self.parts.get_mut(parent))
                .map(|parent| &mut parent.kind)
            {
                children.push(child);
            }
        }
        true
    }

    /// Ends the parts that were opened beyond the first `depth` ones.
    fn close(&mut self, depth: usize, end: usize) {
        let header_open = self.mode == Mode::Header;
        for (index, place) in self
            .open
            .drain(depth.min(self.open.len())..)
            .rev()
            .enumerate()
        {
            let Some(part) = self.parts.get_mut(place) else {
                continue;
            };
            if index == 0 && header_open {
                part.header.end = end.max(part.header.start);
                part.body = part.header.end..part.header.end;
            } else {
                part.body.end = end.max(part.body.start);
                part.lines = self.line.saturating_sub(part.lines);
            }
        }
    }

    /// Takes the end of a header, and what it says of the body.
    fn end_header(&mut self, message: &[u8], end: usize) {
        self.mode = Mode::Body;
        let next_line = self.line.saturating_add(1);
        let (depth, digest) = (self.open.len(), self.in_digest());
        let Some((place, part)) = self
            .open
            .last()
            .and_then(|place| Some((*place, self.parts.get_mut(*place)?)))
        else {
            return;
        };
        part.header.end = end;
        part.body = end..end;
        // Until the part is closed this is where its body begins.
        part.lines = next_line;
        if depth >= DEPTH_MAX || self.parts.len() >= PARTS_MAX {
            return;
        }
        let header = message.get(self.header_of(place)).unwrap_or_default();
        match body_of(header, digest) {
            Body::Content => {}
            Body::Message => {
                let child = self.begin(end);
                self.set_kind(place, Kind::Message(child));
            }
            Body::Multipart { boundary, digest } => {
                self.set_kind(place, Kind::Multipart(Vec::new()));
                self.multiparts.push(Open {
                    depth,
                    boundary,
                    digest,
                    over: false,
                });
            }
        }
    }

    fn header_of(&self, place: usize) -> Range<usize> {
        self.parts
            .get(place)
            .map_or(0..0, |part| part.header.clone())
    }

    fn set_kind(&mut self, place: usize, kind: Kind) {
        if let Some(part) = self.parts.get_mut(place) {
            part.kind = kind;
        }
    }

    /// Whether the part whose header ends is the direct child of a digest.
    fn in_digest(&self) -> bool {
        self.multiparts
            .last()
            .is_some_and(|open| open.digest && open.depth.saturating_add(1) == self.open.len())
    }
}

enum Body {
    Content,
    Message,
    Multipart { boundary: Vec<u8>, digest: bool },
}

fn body_of(header: &[u8], in_digest: bool) -> Body {
    let Some(content_type) = field(header, "Content-Type").map(value::parse) else {
        return if in_digest {
            Body::Message
        } else {
            Body::Content
        };
    };
    let kind = content_type.text.to_ascii_lowercase();
    match kind.as_slice() {
        // What is encoded holds no lines to look at (RFC 2046 section 5.2.1 forbids it, RFC 6532 does
        // not).
        b"message/rfc822" | b"message/global" if !is_encoded(header) => Body::Message,
        _ if kind.starts_with(b"multipart/") => match content_type.parameter("boundary") {
            Some(boundary) if !boundary.is_empty() && boundary.len() <= BOUNDARY_OCTETS_MAX => {
                Body::Multipart {
                    boundary: boundary.trim_ascii_end().to_vec(),
                    digest: kind == b"multipart/digest",
                }
            }
            _ => Body::Content,
        },
        _ => Body::Content,
    }
}

fn is_encoded(header: &[u8]) -> bool {
    field(header, "Content-Transfer-Encoding").is_some_and(|encoding| {
        let encoding = value::parse(encoding).text;
        encoding.eq_ignore_ascii_case(b"base64")
            || encoding.eq_ignore_ascii_case(b"quoted-printable")
    })
}
