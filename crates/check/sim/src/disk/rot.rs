//! Octets of a log that are not what was written any more.

use vere_ports::spool_log::UnreadableEntry;

use super::{Disk, Log, Segment};
use crate::random::Random;

/// Octets that went bad: in a segment's head, or in one of its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rot {
    pub(super) segment: u64,
    pub(super) entry: Option<usize>,
}

/// Why a log was not opened.
#[derive(Debug)]
pub(crate) enum Unopened {
    /// It is damaged.
    Damaged(String),
    /// It makes no sense.
    Unreadable(String),
}

impl From<UnreadableEntry> for Unopened {
    fn from(error: UnreadableEntry) -> Self {
        Self::Unreadable(error.0)
    }
}

impl Log {
    /// What is bad, as long as it is needed.
    pub(super) fn rot(&self) -> Option<Rot> {
        self.rot
            .filter(|rot| self.segments.contains_key(&rot.segment))
    }

    /// Something that was synced goes bad. False when there is nothing.
    fn go_bad(&mut self, random: &mut Random) -> bool {
        let synced = self.synced;
        let mut places = Vec::new();
        for (number, segment) in &self.segments {
            let rot = |entry| Rot {
                segment: *number,
                entry,
            };
            places.push(rot(None));
            let entries = segment.entries.iter().enumerate();
            let safe = entries.filter(|(_, (end, _))| *end <= synced);
            places.extend(safe.map(|(index, _)| rot(Some(index))));
        }
        if self.rot().is_none() {
            (self.rot, self.noticed) = (random.pick(&places), false);
        }
        self.rot.is_some()
    }
}

impl Disk {
    /// Octets that were written go bad. False when there are none.
    pub(crate) fn rot(&self, random: &mut Random) -> bool {
        let state = self.0.borrow();
        let mut logs = state.groups.values();
        logs.any(|log| log.borrow_mut().go_bad(random))
    }

    /// Whether something that is needed is bad.
    pub(crate) fn is_rotten(&self) -> bool {
        let state = self.0.borrow();
        state
            .groups
            .values()
            .any(|log| log.borrow().rot().is_some())
    }

    /// Looks for what is bad, and fails the log for it.
    pub(crate) fn scrub(&self) {
        for log in self.0.borrow().groups.values() {
            let mut log = log.borrow_mut();
            if log.rot().is_some() {
                (log.noticed, log.failed) = (true, true);
            }
        }
    }

    /// Groups that were set aside and have no log.
    pub(crate) fn missing(&self) -> Vec<String> {
        let state = self.0.borrow();
        let missing = |group: &&String| !state.groups.contains_key(*group);
        state.aside.iter().filter(missing).cloned().collect()
    }

    /// The newest head of a group that is not bad.
    pub(crate) fn newest_head(&self, group: &str) -> Option<Vec<u8>> {
        let state = self.0.borrow();
        let log = state.groups.get(group)?.borrow();
        let bad = log.rot().filter(|rot| rot.entry.is_none());
        let sound = |(number, _): &(&u64, &Segment)| bad.is_none_or(|rot| rot.segment != **number);
        let newest = log.segments.iter().rev().find(sound);
        newest.map(|(_, segment)| segment.head.clone())
    }
}
