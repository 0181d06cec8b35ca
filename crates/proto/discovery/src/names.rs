//! Which local domain a web name belongs to.

use vere_ports::directory::DomainName;

/// The labels before a domain under which programs and systems look for its files.
pub const LABELS: [&str; 3] = ["mta-sts", "autoconfig", "autodiscover"];
/// The label of the MTA-STS policy.
pub const POLICY_LABEL: &str = "mta-sts";

/// A web name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebName {
    /// The whole name, in canonical form.
    pub name: DomainName,
    /// The label of [`LABELS`] and the domain behind it; `None` for another name.
    pub of: Option<(&'static str, DomainName)>,
}

impl WebName {
    /// Reads a `Host` field or the authority of a target (RFC 9110 section 7.2); the port does not matter. `None` for an address literal and
    /// for a text that is no name.
    #[must_use]
    pub fn parse(host: &str) -> Option<Self> {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|octet| octet.is_ascii_digit()) => name,
            _ => host,
        };
        let name = DomainName::parse(name).ok()?;
        let of = name.as_str().split_once('.').and_then(|(first, rest)| {
            let label = LABELS.into_iter().find(|label| *label == first)?;
            Some((label, DomainName::parse(rest).ok()?))
        });
        Some(Self { name, of })
    }

    /// The domain, if it is local: the one behind the label, or the name itself.
    pub fn domain(&self, is_local: impl Fn(&DomainName) -> bool) -> Option<&DomainName> {
        let behind = self.of.as_ref().map(|(_, domain)| domain);
        behind
            .filter(|domain| is_local(domain))
            .or_else(|| Some(&self.name).filter(|name| is_local(name)))
    }
}

/// The web names of a domain.
#[must_use]
pub fn of_domain(domain: &DomainName) -> [String; 3] {
    LABELS.map(|label| format!("{label}.{domain}"))
}
