//! Protocol data units and contents as JSON. Names are those of the text form, with underscores.

use serde_json::{Value, json};
use vere_x400::ipm::{
    BodyPart, Heading, InformationObject, Ipm, Ipn, IpnOutcome, OrDescriptor, RecipientSpecifier,
};
use vere_x400::{
    Apdu, ExtensionField, ExtensionValue, Extensions, InternalTraceInformation, Message,
    PerRecipientIndicators, PerRecipientReportTransferFields, ProbeTransferEnvelope, Report,
    ReportType, StandardExtension, TraceInformation,
};

use super::found::{Found, interpersonal};

/// Depth of printed forwarded messages.
const DEPTH_MAX: usize = 8;

pub(super) fn found(found: &Found) -> Value {
    match found {
        Found::Unit(apdu) => {
            let mut value = match &**apdu {
                Apdu::Message(message) => of_message(message),
                Apdu::Probe(probe) => of_probe(probe),
                Apdu::Report(report) => of_report(report),
            };
            if let (Some(Ok(content)), Some(fields)) = (interpersonal(apdu), value.as_object_mut())
            {
                fields.insert("ipm".to_owned(), object(&content));
            }
            value
        }
        Found::Content(content) => object(content),
    }
}

fn text(value: &impl ToString) -> Value {
    Value::String(value.to_string())
}

fn maybe(value: Option<&impl ToString>) -> Value {
    value.map_or(Value::Null, text)
}

/// The names of bits.
fn bits(bits: &impl ToString) -> Value {
    let bits = bits.to_string();
    let names = bits.split(", ").filter(|name| !name.is_empty());
    names.map(Value::from).collect()
}

fn of_message(message: &Message) -> Value {
    let envelope = &message.envelope;
    let recipients = envelope.per_recipient_fields.iter().map(|fields| {
        recipient(
            fields.originally_specified_recipient_number,
            &fields.recipient_name,
            fields.per_recipient_indicators,
            &fields.extensions,
        )
    });
    json!({
        "kind": "message",
        "identifier": text(&envelope.message_identifier),
        "originator": text(&envelope.originator_name),
        "encoded_information_types": maybe(envelope.original_encoded_information_types.as_ref()),
        "content_type": envelope.content_type.short(),
        "content_identifier": maybe(envelope.content_identifier.as_ref().map(|text| &text.0)),
        "priority": text(&envelope.priority),
        "indicators": bits(&envelope.per_message_indicators),
        "deferred_until": maybe(envelope.deferred_delivery_time.as_ref()),
        "trace": trace(&envelope.trace_information),
        "internal_trace": internal_trace(&envelope.extensions),
        "extensions": extensions(&envelope.extensions),
        "unknown_elements": envelope.unknown.0.len(),
        "recipients": recipients.collect::<Vec<_>>(),
        "content_octets": message.content.len(),
    })
}

fn of_probe(envelope: &ProbeTransferEnvelope) -> Value {
    let recipients = envelope.per_recipient_fields.iter().map(|fields| {
        recipient(
            fields.originally_specified_recipient_number,
            &fields.recipient_name,
            fields.per_recipient_indicators,
            &fields.extensions,
        )
    });
    json!({
        "kind": "probe",
        "identifier": text(&envelope.probe_identifier),
        "originator": text(&envelope.originator_name),
        "encoded_information_types": maybe(envelope.original_encoded_information_types.as_ref()),
        "content_type": envelope.content_type.short(),
        "content_identifier": maybe(envelope.content_identifier.as_ref().map(|text| &text.0)),
        "indicators": bits(&envelope.per_message_indicators),
        "trace": trace(&envelope.trace_information),
        "internal_trace": internal_trace(&envelope.extensions),
        "extensions": extensions(&envelope.extensions),
        "unknown_elements": envelope.unknown.0.len(),
        "recipients": recipients.collect::<Vec<_>>(),
        "content_octets": envelope.content_length,
    })
}

fn of_report(report: &Report) -> Value {
    let (envelope, content) = (&report.envelope, &report.content);
    let subject_trace = content.subject_intermediate_trace_information.as_ref();
    let recipients = content.per_recipient_fields.iter().map(reported);
    json!({
        "kind": "report",
        "identifier": text(&envelope.report_identifier),
        "destination": text(&envelope.report_destination_name),
        "trace": trace(&envelope.trace_information),
        "internal_trace": internal_trace(&envelope.extensions),
        "extensions": extensions(&envelope.extensions),
        "unknown_elements": envelope.unknown.0.len(),
        "about": text(&content.subject_identifier),
        "subject_trace": subject_trace.map(trace),
        "encoded_information_types": maybe(content.original_encoded_information_types.as_ref()),
        "content_type": content.content_type.as_ref().map(|kind| kind.short()),
        "content_identifier": maybe(content.content_identifier.as_ref().map(|text| &text.0)),
        "content_extensions": extensions(&content.extensions),
        "recipients": recipients.collect::<Vec<_>>(),
        "content_octets": content.returned_content.as_ref().map(bytes::Bytes::len),
    })
}

fn recipient(
    number: u32,
    name: &impl ToString,
    indicators: PerRecipientIndicators,
    fields: &Extensions,
) -> Value {
    json!({
        "number": number,
        "address": text(name),
        "indicators": bits(&indicators),
        "extensions": extensions(fields),
    })
}

fn reported(fields: &PerRecipientReportTransferFields) -> Value {
    let last = &fields.last_trace_information;
    let mut value = recipient(
        fields.originally_specified_recipient_number,
        &fields.actual_recipient_name,
        fields.per_recipient_indicators,
        &fields.extensions,
    );
    let result = match &last.report_type {
        ReportType::Delivery(delivery) => json!({
            "delivered": text(&delivery.message_delivery_time),
            "type_of_mts_user": text(&delivery.type_of_mts_user),
        }),
        ReportType::NonDelivery(report) => json!({
            "reason": text(&report.non_delivery_reason_code),
            "diagnostic": maybe(report.non_delivery_diagnostic_code.as_ref()),
        }),
    };
    let own = json!({
        "arrival": text(&last.arrival_time),
        "intended": maybe(fields.originally_intended_recipient_name.as_ref()),
        "supplementary": maybe(fields.supplementary_information.as_ref()),
    });
    if let Some(map) = value.as_object_mut() {
        let more = [result, own].into_iter();
        map.extend(more.filter_map(|one| one.as_object().cloned()).flatten());
    }
    value
}

fn trace(trace: &TraceInformation) -> Value {
    let elements = trace.0.iter().map(|element| {
        let information = &element.domain_supplied_information;
        json!({
            "domain": text(&element.global_domain_identifier),
            "arrival": text(&information.arrival_time),
            "action": text(&information.routing_action),
            "attempted": maybe(information.attempted_domain.as_ref()),
            "deferred": maybe(information.deferred_time.as_ref()),
            "other_actions": bits(&information.other_actions),
        })
    });
    elements.collect()
}

fn internal_trace(extensions: &Extensions) -> Value {
    let value = extensions.value(StandardExtension::InternalTraceInformation);
    let Ok(Some(ExtensionValue::InternalTraceInformation(InternalTraceInformation(elements)))) =
        value
    else {
        return Value::Null;
    };
    let elements = elements.iter().map(|element| {
        let information = &element.mta_supplied_information;
        json!({
            "mta": text(&element.mta_name),
            "domain": text(&element.global_domain_identifier),
            "arrival": text(&information.arrival_time),
            "action": text(&information.routing_action),
        })
    });
    elements.collect()
}

/// The extensions but the internal trace.
fn extensions(extensions: &Extensions) -> Value {
    let is_trace = |field: &&ExtensionField| {
        field.standard_kind() == Some(StandardExtension::InternalTraceInformation)
    };
    let fields = extensions.0.iter().filter(|field| !is_trace(field));
    let fields = fields.map(|field| {
        json!({
            "extension": text(&field.kind),
            "critical": bits(&field.criticality),
            "value": field.brief(),
        })
    });
    fields.collect()
}

fn object(content: &InformationObject) -> Value {
    match content {
        InformationObject::Ipm(ipm) => of_ipm(ipm, 0),
        InformationObject::Ipn(ipn) => of_ipn(ipn),
    }
}

fn of_ipm(ipm: &Ipm, depth: usize) -> Value {
    json!({
        "kind": "ipm",
        "heading": heading(&ipm.heading),
        "body": ipm.body.iter().map(|one| part(one, depth)).collect::<Vec<_>>(),
    })
}

fn heading(heading: &Heading) -> Value {
    let blind = heading.blind_copy_recipients.as_deref().unwrap_or_default();
    json!({
        "identifier": text(&heading.this_ipm),
        "originator": maybe(heading.originator.as_ref()),
        "authorizing_users": users(heading.authorizing_users.as_deref()),
        "primary_recipients": specifiers(&heading.primary_recipients),
        "copy_recipients": specifiers(&heading.copy_recipients),
        "blind_copy_recipients": specifiers(blind),
        "replied_to": maybe(heading.replied_to_ipm.as_ref()),
        "obsoleted": heading.obsoleted_ipms.iter().map(text).collect::<Value>(),
        "related": heading.related_ipms.iter().map(text).collect::<Value>(),
        "subject": maybe(heading.subject.as_ref().map(|subject| &subject.0)),
        "expiry": maybe(heading.expiry_time.as_ref()),
        "reply_time": maybe(heading.reply_time.as_ref()),
        "reply_recipients": users(heading.reply_recipients.as_deref()),
        "importance": maybe(heading.importance.as_ref()),
        "sensitivity": maybe(heading.sensitivity.as_ref()),
        "auto_forwarded": heading.auto_forwarded,
        "extensions": heading.extensions.iter().map(|one| text(&one.kind)).collect::<Value>(),
    })
}

fn users(users: Option<&[OrDescriptor]>) -> Value {
    users.unwrap_or_default().iter().map(text).collect()
}

fn specifiers(recipients: &[RecipientSpecifier]) -> Value {
    let recipients = recipients.iter().map(|one| {
        json!({
            "recipient": text(&one.recipient),
            "notification_requests": bits(&one.notification_requests),
            "reply_requested": one.reply_requested,
        })
    });
    recipients.collect()
}

fn part(part: &BodyPart, depth: usize) -> Value {
    let forwarded = match part.forwarded() {
        Ok(Some(ipm)) if depth < DEPTH_MAX => of_ipm(&ipm, depth.saturating_add(1)),
        _ => Value::Null,
    };
    json!({
        "type": part.kind(),
        "octets": part.octets(),
        "text": part.to_text(),
        "forwarded": forwarded,
    })
}

fn of_ipn(ipn: &Ipn) -> Value {
    let outcome = match &ipn.outcome {
        IpnOutcome::Receipt(fields) => json!({
            "receipt_time": text(&fields.receipt_time),
            "acknowledgment_mode": text(&fields.acknowledgment_mode),
            "supplementary": maybe(fields.suppl_receipt_info.as_ref()),
        }),
        IpnOutcome::NonReceipt(fields) => json!({
            "non_receipt_reason": text(&fields.non_receipt_reason),
            "discard_reason": maybe(fields.discard_reason.as_ref()),
            "auto_forward_comment": maybe(fields.auto_forward_comment.as_ref()),
        }),
        IpnOutcome::Other(extensions) => json!({
            "notification": extensions.iter().map(|one| text(&one.kind)).collect::<Value>(),
        }),
    };
    json!({
        "kind": "ipn",
        "subject_ipm": text(&ipn.subject_ipm),
        "originator": maybe(ipn.ipn_originator.as_ref()),
        "intended_recipient": maybe(ipn.ipm_intended_recipient.as_ref()),
        "outcome": outcome,
    })
}
