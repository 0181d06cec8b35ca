//! The spool's log on disk, damaged in every way.
//!
//! The octets are instructions: segments, entries and marks are written as a node writes them, and then
//! cut, flipped, left out, or made to lie with checksums that are right. The formats are written down
//! here once more, from `docs/internals/spool-log.md`.

use std::collections::BTreeMap;
use std::path::Path;

use vere_disk::log::recover_log;
use vere_ports::spool_log::{LogReader, UnreadableEntry};

use crate::disk::Disk;

pub(crate) const LOG_ID: u64 = 0x1122_3344_5566_7788;
pub(crate) const HEAD_LEN: usize = 56;
const ENTRY_LEN: usize = 36;
const SECOND_MARK_AT: usize = 4096;

pub(crate) const SEEDS: &[&[u8]] = &[
    // Two entries, a second segment with two more, all synced.
    b"\x01\x04mail\x01\x05mail2\x00\x05head2\x01\x03abc\x01\x03xyz\x04\x00",
    // The same log with a torn tail behind the synced part.
    b"\x01\x04mail\x04\x00\x01\x05mail2\x01\x03abc\x05\x02",
    // An entry that announces more octets than present.
    b"\x01\x04mail\x08\xff\xff\xff\xff",
    // A flipped octet in the synced part.
    b"\x01\x04mail\x01\x05mail2\x04\x00\x06\x00\x40\x00",
    // Octets behind the end of a segment, followed by a segment with an incomplete head.
    b"\x01\x04mail\x02\x03old\x09\xff\xff\xff\xff",
];

/// Opens the log made by the instructions.
pub(crate) fn open(octets: &[u8]) {
    let _ = entries(octets);
}

/// How many entries came back; `None` when the log did not open.
fn entries(octets: &[u8]) -> Option<usize> {
    entries_of(&Writer::new().run(octets))
}

fn entries_of(disk: &Disk) -> Option<usize> {
    let before = disk.files();
    let mut first = Checker::new(&before);
    let path = Path::new("log");
    let position = recover_log(disk.clone(), path, &mut first).ok()?;
    assert_eq!(
        position.0, first.position,
        "the end is not that of the last entry"
    );
    // A log that opened once opens again, with the same content, and needs no further repair.
    let repaired = disk.files();
    let mut second = Checker::new(&repaired);
    match recover_log(disk.clone(), path, &mut second) {
        Ok(again) => assert_eq!(again, position),
        Err(error) => panic!("opened once and not again: {error}"),
    }
    assert_eq!(first.entries, second.entries);
    let again = disk.files();
    let segments = |files: &BTreeMap<String, Vec<u8>>| -> Vec<Vec<u8>> {
        let segments = files.iter().filter(|(name, _)| name.ends_with(".log"));
        segments.map(|(_, octets)| octets.clone()).collect()
    };
    assert_eq!(segments(&repaired), segments(&again));
    Some(first.entries.len())
}

pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:016x}.log")
}

/// A sound log: a segment with the first head and the entries, and a segment with the second head; all
/// octets are synced.
pub(crate) fn two_segments([first, second]: [&[u8]; 2], entries: &[Vec<u8>]) -> Disk {
    let mut writer = Writer::with(first);
    for entry in entries {
        writer.entry(writer.position, 0, entry, 0);
    }
    writer.synced = writer.position;
    writer.segment(2, second, second.len() as u32);
    writer.mark(1, writer.synced);
    writer.finish()
}

/// Writes a log as a node does, and as none should.
struct Writer {
    segments: Vec<(u64, Vec<u8>)>,
    position: u64,
    synced: u64,
    marks: [Vec<u8>; 2],
    serial: u64,
}

impl Writer {
    fn new() -> Self {
        Self::with(b"head 1")
    }

    fn with(head: &[u8]) -> Self {
        let mut writer = Self {
            segments: Vec::new(),
            position: 0,
            synced: 0,
            marks: [Vec::new(), Vec::new()],
            serial: 0,
        };
        writer.segment(1, head, head.len() as u32);
        writer.mark(1, 0);
        writer
    }

    fn run(mut self, octets: &[u8]) -> Disk {
        let mut input = Input(octets);
        while let Some(instruction) = input.octet() {
            self.instruction(instruction, &mut input);
        }
        self.finish()
    }

    fn finish(self) -> Disk {
        let disk = Disk::default();
        for (number, octets) in self.segments {
            disk.put(&segment_name(number), octets);
        }
        let [mut marks, second] = self.marks;
        if !second.is_empty() {
            marks.resize(SECOND_MARK_AT, 0);
            marks.extend_from_slice(&second);
        }
        disk.put("mark", marks);
        disk
    }

    fn instruction(&mut self, instruction: u8, input: &mut Input<'_>) {
        let next = self.segments.last().map_or(1, |(number, _)| number + 1);
        match instruction {
            0 => {
                let head = input.counted();
                self.segment(next, head, head.len() as u32);
            }
            1 => self.entry(self.position, self.synced, input.counted(), 0),
            2 => {
                let octets = input.counted();
                self.last().extend_from_slice(octets);
            }
            // An entry with a wrong position, or a wrong synced position.
            3 => {
                let skew = u64::from(input.octet().unwrap_or(0));
                self.entry(self.position + skew, self.synced, b"skewed", 0);
            }
            4 => {
                self.synced = self.position;
                self.mark(u64::from(input.octet().unwrap_or(0)).max(1), self.synced);
            }
            5 => {
                let count = usize::from(input.octet().unwrap_or(0));
                let last = self.last();
                last.truncate(last.len().saturating_sub(count));
            }
            6 => self.flip(input),
            7 => self.segment(next + 1, b"", 0),
            8 => self.entry(self.position, self.synced, b"", input.number()),
            9 => {
                let len = input.number();
                self.segment(next, b"", len);
            }
            10 => {
                let synced = u64::from(input.octet().unwrap_or(0));
                self.entry(self.position, synced * synced, b"boasts", 0);
            }
            11 => {
                let which = usize::from(input.octet().unwrap_or(0)) % 2;
                self.marks[which].truncate(20);
            }
            12 => {
                let which = usize::from(input.octet().unwrap_or(0));
                if which < self.segments.len() && self.segments.len() > 1 {
                    self.segments.remove(which);
                }
            }
            _ => {}
        }
    }

    fn last(&mut self) -> &mut Vec<u8> {
        if self.segments.is_empty() {
            self.segments.push((1, Vec::new()));
        }
        let last = self.segments.len() - 1;
        &mut self.segments[last].1
    }

    fn segment(&mut self, number: u64, head: &[u8], len: u32) {
        let mut octets = b"VERELOG\0".to_vec();
        octets.extend_from_slice(&3_u32.to_le_bytes());
        octets.extend_from_slice(&len.to_le_bytes());
        for field in [LOG_ID, number, self.position, self.synced] {
            octets.extend_from_slice(&field.to_le_bytes());
        }
        octets.extend_from_slice(&vere_checksum::crc32(head).to_le_bytes());
        octets.extend_from_slice(&vere_checksum::crc32(&octets).to_le_bytes());
        octets.extend_from_slice(head);
        self.segments.push((number, octets));
    }

    /// An entry with this payload, and `more` octets announced and missing.
    fn entry(&mut self, position: u64, synced: u64, payload: &[u8], more: u32) {
        let len = (payload.len() as u32).saturating_add(more);
        let mut octets = Vec::new();
        for field in [LOG_ID, position, synced] {
            octets.extend_from_slice(&field.to_le_bytes());
        }
        octets.extend_from_slice(&len.to_le_bytes());
        octets.extend_from_slice(&vere_checksum::crc32(payload).to_le_bytes());
        octets.extend_from_slice(&vere_checksum::crc32(&octets).to_le_bytes());
        octets.extend_from_slice(payload);
        self.last().extend_from_slice(&octets);
        self.position += octets.len() as u64;
    }

    fn mark(&mut self, oldest: u64, synced: u64) {
        self.serial += 1;
        let mut octets = Vec::new();
        for field in [LOG_ID, synced, self.serial, oldest] {
            octets.extend_from_slice(&field.to_le_bytes());
        }
        octets.extend_from_slice(&vere_checksum::crc32(&octets).to_le_bytes());
        self.marks[(self.serial % 2) as usize] = octets;
    }

    /// Changes an octet of a file.
    fn flip(&mut self, input: &mut Input<'_>) {
        let which = usize::from(input.octet().unwrap_or(0));
        let (low, high) = (input.octet().unwrap_or(0), input.octet().unwrap_or(0));
        let at = usize::from(u16::from_le_bytes([low, high]));
        let count = self.segments.len();
        let file = if which < count {
            &mut self.segments[which].1
        } else {
            &mut self.marks[which % 2]
        };
        if let Some(octet) = file.get_mut(at) {
            *octet ^= 1 << (which % 8);
        }
    }
}

/// The numbers and texts of instructions.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn octet(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> u32 {
        let Some((field, rest)) = self.0.split_first_chunk() else {
            return 0;
        };
        self.0 = rest;
        u32::from_le_bytes(*field)
    }

    /// Takes as many octets as the first octet says, or all remaining octets.
    fn counted(&mut self) -> &'a [u8] {
        let count = usize::from(self.octet().unwrap_or(0)).min(self.0.len());
        let (text, rest) = self.0.split_at(count);
        self.0 = rest;
        text
    }
}

/// Looks up every entry in the files of its origin.
struct Checker<'a> {
    files: &'a BTreeMap<String, Vec<u8>>,
    entries: Vec<Vec<u8>>,
    /// Where the next entry of a segment must begin.
    offset: usize,
    segment: u64,
    position: u64,
}

impl<'a> Checker<'a> {
    fn new(files: &'a BTreeMap<String, Vec<u8>>) -> Self {
        Self {
            files,
            entries: Vec::new(),
            offset: 0,
            segment: 0,
            position: 0,
        }
    }

    fn octets(&self, number: u64, from: usize, len: usize) -> &[u8] {
        let file = self.files.get(&segment_name(number));
        let found = file.and_then(|file| file.get(from..)?.get(..len));
        match found {
            Some(octets) => octets,
            None => panic!("segment {number} has no {len} octets at {from}"),
        }
    }
}

fn u32_at(octets: &[u8], at: usize) -> u32 {
    octets[at..]
        .first_chunk()
        .map_or(0, |f| u32::from_le_bytes(*f))
}

fn u64_at(octets: &[u8], at: usize) -> u64 {
    octets[at..]
        .first_chunk()
        .map_or(0, |f| u64::from_le_bytes(*f))
}

impl LogReader for Checker<'_> {
    fn head(&mut self, number: u64, head: &[u8]) -> Result<(), UnreadableEntry> {
        assert!(
            self.segment == 0 || number == self.segment + 1,
            "segments out of order"
        );
        let octets = self.octets(number, 0, HEAD_LEN);
        assert_eq!(u32_at(octets, 52), vere_checksum::crc32(&octets[..52]));
        assert_eq!(u32_at(octets, 48), vere_checksum::crc32(head));
        assert_eq!(u32_at(octets, 12) as usize, head.len());
        assert_eq!((u64_at(octets, 16), u64_at(octets, 24)), (LOG_ID, number));
        let position = u64_at(octets, 32);
        assert!(self.segment == 0 || position == self.position);
        assert_eq!(self.octets(number, HEAD_LEN, head.len()), head);
        (self.segment, self.position) = (number, position);
        self.offset = HEAD_LEN + head.len();
        Ok(())
    }

    fn entry(&mut self, number: u64, entry: &[u8]) -> Result<(), UnreadableEntry> {
        assert_eq!(number, self.segment, "an entry of another segment");
        let octets = self.octets(number, self.offset, ENTRY_LEN);
        assert_eq!(u32_at(octets, 32), vere_checksum::crc32(&octets[..32]));
        assert_eq!(u32_at(octets, 28), vere_checksum::crc32(entry));
        assert_eq!(u32_at(octets, 24) as usize, entry.len());
        assert_eq!(
            (u64_at(octets, 0), u64_at(octets, 8)),
            (LOG_ID, self.position)
        );
        assert_eq!(
            self.octets(number, self.offset + ENTRY_LEN, entry.len()),
            entry
        );
        self.offset += ENTRY_LEN + entry.len();
        self.position += (ENTRY_LEN + entry.len()) as u64;
        self.entries.push(entry.to_vec());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds have their effects: whole logs open, torn logs lose the tail, damaged logs stay closed.
    #[test]
    fn seeds_get_far() {
        let opened: Vec<_> = SEEDS.iter().map(|seed| entries(seed)).collect();
        assert_eq!(opened, [Some(4), Some(2), Some(1), None, Some(1)]);
    }

    /// Files are reused: where a write did not reach the disk there may be whole older frames of the same
    /// length. The older frames do not match the entry's header.
    #[test]
    fn older_frames_in_the_place_of_an_entry_are_noticed() {
        let frame = |txn: u64| {
            let mut octets = Vec::new();
            vere_spoolwire::encode_reset(&mut octets, vere_spoolwire::Txn(txn));
            octets
        };
        let opened = |lies: &[u8]| {
            let mut writer = Writer::new();
            writer.entry(0, 0, &frame(7), 0);
            let end = writer.last().len();
            writer.last()[end - lies.len()..].copy_from_slice(lies);
            entries_of(&writer.finish())
        };
        assert_eq!(opened(&frame(7)), Some(1));
        assert_eq!(opened(&frame(3)), Some(0));
    }
}
