//! What an owner asks for, and what it gets back.

use bytes::Bytes;
use vere_spoolwire::{QueueId, RecordId, Txn};

/// One change of a queue. Record numbers of new records are given out when it is submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Appends a record to a queue.
    Put {
        /// The queue.
        queue: QueueId,
        /// What may be replaced later: at most [`vere_spoolwire::META_MAX`] octets.
        meta: Bytes,
        /// What stays as it is; `None`: the body of the last PUT before it in the same batch.
        body: Option<Bytes>,
    },
    /// Ends a record.
    Delete {
        /// The queue.
        queue: QueueId,
        /// The record.
        id: RecordId,
    },
    /// Gives a record other metadata.
    Replace {
        /// The queue.
        queue: QueueId,
        /// The record.
        id: RecordId,
        /// The new metadata.
        meta: Bytes,
    },
    /// Takes a record out of its queue and appends it to another, with its body.
    Move {
        /// The queue it leaves.
        queue: QueueId,
        /// Its number there.
        id: RecordId,
        /// The queue it goes to.
        to: QueueId,
        /// New metadata, if it changes.
        meta: Option<Bytes>,
    },
}

/// Changes that happen all or not at all, under one transaction number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    operations: Vec<Operation>,
}

impl Batch {
    /// No change yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            operations: Vec::new(),
        }
    }

    /// Appends a record to a queue. A body that is the very same memory as that of the PUT before
    /// travels and lies once.
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

    /// Gives a record other metadata.
    pub fn replace(&mut self, queue: QueueId, id: RecordId, meta: Bytes) -> &mut Self {
        self.operations.push(Operation::Replace { queue, id, meta });
        self
    }

    /// Moves a record to the end of another queue, where it gets a new number.
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

    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// One change.
    pub(super) fn of(operation: Operation) -> Self {
        Self {
            operations: vec![operation],
        }
    }

    /// The changes, each by itself.
    pub(super) fn into_operations(self) -> Vec<Operation> {
        self.operations
    }

    /// The changes in order.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Whether it adds records.
    #[must_use]
    pub fn has_puts(&self) -> bool {
        self.operations
            .iter()
            .any(|operation| matches!(operation, Operation::Put { .. }))
    }

    /// How many records get a number by it: one per PUT and MOVE.
    #[must_use]
    pub fn makes(&self) -> usize {
        let makes = |operation: &&Operation| {
            matches!(operation, Operation::Put { .. } | Operation::Move { .. })
        };
        self.operations.iter().filter(makes).count()
    }

    /// Whether it only adds records: nothing is lost when it is undone.
    #[must_use]
    pub fn only_puts(&self) -> bool {
        self.operations
            .iter()
            .all(|operation| matches!(operation, Operation::Put { .. }))
    }
}

/// An acknowledged batch: safe at the node's level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// Its transaction number.
    pub txn: Txn,
    /// The numbers of its new records, one per PUT and MOVE, in the order of the batch.
    pub ids: Vec<RecordId>,
}

/// A record as a node gives it back; its checksum was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number in its queue.
    pub id: RecordId,
    /// Its metadata as last replaced.
    pub meta: Bytes,
    /// Its body.
    pub body: Bytes,
}

/// Records of one queue in order, from where was asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// The records; they share one piece of memory.
    pub records: Vec<Record>,
    /// Where the next block begins.
    pub next: RecordId,
    /// Whether the queue holds nothing from `next` on.
    pub end: bool,
}
