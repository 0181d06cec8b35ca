//! Several mounts over checkpoints: rows of other mounts lie in pages that are not there.

use super::rig::Several;
use super::*;
use crate::rows::{Key, RowValue, StateRow};

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

impl Several {
    fn page_mails(&mut self) -> usize {
        let lead = self.accounts.get_mut(&1).unwrap();
        lead.mailbox("pages").unwrap().mails.len()
    }
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

/// Mounts end at once, and so make checkpoints over the same commits.
fn finish_at_once(several: &mut Several) {
    let now = several.moment();
    for mount in 0..2 {
        several.volume(mount).finish(now, CallId(u64::MAX));
    }
    for _ in 0..5 {
        several.settle();
        several.pass(1);
    }
    for mount in 0..2 {
        let done = several.mounts[mount].replies.remove(&CallId(u64::MAX));
        assert_eq!(done, Some(Ok(Reply::Done)));
    }
}

#[test]
fn of_two_checkpoints_over_the_same_commits_the_one_with_a_row_serves_both_mounts() {
    let mut several = filled();
    let mut pages = several.page_mails();
    for round in 0..3 {
        several.put(round % 2, &file(round, 5), " more");
        several.quiet();
        finish_at_once(&mut several);
        let now = several.page_mails();
        assert!(now >= pages + 2, "{now} after {pages}");
        pages = now;
        let newest = several.volume(0).checkpoints.newest.unwrap();
        for mount in 0..2 {
            let volume = several.volume(mount);
            assert_eq!(volume.checkpoints.newest, Some(newest));
            let tree = volume.files.tree();
            assert_eq!(tree.pages().root(), Some(&newest.root));
            let row = tree.get(&Key::State(newest.covers.get()).encode());
            let row = StateRow::decode(&row.unwrap().unwrap()).unwrap();
            assert_eq!(row.root, newest.root);
        }
    }
    let tree = several.tree(0);
    assert_eq!(several.tree(1), tree);
    forget(&mut several);
    assert_eq!(several.tree(1), tree);
}

#[test]
fn rows_of_a_mount_that_makes_no_checkpoint_leave_with_those_of_another() {
    let mut several = filled();
    for round in 0..5 {
        for number in 0..30 {
            several.put(0, &format!("f{round}/new-{number}"), "x");
        }
        several.finish(0);
        several.quiet();
        let rows = several.volume(1).files.tree().chain_keys().count();
        // Those of the commits that have named the checkpoint since.
        assert!(rows < 40, "{rows} rows in round {round}");
        assert!(several.volume(1).checkpoints.rows < 40);
    }
    assert_eq!(several.tree(1), several.tree(0));
}

#[test]
fn two_mounts_do_not_make_the_same_checkpoint() {
    let mut several = filled();
    let before = several.page_mails();
    for number in 0..300 {
        several.put(number % 2, &file(1, number % 9), "+");
        several.sync(number % 2).unwrap();
        several.quiet();
    }
    assert_eq!(several.page_mails() - before, 1);
    let newest = several.volume(0).checkpoints.newest;
    assert_eq!(several.volume(1).checkpoints.newest, newest);
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
