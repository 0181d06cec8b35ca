//! The attributes of an O/R address and their keywords.

use super::extension::ExtensionAttributeType as Kind;

/// A standard or extension attribute, in the order of routing: the domains from the top, then the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attribute {
    /// `country-name`
    Country,
    /// `administration-domain-name`
    Administration,
    /// `private-domain-name`
    Private,
    /// `organization-name`
    Organization,
    /// The most significant of `organizational-unit-names`.
    Unit1,
    /// The second of `organizational-unit-names`.
    Unit2,
    /// The third of `organizational-unit-names`.
    Unit3,
    /// The fourth of `organizational-unit-names`.
    Unit4,
    /// `network-address`: a number of X.121.
    NetworkAddress,
    /// `number` of `extended-network-address`: a number of E.163 or E.164.
    NetworkNumber,
    /// `sub-address` of `extended-network-address`.
    NetworkSubAddress,
    /// `terminal-identifier`
    TerminalIdentifier,
    /// `terminal-type`
    TerminalType,
    /// `numeric-user-identifier`
    NumericUserIdentifier,
    /// `common-name`
    CommonName,
    /// `surname`
    Surname,
    /// `given-name`
    GivenName,
    /// `initials`
    Initials,
    /// `generation-qualifier`
    GenerationQualifier,
    /// `pds-name`
    PdsName,
    /// `physical-delivery-country-name`
    PostalCountry,
    /// `postal-code`
    PostalCode,
    /// `physical-delivery-office-name`
    PostalOfficeName,
    /// `physical-delivery-office-number`
    PostalOfficeNumber,
    /// `physical-delivery-organization-name`
    PostalOrganization,
    /// `physical-delivery-personal-name`
    PostalPersonalName,
    /// `street-address`
    Street,
    /// `post-office-box-address`
    PostOfficeBox,
    /// `poste-restante-address`
    PosteRestante,
    /// `unique-postal-name`
    UniquePostalName,
    /// `local-postal-attributes`
    LocalPostal,
    /// `extension-OR-address-components`
    PostalAddressExtension,
    /// `extension-physical-delivery-address-components`
    PostalDeliveryExtension,
    /// Line 1 of `unformatted-postal-address`.
    Line1,
    /// Line 2 of `unformatted-postal-address`.
    Line2,
    /// Line 3 of `unformatted-postal-address`.
    Line3,
    /// Line 4 of `unformatted-postal-address`.
    Line4,
    /// Line 5 of `unformatted-postal-address`.
    Line5,
    /// Line 6 of `unformatted-postal-address`.
    Line6,
}

/// A row: the attribute, the keywords in RFC 1685 and RFC 2156, further keywords, the characters of the longest text.
type Row = (
    Attribute,
    &'static str,
    &'static str,
    &'static [&'static str],
    usize,
);

/// All attributes, in the order of RFC 1685. The lengths are the upper bounds of X.411.
const ROWS: &[Row] = &[
    (Attribute::GivenName, "G", "G", &[], 16),
    (Attribute::Initials, "I", "I", &[], 5),
    (Attribute::Surname, "S", "S", &[], 40),
    (Attribute::GenerationQualifier, "Q", "GQ", &[], 3),
    (Attribute::CommonName, "CN", "CN", &[], 64),
    (Attribute::NetworkAddress, "X.121", "X121", &[], 16),
    (
        Attribute::NetworkNumber,
        "NET-NUM",
        "NET-NUM",
        &["ISDN", "E.164"],
        15,
    ),
    (Attribute::NetworkSubAddress, "NET-SUB", "NET-SUB", &[], 40),
    (Attribute::TerminalIdentifier, "T-ID", "T-ID", &[], 24),
    (Attribute::TerminalType, "T-TY", "T-TY", &["NET-TTYPE"], 16),
    (Attribute::NumericUserIdentifier, "N-ID", "UA-ID", &[], 32),
    (Attribute::PostalPersonalName, "PD-PN", "PD-PN", &[], 30),
    (Attribute::PostalOrganization, "PD-O", "PD-O", &[], 30),
    (Attribute::Street, "PD-S", "PD-STREET", &["STREET"], 30),
    (Attribute::PostOfficeBox, "PD-B", "PD-BOX", &["PO-BOX"], 30),
    (
        Attribute::PosteRestante,
        "PD-R",
        "PD-RESTANTE",
        &["POSTE-RESTANTE"],
        30,
    ),
    (Attribute::UniquePostalName, "PD-U", "PD-UNIQUE", &[], 30),
    (Attribute::LocalPostal, "PD-L", "PD-LOCAL", &[], 30),
    (
        Attribute::PostalAddressExtension,
        "PD-EA",
        "PD-EXT-ADDRESS",
        &["PD-EXT-D"],
        30,
    ),
    (
        Attribute::PostalDeliveryExtension,
        "PD-ED",
        "PD-EXT-DELIVERY",
        &["PD-EXT-LOC"],
        30,
    ),
    (
        Attribute::PostalOfficeNumber,
        "PD-OFN",
        "PD-OFFICE-NUM",
        &["PD-OFFICE-NUMBER", "PD-OFFICE NUMBER"],
        30,
    ),
    (Attribute::PostalOfficeName, "PD-OF", "PD-OFFICE", &[], 30),
    (Attribute::PostalCode, "PD-PC", "PD-CODE", &["POSTCODE"], 16),
    (Attribute::PostalCountry, "PD-C", "PD-C", &[], 3),
    (
        Attribute::PdsName,
        "PD-SN",
        "PD-SERVICE",
        &["PD-SYSTEM"],
        16,
    ),
    (Attribute::Line1, "PD-A1", "PD-A1", &[], 30),
    (Attribute::Line2, "PD-A2", "PD-A2", &[], 30),
    (Attribute::Line3, "PD-A3", "PD-A3", &[], 30),
    (Attribute::Line4, "PD-A4", "PD-A4", &[], 30),
    (Attribute::Line5, "PD-A5", "PD-A5", &[], 30),
    (Attribute::Line6, "PD-A6", "PD-A6", &[], 30),
    (Attribute::Organization, "O", "O", &[], 64),
    (Attribute::Unit1, "OU1", "OU1", &[], 32),
    (Attribute::Unit2, "OU2", "OU2", &[], 32),
    (Attribute::Unit3, "OU3", "OU3", &[], 32),
    (Attribute::Unit4, "OU4", "OU4", &[], 32),
    (Attribute::Private, "P", "PRMD", &[], 16),
    (Attribute::Administration, "A", "ADMD", &[], 16),
    (Attribute::Country, "C", "C", &[], 3),
];

/// The encodings of an extension attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PostalForms {
    pub(super) attribute: Attribute,
    /// The `PDSParameter`.
    pub(super) local: Kind,
    /// The `UniversalPDSParameter`.
    pub(super) universal: Kind,
}

const fn postal(attribute: Attribute, local: Kind, universal: Kind) -> PostalForms {
    PostalForms {
        attribute,
        local,
        universal,
    }
}

/// The postal attributes of type `PDSParameter`.
pub(super) const POSTAL: &[PostalForms] = &[
    postal(
        Attribute::PostalOfficeName,
        Kind::PhysicalDeliveryOfficeName,
        Kind::UniversalPhysicalDeliveryOfficeName,
    ),
    postal(
        Attribute::PostalOfficeNumber,
        Kind::PhysicalDeliveryOfficeNumber,
        Kind::UniversalPhysicalDeliveryOfficeNumber,
    ),
    postal(
        Attribute::PostalAddressExtension,
        Kind::ExtensionOrAddressComponents,
        Kind::UniversalExtensionOrAddressComponents,
    ),
    postal(
        Attribute::PostalPersonalName,
        Kind::PhysicalDeliveryPersonalName,
        Kind::UniversalPhysicalDeliveryPersonalName,
    ),
    postal(
        Attribute::PostalOrganization,
        Kind::PhysicalDeliveryOrganizationName,
        Kind::UniversalPhysicalDeliveryOrganizationName,
    ),
    postal(
        Attribute::PostalDeliveryExtension,
        Kind::ExtensionPhysicalDeliveryAddressComponents,
        Kind::UniversalExtensionPhysicalDeliveryAddressComponents,
    ),
    postal(
        Attribute::Street,
        Kind::StreetAddress,
        Kind::UniversalStreetAddress,
    ),
    postal(
        Attribute::PostOfficeBox,
        Kind::PostOfficeBoxAddress,
        Kind::UniversalPostOfficeBoxAddress,
    ),
    postal(
        Attribute::PosteRestante,
        Kind::PosteRestanteAddress,
        Kind::UniversalPosteRestanteAddress,
    ),
    postal(
        Attribute::UniquePostalName,
        Kind::UniquePostalName,
        Kind::UniversalUniquePostalName,
    ),
    postal(
        Attribute::LocalPostal,
        Kind::LocalPostalAttributes,
        Kind::UniversalLocalPostalAttributes,
    ),
];

impl Attribute {
    /// The organizational units, most significant first.
    pub const UNITS: [Self; 4] = [Self::Unit1, Self::Unit2, Self::Unit3, Self::Unit4];
    /// The parts of a personal name.
    pub const PERSONAL: [Self; 4] = [
        Self::Surname,
        Self::GivenName,
        Self::Initials,
        Self::GenerationQualifier,
    ];
    /// The lines of an unformatted postal address.
    pub const LINES: [Self; 6] = [
        Self::Line1,
        Self::Line2,
        Self::Line3,
        Self::Line4,
        Self::Line5,
        Self::Line6,
    ];

    /// All attributes in the order of RFC 1685, which ends with the country.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|(attribute, ..)| *attribute)
    }

    /// The attribute of a keyword of RFC 1685 or RFC 2156, in any case.
    #[must_use]
    pub fn from_keyword(keyword: &str) -> Option<Self> {
        let is = |known: &str| known.eq_ignore_ascii_case(keyword);
        let found = ROWS.iter().find(|(_, local, mixer, others, _)| {
            is(local) || is(mixer) || others.iter().any(|other| is(other))
        });
        found.map(|(attribute, ..)| *attribute)
    }

    /// The keyword of RFC 1685.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        self.row().map_or("", |(_, keyword, ..)| keyword)
    }

    /// The keyword of RFC 2156.
    #[must_use]
    pub fn mixer_keyword(self) -> &'static str {
        self.row().map_or("", |(_, _, keyword, ..)| keyword)
    }

    /// The characters of the longest text.
    #[must_use]
    pub fn characters_max(self) -> usize {
        self.row().map_or(0, |(.., most)| *most)
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|(attribute, ..)| *attribute == self)
    }
}
