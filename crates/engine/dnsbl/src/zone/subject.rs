//! What a name below a zone is about: an address, a network, a map.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use vere_dns::Labels;

use crate::MapName;

/// Labels of an IPv4 address, of an IPv6 address, and of an IPv6 map.
const IPV4_LABELS: usize = 4;
const IPV6_LABELS: usize = 32;
const IPV6_MAP_LABELS: usize = 15;

/// The readings of a name. Short names of single digits have two: `2.1` is 1.2.0.0/16 and 1200::/8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Subject {
    /// The first address and the bits of an IPv4 network.
    pub(super) v4: Option<(u32, u8)>,
    /// The first address and the bits of an IPv6 network.
    pub(super) v6: Option<(u128, u8)>,
    /// The map.
    pub(super) map: Option<MapName>,
}

impl Subject {
    /// Reads the labels in front of a zone, in wire form and lower case.
    pub(super) fn of(below: &[u8]) -> Self {
        let labels = Labels::of(below);
        let count = labels.clone().take(IPV6_LABELS + 1).count();
        let v4 = v4(labels.clone(), count);
        let v6 = v6(labels, count);
        Self {
            v4: v4.map(|network| (network, bits(count, 8))),
            v6: v6.map(|network| (network, bits(count, 4))),
            map: map(v4, v6, count),
        }
    }

    /// The address whose listing the name asks for.
    pub(super) fn address(self) -> Option<IpAddr> {
        match (self.v4, self.v6) {
            (Some((bits, 32)), _) => Some(Ipv4Addr::from_bits(bits).into()),
            (_, Some((bits, 128))) => Some(Ipv6Addr::from_bits(bits).into()),
            _ => None,
        }
    }

    /// The networks of listings with longer names.
    pub(super) fn networks(self) -> impl Iterator<Item = (IpAddr, u8)> {
        let v4 = self.v4.filter(|(_, bits)| *bits < 32);
        let v4 = v4.map(|(network, bits)| (Ipv4Addr::from_bits(network).into(), bits));
        let v6 = self.v6.filter(|(_, bits)| *bits < 128);
        let v6 = v6.map(|(network, bits)| (Ipv6Addr::from_bits(network).into(), bits));
        v4.into_iter().chain(v6)
    }
}

/// The bits that `count` labels fix.
fn bits(count: usize, each: u8) -> u8 {
    u8::try_from(count).unwrap_or_default().saturating_mul(each)
}

/// The first address of the network that at most four decimal numbers stand for, the last number first.
fn v4(labels: Labels<'_>, count: usize) -> Option<u32> {
    if !(1..=IPV4_LABELS).contains(&count) {
        return None;
    }
    let mut network = 0_u32;
    for label in labels {
        network = network >> 8 | u32::from(decimal(label)?) << 24;
    }
    Some(network)
}

/// A number up to 255, without leading zeros.
fn decimal(label: &[u8]) -> Option<u8> {
    let digit = |octet: u8| octet.is_ascii_digit().then(|| u16::from(octet - b'0'));
    match *label {
        [one] => u8::try_from(digit(one)?).ok(),
        [b'0', ..] => None,
        [ten, one] => u8::try_from(digit(ten)? * 10 + digit(one)?).ok(),
        [hundred, ten, one] => {
            u8::try_from(digit(hundred)? * 100 + digit(ten)? * 10 + digit(one)?).ok()
        }
        _ => None,
    }
}

/// The first address of the network that hexadecimal digits stand for, the last digit first.
fn v6(labels: Labels<'_>, count: usize) -> Option<u128> {
    if !(1..=IPV6_LABELS).contains(&count) {
        return None;
    }
    let mut network = 0_u128;
    for label in labels {
        let [octet] = label else { return None };
        let digit = char::from(*octet).to_digit(16)?;
        network = network >> 4 | u128::from(digit) << 124;
    }
    Some(network)
}

/// The map, whose first label is the half of the network.
fn map(v4: Option<u32>, v6: Option<u128>, count: usize) -> Option<MapName> {
    match (count, v4, v6) {
        (IPV4_LABELS, Some(bits), _) => {
            let half = bits & 0xff;
            (half < 2).then_some(MapName::V4(bits >> 8 << 1 | half))
        }
        (IPV6_MAP_LABELS, _, Some(bits)) => {
            let digits = bits >> (128 - 4 * IPV6_MAP_LABELS);
            let half = digits as u64 & 0xf;
            (half < 2).then_some(MapName::V6((digits as u64) >> 4 << 1 | half))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str) -> Subject {
        let name = vere_dns::Name::parse(text).unwrap();
        let octets = name.octets();
        Subject::of(&octets[..octets.len() - 1])
    }

    #[test]
    fn an_address_is_read_from_the_right() {
        let read = subject("4.3.2.1");
        assert_eq!(read.address(), Some("1.2.3.4".parse().unwrap()));
        assert_eq!(read.map, None);
        // Single digits are also digits of an IPv6 network.
        let network: Vec<_> = read.networks().collect();
        assert_eq!(network, [("1234::".parse().unwrap(), 16)]);
        assert_eq!(subject("255.255.255.255").v4, Some((u32::MAX, 32)));
        let nibbles = "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4";
        let address = "4321:0:1:2:3:4:567:89ab".parse().unwrap();
        assert_eq!(subject(nibbles).address(), Some(address));
    }

    #[test]
    fn part_of_an_address_is_a_network() {
        let networks: Vec<_> = subject("168.192").networks().collect();
        assert_eq!(networks, [("192.168.0.0".parse().unwrap(), 16)]);
        let networks: Vec<_> = subject("8.b.d.0.1.0.0.2").networks().collect();
        assert_eq!(networks, [("2001:db8::".parse().unwrap(), 32)]);
    }

    /// Names that [`MapName`] writes come back.
    #[test]
    fn maps_are_read_as_they_are_written() {
        for text in [
            "192.0.2.7",
            "192.0.2.128",
            "255.255.255.255",
            "0.0.0.0",
            "2001:db8:abc0:105::",
            "2001:db8:abc0:1ff::",
            "ffff:ffff:ffff:ffff::",
            "::",
        ] {
            let (name, _) = MapName::of(text.parse().unwrap());
            assert_eq!(subject(&name.to_string()).map, Some(name), "{text}");
        }
        assert_eq!(subject("2.2.0.192").map, None);
        assert_eq!(subject("2.1.0.0.c.b.a.8.b.d.0.1.0.0.2").map, None);
    }

    #[test]
    fn other_names_are_about_no_address() {
        let none = Subject::default();
        for text in [
            "256.2.3.4",
            "01.2.3.4",
            "1.2.3.4.500",
            "1000.2.3.4",
            "a1.2.3.4",
            "example",
            "g",
            "-1.2.3.4",
        ] {
            assert_eq!(subject(text), none, "{text}");
        }
        assert_eq!(subject(&"0.".repeat(33)), none);
        assert_eq!(Subject::of(b""), none);
    }
}
