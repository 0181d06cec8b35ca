//! Addresses and networks as keys: an IPv4 address counts as its IPv4-mapped IPv6 address.

use std::net::IpAddr;

/// An address, or the first address of a network, in 16 octets (RFC 4291 section 2.5.5.2 for IPv4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place(pub(crate) [u8; 16]);

/// Leading bits of an IPv4-mapped address.
const MAPPED_BITS: u8 = 96;
/// Bits of the network that counts as one neighbourhood: /24 of IPv4.
const IPV4_NETWORK_BITS: u8 = MAPPED_BITS + 24;
/// Bits of the network that counts as one neighbourhood: /64 of IPv6.
const IPV6_NETWORK_BITS: u8 = 64;

impl Place {
    /// The place of a client.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        })
    }

    /// The network of a client: /24 of IPv4, /64 of IPv6.
    pub(crate) fn network(self) -> Self {
        let bits = match std::net::Ipv6Addr::from(self.0).to_ipv4_mapped() {
            Some(_) => IPV4_NETWORK_BITS,
            None => IPV6_NETWORK_BITS,
        };
        self.masked(bits)
    }

    fn masked(self, bits: u8) -> Self {
        let mask = u128::MAX
            .checked_shl(128 - u32::from(bits))
            .unwrap_or_default();
        Self((u128::from_be_bytes(self.0) & mask).to_be_bytes())
    }
}

/// A network of an access rule: an address and the number of leading bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: Place,
    bits: u8,
}

impl Network {
    /// Makes the network of an address; further bits of the address are cleared. `bits` is 0 to 32 for IPv4, 0 to 128
    /// for IPv6, and larger numbers give `None`.
    #[must_use]
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let bits = match address {
            IpAddr::V4(_) if bits <= 32 => MAPPED_BITS + bits,
            IpAddr::V6(_) if bits <= 128 => bits,
            _ => return None,
        };
        Some(Self {
            first: Place::of(address).masked(bits),
            bits,
        })
    }

    pub(crate) fn contains(self, place: Place) -> bool {
        place.masked(self.bits) == self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        Place::of(text.parse().unwrap())
    }

    #[test]
    fn both_forms_of_an_ipv4_address_are_one_place() {
        assert_eq!(place("192.0.2.7"), place("::ffff:192.0.2.7"));
        assert_eq!(
            place("::ffff:192.0.2.7").network(),
            place("192.0.2.200").network()
        );
        assert_ne!(place("192.0.2.7").network(), place("192.0.3.7").network());
    }

    #[test]
    fn an_ipv6_network_has_64_bits() {
        assert_eq!(
            place("2001:db8:1:2::5").network(),
            place("2001:db8:1:2:ffff:ffff:ffff:ffff").network()
        );
        assert_ne!(
            place("2001:db8:1:2::5").network(),
            place("2001:db8:1:3::5").network()
        );
        assert_eq!(place("2001:db8:1:2::5").network(), place("2001:db8:1:2::"));
    }

    #[test]
    fn rules_contain_by_leading_bits() {
        let network = |text: &str, bits| Network::new(text.parse().unwrap(), bits);
        let small = network("198.51.100.9", 29).unwrap();
        assert!(small.contains(place("198.51.100.15")));
        assert!(!small.contains(place("198.51.100.16")));
        let all_ipv4 = network("203.0.113.1", 0).unwrap();
        assert!(all_ipv4.contains(place("1.2.3.4")));
        assert!(!all_ipv4.contains(place("2001:db8::1")));
        let all = network("::", 0).unwrap();
        assert!(all.contains(place("1.2.3.4")) && all.contains(place("2001:db8::1")));
        let one = network("2001:db8::1", 128).unwrap();
        assert!(one.contains(place("2001:db8::1")) && !one.contains(place("2001:db8::2")));
        assert!(network("192.0.2.1", 32).is_some());
        assert_eq!(network("192.0.2.1", 33), None);
        assert_eq!(network("::1", 129), None);
    }
}
