//! Shares of networks: the questions under way of the clients of a network, whose bound leaves room for other networks.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::rc::Rc;

/// Questions under way by the network of the client.
pub(super) type Shares = Rc<RefCell<HashMap<u128, u32>>>;

/// A question among those of its network.
#[derive(Debug)]
pub(super) struct Share {
    shares: Shares,
    network: u128,
}

impl Share {
    /// Takes a share; none where the network has `max` already.
    pub(super) fn take(shares: &Shares, client: IpAddr, max: u32) -> Option<Self> {
        let network = network(client);
        let mut counts = shares.borrow_mut();
        let count = counts.entry(network).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        let shares = Rc::clone(shares);
        Some(Self { shares, network })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.shares.borrow_mut();
        if let Entry::Occupied(mut count) = counts.entry(self.network) {
            match count.get().saturating_sub(1) {
                0 => drop(count.remove()),
                left => *count.get_mut() = left,
            }
        }
    }
}

/// The /24 of an address of IPv4, as a mapped one, and the /64 of an address of IPv6.
fn network(client: IpAddr) -> u128 {
    match client.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits() >> 8 << 8,
        IpAddr::V6(address) => address.to_bits() >> 64 << 64,
    }
}

#[cfg(test)]
mod tests;
