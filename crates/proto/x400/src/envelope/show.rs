//! Envelopes as text, for `vere x400 show`.

use vere_ber::Unknown;

use std::fmt;

use super::apdu::{Apdu, Message};
use super::message::{MessageTransferEnvelope, PerRecipientIndicators};
use super::probe::ProbeTransferEnvelope;
use super::report::{PerRecipientReportTransferFields, Report, ReportType};
use crate::address::OrName;
use crate::content::ExplicitConversion;
use crate::extension::{
    ContentCorrelator, ExtensionField, ExtensionType, ExtensionValue, Extensions,
};
use crate::lines::Lines;
use crate::trace::{Attempted, InternalTraceInformation, TraceInformation};

impl fmt::Display for Apdu {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Lines::new(out);
        match self {
            Self::Message(message) => show_message(&mut lines, message),
            Self::Probe(probe) => {
                lines.heading("probe")?;
                lines.below(|lines| show_probe(lines, probe))
            }
            Self::Report(report) => show_report(&mut lines, report),
        }
    }
}

fn show_message(lines: &mut Lines<'_, '_>, message: &Message) -> fmt::Result {
    lines.heading("message")?;
    lines.below(|lines| {
        show_envelope(lines, &message.envelope)?;
        lines.line("content", format_args!("{} octets", message.content.len()))
    })
}

fn show_envelope(lines: &mut Lines<'_, '_>, envelope: &MessageTransferEnvelope) -> fmt::Result {
    lines.line("message-identifier", &envelope.message_identifier)?;
    lines.line("originator-name", &envelope.originator_name)?;
    let types = envelope.original_encoded_information_types.as_ref();
    lines.optional("original-encoded-information-types", types)?;
    lines.line("content-type", &envelope.content_type)?;
    lines.optional(
        "content-identifier",
        envelope.content_identifier.as_ref().map(|text| &text.0),
    )?;
    lines.line("priority", envelope.priority)?;
    lines.line("per-message-indicators", envelope.per_message_indicators)?;
    lines.optional("deferred-delivery-time", envelope.deferred_delivery_time)?;
    let bilateral = envelope
        .per_domain_bilateral_information
        .as_ref()
        .map(Vec::len);
    lines.optional("per-domain-bilateral-information", bilateral)?;
    show_trace(lines, "trace-information", &envelope.trace_information)?;
    show_extensions(lines, &envelope.extensions)?;
    show_unknown(lines, &envelope.unknown)?;
    for recipient in &envelope.per_recipient_fields {
        show_recipient(
            lines,
            recipient.originally_specified_recipient_number,
            &recipient.recipient_name,
            recipient.per_recipient_indicators,
            recipient.explicit_conversion,
            &recipient.extensions,
        )?;
    }
    Ok(())
}

fn show_probe(lines: &mut Lines<'_, '_>, envelope: &ProbeTransferEnvelope) -> fmt::Result {
    lines.line("probe-identifier", &envelope.probe_identifier)?;
    lines.line("originator-name", &envelope.originator_name)?;
    let types = envelope.original_encoded_information_types.as_ref();
    lines.optional("original-encoded-information-types", types)?;
    lines.line("content-type", &envelope.content_type)?;
    lines.optional(
        "content-identifier",
        envelope.content_identifier.as_ref().map(|text| &text.0),
    )?;
    lines.optional("content-length", envelope.content_length)?;
    lines.line("per-message-indicators", envelope.per_message_indicators)?;
    show_trace(lines, "trace-information", &envelope.trace_information)?;
    show_extensions(lines, &envelope.extensions)?;
    show_unknown(lines, &envelope.unknown)?;
    for recipient in &envelope.per_recipient_fields {
        show_recipient(
            lines,
            recipient.originally_specified_recipient_number,
            &recipient.recipient_name,
            recipient.per_recipient_indicators,
            recipient.explicit_conversion,
            &recipient.extensions,
        )?;
    }
    Ok(())
}

fn show_recipient(
    lines: &mut Lines<'_, '_>,
    number: u32,
    name: &OrName,
    indicators: PerRecipientIndicators,
    conversion: Option<ExplicitConversion>,
    extensions: &Extensions,
) -> fmt::Result {
    lines.line(format_args!("recipient {number}"), name)?;
    lines.below(|lines| {
        lines.line("per-recipient-indicators", indicators)?;
        lines.optional("explicit-conversion", conversion)?;
        show_extensions(lines, extensions)
    })
}

fn show_report(lines: &mut Lines<'_, '_>, report: &Report) -> fmt::Result {
    lines.heading("report")?;
    let (envelope, content) = (&report.envelope, &report.content);
    lines.below(|lines| {
        lines.line("report-identifier", &envelope.report_identifier)?;
        lines.line("report-destination-name", &envelope.report_destination_name)?;
        show_trace(lines, "trace-information", &envelope.trace_information)?;
        show_extensions(lines, &envelope.extensions)?;
        show_unknown(lines, &envelope.unknown)?;
        lines.line("subject-identifier", &content.subject_identifier)?;
        if let Some(trace) = &content.subject_intermediate_trace_information {
            show_trace(lines, "subject-intermediate-trace-information", trace)?;
        }
        let types = content.original_encoded_information_types.as_ref();
        lines.optional("original-encoded-information-types", types)?;
        lines.optional("content-type", content.content_type.as_ref())?;
        lines.optional(
            "content-identifier",
            content.content_identifier.as_ref().map(|text| &text.0),
        )?;
        let returned = content
            .returned_content
            .as_ref()
            .map(|octets| format!("{} octets", octets.len()));
        lines.optional("returned-content", returned)?;
        show_extensions(lines, &content.extensions)?;
        show_unknown(lines, &content.unknown)?;
        content
            .per_recipient_fields
            .iter()
            .try_for_each(|recipient| show_reported(lines, recipient))
    })
}

fn show_reported(
    lines: &mut Lines<'_, '_>,
    recipient: &PerRecipientReportTransferFields,
) -> fmt::Result {
    let number = recipient.originally_specified_recipient_number;
    lines.line(
        format_args!("recipient {number}"),
        &recipient.actual_recipient_name,
    )?;
    lines.below(|lines| {
        lines.line(
            "per-recipient-indicators",
            recipient.per_recipient_indicators,
        )?;
        let last = &recipient.last_trace_information;
        lines.line("arrival-time", last.arrival_time)?;
        let converted = last.converted_encoded_information_types.as_ref();
        lines.optional("converted-encoded-information-types", converted)?;
        match &last.report_type {
            ReportType::Delivery(delivery) => {
                lines.line("delivered", delivery.message_delivery_time)?;
                lines.line("type-of-MTS-user", delivery.type_of_mts_user)?;
            }
            ReportType::NonDelivery(report) => {
                lines.line("not delivered", report.non_delivery_reason_code)?;
                lines.optional("diagnostic", report.non_delivery_diagnostic_code)?;
            }
        }
        let intended = recipient.originally_intended_recipient_name.as_ref();
        lines.optional("originally-intended-recipient-name", intended)?;
        lines.optional(
            "supplementary-information",
            recipient.supplementary_information.as_ref(),
        )?;
        show_extensions(lines, &recipient.extensions)
    })
}

fn show_trace(lines: &mut Lines<'_, '_>, name: &str, trace: &TraceInformation) -> fmt::Result {
    lines.heading(format_args!("{name}:"))?;
    lines.below(|lines| {
        trace.0.iter().try_for_each(|element| {
            let information = &element.domain_supplied_information;
            let attempted = information.attempted_domain.as_ref();
            let attempted = attempted.map_or_else(String::new, |domain| format!(" after {domain}"));
            let (arrival, action) = (information.arrival_time, information.routing_action);
            lines.line(
                &element.global_domain_identifier,
                format_args!("{arrival} {action}{attempted}"),
            )?;
            lines.below(|lines| {
                lines.optional("deferred-time", information.deferred_time)?;
                let actions = Some(information.other_actions).filter(|actions| !actions.is_empty());
                lines.optional("other-actions", actions)
            })
        })
    })
}

fn show_internal_trace(lines: &mut Lines<'_, '_>, trace: &InternalTraceInformation) -> fmt::Result {
    trace.0.iter().try_for_each(|element| {
        let information = &element.mta_supplied_information;
        let attempted = match &information.attempted {
            Some(Attempted::Mta(mta)) => format!(" after {mta}"),
            Some(Attempted::Domain(domain)) => format!(" after {domain}"),
            None => String::new(),
        };
        let name =
            format_args!("{} {}", element.mta_name, element.global_domain_identifier).to_string();
        let (arrival, action) = (information.arrival_time, information.routing_action);
        lines.line(name, format_args!("{arrival} {action}{attempted}"))
    })
}

fn show_extensions(lines: &mut Lines<'_, '_>, extensions: &Extensions) -> fmt::Result {
    extensions
        .0
        .iter()
        .try_for_each(|field| show_extension(lines, field))
}

fn show_extension(lines: &mut Lines<'_, '_>, field: &ExtensionField) -> fmt::Result {
    let critical = if field.criticality.is_empty() {
        String::new()
    } else {
        format!(" (critical {})", field.criticality)
    };
    let name = format!("extension {}{critical}", field.kind);
    match field.decode() {
        Ok(Some(ExtensionValue::InternalTraceInformation(trace))) => {
            lines.heading(format_args!("{name}:"))?;
            lines.below(|lines| show_internal_trace(lines, &trace))
        }
        _ => lines.line(name, field.brief()),
    }
}

impl fmt::Display for ExtensionType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard(kind) => kind.fmt(out),
            Self::Private(identifier) => identifier.fmt(out),
        }
    }
}

impl ExtensionField {
    /// The value in one line, for people.
    #[must_use]
    pub fn brief(&self) -> String {
        match self.decode() {
            Ok(Some(value)) => brief(&value),
            Ok(None) => {
                let octets = self.value.as_ref().map_or(0, |value| value.0.len());
                format!("{octets} octets")
            }
            Err(error) => format!("({error})"),
        }
    }
}

/// The value of an extension in one line.
fn brief(value: &ExtensionValue) -> String {
    match value {
        ExtensionValue::RecipientReassignmentProhibited(switch)
        | ExtensionValue::DlExpansionProhibited(switch)
        | ExtensionValue::ConversionWithLossProhibited(switch)
        | ExtensionValue::PhysicalForwardingProhibited(switch)
        | ExtensionValue::PhysicalForwardingAddressRequest(switch)
        | ExtensionValue::ProofOfSubmissionRequest(switch)
        | ExtensionValue::ProofOfDeliveryRequest(switch) => switch.to_string(),
        ExtensionValue::OriginatorRequestedAlternateRecipient(name)
        | ExtensionValue::PhysicalForwardingAddress(name)
        | ExtensionValue::ReportingDlName(name) => name.to_string(),
        ExtensionValue::LatestDeliveryTime(time) => time.to_string(),
        ExtensionValue::RequestedDeliveryMethod(methods) => joined(methods.iter()),
        ExtensionValue::OriginatorReturnAddress(address) => address.to_string(),
        ExtensionValue::ContentCorrelator(ContentCorrelator::Ia5Text(text)) => text.to_string(),
        ExtensionValue::MessageSecurityLabel(label) => joined(
            label
                .security_classification
                .iter()
                .map(ToString::to_string)
                .chain(label.privacy_mark.iter().map(ToString::to_string)),
        ),
        ExtensionValue::RedirectionHistory(history) => joined(history.iter().map(|step| {
            let intended = &step.intended_recipient_name;
            format!(
                "{} {} {}",
                intended.intended_recipient, intended.redirection_time, step.redirection_reason
            )
        })),
        ExtensionValue::DlExpansionHistory(history) => joined(
            history
                .iter()
                .map(|step| format!("{} {}", step.dl, step.dl_expansion_time)),
        ),
        ExtensionValue::OriginatorAndDlExpansionHistory(history) => {
            joined(history.iter().map(|step| {
                format!(
                    "{} {}",
                    step.originator_or_dl_name, step.origination_or_expansion_time
                )
            }))
        }
        ExtensionValue::ReportingMtaName(name) => format!("{} {}", name.mta_name, name.domain),
        ExtensionValue::Other(_, value) => format!("{} octets", value.0.len()),
        other => format!("{other:?}"),
    }
}

fn joined(items: impl Iterator<Item = impl fmt::Display>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    items.join(", ")
}

fn show_unknown(lines: &mut Lines<'_, '_>, unknown: &Unknown) -> fmt::Result {
    unknown.0.iter().try_for_each(|element| {
        lines.line("unknown element", format_args!("{} octets", element.len()))
    })
}
