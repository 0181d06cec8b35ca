//! Names of domains and MTAs, and identifiers made of them (X.411 clause 8.5).

use vere_ber::{Ia5String, NumericString, PrintableString, StringError, Tag, choice, record};

use std::fmt;

choice! {
    /// `CountryName`: a country by X.121 code or ISO 3166 code.
    pub enum CountryName [Tag::application(1)] {
        /// `iso-3166-alpha2-code`
        Alpha2: PrintableString,
        /// `x121-dcc-code`
        Numeric: NumericString,
    }
}

choice! {
    /// `AdministrationDomainName`. One space stands for any ADMD of the country.
    pub enum AdministrationDomainName [Tag::application(2)] {
        /// `printable`
        Printable: PrintableString,
        /// `numeric`
        Numeric: NumericString,
    }
}

choice! {
    /// `PrivateDomainName` and `PrivateDomainIdentifier`.
    pub enum PrivateDomainName {
        /// `printable`
        Printable: PrintableString,
        /// `numeric`
        Numeric: NumericString,
    }
}

macro_rules! domain_name {
    ($name:ident, $printable:ident, $is_numeric:expr) => {
        impl $name {
            /// The name with the given text.
            ///
            /// # Errors
            /// [`StringError`] for a character outside PrintableString.
            pub fn new(text: &str) -> Result<Self, StringError> {
                let is_numeric: fn(&str) -> bool = $is_numeric;
                if is_numeric(text) {
                    NumericString::new(text).map(Self::Numeric)
                } else {
                    PrintableString::new(text).map(Self::$printable)
                }
            }

            /// The text.
            #[must_use]
            pub fn text(&self) -> std::borrow::Cow<'_, str> {
                match self {
                    Self::$printable(text) => text.text(),
                    Self::Numeric(text) => text.text(),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.text())
            }
        }
    };
}

domain_name!(CountryName, Alpha2, |text| text.len() == 3
    && text.bytes().all(|octet| octet.is_ascii_digit()));
// A domain of digits is as often sent as PrintableString; both compare equal.
domain_name!(AdministrationDomainName, Printable, |_| false);
domain_name!(PrivateDomainName, Printable, |_| false);

record! {
    /// `GlobalDomainIdentifier`: a management domain.
    pub struct GlobalDomainIdentifier [Tag::application(3)] {
        /// `country-name`
        country_name: required CountryName,
        /// `administration-domain-name`
        administration_domain_name: required AdministrationDomainName,
        /// `private-domain-identifier`
        private_domain_identifier: optional PrivateDomainName,
    }
}

impl GlobalDomainIdentifier {
    /// The domain with these names.
    ///
    /// # Errors
    /// [`StringError`] for a wrong character.
    pub fn new(
        country: &str,
        administration: &str,
        private: Option<&str>,
    ) -> Result<Self, StringError> {
        Ok(Self {
            country_name: CountryName::new(country)?,
            administration_domain_name: AdministrationDomainName::new(administration)?,
            private_domain_identifier: private.map(PrivateDomainName::new).transpose()?,
            ..Self::default()
        })
    }
}

impl fmt::Display for GlobalDomainIdentifier {
    /// Writes `/PRMD=p/ADMD=a/C=c/`, as RFC 2156 writes domains.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(private) = &self.private_domain_identifier {
            write!(out, "/PRMD={private}")?;
        }
        write!(
            out,
            "/ADMD={}/C={}/",
            self.administration_domain_name, self.country_name
        )
    }
}

record! {
    /// `MTSIdentifier`: identifies a message, probe or report.
    pub struct MtsIdentifier [Tag::application(4)] {
        /// `global-domain-identifier`: the domain of origin.
        global_domain_identifier: required GlobalDomainIdentifier,
        /// `local-identifier`: unique in the domain; at most 32 characters.
        local_identifier: required Ia5String,
    }
}

impl MtsIdentifier {
    /// The identifier of this domain and local identifier.
    #[must_use]
    pub fn new(domain: GlobalDomainIdentifier, local: Ia5String) -> Self {
        Self {
            global_domain_identifier: domain,
            local_identifier: local,
            ..Self::default()
        }
    }
}

impl fmt::Display for MtsIdentifier {
    /// Writes `[/PRMD=p/ADMD=a/C=c/;local]`, as RFC 2156 writes identifiers.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "[{};{}]",
            self.global_domain_identifier, self.local_identifier
        )
    }
}
