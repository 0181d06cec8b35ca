//! Reasons of non-delivery (X.411 clause 8.3.1.2.1).

use vere_ber::{Tag, codes};

codes! {
    /// `TypeOfMTSUser`: the kind of recipient.
    pub enum TypeOfMtsUser [Tag::INTEGER] {
        Public = 0, "public";
        Private = 1, "private";
        Ms = 2, "ms";
        Dl = 3, "dl";
        Pdau = 4, "pdau";
        PhysicalRecipient = 5, "physical-recipient";
        Other6 = 6, "other";
    }
}

codes! {
    /// `NonDeliveryReasonCode`
    pub enum NonDeliveryReasonCode [Tag::INTEGER] {
        TransferFailure = 0, "transfer-failure";
        UnableToTransfer = 1, "unable-to-transfer";
        ConversionNotPerformed = 2, "conversion-not-performed";
        PhysicalRenditionNotPerformed = 3, "physical-rendition-not-performed";
        PhysicalDeliveryNotPerformed = 4, "physical-delivery-not-performed";
        RestrictedDelivery = 5, "restricted-delivery";
        DirectoryOperationUnsuccessful = 6, "directory-operation-unsuccessful";
        DeferredDeliveryNotPerformed = 7, "deferred-delivery-not-performed";
        TransferFailureForSecurityReason = 8, "transfer-failure-for-security-reason";
    }
}

codes! {
    /// `NonDeliveryDiagnosticCode`
    pub enum NonDeliveryDiagnosticCode [Tag::INTEGER] {
        UnrecognisedOrName = 0, "unrecognised-OR-name";
        AmbiguousOrName = 1, "ambiguous-OR-name";
        MtsCongestion = 2, "mts-congestion";
        LoopDetected = 3, "loop-detected";
        RecipientUnavailable = 4, "recipient-unavailable";
        MaximumTimeExpired = 5, "maximum-time-expired";
        EncodedInformationTypesUnsupported = 6, "encoded-information-types-unsupported";
        ContentTooLong = 7, "content-too-long";
        ConversionImpractical = 8, "conversion-impractical";
        ImplicitConversionProhibited = 9, "implicit-conversion-prohibited";
        ImplicitConversionNotSubscribed = 10, "implicit-conversion-not-subscribed";
        InvalidArguments = 11, "invalid-arguments";
        ContentSyntaxError = 12, "content-syntax-error";
        SizeConstraintViolation = 13, "size-constraint-violation";
        ProtocolViolation = 14, "protocol-violation";
        ContentTypeNotSupported = 15, "content-type-not-supported";
        TooManyRecipients = 16, "too-many-recipients";
        NoBilateralAgreement = 17, "no-bilateral-agreement";
        UnsupportedCriticalFunction = 18, "unsupported-critical-function";
        ConversionWithLossProhibited = 19, "conversion-with-loss-prohibited";
        LineTooLong = 20, "line-too-long";
        PageSplit = 21, "page-split";
        PictorialSymbolLoss = 22, "pictorial-symbol-loss";
        PunctuationSymbolLoss = 23, "punctuation-symbol-loss";
        AlphabeticCharacterLoss = 24, "alphabetic-character-loss";
        MultipleInformationLoss = 25, "multiple-information-loss";
        RecipientReassignmentProhibited = 26, "recipient-reassignment-prohibited";
        RedirectionLoopDetected = 27, "redirection-loop-detected";
        DlExpansionProhibited = 28, "dl-expansion-prohibited";
        NoDlSubmitPermission = 29, "no-dl-submit-permission";
        DlExpansionFailure = 30, "dl-expansion-failure";
        PhysicalRenditionAttributesNotSupported = 31, "physical-rendition-attributes-not-supported";
        UndeliverableMailPhysicalDeliveryAddressIncorrect = 32, "undeliverable-mail-physical-delivery-address-incorrect";
        UndeliverableMailPhysicalDeliveryOfficeIncorrectOrInvalid = 33, "undeliverable-mail-physical-delivery-office-incorrect-or-invalid";
        UndeliverableMailPhysicalDeliveryAddressIncomplete = 34, "undeliverable-mail-physical-delivery-address-incomplete";
        UndeliverableMailRecipientUnknown = 35, "undeliverable-mail-recipient-unknown";
        UndeliverableMailRecipientDeceased = 36, "undeliverable-mail-recipient-deceased";
        UndeliverableMailOrganizationExpired = 37, "undeliverable-mail-organization-expired";
        UndeliverableMailRecipientRefusedToAccept = 38, "undeliverable-mail-recipient-refused-to-accept";
        UndeliverableMailRecipientDidNotClaim = 39, "undeliverable-mail-recipient-did-not-claim";
        UndeliverableMailRecipientChangedAddressPermanently = 40, "undeliverable-mail-recipient-changed-address-permanently";
        UndeliverableMailRecipientChangedAddressTemporarily = 41, "undeliverable-mail-recipient-changed-address-temporarily";
        UndeliverableMailRecipientChangedTemporaryAddress = 42, "undeliverable-mail-recipient-changed-temporary-address";
        UndeliverableMailNewAddressUnknown = 43, "undeliverable-mail-new-address-unknown";
        UndeliverableMailRecipientDidNotWantForwarding = 44, "undeliverable-mail-recipient-did-not-want-forwarding";
        UndeliverableMailOriginatorProhibitedForwarding = 45, "undeliverable-mail-originator-prohibited-forwarding";
        SecureMessagingError = 46, "secure-messaging-error";
        UnableToDowngrade = 47, "unable-to-downgrade";
        UnableToCompleteTransfer = 48, "unable-to-complete-transfer";
        TransferAttemptsLimitReached = 49, "transfer-attempts-limit-reached";
        IncorrectNotificationType = 50, "incorrect-notification-type";
        DlExpansionProhibitedBySecurityPolicy = 51, "dl-expansion-prohibited-by-security-policy";
        ForbiddenAlternateRecipient = 52, "forbidden-alternate-recipient";
        SecurityPolicyViolation = 53, "security-policy-violation";
        SecurityServicesRefusal = 54, "security-services-refusal";
        UnauthorisedDlMember = 55, "unauthorised-dl-member";
        UnauthorisedDlName = 56, "unauthorised-dl-name";
        UnauthorisedOriginallyIntendedRecipientName = 57, "unauthorised-originally-intended-recipient-name";
        UnauthorisedOriginatorName = 58, "unauthorised-originator-name";
        UnauthorisedRecipientName = 59, "unauthorised-recipient-name";
        UnreliableSystem = 60, "unreliable-system";
        AuthenticationFailureOnSubjectMessage = 61, "authentication-failure-on-subject-message";
        DecryptionFailed = 62, "decryption-failed";
        DecryptionKeyUnobtainable = 63, "decryption-key-unobtainable";
        DoubleEnvelopeCreationFailure = 64, "double-envelope-creation-failure";
        DoubleEnvelopingMessageRestoringFailure = 65, "double-enveloping-message-restoring-failure";
        FailureOfProofOfMessage = 66, "failure-of-proof-of-message";
        IntegrityFailureOnSubjectMessage = 67, "integrity-failure-on-subject-message";
        InvalidSecurityLabel = 68, "invalid-security-label";
        KeyFailure = 69, "key-failure";
        MandatoryParameterAbsence = 70, "mandatory-parameter-absence";
        OperationSecurityFailure = 71, "operation-security-failure";
        RepudiationFailureOfMessage = 72, "repudiation-failure-of-message";
        SecurityContextFailure = 73, "security-context-failure";
        TokenDecryptionFailed = 74, "token-decryption-failed";
        TokenError = 75, "token-error";
        UnknownSecurityLabel = 76, "unknown-security-label";
        UnsupportedAlgorithmIdentifier = 77, "unsupported-algorithm-identifier";
        UnsupportedSecurityPolicy = 78, "unsupported-security-policy";
    }
}
