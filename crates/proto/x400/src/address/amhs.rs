//! The address forms of the aeronautical message handling system (ICAO Doc 9880 part II).
//!
//! ```text
//! XF    C=XX;A=ICAO;P=<private domain>;O=AFTN;OU1=<eight letters>
//! CAAS  C=XX;A=ICAO;P=<private domain>;O=<organization>;OU1=<four letters>;CN=<eight letters>
//! ```
//!
//! The eight letters are an address of the aeronautical fixed network; its first four are a location.

use super::attribute::Attribute;
use super::attributes::Attributes;

/// Letters of an address of the fixed network, and of a location.
const ADDRESS_LETTERS: usize = 8;
const LOCATION_LETTERS: usize = 4;

/// An aeronautical address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Amhs {
    /// The private domain.
    pub private_domain: String,
    /// The form, and its further attributes.
    pub form: AmhsForm,
    /// The address in the fixed network: eight capital letters.
    pub address: String,
}

/// The two forms.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AmhsForm {
    /// XF, translated form: the organization is AFTN.
    Xf,
    /// CAAS, common addressing scheme.
    Caas {
        /// The organization.
        organization: String,
        /// The location: four capital letters, which need not begin the address.
        location: String,
    },
}

impl Amhs {
    /// The aeronautical address of these attributes, marked by the country `XX` and the ADMD `ICAO`.
    #[must_use]
    pub fn of(attributes: &Attributes) -> Option<Self> {
        let upper = |attribute| {
            attributes
                .get(attribute)
                .map(|text| text.trim().to_ascii_uppercase())
        };
        if upper(Attribute::Country)? != "XX" || upper(Attribute::Administration)? != "ICAO" {
            return None;
        }
        let private_domain = upper(Attribute::Private)?;
        let organization = upper(Attribute::Organization)?;
        let unit = upper(Attribute::Unit1)?;
        let (form, address) = match upper(Attribute::CommonName) {
            None if organization == "AFTN" => (AmhsForm::Xf, unit),
            Some(name) if letters(&unit, LOCATION_LETTERS) => (
                AmhsForm::Caas {
                    organization,
                    location: unit,
                },
                name,
            ),
            _ => return None,
        };
        letters(&address, ADDRESS_LETTERS).then_some(Self {
            private_domain,
            form,
            address,
        })
    }

    /// The attributes of this address.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::default();
        attributes.set(Attribute::Country, "XX");
        attributes.set(Attribute::Administration, "ICAO");
        attributes.set(Attribute::Private, &*self.private_domain);
        match &self.form {
            AmhsForm::Xf => {
                attributes.set(Attribute::Organization, "AFTN");
                attributes.set(Attribute::Unit1, &*self.address);
            }
            AmhsForm::Caas {
                organization,
                location,
            } => {
                attributes.set(Attribute::Organization, &**organization);
                attributes.set(Attribute::Unit1, &**location);
                attributes.set(Attribute::CommonName, &*self.address);
            }
        }
        attributes
    }
}

fn letters(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|octet| octet.is_ascii_uppercase())
}
