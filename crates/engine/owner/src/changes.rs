//! Submitted changes: numbered, and kept until every replica that needs a change has acknowledged
//! it.

use std::collections::VecDeque;

use bytes::Bytes;
use vere_spoolwire::{
    Change, FRAME_MIN, KeptGrants, META_MAX, NAME_MAX, NodeRefusal, QueueCharter, QueueId,
    QueueLimits, RecordId, TARGET_LEN, Txn, encode_batch, encode_change, encode_create,
    encode_purge,
};

use super::config::SubmitError;
use vere_spoolwire::{Batch, Operation};

/// Frame limit until a node has announced its limit.
const FRAME_MAX_UNKNOWN: u32 = 1 << 20;

/// Approximate memory for a change in addition to its frame, in octets.
const ENTRY_LEN: usize = 256;

/// Long frames that are kept for the other replicas.
const FRAMES: usize = 2;

/// A change.
#[derive(Debug)]
pub(super) enum What {
    Batch {
        batch: Batch,
        ids: Vec<RecordId>,
    },
    Create {
        queue: QueueId,
        name: String,
        limits: QueueLimits,
        readers: KeptGrants,
    },
    Purge {
        queue: QueueId,
        through: RecordId,
        drop: bool,
    },
}

impl What {
    /// Whether the change ends or replaces exactly one existing record. Without the record the
    /// change has no effect, so a replica in rebuild ignores a refusal by the other replicas. A
    /// MOVE is not simple: a replica may refuse a MOVE for lack of space too, which does not count
    /// in a rebuild.
    pub(super) fn is_simple(&self) -> bool {
        let Self::Batch { batch, .. } = self else {
            return false;
        };
        let [operation] = batch.operations() else {
            return false;
        };
        matches!(
            operation,
            Operation::Delete { .. } | Operation::Replace { .. }
        )
    }

    /// Returns the new records of a batch that only adds records; undoing such a batch loses no
    /// data.
    pub(super) fn made(&self) -> Option<impl Iterator<Item = (QueueId, RecordId)>> {
        let Self::Batch { batch, ids } = self else {
            return None;
        };
        batch.only_puts().then(|| {
            let queues = batch
                .operations()
                .iter()
                .filter_map(|operation| match operation {
                    Operation::Put { queue, .. } => Some(*queue),
                    _ => None,
                });
            queues.zip(ids.iter().copied())
        })
    }
}

/// One change and the replicas' answers.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) what: What,
    /// Approximate length of the frame, in octets.
    pub(super) len: usize,
    /// Cumulative frame octets, up to and including this change.
    end: u64,
    /// Indexes of the replicas that refused the change, with reasons.
    pub(super) refused: Vec<(usize, NodeRefusal)>,
    /// The owner has decided that the change is refused.
    pub(super) void: bool,
    /// Change made by the owner: undoes records on a replica that another replica refused.
    pub(super) compensation: bool,
}

impl Entry {
    /// Whether a replica's answer differs for good from the decision; a compensation removes
    /// records that were put. A replica that is not `whole` may lack the record, so its refusal of
    /// a simple change does not differ.
    fn differs(&self, index: usize, whole: bool) -> bool {
        let refused = self.refused.iter().any(|(refuser, _)| *refuser == index);
        let passes = !whole && self.what.is_simple();
        let undone = self.void && (passes || self.what.made().is_some());
        refused != self.void && !undone && !self.compensation
    }
}

/// Changes in flight.
#[derive(Debug)]
pub(super) struct Changes {
    /// Whether record numbers of the queues are known.
    ready: bool,
    /// Number before the oldest change in memory.
    base: Txn,
    /// Cumulative octets up to `base`.
    base_end: u64,
    /// Last decided change: accepted or refused by the group.
    decided: Txn,
    /// Last change acknowledged to the caller, and the cumulative octets up to this change.
    acknowledged: Txn,
    acknowledged_end: u64,
    entries: VecDeque<Entry>,
    /// The last long frames.
    frames: VecDeque<(Txn, Bytes)>,
    /// Smallest frame limit of the nodes, once a node has announced its limit.
    frame_max: Option<u32>,
}

impl Changes {
    pub(super) const fn new() -> Self {
        Self {
            ready: false,
            base: Txn(0),
            base_end: 0,
            decided: Txn(0),
            acknowledged: Txn(0),
            acknowledged_end: 0,
            entries: VecDeque::new(),
            frames: VecDeque::new(),
            frame_max: None,
        }
    }

    /// Restarts the numbering after `processed`, with no change in flight.
    pub(super) fn restart(&mut self, processed: Txn) {
        self.entries.clear();
        self.frames.clear();
        (self.base, self.decided) = (processed, processed);
        self.acknowledge();
    }

    /// Accepts changes from now on: the queues are known.
    pub(super) const fn open(&mut self) {
        self.ready = true;
    }

    /// Lowers the frame limit to the limit of a node.
    pub(super) fn limit_frame(&mut self, len: u32) {
        self.frame_max = Some(self.frame_max.map_or(len, |least| least.min(len)));
    }

    /// Longest frame that every node accepts.
    pub(super) fn frame_max(&self) -> u32 {
        self.frame_max.unwrap_or(FRAME_MAX_UNKNOWN)
    }

    /// Last decided change.
    pub(super) const fn decided(&self) -> Txn {
        self.decided
    }

    pub(super) const fn acknowledged(&self) -> Txn {
        self.acknowledged
    }

    /// Number before the first change that can still be sent.
    pub(super) const fn base(&self) -> Txn {
        self.base
    }

    pub(super) fn submitted(&self) -> Txn {
        Txn(self.base.0 + self.entries.len() as u64)
    }

    fn index(&self, txn: Txn) -> Option<usize> {
        usize::try_from(txn.0.checked_sub(self.base.0)?.checked_sub(1)?).ok()
    }

    pub(super) fn get(&self, txn: Txn) -> Option<&Entry> {
        self.entries.get(self.index(txn)?)
    }

    pub(super) fn get_mut(&mut self, txn: Txn) -> Option<&mut Entry> {
        let index = self.index(txn)?;
        self.entries.get_mut(index)
    }

    /// Whether a replica's answer to a change after `from` and up to `until` differs from the
    /// decision.
    pub(super) fn differs(&self, from: Txn, until: Txn, index: usize, whole: bool) -> bool {
        let mut entries = (from.0 + 1..=until.0).filter_map(|txn| self.get(Txn(txn)));
        entries.any(|entry| entry.differs(index, whole))
    }

    /// Drops the refusals of a replica that will be refilled from the others.
    pub(super) fn forget_refusals(&mut self, index: usize) {
        for entry in &mut self.entries {
            entry.refused.retain(|(refuser, _)| *refuser != index);
        }
    }

    /// Cumulative frame octets, up to and including change `txn`.
    fn end_of(&self, txn: Txn) -> u64 {
        self.get(txn).map_or(self.base_end, |entry| entry.end)
    }

    /// Octets of the changes after `from`, up to and including `to`.
    pub(super) fn octets(&self, from: Txn, to: Txn) -> u64 {
        self.end_of(to).saturating_sub(self.end_of(from))
    }

    /// Octets of submitted changes without acknowledgement.
    pub(super) fn pending(&self) -> usize {
        self.end_of(self.submitted())
            .saturating_sub(self.acknowledged_end) as usize
    }

    /// Octets of memory for changes, including the overhead of each change.
    pub(super) fn kept(&self) -> u64 {
        let entries = (self.entries.len() * ENTRY_LEN) as u64;
        self.octets(self.base, self.submitted()) + entries
    }

    pub(super) const fn check_ready(&self) -> Result<(), SubmitError> {
        if self.ready {
            Ok(())
        } else {
            Err(SubmitError::Unknown)
        }
    }

    pub(super) fn check_name(&self, name: &str) -> Result<(), SubmitError> {
        self.check_ready()?;
        if (1..=NAME_MAX).contains(&name.len()) {
            Ok(())
        } else {
            Err(SubmitError::Invalid)
        }
    }

    pub(super) fn check(&self, batch: &Batch) -> Result<(), SubmitError> {
        self.check_ready()?;
        let long = batch.operations().iter().any(|operation| match operation {
            Operation::Put { meta, .. } | Operation::Replace { meta, .. } => meta.len() > META_MAX,
            Operation::Move { meta, .. } => meta.as_ref().is_some_and(|m| m.len() > META_MAX),
            Operation::Delete { .. } => false,
        });
        let orphan = batch
            .operations()
            .iter()
            .find_map(|operation| match operation {
                Operation::Put { body, .. } => Some(body.is_none()),
                _ => None,
            });
        let len = batch_len(batch);
        if batch.is_empty() || long || orphan == Some(true) || len > self.frame_max() as usize {
            return Err(SubmitError::Invalid);
        }
        Ok(())
    }

    /// Appends a change and returns its number.
    pub(super) fn push(&mut self, what: What, compensation: bool) -> Txn {
        let len = match &what {
            What::Batch { batch, .. } => batch_len(batch),
            What::Create { name, readers, .. } => {
                FRAME_MIN + 24 + name.len() + readers.get().octets().len()
            }
            What::Purge { .. } => FRAME_MIN + TARGET_LEN,
        };
        let end = self.end_of(self.submitted()) + len as u64;
        self.entries.push_back(Entry {
            what,
            len,
            end,
            refused: Vec::new(),
            void: false,
            compensation,
        });
        self.submitted()
    }

    /// Marks all changes up to `through` as decided.
    pub(super) fn decide(&mut self, through: Txn) {
        self.decided = self.decided.max(through);
    }

    /// Marks all decided changes as acknowledged to the caller.
    pub(super) fn acknowledge(&mut self) {
        self.acknowledged = self.decided;
        self.acknowledged_end = self.end_of(self.decided);
    }

    /// Removes the oldest change if it is decided and not above `needed`.
    pub(super) fn pop(&mut self, needed: Txn) -> Option<Entry> {
        if self.base >= needed.min(self.decided) {
            return None;
        }
        let entry = self.entries.pop_front()?;
        self.base = self.base.next();
        self.base_end = entry.end;
        self.frames.retain(|(txn, _)| *txn > self.base);
        Some(entry)
    }

    /// The frame of a long change. Replicas take the same changes soon after each other, and share the octets.
    pub(super) fn frame(&mut self, txn: Txn) -> Bytes {
        if let Some((_, frame)) = self.frames.iter().find(|(kept, _)| *kept == txn) {
            return frame.clone();
        }
        let mut frame = Vec::new();
        self.encode(txn, &mut frame);
        let frame = Bytes::from(frame);
        if self.frames.len() == FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((txn, frame.clone()));
        frame
    }

    /// Appends the frame of a change.
    pub(super) fn encode(&self, txn: Txn, out: &mut Vec<u8>) {
        if let Some(entry) = self.get(txn) {
            encode(out, txn, &entry.what);
        }
    }
}

/// Upper bound for the length of a batch's frame, in octets.
fn batch_len(batch: &Batch) -> usize {
    let change = |operation: &Operation| match operation {
        Operation::Put { meta, body, .. } => meta.len() + body.as_ref().map_or(0, |b| b.len()),
        Operation::Delete { .. } => 0,
        Operation::Replace { meta, .. } => meta.len(),
        Operation::Move { meta, .. } => TARGET_LEN + meta.as_ref().map_or(0, |meta| meta.len()),
    };
    let operations = batch.operations();
    FRAME_MIN
        + 8
        + operations
            .iter()
            .map(|o| change(o) + TARGET_LEN + 8)
            .sum::<usize>()
}

fn encode(out: &mut Vec<u8>, txn: Txn, what: &What) {
    match what {
        What::Create {
            queue,
            name,
            limits,
            readers,
        } => {
            let (limits, readers) = (*limits, readers.get());
            let charter = QueueCharter { limits, readers };
            encode_create(out, txn, *queue, name, charter);
        }
        What::Purge {
            queue,
            through,
            drop,
        } => encode_purge(out, txn, *queue, *through, *drop),
        What::Batch { batch, ids } => {
            if let [operation] = batch.operations() {
                let id = ids.first().copied().unwrap_or_default();
                encode_change(out, txn, &change(operation, id), 0);
                return;
            }
            let made = ids.iter().copied();
            let changes = batch.operations().iter().scan(made, |made, operation| {
                let makes = matches!(operation, Operation::Put { .. } | Operation::Move { .. });
                let id = if makes { made.next()? } else { RecordId(0) };
                Some(change(operation, id))
            });
            encode_batch(out, txn, changes, 0);
        }
    }
}

fn change(operation: &Operation, made: RecordId) -> Change<'_> {
    match operation {
        Operation::Put { queue, meta, body } => Change::Put {
            queue: *queue,
            id: made,
            meta,
            body: body.as_deref(),
        },
        Operation::Delete { queue, id } => Change::Delete {
            queue: *queue,
            id: *id,
        },
        Operation::Replace { queue, id, meta } => Change::Replace {
            queue: *queue,
            id: *id,
            meta,
        },
        Operation::Move {
            queue,
            id,
            to,
            meta,
        } => Change::Move {
            queue: *queue,
            id: *id,
            to: *to,
            to_id: made,
            meta: meta.as_deref(),
        },
    }
}
