//! Syncs on the thread that appends, and when they are left to the one that syncs.

use super::*;

/// What was appended last is synced, and no job was needed for it.
fn is_synced(bench: &Bench, end: u64) -> bool {
    bench.synced() == end && bench.waiting.try_recv().is_err()
}

#[test]
fn a_sync_that_is_alone_is_done_at_once_and_lasts() {
    let mut bench = Bench::new();
    let end = bench.append(b"one");
    bench.log.sync_alone();
    assert!(is_synced(&bench, end));
    bench.append(b"two");
    bench.disk.crash(&mut Nothing);
    let (reader, _) = open(&bench.disk).unwrap();
    assert_eq!(reader.entries, [(1, b"one".to_vec())]);
}

/// One that is on the way is not overtaken: it would say later that less is synced.
#[test]
fn beside_a_job_it_is_left_to_another_one() {
    let mut bench = Bench::new();
    let first = bench.append(b"one");
    bench.log.start_sync();
    let second = bench.append(b"two");
    bench.log.sync_alone();
    assert!(bench.synced() < first);
    run_waiting(&bench.waiting);
    assert_eq!(bench.synced(), second);
    let third = bench.append(b"three");
    bench.log.sync_alone();
    assert!(is_synced(&bench, third), "when that is over it goes on");
}

/// The end of a segment has work behind it, which the thread that appends does not do.
#[test]
fn another_segment_and_the_end_of_old_ones_are_left_to_a_job() {
    let mut bench = Bench::new();
    let end = bench.append(&[b'x'; SEGMENT_LEN as usize]);
    assert_eq!(bench.log.newest(), 2);
    bench.log.sync_alone();
    assert!(bench.synced() < end);
    run_waiting(&bench.waiting);
    assert_eq!(bench.synced(), end);
    bench.log.remove_before(2).unwrap();
    let end = bench.append(b"last");
    bench.log.sync_alone();
    run_waiting(&bench.waiting);
    bench.log.keep_house();
    run_waiting(&bench.waiting);
    assert_eq!(bench.synced(), end);
    let (reader, _) = open(&bench.disk).unwrap();
    assert_eq!(reader.entries, [(2, b"last".to_vec())]);
}

#[test]
fn a_failure_is_told_at_once_and_final() {
    let mut bench = Bench::new();
    bench.append(b"one");
    bench.disk.fail_syncs(true);
    bench.log.sync_alone();
    assert!(matches!(bench.log.synced(), Err(LogError::Failed(_))));
    bench.disk.fail_syncs(false);
    bench.log.sync_alone();
    assert!(matches!(bench.log.synced(), Err(LogError::Failed(_))));
}

/// Where syncs take long the thread that appends does not wait for one.
#[test]
fn with_no_time_for_it_every_sync_is_a_job() {
    let disk = MemoryDisk::default();
    let (mut common, waiting) = common(&disk, 0);
    common.in_place_max = Duration::ZERO;
    let log = recover::create(disk.clone(), &common, LOG_ID, b"head 1").unwrap();
    let mut bench = Bench { disk, waiting, log };
    let end = bench.append(b"one");
    bench.log.sync_alone();
    assert!(bench.synced() < end);
    run_waiting(&bench.waiting);
    assert_eq!(bench.synced(), end);
}
