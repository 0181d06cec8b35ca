//! The protocol between whoever keeps messages and the process that takes them apart, version 2.
//!
//! One request at a time: the parser says that it is ready, takes a message, answers, takes the next. A
//! parser that breaks off, is silent or says what is not in the message is replaced by another, so that
//! nothing has to be numbered. What it says is read as what an attacker says: a message may have made it.
//!
//! Every frame, little endian:
//!
//! ```text
//! 0  u32  octets behind this field, at least 2
//! 4  u8   version = 2
//! 5  u8   kind
//! 6       by kind:
//!    1 WHOLE    a message, to be taken apart
//!    2 HEADER   a message of which only the header is to be looked at
//!    3 TEXTS    messages whose texts are wanted ([`Question`] has these three)
//!    4 ZONES    what is looked for, messages
//!    5 FIELD    what is looked for, messages
//!    128 READY  nothing
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

use std::fmt;

use crate::Parsed;

mod texts;

pub use texts::{
    Item, Question, TEXTS_OCTETS_MAX, Texts, holds, holds_head, plainly_holds, request, texts,
    texts_head,
};

/// The version this code speaks.
pub const VERSION: u8 = 2;
/// Octets of a frame before its content.
pub const HEAD_OCTETS: usize = 6;

/// Octets of the head that the length counts.
const COUNTED: usize = 2;
/// What is found in a message takes at most so many octets for each of the message's. The worst is a list
/// of addresses of one letter each, which is kept three times when Sender and Reply-To are missing.
const GROWTH: usize = 16;
/// What is found in an empty message takes no more than this.
const FOUND_OCTETS_MIN: usize = 1024;
/// What is found in any message takes no more than this, or counts as not found: who reads it takes some
/// times as much memory.
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

/// The frame by which a parser says that it waits for messages.
pub const READY_FRAME: [u8; HEAD_OCTETS] = [2, 0, 0, 0, VERSION, READY];

/// How much of a message is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    Whole,
    /// Its header; the body is taken for one part ([`Parsed::of_header`]).
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
    /// To take one message apart.
    Parse(Scope),
    /// The texts of messages.
    Texts,
    /// Whether texts of messages have something.
    Zones,
    /// Whether fields of messages have something.
    Field,
}

/// What is wrong with a frame: the other side's fault, and the connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// It says that it has this many octets.
    Length(usize),
    /// Its version is another one.
    Version(u8),
    /// Its kind is none that is meant here.
    Kind(u8),
    /// What is said to be found cannot be what is in the message.
    Found,
    /// What stands in it is cut off, or is more than is meant.
    Content,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(octets) => write!(f, "frame of {octets} octets"),
            Self::Version(version) => {
                write!(
                    f,
                    "frame of version {version}, this program speaks {VERSION}"
                )
            }
            Self::Kind(kind) => write!(f, "frame of kind {kind}, which is not meant here"),
            Self::Found => f.write_str("what is said to be found is not in the message"),
            Self::Content => f.write_str("frame whose content is cut off, or too long"),
        }
    }
}

impl std::error::Error for WireError {}

/// The head of a request; a message of so many octets stands behind it. `None` for one that is too long.
#[must_use]
pub fn request_head(scope: Scope, message: usize) -> Option<[u8; HEAD_OCTETS]> {
    let kind = match scope {
        Scope::Whole => WHOLE,
        Scope::Header => HEADER,
    };
    head(kind, message)
}

/// Reads the head of a request: what is asked, and how many octets stand behind it.
///
/// # Errors
/// When it is none.
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

/// What a parser answers to a request with this content: the whole frame.
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
    // One that is too long for a frame is refused by whoever asked.
    let head = head(kind, frame.len().saturating_sub(HEAD_OCTETS));
    if let Some(place) = frame.get_mut(..HEAD_OCTETS) {
        place.copy_from_slice(&head.unwrap_or([u8::MAX; HEAD_OCTETS]));
    }
    Ok(frame)
}

/// Reads the head of an answer about a message of so many octets: how many octets follow.
///
/// # Errors
/// When it is none, or has more than can be found in such a message.
pub fn answer_head(octets: &[u8; HEAD_OCTETS], message: usize) -> Result<usize, WireError> {
    let max = message
        .saturating_mul(GROWTH)
        .saturating_add(FOUND_OCTETS_MIN)
        .min(FOUND_OCTETS_MAX);
    read_head_of(octets, FOUND, max)
}

/// Reads what is said to be found in a message, and believes nothing that cannot be.
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

/// Reads the head of a frame that is to be of a kind and to have no more octets behind it.
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
