//! Files of block lists.
//!
//! The first octet is the format, the rest is the file. Lines with errors are left out. A map has the neighbours with
//! values, networks around a listed address are not empty, questions have the values of the listing, and ranges are in
//! order and apart.

use std::net::IpAddr;

use vere_dnsbl::MapName;
use vere_dnsbl::data::{Kind, TEXT_MAX, Value, ZoneData};

/// Ranges and names of which the values are asked for.
const ASKED_MAX: usize = 64;

pub(super) const SEEDS: &[&[u8]] = &[
    // ip4set: overlapping blocks, exclusions, ranges, values.
    b"\x00:3:default $\n10.0.0.0/20\n10.0.0.0/24 :4:four\n10.0.0.1 :6\n!10.0.0.4\n10.0.2.5-9 range\n127.16-31 x\n",
    // ip4trie: prefixes inside each other.
    b"\x010/0 all\n10.0.0.0/8 eight\n!10.1.2.0/24\n10.1.2.128/25 back\n10.1.2.3\n10.1.2.3 two\n",
    // ip4tset.
    b"\x02:3:def\n10.0.0.1\n255.255.255.255\n0.0.0.0\n",
    // ip6trie.
    b"\x03:2:$\n2001:db8:1/48\n2001:db8:1:2::/64 :5:\n!2001:db8:1:2::bead\n::1 #x\n::/0\n",
    // ip6tset.
    b"\x042001:db8:1:2\n!2001:db8:1:2::1\n",
    // dnset.
    b"\x05.example.com own $\n!no.example.com\n*.a.no.example.com :9:\na\\046b.com\n",
    // generic.
    b"\x06@ A 127.0.0.1\nwww 60 IN TXT \"text\"\n@ MX 10 mx.example.com\na.b AAAA ::1\n",
    // combined, with special entries.
    b"\x07$NS 1w a b\n$1 one\n$TTL 1h\n$DATASET ip4set a @\n$= base $= $1\n127.0.0.2 x\n$DATASET dnset b\nc.d\n",
    // cidr.
    b"\x081.10.16.0/20 ; SBL\n2a06:e480::/29\n198.51.100.5 - 198.51.100.9\n0.0.0.0/0\n::-ffff::\n",
];

/// Reads a file, and asks for what it lists.
pub(super) fn files(octets: &[u8]) {
    let (how, text) = crate::choice::choice(octets);
    let kind = Kind::ALL[usize::from(how) % Kind::ALL.len()];
    let mut builder = ZoneData::build();
    let mut last = 0;
    let _ = builder.add_with(kind, "list", text, |error| {
        assert!(error.line > last, "lines are read in order");
        last = error.line;
        assert!(error.to_string().contains("expected "), "{error}");
        Ok(())
    });
    let zone = builder.finish();
    check(&zone);
    for (name, subzone) in zone.subzones() {
        assert!(name.is_empty() || zone.has_name_below(b""));
        check(subzone);
    }
}

fn check(zone: &ZoneData) {
    let mut ranges: Vec<(IpAddr, IpAddr, usize)> = Vec::new();
    zone.each_v4(|first, last, values| ranges.push((first.into(), last.into(), values.len())));
    zone.each_v6(|first, last, values| ranges.push((first.into(), last.into(), values.len())));
    for pair in ranges.windows(2) {
        let (one, other) = (pair[0], pair[1]);
        assert!(one.1 < other.0, "{one:?} and {other:?}");
    }
    for (first, last, values) in ranges.into_iter().take(ASKED_MAX) {
        for address in [first, last] {
            // A mapped IPv4 address in IPv6 form is a question about the IPv4 address.
            if address.to_canonical() != address {
                continue;
            }
            let found: Vec<&Value> = zone.values(address).collect();
            assert_eq!(found.len(), values, "{address}");
            found.into_iter().for_each(text);
            check_around(zone, address);
        }
    }
    let mut names = Vec::new();
    zone.each_name(|name, below, values| names.push((name.to_vec(), below, values.len())));
    for (name, below, values) in names.into_iter().take(ASKED_MAX) {
        let found = zone.name_values(&name).count();
        // Several datasets may have the name.
        assert!(below || values == 0 || found >= values, "{name:?}");
        assert!(zone.has_name_below(&[]));
    }
    for record in zone.all_records() {
        assert!(zone.records(&record.name).contains(record));
    }
}

/// A text is bounded, and its resolved template has the same text.
fn text(value: &Value) {
    let text = value.text_for("192.0.2.1");
    assert!(text.is_none_or(|text| text.len() <= TEXT_MAX));
    let _ = value.resolved();
}

fn check_around(zone: &ZoneData, address: IpAddr) {
    let (name, _) = MapName::of(address);
    let map = zone.map(name);
    for neighbour in 0..128 {
        let listed = zone.values(name.address(neighbour)).next().is_some();
        assert_eq!(map.contains(neighbour), listed, "{name} {neighbour}");
    }
    for prefix in [0, 8, 24, 25, 32, 48, 57, 64, 128] {
        assert!(zone.has_within(address, prefix), "{address}/{prefix}");
    }
}
