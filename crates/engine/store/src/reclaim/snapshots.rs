//! Snapshots: one log record with all rows of a partition, which makes the earlier changes needless. A snapshot is
//! written if the changes take several times its octets. Rows are gathered in steps; changes logged meanwhile are
//! recorded beside them.

use std::collections::{BTreeMap, VecDeque};

use vere_ports::mail_meta::{Batch, MetaEngine, MetaError, Partition, RowChange};
use vere_ports::storage::Storage;

use super::marking::unreadable_rows;
use crate::batch;
use crate::error::StoreError;
use crate::log::format::{RECORD_HEAD, RecordKind};
use crate::model::MailboxId;
use crate::rows::{encode_snapshot, keys};
use crate::store::Store;

/// Rows that a step looks at.
const ROWS: usize = 2_000;
/// Octets of changes of a partition below which nothing is done.
const CHANGES_MIN: u64 = 16 * 1024;
/// How many times the octets of the snapshot the changes must take.
const FACTOR: u64 = 2;
/// The longest snapshot. A mailbox with more, some 300,000 messages, keeps all its changes.
pub(super) const SNAPSHOT_MAX: u64 = 32 * 1024 * 1024;
/// Octets of a row in a batch beside key and value.
const ROW_HEAD: u64 = 6;

/// Partitions whose changes may be worth a snapshot.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    queue: VecDeque<(Partition, u64)>,
    gathering: Option<Gathering>,
}

/// The rows of a partition, being gathered.
#[derive(Debug)]
pub(super) struct Gathering {
    partition: Partition,
    /// Octets of its changes in the log.
    changes: u64,
    /// Rows as read from the metadata.
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Row changes logged and perhaps not applied when the rows were read.
    since: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    octets: u64,
    /// The kind of rows being read, and the key of the last row read.
    at: (u8, Vec<u8>),
}

impl Candidates {
    /// Chooses candidates by the octets of changes of each partition.
    pub(super) fn new(changes: impl IntoIterator<Item = (Partition, u64)>) -> Self {
        let mut queue: Vec<_> = changes
            .into_iter()
            .filter(|(_, octets)| *octets >= CHANGES_MIN)
            .collect();
        queue.sort_unstable();
        Self {
            queue: queue.into(),
            gathering: None,
        }
    }

    /// Records a logged change.
    pub(super) fn note(&mut self, partition: &Partition, clear: bool, rows: &[RowChange]) {
        let Some(gathering) = &mut self.gathering else {
            return;
        };
        if gathering.partition != *partition {
            return;
        }
        if clear {
            // The partition was cleared: the clearing record is the snapshot.
            self.gathering = None;
            return;
        }
        gathering.note(rows);
    }
}

impl Gathering {
    fn note(&mut self, rows: &[RowChange]) {
        for row in rows {
            self.octets += row_octets(&row.key, row.value.as_deref().unwrap_or_default());
            self.since.insert(row.key.clone(), row.value.clone());
        }
    }

    /// Whether the snapshot is too long to be worth writing.
    fn is_too_long(&self) -> bool {
        self.octets > SNAPSHOT_MAX || self.octets * FACTOR > self.changes
    }

    /// Reads some rows. Returns true after the last row.
    fn step<M: MetaEngine>(&mut self, meta: &M) -> Result<bool, MetaError> {
        let mut left = ROWS;
        while left > 0 {
            let (kind, after) = std::mem::take(&mut self.at);
            let Some(next) = keys::next_kind(&self.partition, kind) else {
                self.at = (kind, after);
                return Ok(true);
            };
            let mut last = Vec::new();
            let (rows, octets) = (&mut self.rows, &mut self.octets);
            meta.scan_after(&self.partition, &[next], &after, &mut |key, value| {
                *octets += row_octets(key, value);
                rows.insert(key.to_vec(), value.to_vec());
                left -= 1;
                if left == 0 {
                    last = key.to_vec();
                }
                left > 0
            })?;
            // The same kind goes on behind the last row, or the next one begins.
            self.at = match left {
                0 => (next - 1, last),
                _ => (next, Vec::new()),
            };
        }
        Ok(false)
    }

    /// Returns all rows, with the changes logged meanwhile.
    fn into_rows(self) -> (Partition, Vec<RowChange>) {
        let mut rows = self.rows;
        for (key, value) in self.since {
            match value {
                Some(value) => drop(rows.insert(key, value)),
                None => drop(rows.remove(&key)),
            }
        }
        rows.remove(keys::SNAPSHOT);
        let rows = rows.into_iter().map(|(key, value)| batch::put(key, value));
        (self.partition, rows.collect())
    }
}

fn row_octets(key: &[u8], value: &[u8]) -> u64 {
    ROW_HEAD + (key.len() + value.len()) as u64
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Continues writing snapshots by one step. Returns the octets of changes made needless by a new snapshot, or
    /// none after the last candidate. An unreadable partition gets no snapshot, and the next candidate follows.
    pub(super) fn snapshot_some(
        &mut self,
        candidates: &mut Candidates,
    ) -> Result<Option<u64>, StoreError> {
        let Some(mut gathering) = candidates.gathering.take() else {
            let Some((partition, changes)) = candidates.queue.pop_front() else {
                return Ok(None);
            };
            let mut gathering = Gathering {
                partition,
                changes,
                rows: BTreeMap::new(),
                since: BTreeMap::new(),
                octets: 0,
                at: (0, Vec::new()),
            };
            for batch in self.pending.of(&gathering.partition.clone()) {
                gathering.note(&batch.rows);
            }
            // A partition just cleared, or with a new snapshot, is skipped: the octets of its remaining changes are
            // not known yet.
            let is_known = |batch: &Batch| {
                batch.clear || batch.rows.iter().any(|row| row.key == keys::SNAPSHOT)
            };
            let known = self.pending.of(&gathering.partition).any(is_known);
            candidates.gathering = Some(gathering).filter(|_| !known);
            return Ok(Some(0));
        };
        let all = gathering.step(&self.meta);
        let all = all.map_err(|error| unreadable_rows(&gathering.partition, &error))?;
        if gathering.is_too_long() {
            return Ok(Some(0));
        }
        if !all {
            candidates.gathering = Some(gathering);
            return Ok(Some(0));
        }
        let changes = gathering.changes;
        let (partition, rows) = gathering.into_rows();
        match self.write_snapshot(partition, rows) {
            Ok(()) => Ok(Some(changes)),
            Err(StoreError::DiskFull) => Ok(Some(0)),
            Err(error) => Err(error),
        }
    }

    /// Logs all rows of a partition; only the version of the partition changes.
    fn write_snapshot(
        &mut self,
        partition: Partition,
        mut rows: Vec<RowChange>,
    ) -> Result<(), StoreError> {
        let is_there = match &partition {
            Partition::Mailbox(_) => rows.iter().any(|row| row.key == keys::HEAD),
            Partition::Account(_) => true,
        };
        if !is_there {
            return Ok(());
        }
        let expected = self.pending.version(&self.meta, &partition);
        let expected = expected.map_err(|error| unreadable_rows(&partition, &error))?;
        let own = batch::put(keys::SNAPSHOT, encode_snapshot(self.log.end()));
        rows.push(own.clone());
        let payload = batch::encode(&partition, expected, true, &rows);
        self.log.reserve((RECORD_HEAD + payload.len()) as u64)?;
        let version = self.log.append(RecordKind::Batch, &[&payload])?;
        match &partition {
            Partition::Mailbox(id) => {
                if let Some(mailbox) = self.mailboxes.get_mut(&MailboxId(*id)) {
                    mailbox.version = version;
                }
            }
            // The account is read again with its new version.
            Partition::Account(name) => drop(self.accounts.remove(name)),
        }
        // The metadata have the rows already.
        self.pending.push(Batch {
            partition,
            expected,
            version,
            clear: false,
            rows: vec![own],
            hints: Vec::new(),
        });
        Ok(())
    }
}
