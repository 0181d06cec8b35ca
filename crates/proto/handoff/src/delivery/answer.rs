//! The answers of a courier.

use super::head::{LENGTH_OCTETS, VERSION, head};
use super::sessions::TlsSessions;
use super::texts::{cut, put_text, text, value};
use crate::octets::{HandoffError, Reader, put_length};

/// The most results of a message: the recipients of an envelope.
const RESULTS_MAX: usize = 65_535;
/// The most octets of a status.
const STATUS_OCTETS_MAX: usize = 64;
/// The most octets of a reply; longer replies are cut.
const REPLY_OCTETS_MAX: usize = 4_096;
/// The most octets of the name of a site or a host.
const NAME_OCTETS_MAX: usize = 65_536;
/// The most counters of a frame.
const COUNTERS_MAX: usize = 256;
/// The most octets of an answer.
const OCTETS_MAX: usize =
    2 + 8 + 1 + 4 + RESULTS_MAX * (1 + 1 + 4 + STATUS_OCTETS_MAX + 4 + REPLY_OCTETS_MAX);

const FOUND: u8 = 129;
const UNROUTABLE: u8 = 130;
const OPENED: u8 = 131;
const SENT: u8 = 132;
const UNSENT: u8 = 133;
const CLOSED: u8 = 134;
const FAILED: u8 = 135;
const COUNTS: u8 = 136;
const BEAT: u8 = 137;
const SESSIONS: u8 = 138;

const USABLE: u8 = 1;
const REPORTS: u8 = 2;

/// An answer of a courier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The hosts are found.
    Found {
        /// The number.
        number: u64,
        /// The name of the site.
        site: String,
    },
    /// No host takes messages.
    Unroutable {
        /// The number.
        number: u64,
        /// Whether a host may be found later.
        extent: Extent,
        /// The number of the status, where the failure is for good.
        status: u8,
        /// The reason, for people.
        reply: String,
    },
    /// The connection takes messages.
    Opened {
        /// The number.
        number: u64,
        /// The host, for traces and reports.
        remote: String,
        /// The encryption, for traces.
        security: String,
    },
    /// The host has answered for a message.
    Sent {
        /// The number.
        number: u64,
        /// The results.
        outcomes: Outcomes,
    },
    /// The message was not tried.
    Unsent {
        /// The number.
        number: u64,
        /// Whether the connection takes another message.
        usable: bool,
    },
    /// The connection has closed without a message.
    Closed {
        /// The number.
        number: u64,
    },
    /// The courier does not know the number any more.
    Failed {
        /// The number.
        number: u64,
    },
    /// Increases of counters, by number.
    Counts(Vec<(u8, u32)>),
    /// The courier is alive.
    Beat,
    /// Connections for reports about TLS.
    Sessions(Box<TlsSessions>),
}

/// How long a destination takes no mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// For now.
    Now,
    /// For now, as all destinations of the site.
    Site,
    /// For good.
    Ever,
}

/// The results of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcomes {
    /// Whether the connection takes another message.
    pub usable: bool,
    /// Whether the host has the duty to report (RFC 3461).
    pub reports_taken_over: bool,
    /// The result of each recipient, in the order of the envelope.
    pub recipients: Vec<Outcome>,
}

/// The result of a recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// 0 delivered, 1 deferred, 2 failed.
    pub disposition: u8,
    /// Whether the host said so.
    pub from_remote: bool,
    /// The enhanced status code (RFC 3463).
    pub status: String,
    /// The reply, in a line.
    pub reply: String,
}

/// Parses the length before an answer.
///
/// # Errors
///
/// [`HandoffError::TooMuch`] for more octets than an answer has.
pub fn answer_length(octets: [u8; LENGTH_OCTETS]) -> Result<usize, HandoffError> {
    Reader(&octets).length("length of the answer", OCTETS_MAX)
}

impl Answer {
    /// The number of the answer.
    #[must_use]
    pub const fn number(&self) -> Option<u64> {
        match self {
            Self::Found { number, .. }
            | Self::Unroutable { number, .. }
            | Self::Opened { number, .. }
            | Self::Sent { number, .. }
            | Self::Unsent { number, .. }
            | Self::Closed { number }
            | Self::Failed { number } => Some(*number),
            Self::Counts(_) | Self::Beat | Self::Sessions(_) => None,
        }
    }

    /// Appends the frame. Texts above their limits are cut.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        put_length(to, 0);
        to.push(VERSION);
        self.encode_content(to);
        let length = to.len().saturating_sub(begin).saturating_sub(4);
        let length = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
        let field = to.iter_mut().skip(begin).zip(length);
        field.for_each(|(place, octet)| *place = octet);
    }

    fn encode_content(&self, to: &mut Vec<u8>) {
        let mut kind = |kind: u8, number: &u64| {
            to.push(kind);
            to.extend_from_slice(&number.to_le_bytes());
        };
        match self {
            Self::Found { number, site } => {
                kind(FOUND, number);
                to.extend_from_slice(cut(site, NAME_OCTETS_MAX).as_bytes());
            }
            Self::Unroutable {
                number,
                extent,
                status,
                reply,
            } => {
                kind(UNROUTABLE, number);
                to.extend_from_slice(&[*extent as u8, *status]);
                to.extend_from_slice(cut(reply, REPLY_OCTETS_MAX).as_bytes());
            }
            Self::Opened {
                number,
                remote,
                security,
            } => {
                kind(OPENED, number);
                put_text(to, remote, NAME_OCTETS_MAX);
                to.extend_from_slice(cut(security, NAME_OCTETS_MAX).as_bytes());
            }
            Self::Sent { number, outcomes } => {
                kind(SENT, number);
                outcomes.encode(to);
            }
            Self::Unsent { number, usable } => {
                kind(UNSENT, number);
                to.push(u8::from(*usable));
            }
            Self::Closed { number } => kind(CLOSED, number),
            Self::Failed { number } => kind(FAILED, number),
            Self::Counts(counts) => {
                to.push(COUNTS);
                put_length(to, counts.len().min(COUNTERS_MAX));
                for (counter, increase) in counts.iter().take(COUNTERS_MAX) {
                    to.push(*counter);
                    to.extend_from_slice(&increase.to_le_bytes());
                }
            }
            Self::Beat => to.push(BEAT),
            Self::Sessions(sessions) => {
                to.push(SESSIONS);
                sessions.encode(to);
            }
        }
    }

    /// Decodes a frame without its length.
    ///
    /// # Errors
    ///
    /// [`HandoffError`] for octets that are no answer.
    pub fn decode(frame: &[u8]) -> Result<Self, HandoffError> {
        let mut reader = Reader(frame);
        let answer = match head(&mut reader)? {
            COUNTS => Self::Counts(counts(&mut reader)?),
            BEAT => Self::Beat,
            SESSIONS => Self::Sessions(Box::new(TlsSessions::decode(&mut reader)?)),
            kind => {
                let number = reader.long("number")?;
                Self::decode_numbered(kind, number, &mut reader)?
            }
        };
        reader.end()?;
        Ok(answer)
    }

    fn decode_numbered(
        kind: u8,
        number: u64,
        reader: &mut Reader<'_>,
    ) -> Result<Self, HandoffError> {
        Ok(match kind {
            FOUND => Self::Found {
                number,
                site: rest(reader, "site", NAME_OCTETS_MAX)?,
            },
            UNROUTABLE => Self::Unroutable {
                number,
                extent: match reader.octet("extent")? {
                    0 => Extent::Now,
                    1 => Extent::Site,
                    2 => Extent::Ever,
                    found => return Err(value("extent", "0, 1 or 2", found)),
                },
                status: reader.octet("number of the status")?,
                reply: rest(reader, "reply", REPLY_OCTETS_MAX)?,
            },
            OPENED => Self::Opened {
                number,
                remote: text(reader, "host", NAME_OCTETS_MAX)?,
                security: rest(reader, "encryption", NAME_OCTETS_MAX)?,
            },
            SENT => Self::Sent {
                number,
                outcomes: Outcomes::decode(reader)?,
            },
            UNSENT => Self::Unsent {
                number,
                usable: reader.flag("use of the connection")?,
            },
            CLOSED => Self::Closed { number },
            FAILED => Self::Failed { number },
            other => return Err(HandoffError::Kind(other)),
        })
    }
}

impl Outcomes {
    fn encode(&self, to: &mut Vec<u8>) {
        let mut flags = 0;
        if self.usable {
            flags |= USABLE;
        }
        if self.reports_taken_over {
            flags |= REPORTS;
        }
        to.push(flags);
        put_length(to, self.recipients.len().min(RESULTS_MAX));
        for outcome in self.recipients.iter().take(RESULTS_MAX) {
            to.extend_from_slice(&[outcome.disposition, u8::from(outcome.from_remote)]);
            put_text(to, &outcome.status, STATUS_OCTETS_MAX);
            put_text(to, &outcome.reply, REPLY_OCTETS_MAX);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, HandoffError> {
        let flags = reader.octet("flags")?;
        if flags & !(USABLE | REPORTS) != 0 {
            return Err(value("flags", "the bits 1 and 2", flags));
        }
        let count = reader.length("number of results", RESULTS_MAX)?;
        let recipients = (0..count).map(|_| Outcome::decode(reader));
        Ok(Self {
            usable: flags & USABLE != 0,
            reports_taken_over: flags & REPORTS != 0,
            recipients: recipients.collect::<Result<_, _>>()?,
        })
    }
}

impl Outcome {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, HandoffError> {
        Ok(Self {
            disposition: match reader.octet("disposition")? {
                disposition @ 0..=2 => disposition,
                found => return Err(value("disposition", "0, 1 or 2", found)),
            },
            from_remote: reader.flag("source of a result")?,
            status: text(reader, "status", STATUS_OCTETS_MAX)?,
            reply: text(reader, "reply", REPLY_OCTETS_MAX)?,
        })
    }
}

fn counts(reader: &mut Reader<'_>) -> Result<Vec<(u8, u32)>, HandoffError> {
    let count = reader.length("number of counters", COUNTERS_MAX)?;
    (0..count)
        .map(|_| Ok((reader.octet("counter")?, reader.count("increase")?)))
        .collect()
}

/// The rest of a frame.
fn rest(reader: &mut Reader<'_>, field: &'static str, max: usize) -> Result<String, HandoffError> {
    let found = reader.0.len();
    match found <= max {
        true => reader.text(field).map(str::to_owned),
        false => Err(HandoffError::TooMuch { field, max, found }),
    }
}
