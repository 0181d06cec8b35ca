//! Where the mail store keeps its metadata: rows in partitions, changed by conditional batches.
//!
//! The trait suits distributed engines (such an engine keeps a partition together, and applies a batch as a
//! conditional write) and embedded engines. An engine never has the only copy: all rows can be replayed from the
//! store's log. An engine therefore need not sync applied batches, and reports the applied position. The log is
//! synced before an engine sees a batch, so the engine never runs ahead of the log.

use std::fmt;

use crate::directory::AccountName;

/// The unit of storage and of atomic changes in an engine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Partition {
    /// An account: the list of its mailboxes, and rows outside single mailboxes.
    Account(AccountName),
    /// A mailbox: its messages and counters.
    Mailbox(u64),
}

const ACCOUNT: u8 = b'a';
const MAILBOX: u8 = b'm';

impl Partition {
    /// Encodes the partition: `a`, the name and a NUL, or `m` and the number, most significant octet first. No
    /// encoding is a prefix of another.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Account(name) => {
                let mut octets = vec![ACCOUNT];
                octets.extend_from_slice(name.to_string().as_bytes());
                octets.push(0);
                octets
            }
            Self::Mailbox(id) => {
                let mut octets = vec![MAILBOX];
                octets.extend_from_slice(&id.to_be_bytes());
                octets
            }
        }
    }

    /// Reads a partition at the beginning of `octets`; returns the partition and the remaining octets.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, rest) = octets.split_first()?;
        match *kind {
            ACCOUNT => {
                let end = rest.iter().position(|octet| *octet == 0)?;
                let name = std::str::from_utf8(rest.get(..end)?).ok()?;
                let name = AccountName::parse(name).ok()?;
                Some((Self::Account(name), rest.get(end + 1..)?))
            }
            MAILBOX => {
                let (id, rest) = rest.split_first_chunk()?;
                Some((Self::Mailbox(u64::from_be_bytes(*id)), rest))
            }
            _ => None,
        }
    }
}

/// A written row, or a removed row if the value is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// The key, unique in the partition, of at most [`ROW_KEY_OCTETS_MAX`] octets.
    pub key: Vec<u8>,
    /// The value.
    pub value: Option<Vec<u8>>,
}

/// The longest key of a row.
pub const ROW_KEY_OCTETS_MAX: usize = 4096;

/// An atomic change of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Which partition.
    pub partition: Partition,
    /// The condition: the version of the partition before the batch. An empty partition has version 0.
    pub expected: u64,
    /// The greater version of the partition after the batch: the position of the batch in the log.
    pub version: u64,
    /// Whether all existing rows are removed first.
    pub clear: bool,
    /// The rows, in no order, each key once.
    pub rows: Vec<RowChange>,
    /// Rows, of any partition, outside condition and version, which may be lost at any time.
    pub hints: Vec<(Partition, RowChange)>,
}

/// The reason for a failed engine operation; always a local fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// The engine's own error text.
    #[error("metadata engine failed: {0}")]
    Failed(String),
    /// The engine cannot read its data any more, with the engine's error text. All rows can be rebuilt from the log.
    #[error("metadata are damaged: {0}")]
    Damaged(String),
    /// The partition is not at the version that a batch expects: another writer changed the partition.
    #[error("{partition:?} is at version {found}, {expected} was expected")]
    Conflict {
        /// The partition.
        partition: Partition,
        /// The version of the partition.
        found: u64,
        /// The version expected by the batch.
        expected: u64,
    },
}

/// Receives the rows of a scan: key and value. False ends the scan.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> bool + 'a;

/// An engine that keeps rows in partitions.
pub trait MetaEngine: fmt::Debug {
    /// The version of a partition; 0 for a partition that was never written.
    ///
    /// # Errors
    ///
    /// [`MetaError::Failed`].
    fn version(&self, partition: &Partition) -> Result<u64, MetaError>;

    /// One row.
    ///
    /// # Errors
    ///
    /// [`MetaError::Failed`].
    fn row(&self, partition: &Partition, key: &[u8]) -> Result<Option<Vec<u8>>, MetaError>;

    /// The rows whose keys begin with `prefix`, sorted by key.
    ///
    /// # Errors
    ///
    /// [`MetaError::Failed`].
    fn scan(
        &self,
        partition: &Partition,
        prefix: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), MetaError> {
        self.scan_after(partition, prefix, &[], visit)
    }

    /// The rows of [`MetaEngine::scan`] whose keys sort after `after`; all rows if `after` is empty.
    ///
    /// # Errors
    ///
    /// [`MetaError::Failed`].
    fn scan_after(
        &self,
        partition: &Partition,
        prefix: &[u8],
        after: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), MetaError>;

    /// The partitions after one, in the order of their octets, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`MetaError::Failed`].
    fn partitions(
        &self,
        after: Option<&Partition>,
        limit: usize,
    ) -> Result<Vec<Partition>, MetaError>;

    /// Removes hint rows, by partition and key. A crash may bring the removed hints back.
    ///
    /// # Errors
    ///
    /// [`MetaError`]; the caller must then apply no further batch until the engine is opened again.
    fn remove_hints(&mut self, hints: &[(Partition, Vec<u8>)]) -> Result<(), MetaError>;

    /// Applies batches in order, and records `upto` as the applied position of the log. After a crash the engine may
    /// have any prefix of the batches applied since the last [`MetaEngine::persist`], with the matching applied
    /// position.
    ///
    /// # Errors
    ///
    /// [`MetaError`]; the caller must then apply no further batch until the engine is opened again.
    fn apply(&mut self, batches: &[Batch], upto: u64) -> Result<(), MetaError>;

    /// The position before which every batch of the log is applied.
    ///
    /// # Errors
    ///
    /// [`MetaError::Failed`].
    fn applied(&self) -> Result<u64, MetaError>;

    /// Persists the applied batches.
    ///
    /// # Errors
    ///
    /// [`MetaError::Failed`].
    fn persist(&mut self) -> Result<(), MetaError>;
}
