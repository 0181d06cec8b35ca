//! Addresses for comparison and routing (X.402 clause 18.4).
//!
//! Two addresses are equal when their keys are: case does not count, nor spaces at the ends, nor the number of
//! spaces between words. An attribute is equal in all its forms: PrintableString, TeletexString, Unicode, and a
//! number as NumericString. A country is equal to its number of X.121. A missing ADMD is equal to an ADMD of
//! spaces.

use vere_ber::BerError;

use std::fmt;

use super::attribute::Attribute;
use super::attributes::Attributes;
use super::country;
use super::model::OrAddress;
use super::text::AddressError;
use crate::domain::GlobalDomainIdentifier;

/// Between components; normalised text does not contain the separator.
const SEPARATOR: char = '\u{0}';

/// An address, normalised, as components from the country down to the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddressKey {
    text: String,
}

impl AddressKey {
    /// The key of an address.
    #[must_use]
    pub fn of(attributes: &Attributes) -> Self {
        let mut key = Self::of_part(attributes);
        if attributes.get(Attribute::Country).is_some()
            && attributes.get(Attribute::Administration).is_none()
        {
            let mut whole = attributes.clone();
            whole.set(Attribute::Administration, " ");
            key = Self::of_part(&whole);
        }
        key
    }

    /// The key of the upper part of addresses, such as a route; a missing ADMD stays missing.
    #[must_use]
    pub fn of_part(attributes: &Attributes) -> Self {
        let mut key = Self::default();
        for (attribute, text) in attributes.iter() {
            let text = folded(text);
            match attribute {
                Attribute::Country | Attribute::PostalCountry => {
                    key.push(attribute.keyword(), country::alpha2(&text).unwrap_or(&text));
                }
                _ => key.push(attribute.keyword(), &text),
            }
        }
        for (kind, value) in &attributes.domain_defined {
            key.push(&format!("DDA:{}", folded(kind)), &folded(value));
        }
        key
    }

    /// Reads a route: the upper part of addresses, in a text form of addresses.
    ///
    /// # Errors
    /// [`AddressError`] with the column of the fault.
    pub fn route(text: &str) -> Result<Self, AddressError> {
        Ok(Self::of_part(&text.parse()?))
    }

    /// The key as text, for maps.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The key and all upper parts, from the longest to the empty part.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        let starts = self.text.match_indices(SEPARATOR).map(|(start, _)| start);
        let mut ends: Vec<usize> = starts.chain([self.text.len()]).collect();
        ends.dedup();
        ends.into_iter()
            .rev()
            .filter_map(|end| self.text.get(..end))
    }

    /// Whether `route` is the key or an upper part of the key.
    #[must_use]
    pub fn starts_with(&self, route: &Self) -> bool {
        let rest = self.text.strip_prefix(&route.text);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SEPARATOR))
    }

    /// The number of attributes.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.text.matches(SEPARATOR).count()
    }

    /// Adds a component. A separator begins the component, so a prefix ends before a separator.
    fn push(&mut self, keyword: &str, text: &str) {
        self.text.push(SEPARATOR);
        self.text.push_str(keyword);
        self.text.push('=');
        self.text.push_str(text);
    }
}

impl OrAddress {
    /// The key for comparison.
    ///
    /// # Errors
    /// [`BerError`] if the value of an extension attribute is not of its type.
    pub fn key(&self) -> Result<AddressKey, BerError> {
        Ok(AddressKey::of(&self.attributes()?))
    }
}

impl GlobalDomainIdentifier {
    /// The key for comparison: the key of addresses of the domain, without a user.
    #[must_use]
    pub fn key(&self) -> AddressKey {
        let mut attributes = Attributes::default();
        attributes.set(Attribute::Country, self.country_name.text());
        attributes.set(
            Attribute::Administration,
            self.administration_domain_name.text(),
        );
        if let Some(private) = &self.private_domain_identifier {
            attributes.set(Attribute::Private, private.text());
        }
        AddressKey::of(&attributes)
    }
}

impl fmt::Display for AddressKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(
            &self
                .text
                .trim_start_matches(SEPARATOR)
                .replace(SEPARATOR, ";"),
        )
    }
}

/// A text in upper case, with one space between words.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split(|character: char| character.is_whitespace() || character == SEPARATOR) {
        if word.is_empty() {
            continue;
        }
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.chars().flat_map(char::to_uppercase));
    }
    folded
}
