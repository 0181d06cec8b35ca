//! The index of a full segment of the spool's log, in place of which the segment would be read.
//!
//! The octets give the content of the index file: any payload with correct head and checksums, the true
//! payload with octets changed before or after the checksums, or arbitrary octets. The segment beside
//! the index is sound. So the log always opens; the outlines fill the segment; and an index without
//! correct checksums is never used. A node accepts or refuses a usable index.
//!
//! The format is implemented here a second time, from `docs/internals/spool-log.md`.

use std::path::Path;

use vere_disk::log::recover_log;
use vere_ports::spill::{SpillDone, SpillFull, SpillSlot, SpillStore};
use vere_ports::spool_log::{LogOutliner, LogReader, OutlinedEntry, UnreadableEntry};
use vere_spool::node::OUTLINER;

use crate::disk::Disk;
use crate::spool_log::{HEAD_LEN, LOG_ID, segment_name, two_segments};
use crate::spool_replay::{QUEUES, frames, head, restored};

const ENTRY_LEN: u64 = 36;
const INDEX_HEAD_LEN: usize = 68;
/// Where the payload of a head has the last transaction.
const LAST_TRANSACTION: std::ops::Range<usize> = 16..24;
/// The content of the segment, as in `spool_replay`: two records, one ended and one replaced, and a
/// BATCH of two records with the same body.
const FRAMES: &[u8] = b"\x21\0\x15\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0mbody\
      \x21\0\x15\0\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0mbody\
      \x22\0\x10\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\
      \x23\0\x13\0\0\0\0\x03\0\0\0\x02\0\0\0\0\0\0\0new";

pub(crate) const SEEDS: &[&[u8]] = &[
    // The index as written.
    b"\0",
    // Another record number, with correct checksums.
    b"\0\x28\0\x04",
    // A changed octet in the payload, or in the head.
    b"\x01\x50\0\x01",
    b"\x01\x08\0\x01",
    // A payload of one entry without frames.
    b"\x02\0\0\0\0\0\0\0\0",
    // No index at all.
    b"\x03VEREIDX\0\x01\0\0\0\x01\0\0\0",
];

/// Opens the log with the index.
pub(crate) fn open(octets: &[u8]) {
    let _ = is_believed(octets);
}

/// Whether the index was believed.
fn is_believed(octets: &[u8]) -> bool {
    let (log, truth) = Sound::new();
    let (how, rest) = crate::choice::choice(octets);
    let index = match how % 4 {
        0 => log.index(&edited(truth.clone(), rest)),
        1 => edited(log.index(&truth), rest),
        2 => log.index(rest),
        _ => rest.to_vec(),
    };
    let disk = log.disk();
    disk.put("0000000000000001.index", index.clone());
    let mut found = Checker::new(log.segment.len() as u64, log.end);
    if let Err(error) = recover_log(disk.clone(), Path::new("log"), &mut found) {
        panic!("a sound log does not open: {error}");
    }
    assert_eq!((found.position, found.segments), (log.end, 2));
    let believed = found.payload != truth;
    if believed {
        assert!(
            log.is_proven(&index),
            "an index that proves nothing is believed"
        );
        assert_eq!(found.payload, index[INDEX_HEAD_LEN..]);
    }
    // A sound index makes sense to the node; the node accepts or refuses any other index.
    let open = |replay: &mut dyn LogReader| recover_log(disk, Path::new("log"), replay);
    match restored(Box::new(Full), open) {
        Some(stats) => assert!(believed || stats[0].1.records == 1),
        None => assert!(believed, "a sound log is refused"),
    }
    believed
}

/// Changes octets: each edit is a place and a change.
fn edited(mut octets: Vec<u8>, mut edits: &[u8]) -> Vec<u8> {
    while let Some((&[low, high, change], rest)) = edits.split_first_chunk() {
        let at = usize::from(u16::from_le_bytes([low, high]));
        if let Some(octet) = octets.get_mut(at) {
            *octet ^= change;
        }
        edits = rest;
    }
    octets
}

/// A log with a full segment of known content.
struct Sound {
    entries: Vec<Vec<u8>>,
    /// The head of the second segment.
    second: Vec<u8>,
    segment: Vec<u8>,
    /// Where the next segment begins.
    end: u64,
}

impl Sound {
    /// With the payload of the correct index.
    fn new() -> (Self, Vec<u8>) {
        let mut entries: Vec<Vec<u8>> = Vec::new();
        let mut transactions = 0_u64;
        let made = frames(&[QUEUES, FRAMES].concat(), &mut |frame| {
            transactions += 1;
            // Several frames in each entry.
            match entries.last_mut().filter(|entry| entry.len() < 100) {
                Some(entry) => entry.extend_from_slice(frame),
                None => entries.push(frame.to_vec()),
            }
            Ok(())
        });
        assert!(made.is_ok());
        let mut truth = Vec::new();
        for entry in &entries {
            let mut outline = Vec::new();
            assert!((OUTLINER.outline)(entry, &mut outline).is_ok());
            truth.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            truth.extend_from_slice(&(outline.len() as u32).to_le_bytes());
            truth.extend_from_slice(&outline);
        }
        let end = entries.iter().map(|entry| ENTRY_LEN + entry.len() as u64);
        let end = end.sum();
        // The head records the last transaction before the segment.
        let mut second = head().to_vec();
        second[LAST_TRANSACTION].copy_from_slice(&transactions.to_le_bytes());
        let segment = two_segments([head(), &second], &entries).octets(&segment_name(1));
        let log = Self {
            entries,
            second,
            segment,
            end,
        };
        (log, truth)
    }

    fn disk(&self) -> Disk {
        two_segments([head(), &self.second], &self.entries)
    }

    /// The index file with this payload.
    fn index(&self, payload: &[u8]) -> Vec<u8> {
        let mut octets = b"VEREIDX\0".to_vec();
        octets.extend_from_slice(&1_u32.to_le_bytes());
        octets.extend_from_slice(&OUTLINER.version.to_le_bytes());
        for number in [LOG_ID, 1, 0, self.end, payload.len() as u64] {
            octets.extend_from_slice(&number.to_le_bytes());
        }
        octets.extend_from_slice(&vere_checksum::crc32(payload).to_le_bytes());
        octets.extend_from_slice(&vere_checksum::crc32(&self.segment[..HEAD_LEN]).to_le_bytes());
        octets.extend_from_slice(&vere_checksum::crc32(&octets).to_le_bytes());
        octets.extend_from_slice(payload);
        octets
    }

    /// Whether a file is an index of this segment with correct checksums.
    fn is_proven(&self, file: &[u8]) -> bool {
        let payload = file.get(INDEX_HEAD_LEN..);
        payload.is_some_and(|payload| self.index(payload) == file)
    }
}

/// Takes outlines, and checks that the outlines fill the first segment.
struct Checker {
    segment_len: u64,
    end: u64,
    position: u64,
    offset: u64,
    segments: u64,
    /// The outlines given out, in the form of an index.
    payload: Vec<u8>,
}

impl Checker {
    const fn new(segment_len: u64, end: u64) -> Self {
        Self {
            segment_len,
            end,
            position: 0,
            offset: 0,
            segments: 0,
            payload: Vec::new(),
        }
    }
}

impl LogReader for Checker {
    fn outliner(&self) -> Option<LogOutliner> {
        Some(OUTLINER)
    }

    fn outline(&mut self, entry: OutlinedEntry, outline: &[u8]) -> Result<(), UnreadableEntry> {
        assert_eq!((entry.segment, entry.position), (1, self.position));
        assert_eq!(entry.offset, self.offset);
        assert!(
            (OUTLINER.check)(outline, entry.len),
            "an outline that fits to nothing"
        );
        self.position += ENTRY_LEN + u64::from(entry.len);
        self.offset += ENTRY_LEN + u64::from(entry.len);
        assert!(self.offset <= self.segment_len && self.position <= self.end);
        self.payload.extend_from_slice(&entry.len.to_le_bytes());
        self.payload
            .extend_from_slice(&(outline.len() as u32).to_le_bytes());
        self.payload.extend_from_slice(outline);
        Ok(())
    }

    fn head(&mut self, number: u64, head: &[u8]) -> Result<(), UnreadableEntry> {
        self.segments += 1;
        assert_eq!(number, self.segments);
        self.offset = (HEAD_LEN + head.len()) as u64;
        Ok(())
    }

    fn entry(&mut self, number: u64, _: &[u8]) -> Result<(), UnreadableEntry> {
        panic!("an entry of segment {number}, which has an outline or none");
    }
}

/// A spill store without space: records left in the log need no space.
#[derive(Debug)]
struct Full;

impl SpillStore for Full {
    fn write(&mut self, octets: Vec<u8>, _: usize) -> Result<SpillSlot, SpillFull> {
        Err(SpillFull { octets })
    }

    fn read(&mut self, slot: SpillSlot, _: Vec<u8>) {
        panic!("{slot:?} was never written");
    }

    fn free(&mut self, slot: SpillSlot) {
        panic!("{slot:?} was never written");
    }

    fn poll(&mut self) -> Option<SpillDone> {
        None
    }

    fn wait(&mut self) -> Option<SpillDone> {
        None
    }

    fn used(&self) -> u64 {
        0
    }

    fn room(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_get_far() {
        // The first index is true, so its use cannot be detected.
        let believed: Vec<_> = SEEDS.iter().map(|seed| is_believed(seed)).collect();
        assert_eq!(believed, [false, true, false, false, false, false]);
    }

    /// The checksums cover the segment of the index.
    #[test]
    fn the_index_of_another_segment_is_not_believed() {
        let (log, truth) = Sound::new();
        let mut lies = truth.clone();
        lies[0x28] ^= 4;
        assert!(log.is_proven(&log.index(&lies)));
        let other = Sound {
            end: log.end + 1,
            ..Sound::new().0
        };
        assert!(!log.is_proven(&other.index(&lies)));
        let seed = [&[3][..], &other.index(&lies)].concat();
        assert!(!is_believed(&seed));
        let seed = [&[3][..], &log.index(&lies)].concat();
        assert!(is_believed(&seed));
    }
}
