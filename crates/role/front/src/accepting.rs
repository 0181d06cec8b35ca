//! The first loop accepts connections and gives each connection to the loop of the client.
//!
//! Sockets of one port in each loop (SO_REUSEPORT, socket(7)) would spare the way through the first loop. The kernel divides
//! connections by client and port, though, and not by network, unless a program of BPF says otherwise; no safe function attaches
//! such programs. A socket that systemd has bound cannot be divided, and a second front would share the port unnoticed.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use mio::net::TcpStream;
use mio::{Interest, Token};
use vere_process::smtp;
use vere_screen::{Greeting, Reason, Ticket};
use vere_smtp::server::{Peer, Server};
use vere_units::Timestamp;

use super::guest::{Guest, token_of};
use super::host::{Host, slot};
use super::loops::Arrival;
use super::replies::turned_away;

impl Host {
    /// Takes a bounded number of connections, and passes on the clients of further loops.
    pub(crate) fn accept(&mut self, now: Timestamp) {
        if self.loops.is_stopping(self.number) {
            // The first loop may have given connections meanwhile.
            return self.door.close();
        }
        if !self.door.has_more() || !self.loops.is_complete() {
            return;
        }
        let (accepted, given) = self.door.take();
        self.evict();
        for arrival in given {
            // A client that is gone already costs nothing further.
            let _ = self.arrive(arrival, now);
        }
        let (balancers, clients): (Vec<_>, Vec<_>) = accepted
            .into_iter()
            .partition(|(_, address)| self.settings.proxy.contains(address.ip()));
        for (stream, address) in balancers {
            self.wait_for_header(stream, address, now);
        }
        let arrival = |(stream, address)| Arrival {
            stream,
            address,
            local: None,
        };
        self.bring(clients.into_iter().map(arrival), now);
    }

    /// Brings clients to their loops.
    pub(crate) fn bring(&mut self, clients: impl IntoIterator<Item = Arrival>, now: Timestamp) {
        let mut given = 0_u32;
        for arrival in clients {
            let home = self.door.home(arrival.address.ip());
            if home == self.number {
                let _ = self.arrive(arrival, now);
                continue;
            }
            given |= 1 << home;
            if let Err(mut arrival) = self.loops.give(home, arrival) {
                let peer = arrival.address;
                // The metrics tell an operator; clients could order a line each.
                tracing::debug!(%peer, front_loop = home, "too many connections wait for a loop");
                self.figures.shed();
                let line = turned_away(&self.settings.hostname, Reason::ConnectionsInAll);
                let _ = arrival.stream.write_all(line.as_bytes());
            }
        }
        // One call for all connections of a turn.
        let woken = (0..self.loops.len()).filter(|number| (given >> number) & 1 == 1);
        woken.for_each(|number| self.loops.wake(number));
    }

    /// The connection of a load balancer waits for its header.
    pub(crate) fn wait_for_header(&mut self, stream: TcpStream, from: SocketAddr, now: Timestamp) {
        let until = now + self.settings.limits.command_timeout.duration();
        let registry = self.poll.registry();
        if let Err(error) = self.proxied.wait(stream, from, until, registry) {
            tracing::warn!(%error, peer = %from, "a load balancer cannot be heard");
        }
    }

    /// A load balancer has sent something.
    pub(crate) fn read_header(&mut self, place: usize, is_closed: bool, now: Timestamp) {
        let registry = self.poll.registry();
        match self.proxied.read(place, is_closed, registry) {
            Ok(client) => self.bring(client, now),
            Err(error) => {
                self.figures.without_header(1);
                tracing::info!(%error, "no PROXY header came from a network of proxy.networks");
            }
        }
    }

    /// Closes the connections of load balancers that have sent no header in time.
    pub(crate) fn give_up_balancers(&mut self, now: Timestamp) {
        let late = self.proxied.give_up(now);
        self.figures
            .without_header(late.try_into().unwrap_or(u64::MAX));
    }

    /// Closes a connection if descriptors are short here, or at a loop that has asked. Only a loop that is short asks another.
    fn evict(&mut self) {
        let is_asked = self.loops.has_to_evict(self.number);
        if !self.door.is_short() && !is_asked {
            return;
        }
        match self.screen.evict() {
            Some(ticket) => self.leave(ticket),
            None if self.door.is_short() => self.loops.evict_elsewhere(self.number),
            None => {}
        }
    }

    fn arrive(&mut self, arrival: Arrival, now: Timestamp) -> io::Result<()> {
        let Arrival {
            mut stream,
            address,
            local,
        } = arrival;
        let admitted = match self.gateway.is_shut() {
            false => {
                let most = self.settings.limits.connections_max;
                let most = self.share.with_another(self.screen.open(), most);
                self.screen.set_connections_max(most);
                self.screen.arrive(now, address.ip())
            }
            true => {
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
        let peer = self.peer(address, local.unwrap_or(registered?));
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
