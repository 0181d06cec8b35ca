//! Envelopes for systems of 1984 (X.419 annex B): the types of 1988 with fewer fields.
//!
//! Left out: extensions, directory names, extended encoded information types, other actions in traces, later
//! indicators. A common name becomes a domain-defined attribute of type `common`. Some fields cannot be left
//! out and stop the transfer with reason `unable-to-transfer` and diagnostic `unable-to-downgrade`: an
//! extension critical for transfer or delivery, a content type of 1988 or later, an address with indispensable
//! extension attributes.

use vere_ber::{PrintableString, decode};

use std::fmt;

use super::codes::{NonDeliveryDiagnosticCode, NonDeliveryReasonCode, TypeOfMtsUser};
use super::message::MessageTransferEnvelope;
use super::probe::ProbeTransferEnvelope;
use super::report::{Report, ReportType};
use crate::address::{BuiltInDomainDefinedAttribute, ExtensionAttributeType, OrAddress, OrName};
use crate::content::{
    BuiltInContentType, BuiltInEncodedInformationTypes, ContentType, EncodedInformationTypes,
    PerMessageIndicators,
};
use crate::extension::{Criticality, Extensions};
use crate::trace::{OtherActions, TraceInformation};

/// The type of the domain-defined attribute that stands for a common name.
const COMMON: &str = "common";
/// Domain-defined attributes of an address, at most.
const DOMAIN_DEFINED_MAX: usize = 4;
/// The largest reason code and the largest diagnostic code of 1984.
const REASON_MAX: u32 = 2;
const DIAGNOSTIC_MAX: u32 = 16;

/// The obstacle for a system of 1984.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnableToDowngrade {
    /// The content type.
    ContentType,
    /// A critical extension.
    CriticalExtension,
    /// An attribute of an address.
    Address,
}

impl UnableToDowngrade {
    /// Reason and diagnostic of the report.
    #[must_use]
    pub fn report_type(self) -> ReportType {
        ReportType::non_delivery(
            NonDeliveryReasonCode::UnableToTransfer,
            Some(NonDeliveryDiagnosticCode::UnableToDowngrade),
        )
    }
}

impl std::error::Error for UnableToDowngrade {}

impl fmt::Display for UnableToDowngrade {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::ContentType => "expected a content type of 1984; found a later one",
            Self::CriticalExtension => "expected no critical extension; found one",
            Self::Address => "expected an address of 1984; found an extension attribute",
        })
    }
}

/// An envelope of 1984, and the recipients left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downgraded<T> {
    /// The envelope with the remaining recipients.
    pub envelope: T,
    /// The number of each recipient left out, as originally specified, and why.
    pub unable: Vec<(u32, UnableToDowngrade)>,
}

/// Makes an envelope of 1984 from the envelope of a message.
///
/// `plain_content` says that a content of 1988 has fields of 1984 only (see
/// [`InformationObject::is_1984`](crate::ipm::InformationObject::is_1984)), so that the content type can change
/// to P2.
///
/// # Errors
/// [`UnableToDowngrade`] if no recipient can be served.
pub fn downgrade_message(
    envelope: &MessageTransferEnvelope,
    plain_content: bool,
) -> Result<Downgraded<MessageTransferEnvelope>, UnableToDowngrade> {
    let mut envelope = envelope.clone();
    content_type(&mut envelope.content_type, plain_content)?;
    extensions(&mut envelope.extensions)?;
    name(&mut envelope.originator_name)?;
    types(envelope.original_encoded_information_types.as_mut());
    trace(&mut envelope.trace_information);
    indicators(&mut envelope.per_message_indicators);
    envelope.unknown = vere_ber::Unknown::default();
    let mut unable = Vec::new();
    envelope.per_recipient_fields.retain_mut(|recipient| {
        let result = name(&mut recipient.recipient_name).and(extensions(&mut recipient.extensions));
        keep(
            result,
            recipient.originally_specified_recipient_number,
            &mut unable,
        )
    });
    finish(envelope.per_recipient_fields.is_empty(), envelope, unable)
}

/// Makes an envelope of 1984 from the envelope of a probe.
///
/// # Errors
/// [`UnableToDowngrade`] if no recipient can be served.
pub fn downgrade_probe(
    envelope: &ProbeTransferEnvelope,
) -> Result<Downgraded<ProbeTransferEnvelope>, UnableToDowngrade> {
    let mut envelope = envelope.clone();
    content_type(&mut envelope.content_type, true)?;
    extensions(&mut envelope.extensions)?;
    name(&mut envelope.originator_name)?;
    types(envelope.original_encoded_information_types.as_mut());
    trace(&mut envelope.trace_information);
    indicators(&mut envelope.per_message_indicators);
    envelope.unknown = vere_ber::Unknown::default();
    let mut unable = Vec::new();
    envelope.per_recipient_fields.retain_mut(|recipient| {
        let result = name(&mut recipient.recipient_name).and(extensions(&mut recipient.extensions));
        keep(
            result,
            recipient.originally_specified_recipient_number,
            &mut unable,
        )
    });
    finish(envelope.per_recipient_fields.is_empty(), envelope, unable)
}

/// Makes a report of 1984. Later reasons and diagnostics become `unable-to-transfer` without a diagnostic.
///
/// # Errors
/// [`UnableToDowngrade`] if an address needs extension attributes.
pub fn downgrade_report(report: &Report) -> Result<Report, UnableToDowngrade> {
    let mut report = report.clone();
    let (envelope, content) = (&mut report.envelope, &mut report.content);
    envelope.extensions = Extensions::default();
    name(&mut envelope.report_destination_name)?;
    trace(&mut envelope.trace_information);
    content.extensions = Extensions::default();
    // The content type came in 1988.
    content.content_type = None;
    types(content.original_encoded_information_types.as_mut());
    if let Some(information) = &mut content.subject_intermediate_trace_information {
        trace(information);
    }
    for recipient in &mut content.per_recipient_fields {
        recipient.extensions = Extensions::default();
        name(&mut recipient.actual_recipient_name)?;
        recipient
            .originally_intended_recipient_name
            .as_mut()
            .map_or(Ok(()), name)?;
        let last = &mut recipient.last_trace_information;
        types(last.converted_encoded_information_types.as_mut());
        report_type(&mut last.report_type);
    }
    Ok(report)
}

fn keep(
    result: Result<(), UnableToDowngrade>,
    number: u32,
    unable: &mut Vec<(u32, UnableToDowngrade)>,
) -> bool {
    unable.extend(result.err().map(|reason| (number, reason)));
    result.is_ok()
}

fn finish<T>(
    empty: bool,
    envelope: T,
    unable: Vec<(u32, UnableToDowngrade)>,
) -> Result<Downgraded<T>, UnableToDowngrade> {
    match unable.first() {
        Some((_, reason)) if empty => Err(*reason),
        _ => Ok(Downgraded { envelope, unable }),
    }
}

fn content_type(kind: &mut ContentType, plain_content: bool) -> Result<(), UnableToDowngrade> {
    match kind {
        ContentType::BuiltIn(BuiltInContentType::InterpersonalMessaging1988) if plain_content => {
            *kind = ContentType::P2;
            Ok(())
        }
        ContentType::BuiltIn(
            BuiltInContentType::Unidentified | BuiltInContentType::InterpersonalMessaging1984,
        ) => Ok(()),
        _ => Err(UnableToDowngrade::ContentType),
    }
}

fn extensions(fields: &mut Extensions) -> Result<(), UnableToDowngrade> {
    let critical = fields.0.iter().any(|field| {
        field.criticality.contains(Criticality::FOR_TRANSFER)
            || field.criticality.contains(Criticality::FOR_DELIVERY)
    });
    if critical {
        return Err(UnableToDowngrade::CriticalExtension);
    }
    fields.0.clear();
    Ok(())
}

fn name(name: &mut OrName) -> Result<(), UnableToDowngrade> {
    name.remove_directory_name();
    common_name(&mut name.address)?;
    let OrAddress {
        standard,
        extension,
        ..
    } = &mut name.address;
    // A further form of an attribute is dispensable beside the PrintableString.
    extension.0.retain(|attribute| match attribute.kind {
        ExtensionAttributeType::TeletexOrganizationName
        | ExtensionAttributeType::UniversalOrganizationName => standard.organization_name.is_none(),
        ExtensionAttributeType::TeletexPersonalName
        | ExtensionAttributeType::UniversalPersonalName => standard.personal_name.is_none(),
        ExtensionAttributeType::TeletexOrganizationalUnitNames
        | ExtensionAttributeType::UniversalOrganizationalUnitNames => {
            standard.organizational_unit_names.is_empty()
        }
        _ => true,
    });
    if extension.0.is_empty() {
        Ok(())
    } else {
        Err(UnableToDowngrade::Address)
    }
}

/// Moves the common name to a domain-defined attribute.
fn common_name(address: &mut OrAddress) -> Result<(), UnableToDowngrade> {
    let Some(value) = address.extension(ExtensionAttributeType::CommonName) else {
        return Ok(());
    };
    let value: PrintableString = decode(&value.0).map_err(|_| UnableToDowngrade::Address)?;
    let kind = PrintableString::new(COMMON).map_err(|_| UnableToDowngrade::Address)?;
    if address.domain_defined.len() >= DOMAIN_DEFINED_MAX {
        return Err(UnableToDowngrade::Address);
    }
    address.domain_defined.push(BuiltInDomainDefinedAttribute {
        kind,
        value,
        ..Default::default()
    });
    address.extension.0.retain(|attribute| {
        !matches!(
            attribute.kind,
            ExtensionAttributeType::CommonName
                | ExtensionAttributeType::TeletexCommonName
                | ExtensionAttributeType::UniversalCommonName
        )
    });
    Ok(())
}

fn types(types: Option<&mut EncodedInformationTypes>) {
    if let Some(types) = types.filter(|types| types.extended.is_some()) {
        types.extended = None;
        types.built_in = types.built_in.with(BuiltInEncodedInformationTypes::UNKNOWN);
    }
}

fn trace(trace: &mut TraceInformation) {
    for element in &mut trace.0 {
        let information = &mut element.domain_supplied_information;
        information.other_actions = OtherActions::default();
        types(information.converted_encoded_information_types.as_mut());
    }
}

fn indicators(indicators: &mut PerMessageIndicators) {
    let later = [
        PerMessageIndicators::RESERVED,
        PerMessageIndicators::BIT_5,
        PerMessageIndicators::BIT_6,
        PerMessageIndicators::SERVICE_MESSAGE,
    ];
    *indicators = later
        .into_iter()
        .fold(*indicators, PerMessageIndicators::without);
}

fn report_type(report: &mut ReportType) {
    match report {
        ReportType::Delivery(delivery) => {
            if delivery.type_of_mts_user.code() > TypeOfMtsUser::Private.code() {
                delivery.type_of_mts_user = TypeOfMtsUser::Public;
            }
        }
        ReportType::NonDelivery(report) => {
            if report.non_delivery_reason_code.code() > REASON_MAX {
                report.non_delivery_reason_code = NonDeliveryReasonCode::UnableToTransfer;
            }
            let diagnostic = report.non_delivery_diagnostic_code;
            report.non_delivery_diagnostic_code =
                diagnostic.filter(|code| code.code() <= DIAGNOSTIC_MAX);
        }
    }
}
