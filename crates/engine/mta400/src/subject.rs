//! The common form of messages and probes. A probe has the fields of a message except grade and deferral, and a
//! length in place of the content, so that both kinds follow one set of rules.

use bytes::Bytes;
use vere_x400::{
    Apdu, Content, EncodedInformationTypes, Message, MessageTransferEnvelope,
    PerRecipientIndicators, PerRecipientMessageTransferFields, PerRecipientProbeTransferFields,
    Priority, ProbeTransferEnvelope, Report,
};

use crate::peers::Crossing;

/// A message or a probe.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) envelope: MessageTransferEnvelope,
    pub(crate) body: Body,
}

/// The part behind the envelope.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// Of a message.
    Content(Content),
    /// Of a probe: the number of octets in question.
    Length(Option<u32>),
}

impl Subject {
    /// The message or the probe, or the report.
    pub(crate) fn of(apdu: Apdu) -> Result<Self, Box<Report>> {
        match apdu {
            Apdu::Message(message) => Ok(Self {
                envelope: message.envelope,
                body: Body::Content(message.content),
            }),
            Apdu::Probe(probe) => Ok(Self::of_probe(probe)),
            Apdu::Report(report) => Err(report),
        }
    }

    fn of_probe(probe: ProbeTransferEnvelope) -> Self {
        Self {
            body: Body::Length(probe.content_length),
            envelope: MessageTransferEnvelope {
                message_identifier: probe.probe_identifier,
                originator_name: probe.originator_name,
                original_encoded_information_types: probe.original_encoded_information_types,
                content_type: probe.content_type,
                content_identifier: probe.content_identifier,
                priority: Priority::Normal,
                per_message_indicators: probe.per_message_indicators,
                deferred_delivery_time: None,
                per_domain_bilateral_information: probe.per_domain_bilateral_information,
                trace_information: probe.trace_information,
                extensions: probe.extensions,
                per_recipient_fields: probe
                    .per_recipient_fields
                    .into_iter()
                    .map(|fields| PerRecipientMessageTransferFields {
                        recipient_name: fields.recipient_name,
                        originally_specified_recipient_number: fields
                            .originally_specified_recipient_number,
                        per_recipient_indicators: fields.per_recipient_indicators,
                        explicit_conversion: fields.explicit_conversion,
                        extensions: fields.extensions,
                        unknown: fields.unknown,
                    })
                    .collect(),
                unknown: probe.unknown,
            },
        }
    }

    pub(crate) fn into_apdu(self) -> Apdu {
        match self.body {
            Body::Content(content) => Apdu::Message(Message {
                envelope: self.envelope,
                content,
            }),
            Body::Length(length) => Apdu::Probe(into_probe(self.envelope, length)),
        }
    }

    pub(crate) const fn is_probe(&self) -> bool {
        matches!(self.body, Body::Length(_))
    }

    pub(crate) fn content_octets(&self) -> u64 {
        match &self.body {
            Body::Content(content) => u64::try_from(content.len()).unwrap_or(u64::MAX),
            Body::Length(length) => u64::from(length.unwrap_or(0)),
        }
    }

    pub(crate) fn content(&self) -> Option<Bytes> {
        match &self.body {
            Body::Content(content) => Some(content.to_bytes()),
            Body::Length(_) => None,
        }
    }

    /// The view of the border.
    pub(crate) fn crossing(&self) -> Crossing<'_> {
        Crossing {
            originator: &self.envelope.originator_name.address,
            content_type: &self.envelope.content_type,
            priority: self.envelope.priority,
            content_octets: self.content_octets(),
        }
    }

    /// The encoded information types after the last conversion.
    pub(crate) fn types(&self) -> Option<&EncodedInformationTypes> {
        let trace = self.envelope.trace_information.0.iter().rev();
        let converted = trace
            .filter_map(|element| {
                let information = &element.domain_supplied_information;
                information.converted_encoded_information_types.as_ref()
            })
            .next();
        converted.or(self.envelope.original_encoded_information_types.as_ref())
    }
}

/// Whether the responsibility bit of a recipient is set.
pub(crate) const fn is_responsible(fields: &PerRecipientMessageTransferFields) -> bool {
    fields
        .per_recipient_indicators
        .contains(PerRecipientIndicators::RESPONSIBILITY)
}

/// Sets or clears the responsibility bit of a recipient.
pub(crate) const fn set_responsible(fields: &mut PerRecipientMessageTransferFields, is: bool) {
    let bits = fields.per_recipient_indicators;
    fields.per_recipient_indicators = if is {
        bits.with(PerRecipientIndicators::RESPONSIBILITY)
    } else {
        bits.without(PerRecipientIndicators::RESPONSIBILITY)
    };
}

pub(crate) fn into_probe(
    envelope: MessageTransferEnvelope,
    content_length: Option<u32>,
) -> ProbeTransferEnvelope {
    ProbeTransferEnvelope {
        probe_identifier: envelope.message_identifier,
        originator_name: envelope.originator_name,
        original_encoded_information_types: envelope.original_encoded_information_types,
        content_type: envelope.content_type,
        content_identifier: envelope.content_identifier,
        content_length,
        per_message_indicators: envelope.per_message_indicators,
        per_domain_bilateral_information: envelope.per_domain_bilateral_information,
        trace_information: envelope.trace_information,
        extensions: envelope.extensions,
        per_recipient_fields: envelope
            .per_recipient_fields
            .into_iter()
            .map(|fields| PerRecipientProbeTransferFields {
                recipient_name: fields.recipient_name,
                originally_specified_recipient_number: fields.originally_specified_recipient_number,
                per_recipient_indicators: fields.per_recipient_indicators,
                explicit_conversion: fields.explicit_conversion,
                extensions: fields.extensions,
                unknown: fields.unknown,
            })
            .collect(),
        unknown: envelope.unknown,
    }
}
