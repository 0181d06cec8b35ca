//! The envelope of a message (X.411 clause 12.2.1.1).

use vere_ber::{Any, Tag, bits, record};

use crate::address::OrName;
use crate::content::{
    ContentIdentifier, ContentType, EncodedInformationTypes, ExplicitConversion,
    PerMessageIndicators, Priority,
};
use crate::domain::MtsIdentifier;
use crate::extension::Extensions;
use crate::time::Time;
use crate::trace::TraceInformation;

bits! {
    /// `PerRecipientIndicators`. At least 8 bits are written.
    pub struct PerRecipientIndicators [Tag::BIT_STRING] {
        RESPONSIBILITY = 0, "responsibility";
        ORIGINATING_MTA_REPORT = 1, "originating-MTA-report";
        ORIGINATING_MTA_NON_DELIVERY_REPORT = 2, "originating-MTA-non-delivery-report";
        ORIGINATOR_REPORT = 3, "originator-report";
        ORIGINATOR_NON_DELIVERY_REPORT = 4, "originator-non-delivery-report";
        RESERVED_5 = 5, "reserved-5";
        RESERVED_6 = 6, "reserved-6";
        RESERVED_7 = 7, "reserved-7";
    }
}

record! {
    /// `PerRecipientMessageTransferFields`
    pub struct PerRecipientMessageTransferFields [Tag::SET] {
        /// `recipient-name`
        recipient_name: required OrName,
        /// `originally-specified-recipient-number`
        originally_specified_recipient_number: required @0 u32,
        /// `per-recipient-indicators`
        per_recipient_indicators: required @1 PerRecipientIndicators,
        /// `explicit-conversion`
        explicit_conversion: optional @2 ExplicitConversion,
        /// `extensions`
        extensions: default @3 Extensions,
    }
}

record! {
    /// `MessageTransferEnvelope`
    pub struct MessageTransferEnvelope [Tag::SET] {
        /// `message-identifier`
        message_identifier: required MtsIdentifier,
        /// `originator-name`
        originator_name: required OrName,
        /// `original-encoded-information-types`
        original_encoded_information_types: optional EncodedInformationTypes,
        /// `content-type`
        content_type: required ContentType,
        /// `content-identifier`
        content_identifier: optional ContentIdentifier,
        /// `priority`
        priority: default Priority,
        /// `per-message-indicators`
        per_message_indicators: default PerMessageIndicators,
        /// `deferred-delivery-time`
        deferred_delivery_time: optional @0 Time,
        /// `per-domain-bilateral-information`, each as received.
        per_domain_bilateral_information: optional @1 Vec<Any>,
        /// `trace-information`
        trace_information: required TraceInformation,
        /// `extensions`
        extensions: default @3 Extensions,
        /// `per-recipient-fields`
        per_recipient_fields: required @2 Vec<PerRecipientMessageTransferFields>,
    }
}
