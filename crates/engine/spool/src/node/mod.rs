//! A spool node: groups of queues in memory, changed by their owners and read by permitted
//! accounts.
//!
//! The host reads each connection into the node's own memory ([`Node::buffer`], [`Node::received`])
//! and writes pending output ([`Node::output`], [`Node::sent`]). Once a turn it calls
//! [`Node::end_turn`]. Time and randomness are passed in. The node has one thread, takes no locks,
//! and neither allocates nor copies per record on input.
//!
//! Reading order: `access` (rights of accounts), `ingest` (octets to mutations), `perform`, `check`
//! and `store` (execution), `queue` and `segment` (places of records), `group` and `journal`
//! (acknowledgement and log), `fence` (ownership of a group), `ending` (end of a group), `rebuild`
//! (content from another node), `damage` (repair by a rebuild), `duty` (with a log or without),
//! `serve`, `compact`, `snapshot`, `outline` and `replay`.

mod access;
mod account;
mod block;
mod check;
mod compact;
mod config;
mod connection;
mod cursor;
mod damage;
mod duty;
mod ending;
mod fence;
mod figures;
mod group;
mod group_charter;
mod handshake;
mod ingest;
mod journal;
mod memory;
mod mending;
mod outline;
mod output;
mod perform;
mod place;
mod queue;
mod queues;
mod rebuild;
mod refusals;
mod replay;
mod residence;
mod segment;
mod serve;
mod snapshot;
mod spill;
mod store;
mod title;
mod unusual;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::IoSlice;

use vere_ports::spool_log::{LogError, SpoolLog, SpoolLogStore};
use vere_spoolwire::{
    Answer, CloseReason, Greeting, Incarnation, NodeStat, QueueStat, SECRET_LEN, Txn, VERSION,
};
use vere_units::Timestamp;

use account::Denials;
use connection::{Connection, Phase};
use group::{Errand, Group, Shared};
use ingest::Tail;
use journal::Journal;
use memory::Memory;
use mending::Mending;
use spill::Spill;
use store::Store;

pub use account::{Account, Denial};
pub use config::{NoLog, NodeConfig, SEGMENT_LEN_MIN};
pub use connection::ConnectionId;
pub use mending::Notice;
pub use outline::OUTLINER;
pub use replay::Replay;

/// A connection that the node closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parting<'a> {
    /// Authenticated account.
    pub account: Option<&'a str>,
    /// Group of the connection.
    pub group: Option<&'a str>,
    /// Reason sent to the peer.
    pub reason: CloseReason,
}

/// A spool node. `S` creates the logs of the groups; a node without `S` acknowledges at once.
#[derive(Debug)]
pub struct Node<S: SpoolLogStore> {
    config: NodeConfig,
    incarnation: Incarnation,
    store: Option<S>,
    memory: Memory,
    spill: Option<Spill>,
    groups: Vec<Group<S::Log>>,
    connections: Vec<Option<Connection>>,
    vacant: Vec<usize>,
    strangers: usize,
    touched: Vec<ConnectionId>,
    /// Connections whose next answer is not in memory.
    waiting: Vec<ConnectionId>,
    /// Whether to look for segments to compact.
    compact: bool,
    stopping: bool,
    denials: Denials,
    notices: VecDeque<Notice>,
}

impl<S: SpoolLogStore> Node<S> {
    /// Creates a node without groups. With a log store the node acknowledges synced transactions.
    /// Without one it acknowledges transactions in memory, and `incarnation` must be new.
    pub fn new(config: NodeConfig, incarnation: Incarnation, store: Option<S>) -> Self {
        let memory = Memory::new(&config);
        Self {
            config,
            incarnation,
            store,
            memory,
            spill: None,
            groups: Vec::new(),
            connections: Vec::new(),
            vacant: Vec::new(),
            strangers: 0,
            touched: Vec::new(),
            waiting: Vec::new(),
            compact: false,
            stopping: false,
            denials: Denials::default(),
            notices: VecDeque::new(),
        }
    }

    /// Restores a group from its log. `read` feeds the given reader and returns the log, synced and
    /// ready for appending, or an error.
    ///
    /// # Errors
    ///
    /// The error of `read`. The group is then missing, and the node should not serve, unless
    /// [`Node::begin_again`] starts the group again.
    pub fn restore<E>(
        &mut self,
        group: &str,
        read: impl FnOnce(&mut Replay<'_>) -> Result<S::Log, E>,
    ) -> Result<(), E> {
        let mut replay = Replay {
            memory: &mut self.memory,
            store: Store::new(self.config.queues_max),
            tail: Tail::default(),
            incarnation: self.incarnation,
            begun: false,
            reset: false,
            spill: self.spill.as_mut(),
            index: self.groups.len(),
            stretch: None,
        };
        let log = read(&mut replay);
        replay.end_stretch();
        let (mut store, tail) = (replay.store, replay.tail);
        if let Some(spill) = &mut self.spill {
            spill.finish(&mut self.memory, &mut store.segments);
        }
        match log {
            Ok(log) => {
                self.groups.push(Group::new(group, store, tail, Some(log)));
                Ok(())
            }
            Err(error) => {
                store.reset(&mut self.memory, Txn(0));
                if let Some(key) = tail.segment {
                    store.segments.close(&mut self.memory, key);
                }
                if let Some(spill) = &mut self.spill {
                    spill.free_dropped(&mut self.memory);
                }
                Err(error)
            }
        }
    }

    /// Sets the store that creates the logs of new groups.
    pub fn set_log_store(&mut self, store: S) {
        for group in &mut self.groups {
            if store.is_aside(&group.name) {
                group.mending = Some(Mending::Lacks);
            }
        }
        self.store = Some(store);
    }

    /// Adds a connection; `challenge` is 32 unpredictable octets. Returns `None` at the limit; the
    /// host then drops the connection. At the limit of unauthenticated connections the oldest is
    /// closed: an owner authenticates within one round trip.
    pub fn accept(&mut self, challenge: [u8; SECRET_LEN], now: Timestamp) -> Option<ConnectionId> {
        let count = self.connections.len() - self.vacant.len();
        let full = count >= self.config.connections_max;
        if full || self.stopping {
            return None;
        }
        if self.strangers >= self.config.strangers_max {
            self.evict_stranger();
        }
        self.strangers += 1;
        let incarnation = self.incarnation;
        let greeting = Greeting {
            incarnation,
            version_min: VERSION,
            version_max: VERSION,
            challenge,
        };
        let connection = Some(Connection::new(greeting, now));
        let index = self.vacant.pop().unwrap_or(self.connections.len());
        if index == self.connections.len() {
            self.connections.push(connection);
        } else {
            self.connections[index] = connection;
        }
        let id = ConnectionId(index);
        self.touch(id);
        Some(id)
    }

    fn evict_stranger(&mut self) {
        let stranger = |(index, connection): (usize, &Option<Connection>)| {
            let connection = connection.as_ref()?;
            let stranger = matches!(connection.phase, Phase::Greeted(_));
            stranger.then_some((connection.heard, index))
        };
        let oldest = self
            .connections
            .iter()
            .enumerate()
            .filter_map(stranger)
            .min();
        if let Some((_, index)) = oldest {
            self.close(ConnectionId(index), CloseReason::TooMany);
        }
    }

    /// Returns the next connection that the host must serve: write output, read again, or close.
    /// Each connection is returned once per event.
    pub fn next_touched(&mut self) -> Option<ConnectionId> {
        let id = self.touched.pop()?;
        if let Some(connection) = self.connections[id.0].as_mut() {
            connection.touched = false;
        }
        Some(id)
    }

    fn touch(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections[id.0].as_mut()
            && !std::mem::replace(&mut connection.touched, true)
        {
            self.touched.push(id);
        }
    }

    /// Whether the host should read from a connection now.
    #[must_use]
    pub fn takes_input(&self, id: ConnectionId) -> bool {
        let Some(connection) = &self.connections[id.0] else {
            return false;
        };
        match connection.phase {
            Phase::Closing => false,
            Phase::Owner(group) => {
                let group = &self.groups[group];
                let waits = group.held || group.owes_much() || group.should_wait(&self.memory);
                connection.is_served() && group.takes_input() && !waits
            }
            Phase::Greeted(_) | Phase::Reader(_) | Phase::Standby(_) => connection.is_served(),
        }
    }

    /// Returns the buffer for the next octets of a connection; empty while input must wait.
    pub fn buffer(&mut self, id: ConnectionId) -> &mut [u8] {
        if !self.takes_input(id) {
            self.hold(id);
            return &mut [];
        }
        let Some(connection) = &mut self.connections[id.0] else {
            return &mut [];
        };
        match connection.phase {
            Phase::Owner(group) => self.groups[group].buffer(&mut self.memory),
            _ => &mut connection.input[connection.fill..],
        }
    }

    /// Processes `count` octets that the host put into the buffer.
    pub fn received(&mut self, id: ConnectionId, count: usize, now: Timestamp) {
        let Some(connection) = &mut self.connections[id.0] else {
            return;
        };
        if let Phase::Owner(group) = connection.phase {
            let group = &mut self.groups[group];
            group.tail.received(&mut group.store, count);
        } else {
            connection.fill += count;
        }
        self.process(id);
        // Input of an unauthenticated connection is no sign of life.
        if let Some(connection) = &mut self.connections[id.0]
            && !matches!(connection.phase, Phase::Greeted(_))
        {
            connection.heard = now;
        }
    }

    /// Processes the input of a connection as far as possible.
    fn process(&mut self, id: ConnectionId) {
        let Some(connection) = &mut self.connections[id.0] else {
            return;
        };
        let result = match connection.phase {
            Phase::Greeted(_) => self.handshake(id),
            Phase::Owner(group) => self.process_owner(id, group),
            Phase::Reader(group) | Phase::Standby(group) => self.read_requests(id, group),
            Phase::Closing => Ok(()),
        };
        if let Err(reason) = result {
            self.close(id, reason);
        }
        self.note_waiting(id);
        self.touch_if_pending(id);
    }

    fn process_owner(&mut self, id: ConnectionId, group: usize) -> Result<(), CloseReason> {
        while let Some(connection) = &mut self.connections[id.0] {
            let mut shared = Shared {
                memory: &mut self.memory,
                incarnation: self.incarnation,
                frame_max: self.config.frame_max as usize,
                block_max: self.config.block_max,
            };
            self.compact = true;
            let Connection {
                output, waiting, ..
            } = connection;
            match self.groups[group].process(&mut shared, output, waiting)? {
                None => break,
                Some(Errand::Duty { seq, log }) => self.duty(id, group, seq, log)?,
                Some(Errand::Renew { through }) => self.renew(group, through)?,
                Some(Errand::End { records }) => return Err(self.end_group(id, group, records)),
            }
        }
        Ok(())
    }

    fn touch_if_pending(&mut self, id: ConnectionId) {
        if let Some(connection) = &self.connections[id.0]
            && (!connection.output.is_empty() || matches!(connection.phase, Phase::Closing))
        {
            self.touch(id);
        }
    }

    /// Sends the peer the reason, and closes the connection once the output is written.
    fn close(&mut self, id: ConnectionId, reason: CloseReason) {
        let Some(connection) = &mut self.connections[id.0] else {
            return;
        };
        match std::mem::replace(&mut connection.phase, Phase::Closing) {
            Phase::Greeted(_) => self.strangers -= 1,
            Phase::Owner(group) => self.groups[group].part(&mut self.memory),
            Phase::Reader(_) | Phase::Standby(_) => {}
            Phase::Closing => return,
        }
        connection.told = Some(reason);
        connection
            .output
            .write(|out| Answer::Close(reason).encode(out));
        self.touch(id);
    }

    /// Returns account, group and reason if the node is closing the connection.
    #[must_use]
    pub fn parting(&self, id: ConnectionId) -> Option<Parting<'_>> {
        let connection = self.connections.get(id.0)?.as_ref()?;
        let group = connection.group.map(|group| &*self.groups[group].name);
        Some(Parting {
            account: (!connection.account.is_empty()).then_some(&*connection.account),
            group,
            reason: connection.told?,
        })
    }

    /// Fills `slices` with the next output and returns the number of slices.
    pub fn output<'a>(&'a self, id: ConnectionId, slices: &mut [IoSlice<'a>]) -> usize {
        let Some(connection) = &self.connections[id.0] else {
            return 0;
        };
        let segments = connection
            .group
            .map(|group| &self.groups[group].store.segments);
        connection.output.slices(segments, slices)
    }

    /// Records that `count` octets were written.
    pub fn sent(&mut self, id: ConnectionId, count: usize) {
        let Some(connection) = &mut self.connections[id.0] else {
            return;
        };
        let was_over = connection.output.is_over();
        let group = connection.group.map(|group| &mut self.groups[group]);
        let segments = group.map(|group| (&mut group.store.segments, &mut self.memory));
        connection.output.sent(count, segments);
        if was_over && !connection.output.is_over() {
            // Delayed requests can be answered now, and more input can be read.
            self.process(id);
            self.touch(id);
        }
    }

    /// Whether the host should close a connection: all output is written.
    #[must_use]
    pub fn is_finished(&self, id: ConnectionId) -> bool {
        let closing = |connection: &Connection| {
            matches!(connection.phase, Phase::Closing) && connection.output.is_empty()
        };
        self.connections[id.0].as_ref().is_none_or(closing)
    }

    /// Removes a connection whose socket is closed.
    pub fn closed(&mut self, id: ConnectionId) {
        let Some(mut connection) = self.connections[id.0].take() else {
            return;
        };
        self.vacant.push(id.0);
        self.touched.retain(|touched| *touched != id);
        let group = connection.group.map(|group| &mut self.groups[group]);
        let segments = group.map(|group| (&mut group.store.segments, &mut self.memory));
        connection.output.clear(segments);
        match connection.phase {
            Phase::Greeted(_) => self.strangers -= 1,
            Phase::Owner(group) => self.groups[group].part(&mut self.memory),
            Phase::Reader(_) | Phase::Standby(_) | Phase::Closing => {}
        }
    }

    /// Ends a turn of the host's loop; also called after a sync. Starts syncs, acknowledges synced
    /// transactions, closes owners of lost logs, and compacts a little.
    pub fn end_turn(&mut self, now: Timestamp) {
        self.take_back();
        let delay = self.config.sync_delay;
        let mut compacted = false;
        for index in 0..self.groups.len() {
            let group = &mut self.groups[index];
            let blocked = group.log.as_ref().is_some_and(|journal| journal.blocked);
            group.flush(&mut self.memory, self.incarnation);
            group.start_sync(now, delay);
            let tell = group.settle(now);
            let unblocked = blocked && group.takes_input();
            if self.compact && group.compact(&mut self.memory, self.config.log_spare) {
                group.remove_old_log();
                group.start_sync(now, delay);
                compacted = true;
            }
            if group.fill(&mut self.memory) {
                group.start_sync(now, delay);
                compacted = true;
            }
            let leaving = |journal: &Journal<S::Log>| journal.leaving && journal.failure.is_none();
            let left = if group.log.as_ref().is_some_and(leaving) {
                group.leave_log(&mut self.memory, self.incarnation)
            } else {
                Ok(())
            };
            let failed = group.failure().is_some();
            let without_log = group.give_up_filling(&mut self.memory);
            let Some(owner) = group.owner else { continue };
            let mut goes_on = false;
            if tell && let Some(connection) = &mut self.connections[owner.0] {
                group.acknowledge(&mut connection.output);
                goes_on = group.fulfil(&mut connection.output);
                self.touch(owner);
            }
            if failed {
                self.close(owner, CloseReason::LogFailed);
            } else if without_log {
                self.close(owner, CloseReason::NoLog);
            } else if let Err(reason) = left {
                self.close(owner, reason);
            } else if goes_on {
                self.process(owner);
                // The transactions just processed may already be safe.
                compacted = true;
            } else if unblocked {
                self.touch(owner);
            }
        }
        if self.compact {
            self.memory.looked_for_spare();
        }
        self.mend();
        self.compact = compacted;
        self.make_room();
    }

    /// Latest time for the next call of [`Node::end_turn`], when a sync is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let journals = self.groups.iter().filter_map(|group| group.log.as_ref());
        journals.filter_map(Journal::sync_due).min()
    }

    /// Whether [`Node::end_turn`] has more work at once.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.compact
    }

    /// Closes silent connections and maintains logs without space; the host calls this about once a
    /// second.
    pub fn tick(&mut self, now: Timestamp) {
        for index in 0..self.connections.len() {
            let Some(connection) = &self.connections[index] else {
                continue;
            };
            let timeout = match connection.phase {
                Phase::Greeted(_) | Phase::Closing => self.config.handshake_timeout,
                Phase::Owner(_) | Phase::Reader(_) | Phase::Standby(_) => self.config.idle_timeout,
            };
            if now.saturating_since(connection.heard) < timeout {
                continue;
            }
            let id = ConnectionId(index);
            if matches!(connection.phase, Phase::Closing) {
                // The peer does not read the last output.
                self.drop_output(id);
            } else {
                self.close(id, CloseReason::Timeout);
                self.touch(id);
            }
        }
        for group in &mut self.groups {
            group.remove_old_log();
            if let Some(journal) = &mut group.log {
                journal.log.keep_house();
            }
        }
        self.retry_spill();
        self.compact = true;
    }

    fn drop_output(&mut self, id: ConnectionId) {
        if let Some(connection) = &mut self.connections[id.0] {
            let group = connection.group.map(|group| &mut self.groups[group]);
            let segments = group.map(|group| (&mut group.store.segments, &mut self.memory));
            connection.output.clear(segments);
            self.touch(id);
        }
    }

    /// Stops input and closes every connection with a reason. Processed transactions remain, and
    /// are acknowledged while the host goes on calling [`Node::end_turn`].
    pub fn shut_down(&mut self) {
        self.stopping = true;
        for index in 0..self.connections.len() {
            self.close(ConnectionId(index), CloseReason::ShuttingDown);
        }
    }

    /// Whether all connections are gone.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.connections.len() == self.vacant.len()
    }

    /// Returns the next denial; each denial is returned once.
    pub fn take_denial(&mut self) -> Option<Denial> {
        self.denials.take()
    }

    /// Returns the group and the reason of a failed log, if any.
    #[must_use]
    pub fn failure(&self) -> Option<(&str, &LogError)> {
        self.groups
            .iter()
            .find_map(|group| Some((&*group.name, group.failure()?)))
    }

    /// Returns the figures of each group.
    #[must_use]
    pub fn stats(&self) -> Vec<(String, NodeStat)> {
        let stat = |group: &Group<S::Log>| group.stat(&self.memory, self.incarnation);
        self.groups
            .iter()
            .filter(|group| !group.is_ended())
            .map(|group| (group.name.to_string(), stat(group)))
            .collect()
    }

    /// Returns the queues of a group; empty without such a group.
    #[must_use]
    pub fn queues(&self, group: &str) -> Vec<QueueStat> {
        let group = self.groups.iter().find(|known| &*known.name == group);
        group.map_or_else(Vec::new, |group| {
            group
                .store
                .queues()
                .map(|(id, queue)| queue.stat(id))
                .collect()
        })
    }
}
