//! The connections to an invitation: bounded in all and for each source, and the newest come first.
//!
//! A source is an IPv4 address or an IPv6 /64. When all places are taken, the oldest connection that has not shown the
//! secret is closed for the new one: a machine with the token needs a place for a moment, and a stranger who holds
//! places in silence keeps it out at no time.

use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vere_process::places::Client;

/// Connections served at once.
pub const CONNECTIONS_MAX: usize = 16;
/// Connections of one source served at once.
pub const SOURCE_MAX: usize = 4;
/// Connections that are closed already, and whose threads have not noticed.
const CLOSED_MAX: usize = 16;

/// The connections.
#[derive(Debug, Default)]
pub(crate) struct Crowd(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// In the order of their beginning.
    connections: Vec<Connection>,
    /// The next number.
    next: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    source: Client,
    /// Another handle of the socket, to close it from outside.
    socket: TcpStream,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The other side has not shown the secret.
    Stranger,
    /// The other side has shown the secret.
    Proven,
    /// Closed for a newer connection.
    Closed,
}

/// A place among the connections, until the drop.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    crowd: &'a Crowd,
    number: u64,
}

impl Crowd {
    /// Takes a place for a connection, if need be that of the oldest stranger. `None`: every place is taken by machines with
    /// the secret.
    pub(crate) fn enter(&self, stream: &TcpStream, peer: IpAddr) -> Option<Entered<'_>> {
        let source = Client::at(peer);
        let socket = stream.try_clone().ok()?;
        let mut inner = self.lock();
        let is_of = |connection: &Connection| connection.source == source;
        if inner.count(is_of) >= SOURCE_MAX {
            inner.close_oldest(is_of)?;
        } else if inner.count(|_| true) >= CONNECTIONS_MAX {
            inner.close_oldest(|_| true)?;
        }
        let number = inner.next;
        inner.next += 1;
        inner.connections.push(Connection {
            number,
            source,
            socket,
            state: State::Stranger,
        });
        Some(Entered {
            crowd: self,
            number,
        })
    }

    /// Whether a further connection may be accepted; otherwise it waits in the queue of the system.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().connections.len() < CONNECTIONS_MAX + CLOSED_MAX
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn count(&self, is_meant: impl Fn(&Connection) -> bool) -> usize {
        let open = |connection: &&Connection| connection.state != State::Closed;
        let open = self.connections.iter().filter(open);
        open.filter(|connection| is_meant(connection)).count()
    }

    /// Closes the oldest connection of a stranger; `None`: there is none.
    fn close_oldest(&mut self, is_meant: impl Fn(&Connection) -> bool) -> Option<()> {
        let oldest = self
            .connections
            .iter_mut()
            .find(|one| one.state == State::Stranger && is_meant(one))?;
        oldest.state = State::Closed;
        // A peer that is gone already is as good.
        let _ = oldest.socket.shutdown(Shutdown::Both);
        Some(())
    }
}

impl Entered<'_> {
    /// Notes that the other side has shown the secret: its connection is not closed for a newer one.
    pub(crate) fn prove(&self) {
        let mut inner = self.crowd.lock();
        let own = |one: &&mut Connection| one.number == self.number;
        if let Some(own) = inner.connections.iter_mut().find(own)
            && own.state == State::Stranger
        {
            own.state = State::Proven;
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut inner = self.crowd.lock();
        inner.connections.retain(|one| one.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// Connections over loopback, with both ends.
    struct Ends(TcpListener);

    impl Ends {
        fn new() -> Self {
            Self(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
        }

        fn connect(&self) -> (TcpStream, TcpStream) {
            let far = TcpStream::connect(self.0.local_addr().unwrap()).unwrap();
            (self.0.accept().unwrap().0, far)
        }
    }

    /// Whether the other end sees the end of the connection.
    fn is_closed(far: &mut TcpStream) -> bool {
        far.set_nonblocking(true).unwrap();
        let read = far.read(&mut [0]);
        far.set_nonblocking(false).unwrap();
        read.is_ok_and(|count| count == 0)
    }

    fn v4(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    #[test]
    fn a_source_has_few_places_and_the_newest_come_first() {
        let (crowd, ends) = (Crowd::default(), Ends::new());
        let (near, mut other) = ends.connect();
        let other_place = crowd.enter(&near, v4(9)).unwrap();
        let mut all: Vec<_> = (0..SOURCE_MAX).map(|_| ends.connect()).collect();
        let mut places: Vec<_> = all
            .iter()
            .map(|(near, _)| crowd.enter(near, v4(1)).unwrap())
            .collect();
        assert!(!all.iter_mut().any(|(_, far)| is_closed(far)));
        let (near, mut newest) = ends.connect();
        let _newest_place = crowd.enter(&near, v4(1)).unwrap();
        let closed: Vec<_> = all.iter_mut().map(|(_, far)| is_closed(far)).collect();
        assert_eq!(closed, [true, false, false, false]);
        // A proven connection stays, the next oldest goes.
        places[1].prove();
        let (near, mut second) = ends.connect();
        let _second_place = crowd.enter(&near, v4(1)).unwrap();
        let closed: Vec<_> = all.iter_mut().map(|(_, far)| is_closed(far)).collect();
        assert_eq!(closed, [true, false, true, false]);
        assert!(!is_closed(&mut newest) && !is_closed(&mut second) && !is_closed(&mut other));
        // A place that was given back is free without a victim.
        drop(places.pop());
        let (near, _far) = ends.connect();
        let _third_place = crowd.enter(&near, v4(1)).unwrap();
        assert!(!is_closed(&mut newest));
        drop(other_place);
    }

    #[test]
    fn a_closed_connection_is_not_proven_any_more_and_no_victim_again() {
        let (crowd, ends) = (Crowd::default(), Ends::new());
        let all: Vec<_> = (0..=SOURCE_MAX).map(|_| ends.connect()).collect();
        let places: Vec<_> = all
            .iter()
            .map(|(near, _)| crowd.enter(near, v4(1)).unwrap())
            .collect();
        for place in &places {
            place.prove();
        }
        // The first one was closed; the others have the secret and fill the places of the source.
        let (near, _far) = ends.connect();
        assert!(crowd.enter(&near, v4(1)).is_none());
        assert!(crowd.enter(&near, v4(2)).is_some());
    }

    #[test]
    fn all_places_together_and_closing_connections_have_a_bound() {
        let (crowd, ends) = (Crowd::default(), Ends::new());
        let mut all = Vec::new();
        let mut places = Vec::new();
        for number in 0..CONNECTIONS_MAX + CLOSED_MAX {
            let (near, far) = ends.connect();
            let last = u8::try_from(number).unwrap();
            assert!(crowd.has_room());
            places.push(crowd.enter(&near, v4(last)).unwrap());
            all.push((near, far));
        }
        let closed = all.iter_mut().map(|(_, far)| is_closed(far));
        let closed: Vec<_> = closed.collect();
        assert!(closed[..CLOSED_MAX].iter().all(|closed| *closed));
        assert!(!closed[CLOSED_MAX..].iter().any(|closed| *closed));
        assert!(!crowd.has_room());
        places.remove(0);
        assert!(crowd.has_room());
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let (crowd, ends) = (Crowd::default(), Ends::new());
        let mut all: Vec<_> = (0..=SOURCE_MAX).map(|_| ends.connect()).collect();
        let mut places = Vec::new();
        for (number, (near, _)) in all.iter().enumerate() {
            let peer = format!("2001:db8::{number}").parse().unwrap();
            places.push(crowd.enter(near, peer).unwrap());
        }
        assert!(is_closed(&mut all[0].1) && !is_closed(&mut all[1].1));
    }
}
