//! Chunks on the local disk.

use std::time::Duration;

use vere_faults::MemoryDisk;
use vere_units::Timestamp;

use super::*;
use crate::chunk_store::ChunkStore;
use crate::keep_job::{CachedJob, KeepJob, Opened};

const MAX: u64 = 100_000;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn open(disk: &MemoryDisk, max: u64) -> ChunkStore<MemoryDisk> {
    ChunkStore::open(disk, max, at(0)).unwrap()
}

/// A mail id as hashes are, and the place of a frame with so many octets.
fn mail(number: u8) -> MailId {
    let mut id = [0x5a; 16];
    id[0] = number;
    id[9] = number;
    MailId(id)
}

const fn place(at: u32, sealed_len: u32) -> Place {
    Place { at, sealed_len }
}

/// Keeps an entry: 68 octets of a head, and a frame.
fn keep(store: &mut ChunkStore<MemoryDisk>, mail: MailId, place: Place, octet: u8) {
    let span = store.reserve(place, at(0)).unwrap();
    let frame = vec![octet; place.octets() as usize];
    span.write(&[octet; HEAD_OCTETS], &frame).unwrap();
    store.written(&keys(), (mail, place.at), &span, true, at(0));
}

fn read(store: &mut ChunkStore<MemoryDisk>, mail: MailId, place: Place) -> Option<Vec<u8>> {
    let span = store.find(&keys(), mail, place)?;
    Some(span.read().unwrap())
}

#[test]
fn entries_come_back_after_a_restart() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, MAX);
    assert_eq!(read(&mut store, mail(1), place(68, 100)), None);
    for number in 1..4 {
        keep(&mut store, mail(number), place(68, 100), number);
    }
    keep(&mut store, mail(1), place(172, 200), 9);
    for round in 0..3 {
        for number in 1..4 {
            let octets = read(&mut store, mail(number), place(68, 100));
            assert_eq!(octets, Some(vec![number; 68 + 104]), "{round}");
        }
        let octets = read(&mut store, mail(1), place(172, 200));
        assert_eq!(octets, Some(vec![9; 68 + 204]));
        assert_eq!(store.octets(), 3 * 172 + 272);
        // Neither another frame, nor one of another length.
        assert_eq!(read(&mut store, mail(2), place(172, 200)), None);
        assert_eq!(read(&mut store, mail(1), place(68, 101)), None);
        let misses = if round == 0 { 3 } else { 2 };
        assert_eq!(store.counts(), (4, misses));
        store = open(&disk, MAX);
    }
    assert_eq!(names(&disk, "chunks-"), ["chunks-0000000000000000"]);
}

/// Places of one mail, and mails of one place, apart by a bit.
#[test]
fn no_entry_is_taken_for_another() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, MAX);
    let mails = [0, 1, 2, 3].map(|first| {
        let mut id = [0; 16];
        id[0] = first;
        MailId(id)
    });
    let places = [0, 1, 2, 3, 0x0101_0101].map(|at| place(at, 20));
    let all = mails
        .iter()
        .flat_map(|mail| places.map(|place| (*mail, place)));
    let all: Vec<_> = all.zip(0..).collect();
    for ((mail, place), octet) in &all {
        keep(&mut store, *mail, *place, *octet);
    }
    for ((mail, place), octet) in &all {
        let octets = read(&mut store, *mail, *place);
        assert_eq!(octets, Some(vec![*octet; 68 + 24]), "{place:?}");
    }
}

#[test]
fn the_files_without_use_go_first() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, MAX);
    // 4,000 octets; 6 entries fit into a file of a quarter.
    let place = place(68, 4_000 - 72);
    for number in 0..100 {
        keep(&mut store, mail(number), place, number);
        assert!(read(&mut store, mail(0), place).is_some(), "in use");
        assert!(store.octets() <= MAX, "{}", store.octets());
        assert_eq!(store.octets(), octets(&disk, "chunks-"));
    }
    assert!(store.octets() > MAX / 2);
    let kept = (0..100).filter(|number| read(&mut store, mail(*number), place).is_some());
    let kept: Vec<u8> = kept.collect();
    assert_eq!(kept[..6], [0, 1, 2, 3, 4, 5], "the file in use");
    assert_eq!(kept.last(), Some(&99));
    assert_eq!(kept.len() as u64, store.octets() / 4_000);
    // A start with a smaller bound.
    let store = open(&disk, MAX / 2);
    assert!(store.octets() <= MAX / 2);
    assert_eq!(store.octets(), octets(&disk, "chunks-"));
    assert!(store.octets() > 0);
}

/// A chunk as large as most of the cache is not kept.
#[test]
fn an_entry_has_a_quarter_of_the_room_at_most() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, 4_000);
    assert!(store.reserve(place(68, 1_001 - 72), at(0)).is_none());
    assert_eq!(names(&disk, "chunks-"), [""; 0]);
    for _ in 0..2 {
        assert!(store.reserve(place(68, 1_000 - 72), at(0)).is_some());
    }
    assert_eq!(names(&disk, "chunks-").len(), 2, "each fills a file");
    assert!(store.reserve(place(68, 400 - 72), at(0)).is_some());
    assert!(store.reserve(place(68, 600 - 72), at(0)).is_some());
    assert_eq!(names(&disk, "chunks-").len(), 3);
}

/// A failing disk gets no entry for ten minutes; its entries are read on.
#[test]
fn a_failing_disk_rests() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, MAX);
    keep(&mut store, mail(1), place(68, 100), 1);
    let span = store.reserve(place(68, 100), at(1_000)).unwrap();
    store.written(&keys(), (mail(2), 68), &span, false, at(1_000));
    assert!(store.reserve(place(68, 100), at(1_000)).is_none());
    assert!(store.reserve(place(68, 100), at(1_599)).is_none());
    assert!(read(&mut store, mail(1), place(68, 100)).is_some());
    assert_eq!(read(&mut store, mail(2), place(68, 100)), None);
    let later = at(1_000) + Duration::from_secs(600);
    assert!(store.reserve(place(68, 100), later).is_some());
    // No room for another file.
    disk.stop_at(disk.steps());
    let place = place(68, 24_900);
    assert!(store.reserve(place, later).is_none());
    disk.stop_at(u64::MAX);
    assert!(store.reserve(place, later).is_none(), "it rests");
    assert!(
        store
            .reserve(place, later + Duration::from_secs(600))
            .is_some()
    );
}

/// A failed write of the index is a failure too.
#[test]
fn an_entry_that_nobody_finds_is_a_failure() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, MAX);
    let span = store.reserve(place(68, 100), at(0)).unwrap();
    disk.stop_at(disk.steps());
    store.written(&keys(), (mail(1), 68), &span, true, at(0));
    disk.stop_at(u64::MAX);
    assert!(store.reserve(place(68, 100), at(1)).is_none());
}

#[test]
fn a_damaged_entry_is_fetched_again() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, MAX);
    keep(&mut store, mail(1), place(68, 100), 1);
    assert!(store.find(&keys(), mail(1), place(68, 100)).is_some());
    assert_eq!(store.counts(), (1, 0));
    store.is_damaged(mail(1), 68);
    assert_eq!(store.counts(), (0, 1));
    assert!(store.find(&keys(), mail(1), place(68, 100)).is_none());
}

/// Whatever the disk has made of an entry, a chunk is the sealed one, or none.
#[test]
fn a_chunk_of_the_disk_is_verified() {
    let (mail, place, head, frame) = sealed(b"content");
    let run = |octets: Option<Vec<u8>>| {
        let job = CachedJob {
            read: Box::new(|| octets.ok_or_else(|| std::io::Error::other("broken"))),
            keys: keys().into(),
            id: mail,
            place,
        };
        assert!(format!("{job:?}").starts_with("CachedJob("));
        job.run()
    };
    let entry = [head.clone(), frame.clone()].concat();
    assert_eq!(run(Some(entry.clone())).as_deref(), Some(&b"content"[..]));
    for octet in 0..entry.len() {
        let mut damaged = entry.clone();
        damaged[octet] ^= 1;
        // The checksum of the head tells damage on the way from forgery, and is not sealed.
        let is_sum = (HEAD_OCTETS - 4..HEAD_OCTETS).contains(&octet);
        assert!(is_sum || run(Some(damaged)).is_none(), "{octet}");
    }
    assert_eq!(run(Some(entry[..60].to_vec())), None);
    assert_eq!(run(None), None);
    let chunk = Opened {
        plain: Bytes::from_static(b"content"),
        head: head.into(),
        frame: frame.into(),
    };
    let job = KeepJob {
        write: None,
        keys: keys().into(),
        chunk,
    };
    assert_eq!(
        format!("{job:?}"),
        "KeepJob(7 octets)",
        "content never prints"
    );
    let kept = job.run();
    assert!(!kept.is_written);
    assert_eq!((kept.name, kept.octets), (keys().chunk_id(b"content"), 7));
}
