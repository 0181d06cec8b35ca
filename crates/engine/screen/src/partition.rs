//! Several engines beside each other, each with the clients of its networks.

use std::net::IpAddr;
use std::num::NonZeroU32;

use crate::place::Place;
use crate::secret::{Mark, NETWORK_OCTETS, Secret};

/// Finds the engine of a client. All addresses of a /24 of IPv4 and a /64 of IPv6 have the same engine. Clients without the secret
/// cannot choose networks of a single engine.
#[derive(Debug, Clone, Copy)]
pub struct Partition {
    secret: Secret,
    parts: NonZeroU32,
}

/// One part of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    number: u32,
    parts: NonZeroU32,
}

impl Partition {
    /// Divides networks by the secret that the engines have. The same secret and number give the same parts again.
    #[must_use]
    pub const fn new(secret: [u8; 32], parts: NonZeroU32) -> Self {
        Self {
            secret: Secret::new(secret),
            parts,
        }
    }

    /// The number of the part that has a client.
    #[must_use]
    pub fn part_of(&self, client: IpAddr) -> usize {
        if self.parts == NonZeroU32::MIN {
            return 0;
        }
        let network = Place::of(client).network();
        of_mark(&self.secret.client(network), self.parts) as usize
    }

    /// All parts, by number.
    pub fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let parts = self.parts;
        (0..parts.get()).map(move |number| Part { number, parts })
    }
}

impl Part {
    /// Whether the client of an entry of the greylist belongs to this part.
    pub(crate) fn has(self, mark: &Mark) -> bool {
        of_mark(mark, self.parts) == self.number
    }
}

/// The part by the octets of a mark that stand for the network.
fn of_mark(mark: &Mark, parts: NonZeroU32) -> u32 {
    let mut network = [0; NETWORK_OCTETS];
    network.copy_from_slice(&mark[..NETWORK_OCTETS]);
    u32::from_le_bytes(network) % parts
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn partition(parts: u32) -> Partition {
        Partition::new(SECRET, NonZeroU32::new(parts).unwrap())
    }

    #[test]
    fn the_clients_of_a_network_have_the_same_part() {
        for parts in [1, 2, 3, 16] {
            let partition = partition(parts);
            for number in 0..200_u32 {
                let first = Ipv4Addr::from(number.wrapping_mul(0x9E37_79B1) & !0xFF);
                let part = partition.part_of(first.into());
                assert!(part < parts as usize);
                for host in 0..=255 {
                    let client = Ipv4Addr::from(u32::from(first) | host);
                    assert_eq!(partition.part_of(client.into()), part, "{client}");
                    let mapped = client.to_ipv6_mapped();
                    assert_eq!(partition.part_of(mapped.into()), part, "{mapped}");
                }
                let prefix = 0x2001_0DB8_0000_0000 + u64::from(number) * 0x9E37;
                let first = Ipv6Addr::from(u128::from(prefix) << 64);
                let part = partition.part_of(first.into());
                for host in [1, 0xFF, u64::MAX, 0x8000_0000_0000_0000] {
                    let client = Ipv6Addr::from(u128::from(first) | u128::from(host));
                    assert_eq!(partition.part_of(client.into()), part, "{client}");
                }
            }
        }
    }

    /// Neighbouring networks, as spammers rent, spread as random networks do: each part within five standard deviations of its
    /// share.
    #[test]
    fn networks_spread_evenly() {
        const NETWORKS: u32 = 40_000;
        let ipv4 = |number: u32| IpAddr::from(Ipv4Addr::from(number << 8));
        let ipv6 = |number: u32| IpAddr::from(Ipv6Addr::from(u128::from(number) << 64));
        for parts in [2, 5, 16] {
            for client in [&ipv4 as &dyn Fn(u32) -> IpAddr, &ipv6] {
                let partition = partition(parts);
                let mut counts = vec![0_u32; parts as usize];
                for number in 0..NETWORKS {
                    counts[partition.part_of(client(number))] += 1;
                }
                let share = f64::from(NETWORKS) / f64::from(parts);
                let deviation = (share * (1.0 - 1.0 / f64::from(parts))).sqrt();
                for count in &counts {
                    let off = (f64::from(*count) - share).abs();
                    assert!(off < 5.0 * deviation, "{counts:?} of {parts}");
                }
            }
        }
    }

    #[test]
    fn the_secret_decides_and_the_numbers_are_fixed() {
        let client = |last: u8| IpAddr::from(Ipv4Addr::new(192, 0, last, 1));
        let of = |partition: Partition| -> Vec<usize> {
            (0..12)
                .map(|last| partition.part_of(client(last)))
                .collect()
        };
        // The greylist on disk belongs to these parts.
        assert_eq!(of(partition(4)), [0, 0, 2, 2, 0, 2, 3, 3, 0, 0, 3, 1]);
        let other = Partition::new([8; 32], NonZeroU32::new(4).unwrap());
        assert_ne!(of(partition(4)), of(other));
    }

    /// Every entry belongs to the part of its client, whatever the sender.
    #[test]
    fn entries_of_the_greylist_go_with_their_clients() {
        let secret = Secret::new(SECRET);
        let partition = partition(5);
        for last in 0..=255 {
            let client = IpAddr::from(Ipv4Addr::new(198, 51, last, 9));
            let network = Place::of(client).network();
            let sender = secret.sender(&format!("s{last}@example.net"));
            let marks = [
                secret.client(network),
                secret.triplet(network, &sender, "a@example.org"),
                secret.triplet(network, &sender, "b@example.org"),
            ];
            for mark in marks {
                let with: Vec<bool> = partition.parts().map(|part| part.has(&mark)).collect();
                assert_eq!(with.iter().filter(|has| **has).count(), 1);
                assert!(with[partition.part_of(client)]);
            }
        }
    }
}
