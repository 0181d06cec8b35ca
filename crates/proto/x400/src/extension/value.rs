//! The values of the standard extensions.
//!
//! Certificates, tokens and signatures are values of X.509 and are kept as received ([`ExtensionValue::Other`]).

use bytes::Bytes;
use vere_ber::{
    Any, BerError, Ia5String, ObjectIdentifier, PrintableString, Tag, TeletexString, bits, choice,
    codes, decode, encode, record,
};

use super::kind::StandardExtension;
use crate::address::{OrAddress, OrName};
use crate::domain::GlobalDomainIdentifier;
use crate::time::Time;
use crate::trace::{InternalTraceInformation, TraceInformation};

codes! {
    /// The value of extensions with two states.
    pub enum Switch [Tag::ENUMERATED] {
        Off = 0, "allowed or not requested";
        On = 1, "prohibited or requested";
    }
}

codes! {
    /// An element of `RequestedDeliveryMethod`.
    pub enum DeliveryMethod [Tag::INTEGER] {
        AnyDeliveryMethod = 0, "any-delivery-method";
        MhsDelivery = 1, "mhs-delivery";
        PhysicalDelivery = 2, "physical-delivery";
        TelexDelivery = 3, "telex-delivery";
        TeletexDelivery = 4, "teletex-delivery";
        G3FacsimileDelivery = 5, "g3-facsimile-delivery";
        G4FacsimileDelivery = 6, "g4-facsimile-delivery";
        Ia5TerminalDelivery = 7, "ia5-terminal-delivery";
        VideotexDelivery = 8, "videotex-delivery";
        TelephoneDelivery = 9, "telephone-delivery";
    }
}

bits! {
    /// `PhysicalDeliveryModes`
    pub struct PhysicalDeliveryModes [Tag::BIT_STRING] {
        ORDINARY_MAIL = 0, "ordinary-mail";
        SPECIAL_DELIVERY = 1, "special-delivery";
        EXPRESS_MAIL = 2, "express-mail";
        COUNTER_COLLECTION = 3, "counter-collection";
        COUNTER_COLLECTION_WITH_TELEPHONE_ADVICE = 4, "counter-collection-with-telephone-advice";
        COUNTER_COLLECTION_WITH_TELEX_ADVICE = 5, "counter-collection-with-telex-advice";
        COUNTER_COLLECTION_WITH_TELETEX_ADVICE = 6, "counter-collection-with-teletex-advice";
        BUREAU_FAX_DELIVERY = 7, "bureau-fax-delivery";
    }
}

codes! {
    /// `RegisteredMailType`
    pub enum RegisteredMailType [Tag::INTEGER] {
        NonRegisteredMail = 0, "non-registered-mail";
        RegisteredMail = 1, "registered-mail";
        RegisteredMailToAddresseeInPerson = 2, "registered-mail-to-addressee-in-person";
    }
}

codes! {
    /// `PhysicalDeliveryReportRequest`
    pub enum PhysicalDeliveryReportRequest [Tag::INTEGER] {
        ReturnOfUndeliverableMailByPds = 0, "return-of-undeliverable-mail-by-PDS";
        ReturnOfNotificationByPds = 1, "return-of-notification-by-PDS";
        ReturnOfNotificationByMhs = 2, "return-of-notification-by-MHS";
        ReturnOfNotificationByMhsAndPds = 3, "return-of-notification-by-MHS-and-PDS";
    }
}

codes! {
    /// `SecurityClassification`
    pub enum SecurityClassification [Tag::INTEGER] {
        Unmarked = 0, "unmarked";
        Unclassified = 1, "unclassified";
        Restricted = 2, "restricted";
        Confidential = 3, "confidential";
        Secret = 4, "secret";
        TopSecret = 5, "top-secret";
    }
}

record! {
    /// `SecurityLabel`. The security categories are among the elements that are kept as received.
    pub struct SecurityLabel [Tag::SET] {
        /// `security-policy-identifier`
        security_policy_identifier: optional ObjectIdentifier,
        /// `security-classification`
        security_classification: optional SecurityClassification,
        /// `privacy-mark`
        privacy_mark: optional PrintableString,
    }
}

choice! {
    /// `ContentCorrelator`
    pub enum ContentCorrelator {
        /// `ia5text`
        Ia5Text: Ia5String,
        /// `octets`
        Octets: Bytes,
    }
}

codes! {
    /// `RedirectionReason`
    pub enum RedirectionReason [Tag::ENUMERATED] {
        RecipientAssignedAlternateRecipient = 0, "recipient-assigned-alternate-recipient";
        OriginatorRequestedAlternateRecipient = 1, "originator-requested-alternate-recipient";
        RecipientMdAssignedAlternateRecipient = 2, "recipient-MD-assigned-alternate-recipient";
        DirectoryLookUp = 3, "directory-look-up";
        Alias = 4, "alias";
    }
}

record! {
    /// `IntendedRecipientName`
    pub struct IntendedRecipientName [Tag::SEQUENCE] {
        /// `intended-recipient`
        intended_recipient: required OrName,
        /// `redirection-time`
        redirection_time: required Time,
    }
}

record! {
    /// `Redirection`
    pub struct Redirection [Tag::SEQUENCE] {
        /// `intended-recipient-name`
        intended_recipient_name: required IntendedRecipientName,
        /// `redirection-reason`
        redirection_reason: required RedirectionReason,
    }
}

record! {
    /// `DLExpansion`
    pub struct DlExpansion [Tag::SEQUENCE] {
        /// `dl`
        dl: required OrName,
        /// `dl-expansion-time`
        dl_expansion_time: required Time,
    }
}

record! {
    /// `OriginatorAndDLExpansion`
    pub struct OriginatorAndDlExpansion [Tag::SEQUENCE] {
        /// `originator-or-dl-name`
        originator_or_dl_name: required OrName,
        /// `origination-or-expansion-time`
        origination_or_expansion_time: required Time,
    }
}

record! {
    /// `ReportingMTAName`
    pub struct ReportingMtaName [Tag::SEQUENCE] {
        /// `domain`
        domain: required GlobalDomainIdentifier,
        /// `mta-name`
        mta_name: required Ia5String,
        /// `mta-directory-name`
        mta_directory_name: optional @0 Any,
    }
}

macro_rules! values {
    ($($kind:ident: $ty:ty,)*) => {
        /// The value of a standard extension.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ExtensionValue {
            $(
                #[doc = concat!("The value of [`StandardExtension::", stringify!($kind), "`].")]
                $kind($ty),
            )*
            /// The value of an extension that is kept as received.
            Other(StandardExtension, Any),
        }

        impl ExtensionValue {
            /// The extension.
            #[must_use]
            pub const fn kind(&self) -> StandardExtension {
                match self {
                    $(Self::$kind(_) => StandardExtension::$kind,)*
                    Self::Other(kind, _) => *kind,
                }
            }

            pub(super) fn decode(kind: StandardExtension, value: Any) -> Result<Self, BerError> {
                Ok(match kind {
                    $(StandardExtension::$kind => Self::$kind(decode(&value.0)?),)*
                    kind => Self::Other(kind, value),
                })
            }

            pub(super) fn encode(&self) -> Bytes {
                match self {
                    $(Self::$kind(value) => encode::<$ty>(value),)*
                    Self::Other(_, value) => encode(value),
                }
            }
        }
    };
}

values! {
    RecipientReassignmentProhibited: Switch,
    OriginatorRequestedAlternateRecipient: OrName,
    DlExpansionProhibited: Switch,
    ConversionWithLossProhibited: Switch,
    LatestDeliveryTime: Time,
    RequestedDeliveryMethod: Vec<DeliveryMethod>,
    PhysicalForwardingProhibited: Switch,
    PhysicalForwardingAddressRequest: Switch,
    PhysicalDeliveryModes: PhysicalDeliveryModes,
    RegisteredMailType: RegisteredMailType,
    RecipientNumberForAdvice: TeletexString,
    PhysicalRenditionAttributes: ObjectIdentifier,
    OriginatorReturnAddress: OrAddress,
    PhysicalDeliveryReportRequest: PhysicalDeliveryReportRequest,
    MessageSecurityLabel: SecurityLabel,
    ProofOfSubmissionRequest: Switch,
    ProofOfDeliveryRequest: Switch,
    ContentCorrelator: ContentCorrelator,
    RedirectionHistory: Vec<Redirection>,
    DlExpansionHistory: Vec<DlExpansion>,
    PhysicalForwardingAddress: OrName,
    OriginatorAndDlExpansionHistory: Vec<OriginatorAndDlExpansion>,
    ReportingDlName: OrName,
    TraceInformation: TraceInformation,
    InternalTraceInformation: InternalTraceInformation,
    ReportingMtaName: ReportingMtaName,
}
