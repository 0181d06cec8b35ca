//! Interpersonal messages (X.420): contents of type P22, and of type P2 of 1984.
//!
//! Text bodies are composed as [`Ia5TextBodyPart`] or as general text; body parts of other types are kept as
//! received.

mod ats;
mod body;
mod heading;
mod message;
mod notification;
mod show;

pub use ats::{AtsHeader, AtsPriority};
pub use body::{
    BodyPart, BodyPartError, ExtendedBodyPart, Ia5TextBodyPart, Ia5TextParameters, Repertoire,
};
pub use heading::{
    Heading, Importance, IpmIdentifier, IpmsExtension, NotificationRequests, OrDescriptor,
    RecipientSpecifier, Sensitivity,
};
pub use message::{InformationObject, Ipm};
pub use notification::{
    AcknowledgmentMode, DiscardReason, Ipn, IpnOutcome, NonReceiptFields, NonReceiptReason,
    ReceiptFields,
};
