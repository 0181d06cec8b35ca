//! Logs that are not to be read, or not yet: nothing of them is passed over, and nothing is begun in their place.

use vere_ports::storage::Storage as _;

use super::reclaiming::{expunge, reclaim};
use super::repairing::{contents, filled, repair, repaired};
use super::*;
use crate::Finding;
use crate::log::format::{RecordKind, segment_name, segment_position};

fn files(disk: &MemoryDisk) -> Vec<(String, Option<Vec<u8>>)> {
    let mut names = disk.list().unwrap();
    names.sort();
    let file = |name: String| (name.clone(), disk.file(&name));
    names.into_iter().map(file).collect()
}

fn refused(disk: &MemoryDisk) -> String {
    let opened = Store::open(disk.clone(), MemoryMeta::default(), config());
    opened.unwrap_err().to_string()
}

/// A newer version wrote what this one does not understand. It was cut off as torn where nothing was behind it,
/// and left out as damaged elsewhere.
#[test]
fn a_record_of_another_kind_is_named_and_the_log_stays_as_it_is() {
    let mut bench = filled();
    let payload = [b"what is to come".as_slice()];
    let appended = bench.store.log.append(RecordKind::Other(9), &payload);
    let position = appended.unwrap();
    sync(&mut bench.store);
    for in_the_middle in [false, true] {
        if in_the_middle {
            let inbox = bench.inbox;
            bench.fill(inbox, 100..=180);
        }
        let before = files(&bench.disk);
        let firsts = before.iter().filter_map(|(name, _)| segment_position(name));
        let first = firsts.filter(|first| *first <= position).max().unwrap();
        let is_newest = before.last().unwrap().0 == segment_name(first);
        assert_eq!(is_newest, !in_the_middle);
        let named = format!(
            "{} has a record of kind 9 at offset {}",
            segment_name(first),
            64 + position - first
        );
        let said = refused(&bench.disk);
        assert!(said.contains(&named), "{said}");
        for (old, dry_run) in [(None, true), (None, false), (Some(&bench.meta), false)] {
            let said = repair(&bench.disk, old, dry_run).unwrap_err().to_string();
            assert!(said.contains(&named), "{said}");
        }
        assert_eq!(files(&bench.disk), before);
        let found = bench.store.check_all().unwrap().findings;
        assert!(
            matches!(&found[..], [Finding::Unread { reason }] if reason.contains(&named)),
            "{found:?}"
        );
    }
    // Written again without what nothing needs, it has the record still.
    let uids: Vec<_> = bench
        .snapshot(bench.inbox)
        .iter_from(0)
        .map(|each| each.uid)
        .collect();
    expunge(&mut bench, &uids);
    assert!(reclaim(&mut bench.store).unwrap() > 0);
    let said = refused(&bench.disk);
    assert!(said.contains("has a record of kind 9 at offset"), "{said}");
    let said = repair(&bench.disk, None, false).unwrap_err().to_string();
    assert!(said.contains("has a record of kind 9 at offset"), "{said}");
}

/// Its metadata were removed by hand: a log was begun anew in the place of the file.
#[test]
fn a_log_whose_only_head_is_damaged_is_not_begun_anew() {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    bench.fill(inbox, 1..=5);
    let before = contents(&mut bench.store, "before");
    let [(name, Some(data))] = &files(&bench.disk)[..] else {
        panic!("not one segment");
    };
    for at in (0..64).step_by(7) {
        let disk = bench.disk.copy();
        let mut data = data.clone();
        data[at] ^= 1;
        disk.set_file(name, Some(data.clone()));
        let said = refused(&disk);
        assert!(said.contains(name) && said.contains("head"), "{said}");
        assert_eq!(files(&disk), [(name.clone(), Some(data))]);
        let (report, after) = repaired(&disk, None, &format!("octet {at}"));
        assert_eq!((after, report.has_losses()), (before.clone(), false));
    }
}

/// A crash cut off the beginning of a store: nothing was in it.
#[test]
fn a_head_that_never_was_whole_is_no_damage() {
    for data in [
        Vec::new(),
        vec![0; 40],
        b"VERESTOR".to_vec(),
        vec![0; 16 * 1024],
    ] {
        let disk = MemoryDisk::default();
        put(&disk, &segment_name(64), &data);
        let (mut store, _) = Store::open(disk, MemoryMeta::default(), config()).unwrap();
        let inbox = store.open_account(&account("ann"), NOW).unwrap();
        safe(&mut store, inbox);
    }
}

/// A disk with these files.
fn disk_of(files: &[(String, Option<Vec<u8>>)]) -> MemoryDisk {
    let disk = MemoryDisk::default();
    for (name, octets) in files {
        put(&disk, name, octets.as_ref().unwrap());
    }
    disk
}

/// The log was put back from a copy and the metadata were not: where the copy ends there are zeros, and records that the
/// metadata know are not there.
#[test]
fn a_log_that_ends_before_what_was_taken_from_it_is_not_opened() {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    bench.fill(inbox, 1..=3);
    let copy = files(&bench.disk);
    bench.fill(inbox, 4..=5);
    let opened = Store::open(disk_of(&copy), bench.meta.clone(), config());
    let said = opened.unwrap_err().to_string();
    assert!(
        said.contains("it ends before what was taken from it"),
        "{said}"
    );
    Store::open(disk_of(&files(&bench.disk)), bench.meta.clone(), config()).unwrap();
}

/// A head that is damaged among those that were taken: all others are read, and a check finds it.
#[test]
fn a_damaged_head_before_what_was_taken_keeps_nobody_from_the_rest() {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    bench.fill(inbox, 1..=5);
    let mut damaged = files(&bench.disk);
    let octets = damaged[0].1.as_mut().unwrap();
    // The position of the first record.
    octets[64 + 8] ^= 1;
    let (mut store, _) = Store::open(disk_of(&damaged), bench.meta.clone(), config()).unwrap();
    assert!(!store.check_all().unwrap().findings.is_empty());
}
