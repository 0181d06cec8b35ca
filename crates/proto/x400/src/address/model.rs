//! Addresses as X.411 encodes addresses.

use vere_ber::{
    Any, BerError, Element, NumericString, PrintableString, Tag, Value, Writer, list, record,
};

use super::extension::{ExtensionAttribute, ExtensionAttributeType};
use crate::domain::{AdministrationDomainName, CountryName, PrivateDomainName};

record! {
    /// `PersonalName`
    pub struct PersonalName [Tag::SET] {
        /// `surname`
        surname: required @0 PrintableString,
        /// `given-name`
        given_name: optional @1 PrintableString,
        /// `initials`
        initials: optional @2 PrintableString,
        /// `generation-qualifier`
        generation_qualifier: optional @3 PrintableString,
    }
}

record! {
    /// `BuiltInStandardAttributes`
    pub struct BuiltInStandardAttributes [Tag::SEQUENCE] {
        /// `country-name`
        country_name: optional CountryName,
        /// `administration-domain-name`
        administration_domain_name: optional AdministrationDomainName,
        /// `network-address`
        network_address: optional @0 NumericString,
        /// `terminal-identifier`
        terminal_identifier: optional @1 PrintableString,
        /// `private-domain-name`
        private_domain_name: optional @2 PrivateDomainName,
        /// `organization-name`
        organization_name: optional @3 PrintableString,
        /// `numeric-user-identifier`
        numeric_user_identifier: optional @4 NumericString,
        /// `personal-name`
        personal_name: optional @5 PersonalName,
        /// `organizational-unit-names`, most significant first.
        organizational_unit_names: default @6 Vec<PrintableString>,
    }
}

record! {
    /// `BuiltInDomainDefinedAttribute`
    pub struct BuiltInDomainDefinedAttribute [Tag::SEQUENCE] {
        /// `type`
        kind: required PrintableString,
        /// `value`
        value: required PrintableString,
    }
}

list! {
    /// `ExtensionAttributes`
    pub struct ExtensionAttributes [Tag::SET] of ExtensionAttribute
}

record! {
    /// `ORAddress`
    pub struct OrAddress [Tag::SEQUENCE] {
        /// `built-in-standard-attributes`
        standard: required BuiltInStandardAttributes,
        /// `built-in-domain-defined-attributes`
        domain_defined: default Vec<BuiltInDomainDefinedAttribute>,
        /// `extension-attributes`
        extension: default ExtensionAttributes,
    }
}

impl OrAddress {
    /// Whether there is no address, only a directory name beside it.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        *self
            == Self {
                unknown: self.unknown.clone(),
                ..Self::default()
            }
    }

    /// The extension attribute of this type.
    #[must_use]
    pub fn extension(&self, kind: ExtensionAttributeType) -> Option<&Any> {
        let found = self
            .extension
            .0
            .iter()
            .find(|attribute| attribute.kind == kind);
        found.map(|attribute| &attribute.value)
    }
}

/// `ORName`: an address, and the name of its user in the directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OrName {
    /// The address. Its unknown elements contain the directory name.
    pub address: OrAddress,
}

impl OrName {
    /// The identifier octet of `directory-name`, `[0]`.
    const DIRECTORY_NAME: u8 = 0xA0;

    /// `directory-name`, as received.
    #[must_use]
    pub fn directory_name(&self) -> Option<&[u8]> {
        let mut elements = self.address.unknown.0.iter();
        elements
            .find(|element| element.first() == Some(&Self::DIRECTORY_NAME))
            .map(AsRef::as_ref)
    }

    /// Removes the directory name.
    pub fn remove_directory_name(&mut self) {
        self.address
            .unknown
            .0
            .retain(|element| element.first() != Some(&Self::DIRECTORY_NAME));
    }
}

impl From<OrAddress> for OrName {
    fn from(address: OrAddress) -> Self {
        Self { address }
    }
}

impl Value for OrName {
    const NAME: &'static str = "ORName";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::application(0)
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        OrAddress::read(element).map(Self::from)
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::application(0), out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        self.address.write_tagged(tag, out);
    }
}
