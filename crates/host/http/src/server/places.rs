//! The open connections of a server, and who makes room for a new one.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::bounds::Bounds;

/// The open connections.
#[derive(Debug, Default)]
pub struct Places(Mutex<Open>);

/// Connections by number, which rises: the smallest number is the oldest.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Connection>,
    per_client: HashMap<IpAddr, usize>,
    refused: u64,
    evicted: u64,
}

#[derive(Debug)]
struct Connection {
    client: IpAddr,
    close: Arc<Notify>,
}

/// What was counted of the connections of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Connections that are open.
    pub open: usize,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were closed because their client had enough.
    pub refused: u64,
    /// Connections that made room for others.
    pub evicted: u64,
}

/// The place of a connection, which is free again when this value is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    close: Arc<Notify>,
}

impl Place {
    /// Waits until another connection needs the place.
    pub(super) async fn evicted(&self) {
        self.close.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().remove(self.number);
    }
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts up to now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let open = self.lock();
        Counts {
            open: open.all.len(),
            accepted: open.next,
            refused: open.refused,
            evicted: open.evicted,
        }
    }

    /// Takes a connection up, unless its client has enough.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr, bounds: &Bounds) -> Option<Place> {
        let (number, close) = self.lock().enter(client(address), bounds)?;
        Some(Place {
            places: Arc::clone(self),
            number,
            close,
        })
    }
}

impl Open {
    fn enter(&mut self, client: IpAddr, bounds: &Bounds) -> Option<(u64, Arc<Notify>)> {
        let has = self.per_client.get(&client).copied().unwrap_or_default();
        if has >= bounds.per_client_max {
            self.refused += 1;
            return None;
        }
        while self.all.len() >= bounds.connections_max.max(1) {
            let number = self.first_to_go()?;
            self.remove(number)?.close.notify_one();
            self.evicted += 1;
        }
        let close = Arc::new(Notify::new());
        let number = self.next;
        self.next += 1;
        *self.per_client.entry(client).or_default() += 1;
        let connection = Connection {
            client,
            close: Arc::clone(&close),
        };
        self.all.insert(number, connection);
        Some((number, close))
    }

    /// The oldest connection of the client with the most: a flood from few addresses closes its own connections.
    fn first_to_go(&self) -> Option<u64> {
        let rank = |(number, one): (&u64, &Connection)| {
            let of_client = self.per_client.get(&one.client).copied();
            (std::cmp::Reverse(of_client), *number)
        };
        self.all.iter().map(rank).min().map(|(_, number)| number)
    }

    fn remove(&mut self, number: u64) -> Option<Connection> {
        let connection = self.all.remove(&number)?;
        if let Some(count) = self.per_client.get_mut(&connection.client) {
            *count -= 1;
            if *count == 0 {
                self.per_client.remove(&connection.client);
            }
        }
        Some(connection)
    }
}

/// What counts as one client: an IPv4 address, or the /64 of an IPv6 address.
#[must_use]
pub fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(connections_max: usize, per_client_max: usize) -> Bounds {
        Bounds {
            per_client_max,
            ..Bounds::of_few(connections_max)
        }
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn a_client_has_so_many_connections() {
        let places = Arc::new(Places::default());
        let enter = |last| places.enter(address(last), &bounds(10, 2));
        let first = enter(1);
        let _second = enter(1);
        assert!(enter(1).is_none());
        assert!(enter(2).is_some());
        drop(first);
        assert!(enter(1).is_some());
        assert_eq!(places.counts().refused, 1);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let of = |text: &str| client(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), address(1));
    }

    #[test]
    fn the_oldest_connection_of_the_busiest_client_goes_first() {
        let places = Arc::new(Places::default());
        let enter = |last| places.enter(address(last), &bounds(4, 4)).unwrap();
        let honest = enter(9);
        let busy = [enter(1), enter(1), enter(1)];
        let _next = enter(8);
        let open = || places.lock().all.keys().copied().collect::<Vec<_>>();
        assert_eq!(open(), [honest.number, busy[1].number, busy[2].number, 4]);
        let _next = enter(7);
        // Now every client has one connection: the oldest goes.
        let _next = enter(6);
        assert_eq!(open(), [busy[2].number, 4, 5, 6]);
        assert_eq!(places.counts().evicted, 3);
    }
}
