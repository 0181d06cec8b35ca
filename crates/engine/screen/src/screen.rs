//! The engine: who is admitted, greeted, closed for lack of time or room, and handed over.

use std::net::IpAddr;

use vere_units::Timestamp;

use crate::access::{Access, Known, NO_RULE, first_match};
use crate::clock::{Clock, Moment};
use crate::connection::{Connection, End, Phase};
use crate::crowd::Crowd;
use crate::decision::{Decision, Reason, TurnedAway};
use crate::greylist::snapshot::GreylistSnapshot;
use crate::greylist::{Greylist, Greylisted};
use crate::partition::Part;
use crate::place::Place;
use crate::question::Spf;
use crate::secret::Secret;
use crate::slab::{StaleTicket, Ticket};
use crate::tally::Tally;
use crate::terms::Terms;

/// Refused recipients of one connection that count after trust.
const REFUSED_MAX: u32 = 10_000;

/// The engine. Memory is bounded by the [`Limits`](crate::Limits) with which it was made.
///
/// Every event takes the host's time, which may jump. The events of a session are in `dialogue.rs`.
#[derive(Debug)]
pub struct Screen {
    pub(crate) terms: Terms,
    pub(crate) secret: Secret,
    pub(crate) clock: Clock,
    pub(crate) crowd: Crowd,
    pub(crate) greylist: Greylist,
    pub(crate) tally: Tally,
}

/// A connection that is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// The name of the connection.
    pub ticket: Ticket,
    /// The time of the greeting.
    pub greeting: Greeting,
}

/// The time of a greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greeting {
    /// The host greets the client now.
    Now,
    /// [`Screen::due`] gives [`Due::Greet`] then.
    At(Timestamp),
}

/// An event whose time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The delay before the greeting is over: the host greets the client.
    Greet,
    /// Answers did not come in time. The decision about the recipient, or the end of the connection.
    Decided(Decision),
    /// A deadline has passed: the host closes the connection.
    Close(Reason),
}

/// Facts about a connection, for replies, logs and the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Findings {
    /// Sum of the weights of all lists, once they have answered.
    pub score: Option<i32>,
    /// The list with the largest weight against the client.
    pub list: Option<u8>,
    /// The result of SPF for the last MAIL.
    pub spf: Option<Spf>,
    /// The greylist's state of the last recipient that nothing else was against; `None` without a greylist.
    pub greylisted: Option<Greylisted>,
    /// Whether the client spoke before its greeting.
    pub early: bool,
    /// Number of refusals for good.
    pub refused: u16,
    /// The rule for client, HELO and the last MAIL.
    pub access: Access,
}

impl Screen {
    /// Makes an engine. The secret has to be random, and the same after a restart if the greylist is kept.
    #[must_use]
    pub fn new(terms: Terms, secret: [u8; 32]) -> Self {
        let secret = Secret::new(secret);
        Self {
            crowd: Crowd::new(&terms.limits, secret),
            terms,
            secret,
            clock: Clock::default(),
            greylist: Greylist::new(),
            tally: Tally::default(),
        }
    }

    /// Changes the terms. The tables keep their sizes, and a connection whose deadline is nearer now keeps the old one
    /// until its next event.
    pub fn set_terms(&mut self, terms: Terms) {
        self.terms = terms;
    }

    /// Changes the number of connections that may be open, until the next change of the terms: several engines may share one bound.
    /// The tables keep the sizes of their making.
    pub const fn set_connections_max(&mut self, connections_max: u32) {
        self.terms.limits.connections_max = connections_max;
    }

    /// Admits a new connection or turns it away. A connection that is turned away is in no table.
    ///
    /// # Errors
    ///
    /// [`TurnedAway`] with the reason; the host replies and closes.
    pub fn arrive(&mut self, now: Timestamp, client: IpAddr) -> Result<Admitted, TurnedAway> {
        let now = self.clock.at(now);
        self.tally.arrived += 1;
        self.admit(now, Place::of(client)).map_err(|reason| {
            self.tally.turn_away(reason);
            TurnedAway(reason)
        })
    }

    fn admit(&mut self, now: Moment, client: Place) -> Result<Admitted, Reason> {
        let known = Known {
            client,
            helo: None,
            sender: None,
        };
        let (rule, access) = first_match(&self.terms.access, NO_RULE, Access::Ordinary, known);
        let limits = &self.terms.limits;
        if access == Access::Refuse {
            return Err(Reason::Access);
        }
        if self.crowd.len() >= limits.connections_max {
            return Err(Reason::ConnectionsInAll);
        }
        let full = Reason::ConnectionsInAll;
        let address = self.crowd.addresses.entry(client).ok_or(full)?;
        let network = self.crowd.networks.entry(client.network()).ok_or(full)?;
        if access == Access::Ordinary {
            self.count_arrival(now, address, network)?;
        }
        let ticket = self.crowd.enter(Connection {
            rule,
            access,
            mail_access: access,
            ..Connection::new(now, address, network)
        });
        let greeting = self.first_greeting(now, ticket, access, address);
        Ok(Admitted { ticket, greeting })
    }

    /// Checks the limits of address and network, and counts the connection if none is reached.
    fn count_arrival(&mut self, now: Moment, address: u32, network: u32) -> Result<(), Reason> {
        let limits = &self.terms.limits;
        let address = self.crowd.addresses.at_mut(address);
        let network = self.crowd.networks.at_mut(network);
        if address.open >= limits.connections_per_address_max {
            return Err(Reason::ConnectionsOfAddress);
        }
        if network.open >= limits.connections_per_network_max {
            return Err(Reason::ConnectionsOfNetwork);
        }
        if address.refusals.is_spent(now, limits.refused_per_address)
            || network.refusals.is_spent(now, limits.refused_per_network)
        {
            return Err(Reason::Refusals);
        }
        if address.arrivals.is_spent(now, limits.arrivals_per_address) {
            return Err(Reason::ArrivalsOfAddress);
        }
        if network.arrivals.is_spent(now, limits.arrivals_per_network) {
            return Err(Reason::ArrivalsOfNetwork);
        }
        address.arrivals.count(now, limits.arrivals_per_address);
        network.arrivals.count(now, limits.arrivals_per_network);
        Ok(())
    }

    fn first_greeting(
        &mut self,
        now: Moment,
        ticket: Ticket,
        access: Access,
        address: u32,
    ) -> Greeting {
        let banner = &self.terms.banner;
        let trusted = self.crowd.addresses.at(address).trusted();
        let familiar = trusted.is_some_and(|trusted| now.since(trusted) <= banner.familiar);
        if access == Access::Allow || familiar || banner.delay.is_zero() {
            self.greet(ticket, now);
            return Greeting::Now;
        }
        Greeting::At(self.clock.date(now.after(banner.delay)))
    }

    fn greet(&mut self, ticket: Ticket, now: Moment) {
        if self.crowd.greet(ticket, now).is_ok() {
            self.crowd.arm(ticket, &self.terms.deadlines);
        }
    }

    /// The next event whose time has come; `None` when there are no more for now. Each is given once, a second late at
    /// most.
    pub fn due(&mut self, now: Timestamp) -> Option<(Ticket, Due)> {
        let now = self.clock.at(now);
        if let Some(ticket) = self.crowd.to_greet(now, self.terms.banner.delay) {
            self.greet(ticket, now);
            return Some((ticket, Due::Greet));
        }
        while let Some(ticket) = self.crowd.pop(now) {
            if let Some(due) = self.run_out(now, ticket) {
                return Some((ticket, due));
            }
        }
        None
    }

    /// Treats a connection whose timer has run out.
    fn run_out(&mut self, now: Moment, ticket: Ticket) -> Option<Due> {
        let connection = self.crowd.live(ticket).ok()?;
        let (deadline, end) = connection.deadline(&self.terms.deadlines)?;
        if deadline > now {
            // Signs of life have moved the deadline.
            self.crowd.arm(ticket, &self.terms.deadlines);
            return None;
        }
        match end {
            End::Close(reason) => {
                self.close(ticket, reason);
                Some(Due::Close(reason))
            }
            End::GiveUp => self.give_up(now, ticket).map(Due::Decided),
        }
    }

    /// The time at which [`due`](Self::due) has to be called next, if nothing happens until then. The call may find
    /// nothing due.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let greeting = self.crowd.next_greeting(self.terms.banner.delay);
        let greeting = greeting.map(|(_, moment)| moment);
        let next = greeting.into_iter().chain(self.crowd.next_timer()).min()?;
        Some(self.clock.date(next))
    }

    /// Chooses a connection to be closed because memory or descriptors are short: the oldest before its greeting, else
    /// the oldest of the network with most connections that wait for trust. `None` when every connection is trusted or
    /// closed already.
    pub fn evict(&mut self) -> Option<Ticket> {
        let victim = self.crowd.victim()?;
        self.close(victim, Reason::Evicted);
        Some(victim)
    }

    /// Marks a live connection as one that the host closes now.
    pub(crate) fn close(&mut self, ticket: Ticket, reason: Reason) {
        if self.crowd.retire(ticket, Phase::Closing).is_ok() {
            self.tally.count(Decision::Close(reason));
        }
    }

    /// A worker has the connection. It counts for its address and network until [`done`](Self::done).
    ///
    /// # Errors
    ///
    /// [`StaleTicket`], also if the connection is trusted or was told to close.
    pub fn trusted(&mut self, now: Timestamp, ticket: Ticket) -> Result<(), StaleTicket> {
        let now = self.clock.at(now);
        let address = self.crowd.live(ticket)?.address;
        self.crowd.retire(ticket, Phase::Trusted)?;
        self.crowd.addresses.at_mut(address).trust(now);
        self.tally.trusted += 1;
        Ok(())
    }

    /// A worker has done with a connection, and has refused so many recipients of it.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`] if the connection has left.
    pub fn done(
        &mut self,
        now: Timestamp,
        ticket: Ticket,
        refused: u32,
    ) -> Result<(), StaleTicket> {
        let now = self.clock.at(now);
        let connection = self.crowd.held(ticket)?;
        let (address, network) = (connection.address, connection.network);
        let counted = match connection.access {
            // No bound of address and network applies.
            Access::Allow => 0,
            _ => refused.min(REFUSED_MAX),
        };
        for _ in 0..counted {
            self.count_refusal(now, address, network);
        }
        self.left(ticket)
    }

    /// A connection has ended, or the host has closed it, in whatever state.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`] if the connection has left before.
    pub fn left(&mut self, ticket: Ticket) -> Result<(), StaleTicket> {
        self.crowd.remove(ticket).map(drop)
    }

    /// Facts about a connection that has not left.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`] if the connection has left.
    pub fn findings(&self, ticket: Ticket) -> Result<Findings, StaleTicket> {
        let connection = self.crowd.held(ticket)?;
        let score = connection.lists.known();
        Ok(Findings {
            score: score.map(|score| score.sum),
            list: score.and_then(|score| score.worst),
            spf: connection.spf.known(),
            greylisted: connection.greylisted,
            early: connection.early,
            refused: connection.refused,
            access: connection.mail_access,
        })
    }

    /// Number of connections that have not left.
    #[must_use]
    pub const fn open(&self) -> u32 {
        self.crowd.len()
    }

    /// Number of addresses, networks, and entries of the greylist that are remembered.
    #[must_use]
    pub const fn remembered(&self) -> (usize, usize, usize) {
        (
            self.crowd.addresses.len(),
            self.crowd.networks.len(),
            self.greylist.len(),
        )
    }

    /// Takes the counts since the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Writes the greylist for a restart; `greylist/snapshot.rs` draws the octets. 28 octets an entry.
    #[must_use]
    pub fn export_greylist(&self) -> Vec<u8> {
        self.greylist.export(&self.secret)
    }

    /// Replaces the greylist by the snapshots' entries of a part; a smaller table keeps the newest entries.
    pub fn restore_greylist(&mut self, snapshots: &[GreylistSnapshot], part: Part) {
        // A reload may switch on greylisting later.
        let greylisting = self.terms.greylisting.clone().unwrap_or_default();
        self.greylist = Greylist::of_snapshots(snapshots, part, greylisting.entries);
    }
}
