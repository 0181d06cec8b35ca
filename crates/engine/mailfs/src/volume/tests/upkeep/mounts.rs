//! Collections beside other mounts: a move of chunks is no change of content to anybody.

use super::super::checks::check;
use super::super::rig::Several;
use super::*;
use crate::merge::ConflictKind;

const PART: usize = 120_000;
const GC: usize = 0;
const OTHER: usize = 1;

fn text(letter: &str) -> String {
    letter.repeat(PART)
}

/// Two mounts, and a pack with three files of which one stays.
fn thin() -> Several {
    let mut several = Several::new(2);
    for name in ["a", "b", "c"] {
        several.put(GC, name, &text(name));
    }
    several.sync(GC).unwrap();
    several.remove(GC, "a").unwrap();
    several.remove(GC, "c").unwrap();
    several.sync(GC).unwrap();
    several.quiet();
    several
}

/// Runs a collection until it has ended.
pub(super) fn collect(several: &mut Several, number: usize) -> CollectReport {
    begin(several, number);
    for _ in 0..400 {
        while several.step(number) {}
        match several.volume(number).take_upkept() {
            Some(Upkept::Collected(report)) => return report,
            Some(other) => panic!("{other:?}"),
            None => {}
        }
        several.now += 1_000;
        let now = several.moment();
        several.volume(number).wake(now);
    }
    panic!("{:?}", several.volume(number).upkeep_progress());
}

fn begin(several: &mut Several, number: usize) {
    let now = several.moment();
    let terms = CollectTerms::DEFAULT;
    assert!(several.volume(number).collect(now, terms));
}

/// Collects until moved rows wait for their commit, which stays on the way.
fn move_and_hold(several: &mut Several, number: usize) {
    begin(several, number);
    let mut has_moved = false;
    for _ in 0..4_000 {
        let stage = several.volume(number).upkeep_progress().unwrap().0;
        has_moved |= stage == "moving";
        if has_moved && stage == "writing" {
            several.mounts[number].is_held = true;
            return;
        }
        if !several.step(number) {
            several.now += 100;
            let now = several.moment();
            several.volume(number).wake(now);
        }
    }
    panic!("nothing is moved");
}

fn conflicts(several: &Several) -> Vec<ConflictKind> {
    let all = [GC, OTHER].map(|mount| several.conflicts(mount));
    all.concat()
}

/// All mounts have these files, without any conflict, also when the old packs are gone and the folders are lost.
fn expect(several: &mut Several, files: &[(&str, String)]) {
    several.quiet();
    assert_eq!(conflicts(several), []);
    let files: BTreeMap<String, String> = files
        .iter()
        .map(|(name, content)| ((*name).to_owned(), content.clone()))
        .collect();
    for mount in [GC, OTHER] {
        assert!(several.tree(mount) == files, "mount {mount}");
        assert_eq!(check(several.volume(mount).files.tree()), Ok(()));
        several.volume(mount).take_upkept();
    }
    for _ in 0..4 {
        collect(several, GC);
        several.pass(8 * 24 * 3_600);
        several.quiet();
    }
    for mount in [GC, OTHER] {
        assert!(several.tree(mount) == files, "mount {mount}, later");
        several.kill(mount);
        several.mounts[mount].disk = MemoryDisk::default();
        several.mount(mount).unwrap();
        assert!(several.tree(mount) == files, "mount {mount}, anew");
    }
    several.quiet();
    let packs = packs(several);
    assert!(packs <= 2, "{packs}");
    assert_eq!(conflicts(several), []);
}

#[test]
fn a_move_that_wins_is_no_conflict_for_unsent_writes() {
    let mut several = thin();
    several.mounts[OTHER].is_held = true;
    several.put(OTHER, "b", ", more");
    several.begin_sync(OTHER);
    assert_eq!(collect(&mut several, GC).packs_moved, 1);
    expect(&mut several, &[("b", text("b") + ", more")]);
}

#[test]
fn a_write_that_wins_is_no_conflict_for_a_move() {
    let mut several = thin();
    move_and_hold(&mut several, GC);
    several.put(OTHER, "b", ", more");
    several.sync(OTHER).unwrap();
    expect(&mut several, &[("b", text("b") + ", more")]);
}

#[test]
fn a_file_that_moves_while_another_mount_removes_it_is_gone() {
    let mut several = thin();
    several.put(GC, "d", "stays");
    several.sync(GC).unwrap();
    several.quiet();
    several.mounts[OTHER].is_held = true;
    several.remove(OTHER, "b").unwrap();
    several.begin_sync(OTHER);
    assert_eq!(collect(&mut several, GC).packs_moved, 1);
    expect(&mut several, &[("d", "stays".to_owned())]);
    let mut several = thin();
    move_and_hold(&mut several, GC);
    several.remove(OTHER, "b").unwrap();
    several.sync(OTHER).unwrap();
    expect(&mut several, &[]);
}

#[test]
fn two_collections_at_once_make_no_copies() {
    let mut several = thin();
    move_and_hold(&mut several, GC);
    assert_eq!(collect(&mut several, OTHER).packs_moved, 1);
    expect(&mut several, &[("b", text("b"))]);
}

#[test]
fn a_write_of_an_earlier_start_is_no_conflict_for_a_move() {
    let mut several = thin();
    several.mounts[OTHER].is_held = true;
    several.put(OTHER, "b", ", more");
    several.kill(OTHER);
    assert_eq!(collect(&mut several, GC).packs_moved, 1);
    several.mount(OTHER).unwrap();
    expect(&mut several, &[("b", text("b") + ", more")]);
}

fn packs(several: &mut Several) -> usize {
    let accounts = several.accounts.values_mut();
    let shelves = accounts.filter_map(|account| account.mailbox("data-0001"));
    shelves.map(|shelf| shelf.mails.len()).sum()
}

/// A mount goes offline between a pack and the commit that names the pack.
fn stored_and_offline() -> Several {
    let mut several = Several::new(2);
    several.put(GC, "x", "x");
    several.sync(GC).unwrap();
    several.quiet();
    several.put(OTHER, "late", &text("l"));
    several.begin_sync(OTHER);
    while packs(&mut several) == 0 {
        several.step(OTHER);
    }
    several.until_append(OTHER);
    several.mounts[OTHER].is_held = true;
    assert_eq!(collect(&mut several, GC).orphans, 1);
    several
}

#[test]
fn content_whose_pack_was_removed_before_the_commit_is_sent_again() {
    let mut several = stored_and_offline();
    several.pass(25 * 3_600);
    assert_eq!(collect(&mut several, GC).removed, 1);
    assert_eq!(packs(&mut several), 0);
    several.quiet();
    assert_eq!(several.volume(OTHER).read_only(), None);
    assert!(
        several.mounts[OTHER]
            .notices
            .contains(&Notice::SentAgain(1))
    );
    let files = [("x", "x".to_owned()), ("late", text("l"))];
    expect(&mut several, &files);
}

/// A file goes on while its first pack is lost, and shares content with another file.
#[test]
fn lost_content_comes_back_below_later_writes_and_in_copies() {
    for dies in [false, true] {
        let mut several = stored_and_offline();
        let handle = several.open(OTHER, "late").unwrap();
        let copy = several.open(OTHER, "copy").unwrap();
        let shared = Call::CopyRange {
            from: handle,
            from_offset: 5_000,
            to: copy,
            to_offset: 0,
            length: 60_000,
        };
        assert_eq!(several.call(OTHER, shared), Ok(Reply::Written(60_000)));
        let newer = Call::Write {
            handle,
            offset: 100,
            data: Bytes::from_static(b"newer"),
            kill_set_id: false,
        };
        several.call(OTHER, newer).unwrap();
        several.close(OTHER, handle);
        several.close(OTHER, copy);
        several.pass(25 * 3_600);
        assert_eq!(collect(&mut several, GC).removed, 1);
        several.mounts[OTHER].is_held = false;
        if dies {
            // The mount has seen the removal, and ends before its content is in the chain.
            let is_told =
                |mount: &super::super::rig::Mount| mount.notices.contains(&Notice::SentAgain(2));
            for _ in 0..10_000 {
                if is_told(&several.mounts[OTHER]) {
                    break;
                }
                if !several.step(OTHER) {
                    several.now += 1_000;
                    several.wake();
                }
            }
            assert!(is_told(&several.mounts[OTHER]));
            several.kill(OTHER);
            several.mount(OTHER).unwrap();
        }
        several.quiet();
        assert_eq!(several.volume(OTHER).read_only(), None);
        let mut late = text("l");
        late.replace_range(100..105, "newer");
        let copied = "l".repeat(60_000);
        let files = [("x", "x".to_owned()), ("late", late), ("copy", copied)];
        expect(&mut several, &files);
    }
}

#[test]
fn a_pack_with_a_tombstone_is_committed_within_the_grace_time() {
    let mut several = stored_and_offline();
    several.pass(3_600);
    several.quiet();
    assert_eq!(several.volume(OTHER).read_only(), None);
    let files = [("x", "x".to_owned()), ("late", text("l"))];
    expect(&mut several, &files);
}
