//! Damaged octets of a log.

use vere_ports::spool_log::UnreadableEntry;

use super::{Disk, Log, Segment};
use crate::random::Random;

/// The place of damaged octets: a segment's head, or an entry of the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rot {
    pub(super) segment: u64,
    pub(super) entry: Option<usize>,
}

/// The reason why a log was not opened.
#[derive(Debug)]
pub(crate) enum Unopened {
    /// The log is damaged.
    Damaged(String),
    /// The content of an entry cannot be decoded.
    Unreadable(String),
}

impl From<UnreadableEntry> for Unopened {
    fn from(error: UnreadableEntry) -> Self {
        Self::Unreadable(error.0)
    }
}

impl Log {
    /// The damage, as long as its segment exists.
    pub(super) fn rot(&self) -> Option<Rot> {
        self.rot
            .filter(|rot| self.segments.contains_key(&rot.segment))
    }

    /// Damages synced octets. Returns false if the log has no synced octets.
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
    /// Damages written octets of a log. Returns false if no log has any.
    pub(crate) fn rot(&self, random: &mut Random) -> bool {
        let state = self.0.borrow();
        let mut logs = state.groups.values();
        logs.any(|log| log.borrow_mut().go_bad(random))
    }

    /// Whether a needed segment is damaged.
    pub(crate) fn is_rotten(&self) -> bool {
        let state = self.0.borrow();
        state
            .groups
            .values()
            .any(|log| log.borrow().rot().is_some())
    }

    /// Checks all logs for damage, and fails damaged logs.
    pub(crate) fn scrub(&self) {
        for log in self.0.borrow().groups.values() {
            let mut log = log.borrow_mut();
            if log.rot().is_some() {
                (log.noticed, log.failed) = (true, true);
            }
        }
    }

    /// Groups whose log was set aside and not replaced.
    pub(crate) fn missing(&self) -> Vec<String> {
        let state = self.0.borrow();
        let missing = |group: &&String| !state.groups.contains_key(*group);
        state.aside.iter().filter(missing).cloned().collect()
    }

    /// The newest intact segment head of a group.
    pub(crate) fn newest_head(&self, group: &str) -> Option<Vec<u8>> {
        let state = self.0.borrow();
        let log = state.groups.get(group)?.borrow();
        let bad = log.rot().filter(|rot| rot.entry.is_none());
        let sound = |(number, _): &(&u64, &Segment)| bad.is_none_or(|rot| rot.segment != **number);
        let newest = log.segments.iter().rev().find(sound);
        newest.map(|(_, segment)| segment.head.clone())
    }
}
