//! Networks in CIDR notation.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network such as `192.0.2.0/24` or `2001:db8::/32`; a bare address is a network of one.
///
/// Addresses of the form `::ffff:192.0.2.1` (IPv4 clients of a socket that serves both) are
/// compared as IPv4, on both sides. Bits set behind the prefix are refused, because they show that
/// the author meant another network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IpNetwork {
    address: IpAddr,
    prefix: u8,
}

impl IpNetwork {
    /// The first address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The number of bits that all addresses have in common.
    #[must_use]
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Says whether `address` lies in the network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = mask_v4(self.prefix);
                own.to_bits() & mask == other.to_bits() & mask
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = mask_v6(self.prefix);
                own.to_bits() & mask == other.to_bits() & mask
            }
            _ => false,
        }
    }

    /// Says whether an address lies in both networks.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }
}

/// A set of networks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Networks {
    /// The networks; an address belongs to the set when an entry contains the address.
    pub networks: Vec<IpNetwork>,
}

impl Networks {
    /// The networks.
    pub fn iter(&self) -> impl Iterator<Item = &IpNetwork> {
        self.networks.iter()
    }

    /// Whether a network contains `address`.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(address))
    }
}

fn mask_v4(prefix: u8) -> u32 {
    u32::MAX
        .checked_shl(32_u32.saturating_sub(u32::from(prefix)))
        .unwrap_or(0)
}

fn mask_v6(prefix: u8) -> u128 {
    u128::MAX
        .checked_shl(128_u32.saturating_sub(u32::from(prefix)))
        .unwrap_or(0)
}

/// Says why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseNetworkError {
    /// The part before the slash is not an IP address.
    #[error("{0:?} is not an IP address")]
    Address(String),
    /// The part behind the slash is not a count of bits up to the given one.
    #[error("prefix {0:?} is not a number from 0 to {1}")]
    Prefix(String, u8),
    /// Bits behind the prefix are set; the field holds the network without such bits.
    #[error("bits behind the prefix are set, the network is {0}")]
    HostBits(String),
}

impl FromStr for IpNetwork {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let written: IpAddr = address
            .parse()
            .map_err(|_| ParseNetworkError::Address(address.to_owned()))?;
        let bits_max = if written.is_ipv4() { 32 } else { 128 };
        let mut prefix = match prefix {
            None => bits_max,
            Some(text) => match text.parse::<u8>() {
                Ok(bits) if bits <= bits_max && !text.starts_with('+') => bits,
                _ => return Err(ParseNetworkError::Prefix(text.to_owned(), bits_max)),
            },
        };
        let mut address = written;
        if written.is_ipv6() && written.to_canonical().is_ipv4() && prefix >= 96 {
            address = written.to_canonical();
            prefix -= 96;
        }
        let network = match address {
            IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask_v4(prefix))),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask_v6(prefix))),
        };
        if network != address {
            return Err(ParseNetworkError::HostBits(format!("{network}/{prefix}")));
        }
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(network: &str, address: &str) -> bool {
        let network: IpNetwork = network.parse().unwrap();
        network.contains(address.parse().unwrap())
    }

    #[test]
    fn contains_what_shares_the_prefix() {
        assert!(holds("127.0.0.0/8", "127.255.0.1"));
        assert!(!holds("127.0.0.0/8", "128.0.0.1"));
        assert!(holds("192.0.2.1", "192.0.2.1"));
        assert!(!holds("192.0.2.1", "192.0.2.2"));
        assert!(holds("0.0.0.0/0", "203.0.113.9"));
        assert!(!holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("::/0", "2001:db8::1"));
        assert!(holds("2001:db8::/33", "2001:db8:7fff::1"));
        assert!(!holds("2001:db8::/33", "2001:db8:8000::1"));
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        assert!(holds("127.0.0.0/8", "::ffff:127.0.0.1"));
        assert!(holds("::ffff:127.0.0.0/104", "127.0.0.1"));
        assert!(
            !holds("::/0", "::ffff:192.0.2.1"),
            "an IPv6 network never admits IPv4 clients"
        );
    }

    #[test]
    fn refuses_what_is_no_network() {
        for text in [
            "",
            "localhost",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "::/129",
            "10/8",
        ] {
            assert!(text.parse::<IpNetwork>().is_err(), "{text}");
        }
        let error = "10.1.2.3/8".parse::<IpNetwork>().unwrap_err();
        assert_eq!(error, ParseNetworkError::HostBits("10.0.0.0/8".to_owned()));
    }

    #[test]
    fn text_is_read_back() {
        for text in ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1/32"] {
            assert_eq!(text.parse::<IpNetwork>().unwrap().to_string(), text);
        }
    }
}
