//! How a node gets everything a group holds while the group goes on.
//!
//! The owner tells the node to drop its content (RESET) and sends the group's changes from there
//! on, as to any other replica. In between the node gets the older content, in blocks read from a
//! full replica. A block read from the source after change Y enters the node's stream exactly after
//! Y, so the stream pauses at Y until the block has arrived. The node ignores changes of records
//! that were not copied yet. A record that moves from an uncopied part to a copied part is copied
//! again from its new place: the cursor of the target queue goes back.
//!
//! A node that was only absent needs no copies: it gets the changes from its progress on
//! (`absence`).

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use vere_spoolwire::{QueueId, QueueStat, RecordId, Seq, Txn};

use super::changes::What;
use vere_spoolwire::{Block, Operation};

/// Maximum number of records of a block.
const BLOCK_RECORDS: u32 = 4096;
/// Approximate size of a block, in octets.
const BLOCK_OCTETS: u32 = 2 << 20;
/// Output backlog above which the owner requests no further block, in octets.
const OUTPUT_MAX: usize = 4 << 20;

/// A node on the way to a full replica.
#[derive(Debug)]
pub(super) struct Rebuild {
    step: Step,
    /// Last change that the stream may send for now.
    hold: Option<Txn>,
    /// Next record to copy, for each queue that is not completely copied.
    cursors: BTreeMap<QueueId, RecordId>,
    /// First queue number not listed yet.
    unlisted: Option<QueueId>,
    /// Replicas that served copies, each with the change behind its last copy.
    sources: BTreeMap<usize, Txn>,
    /// Replicas that did not answer in time.
    late: BTreeSet<usize>,
    /// Outstanding read from the source.
    asked: Option<Seq>,
    /// Answer of the source, to be inserted into the stream at `hold`.
    copied: Option<Copied>,
    /// Number of copied records.
    pub(super) records: u64,
}

#[derive(Debug)]
enum Step {
    Copying,
    /// Everything is copied; the node must confirm that its content is safe.
    Completing(Seq),
    /// The node has confirmed and holds everything.
    Complete,
}

#[derive(Debug)]
enum Copied {
    Queues(Vec<QueueStat>, bool),
    /// `None`: the queue no longer exists.
    Records(QueueId, Option<Block>),
}

impl Rebuild {
    fn new(at: Txn) -> Self {
        Self {
            hold: Some(at),
            unlisted: Some(QueueId(0)),
            ..Self::of_nothing()
        }
    }

    /// Creates a rebuild without copies: the node lacks only the missed changes.
    const fn of_nothing() -> Self {
        Self {
            step: Step::Copying,
            hold: None,
            cursors: BTreeMap::new(),
            unlisted: None,
            sources: BTreeMap::new(),
            late: BTreeSet::new(),
            asked: None,
            copied: None,
            records: 0,
        }
    }

    /// Whether the node holds everything and counts.
    pub(super) const fn is_complete(&self) -> bool {
        matches!(self.step, Step::Complete)
    }

    /// Last change that the stream may send.
    pub(super) fn limit(&self, submitted: Txn) -> Txn {
        self.hold.map_or(submitted, |hold| hold.min(submitted))
    }

    /// Whether a copy was taken from a replica behind an undecided change. The replica may have
    /// refused a change that the other members executed, and then leaves.
    pub(super) fn depends_on(&self, source: usize, decided: Txn) -> bool {
        self.sources.get(&source).is_some_and(|at| *at > decided)
    }

    /// Drops the outstanding read after the loss of the source.
    pub(super) fn source_lost(&mut self, seq: Seq) {
        if self.asked == Some(seq) {
            self.asked = None;
        }
    }

    /// Drops the outstanding read of a slow source; the next read prefers another replica.
    pub(super) fn source_late(&mut self, seq: Seq, source: usize) {
        self.source_lost(seq);
        self.late.insert(source);
    }

    fn is_copied(&self, queue: QueueId, id: RecordId) -> bool {
        let listed = self.unlisted.is_none_or(|unlisted| queue < unlisted);
        listed && self.cursors.get(&queue).is_none_or(|cursor| id < *cursor)
    }

    /// Tracks a change sent to the node: a record moved from an uncopied part to a copied part is
    /// copied again at its target.
    pub(super) fn note(&mut self, what: &What) {
        let What::Batch { batch, ids } = what else {
            return;
        };
        let mut made = ids.iter();
        for operation in batch.operations() {
            match operation {
                Operation::Put { .. } => {
                    made.next();
                }
                Operation::Move { queue, id, to, .. } => {
                    let Some(to_id) = made.next() else { return };
                    if !self.is_copied(*queue, *id) && self.is_copied(*to, *to_id) {
                        self.cursors.insert(*to, *to_id);
                    }
                }
                Operation::Delete { .. } | Operation::Replace { .. } => {}
            }
        }
    }
}
