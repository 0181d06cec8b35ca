//! Frames between a worker and the gateway, over a stream socket.
//!
//! The worker gives the gateway messages and hears of each whether it is stored. The gateway says beside that whether it takes messages
//! at all.
//!
//! ```text
//! 0  u32  octets behind this field
//! 4  u8   version = 1
//! 5  u8   kind
//! 6       by kind:
//!   1 MESSAGE   u64 number of the message, chosen by the worker
//!               u8  1 when the client may relay, otherwise 0
//!               u32 octets of the head, at most 8,388,608
//!               head, text of the message
//!   129 STORED  u64 number, text: the queue id
//!   130 REFUSED u64 number, u8 number of the refusal
//!   131 SITE    u64 number, u8 1 when a retry is of no use, text: the site's own words
//!   132 STATE   u8 number of the refusal of every message, 0 when messages are taken
//! ```

use crate::octets::{HandoffError, Reader, put_length};

/// The version of the frames.
pub const VERSION: u8 = 1;
/// The octets before a frame that give its length.
pub const LENGTH_OCTETS: usize = 4;
/// The most octets of a head: 1,000 recipients.
pub const HEAD_OCTETS_MAX: usize = 8 << 20;
/// The most octets of an answer.
pub const ANSWER_OCTETS_MAX: usize = 4_096;
/// The octets of a frame with a message before the head.
pub const PREFIX_OCTETS: usize = LENGTH_OCTETS + COUNTED;
/// Those of them that the length counts.
const COUNTED: usize = 2 + 8 + 1 + 4;

const MESSAGE: u8 = 1;
const STORED: u8 = 129;
const REFUSED: u8 = 130;
const SITE: u8 = 131;
const STATE: u8 = 132;

/// The beginning of a frame with a message; the head and the text follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The number by which the gateway answers.
    pub number: u64,
    /// Whether the client may send to any domain.
    pub may_relay: bool,
    /// Octets of the head: the envelope and the session, encoded by `vere_smtp`.
    pub head: usize,
    /// Octets of the text.
    pub body: usize,
}

impl Prefix {
    /// Appends the octets.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let length = COUNTED.saturating_add(self.head);
        put_length(to, length.saturating_add(self.body));
        to.extend_from_slice(&[VERSION, MESSAGE]);
        to.extend_from_slice(&self.number.to_le_bytes());
        to.push(u8::from(self.may_relay));
        put_length(to, self.head);
    }

    /// Decodes the octets before a message with a text of `body_max` octets at most.
    ///
    /// # Errors
    ///
    /// [`HandoffError`] for octets before another frame, or before a longer message.
    pub fn decode(octets: &[u8; PREFIX_OCTETS], body_max: usize) -> Result<Self, HandoffError> {
        let mut reader = Reader(octets);
        let max = body_max.saturating_add(HEAD_OCTETS_MAX + COUNTED);
        let length = reader.length("length of the frame", max)?;
        match kind(&mut reader)? {
            MESSAGE => {}
            other => return Err(HandoffError::Kind(other)),
        }
        let number = reader.long("number of the message")?;
        let may_relay = reader.flag("permission to relay")?;
        let head = reader.length("length of the head", HEAD_OCTETS_MAX)?;
        let found = length.saturating_sub(COUNTED);
        let body = found.checked_sub(head).ok_or(HandoffError::Short {
            field: "head",
            wanted: head,
            found,
        })?;
        match body <= body_max && length >= COUNTED {
            true => Ok(Self {
                number,
                may_relay,
                head,
                body,
            }),
            false => Err(HandoffError::TooMuch {
                field: "text",
                max: body_max,
                found: body,
            }),
        }
    }
}

/// What the gateway says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A message is safe.
    Stored {
        /// The number of the message.
        number: u64,
        /// The name by which it is found again.
        id: String,
    },
    /// A message is refused.
    Refused {
        /// The number of the message.
        number: u64,
        /// The refusal.
        refusal: u8,
    },
    /// A message is refused in the site's own words.
    Site {
        /// The number of the message.
        number: u64,
        /// Whether a retry is of no use.
        permanent: bool,
        /// The words.
        text: String,
    },
    /// Whether messages are taken: no refusal, or that of every message from now on.
    State(Option<u8>),
}

impl Answer {
    /// Appends the frame.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let mut content = vec![VERSION];
        match self {
            Self::Stored { number, id } => {
                content.push(STORED);
                content.extend_from_slice(&number.to_le_bytes());
                content.extend_from_slice(id.as_bytes());
            }
            Self::Refused { number, refusal } => {
                content.push(REFUSED);
                content.extend_from_slice(&number.to_le_bytes());
                content.push(*refusal);
            }
            Self::Site {
                number,
                permanent,
                text,
            } => {
                content.push(SITE);
                content.extend_from_slice(&number.to_le_bytes());
                content.push(u8::from(*permanent));
                content.extend_from_slice(text.as_bytes());
            }
            Self::State(refusal) => content.extend_from_slice(&[STATE, refusal.unwrap_or(0)]),
        }
        put_length(to, content.len());
        to.extend_from_slice(&content);
    }

    /// Decodes a frame without its length.
    ///
    /// # Errors
    ///
    /// [`HandoffError`] for octets that are no answer.
    pub fn decode(frame: &[u8]) -> Result<Self, HandoffError> {
        let mut reader = Reader(frame);
        let kind = kind(&mut reader)?;
        if kind == STATE {
            let refusal = reader.octet("refusal")?;
            reader.end()?;
            return Ok(Self::State(Some(refusal).filter(|refusal| *refusal != 0)));
        }
        let number = reader.long("number of the message")?;
        match kind {
            STORED => Ok(Self::Stored {
                number,
                id: reader.text("queue id")?.to_owned(),
            }),
            REFUSED => {
                let refusal = reader.octet("refusal")?;
                reader.end()?;
                Ok(Self::Refused { number, refusal })
            }
            SITE => Ok(Self::Site {
                number,
                permanent: reader.flag("permanence")?,
                text: reader.text("words")?.to_owned(),
            }),
            other => Err(HandoffError::Kind(other)),
        }
    }
}

/// Parses the length before an answer.
///
/// # Errors
///
/// [`HandoffError::TooMuch`] for more octets than an answer has.
pub fn answer_length(octets: [u8; LENGTH_OCTETS]) -> Result<usize, HandoffError> {
    Reader(&octets).length("length of the answer", ANSWER_OCTETS_MAX)
}

fn kind(reader: &mut Reader<'_>) -> Result<u8, HandoffError> {
    match reader.octet("version")? {
        VERSION => reader.octet("kind"),
        found => Err(HandoffError::Version {
            expected: VERSION,
            found,
        }),
    }
}

#[cfg(test)]
mod tests;
