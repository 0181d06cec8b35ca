//! Sets against a model: the lines of a file, searched in turn.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use crate::data::{Kind, ZoneData};
use crate::{Map, MapName};

/// An entry of the model: bounds, the length of the prefix except of ranges, and the value except of exclusions.
#[derive(Debug, Clone)]
struct Line {
    first: u128,
    last: u128,
    prefix: Option<u32>,
    value: Option<u8>,
}

/// The family of a model: how an address is written and what wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    Set4,
    Trie4,
    Trie6,
    Cidr,
}

impl Model {
    fn kind(self) -> Kind {
        match self {
            Self::Set4 => Kind::Ip4Set,
            Self::Trie4 => Kind::Ip4Trie,
            Self::Trie6 => Kind::Ip6Trie,
            Self::Cidr => Kind::Cidr,
        }
    }

    fn address(self, bits: u128) -> IpAddr {
        match self {
            Self::Trie6 => IpAddr::V6(Ipv6Addr::from_bits(bits)),
            _ => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
        }
    }

    fn width(self) -> u32 {
        match self {
            Self::Trie6 => 128,
            _ => 32,
        }
    }

    fn text(self, lines: &[Line]) -> String {
        let line = |line: &Line| {
            let mark = if line.value.is_none() { "!" } else { "" };
            let first = self.address(line.first);
            let rest = match line.prefix {
                Some(prefix) => format!("/{prefix}"),
                None => format!("-{}", self.address(line.last)),
            };
            match (self, line.value) {
                (Self::Cidr, _) => format!("{first}{rest}\n"),
                (_, Some(value)) => format!("{mark}{first}{rest} :{value}:\n"),
                (_, None) => format!("{mark}{first}{rest}\n"),
            }
        };
        lines.iter().map(line).collect()
    }

    /// The values of an address, sorted.
    fn values(self, lines: &[Line], address: u128) -> Vec<u8> {
        let found = lines
            .iter()
            .filter(|line| (line.first..=line.last).contains(&address));
        let level = |line: &Line| match self {
            Self::Set4 => [8, 16, 24, 32]
                .into_iter()
                .find(|length| {
                    let hosts = (1_u128 << (32 - length)) - 1;
                    line.first <= address & !hosts && address | hosts <= line.last
                })
                .unwrap_or_default(),
            Self::Cidr => 0,
            Self::Trie4 | Self::Trie6 => line.prefix.unwrap_or_default(),
        };
        let Some(highest) = found.clone().map(level).max() else {
            return Vec::new();
        };
        let winners = found.filter(|line| level(line) == highest);
        let winners: Vec<Option<u8>> = match self {
            Self::Set4 => winners.map(|line| line.value).collect(),
            Self::Cidr => vec![Some(2)],
            Self::Trie4 | Self::Trie6 => winners.map(|line| line.value).take(1).collect(),
        };
        if winners.contains(&None) {
            return Vec::new();
        }
        let mut values: Vec<u8> = winners.into_iter().flatten().collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

fn network(bits: u128, width: u32, prefix: u32, value: Option<u8>) -> Line {
    let hosts = match prefix {
        0 => u128::MAX >> (128 - width),
        prefix => (1_u128 << (width - prefix)) - 1,
    };
    Line {
        first: bits & !hosts,
        last: bits | hosts,
        prefix: Some(prefix),
        value,
    }
}

/// An excluded entry now and then.
fn value() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![3 => (1..5_u8).prop_map(Some), 1 => Just(None)]
}

/// Addresses close to each other, at the ends of all addresses too.
fn bits4() -> impl Strategy<Value = u128> {
    let low = 0..0x300_u128;
    prop_oneof![
        4 => low.clone().prop_map(|low| 0x0a00_ff00 + low),
        1 => low.clone().prop_map(|low| low / 3),
        1 => low.prop_map(|low| 0xffff_ffff - low / 3),
    ]
}

fn bits6() -> impl Strategy<Value = u128> {
    (0..8_u128, 0..8_u128, 0..3_u128).prop_map(|(above, network, host)| {
        let base = 0x2001_0db8 << 96;
        base | above << 69 | network << 64 | host << 62 | host
    })
}

fn line(model: Model) -> BoxedStrategy<Line> {
    let lengths = |lengths: &'static [u32]| proptest::sample::select(lengths);
    let networks4 = (
        bits4(),
        lengths(&[7, 8, 15, 16, 20, 22, 23, 24, 25, 30, 31, 32, 32]),
        value(),
    );
    let networks4 = networks4.prop_map(|(bits, prefix, value)| network(bits, 32, prefix, value));
    let networks6 = (
        bits6(),
        lengths(&[32, 56, 57, 60, 63, 64, 64, 65, 66, 127, 128]),
        value(),
    );
    let networks6 = networks6.prop_map(|(bits, prefix, value)| network(bits, 128, prefix, value));
    let ranges = (bits4(), bits4(), value()).prop_map(|(one, other, value)| Line {
        first: one.min(other),
        last: one.max(other),
        prefix: None,
        value,
    });
    match model {
        Model::Set4 | Model::Cidr => prop_oneof![networks4, ranges].boxed(),
        Model::Trie4 => networks4.boxed(),
        Model::Trie6 => networks6.boxed(),
    }
}

fn case() -> impl Strategy<Value = (Model, Vec<Line>, Vec<u128>)> {
    const MODELS: &[Model] = &[Model::Set4, Model::Trie4, Model::Trie6, Model::Cidr];
    proptest::sample::select(MODELS).prop_flat_map(|model| {
        let lines = proptest::collection::vec(line(model), 0..14);
        let bits = match model {
            Model::Trie6 => bits6().boxed(),
            _ => bits4().boxed(),
        };
        (Just(model), lines, proptest::collection::vec(bits, 1..24))
    })
}

fn sorted<'a>(values: impl Iterator<Item = &'a crate::data::Value>) -> Vec<u8> {
    let mut values: Vec<u8> = values.map(|value| value.address.octets()[3]).collect();
    values.sort_unstable();
    values
}

fn read(model: Model, lines: &[Line]) -> ZoneData {
    super::zone(model.kind(), &model.text(lines))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn addresses_have_the_values_of_the_model((model, lines, addresses) in case()) {
        let zone = read(model, &lines);
        // The bounds of entries and their neighbours are where a set goes wrong.
        let bounds = lines.iter().flat_map(|line| [line.first, line.last, line.last.saturating_add(1)]);
        for bits in addresses.into_iter().chain(bounds) {
            let address = model.address(bits);
            let bits = bits & u128::MAX >> (128 - model.width());
            prop_assert_eq!(
                sorted(zone.values(address)),
                model.values(&lines, bits),
                "{} of {}", address, model.text(&lines)
            );
        }
    }

    #[test]
    fn a_map_is_128_questions((model, lines, addresses) in case()) {
        let zone = read(model, &lines);
        for bits in addresses {
            let (name, _) = MapName::of(model.address(bits));
            let mut expected = Map::EMPTY;
            for neighbour in 0..128 {
                if zone.values(name.address(neighbour)).next().is_some() {
                    expected.insert(neighbour);
                }
            }
            prop_assert_eq!(zone.map(name), expected, "{} of {}", name, model.text(&lines));
        }
    }

    #[test]
    fn a_network_has_what_its_addresses_have((model, lines, addresses) in case(), bits in 0..12_u32) {
        let zone = read(model, &lines);
        let prefix = model.width() - bits;
        for address in addresses {
            let line = network(address, model.width(), prefix, None);
            let mut each = line.first..=line.last;
            let expected = each.any(|bits| !model.values(&lines, bits).is_empty());
            let found = zone.has_within(model.address(address), prefix as u8);
            prop_assert_eq!(found, expected, "{:?} of {}", line, model.text(&lines));
        }
    }

    #[test]
    fn a_listing_has_each_address_once((model, lines, _) in case()) {
        let zone = read(model, &lines);
        let mut ranges: Vec<(u128, u128, Vec<u8>)> = Vec::new();
        let mut add = |first, last, values: &[&crate::data::Value]| {
            ranges.push((first, last, sorted(values.iter().copied())));
        };
        match model {
            Model::Trie6 => zone.each_v6(|first, last, values| add(first.to_bits(), last.to_bits(), values)),
            _ => zone.each_v4(|first, last, values| {
                add(first.to_bits().into(), last.to_bits().into(), values);
            }),
        }
        let apart = ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
        prop_assert!(apart, "{:?}", ranges);
        let bounds = lines.iter().flat_map(|line| [line.first, line.last]);
        let found = ranges.iter().flat_map(|range| [range.0, range.1]);
        for bits in bounds.chain(found.collect::<Vec<_>>()) {
            let range = ranges.iter().find(|range| (range.0..=range.1).contains(&bits));
            let values = range.map(|range| range.2.clone()).unwrap_or_default();
            prop_assert_eq!(values, model.values(&lines, bits), "{:x} of {}", bits, model.text(&lines));
        }
    }

    #[test]
    fn no_text_stops_the_reader(kind in 0..Kind::ALL.len(), text in "[ -~\t\n]{0,200}|([0-9a-f.:/!$*-]{0,12}\n){0,8}") {
        let mut builder = ZoneData::build();
        let _ = builder.add_with(Kind::ALL[kind], "list", text.as_bytes(), |_| Ok(()));
        let zone = builder.finish();
        let _ = zone.has_within("::".parse().expect("an address"), 0);
    }
}
