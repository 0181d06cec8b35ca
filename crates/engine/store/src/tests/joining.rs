//! Segments of which little is left become one, and no cut of power loses what is in them.

use vere_faults::Seeded;
use vere_ports::storage::Storage as _;

use super::reclaiming::{add, expunge};
use super::repairing::repair;
use super::*;
use crate::{Reclaim, ReclaimReport};

fn pass(store: &mut Tested) -> Result<ReclaimReport, StoreError> {
    loop {
        match store.reclaim(10)? {
            Reclaim::Working => {}
            Reclaim::Job(job) => drop(store.finish_reclaim(job.run())?),
            Reclaim::Done(report) => return Ok(report),
        }
    }
}

/// Passes until there is nothing left to do.
fn passes(store: &mut Tested) -> Result<(), StoreError> {
    while pass(store)?.rewritten > 0 {
        while let Some(job) = store.sync_job()? {
            store.finish_sync(job.run())?;
        }
    }
    Ok(())
}

/// Many segments, each written again with little in it.
fn sparse() -> Bench {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    let uids: Vec<_> = (1..=120).map(|n| add(&mut bench, inbox, n, n)).collect();
    let gone: Vec<_> = uids
        .iter()
        .copied()
        .filter(|uid| uid.get() % 12 != 0)
        .collect();
    expunge(&mut bench, &gone);
    assert!(pass(&mut bench.store).unwrap().rewritten > 10);
    sync(&mut bench.store);
    bench
}

/// The same on another disk.
fn copy_of(bench: &Bench) -> Bench {
    let (disk, meta) = (bench.disk.copy(), MemoryMeta::default());
    let (store, _) = Store::open(disk.clone(), meta.clone(), config()).unwrap();
    Bench {
        disk,
        meta,
        store,
        inbox: bench.inbox,
    }
}

fn names(bench: &Bench) -> Vec<String> {
    let mut names = bench.disk.list().unwrap();
    names.sort();
    names
}

/// Each was a file for ever, with nothing in it in the end.
#[test]
fn segments_of_which_little_is_left_become_one() {
    let mut bench = sparse();
    let (before, expected) = (names(&bench), bench.read(bench.inbox));
    let (reader, snapshot) = (bench.store.body_reader(), bench.snapshot(bench.inbox));
    passes(&mut bench.store).unwrap();
    let after = names(&bench);
    assert!(after.len() * 3 < before.len(), "{before:?} {after:?}");
    // Who looked before goes on reading what was joined.
    for message in snapshot.iter_from(0) {
        assert!(reader.open(message.blob).unwrap().message().is_ok());
    }
    for forget in [false, true] {
        assert_eq!(bench.read(bench.inbox), expected);
        assert_eq!(bench.store.check_all().unwrap().findings, []);
        bench.reopen(forget);
    }
    assert_eq!(bench.read(bench.inbox), expected);
    let (report, _) = repair(&bench.disk, None, false).unwrap();
    assert_eq!((report.damage.len(), report.mended), (0, 0));
    // They fill up again, and go again.
    let inbox = bench.inbox;
    for number in 200..260 {
        add(&mut bench, inbox, number, number);
    }
    let uids: Vec<_> = bench
        .snapshot(inbox)
        .iter_from(0)
        .map(|each| each.uid)
        .collect();
    expunge(&mut bench, &uids[5..]);
    passes(&mut bench.store).unwrap();
    let filled = names(&bench);
    assert!(filled.len() * 4 < before.len() * 3, "{before:?} {filled:?}");
    bench.reopen(true);
    assert_eq!(bench.read(inbox), expected[..5]);
}

/// A crash came before they went: everything in them is in the one before.
#[test]
fn what_was_joined_and_is_still_there_goes() {
    let mut bench = sparse();
    let (before, expected) = (bench.disk.copy(), bench.read(bench.inbox));
    passes(&mut bench.store).unwrap();
    let after = names(&bench);
    for name in before.list().unwrap() {
        if !after.contains(&name) {
            put(&bench.disk, &name, &before.file(&name).unwrap());
        }
    }
    let disk = bench.disk.copy();
    let (report, _) = repair(&disk, None, false).unwrap();
    assert_eq!((report.damage.len(), report.mended), (0, 0));
    for disk in [disk, bench.disk.clone()] {
        let mut bench = copy_of(&Bench {
            disk,
            ..copy_of(&bench)
        });
        assert_eq!(bench.read(bench.inbox), expected);
        assert_eq!(bench.store.check_all().unwrap().findings, []);
        assert_eq!(names(&bench), after);
    }
}

#[test]
fn no_cut_of_power_while_segments_are_joined_loses_anything() {
    let bench = sparse();
    let mut whole = copy_of(&bench);
    let expected = whole.read(whole.inbox);
    let start = whole.disk.steps();
    passes(&mut whole.store).unwrap();
    let points = whole.disk.steps() - start;
    assert!(points > 12, "{points} points to cut at");
    for point in 0..points {
        for seed in 0..4 {
            let context = format!("cut at {point} of {points}, seed {seed}");
            let mut bench = copy_of(&bench);
            let mut fate = Seeded(point * 10 + seed);
            bench.disk.stop_at(bench.disk.steps() + point);
            // To remove what was joined is the only thing that may fail.
            let _ = passes(&mut bench.store);
            bench.disk.crash(&mut fate);
            bench.meta.crash(&mut fate);
            bench.reopen(seed == 0);
            assert_eq!(bench.read(bench.inbox), expected, "{context}");
            assert_eq!(bench.store.check_all().unwrap().findings, [], "{context}");
            passes(&mut bench.store).unwrap();
            let (left, least) = (names(&bench).len(), names(&whole).len());
            assert!(left <= least + 2, "{context}: {left}, not {least}");
            bench.reopen(true);
            assert_eq!(bench.read(bench.inbox), expected, "{context}");
        }
    }
}

/// What lay behind a damaged head was taken for the end of the segment, and went with it.
#[test]
fn damage_is_not_the_end_of_a_segment() {
    for again in [false, true] {
        let mut bench = match again {
            true => sparse(),
            false => Bench::new(),
        };
        let inbox = bench.inbox;
        let uids: Vec<_> = (200..240).map(|n| add(&mut bench, inbox, n, n)).collect();
        let (first, second) = (names(&bench)[0].clone(), names(&bench)[1].clone());
        // The second record of a segment; the first is not what comes first in the mailbox.
        let damaged = if again { &first } else { &second };
        let mut data = bench.disk.file(damaged).unwrap();
        let length = u32::from_le_bytes(data[64 + 28..64 + 32].try_into().unwrap());
        data[64 + 40 + length as usize + 8] ^= 1;
        bench.disk.set_file(damaged, Some(data.clone()));
        bench.reopen(false);
        expunge(&mut bench, &uids[..30]);
        let mut refused = 0;
        loop {
            match bench.store.reclaim(1).unwrap() {
                Reclaim::Working => {}
                Reclaim::Job(job) => {
                    refused += usize::from(bench.store.finish_reclaim(job.run()).is_err());
                }
                Reclaim::Done(_) => break,
            }
        }
        assert_eq!(refused, 1, "written again: {again}");
        assert!(bench.disk.file(damaged) == Some(data));
    }
}
