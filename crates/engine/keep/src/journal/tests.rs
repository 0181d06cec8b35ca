mod damage;
mod inspect;

use vere_faults::MemoryDisk;
use vere_ports::files::Inode;

use super::head::first_of;
use super::*;
use crate::content::UnsentId;
use crate::posix::ContentChange;

const KEY: [u8; 32] = [7; 32];

/// Opens a journal, and returns the positions of its records as well.
fn open(disk: &MemoryDisk, start: u8) -> (Journal<MemoryDisk>, Vec<u64>) {
    let mut positions = Vec::new();
    let journal = Journal::open(disk.clone(), &KEY, [start; 16], |position, _| {
        positions.push(position);
    });
    (journal.unwrap(), positions)
}

fn write(octets: usize) -> Part {
    Part::Content(ContentChange::Write {
        inode: Inode(2),
        offset: 0,
        id: UnsentId(1),
        skip: 0,
        data: vec![1; octets].into(),
    })
}

fn octets(disk: &MemoryDisk, first: u64) -> u64 {
    let file = disk.file(&format!("journal-{first:016x}"));
    file.map_or(0, |octets| octets.len() as u64)
}

#[test]
fn a_sync_has_zeros_ahead_and_a_start_cuts_them_away() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    journal.append(&[write(100)]).unwrap();
    assert_eq!(octets(&disk, 0), HEAD + journal.position());
    journal.sync().unwrap();
    let long = HEAD + journal.position() + ZEROS_MAX;
    assert_eq!(octets(&disk, 0), long);
    for _ in 0..3 {
        journal.append(&[write(100_000)]).unwrap();
        journal.sync().unwrap();
    }
    assert_eq!(octets(&disk, 0), long);
    journal.append(&[write(100_000)]).unwrap();
    journal.sync().unwrap();
    assert!(octets(&disk, 0) > long);
    let end = journal.position();
    let (journal, positions) = open(&disk, 2);
    assert_eq!((journal.position(), positions.len()), (end, 5));
    assert_eq!(octets(&disk, 0), HEAD + end);
    // The first segment has a successor now.
    let (_, positions) = open(&disk, 3);
    assert_eq!(positions.len(), 5);
}

#[test]
fn every_segment_with_a_successor_ends_with_a_record() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    journal.append(&[write(10)]).unwrap();
    journal.sync().unwrap();
    let mut records = 1;
    while journal.segments.len() < 2 {
        journal.append(&[write(1 << 20)]).unwrap();
        journal.sync().unwrap();
        records += 1;
    }
    let second = journal.segments[1].first;
    assert_eq!(octets(&disk, 0), HEAD + second);
    let (journal, positions) = open(&disk, 2);
    assert_eq!(positions.len(), records);
    assert!(journal.position() > second);
}

#[test]
fn a_full_disk_has_no_zeros() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    disk.set_capacity(Some(disk.used() + 1_000));
    journal.append(&[write(100)]).unwrap();
    journal.sync().unwrap();
    journal.append(&[write(100)]).unwrap();
    journal.sync().unwrap();
    let (_, positions) = open(&disk, 2);
    assert_eq!(positions.len(), 2);
}

/// A power cut that takes every change without a sync, and keeps every name.
struct Unsynced;

impl vere_faults::Fate for Unsynced {
    fn pick(&mut self, bound: usize) -> usize {
        bound - 1
    }
}

/// A start that reads records without a sync once went on behind them: a power cut then took them, and damage stood in the midst
/// of the journal.
#[test]
fn a_start_syncs_what_a_kill_has_left() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    journal.append(&[write(100)]).unwrap();
    drop(journal);
    let (mut journal, positions) = open(&disk, 2);
    assert_eq!(positions.len(), 1);
    journal.append(&[write(100)]).unwrap();
    journal.sync().unwrap();
    disk.crash(&mut Unsynced);
    assert_eq!(open(&disk, 3).1.len(), 2);
}

/// A disk that has failed to sync says later that all is well, and has lost the octets.
#[test]
fn a_failed_sync_is_final_and_the_next_start_writes_anew() {
    for by_volume in [false, true] {
        let disk = MemoryDisk::default();
        let (mut journal, _) = open(&disk, 1);
        journal.append(&[write(100)]).unwrap();
        disk.fail_syncs(true);
        if by_volume {
            let file = journal.take_unsynced().unwrap();
            assert!(file.sync().is_err());
            journal.sync_failed();
        } else {
            assert!(journal.sync().is_err());
        }
        disk.fail_syncs(false);
        assert!(journal.append(&[write(100)]).is_err());
        assert!(journal.has_failed());
        drop(journal);
        let (mut journal, positions) = open(&disk, 2);
        assert_eq!(positions.len(), 1);
        journal.append(&[write(100)]).unwrap();
        journal.sync().unwrap();
        disk.crash(&mut Unsynced);
        assert_eq!(open(&disk, 3).1.len(), 2);
        let names = disk.list().unwrap();
        assert!(
            names.iter().all(|name| first_of(name).is_some()),
            "{names:?}"
        );
    }
}

/// The thread of the disk syncs a segment while the next one begins: the failure once was mended in the next one alone.
#[test]
fn a_failed_sync_of_an_ended_segment_is_mended_there() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    journal.limit_segments(100);
    journal.append(&[write(200)]).unwrap();
    let file = journal.take_unsynced().unwrap();
    disk.fail_syncs(true);
    assert!(file.sync().is_err());
    disk.fail_syncs(false);
    // The disk says at the end of the segment that all is well.
    journal.append(&[write(100)]).unwrap();
    assert_eq!(journal.segments.len(), 2);
    journal.sync_failed();
    drop(journal);
    let (mut journal, positions) = open(&disk, 2);
    assert_eq!(positions.len(), 2);
    journal.append(&[write(100)]).unwrap();
    journal.sync().unwrap();
    disk.crash(&mut Unsynced);
    assert_eq!(open(&disk, 3).1.len(), 3);
}

/// A failed write once left its place to the next record, which was sealed with an equal nonce.
#[test]
fn nothing_follows_a_failed_write() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    disk.fail_at(disk.steps() + 1);
    assert!(journal.append(&[write(100)]).is_err());
    assert!(journal.append(&[write(100)]).is_err());
    assert_eq!(open(&disk, 2).1.len(), 0);
}

#[test]
fn a_record_that_is_too_long_has_an_error_of_its_own() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    let error = journal.append(&[write(SEALED_MAX as usize)]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    journal.append(&[write(100)]).unwrap();
    assert_eq!(open(&disk, 2).1.len(), 1);
}

/// A full disk once left a segment without a head, whose name then stood in the way.
#[test]
fn a_segment_begins_when_a_full_disk_has_room_again() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    journal.limit_segments(100);
    journal.append(&[write(200)]).unwrap();
    disk.set_capacity(Some(disk.used() + 10));
    journal.append(&[write(100)]).unwrap();
    assert!(journal.is_full());
    assert!(!journal.retry().unwrap());
    disk.set_capacity(None);
    assert!(journal.retry().unwrap());
    assert_eq!(open(&disk, 2).1.len(), 2);
}

/// A disk that loses a cut has zeros behind the last record of a segment; nothing is missing all the same.
#[test]
fn zeros_behind_a_segment_are_no_damage() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    journal.append(&[write(100)]).unwrap();
    drop(journal);
    let (mut journal, _) = open(&disk, 2);
    journal.append(&[write(100)]).unwrap();
    drop(journal);
    let first = name_of(0);
    let whole = disk.file(&first).unwrap();
    let zeros = [whole.as_slice(), &[0; 500]].concat();
    disk.set_file(&first, Some(zeros));
    assert_eq!(open(&disk, 3).1.len(), 2);
    // A record that is missing is damage.
    let short = whole[..whole.len() - 1].to_vec();
    disk.set_file(&first, Some(short));
    let opened = Journal::open(disk, &KEY, [4; 16], |_, _| {});
    assert!(matches!(opened, Err(JournalError::Damaged { .. })));
}
