//! What nodes are asked, and for what.

use vere_spoolwire::{QueueId, Request};
use vere_units::Timestamp;

/// Queues asked for at once.
pub(super) const QUEUES_AT_ONCE: u32 = 4096;

/// For what something is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// The host asked.
    Caller,
    /// To know names and numbers.
    Learn,
    /// To rebuild this replica.
    CopyQueues(usize),
    /// To rebuild this replica: records of a queue.
    CopyRecords(usize, QueueId),
}

/// A read without an answer.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) request: Request,
    pub(super) purpose: Purpose,
    /// The replica that was asked.
    pub(super) asked: Option<usize>,
    /// When it was.
    pub(super) asked_at: Timestamp,
}
