//! O/R addresses (X.411 clause 8.5.5, X.402 clause 18): originators and recipients.
//!
//! [`OrAddress`] is the encoded address: an attribute occurs as PrintableString, as TeletexString and in
//! Unicode. [`Attributes`] is the address for people and for comparison: one text for each attribute.

mod amhs;
mod attribute;
mod attributes;
mod compose;
mod country;
mod extension;
mod key;
mod model;
mod print;
mod text;

pub use amhs::{Amhs, AmhsForm};
pub use attribute::Attribute;
pub use attributes::Attributes;
pub use compose::{ComposeError, ComposeFault};
pub use extension::{
    ExtendedNetworkAddress, ExtensionAttribute, ExtensionAttributeType, NetworkNumber,
    PdsParameter, PhysicalDeliveryCountryName, PostalCode, TeletexDomainDefinedAttribute,
    TeletexPersonalName, TerminalType, UnformattedPostalAddress, UniversalDomainDefinedAttribute,
    UniversalEncoding, UniversalPersonalName, UniversalText,
};
pub use key::AddressKey;
pub use model::{
    BuiltInDomainDefinedAttribute, BuiltInStandardAttributes, ExtensionAttributes, OrAddress,
    OrName, PersonalName,
};
pub use text::{AddressError, AddressFault};
