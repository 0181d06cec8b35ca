//! On real files.

use super::*;

const BLOCK: usize = 64 << 10;

fn options(blocks: u64) -> SpillOptions {
    SpillOptions {
        room: blocks * BLOCK as u64,
        spare: 0,
        block_len: BLOCK,
    }
}

fn quiet() -> Wake {
    Arc::new(|| {})
}

fn octets(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 7 + at / 251 + seed) as u8)
        .collect()
}

fn put(store: &mut SpillFile, seed: usize, len: usize) -> SpillSlot {
    let slot = store.write(octets(seed, len + 100), len).unwrap();
    let done = store.wait().unwrap();
    assert_eq!((done.slot, &done.result), (slot, &Ok(())));
    assert_eq!(done.octets, octets(seed, len + 100), "given back as it was");
    slot
}

fn holds(store: &mut SpillFile, slot: SpillSlot, seed: usize, len: usize) {
    store.read(slot, vec![0xEE; len + 50]);
    let done = store.wait().unwrap();
    assert_eq!((done.slot, &done.result), (slot, &Ok(())));
    assert_eq!(done.octets[..len], octets(seed, len));
}

fn round_trips(store: &mut SpillFile) {
    let lens = [1, 511, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 77];
    let mut slots: Vec<_> = (lens.iter().enumerate())
        .map(|(seed, len)| (seed, *len, put(store, seed, *len)))
        .collect();
    assert_eq!(store.used(), lens.iter().sum::<usize>() as u64);
    // Freed blocks are used again, in pieces.
    for at in [5, 3, 0] {
        let (.., slot) = slots.remove(at);
        store.free(slot);
    }
    slots.push((50, 3 * BLOCK, put(store, 50, 3 * BLOCK)));
    slots.push((51, 2 * BLOCK, put(store, 51, 2 * BLOCK)));
    for (seed, len, slot) in slots.iter().rev() {
        holds(store, *slot, *seed, *len);
    }
    for (.., slot) in slots {
        store.free(slot);
    }
    assert_eq!((store.used(), store.blocks.used()), (0, 0));
    assert!(store.poll().is_none() && store.wait().is_none());
}

#[test]
fn gives_back_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = SpillFile::open(directory.path(), options(100), &quiet()).unwrap();
    round_trips(&mut store);
}

#[test]
fn works_through_the_page_cache_too() {
    let file = tempfile::tempfile().unwrap();
    let mut store = SpillFile::on(file, false, options(100), &quiet()).unwrap();
    round_trips(&mut store);
}

#[test]
fn leaves_no_name_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join(NAME), "left by a crash").unwrap();
    let mut store = SpillFile::open(&path, options(9), &quiet()).unwrap();
    put(&mut store, 1, BLOCK);
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
}

#[test]
fn refuses_beyond_its_room_and_takes_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = SpillFile::open(directory.path(), options(4), &quiet()).unwrap();
    let first = put(&mut store, 1, 2 * BLOCK);
    let second = put(&mut store, 2, BLOCK);
    let refused = store.write(octets(3, 2 * BLOCK), 2 * BLOCK).unwrap_err();
    assert_eq!(refused.octets, octets(3, 2 * BLOCK));
    store.free(second);
    let third = put(&mut store, 3, 2 * BLOCK);
    holds(&mut store, first, 1, 2 * BLOCK);
    holds(&mut store, third, 3, 2 * BLOCK);
}

#[test]
fn a_disk_that_runs_full_gives_the_octets_back() {
    // Every write to it fails with ENOSPC.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut store = SpillFile::on(file, false, options(10), &quiet()).unwrap();
    let slot = store.write(octets(1, BLOCK), BLOCK).unwrap();
    let done = store.wait().unwrap();
    assert_eq!((done.slot, done.octets), (slot, octets(1, BLOCK)));
    assert!(done.result.is_err());
    assert_eq!((store.used(), store.blocks.used()), (0, 0));
}

#[test]
fn what_is_left_to_others_stays_free() {
    let directory = tempfile::tempdir().unwrap();
    let spare = SpillOptions {
        spare: u64::MAX / 2,
        ..options(10)
    };
    let mut store = SpillFile::open(directory.path(), spare, &quiet()).unwrap();
    store.write(octets(1, BLOCK), BLOCK).unwrap();
    assert!(store.wait().unwrap().result.is_err());
    assert_eq!(store.used(), 0);
}

#[test]
fn a_drained_file_is_cut() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = SpillFile::open(directory.path(), options(100), &quiet()).unwrap();
    let slots: Vec<_> = (0..20).map(|seed| put(&mut store, seed, BLOCK)).collect();
    for slot in &slots[1..] {
        store.free(*slot);
    }
    // Its thread works in order.
    let last = put(&mut store, 77, BLOCK);
    assert!(store.grown <= 2, "{}", store.grown);
    holds(&mut store, slots[0], 0, BLOCK);
    holds(&mut store, last, 77, BLOCK);
}

#[test]
fn many_reads_at_once_bring_each_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = SpillFile::open(directory.path(), options(100), &quiet()).unwrap();
    let len = 2 * BLOCK + 7;
    let slots: Vec<_> = (0..30).map(|seed| put(&mut store, seed, len)).collect();
    for slot in &slots {
        store.read(*slot, vec![0xEE; len]);
    }
    let mut seen = BTreeSet::new();
    while let Some(done) = store.wait() {
        let seed = slots.iter().position(|slot| *slot == done.slot).unwrap();
        assert_eq!((done.result, done.octets), (Ok(()), octets(seed, len)));
        seen.insert(seed);
    }
    assert_eq!(seen.len(), slots.len());
}

#[test]
fn jobs_of_different_slots_go_on_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = SpillFile::open(directory.path(), options(100), &quiet()).unwrap();
    let old = put(&mut store, 1, BLOCK);
    let new: Vec<_> = (2..10)
        .map(|seed| (seed, store.write(octets(seed, BLOCK), BLOCK).unwrap()))
        .collect();
    store.read(old, vec![0; BLOCK]);
    for _ in 0..9 {
        let done = store.wait().unwrap();
        assert_eq!(done.result, Ok(()));
        assert!(done.slot != old || done.octets == octets(1, BLOCK));
    }
    for (seed, slot) in new {
        holds(&mut store, slot, seed, BLOCK);
    }
}
