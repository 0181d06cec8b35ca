//! Limits that operators set towards destinations, and the choice of the rule for a destination.
//!
//! The most specific rule applies, whatever the order of the rules: the domain or next hop itself,
//! then the longest domain above, then the rule for all domains. Rules about hosts apply in the
//! same manner to the sites that these hosts serve.

use std::collections::HashMap;
use std::time::Duration;

use crate::destination::{Destination, Place};

/// How often messages may be sent: a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Messages allowed ...
    pub messages: u32,
    /// ... in this time, on average.
    pub per: Duration,
    /// Messages allowed at once after a rest; at least 1.
    pub burst: u32,
}

/// The order of destinations when all connections are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Precedence {
    /// Before other destinations, which still get their share.
    High,
    /// In turns.
    #[default]
    Normal,
    /// Behind other destinations, but with a share.
    Low,
}

/// The limits of one rule. The rule does not limit a field that is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Connections at once.
    pub connections_max: Option<usize>,
    /// Messages over one connection before a new one is made.
    pub messages_per_connection_max: Option<u32>,
    /// How often messages may be sent.
    pub rate: Option<Rate>,
    /// The least time between the starts of two connections.
    pub connection_interval: Option<Duration>,
    /// The order of destinations when all connections are in use.
    pub precedence: Precedence,
    /// Whether messages leave one at a time in acceptance order. A deferred message then holds all
    /// later messages until it is delivered or given up. For places only.
    pub in_order: bool,
}

/// The names to which a rule applies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Names {
    /// All names.
    All,
    /// One name, in lower case.
    One(String),
    /// All names below a domain, in lower case, without a leading dot.
    Below(String),
}

/// The destinations or sites to which a rule applies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Domains whose mail goes to their mail exchangers. Each domain is limited by itself.
    Domains(Names),
    /// A fixed place: a next hop, or the mailboxes of this system.
    Place(Place),
    /// Sites with a mail exchanger of a matching name, whatever the domains. Each site is limited
    /// by itself.
    Hosts(Names),
}

/// Limits by names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ByName {
    one: HashMap<String, Limits>,
    below: HashMap<String, Limits>,
    all: Option<Limits>,
}

impl ByName {
    fn insert(&mut self, names: Names, limits: Limits) {
        match names {
            Names::One(name) => drop(self.one.insert(name, limits)),
            Names::Below(name) => drop(self.below.insert(name, limits)),
            Names::All => self.all = Some(limits),
        }
    }

    fn find(&self, name: &str) -> Option<&Limits> {
        let mut found = self.one.get(name);
        let mut rest = name;
        while found.is_none()
            && let Some((_, above)) = rest.split_once('.')
        {
            found = self.below.get(above);
            rest = above;
        }
        found.or(self.all.as_ref())
    }
}

/// All rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    domains: ByName,
    places: HashMap<Place, Limits>,
    hosts: ByName,
}

impl Rules {
    /// Inserts a rule and replaces an earlier rule of the same scope.
    pub fn insert(&mut self, scope: Scope, limits: Limits) {
        match scope {
            Scope::Domains(names) => self.domains.insert(names, limits),
            Scope::Place(place) => drop(self.places.insert(place, limits)),
            Scope::Hosts(names) => self.hosts.insert(names, limits),
        }
    }

    /// The limits of a destination by name, if a rule exists. The encryption that senders wish
    /// for makes no difference.
    #[must_use]
    pub fn for_destination(&self, destination: &Destination) -> Option<&Limits> {
        match &destination.place {
            Place::Domain(domain) => self.domains.find(domain),
            place => self.places.get(place),
        }
    }

    /// The limits of a site with these hosts (lower case): the rule of the first host that has a
    /// rule.
    #[must_use]
    pub fn for_hosts<'a>(&self, hosts: impl IntoIterator<Item = &'a str>) -> Option<&Limits> {
        hosts.into_iter().find_map(|host| self.hosts.find(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(connections: usize) -> Limits {
        Limits {
            connections_max: Some(connections),
            ..Limits::default()
        }
    }

    fn found(rules: &Rules, destination: &str) -> Option<usize> {
        let destination: Destination = destination.parse().expect("a destination");
        rules.for_destination(&destination)?.connections_max
    }

    #[test]
    fn the_closest_rule_holds_whatever_the_order() {
        let mut rules = Rules::default();
        assert_eq!(found(&rules, "example.org"), None);
        let below = |name: &str| Scope::Domains(Names::Below(name.to_owned()));
        rules.insert(Scope::Domains(Names::All), limits(1));
        rules.insert(below("example.org"), limits(2));
        rules.insert(below("a.example.org"), limits(3));
        let one = Names::One("b.example.org".to_owned());
        rules.insert(Scope::Domains(one), limits(4));
        for (name, expected) in [
            ("elsewhere.net", 1),
            ("example.org", 1),
            ("c.example.org", 2),
            ("x.a.example.org", 3),
            ("a.example.org", 2),
            ("b.example.org", 4),
            ("requiretls:b.example.org", 4),
        ] {
            assert_eq!(found(&rules, name), Some(expected), "{name}");
        }
        assert_eq!(found(&rules, "relay:b.example.org:25"), None);
    }

    #[test]
    fn next_hops_and_hosts_have_rules_of_their_own() {
        let mut rules = Rules::default();
        let relay = Place::Relay("mx:25".to_owned());
        rules.insert(Scope::Place(relay), limits(5));
        rules.insert(Scope::Place(Place::Local), limits(6));
        rules.insert(
            Scope::Hosts(Names::Below("google.example".to_owned())),
            limits(7),
        );
        assert_eq!(found(&rules, "relay:mx:25"), Some(5));
        assert_eq!(found(&rules, "local"), Some(6));
        assert_eq!(found(&rules, "google.example"), None);
        let site = rules.for_hosts(["a.example", "mx1.google.example"]);
        assert_eq!(site.and_then(|one| one.connections_max), Some(7));
        assert_eq!(rules.for_hosts(["google.example"]), None);
    }
}
