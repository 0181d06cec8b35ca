//! The spool's record of a message beside the body: the envelope and the state of the delivery, with the format of
//! the record's metadata.
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
//!     u64  first seen, by a clock that was behind "accepted"; missing = never; who does not know it passes
//!          it over
//! ```

use std::fmt;
use std::time::Duration;

use vere_units::{Timestamp, TraceId};

/// The version written by this code, and the newest version that can be read.
pub const FORMAT_VERSION: u8 = 3;

/// The version that adds the end of a hold: a program without this version would deliver a held message.
const WITH_HOLD: u8 = 3;

/// The lowest priority of a message (RFC 6710 section 3).
pub const PRIORITY_MIN: i8 = -9;
/// The highest.
pub const PRIORITY_MAX: i8 = 9;

/// By so much an acceptance may be in the future before that is written down: clocks of two machines differ.
const AHEAD_MIN: Duration = Duration::from_secs(30);

const SMTPUTF8: u8 = 1;
const EIGHT_BIT: u8 = 2;
const BINARY: u8 = 4;
const RET_FULL: u8 = 8;
const RET_HEADERS: u8 = 16;
const DELAY_NOTICED: u8 = 32;
const REQUIRE_TLS: u8 = 64;
const TLS_OPTIONAL: u8 = 128;

/// The octets allowed in the body (RFC 6152, RFC 3030).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyType {
    /// Lines of 7-bit octets.
    #[default]
    SevenBit,
    /// Lines of 8-bit octets (`BODY=8BITMIME`).
    EightBitMime,
    /// Any octets (`BODY=BINARYMIME`): can leave only through CHUNKING.
    BinaryMime,
}

/// How much of the message a failure report returns (RFC 3461 section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ret {
    /// The whole message.
    Full,
    /// Its header only.
    Headers,
}

/// The events about which a sender wants a report (RFC 3461 section 4.1); [`Notify::default`] is "not given":
/// failures, and delays at the system's discretion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notify(u8);

impl Notify {
    /// `NOTIFY=NEVER`.
    pub const NEVER: Self = Self(1);

    /// `NOTIFY=` with any of SUCCESS, FAILURE and DELAY.
    #[must_use]
    pub const fn on(success: bool, failure: bool, delay: bool) -> Self {
        Self((success as u8) << 1 | (failure as u8) << 2 | (delay as u8) << 3)
    }

    /// Reads the bits of the record format; unknown bits are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 15)
    }

    /// The bits of the record format.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether the sender gave NOTIFY at all; it is passed on only then.
    #[must_use]
    pub const fn given(self) -> bool {
        self.0 != 0
    }

    /// Whether delivery is to be reported.
    #[must_use]
    pub const fn success(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether failure is to be reported.
    #[must_use]
    pub const fn failure(self) -> bool {
        !self.given() || self.0 & 4 != 0
    }

    /// Whether delay is to be reported.
    #[must_use]
    pub const fn delay(self) -> bool {
        !self.given() || self.0 & 8 != 0
    }
}

/// The sender's wish about encryption (RFC 8689).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum TlsWish {
    /// No wish: the recipient's domain decides.
    #[default]
    None,
    /// `REQUIRETLS`: encrypted only, to verified hosts with the same promise.
    Required,
    /// The header field `TLS-Required: No`: delivery counts for more than what the recipient's domain says.
    Optional,
}

/// A recipient without a final result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// The address without brackets; at most 254 octets came in by SMTP.
    pub address: String,
    /// The events about which the sender wants a report.
    pub notify: Notify,
    /// The original recipient as given (`rfc822;user@example.org`, xtext).
    pub orcpt: Option<String>,
}

/// A message's envelope within a queue, and the state of its delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Names the message in logs, in the reply to its sender and in `vere trace`.
    pub trace: TraceId,
    /// The time of acceptance, from which the age counts ([`Envelope::accepted_by`]).
    pub accepted: Timestamp,
    /// The first time at which a clock behind `accepted` saw the message. One of the two clocks was wrong, and both
    /// times are kept because the wrong clock is unknown.
    pub seen: Option<Timestamp>,
    /// The earliest time of the next attempt.
    pub not_before: Option<Timestamp>,
    /// The end of an operator's hold ([`FOREVER`](crate::order::FOREVER): until released).
    pub held_until: Option<Timestamp>,
    /// The beginning of a hold, if recorded.
    pub held_since: Option<Timestamp>,
    /// Attempts made.
    pub attempts: u16,
    /// Whether the sender has received a delay notice.
    pub delay_noticed: bool,
    /// The sender's address without brackets; `None` is the null reverse-path.
    pub reverse_path: Option<String>,
    /// The sender's identifier for reports.
    pub envid: Option<String>,
    /// How much a failure report returns.
    pub ret: Option<Ret>,
    /// Whether the message needs SMTPUTF8 (RFC 6531).
    pub smtputf8: bool,
    /// The octets allowed in the body.
    pub body_type: BodyType,
    /// The sender's wish about encryption.
    pub tls: TlsWish,
    /// Higher ones leave first, from [`PRIORITY_MIN`] to [`PRIORITY_MAX`] (RFC 6710).
    pub priority: i8,
    /// Octets of the body.
    pub size: u32,
    /// The last reply of the destination, cut to a limited length.
    pub last_reply: Option<String>,
    /// The Message-ID header field's value, for tracing.
    pub message_id: Option<String>,
    /// The recipients still open; never empty in a stored record.
    pub recipients: Vec<Recipient>,
}

/// Why a record's metadata cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvelopeError {
    /// The record has a newer version than this program can read.
    Version(u8),
    /// The record ends early, or its text is not UTF-8, at this offset.
    Malformed(usize),
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(found) => {
                write!(
                    f,
                    "envelope has format version {found}, this program reads up to {FORMAT_VERSION}"
                )
            }
            Self::Malformed(offset) => write!(f, "envelope is damaged at octet {offset}"),
        }
    }
}

impl std::error::Error for EnvelopeError {}

impl Envelope {
    /// Encodes the envelope as the metadata of a spool record. Text longer than 65,535 octets is cut.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96 + self.recipients.len() * 48);
        // A program limited to version 1 must not send the message in the clear.
        out.push(match self.tls {
            _ if self.held_until.is_some() => WITH_HOLD,
            TlsWish::Required => 2,
            TlsWish::None | TlsWish::Optional => 1,
        });
        out.push(self.flags());
        out.extend_from_slice(&self.attempts.to_le_bytes());
        out.extend_from_slice(&self.trace.as_u64().to_le_bytes());
        out.extend_from_slice(&self.accepted.as_millis().to_le_bytes());
        let not_before = self.not_before.map_or(0, Timestamp::as_millis);
        out.extend_from_slice(&not_before.to_le_bytes());
        out.extend_from_slice(&self.size.to_le_bytes());
        for text in [
            &self.reverse_path,
            &self.envid,
            &self.last_reply,
            &self.message_id,
        ] {
            push_text(&mut out, text.as_deref().unwrap_or_default());
        }
        let count = u16::try_from(self.recipients.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        for recipient in self.recipients.iter().take(usize::from(count)) {
            out.push(recipient.notify.bits());
            push_text(&mut out, &recipient.address);
            push_text(&mut out, recipient.orcpt.as_deref().unwrap_or_default());
        }
        if self.priority != 0 || self.held_until.is_some() || self.seen.is_some() {
            out.extend_from_slice(&self.priority.to_le_bytes());
        }
        if let Some(until) = self.held_until {
            out.extend_from_slice(&until.as_millis().to_le_bytes());
            if self.held_since.is_some() || self.seen.is_some() {
                let since = self.held_since.map_or(0, Timestamp::as_millis);
                out.extend_from_slice(&since.to_le_bytes());
            }
        }
        if let Some(seen) = self.seen {
            out.extend_from_slice(&seen.as_millis().to_le_bytes());
        }
        out
    }

    /// The time of acceptance, by a clock that reads `now`. For an acceptance in the future, either the accepting
    /// clock was ahead or the present clock is behind: the age counts from the first sight of the message.
    #[must_use]
    pub fn accepted_by(&self, now: Timestamp) -> Timestamp {
        if self.accepted <= now {
            return self.accepted;
        }
        self.seen.map_or(now, |seen| seen.min(now))
    }

    /// Records the first sight of the message by a clock that reads `now`, if the clock is behind the acceptance.
    /// True if the record must be written again: otherwise the age would count again from each start.
    pub fn see(&mut self, now: Timestamp) -> bool {
        let ahead = self.accepted.saturating_since(now) >= AHEAD_MIN;
        let first = ahead && self.seen.is_none_or(|seen| seen > now);
        if first {
            self.seen = Some(now);
        }
        first
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
        let mut priority = reader.array().map(i8::from_le_bytes);
        let (mut held_until, mut held_since) = (None, None);
        if version >= WITH_HOLD {
            priority = Ok(priority?);
            held_until = Some(Timestamp::from_millis(u64::from_le_bytes(reader.array()?)));
            held_since = reader.time_if_any()?;
        }
        let seen = reader.time_if_any()?;
        let priority = priority.unwrap_or(0);
        Ok(Self {
            priority: priority.clamp(PRIORITY_MIN, PRIORITY_MAX),
            trace,
            accepted,
            seen,
            not_before: (not_before != 0).then(|| Timestamp::from_millis(not_before)),
            held_until,
            held_since,
            attempts,
            delay_noticed: flags & DELAY_NOTICED != 0,
            reverse_path,
            envid,
            ret: decode_ret(flags),
            smtputf8: flags & SMTPUTF8 != 0,
            body_type: decode_body_type(flags),
            tls: decode_tls(flags),
            size,
            last_reply,
            message_id,
            recipients,
        })
    }

    fn flags(&self) -> u8 {
        let body = match self.body_type {
            BodyType::SevenBit => 0,
            BodyType::EightBitMime => EIGHT_BIT,
            BodyType::BinaryMime => BINARY,
        };
        let ret = match self.ret {
            None => 0,
            Some(Ret::Full) => RET_FULL,
            Some(Ret::Headers) => RET_HEADERS,
        };
        let utf8 = if self.smtputf8 { SMTPUTF8 } else { 0 };
        let noticed = if self.delay_noticed { DELAY_NOTICED } else { 0 };
        let tls = match self.tls {
            TlsWish::None => 0,
            TlsWish::Required => REQUIRE_TLS,
            TlsWish::Optional => TLS_OPTIONAL,
        };
        body | ret | utf8 | noticed | tls
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> Envelope {
        Envelope {
            trace: TraceId::new(7),
            accepted: Timestamp::from_millis(1_000),
            seen: None,
            not_before: Some(Timestamp::from_millis(2_000)),
            held_until: None,
            held_since: None,
            attempts: 3,
            delay_noticed: true,
            reverse_path: Some("sender@example.org".to_owned()),
            envid: Some("QQ314159".to_owned()),
            ret: Some(Ret::Headers),
            smtputf8: true,
            body_type: BodyType::EightBitMime,
            tls: TlsWish::None,
            priority: 0,
            size: 1024,
            last_reply: Some("451 4.3.0 try later".to_owned()),
            message_id: None,
            recipients: vec![
                Recipient {
                    address: "jörg@example.net".to_owned(),
                    notify: Notify::on(true, true, false),
                    orcpt: Some("rfc822;joerg@example.net".to_owned()),
                },
                Recipient {
                    address: "b@example.net".to_owned(),
                    notify: Notify::NEVER,
                    orcpt: None,
                },
            ],
        }
    }

    #[test]
    fn an_envelope_survives_its_record() {
        let envelope = sample();
        assert_eq!(Envelope::decode(&envelope.encode()), Ok(envelope));
    }

    /// A reader limited to version 1 must refuse a record that it would send in the clear.
    #[test]
    fn wishes_about_encryption_survive() {
        for (tls, version) in [
            (TlsWish::Required, 2),
            (TlsWish::Optional, 1),
            (TlsWish::None, 1),
        ] {
            let envelope = Envelope { tls, ..sample() };
            let bytes = envelope.encode();
            assert_eq!(bytes[0], version);
            assert_eq!(Envelope::decode(&bytes), Ok(envelope));
        }
    }

    /// A reader without priorities reads such a record as a record without priority.
    #[test]
    fn a_priority_stands_behind_everything_else() {
        let plain = sample().encode();
        for priority in [PRIORITY_MIN, -1, 1, PRIORITY_MAX] {
            let envelope = Envelope {
                priority,
                ..sample()
            };
            let bytes = envelope.encode();
            assert_eq!(bytes[..plain.len()], plain);
            assert_eq!(bytes[plain.len()..], priority.to_le_bytes());
            assert_eq!(Envelope::decode(&bytes), Ok(envelope));
        }
        let odd = [&plain[..], &[100]].concat();
        assert_eq!(Envelope::decode(&odd).map(|read| read.priority), Ok(9));
    }

    /// A reader limited to versions 1 and 2 must refuse a held record that it would deliver.
    #[test]
    fn a_hold_stands_behind_everything_else_in_version_3() {
        for (until, tls) in [(0x0102, TlsWish::None), (u64::MAX, TlsWish::Required)] {
            let plain = Envelope { tls, ..sample() };
            let envelope = Envelope {
                held_until: Some(Timestamp::from_millis(until)),
                ..plain.clone()
            };
            let (mut expected, bytes) = (plain.encode(), envelope.encode());
            expected[0] = 3;
            expected.push(0);
            expected.extend_from_slice(&until.to_le_bytes());
            assert_eq!(bytes, expected);
            assert_eq!(Envelope::decode(&bytes), Ok(envelope));
            for end in 0..bytes.len() {
                assert!(Envelope::decode(&bytes[..end]).is_err(), "cut at {end}");
            }
        }
    }

    /// An older reader skips the field.
    #[test]
    fn since_when_a_hold_is_stands_behind_its_end() {
        let without = Envelope {
            held_until: Some(Timestamp::from_millis(9)),
            ..sample()
        };
        let envelope = Envelope {
            held_since: Some(Timestamp::from_millis(5)),
            ..without.clone()
        };
        let (plain, bytes) = (without.encode(), envelope.encode());
        assert_eq!(bytes, [&plain[..], &5_u64.to_le_bytes()].concat());
        assert_eq!(Envelope::decode(&bytes), Ok(envelope));
        for end in plain.len() + 1..bytes.len() {
            assert!(Envelope::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    /// An older reader skips the field: every reader stops before unknown fields.
    #[test]
    fn when_it_was_first_seen_stands_behind_everything_else() {
        let seen = Some(Timestamp::from_millis(0x0908));
        for (until, since) in [(None, None), (Some(9), None), (Some(9), Some(5))] {
            let without = Envelope {
                held_until: until.map(Timestamp::from_millis),
                held_since: since.map(Timestamp::from_millis),
                ..sample()
            };
            let envelope = Envelope {
                seen,
                ..without.clone()
            };
            let (mut expected, bytes) = (without.encode(), envelope.encode());
            match (until, since) {
                (None, _) => expected.push(0),
                (Some(_), None) => expected.extend_from_slice(&[0; 8]),
                _ => {}
            }
            assert_eq!(bytes, [&expected[..], &[8, 9, 0, 0, 0, 0, 0, 0]].concat());
            assert_eq!(Envelope::decode(&bytes), Ok(envelope));
            for end in expected.len() + 1..bytes.len() {
                assert!(Envelope::decode(&bytes[..end]).is_err(), "cut at {end}");
            }
        }
    }

    #[test]
    fn an_acceptance_in_the_future_is_one_at_first_sight() {
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
        let mut envelope = Envelope {
            accepted: at(1_000),
            ..sample()
        };
        assert!(!envelope.see(at(971)) && !envelope.see(at(1_000)));
        assert_eq!(envelope.accepted_by(at(971)), at(971));
        assert!(envelope.see(at(500)) && !envelope.see(at(600)));
        assert_eq!(envelope.accepted_by(at(600)), at(500));
        // The clock was behind even then.
        assert!(envelope.see(at(400)));
        assert_eq!(envelope.accepted_by(at(450)), at(400));
        // Once the clock has reached the acceptance, the record counts; the clock that saw the message may have been
        // wrong.
        assert_eq!(envelope.accepted_by(at(1_000)), at(1_000));
    }

    #[test]
    fn every_cut_is_an_error_and_never_a_panic() {
        let bytes = sample().encode();
        for end in 0..bytes.len() {
            assert!(Envelope::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn a_newer_version_is_named() {
        let mut bytes = sample().encode();
        bytes[0] = 9;
        assert_eq!(Envelope::decode(&bytes), Err(EnvelopeError::Version(9)));
    }

    #[test]
    fn golden_bytes_of_version_1() {
        let envelope = Envelope {
            not_before: None,
            delay_noticed: false,
            envid: None,
            last_reply: None,
            recipients: vec![Recipient {
                address: "b@c".to_owned(),
                notify: Notify::default(),
                orcpt: None,
            }],
            reverse_path: None,
            ..sample()
        };
        let expected = [
            &[
                1,
                1 | 2 | 16,
                3,
                0,
                7,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0xe8,
                3,
                0,
                0,
                0,
                0,
                0,
                0,
            ][..],
            &[0; 8],
            &[0, 4, 0, 0],
            &[0; 8],
            &[1, 0, 0, 3, 0, b'b', b'@', b'c', 0, 0],
        ]
        .concat();
        assert_eq!(envelope.encode(), expected);
    }

    #[test]
    fn notify_words_follow_rfc_3461() {
        assert!(Notify::default().failure() && Notify::default().delay());
        assert!(!Notify::default().success() && !Notify::default().given());
        assert!(!Notify::NEVER.failure() && Notify::NEVER.given());
        assert!(!Notify::on(true, false, false).failure());
    }
}
