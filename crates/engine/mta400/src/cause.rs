//! Causes of non-delivery and their codes in reports (X.411 clause 8.3.1.2.1).

use std::fmt;

use vere_x400::{
    NonDeliveryDiagnosticCode as Diagnostic, NonDeliveryReasonCode as Reason, ReportType,
};

macro_rules! causes {
    ($($(#[$doc:meta])* $cause:ident = $reason:ident, $diagnostic:expr, $text:literal;)*) => {
        /// A cause of non-delivery.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Cause {
            $($(#[$doc])* $cause,)*
        }

        impl Cause {
            /// Every cause.
            pub const ALL: &[Self] = &[$(Self::$cause,)*];

            /// The codes of the report.
            #[must_use]
            pub const fn codes(self) -> (Reason, Option<Diagnostic>) {
                match self {
                    $(Self::$cause => (Reason::$reason, $diagnostic),)*
                }
            }

            const fn text(self) -> &'static str {
                match self {
                    $(Self::$cause => $text,)*
                }
            }
        }
    };
}

causes! {
    /// No route, or no such local user.
    UnknownRecipient = UnableToTransfer, Some(Diagnostic::UnrecognisedOrName), "no route or user for the address";
    /// The address stands for several users.
    AmbiguousRecipient = UnableToTransfer, Some(Diagnostic::AmbiguousOrName), "the address stands for several users";
    /// An unreadable attribute of an address, or an unreadable extension.
    ProtocolViolation = UnableToTransfer, Some(Diagnostic::ProtocolViolation), "a field of the envelope cannot be read";
    /// The message returned to the domain or to the MTA, or had too many hops.
    Loop = UnableToTransfer, Some(Diagnostic::LoopDetected), "the message has been here already";
    /// An alternate recipient leads back to an earlier recipient.
    RedirectionLoop = UnableToTransfer, Some(Diagnostic::RedirectionLoopDetected), "alternate recipients lead in a circle";
    /// The user has redirected all messages, and the originator prohibits reassignment.
    ReassignmentProhibited = UnableToTransfer, Some(Diagnostic::RecipientReassignmentProhibited), "the originator prohibits another recipient";
    /// An unknown extension is critical.
    CriticalExtension = UnableToTransfer, Some(Diagnostic::UnsupportedCriticalFunction), "a critical extension is not known";
    /// The content has too many octets.
    ContentTooLong = UnableToTransfer, Some(Diagnostic::ContentTooLong), "the content is too long";
    /// The content type.
    ContentType = UnableToTransfer, Some(Diagnostic::ContentTypeNotSupported), "the content type is not accepted";
    /// The encoded information types.
    InformationTypes = UnableToTransfer, Some(Diagnostic::EncodedInformationTypesUnsupported), "the encoded information types are not accepted";
    /// The user needs a conversion, and the originator prohibits conversion.
    ConversionProhibited = ConversionNotPerformed, Some(Diagnostic::ImplicitConversionProhibited), "a conversion is needed and prohibited";
    /// The originator asks for a conversion; this MTA does not convert.
    ConversionImpractical = ConversionNotPerformed, Some(Diagnostic::ConversionImpractical), "this MTA does not convert";
    /// The grade of delivery is not agreed with the peer.
    Grade = UnableToTransfer, Some(Diagnostic::NoBilateralAgreement), "the grade is not agreed with the peer";
    /// The border does not permit the originator.
    Originator = TransferFailureForSecurityReason, Some(Diagnostic::UnauthorisedOriginatorName), "the originator is not authorised";
    /// The border does not permit the recipient.
    Recipient = TransferFailureForSecurityReason, Some(Diagnostic::UnauthorisedRecipientName), "the recipient is not authorised";
    /// The envelope does not fit the next MTA, a system of 1984.
    Downgrade = UnableToTransfer, Some(Diagnostic::UnableToDowngrade), "the envelope does not fit a system of 1984";
    /// The time for delivery is over.
    Expired = UnableToTransfer, Some(Diagnostic::MaximumTimeExpired), "the time for delivery is over";
    /// No room or too much traffic.
    Congestion = TransferFailure, Some(Diagnostic::MtsCongestion), "the transfer system is congested";
    /// The mailbox cannot be used now.
    Unavailable = UnableToTransfer, Some(Diagnostic::RecipientUnavailable), "the recipient is not available";
    /// Too many recipients for the next system.
    TooManyRecipients = UnableToTransfer, Some(Diagnostic::TooManyRecipients), "too many recipients";
    /// Delivery is restricted or refused by policy.
    Policy = RestrictedDelivery, None, "delivery is restricted";
    /// The next system does not take the message.
    Refused = UnableToTransfer, None, "the next system does not take the message";
    /// The transfer failed for an unknown reason.
    TransferFailed = TransferFailure, None, "the transfer failed";
}

impl Cause {
    /// The type of the report.
    #[must_use]
    pub fn report_type(self) -> ReportType {
        let (reason, diagnostic) = self.codes();
        ReportType::non_delivery(reason, diagnostic)
    }

    /// The cause for an enhanced status code of the queues (RFC 3463). The class of the code does not count.
    #[must_use]
    pub fn of_status(status: &str) -> Self {
        let mut parts = status.split('.').skip(1);
        match (parts.next(), parts.next()) {
            (Some("1"), Some("4")) => Self::AmbiguousRecipient,
            (Some("1"), _) => Self::UnknownRecipient,
            (Some("2"), Some("3")) | (Some("3"), Some("4")) => Self::ContentTooLong,
            (Some("2"), _) => Self::Unavailable,
            (Some("3"), Some("1" | "2")) | (Some("4"), Some("5")) => Self::Congestion,
            (Some("4"), Some("6")) => Self::Loop,
            (Some("4"), Some("7")) => Self::Expired,
            (Some("4"), _) => Self::TransferFailed,
            (Some("5"), Some("3")) => Self::TooManyRecipients,
            (Some("6"), Some("1")) => Self::ContentType,
            (Some("6"), Some("2")) => Self::ConversionProhibited,
            (Some("6"), _) => Self::ConversionImpractical,
            (Some("7"), _) => Self::Policy,
            _ => Self::Refused,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}
