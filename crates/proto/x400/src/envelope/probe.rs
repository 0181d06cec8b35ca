//! The envelope of a probe (X.411 clause 12.2.1.2): asks whether a message could be delivered.

use vere_ber::{Any, Tag, record};

use super::message::PerRecipientIndicators;
use crate::address::OrName;
use crate::content::{
    ContentIdentifier, ContentType, EncodedInformationTypes, ExplicitConversion,
    PerMessageIndicators,
};
use crate::domain::MtsIdentifier;
use crate::extension::Extensions;
use crate::trace::TraceInformation;

record! {
    /// `PerRecipientProbeTransferFields`
    pub struct PerRecipientProbeTransferFields [Tag::SET] {
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
    /// `ProbeTransferEnvelope`
    pub struct ProbeTransferEnvelope [Tag::SET] {
        /// `probe-identifier`
        probe_identifier: required MtsIdentifier,
        /// `originator-name`
        originator_name: required OrName,
        /// `original-encoded-information-types`
        original_encoded_information_types: optional EncodedInformationTypes,
        /// `content-type`
        content_type: required ContentType,
        /// `content-identifier`
        content_identifier: optional ContentIdentifier,
        /// `content-length`
        content_length: optional @0 u32,
        /// `per-message-indicators`
        per_message_indicators: default PerMessageIndicators,
        /// `per-domain-bilateral-information`, each as received.
        per_domain_bilateral_information: optional @1 Vec<Any>,
        /// `trace-information`
        trace_information: required TraceInformation,
        /// `extensions`
        extensions: default @3 Extensions,
        /// `per-recipient-fields`
        per_recipient_fields: required @2 Vec<PerRecipientProbeTransferFields>,
    }
}
