//! The newest checkpoint, what has changed since, and a checkpoint on the way.

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU64;

use bytes::Bytes;
use vere_ports::files::CallId;

use crate::format::Locator;
use crate::format::commit::Checkpoint;
use vere_files::pages::Draft;
use vere_keep::record::Won;

/// Commits after which a checkpoint is due.
const COMMITS_MAX: usize = 256;
/// Octets of commits after which a checkpoint is due.
const OCTETS_MAX: usize = 4 << 20;
/// Rows of commits after which a checkpoint is due: short rows in sealed commits are few octets, and some 250 in memory. The
/// checkpoint takes twice the memory for its time.
const ROWS_MAX: usize = 64_000;

/// Mounts that begin at different times: each waits for a sixteenth of the bounds more than the one before.
const TURNS: usize = 16;
/// Turns that a mount waits for more after each checkpoint that another mount has overtaken: a slow one leaves pages that no
/// commit names with each try.
const TURNS_OVERTAKEN: usize = 8;
/// Turns at most after checkpoints that were overtaken.
const TURNS_MAX: usize = 48;
/// Roots that commits have named, besides the newest one; the oldest is forgotten first. Commits name few others than the
/// rows of checkpoints do.
const SEEN_MAX: usize = 64;

/// The newest checkpoint, and how much has changed since.
#[derive(Debug, Default)]
pub struct Checkpoints {
    /// The newest checkpoint of this mount or another one.
    pub newest: Option<Checkpoint>,
    /// The generation that the checkpoint covers which the newest commit of the chain names.
    pub named: Option<NonZeroU64>,
    /// The newest commit since the newest checkpoint.
    pub last: Option<Won>,
    /// Commits since.
    pub commits: usize,
    /// Octets of these commits.
    pub octets: usize,
    /// Rows of these commits.
    pub rows: usize,
    /// The checkpoint on the way.
    pub making: Option<Making>,
    /// Turns to wait, because other mounts were faster.
    turns: usize,
    /// Roots that commits have named, each with the generation of the last one.
    seen: VecDeque<(u64, Locator)>,
    /// Who waits for the end of the mount.
    pub finish: Option<Finish>,
    /// An earlier page cannot be read: this mount writes no more checkpoints.
    pub is_broken: bool,
    /// The commit that the newest checkpoint covers: the volume has a row of it for longer than the log has the commit.
    pub anchor: Option<Won>,
    /// Snapshots that wait for a checkpoint: the generation that it has to cover, the name, and who waits.
    pub snapshots: Vec<(u64, Vec<u8>, CallId)>,
}

/// A checkpoint on the way.
#[derive(Debug)]
pub struct Making {
    /// Its pages.
    pub draft: Draft,
    /// The newest commit whose rows the pages have.
    pub covers: Won,
    /// Mails that an account is asked about.
    pub asked: BTreeSet<usize>,
    /// Mails that the account may have.
    pub doubts: BTreeSet<usize>,
    /// UIDVALIDITY of the mailbox of pages, as first told.
    pub uid_validity: Option<u32>,
}

/// The end of a mount.
#[derive(Debug, Default)]
pub struct Finish {
    /// Who waits.
    pub calls: Vec<CallId>,
    /// Whether a last checkpoint was tried.
    pub has_tried: bool,
}

impl Checkpoints {
    /// As an opening has found the volume: the newest checkpoint, and the one that the newest commit names.
    pub fn new(newest: Option<Checkpoint>, named: Option<Checkpoint>) -> Self {
        Self {
            newest,
            named: named.map(|named| named.covers),
            seen: named
                .map(|named| (named.covers.get(), named.root))
                .into_iter()
                .collect(),
            ..Self::default()
        }
    }

    /// The checkpoint that commits name.
    pub const fn newest(&self) -> Option<Checkpoint> {
        self.newest
    }

    /// A commit is in the chain.
    pub fn note(&mut self, won: Won, octets: usize) {
        self.last = Some(won);
        self.commits = self.commits.saturating_add(1);
        self.octets = self.octets.saturating_add(octets);
    }

    /// Whether a checkpoint of another mount is newer than all of this mount.
    pub fn is_newest(&self, named: &Checkpoint) -> bool {
        let covers = named.covers.get();
        let newest = self.newest.map_or(0, |newest| newest.covers.get());
        let making = self.making.as_ref();
        covers > newest && making.is_none_or(|making| covers >= making.covers.generation)
    }

    /// The next checkpoint lies on one of another mount, with so many rows above.
    pub fn adopt(&mut self, named: Checkpoint, rows: usize) {
        if self.making.take().is_some() {
            self.turns = self.turns.saturating_add(TURNS_OVERTAKEN).min(TURNS_MAX);
        }
        let last = self.last.map_or(0, |last| last.generation);
        if let Some(newest) = self.newest {
            // Commits may have named a checkpoint that another one replaces.
            self.see(newest.root, last);
        }
        self.is_broken = false;
        self.newest = Some(named);
        let left = last.saturating_sub(named.covers.get());
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let share = self.octets.checked_div(self.commits).unwrap_or_default();
        self.commits = left;
        self.octets = share.saturating_mul(left);
        self.rows = rows;
    }

    /// A checkpoint of this mount is complete.
    pub fn complete(&mut self, newest: Checkpoint) {
        self.turns = 0;
        self.newest = Some(newest);
    }

    /// The commit of a generation names a checkpoint.
    pub fn see(&mut self, root: Locator, generation: u64) {
        if let Some(seen) = self.seen.iter_mut().find(|(_, of)| *of == root) {
            seen.0 = seen.0.max(generation);
            return;
        }
        self.seen.push_back((generation, root));
        if self.seen.len() > SEEN_MAX {
            self.seen.pop_front();
        }
    }

    /// The roots in use: the newest one, and those named by commits from a generation on.
    pub fn roots(&self, limit: u64) -> impl Iterator<Item = Locator> {
        let seen = self.seen.iter();
        let seen = seen.filter(move |(generation, _)| *generation >= limit);
        let newest = self.newest.map(|newest| newest.root);
        newest.into_iter().chain(seen.map(|(_, root)| *root))
    }

    /// So many rows of commits are in the chain.
    pub fn note_rows(&mut self, rows: usize) {
        self.rows = self.rows.saturating_add(rows);
    }

    /// Whether a mount with this number of a writer begins a checkpoint. Mounts see the same commits; with the same bounds all
    /// would begin at once, and all but one in vain.
    pub fn is_due(&self, writer: u16) -> bool {
        let turn = usize::from(writer.saturating_sub(1)) % TURNS;
        let late = |bound: usize, turns: usize| {
            let part = bound.checked_div(TURNS).unwrap_or_default();
            bound.saturating_add(part.saturating_mul(turns))
        };
        let turns = turn.saturating_add(self.turns);
        // Rows are memory: no patience for a faster mount counts there.
        self.commits >= late(COMMITS_MAX, turns)
            || self.octets >= late(OCTETS_MAX, turns)
            || self.rows >= late(ROWS_MAX, turn)
    }

    /// Begins a checkpoint with these rows.
    pub fn begin(&mut self, covers: Won, rows: Vec<(Vec<u8>, Option<Bytes>)>) {
        self.commits = 0;
        self.octets = 0;
        self.rows = 0;
        self.making = Some(Making {
            draft: Draft::new(covers.generation, rows),
            covers,
            asked: BTreeSet::new(),
            doubts: BTreeSet::new(),
            uid_validity: None,
        });
    }

    /// The rows of a checkpoint that is given up belong to the next one.
    pub fn give_up(&mut self) {
        if self.making.take().is_some() {
            // Another try comes with as many commits again.
            self.commits = 0;
            self.octets = 0;
            self.rows = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows are the memory of a mount that makes many files: 16 MB of rows at some 250 octets each.
    #[test]
    fn rows_make_a_checkpoint_due() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.note_rows(63_999);
        assert!(!checkpoints.is_due(1));
        checkpoints.note_rows(1);
        assert!(checkpoints.is_due(1));
        // The second writer waits for a sixteenth more.
        assert!(!checkpoints.is_due(2));
        checkpoints.note_rows(4_000);
        assert!(checkpoints.is_due(2));
    }
}
