//! Where forms of lines begin and end, and the octets of memory.

use super::{answer, wire, zone};
use crate::data::{Kind, ZoneData};

/// The error of a file; empty for a file without one.
fn error(kind: Kind, text: &str) -> String {
    let mut builder = ZoneData::build();
    let read = builder.add(kind, "list", text.as_bytes());
    read.err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

fn is_read(kind: Kind, text: &str) -> bool {
    error(kind, text).is_empty()
}

#[test]
fn times_have_units_and_31_bits() {
    for (text, seconds) in [
        ("0", Some(0)),
        ("7", Some(7)),
        ("7s", Some(7)),
        ("7m", Some(420)),
        ("7h", Some(25_200)),
        ("7d", Some(604_800)),
        ("7w", Some(4_233_600)),
        ("2147483647", Some(i32::MAX as u32)),
        ("2147483648", None),
        ("4294967295", None),
        ("4294967296", None),
        ("3551w", None),
        ("99999w", None),
        ("", None),
        ("m", None),
        ("-7", None),
        ("+7", None),
    ] {
        let mut builder = ZoneData::build();
        let line = format!("$TTL {text}\n192.0.2.1\n");
        let read = builder.add(Kind::Ip4Set, "list", line.as_bytes());
        let found = read.ok().and_then(|_| builder.finish().head().ttl);
        assert_eq!(found, seconds, "{text}");
    }
}

/// Seconds since 1970 of `date -u -d`.
#[test]
fn times_of_files_follow_the_calendar() {
    let stamp = |text: &str| {
        let mut builder = ZoneData::build();
        let line = format!("$TIMESTAMP {text}\n");
        let read = builder.add(Kind::Ip4Set, "list", line.as_bytes());
        read.ok().and_then(|_| builder.finish().head().timestamp)
    };
    for (text, seconds) in [
        ("1970:01:01", 0),
        ("1970:01:02:03", 97_200),
        ("2000:02:29:23:59", 951_868_740),
        ("2000:03:01", 951_868_800),
        ("20241231235959", 1_735_689_599),
        ("2025-01-01", 1_735_689_600),
        ("2026:04:30", 1_777_507_200),
        ("2026:06:30", 1_782_777_600),
        ("2026:09:30", 1_790_726_400),
        ("2026:11:30", 1_795_996_800),
        ("2026:12:31", 1_798_675_200),
        ("2100:03:01:00:00:01", 4_107_542_401),
    ] {
        assert_eq!(stamp(text), Some(seconds), "{text}");
    }
    for text in [
        "1969:12:31",
        "2100:02:29",
        "2026:02:29",
        "2026:00:01",
        "2026:13:01",
        "2026:01:00",
        "2026:01:32",
        "2026:04:31",
        "2026:06:31",
        "2026:09:31",
        "2026:11:31",
        "2026:01:01:24",
        "2026:01:01:00:60",
        "2026:01:01:00:00:60",
        "2026:1:01",
        "2026:01:01:0",
        "2026:01:0x",
        "",
    ] {
        assert_eq!(stamp(text), None, "{text}");
        assert!(
            !is_read(Kind::Ip4Set, &format!("$TIMESTAMP {text}\n")),
            "{text}"
        );
    }
    for text in ["0", "-"] {
        assert_eq!(stamp(text), None);
        assert!(is_read(Kind::Ip4Set, &format!("$TIMESTAMP {text} +1d\n")));
    }
}

#[test]
fn the_first_head_counts_and_the_earliest_expiry() {
    let read = |text: &str| zone(Kind::Ip4Set, text).head().clone();
    let soa = |serial: u32| format!("$SOA 0 ns.test admin.test {serial} 1 2 3 4\n");
    let head = read(&format!("{}{}", soa(5), soa(6)));
    assert_eq!(head.soa.map(|soa| soa.serial), Some(5));
    let head = read("$NS 5 a.test\n$NS 6 b.test\n");
    assert_eq!(head.name_servers.map(|line| line.ttl), Some(5));
    for (lines, stamp, expires) in [
        ("20260101 +1d|20260102 +3d", 1_767_312_000, 1_767_312_000),
        ("20260102 +3d|20260101 +1d", 1_767_312_000, 1_767_312_000),
        ("20260101|20260102 +1d", 1_767_312_000, 1_767_398_400),
        ("20260102 +1d|20260101", 1_767_312_000, 1_767_398_400),
    ] {
        let text = lines.split('|').map(|line| format!("$TIMESTAMP {line}\n"));
        let head = read(&text.collect::<String>());
        assert_eq!((head.timestamp, head.expires), (Some(stamp), Some(expires)));
    }
    assert_eq!(read("$TIMESTAMP 0 +1d\n").expires, None);
    assert_eq!(read("$TIMESTAMP 0 20260101\n").expires, Some(1_767_225_600));
}

#[test]
fn a_line_of_name_servers_has_32() {
    let servers = |count: usize| {
        let names: String = (0..count).map(|n| format!(" n{n}.test")).collect();
        let head = zone(Kind::Ip4Set, &format!("$NS 1h{names}\n"))
            .head()
            .clone();
        head.name_servers.map_or(0, |line| line.names.len())
    };
    assert_eq!((servers(1), servers(32), servers(33)), (1, 32, 32));
    assert!(!is_read(Kind::Ip4Set, "$SOA 1 a.test b.test 1 2 3 4\n"));
    assert!(!is_read(Kind::Ip4Set, "$SOA 1 a.test b.test x 1 2 3 4\n"));
}

#[test]
fn an_entry_has_as_many_addresses_as_the_bound() {
    for (max, entry, is_sound) in [
        ("/24", "10.0.0", true),
        ("/24", "10.0.0/23", false),
        ("256", "10.0.0", true),
        ("255", "10.0.0", false),
        ("/0", "128/1", true),
        ("/32", "10.0.0.1", true),
        ("/32", "10.0.0.0/31", false),
        ("1", "10.0.0.1-1", true),
        ("1", "10.0.0.1-2", false),
    ] {
        let text = format!("$MAXRANGE4 {max}\n{entry}\n");
        assert_eq!(is_read(Kind::Ip4Set, &text), is_sound, "{text}");
    }
    for max in ["0", "/33", "/", "x", "", "-1"] {
        let text = format!("$MAXRANGE4 {max}\n");
        assert!(!is_read(Kind::Ip4Set, &text), "{max}");
    }
    // A later bound cannot be greater.
    let text = "$MAXRANGE4 /25\n$MAXRANGE4 /8\n10.0.0\n";
    assert!(!is_read(Kind::Ip4Set, text));
    let text = "$MAXRANGE4 /25\n$DATASET ip4set:x @\n10.0.0\n";
    assert!(!is_read(Kind::Combined, text));
}

#[test]
fn a_value_is_an_address_or_its_last_octet() {
    for (value, found) in [
        (":1:", Some("127.0.0.1")),
        (":255:", Some("127.0.0.255")),
        (": 9 :x", Some("127.0.0.9 x")),
        (":10.0.0.9", Some("10.0.0.9")),
        (":0:", None),
        (":0.0.0.0:", None),
        (":127.0.0:", None),
        ("::", None),
        (":x:", None),
    ] {
        let text = format!("192.0.2.1 {value}\n");
        match found {
            Some(found) => assert_eq!(answer(&zone(Kind::Ip4Set, &text), "192.0.2.1"), [found]),
            None => assert!(!is_read(Kind::Ip4Set, &text), "{value}"),
        }
    }
}

#[test]
fn numbers_of_ipv4_have_three_digits_and_prefixes_four_octets() {
    for text in [
        "10.0.0.255",
        "010.0.0.1",
        "10.0.0.1/32",
        "10/8",
        "10.0/16",
        "10.0.0.1\t:2:",
        "10.0.0.1:2:",
        "10.0.0.1#x",
        "10.0.0.1;x",
        "10.0.0.7-7",
        "10-11",
        "10.0-10.1.255",
    ] {
        assert!(is_read(Kind::Ip4Set, &format!("{text}\n")), "{text}");
    }
    for text in [
        "0010.0.0.1",
        "10.0.0.256",
        "10.0.0.1.1",
        "10.0.0.",
        "10..0.1",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.7-",
        "10.0.0.7-6",
        "10.0.0.1x",
        "x",
    ] {
        assert!(!is_read(Kind::Ip4Set, &format!("{text}\n")), "{text}");
    }
}

/// A last boundary of one octet replaces the last octet of the first; a boundary stands for all addresses that begin so.
#[test]
fn ranges_end_with_their_last_boundary() {
    for (range, ends) in [
        ("10.2-5", ["10.2.0.0", "10.5.255.255"]),
        ("10.0.6-7", ["10.0.6.0", "10.0.7.255"]),
        ("10.0.0.5-10.0.1", ["10.0.0.5", "10.0.1.255"]),
        ("10.0.0.5-9", ["10.0.0.5", "10.0.0.9"]),
        ("12-13", ["12.0.0.0", "13.255.255.255"]),
    ] {
        let zone = zone(Kind::Ip4Set, &format!("{range}\n"));
        let mut ranges = Vec::new();
        zone.each_v4(|first, last, _| ranges.push([first.to_string(), last.to_string()]));
        assert_eq!(ranges, [ends], "{range}");
    }
}

#[test]
fn words_of_ipv6_have_four_digits_and_prefixes_128_bits() {
    for text in [
        "2001:0db8:0:1",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:8/128",
        "::/0",
        "2001:db8::1\t:2:",
        "2001:db8::1#x",
        "2001:db8::1;x",
        "2001:db8::1 own",
    ] {
        assert!(is_read(Kind::Ip6Trie, &format!("{text}\n")), "{text}");
    }
    for text in [
        "02001:db8",
        "1:2:3:4:5:6:7:8:9",
        "2001::db8::1",
        "2001:g",
        "2001:+1",
        "2001:",
        "::/129",
        "::/+1",
        "::/",
        "2001:db8::/16",
    ] {
        assert!(!is_read(Kind::Ip6Trie, &format!("{text}\n")), "{text}");
    }
}

#[test]
fn a_line_of_a_list_of_networks_is_about_addresses_alone() {
    for text in [
        "10.0.0.0/8",
        "10.0.0.1 - 10.0.0.1",
        "10.0.0.1/32",
        "2001:db8::/32",
        "2001:db8::1",
        "2001:db8::1 - 2001:db8::1",
    ] {
        assert!(is_read(Kind::Cidr, &format!("{text}\n")), "{text}");
    }
    for text in [
        "10.0.0",
        "10.0.0.1 x",
        "10.0.0.0/8 x",
        "10.0.0.0/33",
        "10.0.0.2-10.0.0.1",
        "10.0.0.1-10.0.0.2 x",
        "10.0.0.1-10.0",
        "2001:db8",
        "2001:db8::/32 x",
        "2001:db8::1 x",
        "2001:db8::2-2001:db8::1",
        "2001:db8::1-2001:db8",
        "2001:db8::/129",
    ] {
        assert!(!is_read(Kind::Cidr, &format!("{text}\n")), "{text}");
    }
}

#[test]
fn a_name_has_labels_of_its_own() {
    for text in ["*", "*.", ".", "!*", "@"] {
        assert!(!is_read(Kind::DnSet, &format!("{text}\n")), "{text}");
    }
    for text in ["*.a", ".a", "a", "! a"] {
        assert!(is_read(Kind::DnSet, &format!("{text}\n")), "{text}");
    }
}

#[test]
fn a_default_in_a_set_of_ipv6_is_told_from_an_address() {
    let six = zone(Kind::Ip6Trie, "::2\n:3:def\n::1\n");
    assert_eq!(answer(&six, "::2"), ["127.0.0.2"]);
    assert_eq!(answer(&six, "::1"), ["127.0.0.3 def"]);
    assert!(!is_read(Kind::Ip4Set, "::1\n"));
}

/// The default of one file is none of the next.
#[test]
fn a_default_ends_with_its_file() {
    let mut builder = ZoneData::build();
    builder
        .add(Kind::Ip4Set, "one", &b":3:one\n10.0.0.1\n"[..])
        .expect("a list");
    builder
        .add(Kind::Ip4Set, "two", &b"10.0.0.2\n"[..])
        .expect("a list");
    let zone = builder.finish();
    assert_eq!(answer(&zone, "10.0.0.1"), ["127.0.0.3 one"]);
    assert_eq!(answer(&zone, "10.0.0.2"), ["127.0.0.2"]);
}

/// Dumps write one template for each text: without variables, and with the subject still open.
#[test]
fn a_resolved_template_gives_the_same_texts() {
    let file = "$1 one$2\n10.0.0.1 a $ $1 $$ $3 $9x\n10.0.0.2 =b $\n10.0.0.3 plain\n10.0.0.4 $\n10.0.0.5 $$=x\n";
    let based = format!("$= See $= of $ $1\n{file}10.0.0.6\n");
    for text in [file, &based] {
        let before = zone(Kind::Ip4Set, text);
        for last in 1..=6 {
            let address = format!("10.0.0.{last}");
            let parsed = address.parse().expect("an address");
            let Some(value) = before.values(parsed).next() else {
                continue;
            };
            let template = value.resolved().unwrap_or_default();
            let after = zone(Kind::Ip4Set, &format!("{address} :2:{template}\n"));
            assert_eq!(
                answer(&after, &address),
                answer(&before, &address),
                "{template}"
            );
        }
    }
    let none = zone(Kind::Ip4Set, "10.0.0.1 :2:\n");
    let value = none.values("10.0.0.1".parse().expect("an address")).next();
    assert_eq!(value.and_then(|value| value.resolved()), None);
}

/// One octet tells 256 listings apart; more need four. Each address keeps its own.
#[test]
fn an_address_needs_few_octets() {
    let list = |count: usize, texts: usize| {
        let lines = (0..count).map(|n| format!("10.0.{}.{} :2:{}\n", n / 256, n % 256, n % texts));
        zone(Kind::Ip4Set, &lines.collect::<String>())
    };
    let values = |texts: usize| {
        let letters: usize = (0..texts).map(|n| n.to_string().len()).sum();
        size_of::<crate::data::Value>() * texts + letters
    };
    // The index has one count for each 32 addresses, and one more.
    let keys = |count: usize| 4 * count + 4 * (count / 32 + 1);
    // Empty sets have an index of two counts each: holes and ranges of IPv4, points, holes and ranges of IPv6.
    let empty = 5 * 2 * 4;
    for (texts, octets, palette) in [(1, 0, 0), (2, 1, 8), (256, 1, 1_024), (257, 4, 0)] {
        let zone = list(1_024, texts);
        let expected = values(texts) + keys(1_024) + empty + 1_024 * octets + palette;
        assert_eq!(zone.memory(), expected, "{texts} texts");
        for n in [0, 255, 256, 1_023] {
            let address = format!("10.0.{}.{}", n / 256, n % 256);
            let expected = format!("127.0.0.2 {}", n % texts);
            assert_eq!(answer(&zone, &address), [expected]);
        }
    }
}

#[test]
fn names_and_ranges_need_their_octets() {
    let of = |kind, text: &str| zone(kind, text).memory();
    // Octets of `a.test` on the wire, and an entry beside them.
    let names = of(Kind::DnSet, "a.test\nb.test\n") - of(Kind::DnSet, "a.test\n");
    assert_eq!(names, 7 + 12);
    let ranges = of(Kind::Ip4Set, "10.0.0/24\n10.0.2/24\n") - of(Kind::Ip4Set, "10.0.0/24\n");
    assert_eq!(ranges, 2 * 4 + 4);
    let ranges =
        of(Kind::Cidr, "2001:db8::/32\n2001:db9::1/128\n") - of(Kind::Cidr, "2001:db8::/32\n");
    assert_eq!(ranges, 2 * 16 + 4);
    // An excluded address leaves one listing, which needs nothing for each address.
    let points = of(Kind::Ip4Set, "10.0.0.1\n10.0.0.2\n!10.0.0.9\n");
    assert_eq!(points - of(Kind::Ip4Set, "10.0.0.1\n!10.0.0.9\n"), 4);
    let part = of(Kind::Combined, "$DATASET ip4set a\n10.0.0.1\n");
    assert_eq!(part, of(Kind::Ip4Set, "10.0.0.1\n"));
}

/// An excluded point of a range is no address of the range.
#[test]
fn a_network_of_excluded_addresses_has_none() {
    let zone = zone(
        Kind::Ip4Set,
        "10.0.0.0/31\n!10.0.0.0\n!10.0.0.1\n10.0.1.0/31\n!10.0.1.1\n",
    );
    let has = |text: &str, prefix| zone.has_within(text.parse().expect("an address"), prefix);
    assert!(!has("10.0.0.0", 24) && !has("10.0.0.0", 31));
    assert!(has("10.0.1.0", 24) && has("10.0.1.0", 32) && !has("10.0.1.1", 32));
    assert!(has("10.0.0.0", 8) && has("0.0.0.0", 0) && !has("11.0.0.0", 8));
    assert!(has("10.0.1.0", 40) && !has("10.0.1.1", 40));
}

#[test]
fn a_part_of_a_zone_lies_below_the_names_above() {
    let text = "$DATASET ip4set:x a.b\n10.0.0.1\n";
    let zone = zone(Kind::Combined, text);
    assert!(zone.has_name_below(&wire("b")) && zone.has_name_below(b""));
    assert!(!zone.has_name_below(&wire("a.b")) && !zone.has_name_below(&wire("x.a.b")));
    assert!(!zone.has_name_below(&wire("a")) && !zone.has_names());
}

#[test]
fn all_names_of_a_list_are_counted_and_shown() {
    let mut builder = ZoneData::build();
    let text = "b.test\n.a.test :9:nine\n!no.a.test\n";
    builder
        .add(Kind::DnSet, "list", text.as_bytes())
        .expect("a list");
    assert_eq!(builder.entries(), 3);
    let zone = builder.finish();
    let mut names = Vec::new();
    zone.each_name(|name, below, values| {
        let codes: Vec<_> = values
            .iter()
            .map(|value| value.address.octets()[3])
            .collect();
        names.push((crate::data::name_text(name), below, codes));
    });
    names.sort();
    let expected = [
        ("a.test", false, vec![9]),
        ("a.test", true, vec![9]),
        ("b.test", false, vec![2]),
        ("no.a.test", false, vec![]),
    ];
    let expected = expected.map(|(name, below, codes)| (name.to_owned(), below, codes));
    assert_eq!(names, expected);
}
