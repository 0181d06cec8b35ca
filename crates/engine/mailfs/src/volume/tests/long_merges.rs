//! Merges of journals whose base is gone, with an outcome longer than a record of the journal.

use super::*;
use crate::volume::tests::salvages::names;
use vere_keep::journal::Journal;
use vere_keep::record::Part;
use vere_ports::files::XattrMode;
use vere_ports::storage::Storage as _;

const ROOT: Inode = Inode::ROOT;
const LONG_ROWS: u64 = 90;
/// Octets of the head of a segment.
const SEGMENT_HEAD: u64 = 44;

/// A machine has removed many long rows of files. The earlier values take more than 4 MiB of the journal.
fn removed_long_rows() -> World {
    let mut world = World::new(1);
    for number in 0..LONG_ROWS {
        world.put(ROOT, &format!("f{number}"), b"x");
        let inode = world.lookup(ROOT, &format!("f{number}")).unwrap().inode;
        let call = Call::SetXattr {
            inode,
            name: b"user.long".to_vec(),
            value: noise(number, 60_000),
            mode: XattrMode::Any,
        };
        assert_eq!(world.call(call), Ok(Reply::Done));
        if number % 10 == 9 {
            world.sync().unwrap();
        }
    }
    world.finish().unwrap();
    for number in 0..LONG_ROWS {
        let inode = world.lookup(ROOT, &format!("f{number}")).unwrap().inode;
        let name = b"user.long".to_vec();
        let call = Call::RemoveXattr { inode, name };
        assert_eq!(world.call(call), Ok(Reply::Done));
    }
    world.put(ROOT, "both", b"of the journal");
    world.kill();
    let away = world.disk.copy();
    world.disk = MemoryDisk::default();
    world.mount().unwrap();
    world.put(ROOT, "both", b"of others");
    world.sync().unwrap();
    world.kill();
    world.disk = away;
    world
}

/// The records of a journal about a merge: the segment, and where each record begins.
fn pieces(disk: &MemoryDisk) -> Vec<(String, u64)> {
    let mut names: Vec<String> = disk.list().unwrap();
    names.retain(|name| name.starts_with("journal-"));
    names.sort();
    let firsts = names
        .iter()
        .map(|name| u64::from_str_radix(&name["journal-".len()..], 16));
    let firsts: Vec<u64> = firsts.map(Result::unwrap).collect();
    let mut pieces = Vec::new();
    Journal::inspect(disk, keys().local(), |position, parts| {
        if matches!(parts.first(), Some(Part::Piece(_))) {
            let segment = firsts.iter().rposition(|first| *first <= position).unwrap();
            let at = SEGMENT_HEAD + position - firsts[segment];
            pieces.push((names[segment].clone(), at));
        }
    })
    .unwrap();
    pieces
}

fn expect_without_long_rows(world: &mut World) {
    for number in 0..LONG_ROWS {
        let inode = world.lookup(ROOT, &format!("f{number}")).unwrap().inode;
        let name = b"user.long".to_vec();
        let call = Call::GetXattr { inode, name };
        assert_eq!(world.call(call), Err(Errno::NoData), "{number}");
    }
    assert_eq!(world.get(ROOT, "both").unwrap(), b"of others");
    let names = names(world, ROOT);
    let copies: Vec<&String> = names
        .iter()
        .filter(|name| name.contains("conflict"))
        .collect();
    assert_eq!(copies.len(), 1, "{names:?}");
    assert_eq!(world.get(ROOT, copies[0]).unwrap(), b"of the journal");
}

/// The outcome of a long merge once had no place in the journal, and the changes were set aside.
#[test]
fn a_merge_longer_than_a_record_is_brought_in_once_however_often_the_machine_dies() {
    let mut world = removed_long_rows();
    let (accounts, before, now) = (world.accounts.clone(), world.disk.copy(), world.now);
    world.mount_stranded(Stranded::Overtaken).unwrap();
    let pieces = pieces(&world.disk);
    assert!(pieces.len() >= 5, "{pieces:?}");
    let segment = world.disk.file(&pieces[0].0).unwrap();
    let octets = pieces.last().unwrap().1 - pieces[0].1;
    assert!(octets > 4 << 20, "{octets}");
    expect_without_long_rows(&mut world);
    // The machine dies before a record, and in the midst of a record.
    let cuts = pieces.iter().flat_map(|(_, at)| [*at, at + 100]);
    let whole = (segment.len() as u64, true);
    let cuts = cuts.map(|at| (at, false)).chain([whole]);
    for (at, has_end) in cuts {
        let mut world = World::new(1);
        (world.accounts, world.now) = (accounts.clone(), now);
        world.kill();
        world.starts = 100;
        world.disk = before.copy();
        let cut = segment[..usize::try_from(at).unwrap()].to_vec();
        world.disk.create(&pieces[0].0).unwrap();
        world.disk.set_file(&pieces[0].0, Some(cut));
        if has_end {
            world.mount().unwrap();
        } else {
            world.mount_stranded(Stranded::Overtaken).unwrap();
        }
        expect_without_long_rows(&mut world);
        world.sync().unwrap();
        assert_eq!(world.check(true, false).findings, [], "{at}");
        world.lose_folder();
        world.mount().unwrap();
        expect_without_long_rows(&mut world);
    }
}

/// Without the end of a merge, the records before have no effect.
#[test]
fn a_merge_without_its_end_is_none() {
    let mut world = removed_long_rows();
    let before = world.disk.copy();
    world.mount_stranded(Stranded::Overtaken).unwrap();
    let pieces = pieces(&world.disk);
    let (name, last) = pieces.last().unwrap();
    let segment = world.disk.file(name).unwrap();
    let told = |disk: &MemoryDisk| {
        let mut told = Vec::new();
        let see = |position, parts| told.push((position, parts));
        Journal::inspect(disk, keys().local(), see).unwrap();
        told
    };
    let expected = told(&before);
    before.create(name).unwrap();
    before.set_file(
        name,
        Some(segment[..usize::try_from(*last).unwrap()].to_vec()),
    );
    assert_eq!(told(&before), expected);
}
