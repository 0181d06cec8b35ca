//! Changes before a snapshot go, and the log alone still tells everything.

use std::collections::BTreeMap;

use vere_faults::Seeded;
use vere_ports::mail_meta::Partition;

use super::reclaiming::{add, expunge, reclaim};
use super::*;
use crate::rows::keys;
use crate::{FlagMode, Keyword, ModSeq, Status, SystemFlags, Uid};

type Rows = BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>;

/// Rows that the log tells: hints are not among them.
fn told(bench: &Bench) -> Rows {
    let account = Partition::Account(account("ann")).encode();
    let hint =
        |(partition, key): &(Vec<u8>, Vec<u8>)| *partition == account && keys::is_hint(key[0]);
    let rows = bench.meta.rows().into_iter();
    rows.filter(|(key, _)| !hint(key)).collect()
}

fn set_flags(bench: &mut Bench, uids: &[Uid], mode: FlagMode, keyword: &str) {
    let flags = Flags {
        system: SystemFlags::SEEN,
        keywords: vec![Keyword::new(keyword).unwrap()],
    };
    let stored = bench
        .store
        .store_flags(bench.inbox, uids, mode, &flags, None);
    safe(&mut bench.store, stored.unwrap());
}

fn status(bench: &mut Bench) -> Status {
    let status = bench.store.status(bench.inbox).unwrap();
    safe(&mut bench.store, status)
}

/// A store of which a mailbox changed much more often than it has messages; another was deleted.
fn changed() -> Bench {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    let uids: Vec<_> = (1..=12).map(|n| add(&mut bench, inbox, n, n)).collect();
    let old = bench.create("Old");
    bench.fill(old, 100..=105);
    for round in 0..120 {
        let mode = if round % 2 == 0 {
            FlagMode::Add
        } else {
            FlagMode::Remove
        };
        set_flags(&mut bench, &uids[..6], mode, ["one", "two"][round / 2 % 2]);
    }
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    empty(&mut bench.store);
    expunge(&mut bench, &uids[8..10]);
    // So that all of this lies in segments that are not written to any more.
    for number in 20..30 {
        add(&mut bench, inbox, number, number);
    }
    bench
}

fn octets(bench: &mut Bench) -> u64 {
    let report = bench.store.check_all().unwrap();
    assert_eq!(report.findings, []);
    report.log_octets
}

#[test]
fn changes_go_and_the_log_alone_still_tells_everything() {
    let mut bench = changed();
    let (before, known, messages) = (
        octets(&mut bench),
        status(&mut bench),
        bench.read(bench.inbox),
    );
    let saved = reclaim(&mut bench.store).unwrap();
    assert!(saved > 30_000, "{saved} of {before}");
    assert!(octets(&mut bench) < before - 30_000);
    assert_eq!(status(&mut bench), known);
    let rows = told(&bench);
    bench.reopen(true);
    assert_eq!(told(&bench), rows);
    assert_eq!(status(&mut bench), known);
    assert_eq!(bench.read(bench.inbox), messages);
    let gone = bench.store.expunged_since(bench.inbox, ModSeq(1)).unwrap();
    let gone = safe(&mut bench.store, gone).unwrap();
    assert_eq!(gone, [9, 10].map(|uid| Uid::new(uid).unwrap()));
    // The same operation again answers as before, and a new one gets a new UID.
    let again = bench
        .store
        .deliver(&prepared(1), &[], operation(1))
        .unwrap();
    safe(&mut bench.store, again);
    let inbox = bench.inbox;
    assert_eq!(add(&mut bench, inbox, 3, 3), Uid::new(3).unwrap());
    assert_eq!(add(&mut bench, inbox, 60, 60), known.uid_next);
    // And once more, with changes since.
    let uids: Vec<_> = (1..=6).filter_map(Uid::new).collect();
    for round in 0..120 {
        let mode = if round % 2 == 0 {
            FlagMode::Add
        } else {
            FlagMode::Remove
        };
        set_flags(&mut bench, &uids, mode, "three");
    }
    for number in 70..80 {
        add(&mut bench, inbox, number, number);
    }
    assert!(reclaim(&mut bench.store).unwrap() > 10_000);
    let rows = told(&bench);
    bench.reopen(true);
    assert_eq!(told(&bench), rows);
    assert_eq!(octets(&mut bench), octets(&mut bench));
}

#[test]
fn no_cut_of_power_while_changes_go_loses_one() {
    let mut whole = changed();
    let start = whole.disk.steps();
    reclaim(&mut whole.store).unwrap();
    let points = whole.disk.steps() - start;
    assert!(points > 20, "{points} points to cut at");
    let (expected, known) = (whole.read(whole.inbox), status(&mut whole));
    for point in 0..points {
        for seed in 0..3 {
            let context = format!("cut at {point}, seed {seed}");
            let mut bench = changed();
            let mut fate = Seeded(point * 10 + seed);
            bench.disk.stop_at(bench.disk.steps() + point);
            assert!(reclaim(&mut bench.store).is_err(), "{context}");
            bench.disk.crash(&mut fate);
            bench.meta.crash(&mut fate);
            bench.reopen(seed == 0);
            assert_eq!(bench.read(bench.inbox), expected, "{context}");
            assert_eq!(status(&mut bench), known, "{context}");
            octets(&mut bench);
            reclaim(&mut bench.store).unwrap();
            bench.reopen(true);
            assert_eq!(bench.read(bench.inbox), expected, "{context}");
            assert_eq!(status(&mut bench), known, "{context}");
            octets(&mut bench);
        }
    }
}

/// What changes while rows are gathered is in the snapshot.
#[test]
fn what_changes_meanwhile_is_kept() {
    use crate::Reclaim;
    let mut bench = changed();
    let (mut steps, mut written) = (0, 0);
    loop {
        match bench.store.reclaim(10).unwrap() {
            Reclaim::Working => {
                steps += 1;
                let uid = Uid::new(1 + steps % 8).unwrap();
                let mode = if steps % 2 == 0 {
                    FlagMode::Add
                } else {
                    FlagMode::Remove
                };
                let flags = Flags {
                    system: SystemFlags::FLAGGED,
                    keywords: Vec::new(),
                };
                // Not synced: the metadata know of it later.
                let stored = bench
                    .store
                    .store_flags(bench.inbox, &[uid], mode, &flags, None);
                drop(stored.unwrap());
            }
            Reclaim::Job(job) => {
                bench.store.finish_reclaim(job.run()).unwrap();
            }
            Reclaim::Done(report) => {
                written += report.snapshots;
                sync(&mut bench.store);
                if report.covered == 0 {
                    break;
                }
            }
        }
    }
    assert!(written > 0);
    let (rows, messages) = (told(&bench), bench.read(bench.inbox));
    bench.reopen(true);
    assert_eq!(told(&bench), rows);
    assert_eq!(bench.read(bench.inbox), messages);
    octets(&mut bench);
}

/// A snapshot that is damaged on the disk makes nothing needless.
#[test]
fn nothing_goes_for_a_snapshot_that_cannot_be_read() {
    use crate::Reclaim;
    let mut bench = changed();
    let mark = bench.store.end().0;
    loop {
        match bench.store.reclaim(10).unwrap() {
            Reclaim::Working => {}
            Reclaim::Job(job) => {
                bench.store.finish_reclaim(job.run()).unwrap();
            }
            Reclaim::Done(report) => {
                assert!(report.snapshots > 0);
                break;
            }
        }
    }
    sync(&mut bench.store);
    // An octet in the middle of the first snapshot.
    let newest = bench.store.log.newest();
    assert!(newest <= mark, "the snapshot lies in the newest segment");
    let file = format!("{newest:016x}.log");
    let mut data = bench.disk.file(&file).unwrap();
    data[(64 + mark - newest + 300) as usize] ^= 1;
    bench.disk.set_file(&file, Some(data));
    let mut rewritten = 0;
    loop {
        match bench.store.reclaim(1).unwrap() {
            Reclaim::Working => {}
            Reclaim::Job(job) => {
                let outcome = job.run();
                assert!(outcome.made.is_ok());
                bench.store.finish_reclaim(outcome).unwrap();
            }
            Reclaim::Done(report) => {
                rewritten += report.saved;
                break;
            }
        }
    }
    assert!(rewritten < 10_000, "{rewritten} octets went");
}

/// A repair of a log of which changes were left out finds nothing missing; with damage it names losses
/// and keeps the rest.
#[test]
fn a_repair_knows_that_changes_were_left_out() {
    let mut bench = changed();
    reclaim(&mut bench.store).unwrap();
    bench.store.persist().unwrap();
    let (rows, messages) = (told(&bench), bench.read(bench.inbox));
    let fresh = MemoryMeta::default();
    let report = Store::repair(bench.disk.copy(), None, fresh.clone(), config(), true).unwrap();
    assert!(
        !report.has_losses() && report.damage.is_empty(),
        "{report:?}"
    );
    assert_eq!(report.mended, 0, "{report:?}");
    let disk = bench.disk.copy();
    let report = Store::repair(
        disk.clone(),
        Some(&bench.meta),
        MemoryMeta::default(),
        config(),
        false,
    );
    assert!(!report.unwrap().has_losses());
    bench.disk = disk;
    bench.reopen(true);
    assert_eq!(told(&bench), rows);
    assert_eq!(bench.read(bench.inbox), messages);
}
