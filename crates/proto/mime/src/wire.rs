//! The protocol between a store of messages and the parser process, version 3.
//!
//! One request at a time: the parser announces that it is ready, reads a message, answers, reads the next
//! message. The store replaces a parser that breaks off, is silent or answers with an impossible result,
//! so that requests need no numbers. The store treats answers as hostile input: a message may have taken
//! over the parser.
//!
//! Every frame, little endian:
//!
//! ```text
//! 0  u32  octets behind this field, at least 2
//! 4  u8   version = 3
//! 5  u8   kind
//! 6       by kind:
//!    1 WHOLE    a message, to be taken apart
//!    2 HEADER   a message of which only the header is to be looked at
//!    3 TEXTS    messages whose texts are wanted ([`Question`] has these three)
//!    4 ZONES    what is looked for, messages
//!    5 FIELD    what is looked for, messages
//!    128 READY  u8: a bit for each layer of the sandbox that holds (docs/internals/sandbox.md)
//!    129 FOUND  what was found, encoded (docs/internals/parsed.md)
//!    130 TEXTS  the texts of each message
//!    131 HOLDS  of each message whether it has what is looked for
//! ```
//!
//! ```
//! use vere_mime::Parsed;
//! use vere_mime::wire::{Request, Scope, answer, answer_head, found, request_head};
//!
//! let message = b"Subject: x\r\n\r\nhello\r\n";
//! let head = request_head(Scope::Whole, message.len()).expect("not too long");
//! // The parser's side, which has read the head and the message.
//! let octets = answer(Request::Parse(Scope::Whole), message)?;
//! // The asker's.
//! let (head, record) = octets.split_at(6);
//! let head: [u8; 6] = head.try_into().expect("six octets");
//! assert_eq!(answer_head(&head, message.len())?, record.len());
//! assert_eq!(found(record, message)?, Parsed::of(message));
//! # Ok::<(), vere_mime::wire::WireError>(())
//! ```

use crate::Parsed;

mod texts;

pub use texts::{
    Item, Question, TEXTS_OCTETS_MAX, Texts, holds, holds_head, plainly_holds, request, texts,
    texts_head,
};

/// The protocol version of this code.
pub const VERSION: u8 = 3;
/// Octets of a frame before the content.
pub const HEAD_OCTETS: usize = 6;

/// Octets of the head included in the length.
const COUNTED: usize = 2;
/// The most octets of a parse result per octet of the message. The worst case is a list of addresses with
/// a single letter each, kept three times if Sender and Reply-To are missing.
const GROWTH: usize = 16;
/// The limit for the parse result of an empty message.
const FOUND_OCTETS_MIN: usize = 1024;
/// The limit for the parse result of any message; a longer result is rejected, because decoding takes
/// several times as much memory.
pub const FOUND_OCTETS_MAX: usize = 16 << 20;

const WHOLE: u8 = 1;
const HEADER: u8 = 2;
const TEXTS: u8 = 3;
const ZONES: u8 = 4;
const FIELD: u8 = 5;
const READY: u8 = 128;
const FOUND: u8 = 129;
const TEXTS_FOUND: u8 = 130;
const HOLDS: u8 = 131;

/// Octets of the frame by which a parser announces that it waits for messages.
pub const READY_OCTETS: usize = HEAD_OCTETS + 1;

/// How much of a message is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    Whole,
    /// The header; the body is a single part ([`Parsed::of_header`]).
    Header,
}

impl Scope {
    /// Takes a message apart as far.
    #[must_use]
    pub fn parse(self, message: &[u8]) -> Parsed {
        match self {
            Self::Whole => Parsed::of(message),
            Self::Header => Parsed::of_header(message),
        }
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Parses one message.
    Parse(Scope),
    /// The texts of messages.
    Texts,
    /// Whether texts of messages have something.
    Zones,
    /// Whether fields of messages have something.
    Field,
}

/// A malformed frame: the other side's fault, after which the connection is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The frame announces this many octets.
    #[error("frame of {0} octets")]
    Length(usize),
    /// The frame has this unknown version.
    #[error("frame of version {0}, this program speaks {VERSION}")]
    Version(u8),
    /// The frame has a kind that is invalid here.
    #[error("frame of kind {0}, which is not meant here")]
    Kind(u8),
    /// The parse result is impossible for the message.
    #[error("parse result that is impossible for the message")]
    Found,
    /// The content is cut off, or has surplus octets.
    #[error("frame with a content that is cut off, or too long")]
    Content,
}

/// Builds the frame by which a parser says READY, with the layers of its sandbox.
#[must_use]
pub const fn ready(layers: u8) -> [u8; READY_OCTETS] {
    [3, 0, 0, 0, VERSION, READY, layers]
}

/// Parses the frame of a parser that is ready: the layers of its sandbox.
///
/// # Errors
/// [`WireError`] for another frame.
pub fn read_ready(octets: &[u8; READY_OCTETS]) -> Result<u8, WireError> {
    let [head @ .., layers] = octets;
    match read_head_of(head, READY, READY_OCTETS - HEAD_OCTETS)? {
        1 => Ok(*layers),
        other => Err(WireError::Length(other)),
    }
}

/// Builds the head of a request; a message of this many octets follows. `None` for a message above the
/// length limit.
#[must_use]
pub fn request_head(scope: Scope, message: usize) -> Option<[u8; HEAD_OCTETS]> {
    let kind = match scope {
        Scope::Whole => WHOLE,
        Scope::Header => HEADER,
    };
    head(kind, message)
}

/// Parses the head of a request into the request and the number of octets that follow.
///
/// # Errors
/// [`WireError`] for an invalid head.
pub fn read_request_head(octets: &[u8; HEAD_OCTETS]) -> Result<(Request, usize), WireError> {
    let (kind, content) = read_head(octets)?;
    let request = match kind {
        WHOLE => Request::Parse(Scope::Whole),
        HEADER => Request::Parse(Scope::Header),
        TEXTS => Request::Texts,
        ZONES => Request::Zones,
        FIELD => Request::Field,
        other => return Err(WireError::Kind(other)),
    };
    Ok((request, content))
}

/// Builds the parser's answer to a request with this content: the whole frame.
///
/// # Errors
/// [`WireError::Content`], where several messages are asked about.
pub fn answer(request: Request, content: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut frame = vec![0; HEAD_OCTETS];
    let kind = match request {
        Request::Parse(scope) => {
            frame.extend_from_slice(&scope.parse(content).encode());
            FOUND
        }
        Request::Texts => {
            texts::all_of(content, &mut frame)?;
            TEXTS_FOUND
        }
        Request::Zones => {
            texts::zones_hold(content, &mut frame)?;
            HOLDS
        }
        Request::Field => {
            texts::field_holds(content, &mut frame)?;
            HOLDS
        }
    };
    // The store rejects an answer that is too long for a frame.
    let head = head(kind, frame.len().saturating_sub(HEAD_OCTETS));
    if let Some(place) = frame.get_mut(..HEAD_OCTETS) {
        place.copy_from_slice(&head.unwrap_or([u8::MAX; HEAD_OCTETS]));
    }
    Ok(frame)
}

/// Reads the head of an answer about a message of so many octets: how many octets follow.
///
/// # Errors
/// [`WireError`] for an invalid head, and for a length that no such message can need.
pub fn answer_head(octets: &[u8; HEAD_OCTETS], message: usize) -> Result<usize, WireError> {
    let max = message
        .saturating_mul(GROWTH)
        .saturating_add(FOUND_OCTETS_MIN)
        .min(FOUND_OCTETS_MAX);
    read_head_of(octets, FOUND, max)
}

/// Decodes the parse result of a message, and rejects an impossible result.
///
/// # Errors
/// [`WireError::Found`].
pub fn found(record: &[u8], message: &[u8]) -> Result<Parsed, WireError> {
    let parsed = Parsed::decode(record).map_err(|_| WireError::Found)?;
    match parsed.fits(message.len()) {
        true => Ok(parsed),
        false => Err(WireError::Found),
    }
}

/// Parses the head of a frame that must have the given kind and at most the given length.
fn read_head_of(octets: &[u8; HEAD_OCTETS], kind: u8, max: usize) -> Result<usize, WireError> {
    let (is, content) = read_head(octets)?;
    if is != kind {
        return Err(WireError::Kind(is));
    }
    if content > max {
        return Err(WireError::Length(content));
    }
    Ok(content)
}

fn head(kind: u8, content: usize) -> Option<[u8; HEAD_OCTETS]> {
    let counted = u32::try_from(content.checked_add(COUNTED)?).ok()?;
    let [a, b, c, d] = counted.to_le_bytes();
    Some([a, b, c, d, VERSION, kind])
}

fn read_head(octets: &[u8; HEAD_OCTETS]) -> Result<(u8, usize), WireError> {
    let [a, b, c, d, version, kind] = *octets;
    let counted = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    let content = counted
        .checked_sub(COUNTED)
        .ok_or(WireError::Length(counted))?;
    if version != VERSION {
        return Err(WireError::Version(version));
    }
    Ok((kind, content))
}

#[cfg(test)]
mod tests;
