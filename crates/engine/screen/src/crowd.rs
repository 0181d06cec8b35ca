//! All connections, in the lists that say who is greeted next and who makes room.

use std::time::Duration;

use crate::chain::{Chain, Link};
use crate::clock::Moment;
use crate::connection::{Connection, Phase};
use crate::secret::Secret;
use crate::slab::{Slab, StaleTicket, Ticket};
use crate::table::Table;
use crate::terms::{Deadlines, Limits};
use crate::wheel::Wheel;

/// Connections, their addresses and networks, and their deadlines.
#[derive(Debug)]
pub(crate) struct Crowd {
    connections: Slab<Connection>,
    /// Neighbours of each connection in the one list that has it: of the banner, or of its network.
    places: Vec<Link>,
    /// Clients before their greeting, the oldest first.
    banner: Chain,
    pub(crate) addresses: Table,
    pub(crate) networks: Table,
    wheel: Wheel,
}

impl Crowd {
    /// Makes tables that have room for every connection that the limits allow.
    pub(crate) fn new(limits: &Limits, secret: Secret) -> Self {
        let size = |entries: u32| entries.max(limits.connections_max);
        Self {
            connections: Slab::new(),
            places: Vec::new(),
            banner: Chain::EMPTY,
            addresses: Table::new(secret, size(limits.addresses)),
            networks: Table::new(secret, size(limits.networks)),
            wheel: Wheel::new(),
        }
    }

    /// Number of connections.
    pub(crate) const fn len(&self) -> u32 {
        self.connections.len()
    }

    /// Adds a connection before its greeting.
    pub(crate) fn enter(&mut self, connection: Connection) -> Ticket {
        self.addresses.open(connection.address);
        self.networks.open(connection.network);
        let ticket = self.connections.insert(connection);
        if self.places.len() <= ticket.slot as usize {
            self.places.push(Link::LOOSE);
        }
        self.banner.push(&mut self.places, ticket.slot);
        ticket
    }

    /// The connection of a ticket, in any phase.
    pub(crate) fn held(&self, ticket: Ticket) -> Result<&Connection, StaleTicket> {
        self.connections.held(ticket)
    }

    /// The connection of a ticket, if it is not trusted or closed yet.
    pub(crate) fn live(&mut self, ticket: Ticket) -> Result<&mut Connection, StaleTicket> {
        self.connections.held_mut(ticket).and_then(|connection| {
            connection
                .is_live()
                .then_some(connection)
                .ok_or(StaleTicket)
        })
    }

    /// A client before its greeting whose delay is over.
    pub(crate) fn to_greet(&self, now: Moment, delay: Duration) -> Option<Ticket> {
        let (ticket, at) = self.next_greeting(delay)?;
        (at <= now).then_some(ticket)
    }

    /// The client that is greeted next, and the moment.
    pub(crate) fn next_greeting(&self, delay: Duration) -> Option<(Ticket, Moment)> {
        let ticket = self.connections.ticket(self.banner.first()?);
        let connection = self.connections.held(ticket).ok()?;
        Some((ticket, connection.arrived.after(delay)))
    }

    /// Moves a connection from the banner to its network.
    pub(crate) fn greet(&mut self, ticket: Ticket, now: Moment) -> Result<(), StaleTicket> {
        let connection = self.connections.held_mut(ticket)?;
        connection.phase = Phase::Greeted;
        connection.since = now;
        self.banner.remove(&mut self.places, ticket.slot);
        let network = connection.network;
        self.networks.wait(network, &mut self.places, ticket.slot);
        Ok(())
    }

    /// Takes a live connection out of its list and out of the wheel, into a phase in which nothing is decided.
    pub(crate) fn retire(&mut self, ticket: Ticket, phase: Phase) -> Result<(), StaleTicket> {
        let connection = self.live(ticket)?;
        let network = connection.network;
        match std::mem::replace(&mut connection.phase, phase) {
            Phase::Banner => self.banner.remove(&mut self.places, ticket.slot),
            _ => self.networks.settle(network, &mut self.places, ticket.slot),
        }
        self.wheel.clear(ticket.slot);
        Ok(())
    }

    /// Removes a connection in any phase.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Result<Connection, StaleTicket> {
        // Trusted and closing connections have left their lists already.
        let _ = self.retire(ticket, Phase::Closing);
        let connection = self.connections.remove(ticket)?;
        self.addresses.close(connection.address);
        self.networks.close(connection.network);
        Ok(connection)
    }

    /// Sets the timer of a connection to its deadline.
    pub(crate) fn arm(&mut self, ticket: Ticket, deadlines: &Deadlines) {
        let connection = self.connections.held(ticket).ok();
        match connection.and_then(|connection| connection.deadline(deadlines)) {
            Some((moment, _)) => self.wheel.set(ticket.slot, moment.second_after()),
            None => self.wheel.clear(ticket.slot),
        }
    }

    /// A connection whose timer has run out; its deadline may have moved since.
    pub(crate) fn pop(&mut self, now: Moment) -> Option<Ticket> {
        let slot = self.wheel.pop(now.second())?;
        Some(self.connections.ticket(slot))
    }

    /// The moment of the earliest timer.
    pub(crate) fn next_timer(&self) -> Option<Moment> {
        self.wheel.next().map(Moment::of_second)
    }

    /// The connection that makes room: the oldest before its greeting, or the oldest of the network with most
    /// connections.
    pub(crate) fn victim(&self) -> Option<Ticket> {
        let slot = self.banner.first().or_else(|| {
            self.networks
                .fullest()
                .and_then(|network| network.waiting.first())
        })?;
        Some(self.connections.ticket(slot))
    }
}
