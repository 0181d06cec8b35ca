//! Maps: one bit for each of 128 neighbours, in the form of an IPv6 address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length in bits of the prefix of an IPv4 map.
const IPV4_PREFIX: u32 = 25;
/// Length in bits of the prefix of an IPv6 map, whose neighbours are the 128 networks of 64 bits.
const IPV6_PREFIX: u32 = 57;
/// Bits that tell 128 neighbours apart.
const NEIGHBOURS_MASK: u8 = 0x7f;

/// Which of 128 neighbours are listed.
///
/// Neighbour `n` is bit `n` of the IPv6 address as prefixes count bits: from the most significant bit of the first
/// octet. `8000::` lists neighbour 0 alone, `::1` neighbour 127, and `2000::` neighbour 2: the test entry 127.0.0.2 of
/// RFC 5782 section 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Map(u128);

impl Map {
    /// The map that lists nobody.
    pub const EMPTY: Self = Self(0);

    /// Lists a neighbour, 0 to 127; a higher number counts modulo 128.
    pub const fn insert(&mut self, neighbour: u8) {
        self.0 |= Self::bit(neighbour);
    }

    /// Lists the neighbours of both maps.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Lists the neighbours from `first` to `last`, or takes them out; numbers count modulo 128.
    pub(crate) const fn set(&mut self, first: u8, last: u8, listed: bool) {
        let from = u128::MAX >> (first & NEIGHBOURS_MASK);
        let until = u128::MAX << (NEIGHBOURS_MASK - (last & NEIGHBOURS_MASK));
        match listed {
            true => self.0 |= from & until,
            false => self.0 &= !(from & until),
        }
    }

    /// Takes a neighbour, 0 to 127, off the list; a higher number counts modulo 128.
    pub const fn remove(&mut self, neighbour: u8) {
        self.0 &= !Self::bit(neighbour);
    }

    /// Whether a neighbour, 0 to 127, is listed; a higher number counts modulo 128.
    #[must_use]
    pub const fn contains(self, neighbour: u8) -> bool {
        self.0 & Self::bit(neighbour) != 0
    }

    /// Whether nobody is listed.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The number of listed neighbours.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    const fn bit(neighbour: u8) -> u128 {
        1 << (NEIGHBOURS_MASK - (neighbour & NEIGHBOURS_MASK))
    }
}

impl From<Ipv6Addr> for Map {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.to_bits())
    }
}

impl From<Map> for Ipv6Addr {
    fn from(map: Map) -> Self {
        Self::from_bits(map.0)
    }
}

/// The /25 of an IPv4 address or the /57 of an IPv6 address: what one map is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MapName {
    /// The upper 25 bits of an IPv4 address.
    V4(u32),
    /// The upper 57 bits of an IPv6 address.
    V6(u64),
}

impl MapName {
    /// The map that has an address, and the address's number among the 128 neighbours.
    ///
    /// An IPv4 address is told apart by its last 7 bits. The neighbours of an IPv6 map are networks of 64 bits.
    #[must_use]
    pub fn of(address: IpAddr) -> (Self, u8) {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let [.., last] = address.octets();
                let name = Self::V4(address.to_bits() >> (32 - IPV4_PREFIX));
                (name, last & NEIGHBOURS_MASK)
            }
            IpAddr::V6(address) => {
                let [.., neighbour, _, _, _, _, _, _, _, _] = address.octets();
                let prefix = (address.to_bits() >> (128 - IPV6_PREFIX)) as u64;
                (Self::V6(prefix), neighbour & NEIGHBOURS_MASK)
            }
        }
    }

    /// The address of a neighbour, 0 to 127; of an IPv6 neighbour, the first address of its /64.
    #[must_use]
    pub fn address(self, neighbour: u8) -> IpAddr {
        let neighbour = neighbour & NEIGHBOURS_MASK;
        match self {
            Self::V4(prefix) => {
                let bits = prefix << (32 - IPV4_PREFIX) | u32::from(neighbour);
                IpAddr::V4(Ipv4Addr::from_bits(bits))
            }
            Self::V6(prefix) => {
                let bits = u128::from(prefix) << (128 - IPV6_PREFIX) | u128::from(neighbour) << 64;
                IpAddr::V6(Ipv6Addr::from_bits(bits))
            }
        }
    }
}

/// The labels to put before the zone: `0.z.y.x` or `1.z.y.x`, where the first label is the half of the /24; for IPv6 the
/// same before the 14 nibbles of the /56, last nibble first, as in RFC 5782 section 2.4.
impl fmt::Display for MapName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::V4(prefix) => {
                let [_, x, y, z] = (prefix >> 1).to_be_bytes();
                write!(f, "{}.{z}.{y}.{x}", prefix & 1)
            }
            Self::V6(prefix) => {
                write!(f, "{}", prefix & 1)?;
                let network = prefix >> 1;
                (0..14).try_for_each(|nibble| write!(f, ".{:x}", network >> (4 * nibble) & 0xf))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn named(text: &str) -> (String, u8) {
        let (name, neighbour) = MapName::of(address(text));
        (name.to_string(), neighbour)
    }

    /// The vectors of `docs/internals/dnsbl.md`.
    #[test]
    fn bits_are_counted_from_the_most_significant() {
        let map = |listed: &[u8]| {
            let mut map = Map::EMPTY;
            listed.iter().for_each(|neighbour| map.insert(*neighbour));
            Ipv6Addr::from(map).to_string()
        };
        assert_eq!(map(&[]), "::");
        assert_eq!(map(&[0]), "8000::");
        assert_eq!(map(&[2]), "2000::");
        assert_eq!(map(&[127]), "::1");
        assert_eq!(map(&[0, 1, 15, 16, 126]), "c001:8000::2");
        let all: Vec<u8> = (0..128).collect();
        assert_eq!(map(&all), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    }

    #[test]
    fn a_map_lists_its_own_neighbours_alone() {
        let map = Map::from(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 1));
        let listed: Vec<u8> = (0..128).filter(|n| map.contains(*n)).collect();
        assert_eq!(listed, [2, 127]);
        assert_eq!((map.len(), map.is_empty()), (2, false));
        assert!(Map::EMPTY.is_empty());
    }

    #[test]
    fn a_neighbour_is_listed_or_not_however_often_it_is_named() {
        let of = |listed: &[u8]| {
            let mut map = Map::EMPTY;
            listed.iter().for_each(|neighbour| map.insert(*neighbour));
            map
        };
        assert_eq!(of(&[5, 5]), of(&[5]));
        assert_eq!(of(&[128 + 5]), of(&[5]));
        assert_eq!(of(&[1, 2]).union(of(&[2, 3])), of(&[1, 2, 3]));
        let mut map = of(&[1, 2]);
        map.remove(3);
        map.remove(128 + 2);
        assert_eq!(map, of(&[1]));
        assert!(map.contains(128 + 1) && !map.contains(128 + 2));
        map.set(1, 3, true);
        assert_eq!(map, of(&[1, 2, 3]));
        map.set(128 + 3, 128 + 4, false);
        assert_eq!(map, of(&[1, 2]));
        map.set(0, 127, true);
        assert_eq!(map.len(), 128);
    }

    #[test]
    fn the_first_label_is_the_half_of_the_network() {
        assert_eq!(named("192.0.2.7"), ("0.2.0.192".to_owned(), 7));
        assert_eq!(named("192.0.2.127"), ("0.2.0.192".to_owned(), 127));
        assert_eq!(named("192.0.2.128"), ("1.2.0.192".to_owned(), 0));
        assert_eq!(named("255.255.255.255"), ("1.255.255.255".to_owned(), 127));
        assert_eq!(named("::ffff:192.0.2.130"), ("1.2.0.192".to_owned(), 2));
        let six = "0.1.0.0.c.b.a.8.b.d.0.1.0.0.2";
        assert_eq!(named("2001:db8:abc0:0105::9"), (six.to_owned(), 5));
        assert_eq!(
            named("2001:db8:abc0:01ff::9"),
            (format!("1{}", &six[1..]), 127)
        );
    }

    #[test]
    fn an_address_comes_back_from_its_map() {
        for text in [
            "0.0.0.0",
            "192.0.2.200",
            "255.255.255.255",
            "2001:db8:0:ff::",
        ] {
            let (name, neighbour) = MapName::of(address(text));
            assert_eq!(name.address(neighbour), address(text));
        }
    }
}
