//! The local disk as a whole.

use vere_faults::MemoryDisk;
use vere_units::Timestamp;

use crate::local::{CacheTerms, Local};

fn open(disk: &MemoryDisk, chunks_max: u64) -> Local<MemoryDisk> {
    let terms = CacheTerms {
        hints_max: 64 << 10,
        ..CacheTerms::of(chunks_max)
    };
    Local::open(disk, terms, Timestamp::ZERO)
}

#[test]
fn a_bound_of_nothing_keeps_no_chunks() {
    assert!(open(&MemoryDisk::default(), 0).chunks.is_none());
    assert!(open(&MemoryDisk::default(), 1).chunks.is_some());
    let disk = MemoryDisk::default();
    disk.stop_at(0);
    assert!(open(&disk, 1 << 20).chunks.is_none(), "a broken disk");
}

/// Chunks on the way to a slow disk are in memory: a bound holds.
#[test]
fn chunks_on_the_way_to_the_disk_have_a_bound() {
    let mut local = open(&MemoryDisk::default(), 0);
    assert!(local.begin_keeping(600, 1_000), "for the table of hints");
    assert!(!local.begin_keeping(401, 1_000));
    assert!(local.begin_keeping(400, 1_000));
    assert!(!local.begin_keeping(1, 1_000));
    local.end_keeping(600);
    assert!(local.begin_keeping(600, 1_000));
    assert!(!Local::<MemoryDisk>::none().begin_keeping(1, 1_000));
}

#[test]
fn shared_octets_are_counted() {
    let mut local = open(&MemoryDisk::default(), 0);
    local.shares(5);
    local.shares(7);
    assert_eq!(local.shared(), 12);
}
