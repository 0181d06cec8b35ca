//! Commits of other mounts under hard conditions: a mount sleeps, pages are missing, own commits arrive late.

use super::rig::{ROOT, Several};
use super::*;
use crate::format::MailId;
use crate::pages::PageTree;
use crate::volume::record::Won;
use crate::volume::state::follow::{COMING_MAX, Coming};
use crate::volume::{CollectTerms, Reopen};

const FOLDERS: usize = 6;
const FILES: usize = 40;
const SLEEPER: usize = 1;

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
    for mount in 0..2 {
        several.kill(mount);
        several.mounts[mount].disk = MemoryDisk::default();
    }
    for mount in 0..2 {
        several.mount(mount).unwrap();
    }
    several.quiet();
    several
}

/// No page is near: each one comes from the account.
fn forget_pages(several: &mut Several, mount: usize) {
    let pages = several.volume(mount).files.tree_mut().pages_mut();
    let root = pages.root().copied();
    assert!(root.is_some());
    *pages = PageTree::default();
    pages.set_root(root);
}

fn collect(several: &mut Several, mount: usize) {
    let terms = CollectTerms {
        keep_versions: Some(Duration::ZERO),
        grace: Duration::ZERO,
        ..CollectTerms::DEFAULT
    };
    let now = several.moment();
    assert!(several.volume(mount).collect(now, terms));
    for _ in 0..20 {
        several.settle();
        if several.volume(mount).take_upkept().is_some() {
            return;
        }
        several.pass(10);
    }
    panic!("the collection never ends");
}

/// Folders and checkpoints of the first mount, and collections that remove what is old, while the other one sleeps.
fn sleeps_past_retention(several: &mut Several) {
    several.mounts[SLEEPER].is_held = true;
    for round in 0..5 {
        for folder in 0..3 {
            several.folder(0, &format!("{round}-{folder}")).unwrap();
            several.sync(0).unwrap();
        }
        several.finish(0);
        several.pass(3_600);
        collect(several, 0);
        several.pass(3_600);
    }
    let head = several.volume(SLEEPER).chain.place();
    let log = several.accounts.get_mut(&1).unwrap().mailbox("log");
    let log = log.unwrap();
    assert!(!log.mails.contains_key(&(head.uid + 1)), "{head:?}");
}

#[test]
fn a_mount_that_slept_past_retention_stops_instead_of_forking() {
    let mut several = Several::new(2);
    several.folder(0, "first").unwrap();
    several.sync(0).unwrap();
    several.quiet();
    sleeps_past_retention(&mut several);
    several.folder(SLEEPER, "mine").unwrap();
    let waiting = several.begin_sync(SLEEPER);
    several.quiet();
    let done = several.mounts[SLEEPER].replies.remove(&waiting);
    assert_eq!(done, Some(Err(Errno::Io)));
    let why = several.volume(SLEEPER).read_only();
    assert!(matches!(why, Some(Notice::Gap { .. })), "{why:?}");
}

#[test]
fn a_mount_that_slept_past_retention_goes_on_when_mounted_again() {
    let mut several = Several::new(2);
    several.folder(0, "first").unwrap();
    several.sync(0).unwrap();
    several.quiet();
    sleeps_past_retention(&mut several);
    several.quiet();
    let why = several.volume(SLEEPER).read_only();
    assert!(matches!(why, Some(Notice::Gap { .. })), "{why:?}");
    several.kill(SLEEPER);
    several.mount(SLEEPER).unwrap();
    several.folder(SLEEPER, "mine").unwrap();
    several.sync(SLEEPER).unwrap();
    several.quiet();
    let tree = several.tree(0);
    assert!(tree.contains_key("mine/") && tree.contains_key("4-2/"));
    assert_eq!(several.tree(SLEEPER), tree);
}

/// A mount with a commit on the way ends, and its next session's commit lies on top of the late one.
#[test]
fn rows_of_a_lost_commit_go_on_behind_a_late_one() {
    let mut several = Several::new(2);
    several.quiet();
    several.mounts[1].is_held = true;
    several.folder(1, "late").unwrap();
    several.begin_sync(1);
    let mails = several.kill_with_mails(1);
    assert_eq!(mails.len(), 1);
    several.mount(1).unwrap();
    several.folder(1, "next").unwrap();
    let waiting = several.begin_sync(1);
    several.arrive(mails);
    several.quiet();
    let done = several.mounts[1].replies.remove(&waiting);
    assert_eq!(done, Some(Ok(Reply::Done)));
    let tree = several.tree(0);
    assert!(tree.contains_key("late/"), "{tree:?}");
    assert!(tree.contains_key("next/"), "{tree:?}");
    assert_eq!(several.tree(1), tree);
}

/// The loser stays away, and the first mount has waited for nearly as long as for a merge.
fn abandoned() -> Several {
    let mut several = filled();
    for folder in [3, 5] {
        several.put(1, &file(folder, 3), ", loser");
    }
    several.mounts[1].is_held = true;
    several.begin_sync(1);
    for folder in [3, 5] {
        several.put(0, &file(folder, 3), ", winner");
    }
    several.sync(0).unwrap();
    several.send_unanswered(1);
    several.kill(1);
    several.pass(31);
    several.pass(2);
    assert_eq!(several.volume(0).open_commits(), 1);
    several
}

#[test]
fn a_failed_merge_for_another_mount_leaves_no_number_in_use() {
    let mut several = abandoned();
    several.mounts[0].holds_pages = true;
    forget_pages(&mut several, 0);
    let numbers = several.volume(0).files.numbers().next_block();
    let last_copy = several.volume(0).follow.last_copy;
    for _ in 0..4 {
        several.pass(20);
    }
    assert!(!several.volume(0).pages.fetches.is_empty());
    assert_eq!(several.volume(0).open_commits(), 1);
    assert_eq!(several.volume(0).files.numbers().next_block(), numbers);
    assert_eq!(several.volume(0).follow.last_copy, last_copy);
    several.mounts[0].holds_pages = false;
    several.quiet();
    let tree = several.tree(0);
    let copies = tree.values().filter(|content| *content == "base, loser");
    assert_eq!(copies.count(), 2);
}

#[test]
fn a_checkpoint_covers_a_merge_when_its_rows_are_there() {
    let mut several = abandoned();
    several.until_append(0);
    while !several.volume(0).follow.is_adopting {
        while several.step(0) {}
        several.until_append(0);
    }
    several.mounts[0].holds_pages = true;
    forget_pages(&mut several, 0);
    let mut was_behind = false;
    for _ in 0..200 {
        several.step(0);
        let volume = several.volume(0);
        volume.checkpoints.commits = 1_000;
        let last = volume.checkpoints.last.map(|won| won.commit);
        for coming in &volume.follow.coming {
            was_behind |= coming.is_own_merge;
            assert_ne!(last, Some(coming.won.commit));
        }
        if volume.is_behind() {
            assert!(volume.checkpoints.making.is_none());
        }
    }
    assert!(was_behind);
    several.mounts[0].holds_pages = false;
    several.quiet();
    several.finish(0);
    several.kill(0);
    several.mounts[0].disk = MemoryDisk::default();
    several.mount(0).unwrap();
    let tree = several.tree(0);
    let copies = tree.values().filter(|content| *content == "base, loser");
    assert_eq!(copies.count(), 2);
}

#[test]
fn a_lost_page_of_a_winner_is_told() {
    let mut several = filled();
    several.mounts[1].is_held = true;
    several.put(0, &file(5, 3), ", winner");
    several.sync(0).unwrap();
    forget_pages(&mut several, 1);
    for account in several.accounts.values_mut() {
        if let Some(pages) = account.mailbox("pages") {
            pages.mails.clear();
        }
    }
    several.quiet();
    let why = several.volume(1).read_only();
    assert_eq!(why, Some(&Notice::Behind));
}

#[test]
fn a_mount_that_waits_for_pages_leaves_further_commits_in_the_log() {
    let mut several = filled();
    several.mounts[1].holds_pages = true;
    forget_pages(&mut several, 1);
    several.put(0, &file(5, 3), ", winner");
    for number in 0..2 * COMING_MAX {
        several.folder(0, &format!("new{number}")).unwrap();
        several.sync(0).unwrap();
        several.pass(2);
    }
    assert_eq!(several.volume(1).follow.coming.len(), COMING_MAX);
    several.mounts[1].holds_pages = false;
    several.quiet();
    let tree = several.tree(0);
    assert_eq!(several.tree(1), tree);
}

#[test]
fn folders_that_the_kernel_knows_are_known_without_pages() {
    let mut several = filled();
    let folder = several.lookup(1, ROOT, b"f3").unwrap().inode;
    several.pass(1);
    let known = |several: &mut Several| {
        let folders = several.volume(1).files.known_folders();
        folders.values().any(|inode| *inode == folder)
    };
    assert!(known(&mut several));
    forget_pages(&mut several, 1);
    assert!(known(&mut several));
    let call = Call::Forget {
        inode: folder,
        lookups: u64::MAX,
    };
    several.begin(1, call);
    assert!(!known(&mut several));
}

#[test]
fn a_commit_over_pages_that_are_not_there_keeps_earlier_states() {
    let mut several = filled();
    forget_pages(&mut several, 1);
    let before = several.volume(1).chain.head().0;
    assert!(several.volume(1).follow.since(before).is_some());
    several.put(1, "new", "content in the commit");
    several.sync(1).unwrap();
    assert_ne!(several.volume(1).chain.head().0, before);
    assert!(several.volume(1).follow.since(before).is_some());
}

/// The commit was once forgotten, and the next commit of the mount lay on top of rows that the mount did not have.
#[test]
fn a_commit_that_cannot_be_merged_bars_further_commits() {
    let mut several = Several::new(2);
    several.put(0, "file", "base");
    several.quiet();
    several.put(1, "file", "changed");
    let volume = several.volume(1);
    let place = volume.chain.place();
    let won = Won {
        commit: MailId([9; 16]),
        generation: place.generation + 1,
        ..place
    };
    volume.comes(Coming {
        won,
        rows: Vec::new(),
        octets: 100,
        writer: 77,
        epoch: 1,
        merged: Vec::new(),
        checkpoint: None,
        is_own_merge: false,
    });
    volume.journal.sync_failed();
    volume.go_on_following();
    assert!(matches!(volume.read_only(), Some(Notice::Rows(_))));
    assert!(volume.is_behind());
    let generation = volume.chain.end().1;
    assert!(several.sync(1).is_err());
    assert_eq!(several.volume(1).chain.end().1, generation);
}

/// A mount that slept past retention goes on in the same process: open files stay, and its unsent changes are merged.
#[test]
fn a_mount_that_slept_past_retention_is_opened_anew() {
    let mut several = Several::new(2);
    several.folder(0, "first").unwrap();
    several.put(0, "both", "base");
    several.put(0, "gone", "read on");
    several.sync(0).unwrap();
    several.quiet();
    let both = several.open(SLEEPER, "both").unwrap();
    let gone = several.open(SLEEPER, "gone").unwrap();
    several.volume(SLEEPER).allow_reopening();
    several.mounts[SLEEPER].is_held = true;
    several.append(SLEEPER, "both", b", mine").unwrap();
    several.put(0, "both", ", theirs");
    several.remove(0, "gone").unwrap();
    sleeps_past_retention(&mut several);
    let waiting = several.begin_sync(SLEEPER);
    several.mounts[SLEEPER].is_held = false;
    let mut why = None;
    for _ in 0..40 {
        several.pass(1);
        why = why.or(several.volume(SLEEPER).reopening_wanted());
    }
    assert_eq!(why, Some(Reopen::Gap));
    assert!(!several.mounts[SLEEPER].replies.contains_key(&waiting));
    several.reopen(SLEEPER).unwrap();
    several.settle();
    let done = several.mounts[SLEEPER].replies.remove(&waiting);
    assert_eq!(done, Some(Ok(Reply::Done)));
    let read = |several: &mut Several, handle| {
        let (offset, size) = (0, 100);
        let call = Call::Read {
            handle,
            offset,
            size,
        };
        several.call(SLEEPER, call)
    };
    let octets = |text: &'static str| Ok(Reply::Octets(text.into()));
    // The open file goes on with what this machine has written, in a conflict copy now; the log has lost the rest.
    let mine = "\0\0\0\0, mine";
    assert_eq!(read(&mut several, both), octets(mine));
    assert_eq!(read(&mut several, gone), octets("read on"));
    several.quiet();
    let tree = several.tree(0);
    assert_eq!(several.tree(SLEEPER), tree);
    assert_eq!(tree.get("both").map(String::as_str), Some("base, theirs"));
    let copies = tree
        .iter()
        .filter(|(name, _)| name.starts_with("both (conflict"));
    let copies: Vec<&String> = copies.map(|(_, content)| content).collect();
    assert_eq!(copies, [mine]);
}
