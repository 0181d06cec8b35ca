//! Each row of the table of conflicts: the loser merges at once, after a kill, or another mount merges for the loser.

use super::checks::{check, differences, rows_of};
use super::rig::{ROOT, Several};
use super::*;
use crate::merge::ConflictKind;

const WINNER: usize = 0;
const LOSER: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Online,
    Restart,
    Adopted,
}

type Script = fn(&mut Several, usize);

/// The tree after a race, equal on all mounts, and the conflicts told.
fn race(
    way: Way,
    (base, winner, loser): (Script, Script, Script),
) -> (BTreeMap<String, String>, Vec<ConflictKind>) {
    let mut several = Several::new(3);
    base(&mut several, WINNER);
    several.sync(WINNER).unwrap();
    several.quiet();
    several.mounts[LOSER].is_held = true;
    loser(&mut several, LOSER);
    let mut waiting = None;
    match way {
        Way::Online => waiting = Some(several.begin_sync(LOSER)),
        Way::Restart => several.kill(LOSER),
        Way::Adopted => {
            several.begin_sync(LOSER);
        }
    }
    winner(&mut several, WINNER);
    several.sync(WINNER).unwrap();
    match way {
        Way::Online => {}
        Way::Restart => several.mount(LOSER).unwrap(),
        Way::Adopted => {
            several.send_unanswered(LOSER);
            several.kill(LOSER);
            several.mounts[LOSER].disk = MemoryDisk::default();
            several.quiet();
            several.mount(LOSER).unwrap();
        }
    }
    several.quiet();
    if let Some(id) = waiting {
        assert_eq!(
            several.mounts[LOSER].replies.remove(&id),
            Some(Ok(Reply::Done))
        );
    }
    let tree = several.tree(WINNER);
    for mount in 0..3 {
        assert_eq!(several.volume(mount).read_only(), None, "{way:?}");
        let other = several.tree(mount);
        assert_eq!(other, tree, "{way:?}, mount {mount}");
        assert_eq!(check(several.volume(mount).files.tree()), Ok(()), "{way:?}");
    }
    several.pass(10);
    for mount in 0..3 {
        assert!(several.volume(mount).is_quiet(), "{way:?}, mount {mount}");
    }
    let first = rows_of(several.volume(0).files.tree());
    for mount in 1..3 {
        let differ = differences(&first, &rows_of(several.volume(mount).files.tree()));
        assert_eq!(differ, Vec::<String>::new(), "{way:?}, mount {mount}");
    }
    let conflicts = (0..3).flat_map(|mount| several.conflicts(mount)).collect();
    (tree, conflicts)
}

fn every_way(scripts: (Script, Script, Script), expected: &[(&str, &str)], kinds: &[ConflictKind]) {
    for way in [Way::Online, Way::Restart, Way::Adopted] {
        let (tree, conflicts) = race(way, scripts);
        // The copies' names have a time that depends on the way.
        let tree: Vec<(String, String)> = tree
            .into_iter()
            .map(|(path, content)| match path.split_once(" (conflict m1 ") {
                Some((stem, rest)) => {
                    let end = rest.split_once(')').unwrap().1;
                    (format!("{stem} COPY{end}"), content)
                }
                None => (path, content),
            })
            .collect();
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(path, content)| ((*path).to_owned(), (*content).to_owned()))
            .collect();
        assert_eq!(tree, expected, "{way:?}");
        for kind in kinds {
            assert!(conflicts.contains(kind), "{way:?}: {conflicts:?}");
        }
        if kinds.is_empty() {
            assert_eq!(conflicts, [], "{way:?}");
        }
    }
}

#[test]
fn changes_of_different_files_both_stand() {
    every_way(
        (
            |of, at| of.put(at, "a", "one"),
            |of, at| of.put(at, "b", "two"),
            |of, at| {
                of.put(at, "c", "three");
                of.put(at, "a", ", more");
            },
        ),
        &[("a", "one, more"), ("b", "two"), ("c", "three")],
        &[],
    );
}

#[test]
fn content_changed_on_both_sides_becomes_two_files() {
    every_way(
        (
            |of, at| of.put(at, "a.txt", "base"),
            |of, at| of.put(at, "a.txt", ", winner"),
            |of, at| of.put(at, "a.txt", ", loser"),
        ),
        &[("a COPY.txt", "base, loser"), ("a.txt", "base, winner")],
        &[ConflictKind::Content],
    );
}

#[test]
fn an_equal_name_goes_to_the_winner_and_folders_are_united() {
    every_way(
        (
            |_, _| {},
            |of, at| {
                of.put(at, "new", "winner");
                of.folder(at, "both").unwrap();
                of.put(at, "both/w", "w");
                of.put(at, "both/x", "w");
            },
            |of, at| {
                of.put(at, "new", "loser");
                of.folder(at, "both").unwrap();
                of.put(at, "both/l", "l");
                of.put(at, "both/x", "l");
            },
        ),
        &[
            ("both/", ""),
            ("both/l", "l"),
            ("both/w", "w"),
            ("both/x", "w"),
            ("both/x COPY", "l"),
            ("new", "winner"),
            ("new COPY", "loser"),
        ],
        &[ConflictKind::Name],
    );
}

#[test]
fn what_the_winner_removed_and_the_loser_changed_comes_back() {
    every_way(
        (
            |of, at| of.put(at, "a", "base"),
            |of, at| {
                of.remove(at, "a").unwrap();
            },
            |of, at| of.put(at, "a", ", loser"),
        ),
        &[("a", "base, loser")],
        &[ConflictKind::Returned],
    );
}

#[test]
fn a_removal_of_what_the_winner_changed_is_dropped() {
    every_way(
        (
            |of, at| of.put(at, "a", "base"),
            |of, at| of.put(at, "a", ", winner"),
            |of, at| {
                of.remove(at, "a").unwrap();
            },
        ),
        &[("a", "base, winner")],
        &[ConflictKind::Spared],
    );
}

#[test]
fn of_two_places_the_winners_counts() {
    every_way(
        (
            |of, at| {
                of.put(at, "a", "file");
                of.folder(at, "f").unwrap();
                of.put(at, "f/in", "folder");
            },
            |of, at| {
                of.rename(at, "a", "a-winner").unwrap();
                of.rename(at, "f", "f-winner").unwrap();
            },
            |of, at| {
                of.rename(at, "a", "a-loser").unwrap();
                of.rename(at, "f", "f-loser").unwrap();
            },
        ),
        &[
            ("a-winner", "file"),
            ("f-winner/", ""),
            ("f-winner/in", "folder"),
        ],
        &[ConflictKind::Renamed],
    );
}

#[test]
fn a_rename_that_makes_a_circle_is_dropped() {
    every_way(
        (
            |of, at| {
                for path in ["a", "a/c", "b", "b/d"] {
                    of.folder(at, path).unwrap();
                }
            },
            |of, at| {
                of.rename(at, "b", "a/c/b").unwrap();
            },
            |of, at| {
                of.rename(at, "a", "b/d/a").unwrap();
            },
        ),
        &[("a/", ""), ("a/c/", ""), ("a/c/b/", ""), ("a/c/b/d/", "")],
        &[ConflictKind::Circle],
    );
}

#[test]
fn a_folder_comes_back_for_what_lies_there() {
    every_way(
        (
            |of, at| {
                of.folder(at, "f").unwrap();
                of.folder(at, "f/g").unwrap();
            },
            |of, at| {
                of.remove_folder(at, "f/g").unwrap();
                of.remove_folder(at, "f").unwrap();
            },
            |of, at| of.put(at, "f/g/new", "loser"),
        ),
        &[("f/", ""), ("f/g/", ""), ("f/g/new", "loser")],
        &[ConflictKind::Returned],
    );
}

#[test]
fn a_folder_with_something_new_of_the_winners_is_not_removed() {
    every_way(
        (
            |of, at| {
                of.folder(at, "f").unwrap();
            },
            |of, at| of.put(at, "f/new", "winner"),
            |of, at| {
                of.remove_folder(at, "f").unwrap();
            },
        ),
        &[("f/", ""), ("f/new", "winner")],
        &[ConflictKind::Spared],
    );
}

#[test]
fn a_file_saved_over_one_that_the_winner_changed_gets_another_name() {
    every_way(
        (
            |of, at| of.put(at, "a", "base"),
            |of, at| of.put(at, "a", ", winner"),
            |of, at| {
                of.put(at, "a.new", "saved");
                of.rename(at, "a.new", "a").unwrap();
            },
        ),
        &[("a", "base, winner"), ("a COPY", "saved")],
        &[ConflictKind::Name],
    );
}

#[test]
fn a_file_that_the_winner_saved_over_comes_back_beside() {
    every_way(
        (
            |of, at| of.put(at, "a", "base"),
            |of, at| {
                of.put(at, "a.new", "saved");
                of.rename(at, "a.new", "a").unwrap();
            },
            |of, at| of.put(at, "a", ", loser"),
        ),
        &[("a", "saved"), ("a COPY", "base, loser")],
        &[ConflictKind::Returned],
    );
}

fn set_mode(of: &mut Several, at: usize, path: &str, mode: u16) {
    let inode = of.at(at, path).unwrap();
    let changes = vere_ports::files::Changes {
        mode: Some(mode),
        ..Default::default()
    };
    of.call(at, Call::SetAttributes { inode, changes }).unwrap();
}

#[test]
fn of_attributes_the_winners_count_and_others_stand() {
    for way in [Way::Online, Way::Restart, Way::Adopted] {
        let mut several = Several::new(2);
        let _ = way;
        several.put(0, "a", "x");
        several.sync(0).unwrap();
        several.quiet();
        several.mounts[1].is_held = true;
        set_mode(&mut several, 1, "a", 0o600);
        several.put(1, "a", "y");
        set_mode(&mut several, 0, "a", 0o640);
        several.sync(0).unwrap();
        several.quiet();
        for mount in [0, 1] {
            let found = several.lookup(mount, ROOT, b"a").unwrap();
            assert_eq!((found.mode, found.size), (0o640, 2));
            assert_eq!(several.tree(mount)["a"], "xy");
        }
    }
}

#[test]
fn a_folder_comes_back_with_one_name() {
    every_way(
        (
            |of, at| {
                of.folder(at, "e").unwrap();
            },
            |of, at| {
                of.remove_folder(at, "e").unwrap();
                of.folder(at, "d").unwrap();
            },
            |of, at| {
                of.rename(at, "e", "d").unwrap();
            },
        ),
        &[("d COPY/", ""), ("d/", "")],
        &[ConflictKind::Name],
    );
}

/// The folder that the loser has replaced is still the winner's, with what lies there.
#[test]
fn a_replaced_folder_with_something_new_of_the_winners_stays() {
    every_way(
        (
            |of, at| {
                of.folder(at, "d").unwrap();
                of.folder(at, "d/e").unwrap();
                of.folder(at, "e").unwrap();
            },
            |of, at| of.put(at, "d/e/b", "new"),
            |of, at| {
                of.rename(at, "e", "d/e").unwrap();
            },
        ),
        &[
            ("d/", ""),
            ("d/e COPY/", ""),
            ("d/e/", ""),
            ("d/e/b", "new"),
        ],
        &[ConflictKind::Name],
    );
}

#[test]
fn a_removal_of_what_the_winner_has_replaced_is_void() {
    every_way(
        (
            |of, at| of.put(at, "a", "base"),
            |of, at| {
                of.put(at, "a.new", "saved");
                of.rename(at, "a.new", "a").unwrap();
            },
            |of, at| {
                of.remove(at, "a").unwrap();
            },
        ),
        &[("a", "saved")],
        &[],
    );
}

/// Two mounts have changed a file that a third one removes: each brings a version back.
#[test]
fn two_versions_of_a_removed_file_both_come_back() {
    let mut several = Several::new(3);
    several.put(0, "a", "base");
    several.sync(0).unwrap();
    several.quiet();
    for mount in [1, 2] {
        several.mounts[mount].is_held = true;
        several.put(mount, "a", &format!(" of {mount}"));
        several.begin_sync(mount);
    }
    several.remove(0, "a").unwrap();
    several.sync(0).unwrap();
    several.mounts[1].is_held = false;
    several.pass(40);
    several.quiet();
    let contents: Vec<String> = several.tree(0).into_values().collect();
    assert_eq!(contents, ["base of 1", "base of 2"]);
    for mount in 0..3 {
        assert_eq!(check(several.volume(mount).files.tree()), Ok(()));
    }
}

#[test]
fn a_file_without_a_name_ends_although_its_commit_loses() {
    let mut several = Several::new(2);
    let handle = several.append(1, "a", b"x").unwrap();
    several.sync(1).unwrap();
    several.remove(1, "a").unwrap();
    several.sync(1).unwrap();
    several.quiet();
    several.mounts[1].is_held = true;
    several.close(1, handle);
    several.begin_sync(1);
    several.put(0, "b", "other");
    several.sync(0).unwrap();
    several.quiet();
    several.quiet();
    for mount in 0..2 {
        assert_eq!(check(several.volume(mount).files.tree()), Ok(()));
    }
}

/// The mount has rebased its lost commit and dies: others merge the newer commit alone.
#[test]
fn of_a_commit_and_its_rebase_the_rebase_is_merged() {
    let mut several = Several::new(3);
    several.mounts[LOSER].is_held = true;
    several.folder(LOSER, "e").unwrap();
    several.begin_sync(LOSER);
    several.put(WINNER, "e", "1");
    several.sync(WINNER).unwrap();
    several.cut(LOSER);
    several.mounts[LOSER].is_held = false;
    several.until_append(LOSER);
    several.put(WINNER, "y", "2");
    several.sync(WINNER).unwrap();
    several.cut(LOSER);
    several.kill(LOSER);
    several.mounts[LOSER].disk = MemoryDisk::default();
    several.quiet();
    let tree = several.tree(WINNER);
    assert_eq!((tree.len(), &*tree["e"], &*tree["y"]), (3, "1", "2"));
    for mount in [0, 2] {
        assert_eq!(check(several.volume(mount).files.tree()), Ok(()));
    }
}

/// Another mount has merged a lost commit, with a conflict; the journal has changes on top of that commit.
#[test]
fn changes_on_a_merged_commit_replace_nothing_of_others() {
    let mut several = Several::new(2);
    several.mounts[LOSER].is_held = true;
    several.put(LOSER, "b", "mine");
    several.begin_sync(LOSER);
    several.put(WINNER, "b", "other");
    several.sync(WINNER).unwrap();
    several.send_unanswered(LOSER);
    several.put(LOSER, "b.new", "mine, saved");
    several.rename(LOSER, "b.new", "b").unwrap();
    several.kill(LOSER);
    for _ in 0..12 {
        several.pass(16);
    }
    several.mount(LOSER).unwrap();
    several.quiet();
    let tree = several.tree(WINNER);
    assert_eq!(tree["b"], "other");
    assert!(tree.values().any(|content| content == "mine, saved"));
    assert_eq!(several.tree(LOSER), tree);
}

#[test]
fn an_open_file_goes_on_with_the_copy() {
    let mut several = Several::new(2);
    several.put(0, "a", "base");
    several.sync(0).unwrap();
    several.quiet();
    several.mounts[1].is_held = true;
    let handle = several.append(1, "a", b", loser").unwrap();
    several.put(0, "a", ", winner");
    several.sync(0).unwrap();
    several.quiet();
    let data = Bytes::from_static(b"!");
    let call = Call::Write {
        handle,
        offset: 11,
        data,
        kill_set_id: false,
    };
    several.call(1, call).unwrap();
    let fsync = Call::Fsync {
        handle,
        data_only: false,
    };
    assert_eq!(several.call(1, fsync), Ok(Reply::Done));
    several.quiet();
    let contents: Vec<String> = several.tree(0).into_values().collect();
    assert_eq!(contents, ["base, winner", "base, loser!"]);
    assert!(several.mounts[1].invalidated > 0);
    assert_eq!(several.volume(1).status().conflicts, 1);
}

#[test]
fn a_commit_of_another_mount_is_seen_at_once() {
    let mut several = Several::new(2);
    several.pass(2);
    several.put(0, "a", "x");
    several.sync(0).unwrap();
    several.settle();
    assert_eq!(several.tree(1)["a"], "x");
    several.pass(2);
    several.put(0, "a", "y");
    several.sync(0).unwrap();
    several.settle();
    assert_eq!(several.tree(1)["a"], "xy");
}

#[test]
fn two_new_mounts_at_once_are_two_writers() {
    let mut several = Several::new(3);
    several.kill(1);
    several.kill(2);
    for mount in [1, 2] {
        several.mounts[mount].disk = MemoryDisk::default();
        several.mount(mount).unwrap();
    }
    several.quiet();
    let writers = [1, 2].map(|mount| several.volume(mount).status().writer);
    assert_ne!(writers[0], writers[1]);
    several.put(1, "a", "one");
    several.put(2, "b", "two");
    several.quiet();
    assert_eq!(several.tree(0).len(), 2);
}

#[test]
fn a_copied_folder_is_another_writer() {
    let mut several = Several::new(2);
    several.put(1, "a", "one");
    several.sync(1).unwrap();
    let copied = several.mounts[1].disk.copy();
    several.put(1, "b", "two");
    several.sync(1).unwrap();
    let before = several.volume(1).status().writer;
    several.kill(1);
    several.mounts[1].disk = copied;
    several.mount(1).unwrap();
    several.quiet();
    assert_ne!(several.volume(1).status().writer, before);
    several.put(1, "c", "three");
    several.quiet();
    assert_eq!(several.tree(0).len(), 3);
}
