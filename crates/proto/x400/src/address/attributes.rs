//! An O/R address as text: one text for each attribute.

use vere_ber::{BerError, PrintableString, TeletexString, Value, decode};

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::attribute::{Attribute, POSTAL};
use super::extension::{
    ExtendedNetworkAddress, ExtensionAttributeType as Kind, PdsParameter,
    PhysicalDeliveryCountryName, PostalCode, TeletexDomainDefinedAttribute, TeletexPersonalName,
    TerminalType, UnformattedPostalAddress, UniversalDomainDefinedAttribute, UniversalPersonalName,
    UniversalText,
};
use super::model::{BuiltInStandardAttributes, OrAddress};

/// The attributes of an address.
///
/// Of several forms of an attribute the PrintableString counts first, then the TeletexString, then the text in
/// Unicode. Not covered: `psap-address`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    values: BTreeMap<Attribute, String>,
    /// The domain-defined attributes in their order: type and value.
    pub domain_defined: Vec<(String, String)>,
}

impl Attributes {
    /// The attributes of an encoded address.
    ///
    /// # Errors
    /// [`BerError`] if the value of an extension attribute is not of its type.
    pub fn of(address: &OrAddress) -> Result<Self, BerError> {
        let mut attributes = Self::default();
        attributes.take_standard(&address.standard);
        for attribute in &address.domain_defined {
            let pair = (attribute.kind.text().into(), attribute.value.text().into());
            attributes.domain_defined.push(pair);
        }
        let source = Source(address);
        attributes
            .take_names(source)
            .map_err(|error| error.within("extension_attributes"))?;
        attributes
            .take_postal(source)
            .map_err(|error| error.within("extension_attributes"))?;
        attributes
            .take_domain_defined(source)
            .map_err(|error| error.within("extension_attributes"))?;
        Ok(attributes)
    }

    /// The text of an attribute.
    #[must_use]
    pub fn get(&self, attribute: Attribute) -> Option<&str> {
        self.values.get(&attribute).map(String::as_str)
    }

    /// Sets the text of an attribute.
    pub fn set(&mut self, attribute: Attribute, text: impl Into<String>) {
        self.values.insert(attribute, text.into());
    }

    /// Removes an attribute.
    pub fn remove(&mut self, attribute: Attribute) {
        self.values.remove(&attribute);
    }

    /// The attributes and their texts, in the order of [`Attribute`].
    pub fn iter(&self) -> impl Iterator<Item = (Attribute, &str)> {
        self.values
            .iter()
            .map(|(attribute, text)| (*attribute, text.as_str()))
    }

    /// Whether there is no attribute.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.domain_defined.is_empty()
    }

    /// Sets an absent attribute.
    fn offer(&mut self, attribute: Attribute, text: Option<impl Into<String>>) {
        if let Some(text) = text {
            self.values.entry(attribute).or_insert_with(|| text.into());
        }
    }

    fn take_standard(&mut self, standard: &BuiltInStandardAttributes) {
        self.offer(
            Attribute::Country,
            standard.country_name.as_ref().map(|name| name.text()),
        );
        let administration = standard.administration_domain_name.as_ref();
        self.offer(
            Attribute::Administration,
            administration.map(|name| name.text()),
        );
        self.offer(
            Attribute::Private,
            standard
                .private_domain_name
                .as_ref()
                .map(|name| name.text()),
        );
        self.offer(
            Attribute::Organization,
            standard
                .organization_name
                .as_ref()
                .map(PrintableString::text),
        );
        self.offer(
            Attribute::NetworkAddress,
            standard.network_address.as_ref().map(|text| text.text()),
        );
        let terminal = standard.terminal_identifier.as_ref();
        self.offer(
            Attribute::TerminalIdentifier,
            terminal.map(PrintableString::text),
        );
        let number = standard.numeric_user_identifier.as_ref();
        self.offer(
            Attribute::NumericUserIdentifier,
            number.map(|text| text.text()),
        );
        for (attribute, unit) in Attribute::UNITS
            .into_iter()
            .zip(&standard.organizational_unit_names)
        {
            self.offer(attribute, Some(unit.text()));
        }
        if let Some(name) = &standard.personal_name {
            self.offer(Attribute::Surname, Some(name.surname.text()));
            self.offer(
                Attribute::GivenName,
                name.given_name.as_ref().map(PrintableString::text),
            );
            self.offer(
                Attribute::Initials,
                name.initials.as_ref().map(PrintableString::text),
            );
            let qualifier = name.generation_qualifier.as_ref();
            self.offer(
                Attribute::GenerationQualifier,
                qualifier.map(PrintableString::text),
            );
        }
    }

    fn take_names(&mut self, source: Source<'_>) -> Result<(), BerError> {
        let printable: Option<PrintableString> = source.value(Kind::CommonName)?;
        self.offer(
            Attribute::CommonName,
            printable.as_ref().map(PrintableString::text),
        );
        self.take_text(
            source,
            Attribute::CommonName,
            Kind::TeletexCommonName,
            Kind::UniversalCommonName,
        )?;
        self.take_text(
            source,
            Attribute::Organization,
            Kind::TeletexOrganizationName,
            Kind::UniversalOrganizationName,
        )?;
        self.take_personal(source)?;
        self.take_units(source)?;
        let terminal: Option<TerminalType> = source.value(Kind::TerminalType)?;
        self.offer(
            Attribute::TerminalType,
            terminal.map(|kind| kind.to_string()),
        );
        if let Some(ExtendedNetworkAddress::Number(number)) =
            source.value(Kind::ExtendedNetworkAddress)?
        {
            self.offer(Attribute::NetworkNumber, Some(number.number.text()));
            let sub_address = number.sub_address.as_ref();
            self.offer(
                Attribute::NetworkSubAddress,
                sub_address.map(|text| text.text()),
            );
        }
        Ok(())
    }

    fn take_text(
        &mut self,
        source: Source<'_>,
        attribute: Attribute,
        teletex: Kind,
        universal: Kind,
    ) -> Result<(), BerError> {
        let text: Option<TeletexString> = source.value(teletex)?;
        self.offer(attribute, text.as_ref().map(TeletexString::text));
        let text: Option<UniversalText> = source.value(universal)?;
        self.offer(attribute, text.as_ref().map(UniversalText::text));
        Ok(())
    }

    /// A personal name comes whole from one form.
    fn take_personal(&mut self, source: Source<'_>) -> Result<(), BerError> {
        let teletex: Option<TeletexPersonalName> = source.value(Kind::TeletexPersonalName)?;
        if let Some(name) = teletex {
            let further = [name.given_name, name.initials, name.generation_qualifier];
            self.offer_personal((name.surname, further), TeletexString::text);
        }
        let universal: Option<UniversalPersonalName> = source.value(Kind::UniversalPersonalName)?;
        if let Some(name) = universal {
            let further = [name.given_name, name.initials, name.generation_qualifier];
            self.offer_personal((name.surname, further), UniversalText::text);
        }
        Ok(())
    }

    /// The parts of a personal name: the surname, and the others in their order. An address with a surname keeps its name.
    fn offer_personal<T>(
        &mut self,
        (surname, further): (T, [Option<T>; 3]),
        text: impl Fn(&T) -> Cow<'_, str>,
    ) {
        if self.get(Attribute::Surname).is_some() {
            return;
        }
        let parts = std::iter::once(Some(surname)).chain(further);
        for (attribute, part) in Attribute::PERSONAL.into_iter().zip(parts) {
            self.offer(attribute, part.as_ref().map(&text));
        }
    }

    fn take_units(&mut self, source: Source<'_>) -> Result<(), BerError> {
        let teletex: Option<Vec<TeletexString>> =
            source.value(Kind::TeletexOrganizationalUnitNames)?;
        for (attribute, unit) in Attribute::UNITS.into_iter().zip(teletex.iter().flatten()) {
            self.offer(attribute, Some(unit.text()));
        }
        let universal: Option<Vec<UniversalText>> =
            source.value(Kind::UniversalOrganizationalUnitNames)?;
        for (attribute, unit) in Attribute::UNITS.into_iter().zip(universal.iter().flatten()) {
            self.offer(attribute, Some(unit.text()));
        }
        Ok(())
    }

    fn take_postal(&mut self, source: Source<'_>) -> Result<(), BerError> {
        let service: Option<PrintableString> = source.value(Kind::PdsName)?;
        self.offer(
            Attribute::PdsName,
            service.as_ref().map(PrintableString::text),
        );
        let country = source.value(Kind::PhysicalDeliveryCountryName)?;
        self.offer(
            Attribute::PostalCountry,
            country.map(|country| match country {
                PhysicalDeliveryCountryName::Alpha2(text) => text.text().into_owned(),
                PhysicalDeliveryCountryName::Numeric(text) => text.text().into_owned(),
            }),
        );
        let code = source.value(Kind::PostalCode)?;
        self.offer(
            Attribute::PostalCode,
            code.map(|code| match code {
                PostalCode::Printable(text) => text.text().into_owned(),
                PostalCode::Numeric(text) => text.text().into_owned(),
            }),
        );
        for forms in POSTAL {
            let local: Option<PdsParameter> = source.value(forms.local)?;
            if let Some(local) = local {
                self.offer(
                    forms.attribute,
                    local.printable_string.as_ref().map(PrintableString::text),
                );
                self.offer(
                    forms.attribute,
                    local.teletex_string.as_ref().map(TeletexString::text),
                );
            }
            let universal: Option<UniversalText> = source.value(forms.universal)?;
            self.offer(forms.attribute, universal.as_ref().map(UniversalText::text));
        }
        self.take_lines(source)
    }

    /// A postal address without lines is line 1.
    fn take_lines(&mut self, source: Source<'_>) -> Result<(), BerError> {
        if let Some(local) =
            source.value::<UnformattedPostalAddress>(Kind::UnformattedPostalAddress)?
        {
            let lines = local.printable_address.unwrap_or_default();
            for (attribute, line) in Attribute::LINES.into_iter().zip(&lines) {
                self.offer(attribute, Some(line.text()));
            }
            self.offer(
                Attribute::Line1,
                local.teletex_string.as_ref().map(TeletexString::text),
            );
        }
        let universal: Option<UniversalText> =
            source.value(Kind::UniversalUnformattedPostalAddress)?;
        self.offer(
            Attribute::Line1,
            universal.as_ref().map(UniversalText::text),
        );
        Ok(())
    }

    /// A domain-defined attribute in a further form repeats the printable attribute of its type.
    fn take_domain_defined(&mut self, source: Source<'_>) -> Result<(), BerError> {
        let printable: Vec<String> = self
            .domain_defined
            .iter()
            .map(|(kind, _)| kind.clone())
            .collect();
        let teletex: Option<Vec<TeletexDomainDefinedAttribute>> =
            source.value(Kind::TeletexDomainDefinedAttributes)?;
        let universal: Option<Vec<UniversalDomainDefinedAttribute>> =
            source.value(Kind::UniversalDomainDefinedAttributes)?;
        let teletex = teletex.iter().flatten();
        let teletex = teletex.map(|attribute| (attribute.kind.text(), attribute.value.text()));
        let universal = universal.iter().flatten();
        let universal = universal.map(|attribute| (attribute.kind.text(), attribute.value.text()));
        for (kind, value) in teletex.chain(universal) {
            if !printable.iter().any(|known| *known == kind) {
                self.domain_defined.push((kind.into(), value.into()));
            }
        }
        Ok(())
    }
}

impl OrAddress {
    /// The attributes as text.
    ///
    /// # Errors
    /// [`BerError`] if the value of an extension attribute is not of its type.
    pub fn attributes(&self) -> Result<Attributes, BerError> {
        Attributes::of(self)
    }
}

/// The extension attributes of an address.
#[derive(Clone, Copy)]
struct Source<'a>(&'a OrAddress);

impl Source<'_> {
    fn value<T: Value>(self, kind: Kind) -> Result<Option<T>, BerError> {
        let value = self
            .0
            .extension(kind)
            .map(|value| decode(&value.0))
            .transpose();
        value.map_err(|error| error.within(kind.name().unwrap_or_default()))
    }
}
