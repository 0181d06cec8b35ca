//! The newest checkpoint, what has changed since, and a checkpoint on its way.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use bytes::Bytes;
use vere_ports::files::CallId;

use crate::format::commit::{Checkpoint, RowChange};
use crate::format::{Kind, MailCopy, PackNumber};
use crate::pages::Draft;
use crate::rows::{Key, PackRow, RowValue};
use crate::volume::accounts::LOG_MAILBOX;
use crate::volume::record::Won;

/// Commits after which a checkpoint is due.
const COMMITS_MAX: usize = 256;
/// Octets of commits after which a checkpoint is due.
const OCTETS_MAX: usize = 4 << 20;
/// Rows of commits after which a checkpoint is due: short rows in sealed commits are few octets, and some 250 in memory.
const ROWS_MAX: usize = 100_000;

/// The newest checkpoint, and how much has changed since.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    pub(crate) newest: Option<Checkpoint>,
    /// The generation that the checkpoint covers which the newest commit of the chain names.
    pub(crate) named: Option<NonZeroU64>,
    /// The newest commit since the newest checkpoint.
    pub(crate) last: Option<Won>,
    pub(crate) commits: usize,
    pub(crate) octets: usize,
    pub(crate) rows: usize,
    pub(crate) making: Option<Making>,
    pub(crate) finish: Option<Finish>,
    /// An earlier page cannot be read: this mount writes no more checkpoints.
    pub(crate) is_broken: bool,
    /// The commit that the newest checkpoint covers: the volume has a row of it for longer than the log has the commit.
    pub(crate) anchor: Option<Won>,
    /// Snapshots that wait for a checkpoint: the generation that it has to cover, the name, and who waits.
    pub(crate) snapshots: Vec<(u64, Vec<u8>, CallId)>,
}

/// A checkpoint on its way.
#[derive(Debug)]
pub(crate) struct Making {
    pub(crate) draft: Draft,
    pub(crate) covers: Won,
    /// Mails that an account is asked about.
    pub(crate) asked: BTreeSet<usize>,
    /// Mails that the account may have.
    pub(crate) doubts: BTreeSet<usize>,
    pub(crate) uid_validity: Option<u32>,
}

/// The end of a mount.
#[derive(Debug, Default)]
pub(crate) struct Finish {
    pub(crate) calls: Vec<CallId>,
    pub(crate) has_tried: bool,
}

/// The row of a commit that has content: no commit can have its own UID.
pub(crate) fn own_row(won: Won, lead: u16, (pack, octets): (PackNumber, u32)) -> RowChange {
    let copy = MailCopy {
        account: lead,
        mailbox: LOG_MAILBOX,
        uid: won.uid,
    };
    let row = PackRow {
        mail: won.commit,
        kind: Kind::Commit as u8,
        group: 0,
        octets,
        copies: vec![copy],
    };
    RowChange {
        key: Key::Pack(pack.0).encode(),
        value: Some(row.encode()),
    }
}

impl Checkpoints {
    /// As an opening has found the volume: the newest checkpoint, and the one that the newest commit names.
    pub(crate) fn new(newest: Option<Checkpoint>, named: Option<Checkpoint>) -> Self {
        Self {
            newest,
            named: named.map(|named| named.covers),
            ..Self::default()
        }
    }

    /// The checkpoint that commits name.
    pub(crate) const fn newest(&self) -> Option<Checkpoint> {
        self.newest
    }

    /// A commit is in the chain.
    pub(crate) fn note(&mut self, won: Won, octets: usize) {
        self.last = Some(won);
        self.commits = self.commits.saturating_add(1);
        self.octets = self.octets.saturating_add(octets);
    }

    /// Whether a checkpoint of another mount is newer than all of this mount.
    pub(crate) fn is_newest(&self, named: &Checkpoint) -> bool {
        let covers = named.covers.get();
        let newest = self.newest.map_or(0, |newest| newest.covers.get());
        let making = self.making.as_ref();
        covers > newest && making.is_none_or(|making| covers >= making.covers.generation)
    }

    /// The next checkpoint lies on one of another mount.
    pub(crate) fn adopt(&mut self, named: Checkpoint) {
        self.making = None;
        self.is_broken = false;
        self.newest = Some(named);
    }

    /// So many rows of commits are in the chain.
    pub(crate) fn note_rows(&mut self, rows: usize) {
        self.rows = self.rows.saturating_add(rows);
    }

    pub(crate) fn is_due(&self) -> bool {
        self.commits >= COMMITS_MAX || self.octets >= OCTETS_MAX || self.rows >= ROWS_MAX
    }

    /// Begins a checkpoint with these rows.
    pub(crate) fn begin(&mut self, covers: Won, rows: Vec<(Vec<u8>, Option<Bytes>)>) {
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
    pub(crate) fn give_up(&mut self) {
        if self.making.take().is_some() {
            // Another try comes with as many commits again.
            self.commits = 0;
            self.octets = 0;
            self.rows = 0;
        }
    }
}
