//! What is submitted: kept until acknowledged, put into frames as far as the window allows.

use std::collections::VecDeque;

use vere_spoolwire::{
    Change, FRAME_MIN, META_MAX, NAME_MAX, QueueId, QueueLimits, RecordId, TARGET_LEN, Txn,
    WINDOW_TXNS_MAX, encode_batch, encode_change, encode_create, encode_purge,
};

use super::batch::{Batch, Operation};
use super::config::SubmitError;

/// Frames are made up to about so many octets ahead of what is written.
const OUTPUT_AHEAD: usize = 256 << 10;

/// Frame limit before a node has said its own.
const FRAME_MAX_UNKNOWN: u32 = 1 << 20;

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
    },
    Purge {
        queue: QueueId,
        through: RecordId,
        drop: bool,
    },
}

#[derive(Debug)]
struct Submitted {
    what: What,
    /// Octets of its frame, about.
    len: usize,
}

/// Changes and frames on their way to the node.
#[derive(Debug)]
pub(super) struct Outgoing {
    window: usize,
    frame_max: u32,
    /// Whether numbers are known.
    ready: bool,
    acknowledged: Txn,
    /// Changes after `acknowledged`.
    waiting: VecDeque<Submitted>,
    /// How many of them are in frames on this connection or processed.
    in_flight: usize,
    /// Octets of these.
    in_flight_octets: usize,
    pending: usize,
    out: Vec<u8>,
    out_sent: usize,
}

impl Outgoing {
    pub(super) const fn new(window: usize) -> Self {
        Self {
            window,
            frame_max: FRAME_MAX_UNKNOWN,
            ready: false,
            acknowledged: Txn(0),
            waiting: VecDeque::new(),
            in_flight: 0,
            in_flight_octets: 0,
            pending: 0,
            out: Vec::new(),
            out_sent: 0,
        }
    }

    pub(super) const fn acknowledged(&self) -> Txn {
        self.acknowledged
    }

    pub(super) fn submitted(&self) -> Txn {
        Txn(self.acknowledged.0 + self.waiting.len() as u64)
    }

    pub(super) const fn pending(&self) -> usize {
        self.pending
    }

    pub(super) const fn frame_max(&self) -> u32 {
        self.frame_max
    }

    pub(super) const fn set_frame_max(&mut self, frame_max: u32) {
        self.frame_max = frame_max;
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
        if batch.is_empty() || long || orphan == Some(true) || len > self.frame_max as usize {
            return Err(SubmitError::Invalid);
        }
        Ok(())
    }

    /// Takes a change and gives its number.
    pub(super) fn push(&mut self, what: What) -> Txn {
        let len = match &what {
            What::Batch { batch, .. } => batch_len(batch),
            What::Create { name, .. } => FRAME_MIN + 24 + name.len(),
            What::Purge { .. } => FRAME_MIN + TARGET_LEN,
        };
        self.pending += len;
        self.waiting.push_back(Submitted { what, len });
        self.submitted()
    }

    /// Appends a frame that is not a change.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.out);
    }

    /// Puts changes into frames while the window has room.
    pub(super) fn fill(&mut self) {
        let window_txns = (WINDOW_TXNS_MAX / 2) as usize;
        while let Some(change) = self.waiting.get(self.in_flight) {
            let ahead = self.out.len() - self.out_sent;
            let full = self.in_flight_octets + change.len > self.window && self.in_flight > 0;
            if full || self.in_flight >= window_txns || ahead >= OUTPUT_AHEAD {
                return;
            }
            let txn = Txn(self.acknowledged.0 + self.in_flight as u64 + 1);
            encode(&mut self.out, txn, &change.what);
            self.in_flight += 1;
            self.in_flight_octets += change.len;
        }
    }

    pub(super) fn output(&self) -> &[u8] {
        &self.out[self.out_sent..]
    }

    pub(super) fn sent(&mut self, count: usize) {
        self.out_sent += count;
        if self.out_sent == self.out.len() {
            self.out.clear();
            self.out.shrink_to(2 * OUTPUT_AHEAD);
            self.out_sent = 0;
        }
    }

    /// Everything up to a number is done with. It is not above what was submitted. `done` is told of
    /// each change.
    pub(super) fn acknowledge(&mut self, through: Txn, mut done: impl FnMut(Txn, &What)) {
        while self.acknowledged < through {
            let Some(change) = self.waiting.pop_front() else {
                return;
            };
            self.acknowledged = self.acknowledged.next();
            self.pending -= change.len;
            if self.in_flight > 0 {
                self.in_flight -= 1;
                self.in_flight_octets -= change.len;
            }
            done(self.acknowledged, &change.what);
        }
    }

    /// The connection is gone: everything waits again.
    pub(super) fn rewind(&mut self) {
        (self.in_flight, self.in_flight_octets) = (0, 0);
        self.out.clear();
        self.out_sent = 0;
    }

    /// The node has processed up to this number; the rest is to be sent.
    pub(super) fn resume(&mut self, processed: Txn) {
        let done = processed.0.saturating_sub(self.acknowledged.0) as usize;
        self.in_flight = done.min(self.waiting.len());
        self.in_flight_octets = self
            .waiting
            .iter()
            .take(self.in_flight)
            .map(|change| change.len)
            .sum();
    }

    /// The node's memory is another one: what was submitted is void, and numbers begin after this.
    pub(super) fn restart(&mut self, processed: Txn) {
        self.waiting.clear();
        (self.in_flight, self.in_flight_octets, self.pending) = (0, 0, 0);
        (self.acknowledged, self.ready) = (processed, true);
    }
}

/// Octets of a batch's frame, at most.
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
        } => encode_create(out, txn, *queue, name, *limits),
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
