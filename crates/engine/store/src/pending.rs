//! Batches that are in the log and not in the metadata engine yet, because the log is not synced so
//! far: whoever looks for a row looks here first.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;

use vere_ports::mail_meta::{Batch, MetaEngine, Partition, RowChange};

use crate::error::StoreError;
use crate::rows::keys;

/// Of each row, the last value and the batch it came with.
type Rows = BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>;

/// A key and its value.
type Row = (Vec<u8>, Vec<u8>);

#[derive(Debug, Default)]
struct Changed {
    /// The last batch.
    version: u64,
    /// The last batch that removed all rows.
    cleared: Option<u64>,
    rows: Rows,
}

/// Of each hint, the last value and the batch it came with.
type Hints = HashMap<Vec<u8>, (u64, Option<Vec<u8>>)>;

/// The batches.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    queue: VecDeque<Batch>,
    partitions: HashMap<Partition, Changed>,
    hints: HashMap<Partition, Hints>,
}

impl Pending {
    /// Takes a batch that was logged.
    pub(crate) fn push(&mut self, batch: Batch) {
        let changed = self.partitions.entry(batch.partition.clone()).or_default();
        changed.version = batch.version;
        if batch.clear {
            changed.cleared = Some(batch.version);
            changed.rows.clear();
        }
        for row in &batch.rows {
            // Rows of messages are not kept here: lookups use the messages of the mailbox in memory.
            if !row.key.starts_with(keys::MESSAGES) {
                let value = (batch.version, row.value.clone());
                changed.rows.insert(row.key.clone(), value);
            }
        }
        for (partition, row) in &batch.hints {
            let hints = self.hints.entry(partition.clone()).or_default();
            hints.insert(row.key.clone(), (batch.version, row.value.clone()));
        }
        self.queue.push_back(batch);
    }

    /// The rows of the batch that was pushed last.
    pub(crate) fn newest(&self) -> &[RowChange] {
        self.queue.back().map_or(&[], |batch| &batch.rows)
    }

    /// The batches before a position, to be applied.
    pub(crate) fn take_before(&mut self, position: u64) -> Vec<Batch> {
        let count = self.queue.partition_point(|batch| batch.version < position);
        self.queue.drain(..count).collect()
    }

    /// Forgets batches that were applied.
    pub(crate) fn applied(&mut self, batches: &[Batch]) {
        for batch in batches {
            self.forget_hints(batch);
            let Some(changed) = self.partitions.get_mut(&batch.partition) else {
                continue;
            };
            if changed.version <= batch.version {
                self.partitions.remove(&batch.partition);
                continue;
            }
            changed.cleared = changed.cleared.filter(|version| *version > batch.version);
            for row in &batch.rows {
                if changed
                    .rows
                    .get(&row.key)
                    .is_some_and(|(version, _)| *version <= batch.version)
                {
                    changed.rows.remove(&row.key);
                }
            }
        }
    }

    fn forget_hints(&mut self, batch: &Batch) {
        for (partition, row) in &batch.hints {
            let Some(hints) = self.hints.get_mut(partition) else {
                continue;
            };
            if hints
                .get(&row.key)
                .is_some_and(|(version, _)| *version <= batch.version)
            {
                hints.remove(&row.key);
            }
            if hints.is_empty() {
                self.hints.remove(partition);
            }
        }
    }

    /// A hint.
    pub(crate) fn hint<M: MetaEngine>(
        &self,
        meta: &M,
        partition: &Partition,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let pending = self.hints.get(partition).and_then(|hints| hints.get(key));
        match pending {
            Some((_, value)) => Ok(value.clone()),
            None => Ok(meta.row(partition, key)?),
        }
    }

    /// All batches.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Batch> {
        self.queue.iter()
    }

    /// The batches of a partition, in order.
    pub(crate) fn of<'a>(&'a self, partition: &'a Partition) -> impl Iterator<Item = &'a Batch> {
        let any = self.partitions.contains_key(partition);
        let batches = self.queue.iter().take(if any { usize::MAX } else { 0 });
        batches.filter(move |batch| batch.partition == *partition)
    }

    /// The version of a partition after everything that was logged.
    pub(crate) fn version<M: MetaEngine>(
        &self,
        meta: &M,
        partition: &Partition,
    ) -> Result<u64, StoreError> {
        match self.partitions.get(partition) {
            Some(changed) => Ok(changed.version),
            None => Ok(meta.version(partition)?),
        }
    }

    /// A row, not of a message.
    pub(crate) fn row<M: MetaEngine>(
        &self,
        meta: &M,
        partition: &Partition,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(changed) = self.partitions.get(partition) {
            if let Some((_, value)) = changed.rows.get(key) {
                return Ok(value.clone());
            }
            if changed.cleared.is_some() {
                return Ok(None);
            }
        }
        Ok(meta.row(partition, key)?)
    }

    /// The first row, not of a message, whose key begins with `prefix` and sorts after `after`.
    pub(crate) fn row_after<M: MetaEngine>(
        &self,
        meta: &M,
        partition: &Partition,
        prefix: &[u8],
        after: &[u8],
    ) -> Result<Option<Row>, StoreError> {
        let changed = self.partitions.get(partition);
        let from = match after {
            [] => Bound::Included(prefix),
            after => Bound::Excluded(after),
        };
        let range = changed.map(|changed| changed.rows.range::<[u8], _>((from, Bound::Unbounded)));
        let logged = range
            .into_iter()
            .flatten()
            .take_while(|(key, _)| key.starts_with(prefix))
            .find_map(|(key, (_, value))| Some((key.clone(), value.clone()?)));
        let mut found = None;
        if changed.is_none_or(|changed| changed.cleared.is_none()) {
            meta.scan_after(partition, prefix, after, &mut |key, value| {
                // A logged value or removal takes the place of the applied row.
                if changed.is_none_or(|changed| !changed.rows.contains_key(key)) {
                    found = Some((key.to_vec(), value.to_vec()));
                }
                found.is_none()
            })?;
        }
        Ok(match (found, logged) {
            (Some(found), Some(logged)) => Some(found.min(logged)),
            (found, logged) => found.or(logged),
        })
    }

    /// The rows, not of messages, whose keys begin with `prefix`.
    pub(crate) fn scan<M: MetaEngine>(
        &self,
        meta: &M,
        partition: &Partition,
        prefix: &[u8],
    ) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, StoreError> {
        let mut rows = BTreeMap::new();
        let changed = self.partitions.get(partition);
        if changed.is_none_or(|changed| changed.cleared.is_none()) {
            meta.scan(partition, prefix, &mut |key, value| {
                rows.insert(key.to_vec(), value.to_vec());
                true
            })?;
        }
        for (key, (_, value)) in changed.iter().flat_map(|changed| &changed.rows) {
            if key.starts_with(prefix) {
                match value {
                    Some(value) => rows.insert(key.clone(), value.clone()),
                    None => rows.remove(key),
                };
            }
        }
        Ok(rows)
    }
}
