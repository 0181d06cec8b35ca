//! Clients of a mail exchanger over two months, in the shape of the spam trace of Pathak et al., "Spam-aware mail
//! server architecture", sections 4.3 and 7.
//!
//! The trace itself and the plots of its Figures 12 and 13 are not public; the text has these numbers: 101,692
//! connections in May and June 2007, 19,492 addresses, 8,832 networks of 24 bits; 40 % of the networks with more than
//! 10 listed addresses, 102 of these (3 % of the 40 %) with more than 100; arrivals from a network closer together than
//! those from an address; and 26.22 % misses of a cache of single addresses with 24 hours of life. The generator has a
//! single fitted number, [`GAP_MAX`], and the misses are the only target. Where the text has no number, the generator
//! takes the choice without a parameter:
//!
//! - listed addresses of a network: log-uniform within 1 to 10, 11 to 100, 101 to 256, at random places of the network;
//! - addresses seen: an address of each network, the rest uniform among all further listed addresses;
//! - connections: a connection of each address, the rest by an urn with preference for addresses seen before (Pólya's);
//! - times: a network begins at any time, its connections follow in random order with log-uniform gaps: a straight
//!   line in Figure 13, whose axis of time is logarithmic.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::random::Random;

/// Numbers of Table 1 of the paper.
pub(super) const CONNECTIONS: usize = 101_692;
pub(super) const ADDRESSES: usize = 19_492;
pub(super) const NETWORKS: usize = 8_832;

/// May and June.
pub(super) const SPAN: Duration = Duration::from_secs(61 * 86_400);

/// Networks with more than 10 listed addresses: 40 %.
const ABOVE_TEN: usize = NETWORKS * 2 / 5;
/// Networks with more than 100 listed addresses.
const ABOVE_HUNDRED: usize = 102;

/// Limits of the gaps between the connections of a network, in seconds. The greatest gap is fitted to 26.22 % misses of
/// single addresses over the seeds 101 to 110.
const GAP_MIN: f64 = 1.0;
const GAP_MAX: f64 = 15.55 * 3_600.0;

/// The first octets of networks: public addresses of unicast, without networks for special purposes.
const FIRST_OCTETS: std::ops::Range<u32> = 11..100;

/// A connection of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visit {
    /// The time since the beginning of the trace, in whole milliseconds.
    pub(super) at: Duration,
    pub(super) client: Ipv4Addr,
}

/// Connections in the order of their times, and the addresses that a list has.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    pub(super) visits: Vec<Visit>,
    /// All listed addresses, without order. Every client is among them.
    pub(super) listed: Vec<Ipv4Addr>,
}

impl Trace {
    /// A trace in the shape of the paper's.
    pub(super) fn local(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let networks = neighbourhoods(NETWORKS, &mut random);
        let mut seen: Vec<Vec<Ipv4Addr>> = networks.iter().map(|all| vec![all[0]]).collect();
        let others = networks.iter().enumerate();
        let others =
            others.flat_map(|(network, all)| all[1..].iter().map(move |one| (network, *one)));
        let mut others: Vec<(usize, Ipv4Addr)> = others.collect();
        random.choose(&mut others, ADDRESSES - NETWORKS);
        for (network, address) in &others[..ADDRESSES - NETWORKS] {
            seen[*network].push(*address);
        }
        let mut visits = Vec::with_capacity(CONNECTIONS);
        for mut clients in connections(&seen, &mut random) {
            let count = clients.len();
            random.choose(&mut clients, count);
            let mut at = random.unit() * SPAN.as_secs_f64();
            for client in clients {
                // A network that is busy at the end goes on at the beginning: every day has the same rate.
                let wrapped = at % SPAN.as_secs_f64();
                visits.push(Visit {
                    at: Duration::from_millis((wrapped * 1e3) as u64),
                    client,
                });
                at += random.log_uniform(GAP_MIN, GAP_MAX);
            }
        }
        visits.sort_by_key(|visit| visit.at);
        Self {
            visits,
            listed: networks.concat(),
        }
    }

    /// As many connections from as many addresses without any locality, in space or time.
    pub(super) fn uniform(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut listed = std::collections::HashSet::with_capacity(ADDRESSES);
        while listed.len() < ADDRESSES {
            listed.insert(address(&mut random));
        }
        let mut listed: Vec<Ipv4Addr> = listed.into_iter().collect();
        listed.sort_unstable();
        let visit = |number: usize| Visit {
            at: Duration::from_millis(random.below(SPAN.as_millis() as usize) as u64),
            client: match listed.get(number) {
                // Each address comes once at least.
                Some(client) => *client,
                None => listed[random.below(ADDRESSES)],
            },
        };
        let mut visits: Vec<Visit> = (0..CONNECTIONS).map(visit).collect();
        visits.sort_by_key(|visit| visit.at);
        Self { visits, listed }
    }

    /// The times between connections with the same key, in seconds, sorted: Figure 13.
    pub(super) fn gaps<K: std::hash::Hash + Eq>(&self, key: impl Fn(Ipv4Addr) -> K) -> Vec<f64> {
        let mut last = std::collections::HashMap::new();
        let mut gaps = Vec::new();
        for visit in &self.visits {
            if let Some(before) = last.insert(key(visit.client), visit.at) {
                gaps.push((visit.at - before).as_secs_f64());
            }
        }
        gaps.sort_by(f64::total_cmp);
        gaps
    }
}

/// Any public address.
pub(super) fn address(random: &mut Random) -> Ipv4Addr {
    Ipv4Addr::from_bits(network(random) << 8 | random.below(256) as u32)
}

/// The 24 bits of any public network.
fn network(random: &mut Random) -> u32 {
    let networks = FIRST_OCTETS.len() << 16;
    (FIRST_OCTETS.start << 16) + random.below(networks) as u32
}

/// The listed addresses of so many networks, by Figure 12.
pub(super) fn neighbourhoods(count: usize, random: &mut Random) -> Vec<Vec<Ipv4Addr>> {
    let mut known = std::collections::HashSet::with_capacity(count);
    let mut found = Vec::with_capacity(count);
    while found.len() < count {
        let network = network(random);
        if !known.insert(network) {
            continue;
        }
        // The shares hold for each multiple of the number of the paper's networks.
        let (low, high) = match found.len() % NETWORKS {
            place if place < ABOVE_HUNDRED => (101, 256),
            place if place < ABOVE_TEN => (11, 100),
            _ => (1, 10),
        };
        let listed = random.log_uniform(f64::from(low), f64::from(high + 1));
        let mut hosts: Vec<u32> = (0..256).collect();
        let listed = (listed as usize).min(256);
        random.choose(&mut hosts, listed);
        let hosts = hosts[..listed].iter();
        found.push(
            hosts
                .map(|host| Ipv4Addr::from_bits(network << 8 | host))
                .collect(),
        );
    }
    found
}

/// The clients of all connections, by networks, without order.
fn connections(seen: &[Vec<Ipv4Addr>], random: &mut Random) -> Vec<Vec<Ipv4Addr>> {
    let all = seen.iter().enumerate();
    let all = all.flat_map(|(network, clients)| clients.iter().map(move |one| (network, *one)));
    let mut urn: Vec<(usize, Ipv4Addr)> = all.collect();
    while urn.len() < CONNECTIONS {
        urn.push(urn[random.below(urn.len())]);
    }
    let mut found = vec![Vec::new(); seen.len()];
    for (network, client) in urn {
        found[network].push(client);
    }
    found
}

#[cfg(test)]
mod tests;
