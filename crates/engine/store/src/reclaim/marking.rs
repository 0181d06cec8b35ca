//! Marking: what the messages of all mailboxes refer to, gathered in steps of some thousand rows.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use vere_ports::mail_meta::{MetaEngine, MetaError, Partition, RowChange};

use crate::error::StoreError;
use crate::log::Snapshots;
use crate::rows::{MessageRow, Referring, decode_snapshot, keys};

/// Rows that a step looks at.
const ROWS: usize = 2_000;
/// Cost of reading a partition beside its messages, counted in rows.
const PARTITION_ROWS: usize = 10;
/// Partitions listed at once.
const PARTITIONS: usize = 100;

/// References to the bodies of a stretch of the log.
#[derive(Debug)]
pub(super) struct Marking {
    range: Range<u64>,
    pub(super) marks: BTreeSet<u64>,
    /// The threads of messages; a thread is named by the body of its first message.
    threads: BTreeSet<u64>,
    /// Records with all rows of a partition.
    pub(super) snapshots: Arc<Snapshots>,
    queue: VecDeque<Partition>,
    /// The last partition listed by the engine.
    after: Option<Partition>,
    /// The current partition, the kind of rows, and the last row read.
    current: Option<(Partition, Referring, Vec<u8>)>,
    done: bool,
}

impl Marking {
    pub(super) fn new(range: Range<u64>) -> Self {
        Self {
            range,
            marks: BTreeSet::new(),
            threads: BTreeSet::new(),
            snapshots: Arc::default(),
            queue: VecDeque::new(),
            after: None,
            current: None,
            done: false,
        }
    }

    /// Whether every mailbox was read.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Marks the bodies and threads of the messages among rows of a mailbox.
    pub(super) fn mark(&mut self, rows: &[RowChange]) {
        for row in rows {
            let messages = Referring::all_of(&row.key, row.value.as_deref());
            messages.iter().for_each(|message| self.mark_one(message));
        }
    }

    fn mark_one(&mut self, message: &MessageRow) {
        if self.range.contains(&message.blob.0) {
            self.marks.insert(message.blob.0);
        }
        if self.range.contains(&message.thread) {
            self.threads.insert(message.thread);
        }
    }

    /// Whether a hint names a body or thread of the stretch that no message refers to. An unreadable hint is useless
    /// too.
    pub(super) fn is_unused(&self, kind: u8, value: &[u8]) -> bool {
        let Some(named) = value.first_chunk().map(|own| u64::from_le_bytes(*own)) else {
            return true;
        };
        let used = match kind {
            keys::CONTENTS => &self.marks,
            _ => &self.threads,
        };
        self.range.contains(&named) && !used.contains(&named)
    }

    /// Looks at some rows.
    pub(super) fn step<M: MetaEngine>(&mut self, meta: &M) -> Result<(), StoreError> {
        let mut left = ROWS;
        while left > 0 && !self.done {
            match self.current.take() {
                Some((partition, kind, after)) => {
                    left = self.messages(meta, (partition, kind), after, left)?;
                }
                None => {
                    left = left.saturating_sub(PARTITION_ROWS);
                    self.enter(meta)?;
                }
            }
        }
        Ok(())
    }

    /// Goes on to the next partition.
    fn enter<M: MetaEngine>(&mut self, meta: &M) -> Result<(), StoreError> {
        if self.queue.is_empty() {
            self.queue = partitions(meta, self.after.as_ref(), PARTITIONS)?.into();
            if let Some(last) = self.queue.back() {
                self.after = Some(last.clone());
            }
        }
        let Some(partition) = self.queue.pop_front() else {
            self.done = true;
            return Ok(());
        };
        let snapshot = snapshot_of(meta, &partition);
        if let Some(snapshot) = snapshot.map_err(|error| unreadable_rows(&partition, &error))? {
            Arc::make_mut(&mut self.snapshots).insert(partition.clone(), snapshot);
        }
        if matches!(partition, Partition::Mailbox(_)) {
            self.current = Some((partition, Referring::Messages, Vec::new()));
        }
        Ok(())
    }

    /// Marks messages of a partition behind `after`. Returns the rows left to this step.
    fn messages<M: MetaEngine>(
        &mut self,
        meta: &M,
        (partition, kind): (Partition, Referring),
        after: Vec<u8>,
        rows: usize,
    ) -> Result<usize, StoreError> {
        let (mut left, mut last, mut bad) = (rows, Vec::new(), false);
        let scanned = meta.scan_after(&partition, kind.prefix(), &after, &mut |key, value| {
            match kind.messages(value) {
                Some(messages) => {
                    messages.iter().for_each(|message| self.mark_one(message));
                    left = left.saturating_sub(messages.len().max(1));
                }
                None => bad = true,
            }
            if left == 0 {
                last = key.to_vec();
            }
            left > 0 && !bad
        });
        scanned.map_err(|error| unreadable_rows(&partition, &error))?;
        if bad {
            // The body of an unreadable row is unknown, so no body may go.
            return Err(unreadable_rows(
                &partition,
                &"the row of a message is malformed",
            ));
        }
        self.current = match (left, kind) {
            (0, _) => Some((partition, kind, last)),
            (_, Referring::Messages) => Some((partition, Referring::Kept, Vec::new())),
            (_, Referring::Kept) => None,
        };
        Ok(left)
    }
}

/// The next partitions.
pub(crate) fn partitions<M: MetaEngine>(
    meta: &M,
    after: Option<&Partition>,
    limit: usize,
) -> Result<Vec<Partition>, StoreError> {
    meta.partitions(after, limit)
        .map_err(|error| unreadable("the list of partitions", &error))
}

/// Returns the error for unreadable metadata. Their references are unknown, so reclaiming removes nothing; the log is
/// intact, and the store goes on.
fn unreadable(what: &str, why: &dyn fmt::Display) -> StoreError {
    StoreError::Damaged(format!("{what}: {why}"))
}

/// The same of the rows of a mailbox or an account.
pub(crate) fn unreadable_rows(partition: &Partition, why: &dyn fmt::Display) -> StoreError {
    let what = match partition {
        Partition::Account(account) => format!("metadata of account {account}"),
        Partition::Mailbox(id) => format!("metadata of mailbox {id}"),
    };
    unreadable(&what, why)
}

/// Returns the position of the record with all rows of a partition, if any. The record is synced, as every row of the
/// engine is.
fn snapshot_of<M: MetaEngine>(meta: &M, partition: &Partition) -> Result<Option<u64>, MetaError> {
    let row = meta.row(partition, keys::SNAPSHOT)?;
    if let Some(position) = row.as_deref().and_then(decode_snapshot) {
        return Ok(Some(position));
    }
    // The last batch of a mailbox that was deleted removes everything.
    let deleted =
        matches!(partition, Partition::Mailbox(_)) && meta.row(partition, keys::HEAD)?.is_none();
    Ok(deleted.then_some(meta.version(partition)?))
}
