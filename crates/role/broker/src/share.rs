//! Shares of networks: the questions under way of the clients of a network, whose bound leaves room for other networks.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use tokio::sync::Semaphore;

/// Networks from which on those without a question are forgotten.
const NETWORKS_KEPT: usize = 1_024;

/// Questions under way by the network of the client.
pub(super) type Shares = Rc<RefCell<HashMap<u128, u32>>>;

/// A question among those of its network.
#[derive(Debug)]
pub(super) struct Share {
    shares: Shares,
    network: u128,
}

impl Share {
    /// Takes a share; absent where the network has `max` already.
    pub(super) fn take(shares: &Shares, client: IpAddr, max: u32) -> Option<Self> {
        Self::of(shares, network(client), max)
    }

    /// Takes a share of a site; absent where the site has `max` already.
    pub(super) fn of_site(shares: &Shares, client: IpAddr, max: u32) -> Option<Self> {
        Self::of(shares, site(client), max)
    }

    fn of(shares: &Shares, network: u128, max: u32) -> Option<Self> {
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

/// Turns of networks: as many questions of one network are under way as it has turns, and further ones wait.
#[derive(Debug)]
pub(super) struct Turns {
    each: usize,
    of: RefCell<HashMap<u128, Weak<Semaphore>>>,
}

impl Turns {
    /// Gives each network this number of turns.
    pub(super) fn new(each: usize) -> Self {
        Self {
            each,
            of: RefCell::default(),
        }
    }

    /// The turns of a client's network, which last while somebody has or awaits one.
    pub(super) fn of(&self, client: IpAddr) -> Arc<Semaphore> {
        self.of_network(network(client))
    }

    /// The turns of a client's site.
    pub(super) fn of_site(&self, client: IpAddr) -> Arc<Semaphore> {
        self.of_network(site(client))
    }

    fn of_network(&self, network: u128) -> Arc<Semaphore> {
        let mut all = self.of.borrow_mut();
        if let Some(turns) = all.get(&network).and_then(Weak::upgrade) {
            return turns;
        }
        if all.len() >= NETWORKS_KEPT {
            all.retain(|_, turns| turns.strong_count() > 0);
        }
        let turns = Arc::new(Semaphore::new(self.each));
        all.insert(network, Arc::downgrade(&turns));
        turns
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

/// The /24 of an address of IPv4 and the /48 of an address of IPv6: whoever has one /64 mostly has 65,536.
fn site(client: IpAddr) -> u128 {
    match client.to_canonical() {
        IpAddr::V4(_) => network(client),
        IpAddr::V6(address) => address.to_bits() >> 80 << 80,
    }
}

#[cfg(test)]
mod tests;
