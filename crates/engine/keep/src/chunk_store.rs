//! Chunks on the local disk, so that a file is fetched once.
//!
//! ```text
//! chunks   chunks-<number, 16 hexadecimal digits>, 16 MiB each: head of the mail (68) | frame, as sealed; one behind the other
//! index    a table of hints: mail id (16), at u32 -> number u64, offset u64, octets u32
//! ```
//!
//! The seal of an entry covers mail and place: octets from the disk are the chunk, or are recognised as damage, and the chunk is
//! fetched again. So nothing is synced, no start looks at the entries, and a failure of the disk is none of the volume. The file
//! without use for the longest time goes first.

use std::io;
use std::time::Duration;

use vere_ports::storage::{Storage, StorageFile};
use vere_units::Timestamp;

use super::hints::{HintTable, Part};
use crate::format::{HEAD_OCTETS, Keys, MailId, Place};
use crate::numbered::{name_of, numbers};

/// The beginning of the names of files.
const PREFIX: &str = "chunks-";

/// Octets of a file, but for the entry that crosses the bound.
const SEGMENT_OCTETS: u64 = 16 << 20;
/// Octets of the index for each file: 4,080 entries, enough for entries of 4 KiB.
const INDEX_OCTETS: u64 = 192 << 10;
/// The time without entries for a disk after a failure, such as a lack of room.
const REST: Duration = Duration::from_secs(600);
/// The name of the index.
const INDEX: &str = "index";

/// The chunks of a folder.
#[derive(Debug)]
pub struct ChunkStore<S: Storage> {
    storage: S,
    index: HintTable<S::File>,
    segments: Vec<Segment<S::File>>,
    next: u64,
    /// Counts uses.
    clock: u64,
    octets_max: u64,
    segment_max: u64,
    rests_until: Timestamp,
    hits: u64,
    misses: u64,
}

#[derive(Debug)]
struct Segment<F> {
    number: u64,
    file: F,
    octets: u64,
    used: u64,
}

/// Octets of a file.
#[derive(Debug, Clone)]
pub struct Span<F> {
    file: F,
    offset: u64,
    octets: u32,
    segment: u64,
}

impl<F: StorageFile> Span<F> {
    /// Reads the head of the mail and the frame.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut octets = vec![0; usize::try_from(self.octets).unwrap_or(0)];
        self.file.read_at(&mut octets, self.offset)?;
        Ok(octets)
    }

    /// Writes the head of the mail and the frame.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn write(&self, head: &[u8], frame: &[u8]) -> io::Result<()> {
        self.file.write_at([head, frame], self.offset)
    }
}

impl<S: Storage> ChunkStore<S> {
    /// Opens the store of a folder; absent if the disk fails.
    pub fn open(storage: &S, octets_max: u64, now: Timestamp) -> Option<Self> {
        let segment_max = SEGMENT_OCTETS.min(octets_max / 4).max(1);
        let files = octets_max.div_ceil(SEGMENT_OCTETS);
        let index = HintTable::open(storage, INDEX, files.saturating_mul(INDEX_OCTETS)).ok()?;
        let mut store = Self {
            storage: storage.clone(),
            index,
            segments: Vec::new(),
            next: 0,
            clock: 0,
            octets_max,
            segment_max,
            rests_until: now,
            hits: 0,
            misses: 0,
        };
        store.find_segments().ok()?;
        Some(store)
    }

    fn find_segments(&mut self) -> io::Result<()> {
        for number in numbers(&self.storage, PREFIX)? {
            let file = self.storage.open(&name_of(PREFIX, number))?;
            let octets = file.len()?;
            self.next = number.saturating_add(1);
            self.add(number, file, octets);
        }
        // A smaller bound than before.
        self.make_room(0)
    }

    fn add(&mut self, number: u64, file: S::File, octets: u64) {
        self.clock = self.clock.saturating_add(1);
        self.segments.push(Segment {
            number,
            file,
            octets,
            used: self.clock,
        });
    }

    /// Octets of all entries.
    #[must_use]
    pub fn octets(&self) -> u64 {
        let each = self.segments.iter().map(|segment| segment.octets);
        each.fold(0, u64::saturating_add)
    }

    /// Chunks found since the start of the mount, and chunks not found.
    #[must_use]
    pub const fn counts(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// Where an entry is.
    pub fn find(&mut self, keys: &Keys, mail: MailId, place: Place) -> Option<Span<S::File>> {
        let found = self.index.get(keys, &key_of(mail, place.at));
        let span = found.and_then(|value| self.span(&value, place));
        let count = if span.is_some() {
            &mut self.hits
        } else {
            &mut self.misses
        };
        *count = count.saturating_add(1);
        span
    }

    fn span(&mut self, value: &Part, place: Place) -> Option<Span<S::File>> {
        let (number, rest) = value.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let number = u64::from_le_bytes(*number);
        let octets = u32::from_le_bytes(*rest.first_chunk()?);
        if u64::from(octets) != entry_octets(place) {
            return None;
        }
        let mut segments = self.segments.iter_mut();
        let segment = segments.find(|segment| segment.number == number)?;
        self.clock = self.clock.saturating_add(1);
        segment.used = self.clock;
        Some(Span {
            file: segment.file.clone(),
            offset: u64::from_le_bytes(*offset),
            octets,
            segment: number,
        })
    }

    /// A found entry is damaged.
    pub fn is_damaged(&mut self, mail: MailId, at: u32) {
        self.hits = self.hits.saturating_sub(1);
        self.misses = self.misses.saturating_add(1);
        // Otherwise the next read finds the damage again.
        let _stays = self.index.remove(&key_of(mail, at));
    }

    /// Room for an entry.
    pub fn reserve(&mut self, place: Place, now: Timestamp) -> Option<Span<S::File>> {
        if now < self.rests_until {
            return None;
        }
        let octets = entry_octets(place);
        if octets > self.segment_max {
            return None;
        }
        if self.begin_if_full(octets).is_err() {
            self.rest(now);
            return None;
        }
        let segment = self.segments.last_mut()?;
        let span = Span {
            file: segment.file.clone(),
            offset: segment.octets,
            octets: u32::try_from(octets).ok()?,
            segment: segment.number,
        };
        segment.octets = segment.octets.saturating_add(octets);
        Some(span)
    }

    fn begin_if_full(&mut self, octets: u64) -> io::Result<()> {
        let is_full =
            |segment: &Segment<S::File>| segment.octets.saturating_add(octets) > self.segment_max;
        if !self.segments.last().is_none_or(is_full) {
            return Ok(());
        }
        self.make_room(self.segment_max)?;
        let number = self.next;
        let file = self.storage.create(&name_of(PREFIX, number))?;
        self.next = number.saturating_add(1);
        self.add(number, file, 0);
        Ok(())
    }

    /// Drops the files without use for the longest time, up to enough room.
    fn make_room(&mut self, octets: u64) -> io::Result<()> {
        let room = self.octets_max.saturating_sub(octets);
        while self.octets() > room
            && let Some(oldest) = self.segments.iter().min_by_key(|segment| segment.used)
        {
            let number = oldest.number;
            self.storage.remove(&name_of(PREFIX, number))?;
            self.segments.retain(|segment| segment.number != number);
        }
        Ok(())
    }

    /// An entry is written, or not.
    pub fn written(
        &mut self,
        keys: &Keys,
        (mail, at): (MailId, u32),
        span: &Span<S::File>,
        is_written: bool,
        now: Timestamp,
    ) {
        let mut value = Part::default();
        let (number, rest) = value.split_at_mut(8);
        number.copy_from_slice(&span.segment.to_le_bytes());
        let (offset, octets) = rest.split_at_mut(8);
        offset.copy_from_slice(&span.offset.to_le_bytes());
        octets.copy_from_slice(&span.octets.to_le_bytes());
        if !is_written || self.index.put(keys, &key_of(mail, at), &value).is_err() {
            self.rest(now);
        }
    }

    /// A disk with a failure gets no entries for a while; reads go on.
    fn rest(&mut self, now: Timestamp) {
        self.rests_until = now + REST;
    }
}

fn entry_octets(place: Place) -> u64 {
    u64::from(place.octets()).saturating_add(HEAD_OCTETS as u64)
}

/// Mail ids are hashes already.
fn key_of(mail: MailId, at: u32) -> Part {
    let mut key = Part::default();
    let (id, rest) = key.split_at_mut(16);
    id.copy_from_slice(&mail.0);
    // Chunks of a mail lie in several buckets.
    for (octet, of_at) in id.iter_mut().zip(at.to_le_bytes()) {
        *octet ^= of_at;
    }
    rest.copy_from_slice(&at.to_le_bytes());
    key
}
