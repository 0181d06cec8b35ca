//! The spool's record of a message beside the body: the head that the schedule reads, and the mail that who delivers
//! the message reads. Queues, holds, retries and takeovers need the head alone.
//!
//! Format versions 1 to 3, little endian; `str` is a u16 length and that many octets of UTF-8:
//!
//! ```text
//! 0   u8   version: 3 when it is held, 2 with flag 64, both of which a reader must know, else 1
//! 1   u8   flags: 1 SMTPUTF8, 2 BODY=8BITMIME, 4 BODY=BINARYMIME, 8 RET=FULL, 16 RET=HDRS,
//!          32 a delay notice was sent, 64 REQUIRETLS (from version 2), 128 TLS-Required: No
//! 2   u16  attempts made so far
//! 4   u64  trace id
//! 12  u64  accepted, ms since the Unix epoch
//! 20  u64  not before, ms since the Unix epoch; 0 = at once
//! 28  u32  octets of the body
//! 32  str  reverse-path without brackets; empty = null
//!     str  ENVID as received (xtext); empty = none
//!     str  last reply of the destination; empty = none
//!     str  Message-ID; empty = none
//!     u16  number of recipients, each:
//!            u8   NOTIFY: 1 NEVER, 2 SUCCESS, 4 FAILURE, 8 DELAY; 0 = not given
//!            str  address without brackets
//!            str  ORCPT as received (type;xtext); empty = none
//!     i8   priority (MT-PRIORITY); before version 3 only when it is not 0, and who does not know it
//!          passes it over
//!     from version 3:
//!     u64  held until, ms since the Unix epoch; 2^64 - 1 = until it is released
//!     u64  held since; 0 or missing = not known
//!     any version:
//!     u64  first seen, by a clock that was behind "accepted"; 0 or missing = never; who does not know it
//!          passes it over
//!     u8   cause of the hold (version 3): 0 or missing = an operator, 1 = the bounds of the account, 2 = the quarantine;
//!          who does not know the number or the field takes an operator for the cause; any version: 128 more = a person
//!          has released the message from the quarantine, and who does not know that delivers the message as stored
//!     u64  the end of attempts at this message, by the clock of "accepted"; 0 or missing = the age of all messages
//!          counts; who does not know it passes it over, delivers by age, and loses the field with the next attempt
//! ```

mod head;
mod mail;
#[cfg(test)]
pub(crate) mod tests;

use vere_units::{Timestamp, TraceId};

pub use head::{HoldCause, PRIORITY_MAX, PRIORITY_MIN, ScheduleHead};
pub use mail::{BodyType, Mail, Notify, Recipient, Ret, TlsWish};

/// The version written by this code, and the newest version that can be read.
pub const FORMAT_VERSION: u8 = 3;

/// The version that adds the end of a hold: a program without this version would deliver a held message.
const WITH_HOLD: u8 = 3;

const SMTPUTF8: u8 = 1;
const EIGHT_BIT: u8 = 2;
const BINARY: u8 = 4;
const RET_FULL: u8 = 8;
const RET_HEADERS: u8 = 16;
const DELAY_NOTICED: u8 = 32;
const REQUIRE_TLS: u8 = 64;
const TLS_OPTIONAL: u8 = 128;

/// The bit beside the cause of a hold.
const RELEASED: u8 = 128;

/// A message's envelope within a queue, and the state of its delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// What the schedule reads.
    pub head: ScheduleHead,
    /// What who delivers the message reads.
    pub mail: Mail,
}

/// Why a record's metadata cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The record has a newer version than this program can read.
    #[error("envelope has format version {0}, this program reads up to {FORMAT_VERSION}")]
    Version(u8),
    /// The record ends early, or its text is not UTF-8, at this offset.
    #[error("envelope is damaged at octet {0}")]
    Malformed(usize),
}

impl Envelope {
    /// Encodes the envelope as the metadata of a spool record. Text longer than 65,535 octets is cut.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { head, mail } = self;
        let mut out = Vec::with_capacity(96 + mail.recipients.len() * 48);
        // A program limited to version 1 must not send the message in the clear.
        out.push(match mail.tls {
            _ if head.held_until.is_some() => WITH_HOLD,
            TlsWish::Required => 2,
            TlsWish::None | TlsWish::Optional => 1,
        });
        out.push(self.flags());
        out.extend_from_slice(&head.attempts.to_le_bytes());
        out.extend_from_slice(&head.trace.as_u64().to_le_bytes());
        out.extend_from_slice(&head.accepted.as_millis().to_le_bytes());
        let not_before = head.not_before.map_or(0, Timestamp::as_millis);
        out.extend_from_slice(&not_before.to_le_bytes());
        out.extend_from_slice(&head.size.to_le_bytes());
        for text in [
            &mail.reverse_path,
            &mail.envid,
            &head.last_reply,
            &mail.message_id,
        ] {
            push_text(&mut out, text.as_deref().unwrap_or_default());
        }
        let count = u16::try_from(mail.recipients.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        for recipient in mail.recipients.iter().take(usize::from(count)) {
            out.push(recipient.notify.bits());
            push_text(&mut out, &recipient.address);
            push_text(&mut out, recipient.orcpt.as_deref().unwrap_or_default());
        }
        head.encode_end(&mut out);
        out
    }

    /// Decodes a record's metadata.
    ///
    /// # Errors
    /// [`EnvelopeError::Version`] for a record of a newer program, [`EnvelopeError::Malformed`] for a record that is
    /// cut short or has text outside UTF-8.
    pub fn decode(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let mut reader = Reader { bytes, at: 0 };
        let [version, flags] = reader.array()?;
        if version == 0 || version > FORMAT_VERSION {
            return Err(EnvelopeError::Version(version));
        }
        let attempts = u16::from_le_bytes(reader.array()?);
        let trace = TraceId::new(u64::from_le_bytes(reader.array()?));
        let accepted = Timestamp::from_millis(u64::from_le_bytes(reader.array()?));
        let not_before = u64::from_le_bytes(reader.array()?);
        let size = u32::from_le_bytes(reader.array()?);
        let reverse_path = reader.text()?;
        let envid = reader.text()?;
        let last_reply = reader.text()?;
        let message_id = reader.text()?;
        let count = u16::from_le_bytes(reader.array()?);
        let recipients = (0..count)
            .map(|_| reader.recipient())
            .collect::<Result<_, _>>()?;
        let mut head = ScheduleHead {
            not_before: (not_before != 0).then(|| Timestamp::from_millis(not_before)),
            attempts,
            delay_noticed: flags & DELAY_NOTICED != 0,
            size,
            last_reply,
            ..ScheduleHead::new(trace, accepted, 0)
        };
        head.decode_end(version, &mut reader)?;
        Ok(Self {
            head,
            mail: Mail {
                reverse_path,
                envid,
                ret: decode_ret(flags),
                smtputf8: flags & SMTPUTF8 != 0,
                body_type: decode_body_type(flags),
                tls: decode_tls(flags),
                message_id,
                recipients,
            },
        })
    }

    fn flags(&self) -> u8 {
        let body = match self.mail.body_type {
            BodyType::SevenBit => 0,
            BodyType::EightBitMime => EIGHT_BIT,
            BodyType::BinaryMime => BINARY,
        };
        let ret = match self.mail.ret {
            None => 0,
            Some(Ret::Full) => RET_FULL,
            Some(Ret::Headers) => RET_HEADERS,
        };
        let utf8 = if self.mail.smtputf8 { SMTPUTF8 } else { 0 };
        let noticed = if self.head.delay_noticed {
            DELAY_NOTICED
        } else {
            0
        };
        let tls = match self.mail.tls {
            TlsWish::None => 0,
            TlsWish::Required => REQUIRE_TLS,
            TlsWish::Optional => TLS_OPTIONAL,
        };
        body | ret | utf8 | noticed | tls
    }
}

impl ScheduleHead {
    /// Appends the fields behind the recipients, which older programs pass over.
    fn encode_end(&self, out: &mut Vec<u8>) {
        let is_caused = self.held_until.is_some() && self.held_for != HoldCause::Operator;
        let cause = if is_caused { self.held_for.number() } else { 0 };
        let released = if self.is_released { RELEASED } else { 0 };
        let last = cause | released;
        let has_last = last != 0 || self.expires.is_some();
        let has_seen = self.seen.is_some() || has_last;
        if self.priority != 0 || self.held_until.is_some() || has_seen {
            out.extend_from_slice(&self.priority.to_le_bytes());
        }
        if let Some(until) = self.held_until {
            out.extend_from_slice(&until.as_millis().to_le_bytes());
            if self.held_since.is_some() || has_seen {
                let since = self.held_since.map_or(0, Timestamp::as_millis);
                out.extend_from_slice(&since.to_le_bytes());
            }
        }
        if has_seen {
            let seen = self.seen.map_or(0, Timestamp::as_millis);
            out.extend_from_slice(&seen.to_le_bytes());
        }
        if has_last {
            out.push(last);
        }
        if let Some(expires) = self.expires {
            out.extend_from_slice(&expires.as_millis().to_le_bytes());
        }
    }

    /// Reads the fields behind the recipients.
    fn decode_end(&mut self, version: u8, reader: &mut Reader<'_>) -> Result<(), EnvelopeError> {
        let mut priority = reader.array().map(i8::from_le_bytes);
        if version >= WITH_HOLD {
            priority = Ok(priority?);
            let until = u64::from_le_bytes(reader.array()?);
            self.held_until = Some(Timestamp::from_millis(until));
            self.held_since = reader.time_if_any()?;
        }
        self.seen = reader.time_if_any()?;
        let last = reader.array().map_or(0, u8::from_le_bytes);
        self.is_released = last & RELEASED != 0;
        if version >= WITH_HOLD {
            self.held_for = HoldCause::of_number(last & !RELEASED);
        }
        self.priority = priority.unwrap_or(0).clamp(PRIORITY_MIN, PRIORITY_MAX);
        self.expires = reader.time_if_any()?;
        Ok(())
    }
}

const fn decode_ret(flags: u8) -> Option<Ret> {
    if flags & RET_FULL != 0 {
        Some(Ret::Full)
    } else if flags & RET_HEADERS != 0 {
        Some(Ret::Headers)
    } else {
        None
    }
}

const fn decode_body_type(flags: u8) -> BodyType {
    if flags & BINARY != 0 {
        BodyType::BinaryMime
    } else if flags & EIGHT_BIT != 0 {
        BodyType::EightBitMime
    } else {
        BodyType::SevenBit
    }
}

const fn decode_tls(flags: u8) -> TlsWish {
    if flags & REQUIRE_TLS != 0 {
        TlsWish::Required
    } else if flags & TLS_OPTIONAL != 0 {
        TlsWish::Optional
    } else {
        TlsWish::None
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let length = u16::try_from(end).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..end]);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], EnvelopeError> {
        let end = self
            .at
            .checked_add(length)
            .ok_or(EnvelopeError::Malformed(self.at))?;
        let slice = self
            .bytes
            .get(self.at..end)
            .ok_or(EnvelopeError::Malformed(self.at))?;
        self.at = end;
        Ok(slice)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], EnvelopeError> {
        let at = self.at;
        self.take(N)?
            .try_into()
            .map_err(|_| EnvelopeError::Malformed(at))
    }

    /// A time at the end that may be missing, or 0 for no time.
    fn time_if_any(&mut self) -> Result<Option<Timestamp>, EnvelopeError> {
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let millis = u64::from_le_bytes(self.array()?);
        Ok((millis != 0).then(|| Timestamp::from_millis(millis)))
    }

    fn text(&mut self) -> Result<Option<String>, EnvelopeError> {
        let length = u16::from_le_bytes(self.array()?);
        let at = self.at;
        let text = std::str::from_utf8(self.take(usize::from(length))?)
            .map_err(|_| EnvelopeError::Malformed(at))?;
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    fn recipient(&mut self) -> Result<Recipient, EnvelopeError> {
        let [bits] = self.array()?;
        let at = self.at;
        let address = self.text()?.ok_or(EnvelopeError::Malformed(at))?;
        let orcpt = self.text()?;
        Ok(Recipient {
            address,
            notify: Notify::from_bits(bits),
            orcpt,
        })
    }
}
