//! How a node gets everything a group holds while the group goes on.
//!
//! The node is told to forget what it has (RESET) and gets the group's changes from there on like any
//! other replica. In between it gets what was there before, in blocks read from a full replica: a block
//! read from the source after change Y is put into the stream to the node exactly after Y, so the
//! stream is held at Y until the block is there. Changes of records that were not copied yet mean
//! nothing to the node. A record that moves from where was not copied yet to where was, is copied
//! again from there: that queue's cursor goes back.
//!
//! A node that was only away has nothing copied: it gets the changes from where it is (`absence`).

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use vere_spoolwire::{QueueId, QueueStat, RecordId, Seq, Txn};

use super::batch::{Block, Operation};
use super::changes::What;

/// Records of a block.
const BLOCK_RECORDS: u32 = 4096;
/// Octets of a block, about.
const BLOCK_OCTETS: u32 = 2 << 20;
/// With more octets than this waiting to be written no further block is asked for.
const OUTPUT_MAX: usize = 4 << 20;

/// A node on its way to be a full replica.
#[derive(Debug)]
pub(super) struct Rebuild {
    step: Step,
    /// The stream does not go beyond this change for now.
    hold: Option<Txn>,
    /// Where copying goes on, of queues that are not copied whole.
    cursors: BTreeMap<QueueId, RecordId>,
    /// Queues from this number on are not listed yet.
    unlisted: Option<QueueId>,
    /// Whom copies were taken from, and behind which change the last one.
    sources: BTreeMap<usize, Txn>,
    /// Who did not answer in time.
    late: BTreeSet<usize>,
    /// What was asked of the source.
    asked: Option<Seq>,
    /// What it answered, to be put into the stream at `hold`.
    copied: Option<Copied>,
    /// Records copied.
    pub(super) records: u64,
}

#[derive(Debug)]
enum Step {
    Copying,
    /// Everything is copied; the node was asked whether it is safe.
    Completing(Seq),
    /// It is: the node holds everything.
    Complete,
}

#[derive(Debug)]
enum Copied {
    Queues(Vec<QueueStat>, bool),
    /// `None`: the queue is gone.
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

    /// Nothing is to be copied: the node holds everything but the changes that it missed.
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

    /// How far the stream may go.
    pub(super) fn limit(&self, submitted: Txn) -> Txn {
        self.hold.map_or(submitted, |hold| hold.min(submitted))
    }

    /// Whether something was copied from a replica behind a change that is not decided. It may have
    /// refused what the others did, and then it leaves.
    pub(super) fn depends_on(&self, source: usize, decided: Txn) -> bool {
        self.sources.get(&source).is_some_and(|at| *at > decided)
    }

    /// The source is gone: what was asked of it will not be answered.
    pub(super) fn source_lost(&mut self, seq: Seq) {
        if self.asked == Some(seq) {
            self.asked = None;
        }
    }

    /// The source does not answer: another one is asked, if there is one.
    pub(super) fn source_late(&mut self, seq: Seq, source: usize) {
        self.source_lost(seq);
        self.late.insert(source);
    }

    fn is_copied(&self, queue: QueueId, id: RecordId) -> bool {
        let listed = self.unlisted.is_none_or(|unlisted| queue < unlisted);
        listed && self.cursors.get(&queue).is_none_or(|cursor| id < *cursor)
    }

    /// A change goes to the node: what it moves out of what was not copied is copied from where it goes.
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
