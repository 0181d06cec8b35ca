//! Compaction: rewrites the living records of a mostly dead segment, so that the segment can be
//! released.
//!
//! In memory any segment may be released; in the log only the oldest. Rewritten frames carry
//! [`FLAG_KEPT`]: a reader of the log may have seen the record already.

use vere_ports::spool_log::SpoolLog;
use vere_spoolwire::{
    Change, Changes, FLAG_KEPT, Frame, HEADER_LEN, Header, Mutation, encode_batch, encode_change,
};

use super::group::Group;
use super::journal::Urgency;
use super::memory::Memory;
use super::place::{Piece, RecordPlace, SegmentKey};
use super::queue::Slot;
use super::segment::{LIVE_PERCENT_MAX, Segment};
use super::store::{Name, Store};

/// Living content of a segment.
#[derive(Debug, Clone, Copy)]
enum Living {
    /// A record whose PUT lies in the segment.
    Record(Name),
    /// Metadata of a record whose PUT lies in another segment.
    Meta(Name),
}

/// Living share, in percent, up to which compaction rewrites a segment in memory;
/// [`LIVE_PERCENT_MAX`] applies when new records find no space.
const LIVE_PERCENT: u64 = 50;
/// Living share, in percent, up to which compaction rewrites a segment while memory is not scarce.
/// This happens once each time that no free segment is left. Otherwise a few long-lived messages
/// would keep each segment from reuse. Every page of a fresh segment costs a page fault, more than
/// scanning an old segment.
const LIVE_PERCENT_SPARE: u64 = 6;
/// Fill level, in thousandths, from which compaction treats memory as full. Nodes report their fill
/// level, and gateways may stop accepting mail before a node is completely full. Without this
/// margin compaction would then never use the higher limit.
const PRESSED: u64 = 850;
/// Maximum number of segments requested at once for absent metadata.
const ABSENT_WANTED: usize = 2;
/// Ratio of log length to living octets above which compaction shortens the log.
const LOG_FACTOR: u64 = 3;

impl<L: SpoolLog> Group<L> {
    /// Rewrites the living content of one segment, if a segment is worth the work. `log_spare`:
    /// octets of log that are always allowed.
    pub(super) fn compact(&mut self, memory: &mut Memory, log_spare: u64) -> bool {
        // Leave a damaged group unchanged: it may be the only copy.
        if self.given_up || !self.takes_input() {
            return false;
        }
        let Some(key) = self.worth_it(memory, log_spare) else {
            return false;
        };
        if !self.store.segments.is_resident(key) {
            if memory.has_room(2 * memory.segment_len as u64) {
                self.store.segments.want(key, false);
            }
            return false;
        }
        if self.keeper == Some(key) {
            self.keeper = None;
            self.store.segments.close(memory, key);
        }
        self.rewrite(memory, key)
    }

    fn worth_it(&mut self, memory: &Memory, log_spare: u64) -> Option<SegmentKey> {
        if let Some(journal) = self.journal() {
            let living = self.store.segments.live_octets();
            if journal.log.octets() > log_spare + living * LOG_FACTOR
                && let Some(key) = self.oldest_logged(journal.log.newest())
            {
                return Some(key);
            }
        }
        let most = if !memory.is_scarce() {
            if !memory.is_bare() {
                return None;
            }
            LIVE_PERCENT_SPARE
        } else if memory.is_full(0) || memory.fill() >= PRESSED {
            LIVE_PERCENT_MAX
        } else {
            LIVE_PERCENT
        };
        self.store.segments.thinnest(most)
    }

    /// Returns the segment with living content in the oldest part of the log, before log segment
    /// `newest`. The choice stays until the segment has no living content: rewritten frames go to
    /// the end of the log.
    fn oldest_logged(&mut self, newest: u64) -> Option<SegmentKey> {
        let tail = self.tail.segment;
        let holds = |key: SegmentKey, segment: &Segment| {
            segment.live > 0 && tail != Some(key) && segment.log_segment < newest
        };
        let segments = &self.store.segments;
        let still = self.oldest.filter(|(key, at)| {
            let segment = segments.find(*key);
            segment.is_some_and(|one| one.log_segment == *at && holds(*key, one))
        });
        self.oldest = still.or_else(|| {
            let all = segments.iter().filter(|(key, one)| holds(*key, one));
            let oldest = all.min_by_key(|(_, one)| one.log_segment);
            oldest.map(|(key, one)| (key, one.log_segment))
        });
        self.oldest.map(|(key, _)| key)
    }

    /// Rewrites the living content of a segment, except records that need an absent segment; they
    /// follow once that segment is in memory. Returns false if only such records are left.
    pub(super) fn rewrite(&mut self, memory: &mut Memory, key: SegmentKey) -> bool {
        let mut living = self.store.living(key);
        let before = living.len();
        self.store.leave_out_absent(memory, &mut living);
        let some = before == 0 || !living.is_empty();
        let mut rest = living.as_slice();
        let mut frame = Vec::new();
        let mut written = None;
        while let Some((&first, after)) = rest.split_first() {
            frame.clear();
            let count = self.store.encode_kept(key, first, after, &mut frame);
            rest = &rest[count..];
            if frame.is_empty() {
                continue;
            }
            let home = self.keep(memory, &frame, &mut written);
            let mutation = Frame::read(&frame, frame.len())
                .ok()
                .flatten()
                .and_then(|frame| Mutation::decode_logged(&frame).ok());
            if let Some(mutation) = mutation {
                self.store.execute(memory, &mutation, home, true);
            }
        }
        self.log_kept(written);
        some
    }

    /// Logs the frames that compaction wrote; their content was processed and logged before.
    fn log_kept(&mut self, written: Option<Piece>) {
        let journal = self.log.as_mut().filter(|journal| journal.is_active());
        if let (Some(piece), Some(journal)) = (written, journal) {
            let entry = self.store.segments.octets(piece);
            let waits = !journal.kept.is_empty();
            if waits || !journal.append(entry, self.acknowledged, Urgency::Lazy) {
                journal.kept.push(piece);
                self.store.segments.pin(piece.at.segment);
            }
        }
    }

    /// Writes a frame into the keeper segment. A full keeper is logged and replaced.
    fn keep(
        &mut self,
        memory: &mut Memory,
        frame: &[u8],
        written: &mut Option<Piece>,
    ) -> RecordPlace {
        let fits = |key: SegmentKey, store: &Store| {
            let segment = store.segments.at(key);
            segment.octets.len() - segment.fill >= frame.len()
        };
        let key = match self.keeper {
            Some(key) if fits(key, &self.store) => key,
            full => {
                self.log_kept(written.take());
                if let Some(full) = full {
                    self.store.segments.close(memory, full);
                }
                let log_segment = self.log_segment();
                self.store.segments.add(memory, frame.len(), log_segment)
            }
        };
        self.keeper = Some(key);
        let segment = self.store.segments.at_mut(key);
        let home = RecordPlace {
            segment: key,
            offset: segment.fill as u32,
        };
        segment.octets[segment.fill..segment.fill + frame.len()].copy_from_slice(frame);
        segment.fill += frame.len();
        match written {
            Some(piece) => piece.len += frame.len() as u32,
            None => *written = Some(home.piece(0, frame.len())),
        }
        home
    }
}

impl Store {
    /// Returns the living content of a segment, in the order of its offsets.
    fn living(&self, key: SegmentKey) -> Vec<Living> {
        let segment = self.segments.at(key);
        let mut living = Vec::new();
        let mut offset = 0;
        while offset < segment.fill {
            let rest = &segment.octets[offset..segment.fill];
            let header = Header::peek(rest, rest.len()).ok().flatten();
            let Some(frame) = header.and_then(|header| Frame::open_known(header, rest)) else {
                break;
            };
            let before = living.len();
            let home = RecordPlace {
                segment: key,
                offset: offset as u32,
            };
            match Mutation::decode_logged(&frame) {
                Ok(Mutation::Change(change)) => living.extend(self.lives(home, change)),
                Ok(Mutation::Batch(changes)) => self.living_items(home, changes, &mut living),
                _ => {}
            }
            // Frames had a valid checksum on arrival. Only frames to be rewritten with a new
            // checksum are verified again, as most frames are dead.
            if living.len() > before && !matches!(Frame::read(rest, rest.len()), Ok(Some(_))) {
                living.truncate(before);
                break;
            }
            offset += frame.header.len;
        }
        living
    }

    /// Removes records with metadata in absent segments from `living`, and requests some of these
    /// segments.
    fn leave_out_absent(&mut self, memory: &Memory, living: &mut Vec<Living>) {
        if !self.segments.is_any_away() {
            return;
        }
        let mut absent = Vec::new();
        living.retain(|living| {
            let (Living::Record(name) | Living::Meta(name)) = *living;
            let meta = self.named(name).map(|slot| self.meta(slot).at.segment);
            let key = meta.filter(|key| !self.segments.is_resident(*key));
            absent.extend(key);
            key.is_none()
        });
        let room = memory.has_room(2 * memory.segment_len as u64);
        for key in absent.into_iter().filter(|_| room).take(ABSENT_WANTED) {
            self.segments.want(key, false);
        }
    }

    fn living_items(&self, home: RecordPlace, changes: Changes<'_>, living: &mut Vec<Living>) {
        for (offset, change) in changes {
            let home = home.piece(HEADER_LEN + offset, 0).at;
            living.extend(self.lives(home, change));
        }
    }

    fn lives(&self, home: RecordPlace, change: Change<'_>) -> Option<Living> {
        let name = match change {
            Change::Put { queue, id, .. } | Change::Replace { queue, id, .. } => (queue, id),
            Change::Move { to, to_id, .. } => (to, to_id),
            Change::Delete { .. } => return None,
        };
        let name = self.name_now(home, name);
        let slot = self.named(name)?;
        if slot.home == home {
            return Some(Living::Record(name));
        }
        let side = self.side(slot)?;
        (side.meta_home == home).then_some(Living::Meta(name))
    }

    fn named(&self, name: Name) -> Option<Slot> {
        self.queue(name.0)?.slot(name.1)
    }

    fn kept_put(&self, name: Name, share: bool) -> Option<Change<'_>> {
        let slot = self.named(name)?;
        let (meta, body) = (self.segments.octets(self.meta(slot)), self.body(slot));
        let body = (!share).then(|| self.segments.octets(body));
        Some(Change::Put {
            queue: name.0,
            id: name.1,
            meta,
            body,
        })
    }

    /// Encodes the frame for `first` and the following records with the same body. Returns the
    /// number of encoded items.
    fn encode_kept(
        &self,
        key: SegmentKey,
        first: Living,
        after: &[Living],
        out: &mut Vec<u8>,
    ) -> usize {
        let txn = self.processed;
        let name = match first {
            Living::Meta(name) => {
                // Metadata in the record's own segment was rewritten with the record.
                let there = |slot: &Slot| self.meta(*slot).at.segment == key;
                if let Some(slot) = self.named(name).filter(there) {
                    let meta = self.segments.octets(self.meta(slot));
                    let change = Change::Replace {
                        queue: name.0,
                        id: name.1,
                        meta,
                    };
                    encode_change(out, txn, &change, FLAG_KEPT);
                }
                return 1;
            }
            Living::Record(name) => name,
        };
        let body = self.named(name).map(|slot| self.body(slot));
        let same = |living: &&Living| {
            matches!(living, Living::Record(other)
                if self.named(*other).map(|slot| self.body(slot)) == body)
        };
        let sharers = after.iter().take_while(same).count();
        if sharers == 0 {
            if let Some(put) = self.kept_put(name, false) {
                encode_change(out, txn, &put, FLAG_KEPT);
            }
            return 1;
        }
        let others = after[..sharers].iter().filter_map(|living| match living {
            Living::Record(name) => self.kept_put(*name, true),
            Living::Meta(_) => None,
        });
        let puts = self.kept_put(name, false).into_iter().chain(others);
        encode_batch(out, txn, puts.collect::<Vec<_>>().into_iter(), FLAG_KEPT);
        1 + sharers
    }
}
