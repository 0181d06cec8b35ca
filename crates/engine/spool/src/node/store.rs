//! The queues of one group and the segments of their records.
//!
//! Storing a record notes the place of its PUT frame, without a copy. A record that has no such
//! frame (of a BATCH, with replaced metadata, or moved) has a `Side` with the places of its parts.

use std::collections::{BTreeMap, VecDeque};

use vere_spoolwire::{
    FRAME_MIN, HEADER_LEN, ITEM_HEADER_LEN, Mutation, NodeRefusal, QueueId, RecordId, TARGET_LEN,
    Txn,
};

use super::group_charter::GroupCharter;
use super::memory::Memory;
use super::outline::{Shape, sharers};
use super::place::{Piece, RecordPlace};
use super::queue::{Detail, Queue, Slot};
use super::segment::Segments;
use super::title::Title;

/// Octets of a PUT frame in addition to metadata and body.
pub(super) const RECORD_OVERHEAD: u64 = (FRAME_MIN + TARGET_LEN) as u64;

/// Places of the parts of an uncommon record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    pub(super) meta: Piece,
    /// Frame or item with the metadata.
    pub(super) meta_home: RecordPlace,
    pub(super) body: Piece,
    /// Number of records that came with this body; each counts an equal share of its octets.
    shares: u32,
    /// Whether `renamed` has entries for this record.
    renamed: bool,
}

/// A record's name within the group.
pub(super) type Name = (QueueId, RecordId);

/// The queues of one group.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) segments: Segments,
    pub(super) processed: Txn,
    /// Owner and epoch of the transactions.
    pub(super) title: Title,
    /// Account and charter of the group.
    pub(super) group_charter: GroupCharter,
    /// Whether the group is incomplete on this node, during a rebuild from another node.
    pub(super) syncing: bool,
    /// Refusals of the last window.
    pub(super) refused: VecDeque<(Txn, NodeRefusal)>,
    pub(super) queues: Vec<Option<Queue>>,
    pub(super) by_name: BTreeMap<Box<str>, QueueId>,
    sides: Vec<Side>,
    sides_vacant: Vec<u32>,
    /// Current names of moved records, by the places of frames and items that have their old names.
    renamed: BTreeMap<RecordPlace, Name>,
    pub(super) records: u64,
    pub(super) octets: u64,
    pub(super) queues_max: usize,
    pub(super) batches: u64,
    pub(super) named: Vec<Name>,
    /// End of the last block read: a read from there on is probably one of a sequence.
    pub(super) read_through: Name,
}

impl Store {
    pub(super) fn new(queues_max: usize) -> Self {
        Self {
            queues_max,
            ..Self::default()
        }
    }

    pub(super) fn queue(&self, id: QueueId) -> Option<&Queue> {
        self.queues.get(id.0 as usize)?.as_ref()
    }

    #[inline]
    pub(super) fn queue_mut(&mut self, id: QueueId) -> Option<&mut Queue> {
        self.queues.get_mut(id.0 as usize)?.as_mut()
    }

    pub(super) fn queues(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.queues
            .iter()
            .enumerate()
            .filter_map(|(id, queue)| Some((QueueId(id as u32), queue.as_ref()?)))
    }

    pub(super) fn queue_count(&self) -> usize {
        self.by_name.len()
    }

    /// Removes every queue, record and refusal. The group is incomplete, and the next transaction
    /// follows `through`.
    pub(super) fn reset(&mut self, memory: &mut Memory, through: Txn) {
        memory.records -= self.records;
        memory.sides -= self.sides.len() as u64;
        let queues = self.queues.iter_mut().flatten();
        queues.for_each(|queue| queue.uncount(memory));
        self.segments.forget_all(memory);
        *self = Self {
            segments: std::mem::take(&mut self.segments),
            processed: through,
            title: self.title,
            group_charter: std::mem::take(&mut self.group_charter),
            syncing: true,
            ..Self::new(self.queues_max)
        };
    }

    /// Executes a mutation with its frame at `home`. Missing records and queues are ignored: a log
    /// without its oldest segments names such records, and a group in rebuild gets changes of
    /// queues not copied yet. `kept`: the frame comes from compaction, a replay or a rebuild, so
    /// the group may already have the record.
    pub(super) fn execute(
        &mut self,
        memory: &mut Memory,
        mutation: &Mutation<'_>,
        home: RecordPlace,
        kept: bool,
    ) {
        match mutation {
            Mutation::Change(change) => self.execute_one(memory, (*change).into(), home, kept),
            Mutation::Batch(changes) => {
                let shapes = changes.map(|(offset, change)| (offset, change.into()));
                self.batch(memory, shapes, home, kept);
            }
            Mutation::Create {
                queue,
                name,
                charter,
            } => self.create(memory, *queue, name, *charter, RecordId(1)),
            Mutation::KeptCreate {
                queue,
                name,
                charter,
                next,
            } => self.create(memory, *queue, name, *charter, RecordId(next.0.max(1))),
            Mutation::Purge {
                queue,
                through,
                drop,
            } => {
                self.purge(memory, *queue, *through, *drop);
            }
        }
    }

    /// Executes one change with a separate frame.
    pub(super) fn execute_one(
        &mut self,
        memory: &mut Memory,
        shape: Shape,
        home: RecordPlace,
        kept: bool,
    ) {
        let Shape::Put {
            queue,
            id,
            meta,
            body,
        } = shape
        else {
            self.change(memory, shape, home, home_piece(home));
            return;
        };
        if self.queue(queue).is_none() {
            return;
        }
        if kept {
            self.remove(memory, queue, id);
        }
        let len = meta + body.unwrap_or(0);
        let slot = Slot::new(home, len, Detail::Plain(meta));
        self.segments
            .retain(home.segment, u64::from(len) + RECORD_OVERHEAD);
        self.insert(memory, queue, id, slot);
    }

    /// Executes a batch of changes, given with the offsets of their items in the payload.
    pub(super) fn batch(
        &mut self,
        memory: &mut Memory,
        mut changes: impl Iterator<Item = (usize, Shape)> + Clone,
        home: RecordPlace,
        kept: bool,
    ) {
        let mut body = Piece { at: home, len: 0 };
        let mut shares = 0;
        while let Some((offset, shape)) = changes.next() {
            let home = home.piece(HEADER_LEN + offset, 0).at;
            let payload = home.piece(ITEM_HEADER_LEN, 0).at;
            let Shape::Put {
                queue,
                id,
                meta,
                body: own,
            } = shape
            else {
                self.change(memory, shape, home, payload);
                continue;
            };
            if kept {
                self.remove(memory, queue, id);
            }
            if let Some(own) = own {
                body = payload.piece(TARGET_LEN + meta as usize, own as usize);
                shares = sharers(changes.clone());
            }
            if self.queue(queue).is_none() {
                continue;
            }
            let meta = payload.piece(TARGET_LEN, meta as usize);
            let side = Side {
                meta,
                meta_home: home,
                body,
                shares,
                renamed: false,
            };
            self.hold(&side);
            let slot = Slot::new(home, meta.len + body.len, self.add_side(memory, side));
            self.insert(memory, queue, id, slot);
        }
    }

    /// Executes a REPLACE or MOVE, or a DELETE within a batch.
    fn change(
        &mut self,
        memory: &mut Memory,
        shape: Shape,
        home: RecordPlace,
        payload: RecordPlace,
    ) {
        match shape {
            Shape::Delete { queue, id } => {
                self.remove(memory, queue, id);
            }
            Shape::Replace { queue, id, meta } => {
                let meta = payload.piece(TARGET_LEN, meta as usize);
                self.replace(memory, queue, id, meta, home);
            }
            Shape::Move {
                queue,
                id,
                to,
                to_id,
                meta,
            } => {
                let meta = meta.map(|meta| payload.piece(2 * TARGET_LEN, meta as usize));
                self.rename(memory, (queue, id), (to, to_id));
                if let Some(meta) = meta {
                    self.replace(memory, to, to_id, meta, home);
                }
            }
            Shape::Put { .. } => {}
        }
    }

    fn replace(
        &mut self,
        memory: &mut Memory,
        queue: QueueId,
        id: RecordId,
        meta: Piece,
        home: RecordPlace,
    ) {
        let Some(slot) = self.queue(queue).and_then(|queue| queue.slot(id)) else {
            return;
        };
        let side = self.with_side(memory, queue, id, slot);
        let old = self.sides[side];
        if old.renamed && old.meta_home != slot.home {
            self.renamed.remove(&old.meta_home);
        }
        self.segments.retain(meta.at.segment, u64::from(meta.len));
        self.segments
            .forget(memory, old.meta.at.segment, u64::from(old.meta.len));
        self.sides[side] = Side {
            meta,
            meta_home: home,
            ..old
        };
        let len = old.body.len + meta.len;
        self.octets = self.octets - u64::from(slot.len) + u64::from(len);
        if let Some(queue) = self.queue_mut(queue) {
            queue.resize(slot.len, len);
            if let Some(slot) = queue.slot_mut(id) {
                slot.len = len;
            }
        }
    }

    fn rename(&mut self, memory: &mut Memory, from: Name, to: Name) {
        let Some(slot) = self.queue(from.0).and_then(|queue| queue.slot(from.1)) else {
            self.skip(to);
            return;
        };
        if self.queue(to.0).is_none() {
            self.remove(memory, from.0, from.1);
            return;
        }
        let side = self.with_side(memory, from.0, from.1, slot);
        self.sides[side].renamed = true;
        let meta_home = self.sides[side].meta_home;
        let moved = self.queue_mut(from.0).and_then(|queue| {
            let moved = queue.remove(from.1);
            queue.count(memory);
            moved
        });
        if let (Some(slot), Some(queue)) = (moved, self.queue_mut(to.0)) {
            queue.insert(to.1, slot);
            queue.count(memory);
        }
        self.renamed.insert(slot.home, to);
        self.renamed.insert(meta_home, to);
    }

    /// Marks a number as used by a record that the log contains again further on.
    fn skip(&mut self, name: Name) {
        if let Some(queue) = self.queue_mut(name.0) {
            queue.next = queue.next.max(name.1.next().0);
        }
    }

    fn insert(&mut self, memory: &mut Memory, queue: QueueId, id: RecordId, slot: Slot) {
        self.records += 1;
        memory.records += 1;
        self.octets += u64::from(slot.len);
        if let Some(queue) = self.queue_mut(queue) {
            queue.insert(id, slot);
            queue.count(memory);
        }
    }

    /// Ends a record. Returns false for a missing record.
    pub(super) fn remove(&mut self, memory: &mut Memory, queue: QueueId, id: RecordId) -> bool {
        let Some(queue) = self.queue_mut(queue) else {
            return false;
        };
        let Some(slot) = queue.remove(id) else {
            return false;
        };
        queue.count(memory);
        self.forget(memory, slot);
        true
    }

    /// Releases the memory of a record that was removed from its queue.
    #[inline(always)]
    pub(super) fn forget(&mut self, memory: &mut Memory, slot: Slot) {
        self.records -= 1;
        memory.records -= 1;
        self.octets -= u64::from(slot.len);
        match slot.detail() {
            Detail::Plain(_) => {
                let len = u64::from(slot.len) + RECORD_OVERHEAD;
                self.segments.forget(memory, slot.home.segment, len);
            }
            Detail::Side(index) => self.drop_side(memory, slot, index),
        }
    }

    #[cold]
    fn drop_side(&mut self, memory: &mut Memory, slot: Slot, index: u32) {
        let side = self.sides[index as usize];
        self.sides_vacant.push(index);
        if side.renamed {
            self.renamed.remove(&slot.home);
            self.renamed.remove(&side.meta_home);
        }
        self.segments
            .forget(memory, side.meta.at.segment, u64::from(side.meta.len));
        self.segments
            .forget(memory, side.body.at.segment, body_cost(&side));
    }

    fn hold(&mut self, side: &Side) {
        self.segments.retain(side.body.at.segment, body_cost(side));
        self.segments
            .retain(side.meta.at.segment, u64::from(side.meta.len));
    }

    fn add_side(&mut self, memory: &mut Memory, side: Side) -> Detail {
        if let Some(index) = self.sides_vacant.pop() {
            self.sides[index as usize] = side;
            return Detail::Side(index);
        }
        self.sides.push(side);
        memory.sides += 1;
        Detail::Side(self.sides.len() as u32 - 1)
    }

    /// Returns the index of a record's side; a plain record gets a side.
    fn with_side(
        &mut self,
        memory: &mut Memory,
        queue: QueueId,
        id: RecordId,
        slot: Slot,
    ) -> usize {
        if let Detail::Side(index) = slot.detail() {
            return index as usize;
        }
        let (meta, body) = (self.meta(slot), self.body(slot));
        let side = Side {
            meta,
            meta_home: slot.home,
            body,
            shares: 1,
            renamed: false,
        };
        self.hold(&side);
        let len = u64::from(slot.len) + RECORD_OVERHEAD;
        self.segments.forget(memory, slot.home.segment, len);
        let detail = self.add_side(memory, side);
        if let Some(slot) = self.queue_mut(queue).and_then(|queue| queue.slot_mut(id)) {
            *slot = Slot::new(slot.home, slot.len, detail);
        }
        match detail {
            Detail::Side(index) | Detail::Plain(index) => index as usize,
        }
    }

    /// Returns the place of a record's metadata.
    pub(super) fn meta(&self, slot: Slot) -> Piece {
        match slot.detail() {
            Detail::Plain(len) => slot.home.piece(HEADER_LEN + TARGET_LEN, len as usize),
            Detail::Side(index) => self.sides[index as usize].meta,
        }
    }

    /// Returns the place of a record's body.
    pub(super) fn body(&self, slot: Slot) -> Piece {
        match slot.detail() {
            Detail::Plain(len) => {
                let skip = HEADER_LEN + TARGET_LEN + len as usize;
                slot.home.piece(skip, (slot.len - len) as usize)
            }
            Detail::Side(index) => self.sides[index as usize].body,
        }
    }

    /// Returns the side of an uncommon record.
    pub(super) fn side(&self, slot: Slot) -> Option<&Side> {
        match slot.detail() {
            Detail::Plain(_) => None,
            Detail::Side(index) => self.sides.get(index as usize),
        }
    }

    #[cfg(test)]
    pub(super) fn renamed_len(&self) -> usize {
        self.renamed.len()
    }

    /// Returns the current name of a record whose frame or item at `home` has the name `name`.
    pub(super) fn name_now(&self, home: RecordPlace, name: Name) -> Name {
        self.renamed.get(&home).copied().unwrap_or(name)
    }
}

/// Returns the place of a frame's payload.
const fn home_piece(home: RecordPlace) -> RecordPlace {
    home.piece(HEADER_LEN, 0).at
}

fn body_cost(side: &Side) -> u64 {
    u64::from(side.body.len) / u64::from(side.shares.max(1)) + RECORD_OVERHEAD
}
