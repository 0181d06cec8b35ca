//! The address of a user who asks.

use std::fmt;

use vere_ports::directory::DomainName;

/// Octets of an address: a path of RFC 5321 section 4.5.3.1.3 without its angle brackets.
pub const ADDRESS_OCTETS_MAX: usize = 254;

/// An address as a client gives it: one line of text with a domain. Whether there is such an account is not known and not asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    text: String,
    domain: DomainName,
}

impl Address {
    /// Reads an address; `None` for a text that is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (local, domain) = text.rsplit_once('@')?;
        let is_fit =
            |c: char| !c.is_control() && !c.is_whitespace() && !matches!(c, '<' | '>' | '"');
        if text.len() > ADDRESS_OCTETS_MAX || local.is_empty() || !text.chars().all(is_fit) {
            return None;
        }
        Some(Self {
            domain: DomainName::parse(domain).ok()?,
            text: text.to_owned(),
        })
    }

    /// The domain.
    #[must_use]
    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    /// The text of the client.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
