//! Fields of reports from the subject.

use vere_ber::PrintableString;
use vere_x400::{
    DeliveryReport, ExtensionField, ExtensionValue, Extensions, LastTraceInformation,
    MessageTransferEnvelope, OrName, OriginatorAndDlExpansion, PerRecipientMessageTransferFields,
    PerRecipientReportTransferFields, ReportType, ReportingMtaName, StandardExtension, Time,
};

use super::fate::Fate;
use super::text::printable;
use crate::history::{expansions, redirections};
use crate::site::Site;
use crate::subject::Subject;

/// Characters of supplementary information, at most (`ub-supplementary-info-length`).
const SUPPLEMENTARY_MAX: usize = 256;

pub(super) fn recipient(
    subject: &Subject,
    fields: &PerRecipientMessageTransferFields,
    fate: &Fate,
    arrival_time: Time,
) -> PerRecipientReportTransferFields {
    PerRecipientReportTransferFields {
        actual_recipient_name: fields.recipient_name.clone(),
        originally_specified_recipient_number: fields.originally_specified_recipient_number,
        per_recipient_indicators: fields.per_recipient_indicators,
        last_trace_information: LastTraceInformation {
            arrival_time,
            converted_encoded_information_types: converted(subject),
            report_type: report_type(fate),
            ..LastTraceInformation::default()
        },
        originally_intended_recipient_name: intended(fields),
        supplementary_information: supplementary(fate),
        extensions: kept(&fields.extensions, &[StandardExtension::RedirectionHistory]),
        ..PerRecipientReportTransferFields::default()
    }
}

fn report_type(fate: &Fate) -> ReportType {
    match fate {
        Fate::Delivered { at, user } => ReportType::Delivery(DeliveryReport {
            message_delivery_time: *at,
            type_of_mts_user: *user,
            ..DeliveryReport::default()
        }),
        Fate::Failed { cause, .. } => cause.report_type(),
    }
}

fn supplementary(fate: &Fate) -> Option<PrintableString> {
    match fate {
        Fate::Failed { said, .. } if !said.is_empty() => {
            PrintableString::new(&printable(said, SUPPLEMENTARY_MAX)).ok()
        }
        _ => None,
    }
}

fn converted(subject: &Subject) -> Option<vere_x400::EncodedInformationTypes> {
    let types = subject.types();
    let original = subject.envelope.original_encoded_information_types.as_ref();
    types.filter(|types| Some(*types) != original).cloned()
}

/// The recipient before all redirections.
fn intended(fields: &PerRecipientMessageTransferFields) -> Option<OrName> {
    let history = redirections(&fields.extensions).ok()?;
    let first = history.into_iter().next()?;
    Some(first.intended_recipient_name.intended_recipient)
}

pub(super) fn envelope_extensions(site: &Site, envelope: &MessageTransferEnvelope) -> Extensions {
    let label = [StandardExtension::MessageSecurityLabel];
    let mut extensions = kept(&envelope.extensions, &label);
    let lists = lists(envelope);
    if !lists.is_empty() {
        let originated = envelope.trace_information.0.first();
        let mut history = vec![OriginatorAndDlExpansion {
            originator_or_dl_name: envelope.originator_name.clone(),
            origination_or_expansion_time: originated
                .map(|first| first.domain_supplied_information.arrival_time)
                .unwrap_or_default(),
            ..OriginatorAndDlExpansion::default()
        }];
        history.extend(lists);
        extensions.set(&ExtensionValue::OriginatorAndDlExpansionHistory(history));
    }
    extensions.set(&ExtensionValue::ReportingMtaName(ReportingMtaName {
        domain: site.domain.clone(),
        mta_name: site.mta_name.clone(),
        ..ReportingMtaName::default()
    }));
    extensions
}

/// The expansions of lists in the form for reports.
fn lists(envelope: &MessageTransferEnvelope) -> Vec<OriginatorAndDlExpansion> {
    expansions(&envelope.extensions)
        .into_iter()
        .map(|list| OriginatorAndDlExpansion {
            originator_or_dl_name: list.dl,
            origination_or_expansion_time: list.dl_expansion_time,
            ..OriginatorAndDlExpansion::default()
        })
        .collect()
}

pub(super) fn content_extensions(envelope: &MessageTransferEnvelope) -> Extensions {
    kept(
        &envelope.extensions,
        &[StandardExtension::ContentCorrelator],
    )
}

/// The extensions of some kinds, as received.
fn kept(extensions: &Extensions, kinds: &[StandardExtension]) -> Extensions {
    let fields: Vec<ExtensionField> = extensions
        .0
        .iter()
        .filter(|field| {
            field
                .standard_kind()
                .is_some_and(|kind| kinds.contains(&kind))
        })
        .cloned()
        .collect();
    Extensions(fields)
}
