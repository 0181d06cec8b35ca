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

fn packet(name: &str, kind: Type) -> Vec<u8> {
    let mut packet = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0".to_vec();
    packet.extend(Name::parse(name).unwrap().octets());
    packet.extend(kind.0.to_be_bytes());
    packet.extend([0, 1]);
    packet
}

fn ask(zones: &Zones, name: &str, kind: Type) -> Answer {
    let packet = packet(name, kind);
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
    assert_eq!(answer.negative_ttl, None);
    let text = b"+Listed, see https://example.org/192.0.2.7";
    let text = &text[1..];
    let found = records("7.2.0.192.BL.Example.ORG", Type::TXT);
    assert_eq!(found[0][1..], *text);
    for kind in [Type::MX, Type::SOA, Type::NS] {
        assert_eq!(negative("7.2.0.192.bl.example.org", kind), "nodata");
    }
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

/// A listed IPv4 address has a name in the form of IPv6 too (RFC 4291 section 2.5.5.2), and so have the names above.
#[test]
fn names_above_a_mapped_listing_exist() {
    let nibbles = b"00000000000000000000ffffc0000207";
    let name = |digits: &[u8]| {
        let labels = digits
            .iter()
            .rev()
            .map(|digit| char::from(*digit).to_string());
        format!("{}.bl.example.org", labels.collect::<Vec<_>>().join("."))
    };
    for count in 1..nibbles.len() {
        let digits = &nibbles[..count];
        assert_eq!(negative(&name(digits), Type::A), "nodata", "{count}");
        let mut beside = digits.to_vec();
        beside[count - 1] = match beside[count - 1] {
            b'f' => b'e',
            b'c' => b'd',
            digit => digit + 1,
        };
        assert_eq!(negative(&name(&beside), Type::A), "nxdomain", "{count}");
    }
    assert_eq!(records(&name(nibbles), Type::A), [[127, 0, 0, 3]]);
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

/// A part answers for all names below; names above other parts exist all the same.
#[test]
fn names_above_parts_of_a_zone_exist() {
    let parts =
        ["b", "x.a.b", "y.a.b"].map(|part| format!("$DATASET ip4set:{part} {part}\n192.0.2.7\n"));
    let zones = Zones::new(vec![zone_of(
        Kind::Combined,
        "bl.test",
        &parts.concat(),
        true,
    )]);
    for name in ["b", "a.b", "x.a.b", "192.b", "192.x.a.b"] {
        let answer = ask(&zones, &format!("{name}.bl.test"), Type::A);
        assert_eq!(
            (answer.rcode, answer.negative_ttl),
            (0, Some(300)),
            "{name}"
        );
    }
    for name in ["c", "a", "z.a.b", "192", "192.a.b", "b.x.a.b"] {
        assert_eq!(
            ask(&zones, &format!("{name}.bl.test"), Type::A).rcode,
            3,
            "{name}"
        );
    }
    for name in ["7.2.0.192.b", "7.2.0.192.x.a.b"] {
        let answer = ask(&zones, &format!("{name}.bl.test"), Type::A);
        assert_eq!(answer.records.len(), 1, "{name}");
    }
}

#[test]
fn records_of_files_are_answered_by_their_type() {
    let file = "@ 60 A 192.0.2.1\n@ AAAA 2001:db8::1\n@ MX 10 mx.test\nwww TXT \"a text\"\n";
    let zones = Zones::new(vec![zone_of(Kind::Generic, "bl.test", file, true)]);
    let found = |name: &str, kind| ask(&zones, name, kind).records;
    assert_eq!(found("bl.test", Type::A), [(1, 60, vec![192, 0, 2, 1])]);
    let address: Ipv6Addr = "2001:db8::1".parse().unwrap();
    let octets = address.octets().to_vec();
    assert_eq!(found("bl.test", Type::AAAA), [(28, 2_100, octets)]);
    let mail = found("bl.test", Type::MX);
    assert_eq!(
        (mail.len(), mail[0].0, &mail[0].2[..2]),
        (1, 15, &[0, 10][..])
    );
    let text = found("www.bl.test", Type::TXT);
    assert_eq!(text, [(16, 2_100, b"\x06a text".to_vec())]);
    assert_eq!(found("bl.test", Type::TXT), []);
    assert_eq!(ask(&zones, "bl.test", Type::TXT).rcode, 0);
}

/// RFC 2181 section 5: a set of records has no record twice.
#[test]
fn each_record_is_there_once() {
    let file = "192.0.2.7 :2:a $\n192.0.2.7 :2:b\n192.0.2.7 :3:a $\n192.0.2.7 :4:\n";
    let zones = Zones::new(vec![zone("bl.test", file, true)]);
    let found = |kind| {
        let records = ask(&zones, "7.2.0.192.bl.test", kind).records;
        let mut data: Vec<_> = records.into_iter().map(|(_, _, data)| data).collect();
        data.sort();
        data
    };
    assert_eq!(
        found(Type::A),
        [[127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 4]]
    );
    assert_eq!(found(Type::TXT), [&b"\x01b"[..], b"\x0ba 192.0.2.7"]);
}

/// Entries without a text of their own had no TXT record, and the texts of two datasets counted as one.
#[test]
fn base_templates_give_texts_to_all_entries() {
    let file = "$DATASET ip4set:a @\n$= A $= of $\n192.0.2.1\n192.0.2.2 own\n\
                $DATASET ip4set:b @\n$= B $\n192.0.2.1\n192.0.2.2 own\n$DATASET ip4set:c @\n192.0.2.2 own\n";
    let zones = Zones::new(vec![zone_of(Kind::Combined, "bl.test", file, true)]);
    let texts = |name: &str| {
        let records = ask(&zones, name, Type::TXT).records;
        let texts = records
            .into_iter()
            .map(|(_, _, data)| String::from_utf8(data[1..].to_vec()));
        texts.collect::<Result<Vec<_>, _>>().unwrap()
    };
    let one = ["A 192.0.2.1 of 192.0.2.1", "B 192.0.2.1"];
    assert_eq!(texts("1.2.0.192.bl.test"), one);
    let own = ["A own of 192.0.2.2", "B 192.0.2.2", "own"];
    assert_eq!(texts("2.2.0.192.bl.test"), own);
}

#[test]
fn each_dataset_has_its_ttl() {
    let file = "$DATASET ip4set:a @\n$TTL 100\n192.0.2.1\n$DATASET ip4set:b @\n$TTL 200\n192.0.2.2\n\
                $DATASET ip4set:c @\n192.0.2.3\n";
    let zones = Zones::new(vec![zone_of(Kind::Combined, "bl.test", file, true)]);
    for (last, ttl) in [(1, 100), (2, 200), (3, 100)] {
        let answer = ask(&zones, &format!("{last}.2.0.192.bl.test"), Type::A);
        assert_eq!(answer.records, [(1, ttl, vec![127, 0, 0, 2])]);
    }
}

/// RFC 5782 section 5: `test` is on every list of names, and `invalid` on none.
#[test]
fn names_are_listed_beside_the_test_entries() {
    let file = "example.com :3:about $\n*.example.net :3:about $\ninvalid\n";
    for (test_entries, rcodes) in [(true, [0, 3]), (false, [3, 0])] {
        let zones = Zones::new(vec![zone_of(Kind::DnSet, "bl.test", file, test_entries)]);
        let found = |name: &str, kind| ask(&zones, &format!("{name}.bl.test"), kind);
        let listed = found("Example.COM", Type::A);
        assert_eq!(listed.records, [(1, 2_100, vec![127, 0, 0, 3])]);
        let text = found("example.com", Type::TXT).records;
        assert_eq!(text[0].2, b"\x11about example.com");
        let text = found("a.example.net", Type::TXT).records;
        // The text of an entry for all names below named the name that was asked for.
        assert_eq!(text[0].2, b"\x11about example.net");
        assert_eq!(found("example.org", Type::A).rcode, 3);
        assert_eq!(
            ["test", "invalid"].map(|name| found(name, Type::A).rcode),
            rcodes
        );
        let tests = usize::from(test_entries);
        assert_eq!(found("test", Type::A).records.len(), tests);
        let texts = found("test", Type::TXT).records;
        assert_eq!(texts.len(), tests);
        assert!(
            texts
                .iter()
                .all(|text| text.2 == b"\x15Test entry (RFC 5782)")
        );
    }
    // An entry of the file is not doubled.
    let zones = Zones::new(vec![zone_of(Kind::DnSet, "bl.test", "test :9:own\n", true)]);
    let own = ask(&zones, "test.bl.test", Type::A).records;
    assert_eq!(own, [(1, 2_100, vec![127, 0, 0, 9])]);
}

/// The rate limits and the counts go by the kind.
#[test]
fn an_answer_has_a_zone_and_a_kind() {
    use AnswerKind::{Error, Negative, Positive};
    let zones = zones(true);
    for (name, kind, limit, zone, expected) in [
        ("7.2.0.192.bl.example.org", Type::A, 512, Some(1), Positive),
        ("7.2.0.192.bl.example.org", Type::A, 50, Some(1), Positive),
        (
            "7.2.0.192.bl.example.org",
            Type::ANY,
            512,
            Some(1),
            Positive,
        ),
        ("7.2.0.192.bl.example.org", Type::MX, 512, Some(1), Negative),
        (
            "8.2.0.192.bl.example.org",
            Type::ANY,
            512,
            Some(1),
            Negative,
        ),
        ("9.113.0.203.example.org", Type::A, 512, Some(0), Positive),
        ("9.113.0.203.example.net", Type::A, 512, None, Error),
    ] {
        let packet = packet(name, kind);
        let Received::Query(query) = read(&packet) else {
            panic!("expected a query");
        };
        let mut memory = [0; 512];
        let (response, answered) = zones.answer(&query, &mut memory, limit, 0);
        assert_eq!((answered.zone, answered.kind), (zone, expected), "{name}");
        assert_eq!(response.is_truncated(), limit == 50);
    }
}

/// The file lists nothing in the network of the test entries.
#[test]
fn names_above_the_test_entries_exist() {
    for (test_entries, rcode) in [(true, 0), (false, 3)] {
        let zones = zones(test_entries);
        let rcode_of = |name: &str| ask(&zones, &format!("{name}.example.org"), Type::A).rcode;
        for name in ["127", "0.127", "0.0.127", "2.0.0.127"] {
            assert_eq!(rcode_of(name), rcode, "{name}");
        }
        for name in ["126", "1.127", "1.0.127", "3.0.0.127"] {
            assert_eq!(rcode_of(name), 3, "{name}");
        }
    }
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
