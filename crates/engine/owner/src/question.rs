//! Reads sent to nodes, and their purposes.

use vere_spoolwire::{QueueId, Request};
use vere_units::Timestamp;

/// Maximum number of queues in one request.
pub(super) const QUEUES_AT_ONCE: u32 = 4096;

/// Purpose of a read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// For the host.
    Caller,
    /// To learn names and numbers of queues.
    Learn,
    /// To rebuild this replica: list of queues.
    CopyQueues(usize),
    /// To rebuild this replica: records of a queue.
    CopyRecords(usize, QueueId),
}

/// A read without an answer.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) request: Request,
    pub(super) purpose: Purpose,
    /// The replica that received the request.
    pub(super) asked: Option<usize>,
    /// Time of the request.
    pub(super) asked_at: Timestamp,
}
