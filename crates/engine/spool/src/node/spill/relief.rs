//! Behaviour of a node under memory pressure: segments go to the spill store, and return for
//! waiting requests.

use vere_ports::spill::SpillStore;
use vere_ports::spool_log::SpoolLogStore;
use vere_spoolwire::CloseReason;

use super::super::Node;
use super::super::connection::{Connection, ConnectionId, Phase};
use super::super::serve;
use super::{Spill, unreadable};

impl<S: SpoolLogStore> Node<S> {
    /// Sets the store for segments that find no memory; to be called before the restore of a group.
    pub fn set_spill_store(&mut self, store: Box<dyn SpillStore>) {
        self.memory.spill_room = store.room();
        self.spill = Some(Spill::new(store, self.config.spill_above, &self.memory));
        self.memory.relief = true;
    }

    /// Octets in the spill store.
    #[must_use]
    pub fn spilled(&self) -> u64 {
        self.spill.as_ref().map_or(0, |spill| spill.store.used())
    }

    /// Returns the reason of a failed write, once; the segment stays in memory.
    pub fn take_spill_trouble(&mut self) -> Option<String> {
        self.spill.as_mut()?.trouble.take()
    }

    /// Holds the owner's input until memory was written out, if lack of memory stops it.
    pub(in crate::node) fn hold(&mut self, id: ConnectionId) {
        let connection = self.connections[id.0].as_ref();
        if let Some(Phase::Owner(group)) = connection.map(|connection| &connection.phase) {
            let group = &mut self.groups[*group];
            group.held |= group.should_wait(&self.memory);
        }
    }

    /// Adds a connection with an unanswered request to the waiting ones.
    pub(in crate::node) fn note_waiting(&mut self, id: ConnectionId) {
        let connection = self.connections[id.0].as_ref();
        let waits = connection.is_some_and(|connection| connection.waiting.is_some());
        if waits && !self.waiting.contains(&id) {
            self.waiting.push(id);
        }
    }

    /// Ends finished jobs of the spill store, and answers waiting requests.
    pub(in crate::node) fn take_back(&mut self) {
        let Some(spill) = &mut self.spill else { return };
        for (index, reason) in spill.collect(&mut self.memory, &mut self.groups) {
            self.groups[index].lost = Some(unreadable(&reason));
        }
        if !std::mem::take(&mut self.memory.arrived) {
            return;
        }
        self.compact = true;
        for id in std::mem::take(&mut self.waiting) {
            let waits = |connection: &Connection| connection.waiting.is_some();
            if self.connections[id.0].as_ref().is_some_and(waits) {
                self.process(id);
                self.touch(id);
            }
        }
    }

    /// Closes all connections of a lost group.
    pub(in crate::node) fn close_group(&mut self, index: usize) {
        for id in 0..self.connections.len() {
            let connection = self.connections[id].as_ref();
            if connection.is_some_and(|connection| connection.group == Some(index)) {
                self.close(ConnectionId(id), CloseReason::LogFailed);
            }
        }
    }

    /// Starts writes and reads, and resumes owners that waited for memory.
    pub(in crate::node) fn make_room(&mut self) {
        let Some(spill) = &mut self.spill else { return };
        let held = self.groups.iter().filter(|group| group.held);
        let wants = held.map(|group| group.tail.wants(&group.store, &self.memory));
        let more = wants.max().unwrap_or(0);
        let first = self.waiting.iter().find_map(|id| {
            let connection = self.connections[id.0].as_ref()?;
            let (Some(group), Some((_, request))) = (connection.group, connection.waiting) else {
                return None;
            };
            Some((group, serve::segments(&self.groups[group].store, request)?))
        });
        spill.needed = first;
        spill.turn(&mut self.memory, &mut self.groups, more);
        for index in 0..self.groups.len() {
            let group = &mut self.groups[index];
            if !group.held || group.should_wait(&self.memory) {
                continue;
            }
            group.held = false;
            if let Some(owner) = group.owner {
                self.process(owner);
                self.touch(owner);
            }
        }
    }

    /// Lets the spill store try writes again.
    pub(in crate::node) fn retry_spill(&mut self) {
        if let Some(spill) = &mut self.spill {
            spill.full = false;
        }
    }
}
