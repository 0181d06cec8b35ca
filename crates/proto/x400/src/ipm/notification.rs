//! Notifications (X.420 clause 8): the fate of a message at a recipient.

use vere_ber::{Kept, PrintableString, Tag, choice, codes, record};

use super::heading::{IpmIdentifier, IpmsExtension, OrDescriptor};
use crate::content::EncodedInformationTypes;
use crate::time::Time;

codes! {
    /// `NonReceiptReasonField`
    pub enum NonReceiptReason [Tag::ENUMERATED] {
        IpmDiscarded = 0, "ipm-discarded";
        IpmAutoForwarded = 1, "ipm-auto-forwarded";
    }
}

codes! {
    /// `DiscardReasonField`
    pub enum DiscardReason [Tag::ENUMERATED] {
        IpmExpired = 0, "ipm-expired";
        IpmObsoleted = 1, "ipm-obsoleted";
        UserSubscriptionTerminated = 2, "user-subscription-terminated";
        IpmDeleted = 3, "ipm-deleted";
    }
}

codes! {
    /// `AcknowledgmentModeField`
    pub enum AcknowledgmentMode [Tag::ENUMERATED] {
        Manual = 0, "manual";
        Automatic = 1, "automatic";
    }
}

record! {
    /// `NonReceiptFields`: of a non-receipt notification (NRN).
    pub struct NonReceiptFields [Tag::SET] {
        /// `non-receipt-reason`
        non_receipt_reason: required @0 NonReceiptReason,
        /// `discard-reason`
        discard_reason: optional @1 DiscardReason,
        /// `auto-forward-comment`
        auto_forward_comment: optional @2 PrintableString,
        /// `returned-ipm`, as received; see [`Self::returned`].
        returned_ipm: optional @3 Kept,
        /// `nrn-extensions`
        nrn_extensions: optional @4 Vec<IpmsExtension>,
    }
}

record! {
    /// `ReceiptFields`: of a receipt notification (RN).
    pub struct ReceiptFields [Tag::SET] {
        /// `receipt-time`
        receipt_time: required @0 Time,
        /// `acknowledgment-mode`
        acknowledgment_mode: default @1 AcknowledgmentMode,
        /// `suppl-receipt-info`
        suppl_receipt_info: optional @2 PrintableString,
        /// `rn-extensions`
        rn_extensions: optional @3 Vec<IpmsExtension>,
    }
}

choice! {
    /// The fate of the message.
    pub enum IpnOutcome {
        /// `non-receipt-fields`
        NonReceipt: @0 NonReceiptFields,
        /// `receipt-fields`
        Receipt: @1 ReceiptFields,
        /// `other-notification-type-fields`
        Other: @2 Vec<IpmsExtension>,
    }
}

record! {
    /// `IPN`: a notification.
    pub struct Ipn [Tag::SET] {
        /// `subject-ipm`
        subject_ipm: required IpmIdentifier,
        /// `ipn-originator`
        ipn_originator: optional @1 OrDescriptor,
        /// `ipm-intended-recipient`
        ipm_intended_recipient: optional @2 OrDescriptor,
        /// `conversion-eits`
        conversion_eits: optional EncodedInformationTypes,
        /// `notification-extensions`
        notification_extensions: optional @3 Vec<IpmsExtension>,
        /// `choice`
        outcome: required @0 IpnOutcome,
    }
}
