//! Limits for groups, and the end of a group: its records and log are removed, and another group
//! can use its place once nothing refers to it.

use vere_ports::spool_log::{SpoolLog, SpoolLogStore};
use vere_spoolwire::{CloseReason, Txn};

use super::Node;
use super::connection::ConnectionId;
use super::group::Group;
use super::group_charter::GroupCharter;
use super::ingest::Tail;
use super::memory::Memory;
use super::title::Title;

impl<S: SpoolLogStore> Node<S> {
    /// Whether an account may create another group.
    ///
    /// # Errors
    ///
    /// [`CloseReason::TooManyGroups`].
    pub(super) fn check_groups(&self, account: &str) -> Result<(), CloseReason> {
        let (mut all, mut own) = (0, 0);
        for group in self.groups.iter().filter(|group| !group.is_ended()) {
            all += 1;
            own += usize::from(*group.store.group_charter.account == *account);
        }
        let full = all >= self.config.groups_max || own >= self.config.groups_of_one_max();
        if full {
            return Err(CloseReason::TooManyGroups);
        }
        Ok(())
    }

    /// Puts a group into a free place and returns the index.
    pub(super) fn enter(&mut self, group: Group<S::Log>) -> usize {
        let named = |index: usize| {
            let mut connections = self.connections.iter().flatten();
            connections.any(|connection| connection.group == Some(index))
        };
        let mut groups = self.groups.iter().enumerate();
        let free = groups.find(|(index, group)| group.is_gone() && !named(*index));
        if let Some(index) = free.map(|(index, _)| index) {
            self.groups[index] = group;
            return index;
        }
        self.groups.push(group);
        self.groups.len() - 1
    }

    /// Ends a group by its owner's order and returns the reason for closing the owner's connection.
    /// All other connections of the group are closed with [`CloseReason::Ended`].
    pub(super) fn end_group(
        &mut self,
        owner: ConnectionId,
        index: usize,
        records: bool,
    ) -> CloseReason {
        let group = &self.groups[index];
        if group.store.records > 0 && !records {
            return CloseReason::NotEmpty;
        }
        if let Some(logs) = &mut self.store
            && logs.remove(&group.name).is_err()
        {
            return CloseReason::LogFailed;
        }
        for id in 0..self.connections.len() {
            let connection = self.connections[id].as_ref();
            let concerned = connection.is_some_and(|connection| connection.group == Some(index));
            if concerned && ConnectionId(id) != owner {
                self.close(ConnectionId(id), CloseReason::Ended);
            }
        }
        self.groups[index].end(&mut self.memory, self.spill.is_some());
        CloseReason::Ended
    }
}

impl<L: SpoolLog> Group<L> {
    /// Releases the group's content, except octets in output or on the way to or from a disk.
    fn end(&mut self, memory: &mut Memory, reads: bool) {
        self.discard(memory, Txn(0));
        let tail = std::mem::take(&mut self.tail);
        if let Some(key) = tail.segment {
            self.store.segments.close(memory, key);
        }
        let log = self.log.take().map(|journal| journal.log);
        self.former_log = log.filter(|_| reads);
        self.name = Box::default();
        self.store.group_charter = GroupCharter::unknown();
        self.store.title = Title::default();
        self.store.syncing = false;
        self.tail = Tail::default();
        (self.given_up, self.mending, self.held) = (false, None, false);
        self.oldest = None;
    }

    /// Whether the group has ended and so has no name.
    pub(super) fn is_ended(&self) -> bool {
        self.name.is_empty()
    }

    /// Whether the group has ended and its place is free for another group.
    fn is_gone(&self) -> bool {
        let mut segments = self.store.segments.iter();
        self.is_ended() && segments.next().is_none() && self.former_log.is_none()
    }
}
