//! Frames between a worker and the gateway, over a stream socket.
//!
//! The worker gives the gateway messages and hears of each whether it is stored. The text of a long message goes ahead in parts, which the gateway
//! keeps in a separate file, so that neither process has all of the text in memory while the client sends. The gateway says beside that whether it
//! takes messages at all.
//!
//! ```text
//! 0  u32  octets behind this field
//! 4  u8   version = 4
//! 5  u8   kind
//! 6       by kind:
//!   1 MESSAGE   u64 number of the message, chosen by the worker
//!               u8  1 when the client may relay, otherwise 0
//!               u8  results of SPF for the sender and the HELO name: 0 when SPF was not asked, otherwise as in `question.rs`
//!               u64 octets of the text that have gone ahead in parts
//!               u32 octets of the facts, at most 131,072; 0 when nothing was gathered
//!               u32 octets of the results, at most 65,536
//!               u32 octets of the head, at most 8,388,608
//!               facts (`vere_judge`), results (fields of the header, for the gateway to put on top), head, the rest of the text
//!   2 PART      u64 number of the message that will come
//!               u64 octets of the text before this part
//!               16 octets address of the client; an IPv4 address is mapped (RFC 4291 section 2.5.5.2)
//!               octets of the text, at most 2,097,152
//!   3 FORGET    u64 number of a message that will not come
//!   129 STORED  u64 number, text: the queue id
//!   130 REFUSED u64 number, u8 number of the refusal
//!   131 SITE    u64 number, u8 1 when a retry is of no use, text: the site's own words
//!   132 STATE   u8 number of the refusal of every message, 0 when messages are taken
//!   133 KEPT    u64 number of a message whose last part is in the file
//!   134 GONE    u64 number of a message whose parts are lost, u8 1 when its client is too slow to be heard any further
//! ```
//!
//! A part is sent when the part before has been answered. GONE can come at any time, and a part that crosses it is at a place where the gateway has no
//! file: the answer is GONE again. A MESSAGE whose parts are not all there is refused.

use std::net::IpAddr;

use crate::octets::{HandoffError, Reader, put_length};
use crate::question::SpfResults;

/// The version of the frames.
pub const VERSION: u8 = 4;
/// The octets before a frame that give its length.
pub const LENGTH_OCTETS: usize = 4;
/// The most octets of a head: 1,000 recipients.
pub const HEAD_OCTETS_MAX: usize = 8 << 20;
/// The most octets of the facts about a message.
pub const FACTS_OCTETS_MAX: usize = 128 * 1024;
/// The most octets of the results of authentication.
pub const RESULTS_OCTETS_MAX: usize = 64 * 1024;
/// The most octets of a part.
pub const PART_OCTETS_MAX: usize = 2 << 20;
/// The most octets of an answer.
pub const ANSWER_OCTETS_MAX: usize = 4_096;
/// The octets of a worker's frame that its [`Opening`] is read from.
pub const OPENING_OCTETS: usize = LENGTH_OCTETS + 2 + 8;
/// Those of them that the length counts.
const COUNTED: usize = OPENING_OCTETS - LENGTH_OCTETS;

/// The most octets between the fields of a message and its text.
const BEFORE_BODY_MAX: usize = FACTS_OCTETS_MAX + RESULTS_OCTETS_MAX + HEAD_OCTETS_MAX;

/// The octets of fields behind the opening, by kind.
const MESSAGE_FIELDS: usize = 1 + 1 + 8 + 4 + 4 + 4;
const PART_FIELDS: usize = 8 + 16;

/// The most octets of fields behind an opening.
pub const FIELDS_OCTETS_MAX: usize = PART_FIELDS;
const _: () = assert!(
    MESSAGE_FIELDS <= FIELDS_OCTETS_MAX,
    "a message has fields of more octets"
);

const MESSAGE: u8 = 1;
const PART: u8 = 2;
const FORGET: u8 = 3;
const STORED: u8 = 129;
const REFUSED: u8 = 130;
const SITE: u8 = 131;
const STATE: u8 = 132;
const KEPT: u8 = 133;
const GONE: u8 = 134;

/// What a worker says, without the octets of head and text that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// A message: facts, results, its head and the rest of its text follow.
    Message(Prefix),
    /// A part of the text of a message: its octets follow.
    Part(Part),
    /// A message of which parts were sent, and that does not come.
    Forget {
        /// The number of the message.
        number: u64,
    },
}

/// The beginning of a frame with a message; facts, results, head and text follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The number by which the gateway answers.
    pub number: u64,
    /// Whether the client may send to any domain.
    pub may_relay: bool,
    /// The results of SPF; `None` where SPF was not asked.
    pub spf: Option<SpfResults>,
    /// Octets of the text that have gone ahead in parts.
    pub ahead: u64,
    /// Octets of the facts about the message; 0 where nobody gathered any.
    pub facts: usize,
    /// Octets of the results of authentication.
    pub results: usize,
    /// Octets of the head: the envelope and the session, encoded by `vere_smtp`.
    pub head: usize,
    /// Octets of the rest of the text.
    pub body: usize,
}

impl Prefix {
    /// Octets between the fields of the frame and the text.
    #[must_use]
    pub const fn before_body(&self) -> usize {
        self.facts
            .saturating_add(self.results)
            .saturating_add(self.head)
    }
}

/// The beginning of a frame with a part of a text; the octets follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The number of the message that will come.
    pub number: u64,
    /// Octets of the text before this part.
    pub place: u64,
    /// The address of the client, to whom the space is charged.
    pub client: IpAddr,
    /// Octets of the part.
    pub octets: usize,
}

impl Frame {
    /// Appends the octets.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match *self {
            Self::Message(prefix) => {
                let behind = prefix.before_body().saturating_add(prefix.body);
                open(to, (MESSAGE, prefix.number), MESSAGE_FIELDS, behind);
                to.extend_from_slice(&[u8::from(prefix.may_relay), SpfResults::octet(prefix.spf)]);
                to.extend_from_slice(&prefix.ahead.to_le_bytes());
                put_length(to, prefix.facts);
                put_length(to, prefix.results);
                put_length(to, prefix.head);
            }
            Self::Part(part) => {
                open(to, (PART, part.number), PART_FIELDS, part.octets);
                to.extend_from_slice(&part.place.to_le_bytes());
                let client = match part.client {
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                    IpAddr::V6(address) => address,
                };
                to.extend_from_slice(&client.octets());
            }
            Self::Forget { number } => open(to, (FORGET, number), 0, 0),
        }
    }
}

fn open(to: &mut Vec<u8>, (kind, number): (u8, u64), fields: usize, behind: usize) {
    let length = COUNTED.saturating_add(fields).saturating_add(behind);
    put_length(to, length);
    to.extend_from_slice(&[VERSION, kind]);
    to.extend_from_slice(&number.to_le_bytes());
}

/// The first octets of a worker's frame, which say how many follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    kind: u8,
    number: u64,
    fields: usize,
    /// Octets behind the fields.
    behind: usize,
}

impl Opening {
    /// Decodes the opening of a frame.
    ///
    /// # Errors
    ///
    /// [`HandoffError`] for octets before another frame, or one that is longer than any.
    pub fn decode(octets: &[u8; OPENING_OCTETS], body_max: usize) -> Result<Self, HandoffError> {
        let mut reader = Reader(octets);
        let max = body_max.saturating_add(BEFORE_BODY_MAX + COUNTED + FIELDS_OCTETS_MAX);
        let length = reader.length("length of the frame", max)?;
        let kind = kind(&mut reader)?;
        let fields = match kind {
            MESSAGE => MESSAGE_FIELDS,
            PART => PART_FIELDS,
            FORGET => 0,
            other => return Err(HandoffError::Kind(other)),
        };
        let wanted = COUNTED.saturating_add(fields);
        let behind = length.checked_sub(wanted).ok_or(HandoffError::Short {
            field: "frame",
            wanted,
            found: length,
        })?;
        Ok(Self {
            kind,
            number: reader.long("number of the message")?,
            fields,
            behind,
        })
    }

    /// Octets of the fields, at most [`FIELDS_OCTETS_MAX`].
    #[must_use]
    pub const fn fields(&self) -> usize {
        self.fields
    }

    /// Decodes the fields of a frame whose rest of a text has `body_max` octets at most.
    ///
    /// # Errors
    ///
    /// [`HandoffError`] for fields with impossible values.
    pub fn frame(&self, fields: &[u8], body_max: usize) -> Result<Frame, HandoffError> {
        let mut reader = Reader(fields);
        let number = self.number;
        let frame = match self.kind {
            MESSAGE => {
                let may_relay = reader.flag("permission to relay")?;
                let spf = spf(&mut reader)?;
                let ahead = reader.long("octets in parts")?;
                let mut prefix = Prefix {
                    number,
                    may_relay,
                    spf,
                    ahead,
                    facts: reader.length("length of the facts", FACTS_OCTETS_MAX)?,
                    results: reader.length("length of the results", RESULTS_OCTETS_MAX)?,
                    head: reader.length("length of the head", HEAD_OCTETS_MAX)?,
                    body: 0,
                };
                let before = prefix.before_body();
                let body = self.behind.checked_sub(before);
                let body = body.ok_or(HandoffError::Short {
                    field: "frame before the text",
                    wanted: before,
                    found: self.behind,
                })?;
                prefix.body = bounded("text", body, body_max)?;
                Frame::Message(prefix)
            }
            PART => Frame::Part(Part {
                number,
                place: reader.long("place of the part")?,
                client: reader.address("address of the client")?,
                octets: bounded("part", self.behind, PART_OCTETS_MAX)?,
            }),
            _ => {
                bounded("frame", self.behind, 0)?;
                Frame::Forget { number }
            }
        };
        reader.end()?;
        Ok(frame)
    }
}

fn spf(reader: &mut Reader<'_>) -> Result<Option<SpfResults>, HandoffError> {
    let found = reader.octet("result of SPF")?;
    SpfResults::of_octet(found).ok_or(HandoffError::Value {
        field: "result of SPF",
        expected: "two results of 0 to 7 each",
        found,
    })
}

const fn bounded(field: &'static str, found: usize, max: usize) -> Result<usize, HandoffError> {
    match found <= max {
        true => Ok(found),
        false => Err(HandoffError::TooMuch { field, max, found }),
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
    /// The last part of a message is in the file.
    Kept {
        /// The number of the message.
        number: u64,
    },
    /// The parts of a message are lost: there is no space for them.
    Gone {
        /// The number of the message.
        number: u64,
        /// Whether the client is too slow to be heard any further.
        ends: bool,
    },
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
            Self::Kept { number } => {
                content.push(KEPT);
                content.extend_from_slice(&number.to_le_bytes());
            }
            Self::Gone { number, ends } => {
                content.push(GONE);
                content.extend_from_slice(&number.to_le_bytes());
                content.push(u8::from(*ends));
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
            KEPT => {
                reader.end()?;
                Ok(Self::Kept { number })
            }
            GONE => {
                let ends = reader.flag("end of the client")?;
                reader.end()?;
                Ok(Self::Gone { number, ends })
            }
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
