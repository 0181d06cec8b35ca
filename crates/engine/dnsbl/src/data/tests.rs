//! Whole files, as users write them.

use std::net::IpAddr;

use super::{Kind, ZoneData};

fn zone(kind: Kind, text: &str) -> ZoneData {
    let mut builder = ZoneData::build();
    builder
        .add(kind, "list", text.as_bytes())
        .expect("a list without errors");
    builder.finish()
}

/// `A text` of each value of an address, sorted.
fn answer(zone: &ZoneData, address: &str) -> Vec<String> {
    let parsed: IpAddr = address.parse().expect("an address");
    let values = zone.values(parsed);
    let mut answer: Vec<String> = values
        .map(|value| {
            let text = value.text_for(address).unwrap_or_default();
            format!("{} {text}", value.address).trim_end().to_owned()
        })
        .collect();
    answer.sort();
    answer
}

#[test]
fn an_ip4set_has_the_values_of_the_smallest_block() {
    let zone = zone(
        Kind::Ip4Set,
        ":3:default $\n10.0.0.0/20\n10.0.0.0/24 :4:four\n10.0.0.0/25 :5:five\n10.0.0.1 :6\n10.0.0.2 :7:\n\
         10.0.0.3 plain $$ text\n!10.0.0.4\n10.0.0.9 ; comment\n10.0.2.5-9 range\n10.0.2.7-10.0.3.4 r2\n127.16-31 bla\n",
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
