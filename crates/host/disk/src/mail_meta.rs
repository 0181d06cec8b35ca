//! The mail store's metadata in an embedded engine (fjall, a log-structured merge tree).
//!
//! All partitions lie in one keyspace: key = partition, row key; so a crash leaves a prefix of the applied
//! changes, together with the position of that prefix in the log. The version of a partition is the row with the
//! empty key.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use vere_ports::mail_meta::{Batch, MetaEngine, MetaError, Partition, RowChange, Visit};
use vere_units::ByteSize;

/// The key of the applied position of the log; no partition begins with these octets.
const APPLIED: &[u8] = b"\0applied";
/// The keyspace; the number is the version of the rows.
const KEYSPACE: &str = "rows-1";

/// The engine on a directory.
#[derive(Clone)]
pub struct FjallMeta {
    database: Database,
    rows: Keyspace,
}

impl std::fmt::Debug for FjallMeta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FjallMeta").finish_non_exhaustive()
    }
}

fn failed(error: fjall::Error) -> MetaError {
    MetaError::Failed(error.to_string())
}

/// The reason for a failure to open the engine: an error that a retry cannot cure is damage.
fn not_opened(error: fjall::Error) -> MetaError {
    use fjall::{Error, LsmError};
    let cut_off = |error: &std::io::Error| {
        matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData
        )
    };
    let damaged = match &error {
        Error::Io(error) | Error::Storage(LsmError::Io(error)) => cut_off(error),
        Error::Storage(LsmError::InvalidVersion(_)) => false,
        Error::Storage(_)
        | Error::JournalRecovery(_)
        | Error::InvalidTrailer
        | Error::InvalidTag(_)
        | Error::InvalidVersion(None)
        | Error::Decompress(_)
        | Error::Unrecoverable => true,
        _ => false,
    };
    match damaged {
        true => MetaError::Damaged(error.to_string()),
        false => failed(error),
    }
}

impl FjallMeta {
    /// Opens the engine in a directory, or makes it; `cache` octets of blocks are kept in memory.
    ///
    /// # Errors
    ///
    /// [`MetaError::Damaged`] when the files cannot be read, including a journal with a hole left by a power cut;
    /// [`MetaError::Failed`] for a failure that may pass.
    pub fn open(path: &Path, cache: ByteSize) -> Result<Self, MetaError> {
        let open = || {
            let database = Database::builder(path).cache_size(cache.as_u64()).open()?;
            let rows = database.keyspace(KEYSPACE, KeyspaceCreateOptions::default)?;
            Ok(Self { database, rows })
        };
        // Some octets of a journal that were not written so end in a failed assertion.
        match catch_unwind(AssertUnwindSafe(open)) {
            Ok(opened) => opened.map_err(not_opened),
            Err(_) => Err(MetaError::Damaged("the engine panics".to_owned())),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, MetaError> {
        let value = self.rows.get(key).map_err(failed)?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn number(&self, key: &[u8]) -> Result<u64, MetaError> {
        let value = self.get(key)?;
        let octets = value.as_deref().and_then(<[u8]>::first_chunk);
        Ok(octets.map_or(0, |octets| u64::from_le_bytes(*octets)))
    }

    /// Gathers the rows of a batch; what is gathered later counts.
    fn gather(&self, rows: &mut Gathered, batch: &Batch, found: u64) -> Result<(), MetaError> {
        if batch.expected != found {
            return Err(MetaError::Conflict {
                partition: batch.partition.clone(),
                found,
                expected: batch.expected,
            });
        }
        let partition = batch.partition.encode();
        if batch.clear {
            for (_, value) in rows.range_mut(partition.clone()..behind(partition.clone())) {
                *value = None;
            }
            for row in self.rows.prefix(&partition) {
                rows.insert(row.key().map_err(failed)?.to_vec(), None);
            }
        }
        let mut change = |partition: &[u8], row: &RowChange| {
            rows.insert([partition, &row.key].concat(), row.value.clone());
        };
        batch.rows.iter().for_each(|row| change(&partition, row));
        for (other, row) in &batch.hints {
            change(&other.encode(), row);
        }
        rows.insert(partition, Some(batch.version.to_le_bytes().to_vec()));
        Ok(())
    }
}

/// Rows by their whole key: a write of the engine may name a key only once.
type Gathered = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The first key behind all keys that begin with `prefix`.
fn behind(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            break;
        }
    }
    prefix
}

impl MetaEngine for FjallMeta {
    fn version(&self, partition: &Partition) -> Result<u64, MetaError> {
        self.number(&partition.encode())
    }

    fn row(&self, partition: &Partition, key: &[u8]) -> Result<Option<Vec<u8>>, MetaError> {
        self.get(&[&partition.encode(), key].concat())
    }

    fn scan_after(
        &self,
        partition: &Partition,
        prefix: &[u8],
        after: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), MetaError> {
        let partition = partition.encode();
        let all = [&partition, prefix].concat();
        let end = behind(all.clone());
        // The smallest key above another key has one octet more.
        let from = match after.is_empty() {
            true => all,
            false => all.max([&partition, after, &[0]].concat()),
        };
        if from >= end {
            return Ok(());
        }
        for row in self.rows.range(from..end) {
            let (key, value) = row.into_inner().map_err(failed)?;
            let key = key.get(partition.len()..).unwrap_or_default();
            if !key.is_empty() && !visit(key, &value) {
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
        let mut from = after.map_or_else(|| vec![1], |after| behind(after.encode()));
        let mut partitions = Vec::new();
        while partitions.len() < limit && !from.is_empty() {
            let Some(row) = self.rows.range(from.clone()..).next() else {
                break;
            };
            let key = row.key().map_err(failed)?;
            let Some((partition, _)) = Partition::decode(&key) else {
                return Err(MetaError::Failed("a row of no partition".to_owned()));
            };
            from = behind(partition.encode());
            partitions.push(partition);
        }
        Ok(partitions)
    }

    fn apply(&mut self, batches: &[Batch], upto: u64) -> Result<(), MetaError> {
        let mut rows = Gathered::new();
        let mut versions = HashMap::new();
        for batch in batches {
            let found = match versions.get(&batch.partition) {
                Some(version) => *version,
                None => self.version(&batch.partition)?,
            };
            versions.insert(&batch.partition, found.max(batch.version));
            if batch.version > found {
                self.gather(&mut rows, batch, found)?;
            }
        }
        rows.insert(APPLIED.to_vec(), Some(upto.to_le_bytes().to_vec()));
        let mut write = self.database.batch();
        for (key, value) in rows {
            match value {
                Some(value) => write.insert(&self.rows, key, value),
                None => write.remove(&self.rows, key),
            }
        }
        write.commit().map_err(failed)
    }

    fn remove_hints(&mut self, hints: &[(Partition, Vec<u8>)]) -> Result<(), MetaError> {
        let mut write = self.database.batch();
        for (partition, key) in hints {
            write.remove(&self.rows, [&partition.encode(), key.as_slice()].concat());
        }
        write.commit().map_err(failed)
    }

    fn applied(&self) -> Result<u64, MetaError> {
        self.number(APPLIED)
    }

    fn persist(&mut self) -> Result<(), MetaError> {
        self.database.persist(PersistMode::SyncAll).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
