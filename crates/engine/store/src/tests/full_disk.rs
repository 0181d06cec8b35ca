//! A disk that is full: nothing comes in, everything can be removed, and then there is room again.

use super::reclaiming::{expunge, noise, reclaim};
use super::*;
use crate::{FlagMode, SystemFlags, Uid};
use vere_faults::Seeded;
use vere_ports::storage::Storage;

fn with_spare() -> StoreConfig {
    StoreConfig {
        spare: ByteSize::kib(64),
        ..config()
    }
}

/// A store on a disk that is full to the last segment.
fn full() -> Bench {
    full_disk(400, with_spare())
}

/// The same on a disk of so many KiB.
fn full_disk(room: u64, config: StoreConfig) -> Bench {
    let mut bench = Bench::new();
    bench.disk.set_capacity(Some(room * 1024));
    bench.store = Store::open(bench.disk.clone(), bench.meta.clone(), config)
        .unwrap()
        .0;
    for number in 1.. {
        let target = [target(bench.inbox)];
        match bench
            .store
            .deliver(&noise(number), &target, operation(number))
        {
            Ok(added) => drop(safe(&mut bench.store, added)),
            Err(error) => {
                assert_eq!(error, StoreError::DiskFull);
                break;
            }
        }
    }
    // Whoever knows the disk finds that there is some room yet.
    bench.store.note_room(false).unwrap();
    bench
}

fn uids(bench: &mut Bench) -> Vec<Uid> {
    let snapshot = bench.snapshot(bench.inbox);
    snapshot.iter_from(0).map(|message| message.uid).collect()
}

#[test]
fn what_is_removed_from_a_full_disk_makes_room() {
    let mut bench = full();
    assert!(bench.store.is_roomy());
    let all = uids(&mut bench);
    // More changes than the newest segment could take.
    for round in 0..60 {
        let mode = if round % 2 == 0 {
            FlagMode::Add
        } else {
            FlagMode::Remove
        };
        let flags = Flags {
            system: SystemFlags::SEEN,
            keywords: Vec::new(),
        };
        let stored = bench
            .store
            .store_flags(bench.inbox, &all[..4], mode, &flags, None);
        safe(&mut bench.store, stored.unwrap());
    }
    assert!(!bench.store.is_roomy());
    let refused = bench
        .store
        .deliver(&prepared(9_000), &[target(bench.inbox)], operation(9_000));
    assert_eq!(refused.unwrap_err(), StoreError::DiskFull);
    expunge(&mut bench, &all[..all.len() / 2]);
    let left = bench.read(bench.inbox);
    assert!(reclaim(&mut bench.store).unwrap() > 100_000);
    bench.store.note_room(false).unwrap();
    assert!(bench.store.is_roomy());
    bench.deliver(bench.inbox, 9_001);
    bench.reopen(true);
    assert_eq!(bench.read(bench.inbox)[..left.len()], left);
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

#[test]
fn nothing_comes_in_while_the_disk_is_nearly_full() {
    let mut bench = Bench::new();
    bench.store = Store::open(bench.disk.clone(), bench.meta.clone(), with_spare())
        .unwrap()
        .0;
    bench.deliver(bench.inbox, 1);
    let spare = |bench: &Bench| {
        let files = ["spare-1", "spare-2"].map(|name| bench.disk.file(name));
        files.map(|file| file.map_or(0, |data| data.len() >> 10))
    };
    assert_eq!(spare(&bench), [32, 32]);
    bench.store.note_room(true).unwrap();
    assert_eq!(spare(&bench), [0, 32]);
    let refused = bench
        .store
        .deliver(&prepared(2), &[target(bench.inbox)], operation(2));
    assert_eq!(refused.unwrap_err(), StoreError::DiskFull);
    expunge(&mut bench, &[Uid::FIRST]);
    bench.store.note_room(false).unwrap();
    assert_eq!(spare(&bench), [32, 32]);
    bench.deliver(bench.inbox, 3);
    // Without the setting the room is given back.
    bench.reopen(false);
    assert_eq!(spare(&bench), [0, 0]);
}

/// Each would have to make a whole segment to see that there is no room for it.
#[test]
fn a_refused_message_keeps_others_from_trying_until_there_is_room() {
    let mut bench = full();
    let deliver = |bench: &mut Bench, number| {
        let target = [target(bench.inbox)];
        let added = bench
            .store
            .deliver(&noise(number), &target, operation(number));
        added.map(|added| drop(safe(&mut bench.store, added)))
    };
    assert_eq!(deliver(&mut bench, 9_000), Err(StoreError::DiskFull));
    bench.disk.set_capacity(None);
    assert_eq!(deliver(&mut bench, 9_001), Err(StoreError::DiskFull));
    bench.store.note_room(false).unwrap();
    assert_eq!(deliver(&mut bench, 9_002), Ok(()));
}

/// Opening takes nothing of the last octets for a segment that it does not get whole.
#[test]
fn a_store_opens_on_a_disk_that_is_full() {
    let mut bench = full();
    bench.store.note_room(true).unwrap();
    bench.disk.set_capacity(Some(bench.disk.used()));
    let before = bench.read(bench.inbox);
    bench.store = Store::open(bench.disk.clone(), bench.meta.clone(), with_spare())
        .unwrap()
        .0;
    assert_eq!(bench.read(bench.inbox), before);
    let all = uids(&mut bench);
    expunge(&mut bench, &all[..all.len() / 2]);
    assert!(reclaim(&mut bench.store).unwrap() > 100_000);
}

/// What was given up so that a store opens is not made again by an opening that fails.
#[test]
fn a_store_that_does_not_open_makes_no_spare_room() {
    let mut bench = full();
    bench.disk.set_capacity(None);
    bench.disk.remove("spare-1").unwrap();
    bench.meta = MemoryMeta::default();
    bench.meta.set_full(true);
    let open = |bench: &Bench| Store::open(bench.disk.clone(), bench.meta.clone(), with_spare());
    assert!(open(&bench).is_err());
    let held = |bench: &Bench| crate::SPARES.map(|name| bench.disk.file(name).is_some());
    assert_eq!(held(&bench), [false, true]);
    bench.meta.set_full(false);
    bench.store = open(&bench).unwrap().0;
    assert_eq!(held(&bench), [true, true]);
    assert!(bench.store.is_roomy());
}

/// A message too long for the room that is left is refused; others are taken.
#[test]
fn a_message_that_does_not_fit_keeps_no_other_one_out() {
    let mut bench = Bench::new();
    bench.disk.set_capacity(Some(2_048 * 1024));
    bench.store = Store::open(bench.disk.clone(), bench.meta.clone(), with_spare())
        .unwrap()
        .0;
    let mut seeded = Seeded(1);
    let octets: Vec<u8> = (0..1 << 19)
        .flat_map(|_| seeded.next_u64().to_le_bytes())
        .collect();
    let long = Prepared::new(&octets, &[], &[]).unwrap();
    let to = [target(bench.inbox)];
    let refused = bench.store.deliver(&long, &to, operation(1));
    assert_eq!(refused.unwrap_err(), StoreError::DiskFull);
    bench.deliver(bench.inbox, 2);
}

/// Somebody else takes every octet that is given up first: what is for reclaiming is still there.
#[test]
fn whoever_else_fills_the_disk_does_not_keep_room_from_coming_back() {
    let mut bench = full();
    bench.store.note_room(true).unwrap();
    bench.disk.set_capacity(Some(bench.disk.used()));
    let all = uids(&mut bench);
    expunge(&mut bench, &all[..all.len() / 2]);
    assert!(reclaim(&mut bench.store).unwrap() > 100_000);
    bench.disk.set_capacity(None);
    bench.store.note_room(false).unwrap();
    assert!(bench.store.is_roomy());
    bench.deliver(bench.inbox, 9_001);
    bench.reopen(true);
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

/// What is left beside a whole segment is used before the spare room is given up.
#[test]
fn a_small_segment_comes_before_the_spare_room() {
    let large = StoreConfig {
        segment_size: ByteSize::mib(4),
        spare: ByteSize::mib(4),
        ..config()
    };
    let mut bench = full_disk(11 * 1024, large);
    let all = uids(&mut bench);
    let flags = Flags {
        system: SystemFlags::SEEN,
        keywords: Vec::new(),
    };
    let newest = bench.store.log.newest();
    for round in 0.. {
        let mode = [FlagMode::Add, FlagMode::Remove][round % 2];
        let stored = bench
            .store
            .store_flags(bench.inbox, &all[..4], mode, &flags, None);
        safe(&mut bench.store, stored.unwrap());
        if bench.store.log.newest() > newest {
            break;
        }
    }
    assert!(bench.store.is_roomy(), "spare room was given up");
}

/// Whoever reads that messages were not moved moves them again: they must not be there already.
#[test]
fn a_move_that_a_full_disk_refuses_leaves_no_copy() {
    let mut refused = 0;
    // The room that is left ends before a move, within one, or behind.
    for padding in 0..25 {
        let mut bench = Bench::new();
        let archive = bench.create("Archive");
        bench.fill(bench.inbox, 1..=60);
        bench.create(&"x".repeat(1 + padding * 17));
        bench.disk.set_capacity(Some(0));
        for uid in uids(&mut bench) {
            let id = operation(9_000 + u64::from(uid.get()));
            let moved =
                bench
                    .store
                    .move_to(bench.inbox, &[uid], archive, QuotaLimit::default(), id);
            let moved = match moved {
                Ok(moved) => safe(&mut bench.store, moved).to.len(),
                Err(error) => {
                    assert_eq!(error, StoreError::DiskFull);
                    refused += 1;
                    0
                }
            };
            let from = bench.snapshot(bench.inbox).find(uid).is_some();
            assert_eq!(from, moved == 0, "padding {padding}: UID {uid}");
            let messages = [bench.inbox, archive].map(|id| bench.snapshot(id).len());
            assert_eq!(messages[0] + messages[1], 60, "padding {padding}");
        }
    }
    assert!(refused > 25, "{refused} refused");
}
