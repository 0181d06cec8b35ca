//! Limits the number of connections: of all clients together, and of each client.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use vere_settings::Settings;
use vere_telemetry::metrics::TurnedAway;

/// The places that `limits.connections_max` and `limits.connections_per_client_max` give.
#[derive(Debug, Default)]
pub struct Places {
    taken: Cell<u32>,
    clients: RefCell<HashMap<Client, u32>>,
}

impl Places {
    /// Reserves a place for a connection of `client`, until the [`Permit`] is dropped.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn take(
        self: &Rc<Self>,
        settings: &Settings,
        client: Client,
    ) -> Result<Permit, TurnedAway> {
        let mut clients = self.clients.borrow_mut();
        let of_client = clients.get(&client).copied().unwrap_or(0);
        if self.taken.get() >= settings.limits.connections_max {
            return Err(TurnedAway::Connections);
        }
        if of_client >= settings.limits.connections_per_client_max {
            return Err(TurnedAway::Client);
        }
        self.taken.set(self.taken.get() + 1);
        clients.insert(client, of_client + 1);
        Ok(Permit {
            places: Rc::clone(self),
            client,
        })
    }

    /// Returns the number of places in use.
    pub fn taken(&self) -> u32 {
        self.taken.get()
    }
}

/// A place among the connections, held until the drop.
#[derive(Debug)]
pub struct Permit {
    places: Rc<Places>,
    client: Client,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let places = &self.places;
        places.taken.set(places.taken.get().saturating_sub(1));
        let mut clients = places.clients.borrow_mut();
        match clients.get_mut(&self.client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                clients.remove(&self.client);
            }
        }
    }
}

/// Identity of a client for the per-client limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    /// An IPv4 address, or the beginning of an IPv6 /64, which is what one customer gets.
    Address(IpAddr),
    /// A user of this machine, by number.
    User(u32),
}

impl Client {
    /// The client at an address.
    pub fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(v6) => {
                let mut segments = v6.segments();
                segments[4..].fill(0);
                IpAddr::V6(Ipv6Addr::from(segments))
            }
            v4 => v4,
        })
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(network)) => write!(f, "{network}/64"),
            Self::Address(address) => write!(f, "{address}"),
            Self::User(number) => write!(f, "uid {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_customer_is_one_client() {
        let client = |text: &str| Client::at(text.parse().expect("an address"));
        assert_eq!(client("2001:db8:1:2:3::4"), client("2001:db8:1:2:ffff::1"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    }
}
