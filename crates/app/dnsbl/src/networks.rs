//! Ranges of addresses as networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: its first address, and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) address: IpAddr,
    pub(super) prefix: u32,
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let single = match self.address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        match self.prefix == single {
            true => write!(f, "{}", self.address),
            false => write!(f, "{}/{}", self.address, self.prefix),
        }
    }
}

/// The fewest networks of a range of IPv4 addresses, with prefixes of `shortest` bits or more.
pub(super) fn of_v4(
    first: Ipv4Addr,
    last: Ipv4Addr,
    shortest: u32,
) -> impl Iterator<Item = Network> {
    let bounds = (first.to_bits().into(), last.to_bits().into());
    of(bounds, 32, shortest, 1).map(|(bits, prefix)| Network {
        address: IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
        prefix,
    })
}

/// The fewest networks of a range of IPv6 addresses.
pub(super) fn of_v6(first: Ipv6Addr, last: Ipv6Addr) -> impl Iterator<Item = Network> {
    of((first.to_bits(), last.to_bits()), 128, 0, 1).map(v6)
}

/// The fewest blocks of whole octets of a range of IPv4 addresses; a zone has a name or a wildcard for each.
pub(super) fn octets_of_v4(first: Ipv4Addr, last: Ipv4Addr) -> impl Iterator<Item = Network> {
    let bounds = (first.to_bits().into(), last.to_bits().into());
    of(bounds, 32, 8, 8).map(|(bits, prefix)| Network {
        address: IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
        prefix,
    })
}

/// The fewest blocks of whole nibbles of a range of IPv6 addresses.
pub(super) fn nibbles_of_v6(first: Ipv6Addr, last: Ipv6Addr) -> impl Iterator<Item = Network> {
    of((first.to_bits(), last.to_bits()), 128, 4, 4).map(v6)
}

fn v6((bits, prefix): (u128, u32)) -> Network {
    Network {
        address: IpAddr::V6(Ipv6Addr::from_bits(bits)),
        prefix,
    }
}

/// The fewest blocks of a range whose prefixes have at least `shortest` bits, and a multiple of `step`.
fn of(
    (first, last): (u128, u128),
    width: u32,
    shortest: u32,
    step: u32,
) -> impl Iterator<Item = (u128, u32)> {
    let mut next = Some(first);
    std::iter::from_fn(move || {
        let start = next.filter(|start| *start <= last)?;
        let mut prefix = width;
        let mut end = start;
        while prefix >= shortest + step {
            let hosts = u128::MAX >> (128 - (width - prefix + step));
            if start & hosts != 0 || start | hosts > last {
                break;
            }
            prefix -= step;
            end = start | hosts;
        }
        next = end.checked_add(1);
        Some((start, prefix))
    })
}
