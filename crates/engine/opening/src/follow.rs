//! Knowledge of a mount about commits of other mounts.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use vere_ports::files::Inode;
use vere_units::Timestamp;

use crate::before::Packed;
use crate::format::MailId;
use crate::format::commit::{Checkpoint, RecordKind, RowChange};
use vere_keep::record::Won;
use vere_order::found::Found;

pub use crate::before::Before;

/// Octets of earlier values of rows with their keys, so that commits of other mounts can be merged that lie on an earlier state.
const HISTORY_OCTETS_MAX: usize = 16 << 20;
/// Commits with earlier values.
const HISTORY_MAX: usize = 4_096;
/// Commits outside the chain in memory.
const OUTSIDE_MAX: usize = 4_096;
/// Commits of the chain in memory that wait for pages; the chain goes on when some are applied.
pub const COMING_MAX: usize = 64;
/// The latest conflicts that a status tells.
const CONFLICTS_MAX: usize = 16;

/// Knowledge about commits of other mounts.
#[derive(Debug, Default)]
pub struct Follow {
    /// Authentic commits that are not in the chain, or not yet.
    pub outside: HashMap<MailId, Outside>,
    /// Commits of the chain that the mount has not applied yet, because rows are missing.
    pub coming: VecDeque<Coming>,
    /// Commits that commits of the chain replace.
    merged: HashSet<MailId>,
    /// Lost commits of the mount.
    pub own: HashSet<MailId>,
    history: VecDeque<Applied>,
    history_octets: usize,
    /// When the log is listed next.
    pub refresh_at: Option<Timestamp>,
    /// When the log is watched again.
    pub watch_at: Option<Timestamp>,
    /// Whether the lead is watched for new mails.
    pub is_watching: bool,
    /// Conflicts so far.
    pub conflicts: u64,
    /// The latest conflicts.
    pub latest: VecDeque<String>,
    /// The inode of the newest conflict copy.
    pub last_copy: Option<Inode>,
    /// Whether the chain has not confirmed the writer's number yet.
    pub is_registering: bool,
    /// The mark of a registration.
    pub registration: [u8; 16],
    /// Whether a commit is on the way that merges commits of other mounts.
    pub is_adopting: bool,
    /// The newest epoch when another mount changed the key slots: a later one may begin, whose key this mount lacks. Absent
    /// without such a change, and from the first commit of a later epoch on.
    pub slots_since: Option<u16>,
    /// The highest UID of a mail that claims to be a commit of a key that this mount lacks.
    pub unreadable: Option<u32>,
    /// The slot that opened the mount, once told.
    pub slot: Option<OwnSlot>,
    /// When open commits are looked at again.
    pub adopt_at: Option<Timestamp>,
}

/// The slot that opened the mount.
#[derive(Debug, Clone, Copy)]
pub struct OwnSlot {
    /// The number of the slot.
    pub number: u8,
    /// The newest mail of the slot.
    pub mail: MailId,
    /// Whether another machine has given the slot another secret.
    pub is_renewed: bool,
}

/// A commit of the chain, to be applied below the changes of the mount.
#[derive(Debug)]
pub struct Coming {
    /// The place in the chain.
    pub won: Won,
    /// Changed rows.
    pub rows: Vec<RowChange>,
    /// Octets of the mail.
    pub octets: u32,
    /// Commits that the commit replaces.
    pub merged: Vec<MailId>,
    /// The checkpoint that the commit names.
    pub checkpoint: Option<Checkpoint>,
    /// The writer of the commit.
    pub writer: u16,
    /// The key epoch of the commit.
    pub epoch: u16,
    /// Whether the commit is a merge of the mount, which has changes of other mounts only.
    pub is_own_merge: bool,
}

/// An authentic commit outside the chain.
#[derive(Debug)]
pub struct Outside {
    /// The commit.
    pub found: Found,
    /// The time of the first sight.
    pub since: Timestamp,
    /// Whether people were told of a failed merge.
    pub is_told: bool,
}

/// A commit of the chain, with what rows were before.
#[derive(Debug)]
struct Applied {
    commit: MailId,
    before: Packed,
}

impl Follow {
    /// A commit of the chain replaces others.
    pub fn named(&mut self, merged: &[MailId]) {
        for commit in merged {
            self.merged.insert(*commit);
            self.outside.remove(commit);
        }
    }

    /// Whether a commit of the chain replaces this one.
    pub fn is_merged(&self, commit: MailId) -> bool {
        self.merged.contains(&commit)
    }

    /// Whether a commit has changes that the chain lacks.
    pub fn is_open(&self, id: MailId) -> bool {
        let outside = self.outside.get(&id);
        // A merge has changes of other commits only, which are open themselves; a lost change of the lead counts nowhere.
        let has_changes = outside.is_some_and(|of| {
            let kind = of.found.record.kind;
            kind != RecordKind::Merge && kind != RecordKind::LeadChange
        });
        has_changes && !self.is_merged(id) && !self.own.contains(&id)
    }

    /// A commit outside the chain.
    pub fn put_outside(&mut self, found: Found, since: Timestamp) {
        if self.outside.len() >= OUTSIDE_MAX {
            // The youngest can be read again at the next start.
            let youngest = self.outside.values().max_by_key(|of| of.found.uid);
            let youngest = youngest.map(|of| of.found.head.mail);
            youngest.and_then(|id| self.outside.remove(&id));
        }
        self.outside.entry(found.head.mail).or_insert(Outside {
            found,
            since,
            is_told: false,
        });
    }

    /// A commit of the chain has changed rows that had these values before.
    pub fn remember(&mut self, commit: MailId, before: Before) {
        let before = Packed::of(&before);
        self.history_octets = self.history_octets.saturating_add(before.octets());
        self.history.push_back(Applied { commit, before });
        while (self.history_octets > HISTORY_OCTETS_MAX || self.history.len() > HISTORY_MAX)
            && let Some(oldest) = self.history.pop_front()
        {
            self.history_octets = self.history_octets.saturating_sub(oldest.before.octets());
        }
    }

    /// Earlier values of a row are not known: states before this moment are lost to merges.
    pub fn forget_history(&mut self) {
        self.history.clear();
        self.history_octets = 0;
    }

    /// What rows were in the state of a commit, where the chain has changed them since; none if the commit is too old.
    pub fn since(&self, commit: MailId) -> Option<HashMap<&[u8], Option<&[u8]>>> {
        let place = self.history.iter().position(|of| of.commit == commit)?;
        let mut rows = HashMap::new();
        for applied in self.history.iter().skip(place.saturating_add(1)) {
            for (key, value) in applied.before.rows() {
                rows.entry(key).or_insert(value);
            }
        }
        Some(rows)
    }

    /// A conflict, for people.
    pub fn conflict(&mut self, text: String) {
        self.conflicts = self.conflicts.saturating_add(1);
        self.latest.push_back(text);
        if self.latest.len() > CONFLICTS_MAX {
            self.latest.pop_front();
        }
    }

    /// When something is due.
    pub fn due(&self) -> Option<Timestamp> {
        self.refresh_at.into_iter().chain(self.watch_at).min()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// Values come from pages: a history of slices would keep whole pages in memory.
    #[test]
    fn earlier_values_keep_no_page_in_memory() {
        let page = Bytes::from(vec![5; 32 << 10]);
        let mut follow = Follow::default();
        let before = vec![(b"key".to_vec(), Some(page.slice(7..9)))];
        follow.remember(MailId([1; 16]), Before::new());
        follow.remember(MailId([2; 16]), before);
        assert!(page.is_unique());
        let since = follow.since(MailId([1; 16])).unwrap();
        assert_eq!(since[b"key".as_slice()], Some([5; 2].as_slice()));
    }

    /// Each row of many new files counts with all of its memory; the oldest commits go first.
    #[test]
    fn the_history_of_many_new_files_has_a_bound() {
        let mut follow = Follow::default();
        let id = |number: u8| MailId([number; 16]);
        for number in 0..200 {
            let row = |row: u64| [&[number][..], &row.to_be_bytes()].concat();
            follow.remember(id(number), (0..12_000).map(|of| (row(of), None)).collect());
        }
        let octets: usize = follow.history.iter().map(|of| of.before.octets()).sum();
        assert_eq!(octets, follow.history_octets);
        assert!(octets <= HISTORY_OCTETS_MAX && octets > HISTORY_OCTETS_MAX / 2);
        assert!(follow.since(id(0)).is_none());
        assert_eq!(follow.since(id(198)).unwrap().len(), 12_000);
        follow.forget_history();
        assert!(follow.since(id(198)).is_none());
    }
}
