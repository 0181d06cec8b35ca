//! The past: commits and pages without any use leave, a machine that was away is told of a rollback all the same, snapshots
//! keep what they need, and clocks that are wrong by years change little.

use std::ops::ControlFlow;

use super::*;
use crate::format::{Locator, mail};
use crate::pages::{Missing, PageTree};
use crate::rows::{Key, RowValue, SnapshotRow, StateRow, snapshots_prefix, states_prefix};
use crate::volume::OpenError;

/// A day with some files and a checkpoint at its end.
fn day(world: &mut World, number: usize) {
    for file in 0..3 {
        let name = format!("{number}-{file}");
        let seed = (number * 3 + file) as u64;
        world.put(ROOT, &name, &noise(seed, 400));
        world.sync().unwrap();
    }
    assert_eq!(world.finish(), Ok(Reply::Done));
    world.days(1);
}

fn live(world: &mut World, days: std::ops::Range<usize>) {
    for number in days {
        day(world, number);
        world.collect().unwrap();
    }
}

fn expect(world: &mut World, days: std::ops::Range<usize>) {
    for number in days {
        for file in 0..3 {
            let seed = (number * 3 + file) as u64;
            let content = world.get(ROOT, &format!("{number}-{file}"));
            assert!(content == Ok(noise(seed, 400)), "{number}-{file}");
        }
    }
}

fn states(world: &mut World) -> Vec<(u64, StateRow)> {
    let mut states = Vec::new();
    let tree = world.volume().files.tree();
    let all = tree.visit(&states_prefix(), None, &mut |key, value| {
        if let Ok(Key::State(generation)) = Key::decode(key) {
            states.push((generation, StateRow::decode(value).unwrap()));
        }
        Ok(ControlFlow::Continue(()))
    });
    all.unwrap();
    states
}

/// All rows under a root, with every page as the account has it.
fn rows_of(world: &mut World, root: Locator) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pages = PageTree::default();
    pages.set_root(Some(root));
    loop {
        let mut rows = Vec::new();
        let walk = pages.visit::<Missing>(&[], &mut |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            Ok(ControlFlow::Continue(()))
        });
        let Err(Missing(at)) = walk else {
            return rows;
        };
        let whole = world.shelf(1, "pages").mails[&at.copy.uid].clone();
        let text = whole.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        let body = mail::unwrap(&whole[text..], Encoding::EightBit).unwrap();
        let opened = crate::format::open(&body, &keys(), Some(at.mail)).unwrap();
        let frame = opened.frames.iter().find(|(place, _)| place.at == at.at);
        pages.put(&at, frame.unwrap().1.clone()).unwrap();
    }
}

#[test]
fn old_commits_and_pages_leave_and_files_stay() {
    let mut world = World::new(2);
    live(&mut world, 0..24);
    let (log, pages) = (world.mails(1, "log"), world.mails(1, "pages"));
    assert!(log.len() < 100, "{} of {:?} commits", log.len(), log.last());
    assert!(*log.last().unwrap() > 130, "{log:?}");
    assert!((7..12).contains(&pages.len()), "{pages:?}");
    assert_eq!(world.check(true, false).findings, []);
    let all = states(&mut world);
    assert_eq!(all.len(), 24);
    assert!(!all[0].1.has_pages() && all[23].1.has_pages());
    expect(&mut world, 0..24);
    world.sync().unwrap();
    world.kill();
    world.mount().unwrap();
    expect(&mut world, 0..24);
    world.lose_folder();
    world.mount().unwrap();
    expect(&mut world, 0..24);
    assert_eq!(world.check(true, false).findings, []);
    live(&mut world, 24..27);
    assert_eq!(world.check(true, false).findings, []);
}

/// What the lead has no more leaves the copies too.
#[test]
fn copies_of_the_past_leave() {
    let mut world = World::new(2);
    world.remount_with(|terms| {
        terms.metadata_accounts = 2;
        terms.groups = vec![GroupTerms {
            group: 1,
            accounts: vec![1, 2],
        }];
    });
    live(&mut world, 0..24);
    // A commit with content leaves the lead by a tombstone, and a copy in the run behind.
    for _ in 0..3 {
        world.collect().unwrap();
    }
    for (mailbox, most) in [("log", 100), ("pages", 12)] {
        let copy = world.mails(2, &format!("{mailbox}-copy")).len();
        assert!((5..most).contains(&copy), "{mailbox}: {copy}");
        assert_eq!(copy, world.mails(1, mailbox).len(), "{mailbox}");
    }
    assert_eq!(world.check(true, false).findings, []);
}

#[test]
fn a_state_of_the_past_is_read_from_its_root() {
    let mut world = World::new(1);
    live(&mut world, 0..5);
    let (_, state) = states(&mut world)[1];
    let rows = rows_of(&mut world, state.root);
    let has = |name: &str| {
        let name = name.as_bytes();
        let mut keys = rows.iter().map(|(key, _)| Key::decode(key).unwrap());
        keys.any(|key| matches!(key, Key::Entry { name: of, .. } if of == name))
    };
    assert!(has("0-0") && has("1-2") && !has("2-0"));
}

#[test]
fn a_machine_that_was_away_mounts_and_is_told_of_a_rollback() {
    let mut world = World::new(1);
    live(&mut world, 0..2);
    world.sync().unwrap();
    world.kill();
    let (away, accounts) = (world.disk.copy(), world.accounts.clone());
    world.disk = MemoryDisk::default();
    world.mount().unwrap();
    live(&mut world, 2..20);
    world.sync().unwrap();
    let first = *world.mails(1, "log").first().unwrap();
    assert!(first > 15, "{first}");
    world.kill();
    world.disk = away.copy();
    world.mount().unwrap();
    expect(&mut world, 0..20);
    world.kill();
    // The account is set back to the first day, and goes on without the machine's second one.
    let mut other = World::new(1);
    other.accounts = accounts;
    let log = other.shelf(1, "log");
    let cut = 6;
    log.mails.retain(|uid, _| *uid <= cut);
    other.lose_folder();
    other.now = world.now;
    other.mount().unwrap();
    live(&mut other, 30..50);
    other.sync().unwrap();
    assert!(*other.mails(1, "log").first().unwrap() > 15);
    other.kill();
    other.disk = away;
    let error = other.mount().unwrap_err();
    assert!(matches!(error, OpenError::RolledBack { .. }), "{error}");
}

#[test]
fn a_checkpoint_in_use_keeps_its_pages_without_a_row() {
    for is_named in [false, true] {
        let mut world = World::new(1);
        live(&mut world, 0..2);
        let newest = world.volume().checkpoints.newest.unwrap();
        let rows = rows_of(&mut world, newest.root);
        // A checkpoint of the same commits by another mount: the row names that one.
        for number in 2..20 {
            day(&mut world, number);
            let checkpoints = &mut world.volume().checkpoints;
            let row = checkpoints.newest;
            if is_named {
                checkpoints.see(newest.root, row.unwrap().covers.get());
            } else {
                checkpoints.newest = Some(newest);
            }
            world.collect().unwrap();
            world.volume().checkpoints.newest = row;
        }
        assert!(rows_of(&mut world, newest.root) == rows, "{is_named}");
    }
}

fn snapshot(world: &mut World, name: &str) {
    world.last_call += 1;
    let id = CallId(world.last_call);
    let now = world.moment();
    world.volume().keep_state(now, name.as_bytes(), id);
    assert_eq!(world.reply(id), Ok(Reply::Done));
}

fn snapshots(world: &mut World) -> Vec<SnapshotRow> {
    let tree = world.volume().files.tree();
    let keys = tree.keys(&snapshots_prefix()).unwrap();
    let row = |key: &Vec<u8>| SnapshotRow::decode(&tree.get(key).unwrap().unwrap()).unwrap();
    keys.iter().map(row).collect()
}

#[test]
fn a_snapshot_keeps_pages_and_packs_until_its_end() {
    let mut world = World::new(1);
    world.put(ROOT, "gone", &noise(77, 300_000));
    world.put(ROOT, "stays", &noise(78, 100_000));
    world.sync().unwrap();
    snapshot(&mut world, "before");
    let row = snapshots(&mut world)[0];
    assert_eq!((row.inodes, row.octets), (3, 400_000));
    let rows = rows_of(&mut world, row.root);
    world.remove("gone");
    world.sync().unwrap();
    let packs = world.mails(1, "data-0001");
    live(&mut world, 0..20);
    let now = world.mails(1, "data-0001");
    assert!(
        packs.iter().all(|uid| now.contains(uid)),
        "{packs:?} {now:?}"
    );
    assert!(rows_of(&mut world, row.root) == rows);
    // A mount elsewhere sees and keeps the snapshot.
    world.lose_folder();
    world.mount().unwrap();
    live(&mut world, 20..30);
    assert!(rows_of(&mut world, row.root) == rows);
    let now = world.moment();
    assert_eq!(world.volume().end_kept_state(now, b"before"), Ok(true));
    assert_eq!(world.volume().end_kept_state(now, b"before"), Ok(false));
    live(&mut world, 30..42);
    assert!(!world.mails(1, "pages").contains(&row.root.copy.uid));
    let now = world.mails(1, "data-0001");
    assert!(
        packs.iter().any(|uid| !now.contains(uid)),
        "{packs:?} {now:?}"
    );
    assert_eq!(world.check(true, false).findings, []);
    assert!(world.get(ROOT, "stays").unwrap() == noise(78, 100_000));
}

/// Mounts again on a machine whose clock differs by so many days.
fn mount_with_clock(world: &mut World, days: i64) {
    world.sync().unwrap();
    world.kill();
    world.now = world.now.checked_add_signed(days * 24 * 3_600_000).unwrap();
    world.mount().unwrap();
}

#[test]
fn a_clock_that_is_ahead_ends_nothing_early() {
    let mut world = World::new(1);
    live(&mut world, 0..4);
    world.put(ROOT, "gone", &noise(9, 200_000));
    world.sync().unwrap();
    world.remove("gone");
    world.sync().unwrap();
    assert_eq!(world.collect().unwrap().packs_condemned, 1);
    let log = world.mails(1, "log").len();
    let pack = world.mails(1, "data-0001")[0];
    mount_with_clock(&mut world, 3_650);
    for _ in 0..5 {
        let report = world.collect().unwrap();
        assert_eq!(report.removed, 0, "{report:?}");
        world.kill();
        world.mount().unwrap();
    }
    assert!(world.mails(1, "log").len() >= log);
    // Right again: the days count as before.
    mount_with_clock(&mut world, -3_650);
    for _ in 0..5 {
        world.collect().unwrap();
        assert!(world.mails(1, "data-0001").contains(&pack));
        world.days(1);
    }
    let mut reports = Vec::new();
    for number in 4..8 {
        day(&mut world, number);
        reports.push(world.collect().unwrap());
    }
    assert!(!world.mails(1, "data-0001").contains(&pack), "{reports:?}");
}

#[test]
fn a_clock_that_is_behind_keeps_nothing_for_ever() {
    let mut world = World::new(1);
    mount_with_clock(&mut world, 3_650);
    world.put(ROOT, "gone", &noise(9, 200_000));
    world.sync().unwrap();
    world.remove("gone");
    world.sync().unwrap();
    assert_eq!(world.collect().unwrap().packs_condemned, 1);
    mount_with_clock(&mut world, -3_650);
    for _ in 0..9 {
        world.collect().unwrap();
        world.days(1);
    }
    assert_eq!(world.mails(1, "data-0001").len(), 0);
}

#[test]
fn status_tells_the_last_runs() {
    let mut world = World::new(1);
    assert_eq!(world.volume().status().upkeep, None);
    live(&mut world, 0..1);
    let row = world.volume().status().upkeep.unwrap();
    assert!(row.collected_ms > 0 && row.checked_ms == 0 && row.octets > 1_200);
    assert!(row.live_octets <= row.octets);
    world.check(false, false);
    let row = world.volume().status().upkeep.unwrap();
    assert!(row.checked_ms >= row.collected_ms);
    assert_eq!(world.volume().status().logical, Some((4, 1_200)));
}

/// What there is to do: old commits, old pages, and content of old commits.
fn past() -> World {
    let mut world = World::new(1);
    for number in 0..8 {
        day(&mut world, number);
    }
    world.collect().unwrap();
    world.days(8);
    world
}

fn runs(world: &mut World) {
    for _ in 0..3 {
        let now = world.moment();
        world.volume().collect(now, CollectTerms::DEFAULT);
        world.upkept();
    }
}

#[test]
fn a_client_that_dies_at_any_request_keeps_the_past_whole() {
    let mut world = past();
    let before: usize = world.counts.values().sum();
    let mails = world.mails(1, "log").len();
    runs(&mut world);
    let requests = world.counts.values().sum::<usize>() - before;
    assert!(requests > 20, "{requests}");
    let left = world.mails(1, "log").len();
    assert!(left < mails, "{left} of {mails}");
    for luck in [Luck::Lost, Luck::Unanswered] {
        for deadly in 0..requests {
            let mut world = past();
            let mut number = 0;
            world.fortune = Box::new(move |_, _| {
                number += 1;
                if number > deadly { luck } else { Luck::Good }
            });
            runs(&mut world);
            if deadly % 2 == 0 {
                world.kill();
            } else {
                world.lose_folder();
            }
            world.fortune = Box::new(|_, _| Luck::Good);
            world.mount().unwrap();
            expect(&mut world, 0..8);
            live(&mut world, 8..18);
            let when = format!("{luck:?} {deadly}");
            assert_eq!(world.check(true, false).findings, [], "{when}");
            world.sync().unwrap();
            world.lose_folder();
            world.mount().unwrap();
            expect(&mut world, 0..18);
            assert!(!states(&mut world)[0].1.has_pages(), "{when}");
        }
    }
}
