//! Power cuts at every point at which the index writes: afterwards each segment that is there is
//! whole or says that it is not, and what none knows is little enough to be read, never told wrongly.

use vere_faults::Fate;

use super::*;
use crate::{Index, Task};

/// Adds segments, joins them, drops some; as a host does.
fn run(disk: &MemoryDisk, all: &Texts) -> std::io::Result<()> {
    let mut index = Index::open(disk.clone(), LOG)?;
    // As after a question that met damage.
    index.doubt(MAILBOX)?;
    let uids: Vec<u32> = all.keys().copied().collect();
    for uids in uids.chunks(20) {
        let (first, last) = (uids[0], uids[uids.len() - 1]);
        let known = index.segments(MAILBOX)?;
        let known = known.iter().flat_map(|segment| segment.documents());
        if known.into_iter().any(|document| document.uid == first) {
            continue;
        }
        let part: Texts = all
            .range(first..=last)
            .map(|(uid, texts)| (*uid, texts.clone()))
            .collect();
        index.put(MAILBOX, (first, last), &build(&part).unwrap())?;
        while let Task::Join(segments) = index.task(MAILBOX)? {
            let range = index.range_of(MAILBOX, &segments).unwrap();
            let borrowed: Vec<_> = segments.iter().map(AsRef::as_ref).collect();
            let live = |document: &Document| document.uid % 20 != 5;
            let octets = merge(&borrowed, live).map_err(std::io::Error::other)?;
            index.put(MAILBOX, range, &octets.unwrap())?;
        }
    }
    index.put(MAILBOX + 1, (1, 9), b"of a mailbox that goes")?;
    index.drop_within(MAILBOX + 1, (0, u32::MAX))
}

/// Opens it and holds what it says to the texts; gives how many messages it knows.
fn verify(disk: &MemoryDisk, all: &Texts, context: &str) -> usize {
    let mut index = Index::open(disk.clone(), LOG).unwrap();
    let needles = needles(all, 9, 6);
    let mut known = std::collections::BTreeSet::new();
    for segment in index.segments(MAILBOX).unwrap() {
        if merge(&[&segment], |_| true).is_err() {
            // Was not synced, and is noticed wherever it is read.
            continue;
        }
        agrees(&segment, all, &needles);
        for document in segment.documents() {
            assert_eq!(document.body, body(document.uid), "{context}");
            assert!(
                known.insert(document.uid),
                "{context}: {} twice",
                document.uid
            );
        }
    }
    known.len()
}

#[test]
fn no_cut_of_power_makes_the_index_lie() {
    let all = texts(4, 1..321);
    let disk = MemoryDisk::default();
    run(&disk, &all).unwrap();
    let expected = verify(&disk, &all, "without a cut");
    assert!(expected > 200, "{expected}");
    let points = disk.steps();
    assert!(points > 60, "{points} points to cut at");
    for point in 1..points {
        for seed in 0..3 {
            let context = format!("cut at {point} of {points}, seed {seed}");
            let mut fate = Seeded(point * 100 + seed);
            let disk = MemoryDisk::default();
            disk.stop_at(point);
            let _ = run(&disk, &all);
            disk.crash(&mut fate);
            if fate.pick(2) == 0 {
                disk.stop_at(disk.steps() + fate.pick(4) as u64);
                let _ = run(&disk, &all);
                disk.crash(&mut fate);
            }
            verify(&disk, &all, &context);
            run(&disk, &all).unwrap_or_else(|error| panic!("{context}: {error}"));
            let known = verify(&disk, &all, &context);
            assert!(
                known >= expected,
                "{context}: {known} of {expected} are known"
            );
        }
    }
}

#[test]
fn segments_of_others_and_damaged_ones_go() {
    let all = texts(2, 1..41);
    let disk = MemoryDisk::default();
    run(&disk, &all).unwrap();
    let mut other = Index::open(disk.clone(), LOG + 1).unwrap();
    assert_eq!(other.mailboxes(), [MAILBOX]);
    assert!(other.segments(MAILBOX).unwrap().is_empty());
    assert!(other.mailboxes().is_empty());
    run(&disk, &all).unwrap();
    let name = disk.list().unwrap().remove(0);
    let mut octets = disk.file(&name).unwrap();
    let middle = octets.len() / 2;
    octets[middle] ^= 1;
    disk.set_file(&name, Some(octets));
    let mut index = Index::open(disk.clone(), LOG).unwrap();
    index.doubt(MAILBOX).unwrap();
    assert_eq!(index.segments(MAILBOX).unwrap().len(), 1);
    assert!(disk.file(&name).is_none());
}
