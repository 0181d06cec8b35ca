//! The newest checkpoint, what has changed since, and a checkpoint on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::num::NonZeroU64;

use bytes::Bytes;
use vere_ports::files::CallId;

use crate::format::commit::{Checkpoint, RowChange};
use crate::format::{Kind, Locator, MailCopy, PackNumber};
use crate::pages::{Draft, PageTree};
use crate::rows::{Key, PackRow, RowValue};
use crate::volume::accounts::LOG_MAILBOX;
use crate::volume::record::Won;

/// Commits after which a checkpoint is due.
const COMMITS_MAX: usize = 256;
/// Octets of commits after which a checkpoint is due.
const OCTETS_MAX: usize = 4 << 20;
/// Octets of decoded pages in memory.
pub(crate) const PAGES_OCTETS: usize = 64 << 20;
/// The first octet of keys that belong to files.
const FILES: u8 = 2;

/// Rows by key; no value for a removed row.
pub(crate) type Rows = BTreeMap<Vec<u8>, Option<Bytes>>;

/// The newest checkpoint, and what has changed since.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    pub(crate) newest: Option<Checkpoint>,
    /// The generation that the checkpoint covers which the newest commit of the chain names.
    pub(crate) named: Option<NonZeroU64>,
    pub(crate) pages: PageTree,
    /// Rows of commits in the chain since the newest checkpoint.
    pub(crate) rows: Rows,
    /// The newest commit of these.
    pub(crate) last: Option<Won>,
    pub(crate) commits: usize,
    pub(crate) octets: usize,
    pub(crate) making: Option<Making>,
    pub(crate) finish: Option<Finish>,
    /// An earlier page cannot be read: this mount writes no more checkpoints.
    pub(crate) is_broken: bool,
}

/// A checkpoint on its way.
#[derive(Debug)]
pub(crate) struct Making {
    pub(crate) draft: Draft,
    pub(crate) covers: Won,
    pub(crate) rows: Rows,
    /// Mails that an account is asked about.
    pub(crate) asked: BTreeSet<usize>,
    /// Mails that the account may have.
    pub(crate) doubts: BTreeSet<usize>,
    pub(crate) uid_validity: Option<u32>,
    /// A page that is being read.
    pub(crate) reading: Option<Locator>,
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
    /// As an opening has found the volume: the newest checkpoint with its pages, and the one that the newest commit names.
    pub(crate) fn new(
        newest: Option<Checkpoint>,
        named: Option<Checkpoint>,
        pages: PageTree,
    ) -> Self {
        pages.trim(PAGES_OCTETS);
        Self {
            newest,
            pages,
            named: named.map(|named| named.covers),
            ..Self::default()
        }
    }

    /// The checkpoint that commits name.
    pub(crate) const fn newest(&self) -> Option<Checkpoint> {
        self.newest
    }

    /// A commit is in the chain.
    pub(crate) fn note(
        &mut self,
        won: Won,
        octets: usize,
        rows: impl IntoIterator<Item = RowChange>,
    ) {
        let rows = rows.into_iter();
        self.rows
            .extend(rows.map(|row| (row.key, row.value.map(Bytes::from))));
        self.last = Some(won);
        self.commits = self.commits.saturating_add(1);
        self.octets = self.octets.saturating_add(octets);
    }

    pub(crate) fn is_due(&self) -> bool {
        self.commits >= COMMITS_MAX || self.octets >= OCTETS_MAX
    }

    /// Whether files have changed since the newest checkpoint.
    pub(crate) fn has_changes(&self) -> bool {
        let mut keys = self.rows.keys();
        keys.any(|key| key.first() == Some(&FILES))
    }

    pub(crate) fn begin(&mut self) {
        let Some(covers) = self
            .last
            .filter(|_| !self.is_broken && !self.rows.is_empty())
        else {
            return;
        };
        let rows = mem::take(&mut self.rows);
        self.commits = 0;
        self.octets = 0;
        let changes = rows.iter().map(|(key, value)| (key.clone(), value.clone()));
        self.making = Some(Making {
            draft: Draft::new(covers.generation, changes),
            covers,
            asked: BTreeSet::new(),
            doubts: BTreeSet::new(),
            uid_validity: None,
            reading: None,
            rows,
        });
    }

    /// The rows of a checkpoint that is given up belong to the next one.
    pub(crate) fn give_up(&mut self) {
        if let Some(mut making) = self.making.take() {
            making.rows.append(&mut self.rows);
            self.rows = making.rows;
            // Another try comes with as many commits again.
            self.commits = 0;
            self.octets = 0;
        }
    }
}
