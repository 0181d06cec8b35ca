//! From text to the encoded address.
//!
//! A text is encoded in the narrowest form with all characters: PrintableString, else TeletexString, else
//! Unicode. The parts of a personal name, and the organizational units, take one form together.

use vere_ber::{NumericString, PrintableString, TeletexString, Value};

use std::fmt;

use super::attribute::{Attribute, POSTAL};
use super::attributes::Attributes;
use super::extension::{
    ExtendedNetworkAddress, ExtensionAttribute, ExtensionAttributeType as Kind, NetworkNumber,
    PdsParameter, PhysicalDeliveryCountryName, PostalCode, TeletexDomainDefinedAttribute,
    TeletexPersonalName, TerminalType, UnformattedPostalAddress, UniversalDomainDefinedAttribute,
    UniversalPersonalName, UniversalText,
};
use super::model::{BuiltInDomainDefinedAttribute, OrAddress, PersonalName};
use crate::domain::{AdministrationDomainName, CountryName, PrivateDomainName};

/// Domain-defined attributes of an address, at most.
const DOMAIN_DEFINED_MAX: usize = 4;
/// Characters of the type and of the value of a domain-defined attribute.
const DOMAIN_DEFINED_CHARACTERS_MAX: (usize, usize) = (8, 128);

/// A fault of attributes as an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{keyword}: {fault}")]
pub struct ComposeError {
    /// The keyword of the attribute.
    pub keyword: String,
    /// The fault.
    pub fault: ComposeFault,
}

/// The fault of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComposeFault {
    /// Wrong characters; the characters allowed.
    Characters(&'static str),
    /// Too many characters; the number allowed, the number found.
    Length(usize, usize),
    /// No characters.
    Empty,
    /// The absence of a required second attribute; the keyword of the second attribute.
    Without(&'static str),
    /// Too many domain-defined attributes.
    TooMany,
}

impl fmt::Display for ComposeFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Characters(expected) => {
                write!(out, "expected {expected}; found other characters")
            }
            Self::Length(most, found) => {
                write!(out, "expected at most {most} characters; found {found}")
            }
            Self::Empty => write!(out, "expected a value; found nothing"),
            Self::Without(keyword) => write!(out, "expected {keyword} too; found none"),
            Self::TooMany => write!(
                out,
                "expected at most {DOMAIN_DEFINED_MAX} of them; found more"
            ),
        }
    }
}

impl Attributes {
    /// Encodes the address.
    ///
    /// # Errors
    /// [`ComposeError`] names the first attribute with wrong characters or a wrong length.
    pub fn to_address(&self) -> Result<OrAddress, ComposeError> {
        for (attribute, text) in self.iter() {
            check(attribute.keyword(), text, attribute.characters_max())?;
        }
        let mut address = OrAddress::default();
        self.put_domains(&mut address)?;
        self.put_terminal(&mut address)?;
        self.put_text(
            &mut address,
            Attribute::CommonName,
            [Kind::TeletexCommonName, Kind::UniversalCommonName],
        );
        self.put_text(
            &mut address,
            Attribute::Organization,
            [
                Kind::TeletexOrganizationName,
                Kind::UniversalOrganizationName,
            ],
        );
        self.put_units(&mut address)?;
        self.put_personal(&mut address)?;
        self.put_postal(&mut address)?;
        self.put_lines(&mut address)?;
        self.put_domain_defined(&mut address)?;
        Ok(address)
    }

    fn put_domains(&self, address: &mut OrAddress) -> Result<(), ComposeError> {
        let standard = &mut address.standard;
        standard.country_name = self.convert(Attribute::Country, |text| {
            let text = country(text)?;
            CountryName::new(&text).ok()
        })?;
        standard.administration_domain_name = self.convert(Attribute::Administration, |text| {
            AdministrationDomainName::new(text).ok()
        })?;
        standard.private_domain_name =
            self.convert(Attribute::Private, |text| PrivateDomainName::new(text).ok())?;
        Ok(())
    }

    fn put_terminal(&self, address: &mut OrAddress) -> Result<(), ComposeError> {
        let numeric = |text: &str| NumericString::new(text).ok();
        let standard = &mut address.standard;
        standard.network_address = self.convert(Attribute::NetworkAddress, numeric)?;
        standard.terminal_identifier = self.convert(Attribute::TerminalIdentifier, |text| {
            PrintableString::new(text).ok()
        })?;
        standard.numeric_user_identifier =
            self.convert(Attribute::NumericUserIdentifier, numeric)?;
        let terminal = self.convert(Attribute::TerminalType, terminal_type)?;
        push(address, Kind::TerminalType, terminal.as_ref());
        let sub_address = self.convert(Attribute::NetworkSubAddress, numeric)?;
        match self.convert(Attribute::NetworkNumber, numeric)? {
            Some(number) => {
                let number = NetworkNumber {
                    number,
                    sub_address,
                    ..NetworkNumber::default()
                };
                push(
                    address,
                    Kind::ExtendedNetworkAddress,
                    Some(&ExtendedNetworkAddress::Number(number)),
                );
            }
            None if sub_address.is_some() => {
                let keyword = Attribute::NetworkNumber.keyword();
                return Err(fault(
                    Attribute::NetworkSubAddress.keyword(),
                    ComposeFault::Without(keyword),
                ));
            }
            None => {}
        }
        Ok(())
    }

    /// Encodes common name or organization.
    fn put_text(
        &self,
        address: &mut OrAddress,
        attribute: Attribute,
        [teletex, universal]: [Kind; 2],
    ) {
        let Some(text) = self.get(attribute) else {
            return;
        };
        if let Ok(printable) = PrintableString::new(text) {
            match attribute {
                Attribute::Organization => address.standard.organization_name = Some(printable),
                _ => push(address, Kind::CommonName, Some(&printable)),
            }
        } else if let Ok(text) = TeletexString::new(text) {
            push(address, teletex, Some(&text));
        } else {
            push(address, universal, Some(&UniversalText::new(text)));
        }
    }

    fn put_units(&self, address: &mut OrAddress) -> Result<(), ComposeError> {
        let units = self.run(&Attribute::UNITS)?;
        if units.is_empty() {
            return Ok(());
        }
        if let Some(units) = all(&units, PrintableString::new) {
            address.standard.organizational_unit_names = units;
        } else if let Some(units) = all(&units, TeletexString::new) {
            push(address, Kind::TeletexOrganizationalUnitNames, Some(&units));
        } else {
            let units: Vec<UniversalText> =
                units.iter().map(|unit| UniversalText::new(unit)).collect();
            push(
                address,
                Kind::UniversalOrganizationalUnitNames,
                Some(&units),
            );
        }
        Ok(())
    }

    fn put_personal(&self, address: &mut OrAddress) -> Result<(), ComposeError> {
        let [surname, given_name, initials, qualifier] =
            Attribute::PERSONAL.map(|part| self.get(part));
        let Some(surname) = surname else {
            let other = Attribute::PERSONAL
                .into_iter()
                .find(|part| self.get(*part).is_some());
            let without = ComposeFault::Without(Attribute::Surname.keyword());
            return other.map_or(Ok(()), |part| Err(fault(part.keyword(), without)));
        };
        let parts: Vec<&str> = [Some(surname), given_name, initials, qualifier]
            .into_iter()
            .flatten()
            .collect();
        if all(&parts, PrintableString::new).is_some() {
            let part = |text: Option<&str>| text.and_then(|text| PrintableString::new(text).ok());
            address.standard.personal_name = Some(PersonalName {
                surname: part(Some(surname)).unwrap_or_default(),
                given_name: part(given_name),
                initials: part(initials),
                generation_qualifier: part(qualifier),
                ..PersonalName::default()
            });
        } else if all(&parts, TeletexString::new).is_some() {
            let part = |text: Option<&str>| text.and_then(|text| TeletexString::new(text).ok());
            let name = TeletexPersonalName {
                surname: part(Some(surname)).unwrap_or_default(),
                given_name: part(given_name),
                initials: part(initials),
                generation_qualifier: part(qualifier),
                ..TeletexPersonalName::default()
            };
            push(address, Kind::TeletexPersonalName, Some(&name));
        } else {
            let name = UniversalPersonalName {
                surname: UniversalText::new(surname),
                given_name: given_name.map(UniversalText::new),
                initials: initials.map(UniversalText::new),
                generation_qualifier: qualifier.map(UniversalText::new),
                ..UniversalPersonalName::default()
            };
            push(address, Kind::UniversalPersonalName, Some(&name));
        }
        Ok(())
    }

    fn put_postal(&self, address: &mut OrAddress) -> Result<(), ComposeError> {
        let service = self.convert(Attribute::PdsName, |text| PrintableString::new(text).ok())?;
        push(address, Kind::PdsName, service.as_ref());
        let country = self.convert(Attribute::PostalCountry, |text| {
            let text = country(text)?;
            let numeric = NumericString::new(&text).map(PhysicalDeliveryCountryName::Numeric);
            let alpha2 = || PrintableString::new(&text).map(PhysicalDeliveryCountryName::Alpha2);
            numeric.or_else(|_| alpha2()).ok()
        })?;
        push(address, Kind::PhysicalDeliveryCountryName, country.as_ref());
        let code = self.convert(Attribute::PostalCode, |text| {
            let numeric = NumericString::new(text).map(PostalCode::Numeric);
            numeric
                .or_else(|_| PrintableString::new(text).map(PostalCode::Printable))
                .ok()
        })?;
        push(address, Kind::PostalCode, code.as_ref());
        for forms in POSTAL {
            let Some(text) = self.get(forms.attribute) else {
                continue;
            };
            let printable_string = PrintableString::new(text).ok();
            let teletex_string = TeletexString::new(text)
                .ok()
                .filter(|_| printable_string.is_none());
            if printable_string.is_some() || teletex_string.is_some() {
                let local = PdsParameter {
                    printable_string,
                    teletex_string,
                    ..PdsParameter::default()
                };
                push(address, forms.local, Some(&local));
            } else {
                push(address, forms.universal, Some(&UniversalText::new(text)));
            }
        }
        Ok(())
    }

    /// Several lines have to be printable: X.411 defines lines as PrintableString only.
    fn put_lines(&self, address: &mut OrAddress) -> Result<(), ComposeError> {
        let lines = self.run(&Attribute::LINES)?;
        let printable = all(&lines, PrintableString::new);
        match (lines.as_slice(), printable) {
            ([], _) => {}
            (_, Some(lines)) => {
                let local = UnformattedPostalAddress {
                    printable_address: Some(lines),
                    ..Default::default()
                };
                push(address, Kind::UnformattedPostalAddress, Some(&local));
            }
            ([line], None) => match TeletexString::new(line) {
                Ok(text) => {
                    let local = UnformattedPostalAddress {
                        teletex_string: Some(text),
                        ..Default::default()
                    };
                    push(address, Kind::UnformattedPostalAddress, Some(&local));
                }
                Err(_) => {
                    push(
                        address,
                        Kind::UniversalUnformattedPostalAddress,
                        Some(&UniversalText::new(line)),
                    );
                }
            },
            _ => {
                let expected =
                    ComposeFault::Characters("characters of PrintableString in several lines");
                return Err(fault(Attribute::Line1.keyword(), expected));
            }
        }
        Ok(())
    }

    fn put_domain_defined(&self, address: &mut OrAddress) -> Result<(), ComposeError> {
        let (mut teletex, mut universal) = (Vec::new(), Vec::new());
        if self.domain_defined.len() > DOMAIN_DEFINED_MAX {
            return Err(fault("DDA", ComposeFault::TooMany));
        }
        for (kind, value) in &self.domain_defined {
            let (kind_max, value_max) = DOMAIN_DEFINED_CHARACTERS_MAX;
            check("DDA", kind, kind_max)?;
            check(&format!("DDA:{kind}"), value, value_max)?;
            if let (Ok(kind), Ok(value)) = (PrintableString::new(kind), PrintableString::new(value))
            {
                address.domain_defined.push(BuiltInDomainDefinedAttribute {
                    kind,
                    value,
                    ..Default::default()
                });
            } else if let (Ok(kind), Ok(value)) =
                (TeletexString::new(kind), TeletexString::new(value))
            {
                teletex.push(TeletexDomainDefinedAttribute {
                    kind,
                    value,
                    ..Default::default()
                });
            } else {
                let (kind, value) = (UniversalText::new(kind), UniversalText::new(value));
                universal.push(UniversalDomainDefinedAttribute {
                    kind,
                    value,
                    ..Default::default()
                });
            }
        }
        push(
            address,
            Kind::TeletexDomainDefinedAttributes,
            Some(&teletex).filter(|list| !list.is_empty()),
        );
        push(
            address,
            Kind::UniversalDomainDefinedAttributes,
            Some(&universal).filter(|list| !list.is_empty()),
        );
        Ok(())
    }

    /// The texts of numbered attributes without a gap.
    fn run(&self, attributes: &[Attribute]) -> Result<Vec<&str>, ComposeError> {
        let mut texts = Vec::new();
        let mut gap = None;
        for attribute in attributes {
            match (self.get(*attribute), gap) {
                (Some(_), Some(gap)) => {
                    let gap: Attribute = gap;
                    return Err(fault(
                        attribute.keyword(),
                        ComposeFault::Without(gap.keyword()),
                    ));
                }
                (Some(text), None) => texts.push(text),
                (None, _) => gap = gap.or(Some(*attribute)),
            }
        }
        Ok(texts)
    }

    fn convert<T>(
        &self,
        attribute: Attribute,
        convert: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ComposeError> {
        let Some(text) = self.get(attribute) else {
            return Ok(None);
        };
        let expected = match attribute {
            Attribute::Country | Attribute::PostalCountry => "two letters or three digits",
            Attribute::NetworkAddress
            | Attribute::NumericUserIdentifier
            | Attribute::NetworkNumber
            | Attribute::NetworkSubAddress => "digits and spaces",
            Attribute::TerminalType => "tlx, ttx, g3fax, g4fax, ia5, vtx or a number",
            _ => "characters of PrintableString",
        };
        let converted = convert(text).ok_or(ComposeFault::Characters(expected));
        converted
            .map(Some)
            .map_err(|wrong| fault(attribute.keyword(), wrong))
    }
}

fn fault(keyword: &str, fault: ComposeFault) -> ComposeError {
    ComposeError {
        keyword: keyword.into(),
        fault,
    }
}

fn check(keyword: &str, text: &str, most: usize) -> Result<(), ComposeError> {
    match text.chars().count() {
        0 => Err(fault(keyword, ComposeFault::Empty)),
        found if found > most => Err(fault(keyword, ComposeFault::Length(most, found))),
        _ => Ok(()),
    }
}

fn push<T: Value>(address: &mut OrAddress, kind: Kind, value: Option<&T>) {
    address
        .extension
        .0
        .extend(value.map(|value| ExtensionAttribute::new(kind, value)));
}

/// The strings of all texts, if all texts are in the alphabet.
fn all<T, E>(texts: &[&str], string: impl Fn(&str) -> Result<T, E>) -> Option<Vec<T>> {
    texts.iter().map(|text| string(text).ok()).collect()
}

/// Two letters, which become capital letters, or three digits.
fn country(text: &str) -> Option<String> {
    let letters = text.len() == 2 && text.bytes().all(|octet| octet.is_ascii_alphabetic());
    let digits = text.len() == 3 && text.bytes().all(|octet| octet.is_ascii_digit());
    (letters || digits).then(|| text.to_ascii_uppercase())
}

fn terminal_type(text: &str) -> Option<TerminalType> {
    const NAMES: [(&str, &str); 6] = [
        ("tlx", "telex"),
        ("ttx", "teletex"),
        ("g3fax", "g3-facsimile"),
        ("g4fax", "g4-facsimile"),
        ("ia5", "ia5-terminal"),
        ("vtx", "videotex"),
    ];
    let is = |name: &str| name.eq_ignore_ascii_case(text);
    let code = match NAMES
        .iter()
        .zip(3..)
        .find(|((short, long), _)| is(short) || is(long))
    {
        Some((_, code)) => code,
        None => text.parse().ok()?,
    };
    Some(TerminalType::from_code(code))
}
