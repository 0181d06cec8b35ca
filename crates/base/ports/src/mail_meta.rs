//! Where the mail store keeps its metadata: rows in partitions, changed by conditional batches.
//!
//! Cut so that a distributed engine can serve it (a partition is what such an engine keeps together,
//! a batch its conditional write), and an embedded one just as well. Nothing here is the only copy:
//! everything is replayed from the store's log, so an engine need not sync what it applies; it says
//! how far it got. The log is synced before an engine sees a batch, so it never runs ahead.

use std::fmt;

use crate::directory::AccountName;

/// What an engine keeps together and changes as one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Partition {
    /// An account: the list of its mailboxes and what belongs to no single one.
    Account(AccountName),
    /// A mailbox: its messages and counters.
    Mailbox(u64),
}

const ACCOUNT: u8 = b'a';
const MAILBOX: u8 = b'm';

impl Partition {
    /// Its octets: `a`, the name and a NUL, or `m` and the number, most significant octet first. None
    /// is the beginning of another one.
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

    /// Reads one at the beginning of `octets`; gives it and what follows.
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

/// A row that is written, or removed when it has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// Its key, unique in its partition, at most [`ROW_KEY_OCTETS_MAX`].
    pub key: Vec<u8>,
    /// Its value.
    pub value: Option<Vec<u8>>,
}

/// The longest key of a row.
pub const ROW_KEY_OCTETS_MAX: usize = 4096;

/// Changes of one partition that are made whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Which partition.
    pub partition: Partition,
    /// The version that the partition has before: the condition. 0 is that of an empty one.
    pub expected: u64,
    /// The version that it has afterwards; greater. It names the batch's place in the log.
    pub version: u64,
    /// All other rows go first.
    pub clear: bool,
    /// The rows, in no order, each key once.
    pub rows: Vec<RowChange>,
    /// Rows, of any partition, outside condition and version, which may be lost at any time.
    pub hints: Vec<(Partition, RowChange)>,
}

/// Why an engine did not do as asked. Always a local trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetaError {
    /// The engine's own words.
    Failed(String),
    /// What the engine wrote cannot be read any more, in its words. Everything in it can be had from the log.
    Damaged(String),
    /// A partition is not at the version that a batch expects: somebody else changed it.
    Conflict {
        /// The partition.
        partition: Partition,
        /// Its version.
        found: u64,
        /// The version the batch expects.
        expected: u64,
    },
}

impl fmt::Display for MetaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(reason) => write!(f, "metadata engine failed: {reason}"),
            Self::Damaged(reason) => write!(f, "metadata are damaged: {reason}"),
            Self::Conflict {
                partition,
                found,
                expected,
            } => write!(
                f,
                "{partition:?} is at version {found}, {expected} was expected"
            ),
        }
    }
}

impl std::error::Error for MetaError {}

/// Takes the rows of a scan: key and value. False ends the scan.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> bool + 'a;

/// An engine that keeps rows in partitions.
pub trait MetaEngine: fmt::Debug {
    /// The version of a partition; 0 when nothing was ever written to it.
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

    /// Those of them that sort behind a key; all of them when it is empty.
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

    /// Removes rows that were written as hints, by partition and key. After a crash they may be there again.
    ///
    /// # Errors
    ///
    /// [`MetaError`]; then nothing more may be applied until the engine is opened again.
    fn remove_hints(&mut self, hints: &[(Partition, Vec<u8>)]) -> Result<(), MetaError>;

    /// Applies batches in their order, and notes that everything before the position `upto` of the
    /// log is applied. After a crash any beginning of what was applied since the last
    /// [`MetaEngine::persist`] may be there, with the note that belongs to it.
    ///
    /// # Errors
    ///
    /// [`MetaError`]; then nothing more may be applied until the engine is opened again.
    fn apply(&mut self, batches: &[Batch], upto: u64) -> Result<(), MetaError>;

    /// Everything in the log before this position is applied.
    ///
    /// # Errors
    ///
    /// [`MetaError::Failed`].
    fn applied(&self) -> Result<u64, MetaError>;

    /// Makes what was applied last.
    ///
    /// # Errors
    ///
    /// [`MetaError::Failed`].
    fn persist(&mut self) -> Result<(), MetaError>;
}
