//! From a log back to queues.

use vere_ports::spool_log::{LogReader, UnreadableEntry};
use vere_spoolwire::{
    Change, FLAG_KEPT, Frame, Incarnation, Mutation, Op, QUEUES_MAX, Request, Txn, WireError,
    decode_chartered, decode_owned, decode_refused, decode_reset,
};

use super::access::Deed;
use super::fence::Title;
use super::ingest::Tail;
use super::segment::{Memory, Place};
use super::snapshot;
use super::spill::Spill;
use super::store::Store;

/// Rebuilds one group from what its log gives back.
#[derive(Debug)]
pub struct Replay<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) store: Store,
    pub(super) tail: Tail,
    pub(super) incarnation: Incarnation,
    pub(super) begun: bool,
    /// Everything before was reset: the next head says what there is.
    pub(super) reset: bool,
    /// Takes what there is no memory for.
    pub(super) spill: Option<&'a mut Spill>,
    /// The number of the group.
    pub(super) index: usize,
}

impl LogReader for Replay<'_> {
    fn head(&mut self, _: u64, head: &[u8]) -> Result<(), UnreadableEntry> {
        let snapshot = snapshot::decode(head)?;
        if snapshot.incarnation != self.incarnation {
            let (there, here) = (snapshot.incarnation, self.incarnation);
            return Err(UnreadableEntry(format!(
                "segment of incarnation {there}, not {here}"
            )));
        }
        if self.begun && snapshot.processed != self.store.processed {
            return Err(UnreadableEntry(format!(
                "segment begins after transaction {}, the one before it ends with {}",
                snapshot.processed, self.store.processed
            )));
        }
        if self.begun && !self.reset {
            return Ok(());
        }
        self.begun = true;
        self.store.processed = snapshot.processed;
        self.store.title = snapshot.title;
        self.store.deed = snapshot.deed;
        self.store.syncing = snapshot.syncing;
        for (txn, refusal) in snapshot.refused {
            self.store.refuse(txn, refusal);
        }
        for queue in snapshot.queues {
            if queue.id.0 >= QUEUES_MAX {
                return Err(UnreadableEntry(format!("there is no queue {}", queue.id)));
            }
            self.store
                .create(queue.id, &queue.name, queue.limits, queue.next);
        }
        Ok(())
    }

    fn entry(&mut self, segment: u64, entry: &[u8]) -> Result<(), UnreadableEntry> {
        let mut rest = entry;
        while !rest.is_empty() {
            let frame = Frame::read(rest, rest.len())
                .and_then(|frame| frame.ok_or(WireError::Checksum))
                .map_err(|error| UnreadableEntry(error.to_string()))?;
            let (octets, after) = rest.split_at(frame.header.len);
            self.frame(segment, &frame, octets)?;
            rest = after;
        }
        Ok(())
    }
}

impl Replay<'_> {
    fn frame(
        &mut self,
        segment: u64,
        frame: &Frame<'_>,
        octets: &[u8],
    ) -> Result<(), UnreadableEntry> {
        let unreadable = |error: WireError| UnreadableEntry(error.to_string());
        let op = frame.header.op;
        if op == Op::Reset {
            let through = decode_reset(frame).map_err(unreadable)?;
            self.store.reset(self.memory, through);
            self.reset = true;
            return Ok(());
        }
        self.reset = false;
        let kept = frame.header.flags & FLAG_KEPT != 0
            || matches!(op, Op::Owned | Op::Chartered | Op::Complete);
        let txn = Txn(frame.header.number);
        let next = self.store.processed.next();
        if kept && txn != self.store.processed || !kept && txn != next {
            return Err(UnreadableEntry(format!(
                "transaction {txn} where {next} belongs"
            )));
        }
        if op == Op::Owned {
            let (_, owner, epoch) = decode_owned(frame).map_err(unreadable)?;
            self.store.title = Title { owner, epoch };
            return Ok(());
        }
        if op == Op::Chartered {
            let (_, account, charter) = decode_chartered(frame).map_err(unreadable)?;
            self.store.deed = Deed::new(account, charter);
            return Ok(());
        }
        if op == Op::Complete {
            Request::decode(frame).map_err(unreadable)?;
            self.store.syncing = false;
            return Ok(());
        }
        if op == Op::Refused {
            let (txn, refusal) = decode_refused(frame).map_err(unreadable)?;
            self.store.processed = txn;
            self.store.refuse(txn, refusal);
            return Ok(());
        }
        let mutation = Mutation::decode_logged(frame).map_err(unreadable)?;
        if let Some(reason) = self.misplaced(&mutation) {
            return Err(UnreadableEntry(format!("{reason} at transaction {txn}")));
        }
        let home = self.place(segment, octets);
        self.store.processed = txn;
        self.store.execute(self.memory, &mutation, home, true);
        Ok(())
    }

    /// Why a record cannot be put where a mutation wants it.
    fn misplaced(&self, mutation: &Mutation<'_>) -> Option<String> {
        let misplaced = |change: &Change<'_>| match *change {
            Change::Put { queue, id, .. }
            | Change::Move {
                to: queue,
                to_id: id,
                ..
            } => {
                if self.store.queue(queue).is_none() && !self.store.syncing {
                    Some(format!("no queue {queue}"))
                } else if id.0 == u64::MAX {
                    // None could come after it; no owner may ask for that.
                    Some(format!("no record {id}"))
                } else {
                    None
                }
            }
            Change::Delete { .. } | Change::Replace { .. } => None,
        };
        match mutation {
            Mutation::Change(change) => misplaced(change),
            Mutation::Batch(changes) => changes
                .into_iter()
                .find_map(|(_, change)| misplaced(&change)),
            Mutation::Create { .. } | Mutation::KeptCreate { .. } | Mutation::Purge { .. } => None,
        }
    }

    /// Puts a frame into memory.
    fn place(&mut self, segment: u64, octets: &[u8]) -> Place {
        if let Some(spill) = &mut self.spill {
            spill.relieve(self.memory, self.index, &mut self.store.segments);
        }
        self.tail
            .append(&mut self.store, self.memory, segment, octets)
    }
}
