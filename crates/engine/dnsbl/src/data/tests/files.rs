//! Formats, in turn; every answer is rbldnsd's unless the test says otherwise.

use super::{answer, name_answer, wire, zone};
use crate::data::{Kind, RecordData, ZoneData};

#[test]
fn an_ip4set_has_the_values_of_the_smallest_block() {
    let zone = zone(
        Kind::Ip4Set,
        ":3:default $\n10.0.0.0/20\n10.0.0.0/24 :4:four\n10.0.0.0/25 :5:five\n10.0.0.1 :6\n10.0.0.2 :7:\n\
         10.0.0.3 plain $$ text\n!10.0.0.4\n10.0.0.9 ; comment\n10.0.2.5-9 range\n10.0.2.7-10.0.3.4 r2\n\
         127.16-31 bla\n",
    );
    let of = |address| answer(&zone, address);
    assert_eq!(
        of("10.0.0.1"),
        ["127.0.0.5 five", "127.0.0.6 default 10.0.0.1"]
    );
    assert_eq!(of("10.0.0.2"), ["127.0.0.5 five", "127.0.0.7"]);
    assert_eq!(of("10.0.0.3"), ["127.0.0.3 plain $ text", "127.0.0.5 five"]);
    assert!(of("10.0.0.4").is_empty());
    assert_eq!(
        of("10.0.0.9"),
        ["127.0.0.3 default 10.0.0.9", "127.0.0.5 five"]
    );
    assert_eq!(
        of("10.0.0.200"),
        ["127.0.0.3 default 10.0.0.200", "127.0.0.4 four"]
    );
    assert_eq!(of("10.0.2.7"), ["127.0.0.3 r2", "127.0.0.3 range"]);
    assert_eq!(of("10.0.4.1"), ["127.0.0.3 default 10.0.4.1"]);
    assert_eq!(of("127.20.1.1"), ["127.0.0.3 bla"]);
    assert!(of("127.32.0.0").is_empty());
}

#[test]
fn an_ip4trie_has_the_first_value_of_the_longest_prefix() {
    let zone = zone(
        Kind::Ip4Trie,
        "0/0 all\n10.0.0.0/8 eight\n10.1.0.0/16 :4:sixteen\n10.1/16 again\n!10.1.2.0/24\n10.1.2.128/25 back\n\
         10.1.2.3 one\n10.1.2.3 two\n15.0.0.1 x\n!15.0.0.1\n!14.0.0.1\n14.0.0.1 x\n",
    );
    let of = |address| answer(&zone, address);
    assert_eq!(of("99.0.0.1"), ["127.0.0.2 all"]);
    assert_eq!(of("10.1.1.1"), ["127.0.0.4 sixteen"]);
    assert!(of("10.1.2.9").is_empty());
    assert_eq!(of("10.1.2.200"), ["127.0.0.2 back"]);
    assert_eq!(of("10.1.2.3"), ["127.0.0.2 one"]);
    assert_eq!(of("15.0.0.1"), ["127.0.0.2 x"]);
    assert!(of("14.0.0.1").is_empty());
}

#[test]
fn trivial_sets_have_the_default_that_comes_first() {
    let four = zone(
        Kind::Ip4TSet,
        "10.0.0.9\n:3:def $\n10.0.0.2 own text\n:4:later\n10.0.0.3 :5:own\n",
    );
    for address in ["10.0.0.2", "10.0.0.3", "10.0.0.9"] {
        let expected = format!("127.0.0.3 def {address}");
        assert_eq!(answer(&four, address), [expected]);
    }
    let six = zone(Kind::Ip6TSet, ":3:def\n2001:db8:1:2\n!2001:db8:1:2::bead\n");
    assert_eq!(answer(&six, "2001:db8:1:2::9"), ["127.0.0.3 def"]);
    assert!(answer(&six, "2001:db8:1:2::bead").is_empty());
    assert!(answer(&six, "2001:db8:1:3::9").is_empty());
}

#[test]
fn an_ip6trie_has_prefixes_without_their_last_zeros() {
    let zone = zone(
        Kind::Ip6Trie,
        ":127.0.1.2: Listed $\n2001:db8:1/48\n2001:db8:1:2::/64 :5: five\n!2001:db8:1:2::bead\n::1  #local\n\
         2001:db8:6\n2001:db8:7::\n2001:21ab:c000/36\n2001:0DB8::1 :6\n",
    );
    let of = |address| answer(&zone, address);
    assert_eq!(of("2001:db8:1::5"), ["127.0.1.2 Listed 2001:db8:1::5"]);
    assert_eq!(of("2001:db8:1:2::9"), ["127.0.0.5 five"]);
    assert!(of("2001:db8:1:2::bead").is_empty());
    assert_eq!(of("::1"), ["127.0.1.2 Listed ::1"]);
    assert_eq!(of("2001:db8:6::1"), ["127.0.1.2 Listed 2001:db8:6::1"]);
    assert!(of("2001:db8:7:0:ffff::1").is_empty());
    assert_eq!(
        of("2001:21ab:cfff::5"),
        ["127.0.1.2 Listed 2001:21ab:cfff::5"]
    );
    assert_eq!(of("2001:db8::1"), ["127.0.0.6 Listed 2001:db8::1"]);
}

#[test]
fn a_dnset_prefers_the_name_and_then_the_closest_wildcard() {
    let zone = zone(
        Kind::DnSet,
        ":3:def $\nexample.com\n*.wild.com\n.both.com own $\n!no.both.com\n*.x.no.both.com :9:nine\n\
         !*.y.both.com\nUPPER.Com up\na.b.wild.com :5:five\n!c.wild.com\nc.wild.com :6:\ndup.com one\n\
         dup.com :7:two\ntrail.com.\na\\046b.com\n",
    );
    let of = |name| name_answer(&zone, name);
    assert_eq!(of("example.com"), ["127.0.0.3 def example.com"]);
    assert!(of("www.example.com").is_empty());
    assert_eq!(of("q.a.wild.com"), ["127.0.0.3 def wild.com"]);
    assert!(of("wild.com").is_empty());
    assert_eq!(of("a.both.com"), ["127.0.0.3 own both.com"]);
    assert_eq!(of("both.com"), ["127.0.0.3 own both.com"]);
    assert!(of("no.both.com").is_empty());
    assert_eq!(of("x.no.both.com"), ["127.0.0.3 own both.com"]);
    assert_eq!(of("q.x.no.both.com"), ["127.0.0.9 nine"]);
    assert_eq!(of("y.both.com"), ["127.0.0.3 own both.com"]);
    assert!(of("q.y.both.com").is_empty());
    assert_eq!(of("upper.com"), ["127.0.0.3 up"]);
    assert_eq!(of("a.b.wild.com"), ["127.0.0.5 five"]);
    assert!(of("c.wild.com").is_empty());
    assert_eq!(of("d.c.wild.com"), ["127.0.0.3 def wild.com"]);
    assert_eq!(of("dup.com"), ["127.0.0.3 one", "127.0.0.7 two"]);
    assert_eq!(of("trail.com"), ["127.0.0.3 def trail.com"]);
    assert_eq!(of("a\\.b.com"), ["127.0.0.3 def a\\.b.com"]);
    assert!(zone.has_name_below(&wire("com")));
    assert!(zone.has_name_below(&wire("b.wild.com")));
    assert!(zone.has_name_below(&wire("wild.com")));
    assert!(!zone.has_name_below(&wire("example.com")));
    assert!(!zone.has_name_below(&wire("org")));
}

#[test]
fn a_generic_dataset_has_records() {
    let zone = zone(
        Kind::Generic,
        "$TTL 99\n$1 var\n@ A 127.0.0.8\n@ MX 10 mx.ex.com\n@ TXT \"ex.com combined $1\"\nwww 3000 A 127.0.0.1\n\
         WWW in a 127.0.0.2\na.b.c 1h AAAA ::1\n",
    );
    let records = |name: &str| -> Vec<String> {
        let records = zone.records(&wire(name)).iter();
        let text = |data: &RecordData| match data {
            RecordData::A(address) => address.to_string(),
            RecordData::Aaaa(address) => address.to_string(),
            RecordData::Txt(text) => text.escape_ascii().to_string(),
            RecordData::Mx(preference, name) => {
                format!("{preference} {}", super::super::name_text(name))
            }
        };
        records
            .map(|record| format!("{} {}", record.ttl.unwrap_or_default(), text(&record.data)))
            .collect()
    };
    let apex = ["99 127.0.0.8", "99 10 mx.ex.com", "99 ex.com combined $1"];
    assert_eq!(records("@"), apex);
    assert_eq!(records("www"), ["3000 127.0.0.1", "99 127.0.0.2"]);
    assert_eq!(records("a.b.c"), ["3600 ::1"]);
    assert!(records("b.c").is_empty());
    assert!(zone.has_name_below(&wire("b.c")));
    assert!(!zone.has_name_below(&wire("a.b.c")));
    assert!(zone.has_name_below(b""));
}

#[test]
fn a_combined_dataset_has_subzones() {
    let zone = zone(
        Kind::Combined,
        "$NS 1w ns1.ex.com -ns2.ex.com\n$SOA 1w ns1.ex.com admin.ex.com 0 2h 2h 1w 1h\n$1 global1\n\
         $DATASET ip4set:proxy proxies @\n$1 local1\n$2 local2\n:2:proxy $ $1 $2\n127.0.0.2\n\
         $DATASET ip4set:relay relays @\n:3:relay $1 $2\n127.0.0.2\n127.0.2.10\n\
         $DATASET generic multi.hop @\nwww A 127.0.0.8\n$DATASET ip4trie relays\n127.0.0.77\n",
    );
    let both = [
        "127.0.0.2 proxy 127.0.0.2 global1 local2",
        "127.0.0.3 relay global1 $2",
    ];
    assert_eq!(answer(&zone, "127.0.0.2"), both);
    let subzone = |name: &str| -> &ZoneData {
        let mut subzones = zone.subzones();
        let found = subzones.find(|(zone, _)| **zone == wire(name));
        found.expect("a subzone").1
    };
    assert_eq!(answer(subzone("proxies"), "127.0.0.2"), both[..1]);
    assert_eq!(answer(subzone("relays"), "127.0.0.2"), both[1..]);
    assert_eq!(answer(subzone("relays"), "127.0.0.77"), ["127.0.0.2"]);
    assert!(answer(&zone, "127.0.0.77").is_empty());
    assert_eq!(subzone("multi.hop").records(&wire("www")).len(), 1);
    assert_eq!(zone.records(&wire("www")).len(), 1);
    assert!(zone.has_name_below(&wire("hop")));
    let head = zone.head();
    let servers = head.name_servers.as_ref().expect("name servers");
    assert_eq!((servers.ttl, servers.names.len()), (604_800, 1));
    assert_eq!(&*servers.names[0], b"\x03ns1\x02ex\x03com\0");
    let soa = head.soa.as_ref().expect("a start of authority");
    assert_eq!((soa.ttl, soa.refresh, soa.minimum), (604_800, 7200, 3600));
}

#[test]
fn a_base_template_is_filled_with_the_text_of_the_entry() {
    let zone = zone(
        Kind::Ip4Set,
        "$= See bl?$= ($) $1\n$1 one$$ $2\n127.0.0.2 r123\n127.0.0.3\n127.0.0.4 =Other $ $7\n127.0.0.5 :6:\n\
         127.0.0.6 =\n",
    );
    let of = |address| answer(&zone, address);
    assert_eq!(
        of("127.0.0.2"),
        ["127.0.0.2 See bl?r123 (127.0.0.2) one$$ $2"]
    );
    assert_eq!(
        of("127.0.0.3"),
        ["127.0.0.2 See bl?127.0.0.3 (127.0.0.3) one$$ $2"]
    );
    assert_eq!(of("127.0.0.4"), ["127.0.0.2 Other 127.0.0.4 $7"]);
    assert_eq!(
        of("127.0.0.5"),
        ["127.0.0.6 See bl?127.0.0.5 (127.0.0.5) one$$ $2"]
    );
    assert_eq!(of("127.0.0.6"), ["127.0.0.2"]);
}

/// A character-string has no more; rbldnsd 1.0pre ends an octet or two earlier.
#[test]
fn a_text_has_at_most_255_octets() {
    let text = format!(
        "10.0.0.1 {}\n10.0.0.2 {}\n",
        "x$ ".repeat(90),
        "\u{e9}".repeat(200)
    );
    let zone = zone(Kind::Ip4Set, &text);
    let length = |address: &str| answer(&zone, address)[0].len() - "127.0.0.2 ".len();
    assert_eq!(length("10.0.0.1"), 255);
    // Characters of two octets are not cut apart.
    assert_eq!(length("10.0.0.2"), 254);
}

/// rbldnsd has no such format.
#[test]
fn a_list_of_networks_has_addresses_networks_and_ranges_of_both_families() {
    let zone = zone(
        Kind::Cidr,
        "; Spamhaus DROP List\n1.10.16.0/20 ; SBL256894\n2a06:e480::/29 ; SBL301771\n192.0.2.7 # one\n\
         198.51.100.5 - 198.51.100.9\n2001:db8::1\n2001:db8::5-2001:db8::7\n",
    );
    let listed = |address| answer(&zone, address) == ["127.0.0.2"];
    for address in [
        "1.10.16.0",
        "1.10.31.255",
        "192.0.2.7",
        "198.51.100.9",
        "2a06:e487:ffff::1",
        "2001:db8::1",
        "2001:db8::6",
    ] {
        assert!(listed(address), "{address}");
    }
    for address in ["1.10.32.0", "192.0.2.8", "198.51.100.10", "2001:db8::8"] {
        assert!(!listed(address), "{address}");
    }
}

#[test]
fn entries_are_counted_as_they_answer() {
    for (kind, text, entries) in [
        (Kind::Ip4Set, "", 0),
        (
            Kind::Ip4Set,
            "192.0.2.1\n192.0.2.1\n10.0.0.0/8\n!10.0.0.5\n",
            2,
        ),
        (Kind::Cidr, "192.0.2.0/24\n2001:db8::/32\n2001:db8::1\n", 2),
        (Kind::DnSet, "a.example\n*.b.example\n", 2),
        (Kind::Generic, "www A 127.0.0.9\nwww TXT x\n", 2),
        (
            Kind::Combined,
            "$DATASET ip4set a\n192.0.2.1\n$DATASET dnset b\na.example\n",
            2,
        ),
    ] {
        assert_eq!(zone(kind, text).entries(), entries, "{text}");
    }
}

#[test]
fn times_of_the_data_are_seconds() {
    let zone = zone(
        Kind::Ip4Set,
        "$TIMESTAMP 2005:04:03:02:01:00 +2d\n#$TTL 1h\n127.0.0.2\n$TIMESTAMP 2004-02-29 20050404\n",
    );
    let head = zone.head();
    assert_eq!(head.timestamp, Some(1_112_493_660));
    assert_eq!(head.expires, Some(1_112_572_800));
    assert_eq!(head.ttl, Some(3600));
}

#[test]
fn an_error_has_file_line_and_reason() {
    for (kind, text, expected) in ERRORS {
        let mut builder = ZoneData::build();
        let error = builder.add(*kind, "list", text.as_bytes());
        let error = error.expect_err(text).to_string();
        assert_eq!(error, format!("list: line {expected}"));
    }
}

/// Files, and what their error says behind the name of the file.
const ERRORS: &[(Kind, &str, &str)] = &[
    (
        Kind::Ip4Set,
        "# head\n10.0.0.256\n",
        "2: expected an IPv4 address, network or range; found \"10.0.0.256\"",
    ),
    (
        Kind::Ip4Set,
        "10.0.0.1/24",
        "1: expected a network without bits after the first 24; found \"10.0.0.1/24\"",
    ),
    (
        Kind::Ip4Set,
        "10.0.0.9-3",
        "1: expected a range that ends after its start; found \"10.0.0.9-3\"",
    ),
    (
        Kind::Ip4Set,
        "0/0",
        "1: expected a prefix of 1 to 32 bits; found \"0/0\"",
    ),
    (
        Kind::Ip4Set,
        "10.0.0.1 :256:x",
        "1: expected an IPv4 address as value, or its last octet, 1 to 255; found \"256\"",
    ),
    (
        Kind::Ip4Set,
        "$MAXRANGE4 /25\n10.0.0/24",
        "2: expected at most 128 addresses in an entry; found \"10.0.0/24\"",
    ),
    (
        Kind::Ip4Set,
        "$WHAT is this",
        "1: expected $SOA, $NS, $TTL, $TIMESTAMP, $MAXRANGE4, $DATASET, $0 to $9 or $=; found \"$WHAT is this\"",
    ),
    (
        Kind::Ip4Set,
        "$TTL 1y",
        "1: expected a time in seconds, or with one of the suffixes s, m, h, d, w; found \"1y\"",
    ),
    (
        Kind::Ip4Set,
        "$TIMESTAMP 2005:02:29",
        "1: expected a time such as 2026:11:28:12:00:00, or 0; found \"2005:02:29\"",
    ),
    (
        Kind::Ip4Set,
        "$DATASET ip4set @",
        "1: expected $DATASET in a file of the format combined alone; found \"ip4set @\"",
    ),
    (
        Kind::Ip4TSet,
        "10.0.0/24",
        "1: expected a single IPv4 address; found \"10.0.0/24\"",
    ),
    (
        Kind::Ip4Trie,
        "10.0.0.1-2",
        "1: expected an IPv4 address or network; found \"10.0.0.1-2\"",
    ),
    (
        Kind::Ip6Trie,
        "2001:db8::1/48",
        "1: expected a network without bits after the first 48; found \"2001:db8::1/48\"",
    ),
    (
        Kind::Ip6TSet,
        "2001:db8::/48",
        "1: expected an IPv6 network of 64 bits; found \"2001:db8::/48\"",
    ),
    (
        Kind::DnSet,
        "bad..com",
        "1: expected labels of 1 to 63 octets, separated by single dots; found \"bad..com\"",
    ),
    (
        Kind::Generic,
        "www CNAME other",
        "1: expected a name, perhaps a TTL, and a record of type A, AAAA, TXT or MX; found \"www CNAME other\"",
    ),
    (
        Kind::Combined,
        "127.0.0.2",
        "1: expected a $DATASET line before the first entry; found \"127.0.0.2\"",
    ),
    (
        Kind::Combined,
        "$DATASET combined @",
        "1: expected a dataset type other than combined behind $DATASET; found \"combined @\"",
    ),
    (
        Kind::Cidr,
        "10.0.0/24",
        "1: expected an IPv4 address, network or range; found \"10.0.0/24\"",
    ),
];

#[test]
fn a_longer_line_is_refused_and_a_refused_line_can_be_left_out() {
    let mut long = vec![b'1'; 8193];
    long.push(b'\n');
    let mut builder = ZoneData::build();
    let error = builder.add_with(Kind::Ip4Set, "list", long.as_slice(), |_| Ok(()));
    let error = error.expect_err("a long line").to_string();
    assert_eq!(
        error,
        "list: line 1: expected at most 8192 octets in a line; found a longer line"
    );
    let mut builder = ZoneData::build();
    let mut refused = Vec::new();
    let text = "10.0.0.1\nwhat\r\n10.0.0.2".as_bytes();
    builder
        .add_with(Kind::Ip4Set, "list", text, |error| {
            refused.push(error.line);
            Ok(())
        })
        .expect("a list with a line left out");
    let zone = builder.finish();
    assert_eq!(refused, [2]);
    assert_eq!(answer(&zone, "10.0.0.1").len(), 1);
    assert_eq!(answer(&zone, "10.0.0.2").len(), 1);
}
