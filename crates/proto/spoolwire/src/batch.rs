//! Changes that an owner submits, and the results.

use bytes::Bytes;

use crate::{NodeRefusal, QueueId, RecordId, Txn};

/// One change of a queue. New records get their numbers when the change is submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Appends a record to a queue.
    Put {
        /// The queue.
        queue: QueueId,
        /// Replaceable metadata: at most [`crate::META_MAX`] octets.
        meta: Bytes,
        /// Immutable body; `None`: the body of the preceding PUT of this batch.
        body: Option<Bytes>,
    },
    /// Ends a record.
    Delete {
        /// The queue.
        queue: QueueId,
        /// The record.
        id: RecordId,
    },
    /// Replaces the metadata of a record.
    Replace {
        /// The queue.
        queue: QueueId,
        /// The record.
        id: RecordId,
        /// The new metadata.
        meta: Bytes,
    },
    /// Takes a record with its body out of its queue and appends it to another queue.
    Move {
        /// Source queue.
        queue: QueueId,
        /// Number in the source queue.
        id: RecordId,
        /// Target queue.
        to: QueueId,
        /// New metadata, or `None` to keep the old metadata.
        meta: Option<Bytes>,
    },
}

/// Changes that happen all or not at all, under one transaction number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    operations: Vec<Operation>,
}

impl Batch {
    /// Creates an empty batch.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            operations: Vec::new(),
        }
    }

    /// Appends a record to a queue. A body in the same memory as the body of the preceding PUT is
    /// sent and stored once.
    pub fn put(&mut self, queue: QueueId, meta: Bytes, body: Bytes) -> &mut Self {
        let last = self
            .operations
            .iter()
            .rev()
            .find_map(|operation| match operation {
                Operation::Put {
                    body: Some(body), ..
                } => Some(body),
                _ => None,
            });
        let same = last.is_some_and(|last| {
            !body.is_empty() && last.as_ptr() == body.as_ptr() && last.len() == body.len()
        });
        let body = if same { None } else { Some(body) };
        self.operations.push(Operation::Put { queue, meta, body });
        self
    }

    /// Ends a record.
    pub fn delete(&mut self, queue: QueueId, id: RecordId) -> &mut Self {
        self.operations.push(Operation::Delete { queue, id });
        self
    }

    /// Replaces the metadata of a record.
    pub fn replace(&mut self, queue: QueueId, id: RecordId, meta: Bytes) -> &mut Self {
        self.operations.push(Operation::Replace { queue, id, meta });
        self
    }

    /// Moves a record to the end of another queue, which assigns a new number.
    pub fn move_to(
        &mut self,
        queue: QueueId,
        id: RecordId,
        to: QueueId,
        meta: Option<Bytes>,
    ) -> &mut Self {
        self.operations.push(Operation::Move {
            queue,
            id,
            to,
            meta,
        });
        self
    }

    /// Whether the batch has no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Creates a batch of one change.
    #[must_use]
    pub fn of(operation: Operation) -> Self {
        Self {
            operations: vec![operation],
        }
    }

    /// Returns the changes in turn.
    #[must_use]
    pub fn into_operations(self) -> Vec<Operation> {
        self.operations
    }

    /// The changes in order.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Whether the batch adds records.
    #[must_use]
    pub fn has_puts(&self) -> bool {
        self.operations
            .iter()
            .any(|operation| matches!(operation, Operation::Put { .. }))
    }

    /// Counts the record numbers that the batch uses: one per PUT and MOVE.
    #[must_use]
    pub fn makes(&self) -> usize {
        let makes = |operation: &&Operation| {
            matches!(operation, Operation::Put { .. } | Operation::Move { .. })
        };
        self.operations.iter().filter(makes).count()
    }

    /// Whether the batch only adds records, so that undoing the batch loses no data.
    #[must_use]
    pub fn only_puts(&self) -> bool {
        self.operations
            .iter()
            .all(|operation| matches!(operation, Operation::Put { .. }))
    }
}

/// An acknowledged batch, safe at the node's level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// Transaction number.
    pub txn: Txn,
    /// Numbers of the new records, one per PUT and MOVE, in the order of the batch.
    pub ids: Vec<RecordId>,
}

/// A record as returned by a node, with verified checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Number in the queue.
    pub id: RecordId,
    /// Metadata as last replaced.
    pub meta: Bytes,
    /// Body.
    pub body: Bytes,
}

/// Consecutive records of one queue, beginning at the requested number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// The records; all share one allocation.
    pub records: Vec<Record>,
    /// First number of the next block.
    pub next: RecordId,
    /// Whether the queue holds no records from `next` on.
    pub end: bool,
}

/// Why a commit or a read did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpoolError {
    /// The nodes refused it: nothing changed.
    #[error("spool refused: {0}")]
    Refused(NodeRefusal),
    /// Not acknowledged in time. New records are taken back when they turn out to have arrived.
    #[error("spool did not acknowledge in time")]
    Timeout,
    /// Too much is waiting already, or the link has been down for longer than a commit may wait.
    #[error("spool takes no more now")]
    Busy,
    /// A batch without a change, or metadata or a name over its limit.
    #[error("change is empty or over a limit")]
    Invalid,
    /// The link was closed.
    #[error("link to the spool is closed")]
    Closed,
}
