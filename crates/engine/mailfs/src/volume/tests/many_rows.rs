//! Changes with more rows than one commit has room for.

use super::rig::{ROOT, Several};
use super::*;
use crate::breakage::{Breakage, break_by};
use crate::rows::Key;

/// Rows of a commit in these tests.
const ROWS: usize = 20;
const FILES: usize = 60;
/// Files of the first of two mounts.
const NEW: usize = 60;

/// A world whose commits have few rows. Changes so far are on the servers, and new ones wait.
fn world() -> World {
    let mut world = World::new(2);
    world.terms.rows_max = ROWS;
    world.finish().unwrap();
    world.kill();
    world.mount().unwrap();
    world.counts.clear();
    world
}

fn make_files(world: &mut World) {
    for number in 0..FILES {
        let content = format!("content {number}");
        world.put(ROOT, &format!("f{number}"), content.as_bytes());
    }
}

fn expect_files(world: &mut World, when: &str) {
    for number in 0..FILES {
        let content = world.get(ROOT, &format!("f{number}"));
        let expected = format!("content {number}").into_bytes();
        assert_eq!(content, Ok(expected), "{number} {when}");
    }
}

#[test]
fn rows_beyond_the_room_of_a_commit_go_in_several() {
    let mut world = world();
    make_files(&mut world);
    world.sync().unwrap();
    // An entry and an inode each, at least.
    let commits = world.count("commit");
    assert!(commits >= 2 * FILES / ROWS, "{commits}");
    assert!(commits <= 6 * FILES / ROWS, "{commits}");
    assert_eq!(world.volume().status().rows_waiting, 0);
    expect_files(&mut world, "at once");
    assert_eq!(world.check(true, false).findings, []);
    world.lose_folder();
    world.mount().unwrap();
    expect_files(&mut world, "without the folder");
    assert_eq!(world.check(true, false).findings, []);
}

/// The client dies at every request while the parts are on the way.
#[test]
fn parts_of_changes_survive_a_kill_at_every_request() {
    for luck in [Luck::Lost, Luck::Unanswered] {
        for dies_at in 0.. {
            let mut world = world();
            make_files(&mut world);
            let mut left = dies_at;
            world.fortune = Box::new(move |_, _| {
                let is_cut = left == 0;
                left = usize::saturating_sub(left, 1);
                if is_cut { luck } else { Luck::Good }
            });
            let asked = world.counts.values().sum::<usize>();
            let now = world.moment();
            world.volume().sync(now, CallId(1 << 40));
            while world.counts.values().sum::<usize>() <= asked + dies_at && world.step() {}
            let is_over = world.replies.contains_key(&CallId(1 << 40));
            world.fortune = Box::new(|_, _| Luck::Good);
            world.kill();
            world.mount().unwrap();
            let when = format!("after {dies_at}, {luck:?}");
            expect_files(&mut world, &when);
            world.sync().unwrap();
            assert_eq!(world.check(true, false).findings, [], "{when}");
            world.lose_folder();
            world.mount().unwrap();
            expect_files(&mut world, &when);
            if is_over {
                assert!(dies_at > 6, "{dies_at}");
                break;
            }
        }
    }
}

/// One call removes more rows than a commit has room for.
#[test]
fn the_end_of_a_file_with_more_rows_than_a_commit_has_is_committed() {
    let mut world = world();
    let (attributes, handle) = world.create(ROOT, "long");
    for number in 0..1_500_u64 {
        world.write(handle, number << 24, &number.to_le_bytes());
    }
    world.fsync(handle).unwrap();
    world.close(handle);
    let extents = crate::rows::extents_prefix(attributes.inode);
    let rows = world.volume().files.tree().keys(&extents).unwrap();
    assert!(rows.len() > ROWS, "{}", rows.len());
    let name = b"long".to_vec();
    let parent = ROOT;
    world.call(Call::Unlink { parent, name }).unwrap();
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.lookup(ROOT, "long").err(), Some(Errno::NoEnt));
    assert_eq!(world.check(true, false).findings, []);
}

/// Two mounts, the first with few rows to a commit, and with files that wait.
fn several() -> Several {
    let mut several = Several::new(2);
    several.put(0, "old", "old");
    several.sync(0).unwrap();
    several.pass(40);
    several.terms.rows_max = 4;
    several.kill(0);
    several.mount(0).unwrap();
    several.mounts[0].is_held = true;
    let old = several.at(0, "old").unwrap();
    let call = Call::SetXattr {
        inode: old,
        name: b"user.who".to_vec(),
        value: b"first".to_vec(),
        mode: XattrMode::Any,
    };
    assert_eq!(several.call(0, call), Ok(Reply::Done));
    for number in 0..NEW {
        several.put(0, &format!("f{number}"), "new");
    }
    several
}

fn who(several: &mut Several, mount: usize) -> Vec<u8> {
    let inode = several.at(mount, "old").unwrap();
    let name = b"user.who".to_vec();
    match several.call(mount, Call::GetXattr { inode, name }) {
        Ok(Reply::Octets(value)) => value.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Another mount changes a row of a part in the chain; the first sees the change, and dies before its last part.
fn change_between_parts() {
    let mut several = several();
    several.mounts[0].is_held = false;
    let end = several.log_end();
    let _call = several.begin_sync(0);
    for _ in 0..1_000 {
        if several.log_end() > end + 24 {
            break;
        }
        several.step(0);
    }
    // The mount knows its parts in the chain, and nothing of what comes.
    several.mounts[0].is_held = true;
    while several.step(0) {}
    several.pass(40);
    let inode = several.at(1, "old").unwrap();
    assert_eq!(who(&mut several, 1), b"first");
    let call = Call::SetXattr {
        inode,
        name: b"user.who".to_vec(),
        value: b"second".to_vec(),
        mode: XattrMode::Any,
    };
    assert_eq!(several.call(1, call), Ok(Reply::Done));
    // A file of the first parts, with the content.
    let names = (0..NEW).map(|number| format!("f{number}"));
    let seen = names.into_iter().find(|name| several.at(1, name).is_ok());
    let seen = seen.unwrap();
    let handle = several.open(1, &seen).unwrap();
    let write = Call::Write {
        handle,
        offset: 0,
        data: Bytes::from_static(b"NEW"),
        kill_set_id: false,
    };
    assert_eq!(several.call(1, write), Ok(Reply::Written(3)));
    several.close(1, handle);
    several.sync(1).unwrap();
    several.mounts[0].is_held = false;
    several.now += 31_000;
    several.wake();
    for _ in 0..1_000 {
        let key = Key::Xattr {
            inode,
            name: b"user.who",
        }
        .encode();
        let value = several.volume(0).files.tree().get(&key).unwrap();
        if value.as_deref() == Some(b"second") {
            break;
        }
        several.step(0);
    }
    assert!(!several.volume(0).is_quiet());
    several.kill(0);
    several.mount(0).unwrap();
    several.pass(40);
    several.pass(40);
    for mount in [0, 1] {
        assert_eq!(who(&mut several, mount), b"second", "{mount}");
        for number in 0..NEW {
            let name = format!("f{number}");
            let inode = several.at(mount, &name).unwrap();
            let content = several.content(mount, inode).unwrap();
            let expected: &[u8] = if name == seen { b"NEW" } else { b"new" };
            assert_eq!(content, expected, "{name}");
        }
    }
    assert_eq!(several.tree(0), several.tree(1));
}

#[test]
fn a_kill_between_parts_does_not_take_another_mounts_change_back() {
    change_between_parts();
}

#[test]
fn a_replay_of_settled_parts_is_noticed() {
    break_by(Some(Breakage::PartsReplayed));
    let run = std::panic::catch_unwind(change_between_parts);
    break_by(None);
    assert!(run.is_err());
}

/// A part loses the race: everything comes onto the winner's state.
#[test]
fn parts_that_lose_a_race_come_again() {
    let mut several = several();
    let _call = several.begin_sync(0);
    several.put(1, "f3", "other");
    several.sync(1).unwrap();
    several.mounts[0].is_held = false;
    several.pass(40);
    several.pass(40);
    assert_eq!(several.tree(0), several.tree(1));
    assert_eq!(several.conflicts(0).len(), 1);
    let names = several.tree(1).len();
    assert_eq!(names, NEW + 2, "{:?}", several.tree(1));
    for mount in [0, 1] {
        assert!(several.volume(mount).is_quiet());
        checks::check(several.volume(mount).files.tree()).unwrap();
    }
}
