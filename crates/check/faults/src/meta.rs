//! A metadata engine in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vere_ports::mail_meta::{Batch, MetaEngine, MetaError, Partition, Visit};

use crate::Fate;

type Rows = BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>;

#[derive(Debug, Clone, Default)]
struct State {
    /// By the octets of the partition and the key.
    rows: Rows,
    versions: BTreeMap<Vec<u8>, u64>,
    applied: u64,
}

impl State {
    fn apply(&mut self, batches: &[Batch], upto: u64) -> Result<(), MetaError> {
        for batch in batches {
            let partition = batch.partition.encode();
            let found = self.versions.get(&partition).copied().unwrap_or_default();
            if batch.version <= found {
                continue;
            }
            if batch.expected != found {
                return Err(MetaError::Conflict {
                    partition: batch.partition.clone(),
                    found,
                    expected: batch.expected,
                });
            }
            if batch.clear {
                self.rows.retain(|(each, _), _| *each != partition);
            }
            let rows = batch.rows.iter().map(|row| (partition.clone(), row));
            let hints = batch.hints.iter().map(|(other, row)| (other.encode(), row));
            for (partition, row) in rows.chain(hints) {
                let key = (partition, row.key.clone());
                match &row.value {
                    Some(value) => self.rows.insert(key, value.clone()),
                    None => self.rows.remove(&key),
                };
            }
            self.versions.insert(partition, batch.version);
        }
        self.applied = upto;
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Shared {
    now: State,
    lasting: State,
    /// The batches applied since the last persist, in order.
    since: Vec<(Vec<Batch>, u64)>,
    /// The partition whose rows cannot be read.
    unreadable: Option<Vec<u8>>,
    /// Whether the list of partitions cannot be read.
    unlisted: bool,
    /// No change is taken.
    full: bool,
}

impl Shared {
    fn check(&self, partition: &[u8]) -> Result<(), MetaError> {
        match self.unreadable.as_deref() == Some(partition) {
            true => Err(MetaError::Failed("a block is damaged".to_owned())),
            false => Ok(()),
        }
    }
}

/// A metadata engine in memory; clones share the engine.
#[derive(Debug, Clone, Default)]
pub struct MemoryMeta(Arc<Mutex<Shared>>);

impl MemoryMeta {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Power fails: some beginning of what was applied since the last persist is there.
    pub fn crash(&self, fate: &mut dyn Fate) {
        let mut shared = self.lock();
        let mut state = shared.lasting.clone();
        let since = std::mem::take(&mut shared.since);
        let keep = fate.pick(since.len() + 1);
        for (batches, upto) in &since[..keep] {
            // The same batches were applied before in the same order, so the call cannot fail.
            let _ = state.apply(batches, *upto);
        }
        shared.lasting = state.clone();
        shared.now = state;
    }

    /// From now on the rows of this partition cannot be read; `None` makes all rows readable.
    pub fn set_unreadable(&self, partition: Option<&Partition>) {
        self.lock().unreadable = partition.map(Partition::encode);
    }

    /// From now on the list of partitions cannot be read, or can again.
    pub fn set_unlisted(&self, unlisted: bool) {
        self.lock().unlisted = unlisted;
    }

    /// From now on the engine refuses changes, as if the disk were full, or accepts changes again.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// All rows, for comparison.
    #[must_use]
    pub fn rows(&self) -> BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>> {
        self.lock().now.rows.clone()
    }
}

impl MetaEngine for MemoryMeta {
    fn version(&self, partition: &Partition) -> Result<u64, MetaError> {
        let versions = &self.lock().now.versions;
        Ok(versions
            .get(&partition.encode())
            .copied()
            .unwrap_or_default())
    }

    fn row(&self, partition: &Partition, key: &[u8]) -> Result<Option<Vec<u8>>, MetaError> {
        let key = (partition.encode(), key.to_vec());
        let shared = self.lock();
        shared.check(&key.0)?;
        Ok(shared.now.rows.get(&key).cloned())
    }

    fn scan_after(
        &self,
        partition: &Partition,
        prefix: &[u8],
        after: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), MetaError> {
        let partition = partition.encode();
        let shared = self.lock();
        shared.check(&partition)?;
        let from = (partition.clone(), prefix.max(after).to_vec());
        let behind = |key: &&(Vec<u8>, Vec<u8>)| after.is_empty() || key.1.as_slice() > after;
        let rows = shared.now.rows.range(from..);
        for ((each, key), value) in rows.skip_while(|(key, _)| !behind(key)) {
            if *each != partition || !key.starts_with(prefix) || !visit(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn partitions(
        &self,
        after: Option<&Partition>,
        limit: usize,
    ) -> Result<Vec<Partition>, MetaError> {
        let after = after.map(Partition::encode);
        let shared = self.lock();
        if shared.unlisted {
            return Err(MetaError::Failed("a block is damaged".to_owned()));
        }
        // Some partitions have only hints.
        let with_rows = shared.now.rows.keys().map(|(partition, _)| partition);
        let behind: BTreeSet<_> = shared
            .now
            .versions
            .keys()
            .chain(with_rows)
            .filter(|each| after.as_ref().is_none_or(|after| *each > after))
            .collect();
        let partitions = behind.into_iter();
        Ok(partitions
            .filter_map(|each| Some(Partition::decode(each)?.0))
            .take(limit)
            .collect())
    }

    fn apply(&mut self, batches: &[Batch], upto: u64) -> Result<(), MetaError> {
        let mut shared = self.lock();
        if shared.full {
            return Err(MetaError::Failed("no room on the disk".to_owned()));
        }
        shared.now.apply(batches, upto)?;
        shared.since.push((batches.to_vec(), upto));
        Ok(())
    }

    fn remove_hints(&mut self, hints: &[(Partition, Vec<u8>)]) -> Result<(), MetaError> {
        let mut shared = self.lock();
        for (partition, key) in hints {
            shared.now.rows.remove(&(partition.encode(), key.clone()));
        }
        Ok(())
    }

    fn applied(&self) -> Result<u64, MetaError> {
        Ok(self.lock().now.applied)
    }

    fn persist(&mut self) -> Result<(), MetaError> {
        let mut shared = self.lock();
        shared.lasting = shared.now.clone();
        shared.since.clear();
        Ok(())
    }
}
