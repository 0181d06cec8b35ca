//! The vectors of openspf.org (`vectors/README.md`), and what they do not cover.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use super::*;

/// Names in lower case, their records, and whether further types of records time out.
#[derive(Debug, Default)]
struct Zone(HashMap<String, (Vec<Record>, bool)>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Record {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    Txt(Vec<u8>),
    Mx(u64, String),
    Ptr(String),
    Cname(String),
}

impl Zone {
    fn with(lines: &[(&str, Record)]) -> Self {
        let mut zone = Self::default();
        for (name, record) in lines {
            let records = &mut zone.0.entry(name.to_lowercase()).or_default().0;
            records.push(record.clone());
        }
        zone
    }

    /// Reads the zone of a scenario. A record of type SPF stands for a TXT record, unless the name has TXT records of its
    /// own; the text `NONE` stands for no TXT record.
    fn of_vectors(zone: &Value) -> Self {
        let mut names = HashMap::new();
        for (name, lines) in zone.as_object().unwrap() {
            let lines = lines.as_array().unwrap();
            let times_out = lines.contains(&Value::from("TIMEOUT"));
            let lines: Vec<_> = lines.iter().filter_map(Value::as_object).collect();
            let has_txt = lines.iter().any(|line| line.contains_key("TXT"));
            let records = lines.iter().flat_map(|line| line.iter());
            let records = records.filter_map(|(kind, value)| match kind.as_str() {
                "SPF" if has_txt => None,
                "SPF" | "TXT" => (value != "NONE").then(|| Record::Txt(joined(value))),
                "A" => Some(Record::A(text(value).parse().unwrap())),
                "AAAA" => Some(Record::Aaaa(text(value).parse().unwrap())),
                "MX" => Some(Record::Mx(value[0].as_u64().unwrap(), text(&value[1]))),
                "PTR" => Some(Record::Ptr(text(value))),
                "CNAME" => Some(Record::Cname(text(value))),
                other => panic!("a record of type {other}"),
            });
            names.insert(name.to_lowercase(), (records.collect(), times_out));
        }
        Self(names)
    }

    fn look<T>(
        &self,
        name: &str,
        pick: impl Fn(&Record) -> Option<T>,
    ) -> Result<Vec<T>, Unavailable> {
        let mut name = name.to_lowercase();
        for _ in 0..8 {
            let Some((records, times_out)) = self.0.get(&name) else {
                return Ok(Vec::new());
            };
            let found: Vec<T> = records.iter().filter_map(&pick).collect();
            let alias = records.iter().find_map(|record| match record {
                Record::Cname(target) => Some(target.to_lowercase()),
                _ => None,
            });
            match alias {
                _ if !found.is_empty() => return Ok(found),
                _ if *times_out => return Err(Unavailable),
                Some(target) => name = target,
                None => return Ok(found),
            }
        }
        Err(Unavailable)
    }
}

impl Dns for Zone {
    async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        self.look(name, |record| match record {
            Record::Txt(text) => Some(text.clone()),
            _ => None,
        })
    }

    async fn addresses(&self, name: &str, family: Family) -> Result<Vec<IpAddr>, Unavailable> {
        self.look(name, |record| match (record, family) {
            (Record::A(address), Family::V4) => Some((*address).into()),
            (Record::Aaaa(address), Family::V6) => Some((*address).into()),
            _ => None,
        })
    }

    async fn exchangers(&self, name: &str) -> Result<Vec<String>, Unavailable> {
        let mut hosts = self.look(name, |record| match record {
            Record::Mx(preference, host) => Some((*preference, host.clone())),
            _ => None,
        })?;
        hosts.sort();
        Ok(hosts.into_iter().map(|(_, host)| host).collect())
    }

    async fn names(&self, address: IpAddr) -> Result<Vec<String>, Unavailable> {
        self.look(&reverse(address), |record| match record {
            Record::Ptr(name) => Some(name.clone()),
            _ => None,
        })
    }
}

/// The name of an address in the DNS (RFC 1035 section 3.5, RFC 3596 section 2.5).
fn reverse(address: IpAddr) -> String {
    let labels = |octets: &[u8], text: fn(&u8) -> String| {
        let labels: Vec<_> = octets.iter().rev().map(text).collect();
        labels.join(".")
    };
    match address {
        IpAddr::V4(address) => labels(&address.octets(), u8::to_string) + ".in-addr.arpa",
        IpAddr::V6(address) => {
            let nibbles = |octet: &u8| format!("{:x}.{:x}", octet & 15, octet >> 4);
            labels(&address.octets(), nibbles) + ".ip6.arpa"
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The octets of a text record; the characters of the vectors are octets.
fn joined(value: &Value) -> Vec<u8> {
    let strings: Vec<&str> = match value {
        Value::Array(strings) => strings.iter().filter_map(Value::as_str).collect(),
        text => text.as_str().into_iter().collect(),
    };
    let octet = |letter: char| u8::try_from(u32::from(letter)).unwrap_or(b'?');
    strings.concat().chars().map(octet).collect()
}

/// Evaluates a policy; the zone answers at once.
fn checked(zone: &Zone, session: Session<'_>) -> SpfResult {
    let mut check = pin!(check(zone, session));
    match check.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a zone that does not answer"),
    }
}

#[test]
fn the_vectors_of_rfc_7208_have_their_results() {
    let vectors: Value =
        serde_json::from_str(include_str!("../vectors/rfc7208-tests.json")).unwrap();
    let mut wrong = BTreeMap::new();
    let mut count = 0;
    for scenario in vectors.as_array().unwrap() {
        let zone = Zone::of_vectors(&scenario["zonedata"]);
        for (name, test) in scenario["tests"].as_object().unwrap() {
            let found = checked(
                &zone,
                Session {
                    client: text(&test["host"]).parse().unwrap(),
                    helo: test["helo"].as_str().unwrap(),
                    reverse_path: test["mailfrom"].as_str().unwrap(),
                },
            );
            count += 1;
            let is_right = match &test["result"] {
                Value::Array(results) => results.contains(&found.as_str().into()),
                result => result == found.as_str(),
            };
            if !is_right {
                wrong.insert(name.as_str(), found);
            }
        }
    }
    assert_eq!(count, 203);
    assert_eq!(wrong, BTreeMap::new());
}

fn policy(text: &str) -> Record {
    Record::Txt(text.as_bytes().to_vec())
}

fn from<'a>(client: &str, reverse_path: &'a str) -> Session<'a> {
    Session {
        client: client.parse().unwrap(),
        helo: "mx.example.net",
        reverse_path,
    }
}

#[test]
fn the_null_reverse_path_has_the_policy_of_the_helo_name() {
    let zone = Zone::with(&[
        (
            "mx.example.net",
            policy("v=spf1 exists:%{l}.%{o}.list.example -all"),
        ),
        (
            "postmaster.mx.example.net.list.example",
            Record::A([127, 0, 0, 2].into()),
        ),
    ]);
    assert_eq!(checked(&zone, from("192.0.2.1", "")), SpfResult::Pass);
    let unknown = checked(&zone, from("192.0.2.1", "a@example.org"));
    assert_eq!(unknown, SpfResult::None);
}

#[test]
fn a_mapped_address_is_the_ipv4_address() {
    let zone = Zone::with(&[("example.org", policy("v=spf1 ip4:192.0.2.0/24 -all"))]);
    let mapped = checked(&zone, from("::ffff:192.0.2.9", "a@example.org"));
    assert_eq!(mapped, SpfResult::Pass);
}

#[test]
fn exists_asks_for_ipv4_addresses_alone() {
    let zone = Zone::with(&[
        ("example.org", policy("v=spf1 exists:six.example -all")),
        ("six.example", Record::Aaaa(Ipv6Addr::LOCALHOST)),
    ]);
    let found = checked(&zone, from("2001:db8::1", "a@example.org"));
    assert_eq!(found, SpfResult::Fail);
}

/// The example of RFC 7208 section 7.4, for clients of both families.
#[test]
fn the_family_of_the_client_is_part_of_names() {
    let text = "v=spf1 exists:%{ir}.%{v}._spf.%{d2} -all";
    let v6 = "1.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2";
    let found = Record::A([127, 0, 0, 2].into());
    let zone = Zone::with(&[
        ("mail.example.com", policy(text)),
        ("3.2.0.192.in-addr._spf.example.com", found.clone()),
        (&format!("{v6}.ip6._spf.example.com"), found),
    ]);
    for (client, expected) in [
        ("192.0.2.3", SpfResult::Pass),
        ("192.0.2.4", SpfResult::Fail),
        ("2001:db8::cb01", SpfResult::Pass),
        ("2001:db8::cb02", SpfResult::Fail),
    ] {
        let found = checked(&zone, from(client, "a@mail.example.com"));
        assert_eq!(found, expected, "{client}");
    }
}

#[test]
fn results_are_shown_by_the_words_of_the_rfc() {
    assert_eq!(SpfResult::SoftFail.to_string(), "softfail");
    assert_eq!(Unavailable.to_string(), "the DNS does not answer");
}

#[test]
fn a_client_cannot_choose_its_name() {
    let zone = Zone::with(&[
        (
            "example.org",
            policy("v=spf1 exists:%{p}.trusted.example -all"),
        ),
        (
            &reverse("192.0.2.1".parse().unwrap()),
            Record::Ptr("mx.bank.example".to_owned()),
        ),
        (
            "mx.bank.example.trusted.example",
            Record::A([127, 0, 0, 2].into()),
        ),
    ]);
    let found = checked(&zone, from("192.0.2.1", "a@example.org"));
    assert_eq!(found, SpfResult::Fail);
}

#[test]
fn a_local_part_beyond_ascii_matches_no_term_that_uses_it() {
    let zone = Zone::with(&[
        ("example.org", policy("v=spf1 exists:%{l}.yes.example ?all")),
        ("ann.yes.example", Record::A([127, 0, 0, 2].into())),
        ("\u{e9}.yes.example", Record::A([127, 0, 0, 2].into())),
    ]);
    let ascii = checked(&zone, from("192.0.2.1", "ann@example.org"));
    assert_eq!(ascii, SpfResult::Pass);
    let other = checked(&zone, from("192.0.2.1", "\u{e9}@example.org"));
    assert_eq!(other, SpfResult::Neutral);
}

#[test]
fn policies_that_include_each_other_end() {
    for text in [
        "v=spf1 include:example.org -all",
        "v=spf1 redirect=example.org",
    ] {
        let zone = Zone::with(&[("example.org", policy(text))]);
        let found = checked(&zone, from("192.0.2.1", "a@example.org"));
        assert_eq!(found, SpfResult::PermError, "{text}");
    }
}

#[test]
fn exchangers_without_addresses_are_one_void_term() {
    let mut lines = vec![("example.org", policy("v=spf1 mx ip4:192.0.2.1 -all"))];
    lines.extend((0..10).map(|number| {
        (
            "example.org",
            Record::Mx(1, format!("mx{number}.example.org")),
        )
    }));
    let found = checked(&Zone::with(&lines), from("192.0.2.1", "a@example.org"));
    assert_eq!(found, SpfResult::Pass);
    lines.push(("example.org", Record::Mx(2, "mx.example.org".to_owned())));
    let found = checked(&Zone::with(&lines), from("192.0.2.1", "a@example.org"));
    assert_eq!(found, SpfResult::PermError, "an eleventh exchanger");
}

/// Section 4.6.4 counts terms: each one with a void lookup, whatever the number of its questions.
#[test]
fn a_third_term_with_a_void_lookup_is_too_much() {
    let exchanger = |host: &str| Record::Mx(1, host.to_owned());
    let zone = |policy_text: &str| {
        Zone::with(&[
            ("example.org", policy(policy_text)),
            ("mixed.example", exchanger("gone.example")),
            ("mixed.example", exchanger("mx.example")),
            ("mx.example", Record::A([198, 51, 100, 1].into())),
        ])
    };
    for (terms, result) in [
        ("mx:mixed.example mx:mixed.example", SpfResult::Fail),
        (
            "mx:mixed.example mx:none.example a:gone.example",
            SpfResult::PermError,
        ),
        ("ptr a:gone.example", SpfResult::Fail),
        ("ptr ptr:example.net mx:none.example", SpfResult::PermError),
        (
            "ptr a:mx.example a:mx.example mx:mixed.example",
            SpfResult::Fail,
        ),
        (
            "a:gone.example a:gone.example a:mx.example",
            SpfResult::Fail,
        ),
    ] {
        let zone = zone(&format!("v=spf1 {terms} -all"));
        let found = checked(&zone, from("192.0.2.1", "a@example.org"));
        assert_eq!(found, result, "{terms}");
    }
}

/// A domain with exchangers of IPv4 alone has a policy for clients of IPv6 too.
#[test]
fn exchangers_without_ipv6_leave_the_policy_right() {
    let mut lines = vec![("example.org", policy("v=spf1 mx ip6:2001:db8::/32 -all"))];
    for host in ["mx1.example.org", "mx2.example.org", "mx3.example.org"] {
        lines.push(("example.org", Record::Mx(1, host.to_owned())));
        lines.push((host, Record::A([192, 0, 2, 1].into())));
    }
    let found = checked(&Zone::with(&lines), from("2001:db8::1", "a@example.org"));
    assert_eq!(found, SpfResult::Pass);
}
