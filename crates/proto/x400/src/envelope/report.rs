//! Reports (X.411 clause 12.2.1.3): the fate of a message or a probe.

use bytes::Bytes;
use vere_ber::{Any, PrintableString, Tag, choice, record};

use super::codes::{NonDeliveryDiagnosticCode, NonDeliveryReasonCode, TypeOfMtsUser};
use super::message::PerRecipientIndicators;
use crate::address::OrName;
use crate::content::{ContentIdentifier, ContentType, EncodedInformationTypes};
use crate::domain::MtsIdentifier;
use crate::extension::Extensions;
use crate::time::Time;
use crate::trace::TraceInformation;

record! {
    /// `ReportTransferEnvelope`
    pub struct ReportTransferEnvelope [Tag::SET] {
        /// `report-identifier`
        report_identifier: required MtsIdentifier,
        /// `report-destination-name`
        report_destination_name: required OrName,
        /// `trace-information`
        trace_information: required TraceInformation,
        /// `extensions`
        extensions: default @1 Extensions,
    }
}

record! {
    /// `DeliveryReport`
    pub struct DeliveryReport [Tag::SET] {
        /// `message-delivery-time`
        message_delivery_time: required @0 Time,
        /// `type-of-MTS-user`
        type_of_mts_user: default @1 TypeOfMtsUser,
    }
}

record! {
    /// `NonDeliveryReport`
    pub struct NonDeliveryReport [Tag::SET] {
        /// `non-delivery-reason-code`
        non_delivery_reason_code: required @0 NonDeliveryReasonCode,
        /// `non-delivery-diagnostic-code`
        non_delivery_diagnostic_code: optional @1 NonDeliveryDiagnosticCode,
    }
}

choice! {
    /// `ReportType`
    pub enum ReportType {
        /// `delivery`
        Delivery: @0 DeliveryReport,
        /// `non-delivery`
        NonDelivery: @1 NonDeliveryReport,
    }
}

impl ReportType {
    /// A non-delivery for this reason.
    #[must_use]
    pub fn non_delivery(
        reason: NonDeliveryReasonCode,
        diagnostic: Option<NonDeliveryDiagnosticCode>,
    ) -> Self {
        Self::NonDelivery(NonDeliveryReport {
            non_delivery_reason_code: reason,
            non_delivery_diagnostic_code: diagnostic,
            ..NonDeliveryReport::default()
        })
    }
}

record! {
    /// `LastTraceInformation`: the arrival of the message, and the result.
    pub struct LastTraceInformation [Tag::SET] {
        /// `arrival-time`
        arrival_time: required @0 Time,
        /// `converted-encoded-information-types`
        converted_encoded_information_types: optional EncodedInformationTypes,
        /// `report-type`
        report_type: required @1 ReportType,
    }
}

record! {
    /// `PerRecipientReportTransferFields`
    pub struct PerRecipientReportTransferFields [Tag::SET] {
        /// `actual-recipient-name`
        actual_recipient_name: required @0 OrName,
        /// `originally-specified-recipient-number`
        originally_specified_recipient_number: required @1 u32,
        /// `per-recipient-indicators`
        per_recipient_indicators: required @2 PerRecipientIndicators,
        /// `last-trace-information`
        last_trace_information: required @3 LastTraceInformation,
        /// `originally-intended-recipient-name`
        originally_intended_recipient_name: optional @4 OrName,
        /// `supplementary-information`
        supplementary_information: optional @5 PrintableString,
        /// `extensions`
        extensions: default @6 Extensions,
    }
}

record! {
    /// `ReportTransferContent`
    pub struct ReportTransferContent [Tag::SET] {
        /// `subject-identifier`
        subject_identifier: required MtsIdentifier,
        /// `subject-intermediate-trace-information`
        subject_intermediate_trace_information: optional TraceInformation,
        /// `original-encoded-information-types`
        original_encoded_information_types: optional EncodedInformationTypes,
        /// `content-type`
        content_type: optional ContentType,
        /// `content-identifier`
        content_identifier: optional ContentIdentifier,
        /// `returned-content`
        returned_content: optional @1 Bytes,
        /// `additional-information`
        additional_information: optional @2 Any,
        /// `extensions`
        extensions: default @3 Extensions,
        /// `per-recipient-fields`
        per_recipient_fields: required @0 Vec<PerRecipientReportTransferFields>,
    }
}

record! {
    /// `Report`
    pub struct Report [Tag::SEQUENCE] {
        /// `envelope`
        envelope: required ReportTransferEnvelope,
        /// `content`
        content: required ReportTransferContent,
    }
}
