//! The numbers of the standard extensions.

use vere_ber::{BitSet, Tag, bits, codes};

bits! {
    /// `Criticality`: the stages at which a system without knowledge of the extension has to stop.
    pub struct Criticality [Tag::BIT_STRING] {
        FOR_SUBMISSION = 0, "for-submission";
        FOR_TRANSFER = 1, "for-transfer";
        FOR_DELIVERY = 2, "for-delivery";
    }
}

codes! {
    /// `StandardExtension`
    pub enum StandardExtension [Tag::INTEGER] {
        RecipientReassignmentProhibited = 1, "recipient-reassignment-prohibited";
        OriginatorRequestedAlternateRecipient = 2, "originator-requested-alternate-recipient";
        DlExpansionProhibited = 3, "dl-expansion-prohibited";
        ConversionWithLossProhibited = 4, "conversion-with-loss-prohibited";
        LatestDeliveryTime = 5, "latest-delivery-time";
        RequestedDeliveryMethod = 6, "requested-delivery-method";
        PhysicalForwardingProhibited = 7, "physical-forwarding-prohibited";
        PhysicalForwardingAddressRequest = 8, "physical-forwarding-address-request";
        PhysicalDeliveryModes = 9, "physical-delivery-modes";
        RegisteredMailType = 10, "registered-mail-type";
        RecipientNumberForAdvice = 11, "recipient-number-for-advice";
        PhysicalRenditionAttributes = 12, "physical-rendition-attributes";
        OriginatorReturnAddress = 13, "originator-return-address";
        PhysicalDeliveryReportRequest = 14, "physical-delivery-report-request";
        OriginatorCertificate = 15, "originator-certificate";
        MessageToken = 16, "message-token";
        ContentConfidentialityAlgorithmIdentifier = 17, "content-confidentiality-algorithm-identifier";
        ContentIntegrityCheck = 18, "content-integrity-check";
        MessageOriginAuthenticationCheck = 19, "message-origin-authentication-check";
        MessageSecurityLabel = 20, "message-security-label";
        ProofOfSubmissionRequest = 21, "proof-of-submission-request";
        ProofOfDeliveryRequest = 22, "proof-of-delivery-request";
        ContentCorrelator = 23, "content-correlator";
        ProbeOriginAuthenticationCheck = 24, "probe-origin-authentication-check";
        RedirectionHistory = 25, "redirection-history";
        DlExpansionHistory = 26, "dl-expansion-history";
        PhysicalForwardingAddress = 27, "physical-forwarding-address";
        RecipientCertificate = 28, "recipient-certificate";
        ProofOfDelivery = 29, "proof-of-delivery";
        OriginatorAndDlExpansionHistory = 30, "originator-and-DL-expansion-history";
        ReportingDlName = 31, "reporting-DL-name";
        ReportingMtaCertificate = 32, "reporting-MTA-certificate";
        ReportOriginAuthenticationCheck = 33, "report-origin-authentication-check";
        OriginatingMtaCertificate = 34, "originating-MTA-certificate";
        ProofOfSubmission = 35, "proof-of-submission";
        ForwardingRequest = 36, "forwarding-request";
        TraceInformation = 37, "trace-information";
        InternalTraceInformation = 38, "internal-trace-information";
        ReportingMtaName = 39, "reporting-MTA-name";
        MultipleOriginatorCertificates = 40, "multiple-originator-certificates";
        BlindCopyRecipients = 41, "blind-copy-recipients";
        DlExemptedRecipients = 42, "dl-exempted-recipients";
        BodyPartEncryptionToken = 43, "body-part-encryption-token";
        ForwardedContentToken = 44, "forwarded-content-token";
        CertificateSelectors = 45, "certificate-selectors";
        CertificateSelectorsOverride = 46, "certificate-selectors-override";
    }
}

impl StandardExtension {
    /// The criticality that X.411 recommends.
    #[must_use]
    pub const fn recommended_criticality(self) -> Criticality {
        match self {
            Self::OriginatorRequestedAlternateRecipient | Self::ProofOfSubmissionRequest => {
                Criticality::FOR_SUBMISSION
            }
            Self::RecipientReassignmentProhibited
            | Self::DlExpansionProhibited
            | Self::ConversionWithLossProhibited
            | Self::LatestDeliveryTime
            | Self::PhysicalForwardingProhibited
            | Self::PhysicalForwardingAddressRequest
            | Self::PhysicalDeliveryModes
            | Self::RegisteredMailType
            | Self::RecipientNumberForAdvice
            | Self::PhysicalRenditionAttributes
            | Self::PhysicalDeliveryReportRequest
            | Self::MessageToken
            | Self::ContentConfidentialityAlgorithmIdentifier
            | Self::ContentIntegrityCheck
            | Self::MessageOriginAuthenticationCheck
            | Self::MessageSecurityLabel
            | Self::ProofOfDeliveryRequest
            | Self::ProbeOriginAuthenticationCheck
            | Self::ReportingMtaCertificate
            | Self::ReportOriginAuthenticationCheck => Criticality::FOR_DELIVERY,
            _ => Criticality(BitSet::NONE),
        }
    }
}
