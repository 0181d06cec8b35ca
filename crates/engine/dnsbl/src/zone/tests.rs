//! Answers to whole queries, read octet by octet by a small reader of the tests.

use std::net::Ipv6Addr;

use vere_dns::{Received, Type, read};

use super::*;
use crate::data::Kind;

const FILE: &str = "\
$SOA 3000 ns.example.org hostmaster.example.org 7 600 300 86400 400
$NS 3000 ns.example.org ns2.example.net
$TTL 2000
:127.0.0.3:Listed, see https://example.org/$
192.0.2.7
192.0.2.128/25
198.51.100.0
127.0.0.1
";

fn zone(apex: &str, file: &str, test_entries: bool) -> Arc<Zone> {
    zone_of(Kind::Ip4Set, apex, file, test_entries)
}

fn zone_of(kind: Kind, apex: &str, file: &str, test_entries: bool) -> Arc<Zone> {
    let mut builder = ZoneData::build();
    builder.add(kind, "file", file.as_bytes()).unwrap();
    let name = |text| Name::parse(text).unwrap();
    let defaults = Defaults {
        ttl: 2_100,
        negative_ttl: 300,
        servers: vec![name("mx.example.net")],
        mailbox: name("postmaster.example.net"),
        test_entries,
    };
    let zone = Zone::new(name(apex), builder.finish(), &defaults, 1_234);
    Arc::new(zone)
}

fn zones(test_entries: bool) -> Zones {
    Zones::new(vec![
        zone("example.org", "203.0.113.9\n", test_entries),
        zone("bl.example.org", FILE, test_entries),
    ])
}

/// An answer: code, authoritative, records of the answer section, TTL of the SOA record in the authority section.
#[derive(Debug, PartialEq)]
struct Answer {
    rcode: u8,
    is_authoritative: bool,
    records: Vec<(u16, u32, Vec<u8>)>,
    negative_ttl: Option<u32>,
}

fn ask(zones: &Zones, name: &str, kind: Type) -> Answer {
    let mut packet = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0".to_vec();
    packet.extend(Name::parse(name).unwrap().octets());
    packet.extend(kind.0.to_be_bytes());
    packet.extend([0, 1]);
    let Received::Query(query) = read(&packet) else {
        panic!("expected a query");
    };
    let mut memory = [0; 4_096];
    let (response, _) = zones.answer(&query, &mut memory, 4_096, 0);
    let length = response.finish(None);
    reading(&memory[..length], packet.len())
}

fn reading(octets: &[u8], mut at: usize) -> Answer {
    let count = |place: usize| usize::from(octets[place]) << 8 | usize::from(octets[place + 1]);
    let mut records = Vec::new();
    for _ in 0..count(6) + count(8) {
        while octets[at] != 0 && octets[at] < 0xc0 {
            at += 1 + usize::from(octets[at]);
        }
        at += if octets[at] == 0 { 1 } else { 2 };
        let ttl = u32::from_be_bytes(octets[at + 4..at + 8].try_into().unwrap());
        let length = count(at + 8);
        let data = octets[at + 10..at + 10 + length].to_vec();
        records.push((count(at) as u16, ttl, data));
        at += 10 + length;
    }
    assert_eq!(at, octets.len());
    let authority = records.split_off(count(6));
    let soa = authority.iter().find(|record| record.0 == Type::SOA.0);
    Answer {
        rcode: octets[3] & 0x0f,
        is_authoritative: octets[2] & 4 != 0,
        records,
        negative_ttl: soa.map(|record| record.1),
    }
}

fn records(name: &str, kind: Type) -> Vec<Vec<u8>> {
    let answer = ask(&zones(true), name, kind);
    answer.records.into_iter().map(|record| record.2).collect()
}

fn map(name: &str) -> Option<Ipv6Addr> {
    let octets: [u8; 16] = records(name, Type::AAAA)
        .first()?
        .as_slice()
        .try_into()
        .unwrap();
    Some(octets.into())
}

/// The kinds of negative answers.
fn negative(name: &str, kind: Type) -> &'static str {
    let answer = ask(&zones(true), name, kind);
    assert_eq!(answer.records, []);
    assert!(answer.is_authoritative);
    // RFC 2308 section 5: the lesser of the TTL of the SOA record and its last number.
    assert_eq!(answer.negative_ttl, Some(400), "{name}");
    match answer.rcode {
        0 => "nodata",
        3 => "nxdomain",
        other => panic!("unexpected code {other}"),
    }
}

#[test]
fn a_listed_address_has_its_value_and_text() {
    let answer = ask(&zones(true), "7.2.0.192.bl.example.org", Type::A);
    assert_eq!(answer.records, [(1, 2_000, vec![127, 0, 0, 3])]);
    assert_eq!((answer.rcode, answer.is_authoritative), (0, true));
    let text = b"+Listed, see https://example.org/192.0.2.7";
    let text = &text[1..];
    let found = records("7.2.0.192.BL.Example.ORG", Type::TXT);
    assert_eq!(found[0][1..], *text);
    assert_eq!(negative("7.2.0.192.bl.example.org", Type::MX), "nodata");
    assert_eq!(negative("8.2.0.192.bl.example.org", Type::A), "nxdomain");
}

#[test]
fn maps_of_both_halves() {
    assert_eq!(
        map("0.2.0.192.bl.example.org"),
        Some("100::".parse().unwrap())
    );
    let full = Ipv6Addr::from_bits(u128::MAX);
    assert_eq!(map("1.2.0.192.bl.example.org"), Some(full));
    assert_eq!(
        map("0.100.51.198.bl.example.org"),
        Some("8000::".parse().unwrap())
    );
    // The name of a map is also the name of an address, and exists for its sake.
    assert_eq!(negative("0.2.0.192.bl.example.org", Type::A), "nodata");
    assert_eq!(
        negative("1.100.51.198.bl.example.org", Type::AAAA),
        "nxdomain"
    );
    assert_eq!(negative("2.2.0.192.bl.example.org", Type::AAAA), "nxdomain");
    assert_eq!(negative("7.2.0.192.bl.example.org", Type::AAAA), "nodata");
}

#[test]
fn names_above_listings_exist() {
    for name in [
        "192.bl.example.org",
        "0.192.bl.example.org",
        "2.0.192.bl.example.org",
    ] {
        assert_eq!(negative(name, Type::A), "nodata", "{name}");
    }
    for name in [
        "193.bl.example.org",
        "3.0.192.bl.example.org",
        "x.bl.example.org",
    ] {
        assert_eq!(negative(name, Type::A), "nxdomain", "{name}");
    }
}

#[test]
fn the_apex_has_its_start_and_servers() {
    let zones = zones(true);
    let soa = ask(&zones, "bl.example.org", Type::SOA);
    assert_eq!((soa.records.len(), soa.records[0].1), (1, 3_000));
    let numbers: Vec<u8> = [7_u32, 600, 300, 86_400, 400]
        .iter()
        .flat_map(|n| n.to_be_bytes())
        .collect();
    assert!(soa.records[0].2.ends_with(&numbers));
    let servers = ask(&zones, "bl.example.org", Type::NS);
    assert_eq!(servers.records.len(), 2);
    assert_eq!(negative("bl.example.org", Type::A), "nodata");
    // Without lines of its own a zone has the defaults, and the time of its files.
    let soa = ask(&zones, "example.org", Type::SOA);
    let numbers: Vec<u8> = [1_234, REFRESH, RETRY, EXPIRE, 300]
        .iter()
        .flat_map(|n| n.to_be_bytes())
        .collect();
    assert!(soa.records[0].2.ends_with(&numbers));
    assert_eq!(ask(&zones, "example.org", Type::NS).records.len(), 1);
}

#[test]
fn the_closest_zone_answers_and_no_other() {
    let zones = zones(true);
    let a = |name| ask(&zones, name, Type::A);
    assert_eq!(a("9.113.0.203.example.org").records.len(), 1);
    assert_eq!(a("9.113.0.203.bl.example.org").rcode, 3);
    let outside = a("9.113.0.203.example.net");
    assert_eq!((outside.rcode, outside.is_authoritative), (5, false));
    assert_eq!(a("9.113.0.203.xexample.org").rcode, 5);
}

/// RFC 5782 section 5.
#[test]
fn test_entries_are_there_unless_switched_off() {
    let listed = "2.0.0.127.bl.example.org";
    let mapped = "2.0.0.0.0.0.f.7.f.f.f.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.bl.example.org";
    for name in [listed, mapped] {
        assert_eq!(records(name, Type::A), [[127, 0, 0, 2]], "{name}");
        assert_eq!(records(name, Type::TXT).len(), 1);
    }
    // The file lists 127.0.0.1 by mistake.
    for name in ["1.0.0.127.bl.example.org", &mapped.replacen('2', "1", 1)] {
        assert_eq!(negative(name, Type::A), "nxdomain", "{name}");
    }
    assert_eq!(
        map("0.0.0.127.bl.example.org"),
        Some("2000::".parse().unwrap())
    );
    assert_eq!(
        negative(
            "f.7.f.f.f.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.bl.example.org",
            Type::A
        ),
        "nodata"
    );
    assert_eq!(negative("0.bl.example.org", Type::A), "nodata");
    let off = zones(false);
    assert_eq!(ask(&off, listed, Type::A).rcode, 3);
    assert_eq!(
        ask(&off, "1.0.0.127.bl.example.org", Type::A).records.len(),
        1
    );
}

/// Parts of a combined zone have the test entries of their own data alone.
#[test]
fn parts_of_a_zone_have_their_own_test_entries() {
    let file = "$DATASET ip4set:own own\n:127.0.0.7:Own\n127.0.0.2\n$DATASET ip4set:bare bare\n192.0.2.7\n\
                $DATASET dnset:names names\nexample.com\n";
    let zones = Zones::new(vec![zone_of(Kind::Combined, "bl.example.org", file, true)]);
    let codes = |name: &str| {
        let answer = ask(&zones, &format!("{name}.bl.example.org"), Type::A);
        let codes = answer.records.into_iter().map(|(_, _, data)| data);
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes("2.0.0.127.own"), [[127, 0, 0, 7]]);
    assert_eq!(codes("2.0.0.127.bare"), [[127, 0, 0, 2]]);
    assert_eq!(codes("test.names"), [[127, 0, 0, 2]]);
    assert!(codes("test.bare").is_empty() && codes("invalid.names").is_empty());
    let [(_, zone)] = zones.iter().collect::<Vec<_>>()[..] else {
        panic!("one zone");
    };
    assert!(zone.data().memory() > 0);
}

#[test]
fn a_question_for_all_types_gets_one_record() {
    let any = |name| ask(&zones(true), name, Type::ANY);
    let answer = any("7.2.0.192.bl.example.org");
    assert_eq!(answer.records, [(13, 86_400, b"\x07RFC8482\0".to_vec())]);
    assert_eq!(any("8.2.0.192.bl.example.org").rcode, 3);
}

#[test]
fn data_that_expired_are_not_served() {
    let file = "$TIMESTAMP 2026:01:01 +1d\n192.0.2.7\n";
    let zone = zone("bl.example.org", file, true);
    let expires = zone.data().head().expires.unwrap();
    assert!(!zone.is_expired(expires - 1));
    assert!(zone.is_expired(expires));
}

/// A map and 128 questions say the same, and the name of a map exists if and only if the map does.
#[test]
fn a_map_lists_whom_a_question_for_the_address_lists() {
    let zones = zones(true);
    for (network, half) in [
        ("2.0.192", 0),
        ("2.0.192", 1),
        ("100.51.198", 0),
        ("0.0.127", 0),
    ] {
        let map = map(&format!("{half}.{network}.bl.example.org")).map_or(Map::EMPTY, Map::from);
        for neighbour in 0..128_u8 {
            let name = format!(
                "{}.{network}.bl.example.org",
                half * 128 + i32::from(neighbour)
            );
            let is_listed = !ask(&zones, &name, Type::A).records.is_empty();
            assert_eq!(map.contains(neighbour), is_listed, "{name}");
        }
    }
}
