//! The envelopes of P1 (X.411 clause 12): messages, probes and reports between MTAs.

mod apdu;
mod bind;
mod codes;
mod downgrade;
mod message;
mod probe;
mod report;
mod show;
mod traced;

pub use apdu::{Apdu, ApduError, Content, ENVELOPE_OCTETS_MAX, Message};
pub use bind::{
    BindForm, Credentials, MtaBindArgument, MtaBindError, MtaBindResult, MtaInitiator,
    MtaResponder, Password,
};
pub use codes::{NonDeliveryDiagnosticCode, NonDeliveryReasonCode, TypeOfMtsUser};
pub use downgrade::{
    Downgraded, UnableToDowngrade, downgrade_message, downgrade_probe, downgrade_report,
};
pub use message::{
    MessageTransferEnvelope, PerRecipientIndicators, PerRecipientMessageTransferFields,
};
pub use probe::{PerRecipientProbeTransferFields, ProbeTransferEnvelope};
pub use report::{
    DeliveryReport, LastTraceInformation, NonDeliveryReport, PerRecipientReportTransferFields,
    Report, ReportTransferContent, ReportTransferEnvelope, ReportType,
};
