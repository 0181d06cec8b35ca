//! Files in many pieces are written anew, and nobody sees a change.

use super::super::rig::Several;
use super::mounts::collect;
use super::*;
use crate::merge::ConflictKind;

const PAGE: usize = 4_096;
const PAGES: usize = 1_200;

/// The content of a page as written last.
fn page(number: usize, version: u64) -> Vec<u8> {
    noise(1 + number as u64 * 7 + version, PAGE)
}

fn content(version: impl Fn(usize) -> u64) -> Vec<u8> {
    let pages = (0..PAGES).flat_map(|number| page(number, version(number)));
    pages.collect()
}

impl World {
    /// A file whose pages a program has written in an order of its own.
    fn database() -> Self {
        let mut world = Self::new(2);
        world.put(ROOT, "db", &content(|_| 0));
        world.sync().unwrap();
        let inode = world.lookup(ROOT, "db").unwrap().inode;
        let handle = world.open(inode);
        for half in [1, 0] {
            for number in (0..PAGES).filter(|number| number % 2 == half) {
                world.write(handle, (number * PAGE) as u64, &page(number, 1));
            }
            world.sync().unwrap();
        }
        world.close(handle);
        world.sync().unwrap();
        world
    }

    fn pieces(&mut self, name: &str) -> usize {
        let inode = self.lookup(ROOT, name).unwrap().inode;
        let tree = self.volume().files.tree();
        let prefix = crate::rows::extents_prefix(inode);
        let mut pieces = 0;
        tree.visit(&prefix, None, &mut |key, value| {
            if let Ok(crate::rows::Key::Extents { offset, .. }) = crate::rows::Key::decode(key) {
                let runs = crate::rows::decode_extents(offset, value).unwrap();
                pieces += runs.iter().filter(|run| run.extent.is_some()).count();
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })
        .unwrap();
        pieces
    }

    /// A step, or the next slice of work.
    fn go_on(&mut self) {
        if !self.step() {
            let now = self.moment();
            self.volume().wake(now);
        }
    }

    fn has_database(&mut self) {
        assert!(self.get(ROOT, "db").unwrap() == content(|_| 1));
    }
}

#[test]
fn a_file_in_many_pieces_is_written_anew() {
    let mut world = World::database();
    assert!(world.pieces("db") > 1_024, "{}", world.pieces("db"));
    let before = world.lookup(ROOT, "db").unwrap();
    let report = world.collect().unwrap();
    assert_eq!(report.files_rewritten, 1);
    assert_eq!(report.octets_rewritten, (PAGES * PAGE) as u64);
    assert!(world.pieces("db") < 40, "{}", world.pieces("db"));
    assert_eq!(world.lookup(ROOT, "db").unwrap(), before);
    world.has_database();
    assert_eq!(world.check(true, false).findings, []);
    assert_eq!(world.collect().unwrap().files_rewritten, 0);
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    world.has_database();
    // The old chunks leave in their time.
    for _ in 0..3 {
        world.days(8);
        world.collect().unwrap();
    }
    world.lose_folder();
    world.mount().unwrap();
    world.has_database();
    assert_eq!(world.check(true, false).findings, []);
}

#[test]
fn a_hole_stays_a_hole() {
    let mut world = World::database();
    let inode = world.lookup(ROOT, "db").unwrap().inode;
    let handle = world.open(inode);
    let far = (PAGES * PAGE) as u64 + (64 << 20);
    world.write(handle, far, b"the end");
    world.close(handle);
    world.sync().unwrap();
    let before = world.lookup(ROOT, "db").unwrap();
    assert_eq!(world.collect().unwrap().files_rewritten, 1);
    let after = world.lookup(ROOT, "db").unwrap();
    assert_eq!(
        (after.size, after.allocated),
        (before.size, before.allocated)
    );
    let handle = world.open(inode);
    let call = Call::Read {
        handle,
        offset: far - 2,
        size: 64,
    };
    let read = Bytes::from_static(b"\0\0the end");
    assert_eq!(world.call(call), Ok(Reply::Octets(read)));
}

#[test]
fn a_file_that_changes_meanwhile_keeps_its_pieces() {
    let mut world = World::database();
    let inode = world.lookup(ROOT, "db").unwrap().inode;
    let handle = world.open(inode);
    let now = world.moment();
    assert!(world.volume().collect(now, CollectTerms::DEFAULT));
    let mut has_begun = false;
    for _ in 0..100_000 {
        world.go_on();
        let stage = world.volume().upkeep_progress().map(|(stage, ..)| stage);
        if stage == Some("rewriting") && world.count("pack") > 8 {
            has_begun = true;
            break;
        }
    }
    assert!(has_begun);
    let call = Call::Write {
        handle,
        offset: 5,
        data: Bytes::from_static(b"changed"),
        kill_set_id: false,
    };
    world.call(call).unwrap();
    let Some(Upkept::Collected(report)) = world.upkept() else {
        panic!("no report");
    };
    assert_eq!(report.files_rewritten, 0);
    world.close(handle);
    world.sync().unwrap();
    let mut expected = content(|_| 1);
    expected[5..12].copy_from_slice(b"changed");
    assert!(world.get(ROOT, "db").unwrap() == expected);
    assert_eq!(world.collect().unwrap().files_rewritten, 1);
    assert!(world.get(ROOT, "db").unwrap() == expected);
}

#[test]
fn a_kill_at_any_request_loses_nothing() {
    let world = World::database();
    let (accounts, disk, now) = (world.accounts.clone(), world.disk.copy(), world.now);
    let mut at = 0;
    let mut was_rewritten = false;
    while !was_rewritten {
        let mut world = World::new(2);
        (world.accounts, world.disk, world.now) = (accounts.clone(), disk.copy(), now);
        world.kill();
        world.cache = MemoryDisk::default();
        world.mount().unwrap();
        let moment = world.moment();
        assert!(world.volume().collect(moment, CollectTerms::DEFAULT));
        let mut requests = 0;
        while requests < at && !was_rewritten {
            world.go_on();
            let stage = world.volume().upkeep_progress();
            requests += usize::from(matches!(stage, Some(("rewriting", ..))));
            was_rewritten |= matches!(stage, Some(("over", ..)));
        }
        world.kill();
        world.mount().unwrap();
        world.has_database();
        if at % 3 == 0 {
            world.lose_folder();
            world.mount().unwrap();
            world.has_database();
        }
        let report = world.check(false, false);
        assert!(report.is_clean(), "{at}: {:?}", report.findings);
        at += 1 + at / 3;
        assert!(at < 50_000);
    }
    assert!(at > 20);
}

fn shared() -> Several {
    let mut several = Several::new(2);
    let text = "x".repeat(1_200 * 600);
    several.put(0, "db", &text);
    let handle = several.open(0, "db").unwrap();
    for half in [1, 0] {
        for number in (0..1_200_u64).filter(|number| number % 2 == half) {
            let call = Call::Write {
                handle,
                offset: number * 600,
                data: format!("{number:0600}").into(),
                kill_set_id: false,
            };
            several.call(0, call).unwrap();
        }
        several.sync(0).unwrap();
    }
    several.close(0, handle);
    several.quiet();
    several
}

/// Another mount writes while the first one has the file written anew, and either commit may win.
#[test]
fn a_rewrite_is_no_change_for_another_mount() {
    for other_first in [true, false] {
        let mut several = shared();
        let mut expected = several.tree(1)["db"].clone();
        several.mounts[1].is_held = true;
        let handle = several.open(1, "db").unwrap();
        let call = Call::Write {
            handle,
            offset: 1_000,
            data: Bytes::from_static(b"of the other mount"),
            kill_set_id: false,
        };
        several.call(1, call).unwrap();
        several.close(1, handle);
        if other_first {
            several.mounts[1].is_held = false;
            several.sync(1).unwrap();
        }
        assert_eq!(collect(&mut several, 0).files_rewritten, 1);
        several.sync(0).unwrap();
        several.quiet();
        several.sync(1).unwrap();
        several.quiet();
        expected.replace_range(1_000..1_018, "of the other mount");
        for number in [0, 1] {
            let tree = several.tree(number);
            assert!(tree["db"] == expected, "{number} {other_first}");
            assert_eq!(tree.len(), 1, "{:?}", tree.keys());
            let conflicts = several.conflicts(number);
            assert_eq!(conflicts, Vec::<ConflictKind>::new());
        }
    }
}
