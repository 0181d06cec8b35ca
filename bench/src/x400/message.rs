//! Messages of the sources: each with an identifier of its own, and all else alike. An envelope is encoded once; of a
//! message only the digits of the identifier are written.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use vere_ber::Ia5String;
use vere_x400::{
    Apdu, Content, ContentType, GlobalDomainIdentifier, Message, MessageTransferEnvelope,
    MtsIdentifier, OrAddress, PerRecipientIndicators, PerRecipientMessageTransferFields, Time,
    TraceInformation, TraceInformationElement,
};

use super::names;
use crate::error::BenchError;

/// Digits of a message's number in its identifier.
const DIGITS: usize = 12;

/// All messages of a source to a sink.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    head: Vec<u8>,
    /// The place of the digits in the head.
    digits: usize,
    content: Bytes,
}

impl Template {
    /// Messages from a user of a source to a user of a sink, with a content of so many octets.
    pub(crate) fn new(
        source: &str,
        sink: &str,
        content: Bytes,
        now: Time,
    ) -> Result<Self, BenchError> {
        let local = format!("{source}-{}", "0".repeat(DIGITS));
        let envelope = envelope(source, sink, &local, now);
        let envelope = envelope.map_err(|error| BenchError::of("compose a message")(error))?;
        let message = Message {
            envelope,
            content: Content::new(content.clone()),
        };
        let pieces = Apdu::Message(message).to_pieces();
        let head = pieces.first().map(|piece| piece.to_vec());
        let head = head.unwrap_or_default();
        let place = memchr::memmem::find(&head, local.as_bytes());
        let digits = place.map(|place| place + source.len() + 1);
        Ok(Self {
            digits: digits.ok_or_else(|| BenchError::protocol("a message without identifier"))?,
            head,
            content,
        })
    }

    /// The message of a number, in pieces.
    pub(crate) fn message(&self, number: u64) -> Vec<Bytes> {
        let mut head = self.head.clone();
        let digits = format!("{number:0DIGITS$}");
        if let Some(place) = head.get_mut(self.digits..self.digits + DIGITS) {
            place.copy_from_slice(&digits.as_bytes()[digits.len() - DIGITS..]);
        }
        vec![head.into(), self.content.clone()]
    }
}

/// A content of so many octets, which no compression makes small.
pub(crate) fn content(octets: usize) -> Bytes {
    let mut random = crate::random::Random::new(400);
    let words = std::iter::repeat_with(|| random.next().to_le_bytes());
    words.flatten().take(octets).collect::<Vec<u8>>().into()
}

/// The time of messages composed now.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Time::from_unix(since.unwrap_or_default().as_secs())
}

type Fault = Box<dyn std::error::Error + Send + Sync>;

fn envelope(
    source: &str,
    sink: &str,
    local: &str,
    now: Time,
) -> Result<MessageTransferEnvelope, Fault> {
    let own = names::private(source);
    let domain = GlobalDomainIdentifier::new("GB", "Carrier", Some(&own))?;
    let originator: OrAddress = names::user(&own).parse()?;
    let recipient: OrAddress = names::user(&names::private(sink)).parse()?;
    Ok(MessageTransferEnvelope {
        message_identifier: MtsIdentifier::new(domain.clone(), Ia5String::new(local)?),
        originator_name: originator.into(),
        content_type: ContentType::P22,
        trace_information: TraceInformation(vec![TraceInformationElement::relayed(domain, now)]),
        per_recipient_fields: vec![PerRecipientMessageTransferFields {
            recipient_name: recipient.into(),
            originally_specified_recipient_number: 1,
            per_recipient_indicators: PerRecipientIndicators::RESPONSIBILITY,
            ..Default::default()
        }],
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_differ_in_their_identifier() {
        let octets = content(1_000);
        let time = Time::from_unix(1_777_777_777);
        let template = Template::new("source3", "sink1", octets.clone(), time).unwrap();
        for (number, local) in [
            (7, "source3-000000000007"),
            (u64::MAX, "source3-744073709551615"),
        ] {
            let pieces = template.message(number).concat();
            let Ok(Apdu::Message(read)) = Apdu::split(&pieces.into()) else {
                panic!("no message");
            };
            let identifier = read.envelope.message_identifier.to_string();
            let end = &local[local.len() - DIGITS..];
            assert!(identifier.contains(end), "{identifier}");
            assert_eq!(read.content.to_bytes(), octets);
        }
    }
}
