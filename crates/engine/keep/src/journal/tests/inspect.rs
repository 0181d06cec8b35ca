//! The inspection of a journal reads every record and changes no octet.

use super::damage::{damage, three_segments};
use super::*;

fn inspect(disk: &MemoryDisk) -> Result<Vec<u64>, JournalError> {
    let mut positions = Vec::new();
    Journal::inspect(disk, &KEY, |position, parts| {
        assert_eq!(parts.len(), 1);
        positions.push(position);
    })?;
    Ok(positions)
}

fn files(disk: &MemoryDisk) -> Vec<(String, Option<Vec<u8>>)> {
    let mut names = disk.list().unwrap();
    names.sort();
    names
        .into_iter()
        .map(|name| (name.clone(), disk.file(&name)))
        .collect()
}

/// One segment with three records, as a kill leaves the journal.
fn one_segment() -> (MemoryDisk, [u64; 3]) {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    let positions = [100, 5, 300].map(|octets| journal.append(&[write(octets)]).unwrap());
    (disk, positions)
}

#[test]
fn a_journal_is_read_and_left_as_it_is() {
    let (disk, firsts) = three_segments();
    disk.create("journal-failed").unwrap();
    let before = files(&disk);
    assert_eq!(inspect(&disk).unwrap(), firsts);
    assert_eq!(files(&disk), before);
    let (disk, positions) = one_segment();
    // Zeros behind the records of a mount that was killed.
    let mut octets = disk.file(&name_of(0)).unwrap();
    octets.extend_from_slice(&[0; 500]);
    disk.set_file(&name_of(0), Some(octets));
    let before = files(&disk);
    assert_eq!(inspect(&disk).unwrap(), positions);
    assert_eq!(files(&disk), before);
    assert!(inspect(&MemoryDisk::default()).unwrap().is_empty());
}

/// A start with this record damaged tells what it leaves out, once.
fn expect_told(disk: &MemoryDisk, damaged: usize, position: u64) {
    let (journal, positions) = open(disk, 2);
    assert_eq!(positions.len(), damaged);
    let told = journal.left_out();
    assert_eq!(told.is_some(), damaged < 2, "{told:?}");
    if let Some(told) = told {
        assert_eq!((&*told.file, told.at), (&*name_of(0), HEAD + position));
        assert!(told.octets > 40, "{told:?}");
    }
    let (again, _) = open(disk, 3);
    assert_eq!(again.left_out(), None);
}

/// A start cuts a damaged record of the last segment away with everything behind: an inspection tells, and so does the start.
#[test]
fn damage_before_a_record_is_told_in_the_last_segment_too() {
    let (disk, positions) = one_segment();
    let length = disk.file(&name_of(0)).unwrap().len();
    for (number, position) in positions.iter().enumerate() {
        let begin = usize::try_from(HEAD + position).unwrap();
        let end = positions
            .get(number + 1)
            .map_or(length, |next| usize::try_from(HEAD + next).unwrap());
        for at in [
            begin,
            begin + 8,
            begin + 12,
            begin + 16,
            begin + 20,
            end - 1,
        ] {
            let disk = disk.copy();
            damage(&disk, 0, at);
            let found = inspect(&disk);
            expect_told(&disk.copy(), number, *position);
            if number == 2 {
                assert_eq!(found.unwrap(), positions[..2], "{at}");
                continue;
            }
            let error = found.unwrap_err();
            let is_told = matches!(&error, JournalError::Damaged { file, at } if *file == name_of(0) && *at == HEAD + position);
            assert!(is_told, "{at}: {error}");
        }
    }
    // A long way to the record behind, over the bounds of what is read at once.
    let bound = 1 << 20;
    for long in [
        bound,
        bound - 30,
        bound - 70,
        bound - 79,
        bound - 88,
        bound + 1,
    ] {
        let disk = MemoryDisk::default();
        let (mut journal, _) = open(&disk, 1);
        journal.append(&[write(long)]).unwrap();
        journal.append(&[write(1)]).unwrap();
        damage(&disk, 0, usize::try_from(HEAD).unwrap());
        let error = inspect(&disk).unwrap_err();
        assert!(
            matches!(error, JournalError::Damaged { at: HEAD, .. }),
            "{error}"
        );
    }
}

#[test]
fn damage_between_segments_is_told() {
    let (disk, firsts) = three_segments();
    for segment in [0, 1] {
        for at in [0, 17, 33, 43, 44, 60, 100] {
            let disk = disk.copy();
            damage(&disk, firsts[segment], at);
            let error = inspect(&disk).unwrap_err();
            let name = name_of(firsts[segment]);
            let is_told = matches!(&error, JournalError::Damaged { file, .. } if *file == name);
            assert!(is_told, "{segment}, {at}: {error}");
        }
    }
    let gone = disk.copy();
    gone.remove(&name_of(firsts[1])).unwrap();
    assert!(matches!(inspect(&gone), Err(JournalError::Damaged { .. })));
    // A torn head of the last segment has no record behind; a damaged one has.
    let name = name_of(firsts[2]);
    let whole = disk.file(&name).unwrap();
    for end in 0..=44 {
        let mut torn = whole[..end].to_vec();
        torn.iter_mut().skip(20).for_each(|octet| *octet = 0);
        disk.set_file(&name, Some(torn));
        assert_eq!(inspect(&disk).unwrap(), firsts[..2], "{end}");
    }
    let mut damaged = whole;
    damaged[20] ^= 1;
    disk.set_file(&name, Some(damaged));
    assert!(matches!(
        inspect(&disk),
        Err(JournalError::Damaged { at: 0, .. })
    ));
}

#[test]
fn another_key_and_version_are_told() {
    let (disk, _) = one_segment();
    let error = Journal::inspect(&disk, &[8; 32], |_, _| panic!("a record")).unwrap_err();
    assert!(matches!(error, JournalError::Key { .. }), "{error}");
    let mut octets = disk.file(&name_of(0)).unwrap();
    octets[8] = 2;
    let sum = crc32c(&octets[..40]).to_le_bytes();
    octets[40..44].copy_from_slice(&sum);
    disk.set_file(&name_of(0), Some(octets));
    let error = inspect(&disk).unwrap_err();
    assert!(
        matches!(error, JournalError::Version { found: 2, .. }),
        "{error}"
    );
}

/// Records of a merge without the end are left out, by a start, by an inspection, and by another reading of a journal in use.
#[test]
fn a_merge_without_its_end_is_left_out() {
    let disk = MemoryDisk::default();
    let (mut journal, _) = open(&disk, 1);
    journal.append(&[write(1)]).unwrap();
    for number in [0, 1, 0] {
        journal.append(&[Part::Piece(number), write(2)]).unwrap();
    }
    let count = |journal: &Journal<MemoryDisk>| {
        let mut count = 0;
        journal.reread(|_, _| count += 1).unwrap();
        count
    };
    assert_eq!(count(&journal), 1);
    assert_eq!(inspect(&disk).unwrap(), [0]);
    drop(journal);
    let (mut journal, positions) = open(&disk, 2);
    assert_eq!(positions, [0]);
    let end = Part::Brought(crate::record::Brought {
        won: crate::record::Won {
            commit: crate::format::MailId([1; 16]),
            generation: 1,
            uid_validity: 1,
            uid: 1,
        },
        through: 0,
        exceptions: Vec::new(),
    });
    journal.append(&[Part::Piece(0), write(2)]).unwrap();
    journal.append(&[Part::Piece(1), end]).unwrap();
    assert_eq!(count(&journal), 3);
    let (_, positions) = open(&disk, 3);
    assert_eq!(positions.len(), 3);
}
