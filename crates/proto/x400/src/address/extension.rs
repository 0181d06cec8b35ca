//! Extension attributes (X.411 clause 8.5.5.3).

use vere_ber::{
    Any, BmpString, NumericString, PrintableString, Tag, TeletexString, UniversalString, Value,
    choice, codes, encode, record,
};

use std::borrow::Cow;

codes! {
    /// `ExtensionAttributeType`
    pub enum ExtensionAttributeType [Tag::INTEGER] {
        CommonName = 1, "common-name";
        TeletexCommonName = 2, "teletex-common-name";
        TeletexOrganizationName = 3, "teletex-organization-name";
        TeletexPersonalName = 4, "teletex-personal-name";
        TeletexOrganizationalUnitNames = 5, "teletex-organizational-unit-names";
        TeletexDomainDefinedAttributes = 6, "teletex-domain-defined-attributes";
        PdsName = 7, "pds-name";
        PhysicalDeliveryCountryName = 8, "physical-delivery-country-name";
        PostalCode = 9, "postal-code";
        PhysicalDeliveryOfficeName = 10, "physical-delivery-office-name";
        PhysicalDeliveryOfficeNumber = 11, "physical-delivery-office-number";
        ExtensionOrAddressComponents = 12, "extension-OR-address-components";
        PhysicalDeliveryPersonalName = 13, "physical-delivery-personal-name";
        PhysicalDeliveryOrganizationName = 14, "physical-delivery-organization-name";
        ExtensionPhysicalDeliveryAddressComponents = 15, "extension-physical-delivery-address-components";
        UnformattedPostalAddress = 16, "unformatted-postal-address";
        StreetAddress = 17, "street-address";
        PostOfficeBoxAddress = 18, "post-office-box-address";
        PosteRestanteAddress = 19, "poste-restante-address";
        UniquePostalName = 20, "unique-postal-name";
        LocalPostalAttributes = 21, "local-postal-attributes";
        ExtendedNetworkAddress = 22, "extended-network-address";
        TerminalType = 23, "terminal-type";
        UniversalCommonName = 24, "universal-common-name";
        UniversalOrganizationName = 25, "universal-organization-name";
        UniversalPersonalName = 26, "universal-personal-name";
        UniversalOrganizationalUnitNames = 27, "universal-organizational-unit-names";
        UniversalDomainDefinedAttributes = 28, "universal-domain-defined-attributes";
        UniversalPhysicalDeliveryOfficeName = 29, "universal-physical-delivery-office-name";
        UniversalPhysicalDeliveryOfficeNumber = 30, "universal-physical-delivery-office-number";
        UniversalExtensionOrAddressComponents = 31, "universal-extension-OR-address-components";
        UniversalPhysicalDeliveryPersonalName = 32, "universal-physical-delivery-personal-name";
        UniversalPhysicalDeliveryOrganizationName = 33, "universal-physical-delivery-organization-name";
        UniversalExtensionPhysicalDeliveryAddressComponents = 34, "universal-extension-physical-delivery-address-components";
        UniversalUnformattedPostalAddress = 35, "universal-unformatted-postal-address";
        UniversalStreetAddress = 36, "universal-street-address";
        UniversalPostOfficeBoxAddress = 37, "universal-post-office-box-address";
        UniversalPosteRestanteAddress = 38, "universal-poste-restante-address";
        UniversalUniquePostalName = 39, "universal-unique-postal-name";
        UniversalLocalPostalAttributes = 40, "universal-local-postal-attributes";
    }
}

record! {
    /// `ExtensionAttribute`
    pub struct ExtensionAttribute [Tag::SEQUENCE] {
        /// `extension-attribute-type`
        kind: required @0 ExtensionAttributeType,
        /// `extension-attribute-value`, as received.
        value: required @1 Any,
    }
}

impl ExtensionAttribute {
    /// The extension attribute of this type and value.
    pub fn new<T: Value>(kind: ExtensionAttributeType, value: &T) -> Self {
        Self {
            kind,
            value: Any(encode(value)),
            ..Self::default()
        }
    }
}

record! {
    /// `TeletexPersonalName`
    pub struct TeletexPersonalName [Tag::SET] {
        /// `surname`
        surname: required @0 TeletexString,
        /// `given-name`
        given_name: optional @1 TeletexString,
        /// `initials`
        initials: optional @2 TeletexString,
        /// `generation-qualifier`
        generation_qualifier: optional @3 TeletexString,
    }
}

choice! {
    /// The characters of a `UniversalOrBMPString`.
    pub enum UniversalEncoding {
        /// `two-octets`
        TwoOctets: BmpString,
        /// `four-octets`
        FourOctets: UniversalString,
    }
}

record! {
    /// `UniversalOrBMPString`: text in Unicode.
    pub struct UniversalText [Tag::SET] {
        /// `character-encoding`
        character_encoding: required UniversalEncoding,
        /// `iso-639-language-code`
        language: optional PrintableString,
    }
}

impl UniversalText {
    /// The text in two octets for each character, if possible, else in four.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let four_octets = || UniversalString::new(text).map(UniversalEncoding::FourOctets);
        let encoding = BmpString::new(text)
            .map(UniversalEncoding::TwoOctets)
            .or_else(|_| four_octets());
        Self {
            character_encoding: encoding.unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.character_encoding {
            UniversalEncoding::TwoOctets(text) => text.text(),
            UniversalEncoding::FourOctets(text) => text.text(),
        }
    }
}

record! {
    /// `UniversalPersonalName`
    pub struct UniversalPersonalName [Tag::SET] {
        /// `surname`
        surname: required @0 UniversalText,
        /// `given-name`
        given_name: optional @1 UniversalText,
        /// `initials`
        initials: optional @2 UniversalText,
        /// `generation-qualifier`
        generation_qualifier: optional @3 UniversalText,
    }
}

record! {
    /// `TeletexDomainDefinedAttribute`
    pub struct TeletexDomainDefinedAttribute [Tag::SEQUENCE] {
        /// `type`
        kind: required TeletexString,
        /// `value`
        value: required TeletexString,
    }
}

record! {
    /// `UniversalDomainDefinedAttribute`
    pub struct UniversalDomainDefinedAttribute [Tag::SEQUENCE] {
        /// `type`
        kind: required UniversalText,
        /// `value`
        value: required UniversalText,
    }
}

record! {
    /// `PDSParameter`: a part of a postal address.
    pub struct PdsParameter [Tag::SET] {
        /// `printable-string`
        printable_string: optional PrintableString,
        /// `teletex-string`
        teletex_string: optional TeletexString,
    }
}

record! {
    /// `UnformattedPostalAddress`
    pub struct UnformattedPostalAddress [Tag::SET] {
        /// `printable-address`: at most six lines.
        printable_address: optional Vec<PrintableString>,
        /// `teletex-string`
        teletex_string: optional TeletexString,
    }
}

choice! {
    /// `PhysicalDeliveryCountryName`
    pub enum PhysicalDeliveryCountryName {
        /// `iso-3166-alpha2-code`
        Alpha2: PrintableString,
        /// `x121-dcc-code`
        Numeric: NumericString,
    }
}

choice! {
    /// `PostalCode`
    pub enum PostalCode {
        /// `printable-code`
        Printable: PrintableString,
        /// `numeric-code`
        Numeric: NumericString,
    }
}

record! {
    /// `e163-4-address`
    pub struct NetworkNumber [Tag::SEQUENCE] {
        /// `number`
        number: required @0 NumericString,
        /// `sub-address`
        sub_address: optional @1 NumericString,
    }
}

choice! {
    /// `ExtendedNetworkAddress`
    pub enum ExtendedNetworkAddress {
        /// `e163-4-address`
        Number: NetworkNumber,
        /// `psap-address`, as received.
        Psap: @0 Any,
    }
}

codes! {
    /// `TerminalType`
    pub enum TerminalType [Tag::INTEGER] {
        Telex = 3, "tlx";
        Teletex = 4, "ttx";
        G3Facsimile = 5, "g3fax";
        G4Facsimile = 6, "g4fax";
        Ia5Terminal = 7, "ia5";
        Videotex = 8, "vtx";
    }
}
