//! The heading of an interpersonal message (X.420 clauses 7.1 and 7.2).

use vere_ber::{
    Any, Explicit, ObjectIdentifier, PrintableString, Tag, TeletexString, bits, codes, record,
};

use crate::address::OrName;
use crate::time::Time;

record! {
    /// `IPMIdentifier`
    pub struct IpmIdentifier [Tag::application(11)] {
        /// `user`
        user: optional OrName,
        /// `user-relative-identifier`
        user_relative_identifier: required PrintableString,
    }
}

record! {
    /// `ORDescriptor`: a user by address, by name, or both.
    pub struct OrDescriptor [Tag::SET] {
        /// `formal-name`
        formal_name: optional OrName,
        /// `free-form-name`
        free_form_name: optional @0 TeletexString,
        /// `telephone-number`
        telephone_number: optional @1 PrintableString,
    }
}

bits! {
    /// `NotificationRequests`
    pub struct NotificationRequests [Tag::BIT_STRING] {
        RN = 0, "rn";
        NRN = 1, "nrn";
        IPM_RETURN = 2, "ipm-return";
        AN_SUPPORTED = 3, "an-supported";
        SUPPRESS_AN = 4, "suppress-an";
    }
}

record! {
    /// `IPMSExtension`: an extension of a heading, of a recipient or of a notification; the value is kept as
    /// received.
    pub struct IpmsExtension [Tag::SEQUENCE] {
        /// `type`
        kind: required ObjectIdentifier,
        /// `value`; absent for NULL.
        value: optional Any,
    }
}

record! {
    /// `RecipientSpecifier`
    pub struct RecipientSpecifier [Tag::SET] {
        /// `recipient`
        recipient: required @0 OrDescriptor,
        /// `notification-requests`
        notification_requests: default @1 NotificationRequests,
        /// `reply-requested`
        reply_requested: default @2 bool,
        /// `recipient-extensions`
        recipient_extensions: optional @3 Vec<IpmsExtension>,
    }
}

impl From<OrName> for OrDescriptor {
    fn from(name: OrName) -> Self {
        Self {
            formal_name: Some(name),
            ..Self::default()
        }
    }
}

impl From<OrName> for RecipientSpecifier {
    fn from(name: OrName) -> Self {
        Self {
            recipient: name.into(),
            ..Self::default()
        }
    }
}

codes! {
    /// `ImportanceField`; the default is normal.
    pub enum Importance [Tag::ENUMERATED] {
        Low = 0, "low";
        Normal = 1, "normal";
        High = 2, "high";
    }
}

codes! {
    /// `SensitivityField`
    pub enum Sensitivity [Tag::ENUMERATED] {
        Personal = 1, "personal";
        Private = 2, "private";
        CompanyConfidential = 3, "company-confidential";
    }
}

record! {
    /// `Heading`
    pub struct Heading [Tag::SET] {
        /// `this-IPM`
        this_ipm: required IpmIdentifier,
        /// `originator`
        originator: optional @0 OrDescriptor,
        /// `authorizing-users`
        authorizing_users: optional @1 Vec<OrDescriptor>,
        /// `primary-recipients`
        primary_recipients: default @2 Vec<RecipientSpecifier>,
        /// `copy-recipients`
        copy_recipients: default @3 Vec<RecipientSpecifier>,
        /// `blind-copy-recipients`
        blind_copy_recipients: optional @4 Vec<RecipientSpecifier>,
        /// `replied-to-IPM`
        replied_to_ipm: optional @5 IpmIdentifier,
        /// `obsoleted-IPMs`
        obsoleted_ipms: default @6 Vec<IpmIdentifier>,
        /// `related-IPMs`
        related_ipms: default @7 Vec<IpmIdentifier>,
        /// `subject`
        subject: optional @8 Explicit<TeletexString>,
        /// `expiry-time`
        expiry_time: optional @9 Time,
        /// `reply-time`
        reply_time: optional @10 Time,
        /// `reply-recipients`
        reply_recipients: optional @11 Vec<OrDescriptor>,
        /// `importance`
        importance: optional @12 Importance,
        /// `sensitivity`
        sensitivity: optional @13 Sensitivity,
        /// `auto-forwarded`
        auto_forwarded: default @14 bool,
        /// `extensions`
        extensions: default @15 Vec<IpmsExtension>,
    }
}

impl Heading {
    /// Primary, copy and blind copy recipients.
    pub fn recipients(&self) -> impl Iterator<Item = &RecipientSpecifier> {
        let blind = self.blind_copy_recipients.iter().flatten();
        self.primary_recipients
            .iter()
            .chain(&self.copy_recipients)
            .chain(blind)
    }
}
