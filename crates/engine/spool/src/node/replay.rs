//! Restoring queues from a log.

use vere_ports::spool_log::{LogOutliner, LogReader, LogStretch, OutlinedEntry, UnreadableEntry};
use vere_spoolwire::{
    FLAG_KEPT, Frame, Header, Incarnation, Mutation, Op, QUEUES_MAX, Request, Txn, WireError,
    decode_chartered, decode_owned, decode_refused, decode_reset,
};

use super::group_charter::GroupCharter;
use super::ingest::Tail;
use super::memory::Memory;
use super::outline::{OUTLINER, Shape, Sketch, Sketches, outline_frame};
use super::place::{RecordPlace, SegmentKey};
use super::snapshot;
use super::spill::Spill;
use super::store::Store;
use super::title::Title;

/// Rebuilds one group from the entries of its log.
#[derive(Debug)]
pub struct Replay<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) store: Store,
    pub(super) tail: Tail,
    pub(super) incarnation: Incarnation,
    pub(super) begun: bool,
    /// The last frame was a RESET: the next head describes the group.
    pub(super) reset: bool,
    /// Store for segments that find no memory.
    pub(super) spill: Option<&'a mut Spill>,
    /// Index of the group.
    pub(super) index: usize,
    /// Segment of the entries last left in the log; adjacent entries extend it.
    pub(super) stretch: Option<SegmentKey>,
}

impl LogReader for Replay<'_> {
    fn outliner(&self) -> Option<LogOutliner> {
        // Entries may stay in the log only if a spill store is there to read them back.
        self.spill.as_ref().map(|_| OUTLINER)
    }

    fn outline(&mut self, entry: OutlinedEntry, outline: &[u8]) -> Result<(), UnreadableEntry> {
        let mut home = self.leave(entry);
        for next in Sketches(outline) {
            let (header, sketch) = next.map_err(unreadable)?;
            self.sketch(header, sketch, &mut |_| home)?;
            home = home.piece(header.len, 0).at;
        }
        Ok(())
    }

    fn head(&mut self, _: u64, head: &[u8]) -> Result<(), UnreadableEntry> {
        self.end_stretch();
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
        self.store.group_charter = snapshot.group_charter;
        self.store.syncing = snapshot.syncing;
        for (txn, refusal) in snapshot.refused {
            self.store.refuse(txn, refusal);
        }
        for queue in snapshot.queues {
            if queue.id.0 >= QUEUES_MAX {
                return Err(UnreadableEntry(format!("there is no queue {}", queue.id)));
            }
            let (name, charter) = (&queue.name, queue.charter());
            self.store
                .create(self.memory, queue.id, name, charter, queue.next);
        }
        Ok(())
    }

    fn entry(&mut self, segment: u64, entry: &[u8]) -> Result<(), UnreadableEntry> {
        self.end_stretch();
        let mut rest = entry;
        let mut outline = Vec::new();
        while !rest.is_empty() {
            let frame = Frame::read(rest, rest.len())
                .and_then(|frame| frame.ok_or(WireError::Checksum))
                .map_err(unreadable)?;
            let (octets, after) = rest.split_at(frame.header.len);
            outline.clear();
            outline_frame(&frame, octets, &mut outline).map_err(unreadable)?;
            for next in Sketches(&outline) {
                let (header, sketch) = next.map_err(unreadable)?;
                self.sketch(header, sketch, &mut |replay| replay.place(segment, octets))?;
            }
            rest = after;
        }
        Ok(())
    }
}

fn unreadable(error: WireError) -> UnreadableEntry {
    UnreadableEntry(error.to_string())
}

impl Replay<'_> {
    /// Executes a frame of an outline. `place` returns the place of the frame, if needed.
    fn sketch(
        &mut self,
        header: Header,
        sketch: Sketch<'_>,
        place: &mut dyn FnMut(&mut Self) -> RecordPlace,
    ) -> Result<(), UnreadableEntry> {
        if header.op == Op::Reset
            && let Sketch::Whole(frame) = sketch
        {
            let through = decode_reset(&frame).map_err(unreadable)?;
            self.store.reset(self.memory, through);
            self.reset = true;
            return Ok(());
        }
        self.reset = false;
        let op = header.op;
        let kept =
            header.flags & FLAG_KEPT != 0 || matches!(op, Op::Owned | Op::Chartered | Op::Complete);
        let txn = Txn(header.number);
        let next = self.store.processed.next();
        if kept && txn != self.store.processed || !kept && txn != next {
            return Err(UnreadableEntry(format!(
                "transaction {txn} where {next} belongs"
            )));
        }
        if let Sketch::Whole(frame) = sketch
            && self.node_frame(&frame)?
        {
            return Ok(());
        }
        let reason = match sketch {
            Sketch::Change(shape) => self.misplaced(shape),
            Sketch::Batch(mut shapes) => shapes.find_map(|(_, shape)| self.misplaced(shape)),
            Sketch::Whole(_) => None,
        };
        if let Some(reason) = reason {
            return Err(UnreadableEntry(format!("{reason} at transaction {txn}")));
        }
        let home = place(self);
        self.store.processed = txn;
        let memory = &mut *self.memory;
        match sketch {
            Sketch::Change(shape) => self.store.execute_one(memory, shape, home, true),
            Sketch::Batch(shapes) => self.store.batch(memory, shapes, home, true),
            Sketch::Whole(frame) => {
                let mutation = Mutation::decode_logged(&frame).map_err(unreadable)?;
                self.store.execute(memory, &mutation, home, true);
            }
        }
        Ok(())
    }

    /// Executes a frame that the node itself logged; returns false for other frames.
    fn node_frame(&mut self, frame: &Frame<'_>) -> Result<bool, UnreadableEntry> {
        match frame.header.op {
            Op::Owned => {
                let (_, owner, epoch) = decode_owned(frame).map_err(unreadable)?;
                self.store.title = Title { owner, epoch };
            }
            Op::Chartered => {
                let (_, account, charter) = decode_chartered(frame).map_err(unreadable)?;
                self.store.group_charter = GroupCharter::new(account, charter);
            }
            Op::Complete => {
                Request::decode(frame).map_err(unreadable)?;
                self.store.syncing = false;
            }
            Op::Refused => {
                let (txn, refusal) = decode_refused(frame).map_err(unreadable)?;
                self.store.processed = txn;
                self.store.refuse(txn, refusal);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the reason why a change cannot put its record there.
    fn misplaced(&self, shape: Shape) -> Option<String> {
        match shape {
            Shape::Put { queue, id, .. }
            | Shape::Move {
                to: queue,
                to_id: id,
                ..
            } => {
                if self.store.queue(queue).is_none() && !self.store.syncing {
                    Some(format!("no queue {queue}"))
                } else if id.0 == u64::MAX {
                    // No number could follow the highest one, so owners never use it.
                    Some(format!("no record {id}"))
                } else {
                    None
                }
            }
            Shape::Delete { .. } | Shape::Replace { .. } => None,
        }
    }

    /// Puts a frame into memory.
    fn place(&mut self, segment: u64, octets: &[u8]) -> RecordPlace {
        if let Some(spill) = &mut self.spill {
            spill.relieve(self.memory, self.index, &mut self.store.segments);
        }
        self.tail
            .append(&mut self.store, self.memory, segment, octets)
    }

    /// Leaves an entry in the log, in one segment with the entries before if the length permits.
    /// Returns the place of the entry.
    fn leave(&mut self, entry: OutlinedEntry) -> RecordPlace {
        let segments = &mut self.store.segments;
        let joined = self
            .stretch
            .and_then(|key| segments.extend_logged(key, entry.len));
        if let Some(place) = joined {
            return place;
        }
        self.end_stretch();
        let stretch = LogStretch {
            segment: entry.segment,
            offset: entry.offset,
            position: entry.position,
            octets: entry.len,
        };
        let key = self.store.segments.add_logged(self.memory, stretch);
        self.stretch = Some(key);
        RecordPlace {
            segment: key,
            offset: 0,
        }
    }

    /// Closes the segment of the entries last left in the log.
    pub(super) fn end_stretch(&mut self) {
        if let Some(key) = self.stretch.take() {
            self.store.segments.close(self.memory, key);
        }
    }
}
