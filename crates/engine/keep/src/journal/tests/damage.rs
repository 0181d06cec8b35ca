//! Journals cut, full, doubled, renamed and released.

use std::io::ErrorKind;

use vere_faults::Seeded;

use super::*;

/// Three starts with a record each: three segments, and the positions where they begin.
pub(super) fn three_segments() -> (MemoryDisk, [u64; 3]) {
    let disk = MemoryDisk::default();
    let firsts = [1, 2, 3].map(|start| {
        let (mut journal, _) = open(&disk, start);
        let first = journal.position();
        journal.append(&[write(100)]).unwrap();
        first
    });
    (disk, firsts)
}

fn error(disk: &MemoryDisk) -> JournalError {
    let journal = Journal::open(disk.clone(), &KEY, [9; 16], |_, _| {});
    journal.unwrap_err()
}

fn is_damage(disk: &MemoryDisk, first: u64) -> bool {
    matches!(error(disk), JournalError::Damaged { file, .. } if file == name_of(first))
}

pub(super) fn damage(disk: &MemoryDisk, first: u64, at: usize) {
    let name = name_of(first);
    let mut octets = disk.file(&name).unwrap();
    octets[at] ^= 1;
    disk.set_file(&name, Some(octets));
}

/// Changes behind damage cannot be applied in order: the mount must not begin without those between.
#[test]
fn damage_with_records_behind_is_told() {
    let (disk, firsts) = three_segments();
    let (_, positions) = open(&disk.copy(), 4);
    assert_eq!(positions, firsts);
    for segment in [0, 1] {
        for at in [0, 8, 17, 33, 43, 44, 52, 56, 60, 64, 100] {
            let disk = disk.copy();
            damage(&disk, firsts[segment], at);
            assert!(is_damage(&disk, firsts[segment]), "{segment}, {at}");
        }
    }
    // A segment between others is gone, or is short of its end: the end of the segment before is told.
    let gone = disk.copy();
    gone.remove(&name_of(firsts[1])).unwrap();
    assert!(is_damage(&gone, firsts[0]));
    let short = disk.copy();
    let mut octets = short.file(&name_of(firsts[1])).unwrap();
    octets.truncate(20);
    short.set_file(&name_of(firsts[1]), Some(octets));
    assert!(is_damage(&short, firsts[1]));
    // Two overlapping segments.
    let file = disk.create(&name_of(firsts[1] + 5)).unwrap();
    let head = encode_head(&[1; 16], firsts[1] + 5);
    file.write_at([&head, &[]], 0).unwrap();
    assert!(is_damage(&disk, firsts[1]));
}

/// The power went while the last segment was begun, or while its last record was written.
#[test]
fn a_torn_end_is_cut_away() {
    let (disk, firsts) = three_segments();
    let name = name_of(firsts[2]);
    let whole = disk.file(&name).unwrap();
    for end in 0..whole.len() {
        let disk = disk.copy();
        disk.set_file(&name, Some(whole[..end].to_vec()));
        let (mut journal, positions) = open(&disk, 4);
        assert_eq!(positions, firsts[..2], "{end}");
        assert_eq!(journal.position(), firsts[2]);
        journal.append(&[write(5)]).unwrap();
        let (_, positions) = open(&disk, 5);
        assert_eq!(positions, firsts, "{end}");
    }
}

/// A head is believed whole: the checksum, the name of the format, and the position of the file's name.
#[test]
fn heads_of_other_files_are_no_heads() {
    let (disk, firsts) = three_segments();
    let name = name_of(firsts[1]);
    let whole = disk.file(&name).unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let disk = disk.copy();
        let mut octets = whole.clone();
        change(&mut octets);
        let sum = crc32c(&octets[..40]).to_le_bytes();
        octets[40..44].copy_from_slice(&sum);
        disk.set_file(&name, Some(octets));
        error(&disk)
    };
    let magic = with(&|octets| octets[0] = b'X');
    assert!(matches!(magic, JournalError::Damaged { .. }), "{magic}");
    let position = with(&|octets| octets[32] ^= 1);
    assert!(
        matches!(position, JournalError::Damaged { .. }),
        "{position}"
    );
    let later = with(&|octets| octets[8] = 2);
    assert!(
        matches!(later, JournalError::Version { found: 2, .. }),
        "{later}"
    );
}

/// A record at another position than its own, as a disk with mixed-up blocks would show.
#[test]
fn a_record_at_another_position_is_none() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    journal.append(&[write(100)]).unwrap();
    let mut octets = disk.file(&name_of(0)).unwrap();
    octets.extend_from_within(HEAD as usize..);
    disk.set_file(&name_of(0), Some(octets));
    let (reopened, positions) = open(&disk, 2);
    assert_eq!(
        (positions, reopened.position()),
        (vec![0], journal.position())
    );
}

#[test]
fn another_key_opens_nothing() {
    let (disk, _) = three_segments();
    let journal = Journal::open(disk, &[8; 32], [9; 16], |_, _| panic!("a record"));
    assert!(matches!(journal.unwrap_err(), JournalError::Key { .. }));
}

/// One nonce for two records would give their difference away.
#[test]
fn no_nonce_seals_twice() {
    let mut sealed = Vec::new();
    for start in [1, 2] {
        let disk = MemoryDisk::default();
        let (mut journal, _) = open(&disk, start);
        journal.append(&[write(20)]).unwrap();
        let length = journal.position() as usize;
        journal.append(&[write(20)]).unwrap();
        let octets = disk.file(&name_of(0)).unwrap();
        let records = octets[HEAD as usize..].chunks(length);
        sealed.extend(records.map(|record| record[20..].to_vec()));
    }
    assert_eq!(sealed.len(), 4);
    sealed.sort_unstable();
    sealed.dedup();
    assert_eq!(
        sealed.len(),
        4,
        "equal records at other positions and starts"
    );
}

/// Synced records survive every loss of power.
#[test]
fn synced_records_survive_a_power_cut() {
    for seed in 0..20 {
        let disk = MemoryDisk::default();
        let (mut journal, _) = open(&disk, 1);
        journal.append(&[write(300)]).unwrap();
        journal.append(&[write(10)]).unwrap();
        journal.sync().unwrap();
        assert!(journal.take_unsynced().is_none());
        let end = journal.position();
        journal.append(&[write(50)]).unwrap();
        assert!(journal.take_unsynced().is_some());
        disk.crash(&mut Seeded(seed));
        let (reopened, positions) = open(&disk, 2);
        assert!(reopened.position() >= end && positions.len() >= 2, "{seed}");
    }
}

/// Segments go once a commit has everything of theirs.
#[test]
fn released_segments_go() {
    let (disk, firsts) = three_segments();
    let (mut journal, _) = open(&disk, 4);
    assert_eq!(journal.octets(), journal.position());
    assert!(!journal.releases(firsts[1] - 1));
    journal.release(firsts[1] - 1).unwrap();
    assert_eq!(journal.octets(), journal.position());
    assert!(journal.releases(firsts[1]));
    journal.release(firsts[1]).unwrap();
    assert_eq!(journal.octets(), journal.position() - firsts[1]);
    assert!(!journal.releases(firsts[1]));
    assert_eq!(octets(&disk, firsts[0]), 0);
    let (mut journal, positions) = open(&disk, 5);
    assert_eq!(positions, firsts[1..]);
    let end = journal.position();
    journal.release(end).unwrap();
    assert_eq!((journal.octets(), disk.list().unwrap().len()), (0, 1));
    assert!(
        format!("{journal:?}").starts_with(&format!("Journal {{ position: {end}, segments: 1"))
    );
}

/// Records wait in memory while the disk is full, are written in order once there is room, and none is synced before.
#[test]
fn records_wait_for_room() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    disk.set_capacity(Some(disk.used() + 300));
    journal.append(&[write(100)]).unwrap();
    assert!(!journal.is_full());
    let mut expected = vec![0];
    for octets in [200, 5, 10] {
        expected.push(journal.position());
        journal.append(&[write(octets)]).unwrap();
        assert!(journal.is_full(), "a short record does not overtake");
    }
    assert_eq!(
        journal.backlog.octets as u64,
        journal.position() - expected[1]
    );
    assert!(!journal.retry().unwrap());
    assert_eq!(journal.sync().unwrap_err().kind(), ErrorKind::StorageFull);
    disk.set_capacity(None);
    assert!(journal.retry().unwrap());
    assert!(!journal.is_full());
    assert_eq!(journal.backlog.octets, 0);
    journal.sync().unwrap();
    let (_, positions) = open(&disk, 2);
    assert_eq!(positions, expected);
}

#[test]
fn records_that_wait_have_a_bound() {
    let mut backlog = Backlog::default();
    let half = vec![0; 32 << 20];
    backlog.push(0, half.clone()).unwrap();
    backlog.push(1, half).unwrap();
    let error = backlog.push(2, vec![0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(backlog.records.len(), 2);
}

/// A disk with another failure than a lack of room gets no second chance.
#[test]
fn a_failing_disk_takes_no_record() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    disk.stop_at(disk.steps());
    assert!(journal.append(&[write(100)]).is_err());
    assert!(!journal.is_full());
    assert_eq!(journal.position(), 0);
    for (kind, is_lack) in [
        (ErrorKind::StorageFull, true),
        (ErrorKind::QuotaExceeded, true),
        (ErrorKind::Other, false),
    ] {
        assert_eq!(lacks_room(&kind.into()), is_lack);
    }
}

#[test]
fn the_longest_record_comes_back() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    // Kind and length, numbers, and the tag of the seal.
    let longest = (4 << 20) - 5 - 28 - 16;
    assert!(journal.append(&[write(longest + 1)]).is_err());
    assert_eq!(journal.position(), 0);
    journal.append(&[write(longest)]).unwrap();
    let (_, positions) = open(&disk, 2);
    assert_eq!(positions, [0]);
}
