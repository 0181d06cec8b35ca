//! Sites: the hosts that serve a destination. Destinations with equal hosts share a site.

use std::fmt;

/// Hosts named in a site at most. The first hosts in alphabetical order stand for all.
const HOSTS_MAX: usize = 32;
/// Precedes the source address of connections.
const VIA: &str = " via ";

/// Names the set of hosts that serve a destination. Domains with the same hosts and the same local
/// source address have equal names. The site's load signs apply to all of these domains.
///
/// The text is `HOST:PORT` of each host in the order of the alphabet with commas between, and
/// ` via SOURCE` when a `[[source]]` is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SiteName(String);

impl SiteName {
    /// The site of these hosts with their ports, in any order.
    #[must_use]
    pub fn new<'a>(hosts: impl IntoIterator<Item = (&'a str, u16)>, source: Option<&str>) -> Self {
        let name = |(host, port): (&str, u16)| format!("{}:{port}", host.to_ascii_lowercase());
        let mut names: Vec<String> = hosts.into_iter().map(name).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(HOSTS_MAX);
        let mut text = names.join(",");
        if let Some(source) = source {
            text.push_str(VIA);
            text.push_str(source);
        }
        Self(text)
    }

    /// Takes the text of a site from another process, where [`SiteName::new`] made the text.
    #[must_use]
    pub const fn made_elsewhere(text: String) -> Self {
        Self(text)
    }

    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of the site's hosts in lower case.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let hosts = self.0.split(VIA).next().unwrap_or_default();
        let name = |host: &'_ str| {
            host.rsplit_once(':')
                .map_or(host.len(), |(name, _)| name.len())
        };
        hosts.split(',').map(move |host| &host[..name(host)])
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_its_hosts_whatever_their_order() {
        let one = SiteName::new([("b.example", 25), ("A.example", 25)], None);
        let other = SiteName::new(
            [("a.example", 25), ("b.example", 25), ("a.example", 25)],
            None,
        );
        assert_eq!(one, other);
        assert_eq!(one.as_str(), "a.example:25,b.example:25");
        assert_eq!(one.hosts().collect::<Vec<_>>(), ["a.example", "b.example"]);
    }

    #[test]
    fn another_source_is_another_site() {
        let one = SiteName::new([("::1", 26)], Some("bulk"));
        assert_eq!(one.as_str(), "::1:26 via bulk");
        assert_eq!(one.hosts().collect::<Vec<_>>(), ["::1"]);
        assert_ne!(one, SiteName::new([("::1", 26)], None));
    }
}
