//! The arguments of MAIL and RCPT: addresses in brackets (RFC 5321 section 4.1.2).

use std::fmt;

use super::domain::check_domain;
use super::{AddrSpec, AddressError};

/// Where reports about a message go: the argument of MAIL FROM.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReversePath {
    /// `<>`: the message is itself a report, and causes no report.
    Null,
    /// The address that receives reports.
    Address(AddrSpec),
}

impl ReversePath {
    /// Parses `<>` or `<address>`; a source route inside is dropped.
    ///
    /// # Errors
    ///
    /// [`AddressError`] for a malformed path.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        match inside_brackets(text)? {
            "" => Ok(Self::Null),
            inner => AddrSpec::parse(without_source_route(inner)?).map(Self::Address),
        }
    }

    /// The address; `None` for the null path.
    #[must_use]
    pub fn address(&self) -> Option<&AddrSpec> {
        match self {
            Self::Null => None,
            Self::Address(address) => Some(address),
        }
    }

    /// The address without brackets; empty for the null path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.address().map_or("", AddrSpec::as_str)
    }

    /// Whether this is `<>`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether the path can travel without SMTPUTF8.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.as_str().is_ascii()
    }
}

impl fmt::Display for ReversePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.as_str())
    }
}

impl From<AddrSpec> for ReversePath {
    fn from(address: AddrSpec) -> Self {
        Self::Address(address)
    }
}

/// Where a message goes: the argument of RCPT TO.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ForwardPath {
    /// `<Postmaster>` without a domain: the administrator of this server (RFC 5321 section
    /// 4.1.1.3).
    Postmaster,
    /// An address.
    Address(AddrSpec),
}

impl ForwardPath {
    /// Parses `<address>` or `<Postmaster>`; a source route inside is dropped.
    ///
    /// # Errors
    ///
    /// [`AddressError`] for a malformed path.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let inner = inside_brackets(text)?;
        if inner.eq_ignore_ascii_case("postmaster") {
            return Ok(Self::Postmaster);
        }
        AddrSpec::parse(without_source_route(inner)?).map(Self::Address)
    }

    /// The address; `None` for the postmaster without a domain.
    #[must_use]
    pub fn address(&self) -> Option<&AddrSpec> {
        match self {
            Self::Postmaster => None,
            Self::Address(address) => Some(address),
        }
    }

    /// The path without brackets.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.address().map_or("postmaster", AddrSpec::as_str)
    }

    /// Whether the path can travel without SMTPUTF8.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.as_str().is_ascii()
    }
}

impl fmt::Display for ForwardPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.as_str())
    }
}

impl From<AddrSpec> for ForwardPath {
    fn from(address: AddrSpec) -> Self {
        Self::Address(address)
    }
}

fn inside_brackets(text: &str) -> Result<&str, AddressError> {
    text.strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
        .ok_or(AddressError::MissingBrackets)
}

/// Drops the source route, ignored by receivers (RFC 5321 section 4.1.1.3).
///
/// ```text
/// Path      = "<" [ A-d-l ":" ] Mailbox ">"
/// A-d-l     = At-domain *( "," At-domain )
/// At-domain = "@" Domain
/// ```
fn without_source_route(inner: &str) -> Result<&str, AddressError> {
    if !inner.starts_with('@') {
        return Ok(inner);
    }
    let (route, address) = inner.split_once(':').ok_or(AddressError::SourceRoute)?;
    for hop in route.split(',') {
        let domain = hop.strip_prefix('@').ok_or(AddressError::SourceRoute)?;
        check_domain(domain).map_err(|_| AddressError::SourceRoute)?;
    }
    Ok(address)
}
