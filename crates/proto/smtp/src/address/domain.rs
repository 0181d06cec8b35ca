//! Domain names and address literals (RFC 5321 sections 4.1.2 and 4.1.3).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::{AddressError, DOMAIN_OCTETS_MAX, LABEL_OCTETS_MAX};

/// A domain name in lower case, its labels ASCII or U-labels.
///
/// U-labels are kept as written: the resolver converts U-labels to A-labels.
///
/// ```text
/// Domain     = sub-domain *("." sub-domain)
/// sub-domain = Let-dig [Ldh-str] / U-label
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Domain(Box<str>);

impl Domain {
    /// Parses a name of at most [`DOMAIN_OCTETS_MAX`] octets, without a final dot.
    ///
    /// # Errors
    ///
    /// [`AddressError::Domain`] for a malformed name, [`AddressError::DomainTooLong`] for a long one.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        check_domain(text)?;
        Ok(Self::trusted(text))
    }

    /// Accepts a name already checked by the caller.
    pub(crate) fn trusted(text: &str) -> Self {
        Self(text.to_ascii_lowercase().into_boxed_str())
    }

    /// The name in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Domain {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

impl AsRef<str> for Domain {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The address of a host in brackets: `[192.0.2.1]` or `[IPv6:2001:db8::1]` (RFC 5321 section 4.1.3).
///
/// `IPv6` is the only registered tag; any other tag is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressLiteral {
    /// `"[" IPv4-address-literal "]"`
    V4(Ipv4Addr),
    /// `"[" IPv6-address-literal "]"`
    V6(Ipv6Addr),
}

impl AddressLiteral {
    /// Parses a literal in brackets.
    ///
    /// # Errors
    ///
    /// [`AddressError::Literal`] for everything else.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let inner = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let inner = inner.ok_or(AddressError::Literal)?;
        match inner.split_at_checked("IPv6:".len()) {
            Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6:") => {
                address.parse().map(Self::V6)
            }
            _ => inner.parse().map(Self::V4),
        }
        .map_err(|_| AddressError::Literal)
    }
}

impl fmt::Display for AddressLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => write!(f, "[{address}]"),
            Self::V6(address) => write!(f, "[IPv6:{address}]"),
        }
    }
}

/// The text allowed behind `@`, HELO and EHLO.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DomainOrLiteral {
    /// A name.
    Domain(Domain),
    /// An address in brackets.
    Literal(AddressLiteral),
}

impl DomainOrLiteral {
    /// Parses a name, or a literal in brackets.
    ///
    /// # Errors
    ///
    /// The errors of [`Domain::parse`] and [`AddressLiteral::parse`].
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.starts_with('[') {
            AddressLiteral::parse(text).map(Self::Literal)
        } else {
            Domain::parse(text).map(Self::Domain)
        }
    }
}

impl fmt::Display for DomainOrLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(domain) => domain.fmt(f),
            Self::Literal(literal) => literal.fmt(f),
        }
    }
}

pub(super) fn check_domain(text: &str) -> Result<(), AddressError> {
    if text.len() > DOMAIN_OCTETS_MAX {
        return Err(AddressError::DomainTooLong(text.len()));
    }
    text.split('.').try_for_each(check_label)
}

fn check_label(label: &str) -> Result<(), AddressError> {
    let allowed = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || !octet.is_ascii();
    if label.is_empty() || label.starts_with('-') || label.ends_with('-') {
        return Err(AddressError::Domain);
    }
    if !label.bytes().all(allowed) {
        return Err(AddressError::Domain);
    }
    match label.is_ascii() {
        true if label.len() > LABEL_OCTETS_MAX => Err(AddressError::DomainTooLong(label.len())),
        false if label.chars().any(char::is_control) => Err(AddressError::Domain),
        _ => Ok(()),
    }
}
