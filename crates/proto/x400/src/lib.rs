//! X.400: the envelopes of P1 (X.411), O/R addresses (X.402), interpersonal messages (X.420).
//!
//! An MTA receives a protocol data unit, reads its envelope, adds to the trace, and passes the content on
//! unchanged: [`Apdu::split`] and [`Apdu::to_pieces`]. Unknown elements, extensions, bits and codes are kept
//! and written again. Nothing here opens a connection or reads a clock; RTSE and the layers below are in
//! `vere-osi`.
//!
//! Reading order: [`Apdu`] and [`Message`], [`MessageTransferEnvelope`], [`ProbeTransferEnvelope`] and
//! [`Report`] (the envelopes), [`Extensions`] (fields after 1984), [`OrAddress`], [`Attributes`] and
//! [`AddressKey`] (addresses as encoded, as text, as routed), [`MtaBindArgument`] (how MTAs introduce
//! themselves), [`downgrade_message`] (systems of 1984), [`ipm`] (contents). The encoding is in `vere-ber`.
//!
//! Not covered: P3 and P7; the values of X.509 in extensions (certificates, tokens, signatures), which are kept
//! as octets.
//!
//! ```
//! use vere_x400::{AddressKey, OrAddress};
//!
//! let address: OrAddress = "G=John;S=Smith;O=Acme;P=Acme;A=Carrier;C=GB".parse()?;
//! let same: OrAddress = "/S=SMITH/G=john/O=ACME/PRMD=acme/ADMD=carrier/C=gb/".parse()?;
//! assert_eq!(address.key()?, same.key()?);
//! assert!(address.key()?.starts_with(&AddressKey::route("P=Acme;A=Carrier;C=GB")?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod address;
mod content;
mod domain;
mod envelope;
mod extension;
pub mod ipm;
mod lines;
mod time;
mod trace;

#[cfg(test)]
mod tests;

pub use address::{
    AddressError, AddressFault, AddressKey, Amhs, AmhsForm, Attribute, Attributes,
    BuiltInDomainDefinedAttribute, BuiltInStandardAttributes, ComposeError, ComposeFault,
    ExtendedNetworkAddress, ExtensionAttribute, ExtensionAttributeType, ExtensionAttributes,
    NetworkNumber, OrAddress, OrName, PdsParameter, PersonalName, PhysicalDeliveryCountryName,
    PostalCode, TeletexDomainDefinedAttribute, TeletexPersonalName, TerminalType,
    UnformattedPostalAddress, UniversalDomainDefinedAttribute, UniversalEncoding,
    UniversalPersonalName, UniversalText,
};
pub use content::{
    BuiltInContentType, BuiltInEncodedInformationTypes, ContentIdentifier, ContentType,
    ContentTypeError, EncodedInformationTypes, ExplicitConversion, PerMessageIndicators, Priority,
};
pub use domain::{
    AdministrationDomainName, CountryName, GlobalDomainIdentifier, MtsIdentifier, PrivateDomainName,
};
pub use envelope::{
    Apdu, ApduError, BindForm, Content, Credentials, DeliveryReport, Downgraded,
    ENVELOPE_OCTETS_MAX, LastTraceInformation, Message, MessageTransferEnvelope, MtaBindArgument,
    MtaBindError, MtaBindResult, MtaInitiator, MtaResponder, NonDeliveryDiagnosticCode,
    NonDeliveryReasonCode, NonDeliveryReport, Password, PerRecipientIndicators,
    PerRecipientMessageTransferFields, PerRecipientProbeTransferFields,
    PerRecipientReportTransferFields, ProbeTransferEnvelope, Report, ReportTransferContent,
    ReportTransferEnvelope, ReportType, TypeOfMtsUser, UnableToDowngrade, downgrade_message,
    downgrade_probe, downgrade_report,
};
pub use extension::{
    ContentCorrelator, Criticality, DeliveryMethod, DlExpansion, ExtensionField, ExtensionType,
    ExtensionValue, Extensions, IntendedRecipientName, OriginatorAndDlExpansion,
    PhysicalDeliveryModes, PhysicalDeliveryReportRequest, Redirection, RedirectionReason,
    RegisteredMailType, ReportingMtaName, SecurityClassification, SecurityLabel, StandardExtension,
    Switch,
};
pub use time::{Time, TimeError};
pub use trace::{
    Attempted, DomainSuppliedInformation, InternalTraceInformation,
    InternalTraceInformationElement, MtaSuppliedInformation, OtherActions, RoutingAction,
    TRANSFERS_MAX, TraceInformation, TraceInformationElement,
};
