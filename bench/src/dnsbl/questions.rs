//! The questions of a measurement, with their expected answers.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::random::Random;
use super::wire::{self, Kind, Said};

/// The zone of all servers.
pub(super) const ZONE: &str = "bl.test";

/// The value of every listed address.
pub(super) const VALUE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Share of listed clients: of the mail of the paper's university 67 % was spam (Table 1).
const LISTED: f64 = 0.67;

/// A query and its right answer.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// The query with id 0.
    pub(super) query: Vec<u8>,
    /// `None` where servers differ, or where the answer has no part in the measurement.
    pub(super) expected: Option<Said>,
}

impl Question {
    /// The query as before, without a right answer, for a responder without lookups.
    pub(super) fn unlooked(&self) -> Self {
        let query = self.query.clone();
        Self {
            query,
            expected: None,
        }
    }
}

/// Clients of a mail exchanger: listed ones, and others from all public networks.
pub(super) fn clients(listed: &[Ipv4Addr], count: usize, random: &mut Random) -> Vec<Ipv4Addr> {
    let client = |_| match random.unit() < LISTED {
        true => listed[random.below(listed.len())],
        false => super::trace::address(random),
    };
    (0..count).map(client).collect()
}

/// The maps of listed addresses.
#[derive(Debug)]
pub(super) struct Maps(HashMap<u32, u128>);

impl Maps {
    pub(super) fn of(listed: &[Ipv4Addr]) -> Self {
        let mut maps: HashMap<u32, u128> = HashMap::new();
        for address in listed {
            *maps.entry(address.to_bits() >> 7).or_default() |= wire::bit(*address);
        }
        Self(maps)
    }

    /// The map with a client, if any neighbour is listed.
    pub(super) fn map(&self, client: Ipv4Addr) -> Option<u128> {
        self.0.get(&(client.to_bits() >> 7)).copied()
    }

    /// Whether the network of 24 bits of a client has a listed address.
    fn is_near(&self, client: Ipv4Addr) -> bool {
        let half = client.to_bits() >> 7;
        self.0.contains_key(&half) || self.0.contains_key(&(half ^ 1))
    }

    /// The question whether a client is listed.
    pub(super) fn address(&self, client: Ipv4Addr) -> Question {
        let map = self.map(client).unwrap_or_default();
        let expected = match map & wire::bit(client) {
            0 => self.absent(client),
            _ => Some(Said::Address(VALUE)),
        };
        let name = wire::name_of_address(client, ZONE);
        let query = wire::query(&name, Kind::A, true);
        Question { query, expected }
    }

    /// The absence of `w.z.y.x`. A server of maps says of `0.z.y.x` and `1.z.y.x` that the name exists.
    fn absent(&self, client: Ipv4Addr) -> Option<Said> {
        let [.., last] = client.octets();
        let may_be_map = last < 2 && self.is_near(client);
        (!may_be_map).then_some(Said::NoName)
    }

    /// The question for the map of a client's neighbours, for a server of maps.
    pub(super) fn neighbours(&self, client: Ipv4Addr) -> Question {
        let expected = match self.map(client) {
            Some(map) => Some(Said::Map(map)),
            // A client 0 or 1 that is listed has the same name.
            None => (!self.is_near(client)).then_some(Said::NoName),
        };
        Question {
            query: self.neighbours_query(client),
            expected,
        }
    }

    /// The question for a map to a server without maps.
    pub(super) fn neighbours_unknown(&self, client: Ipv4Addr) -> Question {
        Question {
            query: self.neighbours_query(client),
            expected: None,
        }
    }

    fn neighbours_query(&self, client: Ipv4Addr) -> Vec<u8> {
        let name = wire::name_of_map(client, ZONE);
        wire::query(&name, Kind::Aaaa, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    #[test]
    fn expected_answers_follow_the_list() {
        let maps = Maps::of(&["20.0.0.5", "20.0.0.0", "20.0.0.127"].map(address));
        let listed = |text| maps.address(address(text)).expected;
        assert_eq!(listed("20.0.0.5"), Some(Said::Address(VALUE)));
        assert_eq!(listed("20.0.0.6"), Some(Said::NoName));
        // The name of a map, of which servers without maps know nothing.
        assert_eq!(listed("20.0.0.1"), None);
        assert_eq!(listed("20.0.1.1"), Some(Said::NoName));
        let map = |text| maps.neighbours(address(text)).expected;
        let expected = 1 << 127 | 1 << 122 | 1;
        assert_eq!(map("20.0.0.9"), Some(Said::Map(expected)));
        assert_eq!(map("20.0.0.200"), None);
        assert_eq!(map("20.0.9.200"), Some(Said::NoName));
        let unknown = maps.neighbours_unknown(address("20.0.0.9"));
        assert_eq!(unknown.expected, None);
        assert_eq!(unknown.query, maps.neighbours(address("20.0.0.9")).query);
    }

    #[test]
    fn two_thirds_of_the_clients_are_listed() {
        let listed = [address("20.0.0.5"), address("20.0.0.6")];
        let clients = clients(&listed, 10_000, &mut Random::new(1));
        let found = clients.iter().filter(|one| listed.contains(one)).count();
        assert!((6_500..6_900).contains(&found), "{found}");
    }
}
