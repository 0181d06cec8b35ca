//! Connections that come: the first loop accepts them and gives each to the loop of its client.
//!
//! Sockets of one port in each loop (SO_REUSEPORT, socket(7)) would spare the way through the first loop. The kernel divides
//! connections by client and port, though, and not by network, unless a program of BPF says otherwise; no safe function attaches
//! one. A socket that systemd has bound cannot be divided, and a second front would share the port unnoticed.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use vere_net::listen::send_at_once;
use vere_process::smtp;
use vere_screen::{Greeting, Partition, Reason, Ticket};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Peer, Server};
use vere_units::Timestamp;

use super::guest::{Guest, token_of};
use super::host::{Host, LISTENERS, SERVICE, slot};
use super::loops::Arrival;
use super::replies::turned_away;

/// Connections taken before other events have their turn.
const ACCEPTS_MAX: usize = 64;

/// Where the connections of a loop come from.
#[derive(Debug)]
pub(crate) struct Door {
    /// The sockets of the port; the first loop has them.
    listeners: Vec<TcpListener>,
    /// Connections that the first loop gives this one.
    arrivals: Receiver<Arrival>,
    partition: Partition,
    /// There may be more connections.
    may_have_more: bool,
    /// Descriptors were short at the last accept.
    is_short: bool,
    /// No further connection is taken.
    is_closed: bool,
}

impl Door {
    /// # Errors
    /// When the system refuses.
    pub(crate) fn new(
        listeners: Vec<std::net::TcpListener>,
        arrivals: Receiver<Arrival>,
        partition: Partition,
        registry: &Registry,
    ) -> io::Result<Self> {
        let mut sockets = Vec::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            listener.set_nonblocking(true)?;
            // A reply of a worker waits for no acknowledgement of the reply before.
            send_at_once(&listener)?;
            let mut listener = TcpListener::from_std(listener);
            let token = Token(LISTENERS.saturating_add(number));
            registry.register(&mut listener, token, Interest::READABLE)?;
            sockets.push(listener);
        }
        Ok(Self {
            listeners: sockets,
            arrivals,
            partition,
            may_have_more: true,
            is_short: false,
            is_closed: false,
        })
    }

    /// Connections may be there. The kernel and the first loop say so once, and a connection that could not be accepted is no event
    /// again.
    pub(crate) const fn look(&mut self) {
        self.may_have_more = true;
    }

    /// Whether connections may be there to be taken.
    pub(crate) const fn has_more(&self) -> bool {
        self.may_have_more && !self.is_closed
    }

    /// Whether descriptors were short at the last accept.
    pub(crate) const fn is_short(&self) -> bool {
        self.is_short
    }

    /// Takes no further connection.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.listeners.clear();
        self.arrivals.try_iter().for_each(drop);
    }

    /// Takes a bounded number of connections.
    fn take(&mut self) -> Vec<Arrival> {
        let (mut arrived, mut short) = (Vec::new(), false);
        for listener in &self.listeners {
            for _ in 0..ACCEPTS_MAX {
                match listener.accept() {
                    Ok(connection) => arrived.push(connection),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, service = SERVICE, "cannot accept a connection");
                        short = true;
                        break;
                    }
                }
            }
        }
        arrived.extend(self.arrivals.try_iter().take(ACCEPTS_MAX));
        self.may_have_more = arrived.len() >= ACCEPTS_MAX;
        self.is_short = short;
        arrived
    }
}

impl Host {
    /// Takes connections, a bounded number at once. The clients of other loops go to these.
    pub(crate) fn accept(&mut self, now: Timestamp) {
        if !self.door.has_more() || !self.loops.is_complete() {
            return;
        }
        let arrived = self.door.take();
        if self.door.is_short() || self.loops.has_to_evict(self.number) {
            self.evict();
        }
        let mut given = 0_u32;
        for (stream, address) in arrived {
            let home = self.door.partition.part_of(address.ip());
            if home == self.number {
                // A client that is gone already costs nothing further.
                let _ = self.arrive(stream, address, now);
                continue;
            }
            given |= 1 << home;
            if let Err((mut stream, address)) = self.loops.give(home, (stream, address)) {
                tracing::warn!(peer = %address, front_loop = home, "too many connections wait for a loop");
                self.figures.shed();
                let line = turned_away(&self.settings.hostname, Reason::ConnectionsInAll);
                let _ = stream.write_all(line.as_bytes());
            }
        }
        // One call for all connections of a turn.
        let woken = (0..self.loops.len()).filter(|number| (given >> number) & 1 == 1);
        woken.for_each(|number| self.loops.wake(number));
    }

    /// Closes a connection of this loop, or has another loop close one.
    fn evict(&mut self) {
        match self.screen.evict() {
            Some(ticket) => self.leave(ticket),
            None => self.loops.evict_elsewhere(self.number),
        }
    }

    fn arrive(
        &mut self,
        mut stream: TcpStream,
        address: SocketAddr,
        now: Timestamp,
    ) -> io::Result<()> {
        let admitted = match self.gateway.closed() {
            None | Some(Refusal::StorageFull) => {
                let most = self.settings.limits.connections_max;
                let most = self.share.with_another(self.screen.open(), most);
                self.screen.set_connections_max(most);
                self.screen.arrive(now, address.ip())
            }
            Some(_) => {
                self.figures.closed();
                let hostname = &self.settings.hostname;
                let shut =
                    format!("421 4.3.2 {hostname} takes no mail for now, try again later\r\n");
                return stream.write_all(shut.as_bytes());
            }
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(away) => {
                tracing::debug!(peer = %address, reason = away.0.name(), "turned away");
                let line = turned_away(&self.settings.hostname, away.0);
                return stream.write_all(line.as_bytes());
            }
        };
        let ticket = admitted.ticket;
        if self.hands_over_at_once {
            return self.give_at_once(ticket, stream, now);
        }
        let registered = self.register(&mut stream, ticket);
        if registered.is_err() {
            let _ = self.screen.left(ticket);
        }
        let peer = self.peer(address, registered?);
        let server = Server::new(Arc::clone(&self.config), peer, now);
        let guest = Guest::new(ticket, server, stream);
        let slot = slot(ticket);
        if self.guests.len() <= slot {
            self.guests.resize_with(slot.saturating_add(1), || None);
        }
        if let Some(place) = self.guests.get_mut(slot) {
            *place = Some(guest);
        }
        if admitted.greeting == Greeting::Now {
            self.greet(ticket, now);
        }
        Ok(())
    }

    /// Has the kernel tell of the connection, and returns our address.
    fn register(&self, stream: &mut TcpStream, ticket: Ticket) -> io::Result<SocketAddr> {
        let token = Token(token_of(ticket));
        let registry = self.poll.registry();
        registry.register(stream, token, Interest::READABLE)?;
        stream.local_addr()
    }

    pub(crate) fn peer(&self, address: SocketAddr, local: SocketAddr) -> Peer {
        let mut peer = smtp::peer(&self.settings, address, local);
        peer.tls_available = self.tls.is_offered();
        peer
    }
}

/// Whether accept(2) failed for the one connection only.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
