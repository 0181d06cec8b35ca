//! What operators allow towards a destination, and which of their rules is for which destination.
//!
//! The rule that names a destination most closely holds, whatever the order in which they stand: the
//! domain or next hop itself, then the longest domain above it, then the one for all domains. Rules about
//! hosts are for the sites that these hosts serve, in the same manner.

use std::collections::HashMap;
use std::time::Duration;

use crate::destination::Destination;

/// How often messages may be sent: a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// So many messages ...
    pub messages: u32,
    /// ... in this time, on the average.
    pub per: Duration,
    /// So many at once after a rest. At least 1.
    pub burst: u32,
}

/// Who comes first when all connections are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Precedence {
    /// Before the others, though they get their share.
    High,
    /// In turns.
    #[default]
    Normal,
    /// Behind the others, though it gets a share.
    Low,
}

/// What is allowed; what is `None` is not limited by the rule.
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
    /// Who comes first when all connections are in use.
    pub precedence: Precedence,
    /// Whether messages leave one at a time in the order in which they were taken: one that is put off
    /// holds those behind it until it is delivered or given up. Of places only.
    pub in_order: bool,
}

/// Which names a rule is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Names {
    /// Every one.
    All,
    /// This one, in lower case.
    One(String),
    /// All below this one, in lower case, without a dot in front.
    Below(String),
}

/// What a rule is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Domains whose mail goes to their mail exchangers, each by itself.
    Domains(Names),
    /// A fixed place: a next hop, or the mailboxes of this system.
    Place(Destination),
    /// Sites that have a mail exchanger so named, each by itself, whatever the domains.
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
    places: HashMap<Destination, Limits>,
    hosts: ByName,
}

impl Rules {
    /// Takes a rule; one for the same before it is replaced.
    pub fn insert(&mut self, scope: Scope, limits: Limits) {
        match scope {
            Scope::Domains(names) => self.domains.insert(names, limits),
            Scope::Place(place) => drop(self.places.insert(place, limits)),
            Scope::Hosts(names) => self.hosts.insert(names, limits),
        }
    }

    /// What holds for a destination by its name, if a rule does. What senders wish of encryption makes no
    /// difference.
    #[must_use]
    pub fn for_destination(&self, destination: &Destination) -> Option<&Limits> {
        match destination.place().0 {
            Destination::Domain(domain) => self.domains.find(domain),
            place => self.places.get(place),
        }
    }

    /// What holds for a site with these hosts (lower case), if a rule does: that of the first host for
    /// which there is one.
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
        let relay = Destination::Relay("mx:25".to_owned());
        rules.insert(Scope::Place(relay), limits(5));
        rules.insert(Scope::Place(Destination::Local), limits(6));
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
