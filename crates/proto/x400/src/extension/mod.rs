//! Extensions (X.411 clause 9): fields introduced after 1984, with a type, a criticality and a value.
//!
//! The value of every extension is kept as received, also of known extensions, so that an MTA passes untouched
//! extensions on. [`ExtensionField::decode`] gives the value of a standard extension.

mod field;
mod kind;
mod value;

pub use field::{ExtensionField, ExtensionType, Extensions};
pub use kind::{Criticality, StandardExtension};
pub use value::{
    ContentCorrelator, DeliveryMethod, DlExpansion, ExtensionValue, IntendedRecipientName,
    OriginatorAndDlExpansion, PhysicalDeliveryModes, PhysicalDeliveryReportRequest, Redirection,
    RedirectionReason, RegisteredMailType, ReportingMtaName, SecurityClassification, SecurityLabel,
    Switch,
};
