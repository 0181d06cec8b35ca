//! What a node does when memory runs short: segments go to the spill store, and come back for those who wait.

use vere_ports::spill::SpillStore;
use vere_ports::spool_log::SpoolLogStore;
use vere_spoolwire::CloseReason;

use super::super::Node;
use super::super::connection::{Connection, ConnectionId, Phase};
use super::super::serve;
use super::{Spill, unreadable};

impl<S: SpoolLogStore> Node<S> {
    /// Where segments go that there is no memory for; before anything is restored.
    pub fn set_spill_store(&mut self, store: Box<dyn SpillStore>) {
        self.memory.spill_room = store.room();
        self.spill = Some(Spill::new(store, self.config.spill_above, &self.memory));
        self.memory.relief = true;
    }

    /// Octets that lie in the spill store.
    #[must_use]
    pub fn spilled(&self) -> u64 {
        self.spill.as_ref().map_or(0, |spill| spill.store.used())
    }

    /// Why something could not be written out, once: it stays in memory.
    pub fn take_spill_trouble(&mut self) -> Option<String> {
        self.spill.as_mut()?.trouble.take()
    }

    /// Reading stops here until memory was written out, if that is why it stops.
    pub(in crate::node) fn hold(&mut self, id: ConnectionId) {
        let connection = self.connections[id.0].as_ref();
        if let Some(Phase::Owner(group)) = connection.map(|connection| &connection.phase) {
            let group = &mut self.groups[*group];
            group.held |= group.should_wait(&self.memory);
        }
    }

    /// A connection whose request could not be answered yet.
    pub(in crate::node) fn note_waiting(&mut self, id: ConnectionId) {
        let connection = self.connections[id.0].as_ref();
        let waits = connection.is_some_and(|connection| connection.waiting.is_some());
        if waits && !self.waiting.contains(&id) {
            self.waiting.push(id);
        }
    }

    /// Takes what the spill store is done with, and answers who waited for it.
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

    /// Everybody who has to do with a group is told that it is lost.
    pub(in crate::node) fn close_group(&mut self, index: usize) {
        for id in 0..self.connections.len() {
            let connection = self.connections[id].as_ref();
            if connection.is_some_and(|connection| connection.group == Some(index)) {
                self.close(ConnectionId(id), CloseReason::LogFailed);
            }
        }
    }

    /// Starts what there is to write and read, and lets owners go on who waited for memory.
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

    /// The spill store may have room again.
    pub(in crate::node) fn retry_spill(&mut self) {
        if let Some(spill) = &mut self.spill {
            spill.full = false;
        }
    }
}
