//! Several mounts over checkpoints: rows of other mounts lie in pages that are not there.

use super::rig::Several;
use super::*;

const FOLDERS: usize = 6;
const FILES: usize = 40;

fn file(folder: usize, number: usize) -> String {
    format!("f{folder}/{number:0>200}")
}

/// A volume whose rows are in several pages; every folder of a machine is lost.
fn filled() -> Several {
    let mut several = Several::new(2);
    for folder in 0..FOLDERS {
        several.folder(0, &format!("f{folder}")).unwrap();
        for number in 0..FILES {
            several.put(0, &file(folder, number), "base");
        }
    }
    several.finish(0);
    forget(&mut several);
    several
}

fn forget(several: &mut Several) {
    for mount in 0..2 {
        several.kill(mount);
        several.mounts[mount].disk = MemoryDisk::default();
    }
    for mount in 0..2 {
        several.mount(mount).unwrap();
    }
    several.quiet();
}

#[test]
fn rows_of_a_winner_may_lie_in_pages_that_are_not_there() {
    let mut several = filled();
    several.put(1, &file(3, 3), ", loser");
    several.mounts[1].is_held = true;
    let waiting = several.begin_sync(1);
    for folder in [0, 3, 5] {
        several.put(0, &file(folder, 3), ", winner");
    }
    several.remove(0, &file(1, 1)).unwrap();
    several.sync(0).unwrap();
    several.quiet();
    let done = several.mounts[1].replies.remove(&waiting);
    assert_eq!(done, Some(Ok(Reply::Done)));
    let tree = several.tree(0);
    assert_eq!(several.tree(1), tree);
    assert_eq!(tree[&file(5, 3)], "base, winner");
    assert_eq!(tree[&file(3, 3)], "base, winner");
    assert!(tree.values().any(|content| content == "base, loser"));
    assert!(!tree.contains_key(&file(1, 1)));
    assert_eq!(several.volume(1).read_only(), None);
}

#[test]
fn checkpoints_of_two_mounts_follow_each_other() {
    let mut several = filled();
    for round in 0..4 {
        let mount = round % 2;
        several.put(mount, &file(round, 7), &format!(" {round}"));
        several.put(1 - mount, &file(round, 8), &format!(" {round}"));
        several.quiet();
        several.finish(mount);
        several.quiet();
        let tree = several.tree(0);
        assert_eq!(several.tree(1), tree);
        assert_eq!(tree[&file(round, 8)], format!("base {round}"));
        if round == 2 {
            forget(&mut several);
            assert_eq!(several.tree(1), tree);
        }
    }
}

/// The journal's changes lie on a state before the checkpoint of another mount.
#[test]
fn a_restart_goes_on_from_a_state_before_the_newest_checkpoint() {
    let mut several = filled();
    several.put(1, &file(2, 2), ", loser");
    several.kill(1);
    several.put(0, &file(2, 2), ", winner");
    several.put(0, &file(4, 2), ", winner");
    several.finish(0);
    several.mount(1).unwrap();
    several.quiet();
    let tree = several.tree(0);
    assert_eq!(several.tree(1), tree);
    assert_eq!(tree[&file(2, 2)], "base, winner");
    assert!(tree.values().any(|content| content == "base, loser"));
}
