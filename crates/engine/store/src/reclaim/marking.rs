//! Marking: what the messages of all mailboxes refer to, gathered in steps of some thousand rows.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use vere_ports::mail_meta::{MetaEngine, MetaError, Partition, RowChange};

use crate::StoreError;
use crate::log::Snapshots;
use crate::rows::{MessageRow, decode_snapshot, keys};

/// Rows that a step looks at.
const ROWS: usize = 2_000;
/// What looking at a partition costs beside its messages, in rows.
const PARTITION_ROWS: usize = 10;
/// Partitions asked for at once.
const PARTITIONS: usize = 100;

/// References to the bodies of a stretch of the log.
#[derive(Debug)]
pub(super) struct Marking {
    range: Range<u64>,
    pub(super) marks: BTreeSet<u64>,
    /// The threads that messages are of, which are named by the body of their first one.
    threads: BTreeSet<u64>,
    /// Records that have all rows of a partition.
    pub(super) snapshots: Arc<Snapshots>,
    queue: VecDeque<Partition>,
    /// The last partition that was taken from the engine.
    after: Option<Partition>,
    /// The partition being looked at, and the last row that was.
    current: Option<(Partition, Vec<u8>)>,
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

    /// Whether every mailbox was looked at.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Marks what messages among rows refer to.
    pub(super) fn mark(&mut self, rows: &[RowChange]) {
        let messages = rows
            .iter()
            .filter(|row| row.key.starts_with(keys::MESSAGES));
        for row in messages {
            if let Some(message) = row.value.as_deref().and_then(MessageRow::decode) {
                self.mark_one(&message);
            }
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

    /// Whether a hint names what lies in the stretch and no message refers to. One that cannot be read says
    /// nothing either.
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
                Some((partition, after)) => {
                    left = self.messages(meta, partition, after, left)?;
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
            self.current = Some((partition, Vec::new()));
        }
        Ok(())
    }

    /// Looks at messages of a partition behind `after`; gives the rows that are left to this step.
    fn messages<M: MetaEngine>(
        &mut self,
        meta: &M,
        partition: Partition,
        after: Vec<u8>,
        rows: usize,
    ) -> Result<usize, StoreError> {
        let (mut left, mut last, mut bad) = (rows, Vec::new(), false);
        let scanned = meta.scan_after(&partition, keys::MESSAGES, &after, &mut |key, value| {
            match MessageRow::decode(value) {
                Some(message) => self.mark_one(&message),
                None => bad = true,
            }
            left -= 1;
            if left == 0 {
                last = key.to_vec();
            }
            left > 0 && !bad
        });
        scanned.map_err(|error| unreadable_rows(&partition, &error))?;
        if bad {
            // What a row refers to is unknown: nothing goes.
            return Err(unreadable_rows(&partition, &"a message's row is none"));
        }
        if left == 0 {
            self.current = Some((partition, last));
        }
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

/// What cannot be read of the metadata. What it refers to is unknown, so that nothing goes; the log is
/// whole, and everything else goes on.
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

/// The position of the record that has all rows of a partition, if there is one. What the engine has is
/// synced, so it is as well.
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
