//! Power cuts at every point at which the index writes: afterwards each segment that is there is
//! whole or says that it is not, and what none knows is little enough to be read, never told wrongly.

use vere_faults::Fate;

use super::*;
use crate::{Index, Task};

/// What was handed over to be written.
type Handed = std::collections::BTreeSet<Vec<u8>>;

/// Adds segments, joins them, drops some; as a host does.
fn run(disk: &MemoryDisk, all: &Texts, written: &mut Handed) -> std::io::Result<()> {
    let mut put = |index: &mut Index<MemoryDisk>, range, octets: Vec<u8>| {
        let done = index.put(MailboxId(MAILBOX.0), range, &octets);
        written.insert(octets);
        done
    };
    let mut index = Index::open(disk.clone(), LogId(LOG.0))?;
    // As after a question that met damage.
    index.doubt(MailboxId(MAILBOX.0))?;
    let uids: Vec<u32> = all.keys().copied().collect();
    for uids in uids.chunks(20) {
        let (first, last) = (uids[0], uids[uids.len() - 1]);
        let known = index.segments(MailboxId(MAILBOX.0))?;
        let known = known.iter().flat_map(|segment| segment.documents());
        if known.into_iter().any(|document| document.uid == first) {
            continue;
        }
        let part: Texts = all
            .range(first..=last)
            .map(|(uid, texts)| (*uid, texts.clone()))
            .collect();
        put(&mut index, (first, last), build(&part).unwrap())?;
        while let Task::Join(segments) = index.task(MailboxId(MAILBOX.0))? {
            let range = index.range_of(MailboxId(MAILBOX.0), &segments).unwrap();
            let borrowed: Vec<_> = segments.iter().map(AsRef::as_ref).collect();
            let live = |document: &Document| document.uid % 20 != 5;
            let octets = merge(&borrowed, live).map_err(std::io::Error::other)?;
            put(&mut index, range, octets.unwrap())?;
        }
    }
    index.put(MAILBOX.next(), (1, 9), b"of a mailbox that goes")?;
    index.drop_within(MAILBOX.next(), (0, u32::MAX))
}

/// A segment is taken for whole when its octets are those that were handed over, and else not.
fn no_torn_one_is_taken_for_whole(disk: &MemoryDisk, written: &Handed, context: &str) -> usize {
    let own = format!("{:016x}-", MAILBOX.0);
    let names = disk.list().unwrap().into_iter();
    let names = names.filter(|name| name.starts_with(&own) && name.ends_with(".idx"));
    let mut torn = 0;
    for name in names {
        let octets = disk.file(&name).unwrap();
        let taken = Segment::open(disk.open(&name).unwrap())
            .and_then(|segment| merge(&[&segment], |_| true));
        let whole = written.contains(&octets);
        assert_eq!(taken.is_ok(), whole, "{context}: {name}");
        torn += usize::from(!whole);
    }
    torn
}

/// Opens it and holds what it says to the texts; gives how many messages it knows.
fn verify(disk: &MemoryDisk, all: &Texts, context: &str) -> usize {
    let mut index = Index::open(disk.clone(), LogId(LOG.0)).unwrap();
    let needles = needles(all, 9, 6);
    let mut known = std::collections::BTreeSet::new();
    for segment in index.segments(MailboxId(MAILBOX.0)).unwrap() {
        if merge(&[&segment], |_| true).is_err() {
            // Was not synced, and is noticed wherever it is read: what it does say is so.
            agrees_as_far(&segment, all, &needles, Result::ok);
            has_its_summaries_or_none(&segment);
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

fn has_its_summaries_or_none<F: StorageFile>(segment: &Segment<F>) {
    let Ok(mut summaries) = segment.summaries() else {
        return;
    };
    for (number, document) in segment.documents().iter().enumerate() {
        if let Ok(given) = summaries.get(number) {
            let kept = summary(document.uid);
            let kept = kept.filter(|summary| summary.len() <= crate::SUMMARY_OCTETS_MAX);
            assert_eq!(given, kept.as_deref());
        }
    }
}

#[test]
fn no_cut_of_power_makes_the_index_lie() {
    let all = texts(4, 1..321);
    let mut written = Handed::new();
    let mut torn = 0;
    let disk = MemoryDisk::default();
    run(&disk, &all, &mut written).unwrap();
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
            let _ = run(&disk, &all, &mut written);
            disk.crash(&mut fate);
            if fate.pick(2) == 0 {
                disk.stop_at(disk.steps() + fate.pick(4) as u64);
                let _ = run(&disk, &all, &mut written);
                disk.crash(&mut fate);
            }
            torn += no_torn_one_is_taken_for_whole(&disk, &written, &context);
            verify(&disk, &all, &context);
            run(&disk, &all, &mut written).unwrap_or_else(|error| panic!("{context}: {error}"));
            let known = verify(&disk, &all, &context);
            assert!(
                known >= expected,
                "{context}: {known} of {expected} are known"
            );
            no_torn_one_is_taken_for_whole(&disk, &written, &context);
        }
    }
    assert!(torn > 0, "no cut tore a segment");
}

#[test]
fn segments_of_others_and_damaged_ones_go() {
    let all = texts(2, 1..41);
    let disk = MemoryDisk::default();
    run(&disk, &all, &mut Handed::new()).unwrap();
    let mut other = Index::open(disk.clone(), LOG.next()).unwrap();
    assert_eq!(other.mailboxes(), [MAILBOX]);
    assert!(other.segments(MailboxId(MAILBOX.0)).unwrap().is_empty());
    assert!(other.mailboxes().is_empty());
    run(&disk, &all, &mut Handed::new()).unwrap();
    let name = disk.list().unwrap().remove(0);
    let mut octets = disk.file(&name).unwrap();
    let middle = octets.len() / 2;
    octets[middle] ^= 1;
    disk.set_file(&name, Some(octets));
    let mut index = Index::open(disk.clone(), LogId(LOG.0)).unwrap();
    index.doubt(MailboxId(MAILBOX.0)).unwrap();
    assert_eq!(index.segments(MailboxId(MAILBOX.0)).unwrap().len(), 1);
    assert!(disk.file(&name).is_none());
}
