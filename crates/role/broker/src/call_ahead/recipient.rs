//! A recipient of another system.

use vere_smtp::address::AddrSpec;

/// A recipient of another system, with the keys of its results.
#[derive(Debug)]
pub(super) struct Recipient {
    pub(super) address: AddrSpec,
    /// The address with its domain in lower case; local-parts of two cases are two recipients (RFC 5321 section 2.4).
    key: Box<str>,
    /// Where the domain begins in `key`, at the `@`.
    at: usize,
}

impl Recipient {
    pub(super) fn new(address: AddrSpec) -> Self {
        let domain = address.domain().to_ascii_lowercase();
        let at = address.as_str().len().saturating_sub(domain.len() + 1);
        let local = address.as_str().get(..at).unwrap_or_default();
        Self {
            key: format!("{local}@{domain}").into(),
            at: local.len(),
            address,
        }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// `@` and the domain: no address, so that results for the domain have keys of their own.
    pub(super) fn domain_key(&self) -> &str {
        self.key.get(self.at..).unwrap_or_default()
    }
}
