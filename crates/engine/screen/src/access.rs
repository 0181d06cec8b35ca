//! Rules of access: networks, names of clients and senders that are always allowed or refused.

use std::net::IpAddr;

use crate::place::{Network, Place};

/// The number of no rule: as an end, all rules are looked at.
pub(crate) const NO_RULE: u16 = u16::MAX;

/// A rule of access. The first 65,535 of a table count, and a look takes time for each.
///
/// The first rule that matches anything known of the session counts. Rules about a name that the client has not said
/// yet do not match: a rule about a sender that stands before a rule about a network wins over it once the client
/// says MAIL. Nothing takes back a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The subject of the rule.
    pub subject: Subject,
    /// The treatment of sessions that match.
    pub access: Access,
}

/// Subjects of rules. Letter case does not count in names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Addresses of clients.
    Network(Network),
    /// Names in HELO or EHLO: a domain, or with a leading dot every domain below it.
    Helo(String),
    /// Reverse-paths: an address, a domain, with a leading dot every domain below it, or empty for the null
    /// reverse-path.
    Sender(String),
}

/// Treatment of a session that matches a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// No delay, no bounds for address and network, no lists, no SPF and no greylisting. Recipients are checked, and
    /// all bounds of a session apply.
    Allow,
    /// Refusal at the connection, HELO or MAIL.
    Refuse,
    /// Treatment as of a session that matches no rule.
    #[default]
    Ordinary,
}

/// Everything that rules may look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) client: Place,
    pub(crate) helo: Option<&'a str>,
    pub(crate) sender: Option<&'a str>,
}

/// The first match among the rules before number `end`: its number and access. Without a match the result is `end`
/// and `standing`, the result of an earlier look at less.
pub(crate) fn first_match(
    rules: &[Rule],
    end: u16,
    standing: Access,
    known: Known<'_>,
) -> (u16, Access) {
    rules
        .iter()
        .zip(0..end)
        .find(|(rule, _)| matches(&rule.subject, known))
        .map_or((end, standing), |(rule, number)| (number, rule.access))
}

/// Returns the access of a session outside an engine, by everything that is known of the session.
#[must_use]
pub fn access(rules: &[Rule], client: IpAddr, helo: &str, sender: Option<&str>) -> Access {
    let known = Known {
        client: Place::of(client),
        helo: Some(helo),
        sender,
    };
    first_match(rules, NO_RULE, Access::Ordinary, known).1
}

fn matches(subject: &Subject, known: Known<'_>) -> bool {
    match subject {
        Subject::Network(network) => network.contains(known.client),
        Subject::Helo(pattern) => known.helo.is_some_and(|helo| is_domain(pattern, helo)),
        Subject::Sender(pattern) => known
            .sender
            .is_some_and(|sender| is_sender(pattern, sender)),
    }
}

fn is_sender(pattern: &str, sender: &str) -> bool {
    match sender.rsplit_once('@') {
        Some((_, domain)) if !pattern.contains('@') => {
            !pattern.is_empty() && is_domain(pattern, domain)
        }
        _ => pattern.eq_ignore_ascii_case(sender),
    }
}

fn is_domain(pattern: &str, domain: &str) -> bool {
    if !pattern.starts_with('.') {
        return pattern.eq_ignore_ascii_case(domain);
    }
    domain
        .len()
        .checked_sub(pattern.len())
        .filter(|below| *below > 0)
        .and_then(|below| domain.get(below..))
        .is_some_and(|end| pattern.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_match_as_a_whole_or_below() {
        for (pattern, domain, expected) in [
            ("example.org", "Example.ORG", true),
            ("example.org", "mx.example.org", false),
            (".example.org", "MX.example.org", true),
            (".example.org", "a.b.example.org", true),
            (".example.org", "example.org", false),
            (".example.org", ".example.org", false),
            (".example.org", "badexample.org", false),
            (".example.org", "é.org", false),
            (".\u{e9}.org", "\u{20ac}\u{e9}.org", false),
            ("", "", true),
        ] {
            assert_eq!(is_domain(pattern, domain), expected, "{pattern} {domain}");
        }
    }

    #[test]
    fn senders_match_by_address_or_domain() {
        for (pattern, sender, expected) in [
            ("bad@example.org", "BAD@example.org", true),
            ("bad@example.org", "good@example.org", false),
            ("example.org", "x@example.org", true),
            (".example.org", "x@sub.example.org", true),
            ("example.org", "\"a@b\"@example.org", true),
            ("example.org", "", false),
            ("", "", true),
            ("", "x@example.org", false),
            ("postmaster", "postmaster", true),
        ] {
            assert_eq!(is_sender(pattern, sender), expected, "{pattern} {sender}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let network = Network::new("192.0.2.0".parse().unwrap(), 24).unwrap();
        let rules = [
            (Subject::Sender("bad@example.org".into()), Access::Refuse),
            (Subject::Helo("mx.example.org".into()), Access::Ordinary),
            (Subject::Network(network), Access::Allow),
        ]
        .map(|(subject, access)| Rule { subject, access });
        let known = |client: &str, helo, sender| Known {
            client: Place::of(client.parse().unwrap()),
            helo,
            sender,
        };
        let first = |end, standing, known| first_match(&rules, end, standing, known);
        let start = first(NO_RULE, Access::Ordinary, known("192.0.2.5", None, None));
        assert_eq!(start, (2, Access::Allow));
        let helo = known("192.0.2.5", Some("MX.example.org"), None);
        assert_eq!(first(2, Access::Allow, helo), (1, Access::Ordinary));
        let other = known("192.0.2.5", Some("mx.example.com"), None);
        assert_eq!(first(2, Access::Allow, other), (2, Access::Allow));
        let mail = known("192.0.2.5", None, Some("bad@example.org"));
        assert_eq!(first(2, Access::Allow, mail), (0, Access::Refuse));
        let nobody = known("198.51.100.1", None, None);
        assert_eq!(
            first(NO_RULE, Access::Ordinary, nobody),
            (NO_RULE, Access::Ordinary)
        );
    }
}
