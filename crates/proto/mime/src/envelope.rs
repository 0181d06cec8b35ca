//! Envelopes (RFC 9051 section 7.5.2) and the references that make threads.

use crate::address::{Address, addresses, list_of};
use crate::header::{Field, fields, unfold};
use crate::sent::sent;
use crate::{REFERENCES_MAX, VALUE_OCTETS_MAX};

/// The fields of an envelope as written: unfolded, not decoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Envelope {
    /// `Date`
    pub date: Option<Vec<u8>>,
    /// `Subject`
    pub subject: Option<Vec<u8>>,
    /// `From`
    pub from: Vec<Address>,
    /// `Sender`; the value of `From` if `Sender` is missing or empty.
    pub sender: Vec<Address>,
    /// `Reply-To`; the value of `From` if `Reply-To` is missing or empty.
    pub reply_to: Vec<Address>,
    /// `To`
    pub to: Vec<Address>,
    /// `Cc`
    pub cc: Vec<Address>,
    /// `Bcc`
    pub bcc: Vec<Address>,
    /// `In-Reply-To`
    pub in_reply_to: Option<Vec<u8>>,
    /// `Message-ID`
    pub message_id: Option<Vec<u8>>,
    /// The time in `Date`.
    pub sent: Option<SentDate>,
}

/// The value of a `Date` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentDate {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Days since 1970-01-01 of the date as it is written: SENTBEFORE, SENTON and SENTSINCE disregard
    /// time and zone (RFC 9051 section 6.4.4).
    pub day: i64,
}

impl Envelope {
    /// Reads the envelope of a header. For fields allowed once, the first field counts; repeated list
    /// fields are joined.
    #[must_use]
    pub fn read(header: &[u8]) -> Self {
        let mut envelope = Self::default();
        for field in fields(header) {
            envelope.take(&field);
        }
        if envelope.sender.is_empty() {
            envelope.sender.clone_from(&envelope.from);
        }
        if envelope.reply_to.is_empty() {
            envelope.reply_to.clone_from(&envelope.from);
        }
        envelope
    }

    fn take(&mut self, field: &Field<'_>) {
        let mut name = [0; 12];
        let Some(lower) = name.get_mut(..field.name.len()) else {
            return;
        };
        lower.copy_from_slice(field.name);
        lower.make_ascii_lowercase();
        match &*lower {
            b"date" if self.date.is_none() => {
                self.date = Some(value(field));
                self.sent = self.date.as_deref().and_then(sent);
            }
            b"subject" if self.subject.is_none() => self.subject = Some(value(field)),
            b"in-reply-to" if self.in_reply_to.is_none() => self.in_reply_to = Some(value(field)),
            b"message-id" if self.message_id.is_none() => self.message_id = Some(value(field)),
            b"from" => list(&mut self.from, field),
            b"sender" => list(&mut self.sender, field),
            b"reply-to" => list(&mut self.reply_to, field),
            b"to" => list(&mut self.to, field),
            b"cc" => list(&mut self.cc, field),
            b"bcc" => list(&mut self.bcc, field),
            _ => {}
        }
    }
}

/// A value, unfolded and cut at the length limit.
fn value(field: &Field<'_>) -> Vec<u8> {
    let kept = field.value.get(..VALUE_OCTETS_MAX).unwrap_or(field.value);
    unfold(kept)
}

fn list(list: &mut Vec<Address>, field: &Field<'_>) {
    let kept = crate::ADDRESSES_MAX.saturating_sub(list.len());
    let line = list_of(field.value);
    list.extend(addresses(&line).into_iter().take(kept));
}

/// Hashes of the message id (0 without one) and of the ids referred to, newest first.
pub(crate) fn references(envelope: Option<&Envelope>, header: &[u8]) -> Vec<u64> {
    let own = envelope.and_then(|envelope| envelope.message_id.as_deref());
    let mut found = vec![own.and_then(|id| ids(id).next()).unwrap_or_default()];
    let replied = envelope.and_then(|envelope| envelope.in_reply_to.clone());
    let references = fields(header).find(|field| field.is("References"));
    let references = references.map(|field| value(&field));
    for list in [references, replied].into_iter().flatten() {
        let mut all: Vec<_> = ids(&list).collect();
        all.reverse();
        for id in all {
            if found.len() <= REFERENCES_MAX && !found.contains(&id) {
                found.push(id);
            }
        }
    }
    found
}

/// Hashes of the ids between angle brackets.
fn ids(list: &[u8]) -> impl Iterator<Item = u64> + '_ {
    list.split(|octet| *octet == b'<')
        .skip(1)
        .filter_map(|rest| {
            let end = memchr::memchr(b'>', rest)?;
            rest.get(..end).filter(|id| !id.is_empty()).map(hash)
        })
}

/// FNV-1a, 64 bits: never 0 in practice, and made so.
fn hash(id: &[u8]) -> u64 {
    let step = |hash: u64, octet: &u8| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
    id.iter().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}
