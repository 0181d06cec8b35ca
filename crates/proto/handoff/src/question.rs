//! Questions to the broker and its answers, version 3.
//!
//! A client (front, worker) sends questions in any number, without waiting for answers; an answer carries the id of its
//! question, which the client chose. Answers come in another order than the questions: RECIPIENT is answered at once where
//! the directory decides and else when the next hop has answered, SPF and RESOLVE when the DNS has answered, and each after
//! [`LOOKUP_SECONDS_MAX`], RESOLVE after [`RECORDS_SECONDS_MAX`]. Lengths are checked before
//! memory is taken, and a malformed frame ends the connection. A question of an unknown kind is answered UNKNOWN, so
//! that a newer client learns that the broker is older.
//!
//! Every frame, little endian:
//!
//! ```text
//! 0  u32  octets behind this field, at least 10 and at most FRAME_OCTETS_MAX
//! 4  u8   version = 3
//! 5  u8   kind; 1 to 127 are questions, 128 to 255 are answers
//! 6  u64  id of the question
//! 14      by kind:
//!    1 RECIPIENT   u8 flags, client, u16 octets of the address, the address
//!    2 SPF         client, u8 octets of the HELO name, the HELO name,
//!                  u16 octets of the reverse-path, the reverse-path
//!    3 RESOLVE     client, u8 type, u8 octets of the name, the name
//!    4 FIGURES     nothing
//!    5 LISTS       client
//!    6 LIST_FIGURES  u8 number of the list, from 0
//!    7 KEEPING     client, u8 octets of the zone, the zone of a list
//!    129 ACCEPTED  nothing
//!    130 REFUSED   u8 number of the refusal (vere_smtp, Refusal::number)
//!    131 UNKNOWN   nothing
//!    132 SPF       u8: bits 0 to 2 have the result for the sender, 1 none, 2 neutral, 3 pass, 4 fail, 5 softfail, 6 temperror,
//!                  7 permerror; bits 3 to 5 that of the HELO name beside a reverse-path, or 0
//!    133 RECORDS   u8: 1 if there are more records, otherwise 0; u8 number of records, at most 32; each:
//!                  u8 type, and by type: A 4 octets; AAAA 16 octets; PTR u8 octets, a host;
//!                  MX u16 preference, u8 octets, a host; TXT u16 octets, the text
//!    134 NOTHING   u8: 0 no such name, 1 no such records, 2 unavailable
//!    135 FIGURES   the counts of [`Figures::counts`] since the start of the broker, u64 each
//!    136 LISTS     u8: 1 if every list has answered, otherwise 0; u8 number of entries, at most 32; each: u8 list, i16 weight;
//!                  u8 octets, the name of the list with the largest weight; u8 octets, its text
//!    137 LIST_FIGURES  u8 octets, the name of the list; 8 counts of answers by time and the other counts of [`ListFigures`],
//!                  u64 each; for a number without a list, the answer is NOTHING
//!    138 KEPT      u8: 0 no such list, 1 nothing, 2 codes, 3 a map, 4 a failure, 5 nothing that counts: the list lists everybody
//! client: u8 family: 4 or 6, and 4 or 16 octets of the client's address
//! flags: bit 0, the client of the session may relay; the other bits are zero
//! address: the path of RCPT without angle brackets, 1 to ADDRESS_OCTETS_MAX octets of UTF-8;
//!    "postmaster" without a domain is possible (RFC 5321 section 4.1.1.3)
//! HELO name, reverse-path: up to 255 and up to ADDRESS_OCTETS_MAX octets of UTF-8; the null reverse-path is empty
//! type: that of the DNS: 1 A, 12 PTR, 15 MX, 16 TXT, 28 AAAA
//! name: 1 to NAME_OCTETS_MAX visible characters of ASCII, with or without a trailing dot
//! name and text of a list: up to 255 printable characters of ASCII
//! host: up to NAME_OCTETS_MAX visible characters of ASCII without a trailing dot; empty for the root
//! records have 4,000 octets in all at most
//! ```
//!
//! ```
//! use vere_handoff::question::{Address, Question, Reader};
//!
//! let address = Address::new("ann@example.org")?;
//! let mut octets = Vec::new();
//! let client = "192.0.2.1".parse().expect("an address");
//! let question = Question::Recipient { address, client, may_relay: false };
//! question.encode(7, &mut octets);
//!
//! let mut reader = Reader::default();
//! reader.space()[..octets.len()].copy_from_slice(&octets);
//! reader.filled(octets.len());
//! let frame = reader.frame()?.expect("a whole frame");
//! assert_eq!(frame.id, 7);
//! assert_eq!(Question::decode(&frame)?, question);
//! # Ok::<(), vere_handoff::question::WireError>(())
//! ```

mod figures;
mod lists;
mod reader;
mod resolve;
mod spf;
#[cfg(test)]
mod tests;
mod wire;

use std::net::IpAddr;

pub use figures::Figures;
pub use lists::{Keeping, Kept, LISTINGS_MAX, ListFigures, Listing, ListsAnswer};
pub use reader::{BUFFER_OCTETS, Reader};
pub use resolve::{NAME_OCTETS_MAX, Name, NoRecords, RECORDS_MAX, Record, RecordType, Records};
pub use spf::{HELO_OCTETS_MAX, Sender, Spf, SpfResults};
use wire::Content;
pub use wire::{ADDRESS_OCTETS_MAX, VERSION, WireError};

/// Maximum octets of a frame behind the length; the longest frame of today has 4,012.
pub const FRAME_OCTETS_MAX: usize = 4_096;
/// The longest time from a question to an answer that needs the DNS. RFC 7208 section 4.6.4 grants a check of SPF 20 seconds
/// at least, and a client of SMTP waits 5 minutes for the reply to RCPT (RFC 5321 section 4.5.3.2.3).
pub const LOOKUP_SECONDS_MAX: u64 = 20;
/// The longest time from a question for records to the answer. A message needs several, in turn.
pub const RECORDS_SECONDS_MAX: u64 = 5;

const LENGTH_OCTETS: usize = 4;
const HEAD_OCTETS: usize = 10;

const RECIPIENT: u8 = 1;
const SPF: u8 = 2;
const RESOLVE: u8 = 3;
const FIGURES: u8 = 4;
const LISTS: u8 = 5;
const LIST_FIGURES: u8 = 6;
const KEEPING: u8 = 7;
const ACCEPTED: u8 = 129;
const REFUSED: u8 = 130;
const UNKNOWN: u8 = 131;
const SPF_RESULT: u8 = 132;
const RECORDS: u8 = 133;
const NOTHING: u8 = 134;
const FIGURES_ANSWER: u8 = 135;
const LISTS_ANSWER: u8 = 136;
const LIST_FIGURES_ANSWER: u8 = 137;
const KEPT: u8 = 138;

const MAY_RELAY: u8 = 1;

/// A whole frame with unparsed content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The id of the question.
    pub id: u64,
    /// Octets of the frame, including the length.
    pub octets: usize,
    kind: u8,
    content: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the first frame of the octets; `None` while the frame is incomplete.
    ///
    /// # Errors
    /// [`WireError::Length`] for a frame that is too long or too short, [`WireError::Version`] for another version.
    pub fn read(octets: &'a [u8]) -> Result<Option<Self>, WireError> {
        let Some((length, rest)) = octets.split_first_chunk::<LENGTH_OCTETS>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if !(HEAD_OCTETS..=FRAME_OCTETS_MAX).contains(&length) {
            return Err(WireError::Length(length));
        }
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        let mut content = Content(frame);
        let [version, kind] = content.array()?;
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let id = u64::from_le_bytes(content.array()?);
        Ok(Some(Self {
            id,
            octets: length.saturating_add(LENGTH_OCTETS),
            kind,
            content: content.0,
        }))
    }
}

/// The path of a RCPT command without angle brackets: 1 to [`ADDRESS_OCTETS_MAX`] octets of UTF-8, otherwise unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address<'a>(&'a str);

impl<'a> Address<'a> {
    /// Returns the text as an address.
    ///
    /// # Errors
    /// [`WireError::Address`] for an empty or an overlong text.
    pub const fn new(text: &'a str) -> Result<Self, WireError> {
        match text.len() {
            1..=ADDRESS_OCTETS_MAX => Ok(Self(text)),
            octets => Err(WireError::Address(octets)),
        }
    }

    /// Returns the text.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

/// A question of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question<'a> {
    /// Asks whether mail for this recipient is accepted from the client of a session.
    Recipient {
        /// The recipient.
        address: Address<'a>,
        /// The client of the session; each network of clients has its share of the calls to next hops.
        client: IpAddr,
        /// Whether the client of the session may send to any domain.
        may_relay: bool,
    },
    /// Asks whether the domain of the sender allows the client.
    Spf(Sender<'a>),
    /// Asks for the records of a name.
    Resolve {
        /// The client whose message needs the records.
        client: IpAddr,
        /// The name.
        name: Name<'a>,
        /// The type of the records.
        kind: RecordType,
    },
    /// Asks for the counts of the broker.
    Figures,
    /// Asks for the entries of a client on all lists.
    Lists(IpAddr),
    /// Asks for the counts of a list, by number.
    ListFigures(u8),
    /// Asks what is kept about a client, without asking the list.
    Keeping(Keeping<'a>),
}

impl<'a> Question<'a> {
    /// Appends the frame.
    pub fn encode(&self, id: u64, out: &mut Vec<u8>) {
        match self {
            Self::Recipient {
                address,
                client,
                may_relay,
            } => frame(out, RECIPIENT, id, |out| {
                let octets = u16::try_from(address.0.len()).unwrap_or(u16::MAX);
                out.push(if *may_relay { MAY_RELAY } else { 0 });
                wire::encode_client(*client, out);
                out.extend_from_slice(&octets.to_le_bytes());
                out.extend_from_slice(address.0.as_bytes());
            }),
            Self::Spf(sender) => frame(out, SPF, id, |out| sender.encode(out)),
            Self::Resolve { client, name, kind } => frame(out, RESOLVE, id, |out| {
                wire::encode_client(*client, out);
                out.push(kind.number());
                name.encode(out);
            }),
            Self::Figures => frame(out, FIGURES, id, |_| {}),
            Self::Lists(client) => {
                frame(out, LISTS, id, |out| wire::encode_client(*client, out));
            }
            Self::ListFigures(list) => frame(out, LIST_FIGURES, id, |out| out.push(*list)),
            Self::Keeping(keeping) => frame(out, KEEPING, id, |out| keeping.encode(out)),
        }
    }

    /// Reads a question.
    ///
    /// # Errors
    /// [`WireError::Kind`] for an unknown kind, otherwise [`WireError`] for malformed content.
    pub fn decode(frame: &Frame<'a>) -> Result<Self, WireError> {
        let mut content = Content(frame.content);
        let question = match frame.kind {
            RECIPIENT => {
                let may_relay = match content.array()? {
                    [0] => false,
                    [MAY_RELAY] => true,
                    _ => return Err(WireError::Content),
                };
                let client = wire::decode_client(&mut content)?;
                let octets = u16::from_le_bytes(content.array()?);
                Self::Recipient {
                    address: Address::new(content.text(octets.into())?)?,
                    client,
                    may_relay,
                }
            }
            SPF => Self::Spf(Sender::decode(&mut content)?),
            RESOLVE => {
                let client = wire::decode_client(&mut content)?;
                let [kind] = content.array()?;
                Self::Resolve {
                    client,
                    kind: RecordType::of_number(kind).ok_or(WireError::Content)?,
                    name: Name::decode(&mut content)?,
                }
            }
            FIGURES => Self::Figures,
            LISTS => Self::Lists(wire::decode_client(&mut content)?),
            LIST_FIGURES => {
                let [list] = content.array()?;
                Self::ListFigures(list)
            }
            KEEPING => Self::Keeping(Keeping::decode(&mut content)?),
            other => return Err(WireError::Kind(other)),
        };
        content.end()?;
        Ok(question)
    }
}

/// An answer of the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Mail for the recipient is accepted.
    Accepted,
    /// Mail for the recipient is refused, with the number of the refusal. A client that does not know the number takes
    /// the refusal for a local error.
    Refused(u8),
    /// The broker does not know the kind of the question.
    Unknown,
    /// The results of SPF.
    Spf(SpfResults),
    /// The records of the name.
    Records(Records),
    /// The name has no records, or cannot be looked up.
    Nothing(NoRecords),
    /// The counts of the broker.
    Figures(Figures),
    /// The entries of the client on all lists.
    Lists(ListsAnswer),
    /// The counts of a list.
    ListFigures(ListFigures),
    /// What is kept about the client.
    Kept(Kept),
}

impl Answer {
    /// Appends the frame.
    pub fn encode(&self, id: u64, out: &mut Vec<u8>) {
        match self {
            Self::Accepted => frame(out, ACCEPTED, id, |_| {}),
            Self::Refused(number) => frame(out, REFUSED, id, |out| out.push(*number)),
            Self::Unknown => frame(out, UNKNOWN, id, |_| {}),
            Self::Spf(result) => frame(out, SPF_RESULT, id, |out| {
                out.push(SpfResults::octet(Some(*result)))
            }),
            Self::Records(records) => frame(out, RECORDS, id, |out| records.encode(out)),
            Self::Nothing(why) => frame(out, NOTHING, id, |out| out.push(why.number())),
            Self::Figures(figures) => frame(out, FIGURES_ANSWER, id, |out| figures.encode(out)),
            Self::Lists(lists) => frame(out, LISTS_ANSWER, id, |out| lists.encode(out)),
            Self::ListFigures(figures) => {
                frame(out, LIST_FIGURES_ANSWER, id, |out| figures.encode(out));
            }
            Self::Kept(kept) => frame(out, KEPT, id, |out| out.push(kept.number())),
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`WireError::Kind`] for an unknown kind, [`WireError::Content`] for malformed content.
    pub fn decode(frame: &Frame<'_>) -> Result<Self, WireError> {
        let mut content = Content(frame.content);
        let answer = match frame.kind {
            ACCEPTED => Self::Accepted,
            REFUSED => {
                let [number] = content.array()?;
                Self::Refused(number)
            }
            UNKNOWN => Self::Unknown,
            SPF_RESULT => {
                let [octet] = content.array()?;
                let results = SpfResults::of_octet(octet).flatten();
                Self::Spf(results.ok_or(WireError::Content)?)
            }
            RECORDS => Self::Records(Records::decode(&mut content)?),
            NOTHING => {
                let [number] = content.array()?;
                Self::Nothing(NoRecords::of_number(number).ok_or(WireError::Content)?)
            }
            FIGURES_ANSWER => Self::Figures(Figures::decode(&mut content)?),
            LISTS_ANSWER => Self::Lists(ListsAnswer::decode(&mut content)?),
            LIST_FIGURES_ANSWER => Self::ListFigures(ListFigures::decode(&mut content)?),
            KEPT => {
                let [number] = content.array()?;
                Self::Kept(Kept::of_number(number).ok_or(WireError::Content)?)
            }
            other => return Err(WireError::Kind(other)),
        };
        content.end()?;
        Ok(answer)
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, id: u64, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_OCTETS]);
    out.extend_from_slice(&[VERSION, kind]);
    out.extend_from_slice(&id.to_le_bytes());
    content(out);
    let whole = out.len().saturating_sub(start);
    let behind = u32::try_from(whole.saturating_sub(LENGTH_OCTETS)).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start.saturating_add(LENGTH_OCTETS)) {
        place.copy_from_slice(&behind.to_le_bytes());
    }
}
