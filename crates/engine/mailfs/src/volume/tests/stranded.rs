//! Journals whose base is gone: the log has lost the commit below the changes, and the changes are brought onto the newest state.

use super::checks::{check, differences, rows_of};
use super::rig::{ROOT, Several};
use super::*;
use crate::breakage::{Breakage, break_by};
use crate::merge::ConflictKind;

const WINNER: usize = 0;
const LOSER: usize = 1;

type Script = fn(&mut Several, usize);

/// What a journal knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Knows {
    /// What rows were below the changes.
    Bases,
    /// No more than the changes.
    Changes,
}

fn after(
    (base, winner, loser): (Script, Script, Script),
    knows: Knows,
    stranded: Stranded,
) -> Several {
    break_by((knows == Knows::Changes).then_some(Breakage::BasesForgotten));
    let mut several = Several::new(3);
    base(&mut several, WINNER);
    several.sync(WINNER).unwrap();
    several.quiet();
    several.mounts[LOSER].is_held = true;
    loser(&mut several, LOSER);
    several.kill(LOSER);
    winner(&mut several, WINNER);
    several.sync(WINNER).unwrap();
    several.quiet();
    several.mount_stranded(LOSER, stranded).unwrap();
    break_by(None);
    several
}

/// Names without the time of copies.
fn plain(tree: BTreeMap<String, String>) -> Vec<(String, String)> {
    let plain = |path: String| match path.split_once(" (conflict m1 ") {
        Some((stem, rest)) => {
            let end = rest.split_once(')').unwrap().1;
            format!("{stem} COPY{end}")
        }
        None => path,
    };
    let without_numbers = |path: String| {
        let letters = path.chars().filter(|letter| !letter.is_ascii_digit());
        letters.collect::<String>()
    };
    tree.into_iter()
        .map(|(path, content)| match path.starts_with("recovered") {
            true => (without_numbers(plain(path)), content),
            false => (plain(path), content),
        })
        .collect()
}

fn settled(several: &mut Several, expected: &[(&str, &str)], kinds: &[ConflictKind], of: &str) {
    several.quiet();
    let told = several.conflicts(LOSER);
    for kind in kinds {
        assert!(told.contains(kind), "{of}: {told:?}");
    }
    if kinds.is_empty() {
        assert_eq!(told, [], "{of}");
    }
    let tree = several.tree(LOSER);
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(path, content)| ((*path).to_owned(), (*content).to_owned()))
        .collect();
    assert_eq!(plain(tree.clone()), expected, "{of}");
    for mount in 0..3 {
        assert_eq!(several.volume(mount).read_only(), None, "{of}");
        assert_eq!(several.tree(mount), tree, "{of}: {mount}");
        assert_eq!(check(several.volume(mount).files.tree()), Ok(()), "{of}");
        assert!(several.volume(mount).is_quiet(), "{of}: {mount}");
    }
    let first = rows_of(several.volume(0).files.tree());
    for mount in 1..3 {
        let differ = differences(&first, &rows_of(several.volume(mount).files.tree()));
        assert_eq!(differ, Vec::<String>::new(), "{of}: {mount}");
    }
    // Nothing is brought in twice.
    for mount in [LOSER, WINNER] {
        several.kill(mount);
        several.mount(mount).unwrap();
        several.quiet();
        assert_eq!(several.tree(mount), tree, "{of}: {mount} again");
    }
}

/// The outcome with known bases, and with unknown bases.
fn both(
    scripts: (Script, Script, Script),
    (known, kinds): (&[(&str, &str)], &[ConflictKind]),
    (unknown, other_kinds): (&[(&str, &str)], &[ConflictKind]),
) {
    let mut several = after(scripts, Knows::Bases, Stranded::Overtaken);
    settled(&mut several, known, kinds, "bases");
    let mut several = after(scripts, Knows::Changes, Stranded::Overtaken);
    settled(&mut several, unknown, other_kinds, "changes");
}

#[test]
fn new_files_and_folders_come_whole() {
    let tree: &[(&str, &str)] = &[
        ("b", "two"),
        ("base", "x"),
        ("f/", ""),
        ("f/c", "three"),
        ("f/g/", ""),
    ];
    both(
        (
            |of, at| of.put(at, "base", "x"),
            |of, at| of.put(at, "b", "two"),
            |of, at| {
                of.folder(at, "f").unwrap();
                of.folder(at, "f/g").unwrap();
                of.put(at, "f/c", "three");
            },
        ),
        (tree, &[]),
        (tree, &[]),
    );
}

#[test]
fn a_change_of_a_file_that_nobody_else_has_changed() {
    both(
        (
            |of, at| of.put(at, "a.txt", "one"),
            |of, at| of.put(at, "b", "two"),
            |of, at| of.put(at, "a.txt", ", more"),
        ),
        (&[("a.txt", "one, more"), ("b", "two")], &[]),
        (
            &[
                ("a COPY (changed ranges only).txt", "\0\0\0, more"),
                ("a.txt", "one"),
                ("b", "two"),
            ],
            &[ConflictKind::Content, ConflictKind::Parts],
        ),
    );
}

#[test]
fn content_changed_on_both_sides() {
    let tree: &[(&str, &str)] = &[
        ("a COPY (changed ranges only).txt", "\0\0\0\0, loser"),
        ("a.txt", "base, winner"),
    ];
    let kinds: &[ConflictKind] = &[ConflictKind::Content, ConflictKind::Parts];
    both(
        (
            |of, at| of.put(at, "a.txt", "base"),
            |of, at| of.put(at, "a.txt", ", winner"),
            |of, at| of.put(at, "a.txt", ", loser"),
        ),
        (tree, kinds),
        (tree, kinds),
    );
}

/// The journal has every octet of a file that was written anew.
#[test]
fn content_written_anew_on_both_sides() {
    let tree: &[(&str, &str)] = &[("a COPY.txt", "loser"), ("a.txt", "base, winner")];
    both(
        (
            |of, at| of.put(at, "a.txt", "base"),
            |of, at| of.put(at, "a.txt", ", winner"),
            |of, at| {
                let inode = of.at(at, "a.txt").unwrap();
                let changes = vere_ports::files::Changes {
                    size: Some(0),
                    ..Default::default()
                };
                of.call(at, Call::SetAttributes { inode, changes }).unwrap();
                of.put(at, "a.txt", "loser");
            },
        ),
        (tree, &[ConflictKind::Content]),
        (tree, &[ConflictKind::Content]),
    );
}

#[test]
fn a_file_saved_over() {
    let beside: &[(&str, &str)] = &[("a", "base"), ("a COPY", "saved")];
    both(
        (
            |of, at| of.put(at, "a", "base"),
            |_, _| {},
            |of, at| {
                of.put(at, "a.new", "saved");
                of.rename(at, "a.new", "a").unwrap();
            },
        ),
        (&[("a", "saved")], &[]),
        (beside, &[ConflictKind::Name]),
    );
}

#[test]
fn a_file_saved_over_one_that_others_changed() {
    let beside: &[(&str, &str)] = &[("a", "base, winner"), ("a COPY", "saved")];
    both(
        (
            |of, at| of.put(at, "a", "base"),
            |of, at| of.put(at, "a", ", winner"),
            |of, at| {
                of.put(at, "a.new", "saved");
                of.rename(at, "a.new", "a").unwrap();
            },
        ),
        (beside, &[ConflictKind::Name]),
        (beside, &[ConflictKind::Name]),
    );
}

#[test]
fn removals() {
    both(
        (
            |of, at| {
                of.put(at, "a", "base");
                of.put(at, "b", "base");
            },
            |of, at| of.put(at, "a", ", winner"),
            |of, at| {
                of.remove(at, "a").unwrap();
                of.remove(at, "b").unwrap();
            },
        ),
        (&[("a", "base, winner")], &[ConflictKind::Spared]),
        (
            &[("a", "base, winner"), ("b", "base")],
            &[ConflictKind::Spared],
        ),
    );
}

#[test]
fn renames_that_nobody_else_has_touched_stand() {
    let tree: &[(&str, &str)] = &[("c", "file"), ("g/", ""), ("g/in", "x"), ("g/new", "y")];
    both(
        (
            |of, at| {
                of.put(at, "a", "file");
                of.folder(at, "f").unwrap();
                of.put(at, "f/in", "x");
            },
            |_, _| {},
            |of, at| {
                of.rename(at, "a", "c").unwrap();
                of.rename(at, "f", "g").unwrap();
                of.put(at, "g/new", "y");
            },
        ),
        (tree, &[]),
        (tree, &[]),
    );
}

#[test]
fn of_two_renames_the_newest_state_has_the_right_one() {
    let tree: &[(&str, &str)] = &[
        ("a-winner", "file"),
        ("f-winner/", ""),
        ("f-winner/in", "folder"),
    ];
    both(
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
        (tree, &[ConflictKind::Renamed]),
        (tree, &[ConflictKind::Renamed]),
    );
}

#[test]
fn circles_are_dropped() {
    let tree: &[(&str, &str)] = &[("a/", ""), ("a/c/", ""), ("a/c/b/", ""), ("a/c/b/d/", "")];
    both(
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
        (tree, &[ConflictKind::Circle]),
        (tree, &[ConflictKind::Circle]),
    );
}

#[test]
fn equal_names_and_folders() {
    let tree: &[(&str, &str)] = &[
        ("both/", ""),
        ("both/l", "l"),
        ("both/w", "w"),
        ("both/x", "w"),
        ("both/x COPY", "l"),
        ("new", "winner"),
        ("new COPY", "loser"),
    ];
    both(
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
        (tree, &[ConflictKind::Name]),
        (tree, &[ConflictKind::Name]),
    );
}

#[test]
fn what_has_no_folder_any_more_is_recovered() {
    let tree: &[(&str, &str)] = &[
        ("recovered files COPY/", ""),
        ("recovered files COPY/folder /", ""),
        ("recovered files COPY/folder /b", "new"),
    ];
    let kinds: &[ConflictKind] = &[ConflictKind::Returned, ConflictKind::Recovered];
    both(
        (
            |of, at| {
                of.folder(at, "f").unwrap();
            },
            |of, at| {
                of.remove_folder(at, "f").unwrap();
            },
            |of, at| of.put(at, "f/b", "new"),
        ),
        (tree, kinds),
        (tree, kinds),
    );
}

#[test]
fn what_others_removed_and_the_journal_changed_is_recovered() {
    let tree: &[(&str, &str)] = &[
        ("recovered files COPY/", ""),
        (
            "recovered files COPY/file  (changed ranges only)",
            "\0\0\0\0, loser",
        ),
    ];
    let kinds: &[ConflictKind] = &[
        ConflictKind::Returned,
        ConflictKind::Recovered,
        ConflictKind::Parts,
    ];
    both(
        (
            |of, at| of.put(at, "a", "base"),
            |of, at| {
                of.remove(at, "a").unwrap();
            },
            |of, at| of.put(at, "a", ", loser"),
        ),
        (tree, kinds),
        (tree, kinds),
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
fn attributes_lose_and_are_told() {
    let scripts: (Script, Script, Script) = (
        |of, at| {
            of.put(at, "a", "x");
            of.put(at, "gone", "x");
        },
        |of, at| {
            set_mode(of, at, "a", 0o640);
            of.remove(at, "gone").unwrap();
        },
        |of, at| {
            set_mode(of, at, "a", 0o600);
            set_mode(of, at, "gone", 0o600);
        },
    );
    for knows in [Knows::Bases, Knows::Changes] {
        let mut several = after(scripts, knows, Stranded::Overtaken);
        settled(
            &mut several,
            &[("a", "x")],
            &[ConflictKind::Attributes],
            "mode",
        );
        assert_eq!(several.lookup(LOSER, ROOT, b"a").unwrap().mode, 0o640);
        let status = several.volume(WINNER).status();
        assert_eq!(status.conflicts, 0);
    }
}

/// A volume that was set back may count versions of a file twice.
#[test]
fn a_volume_that_was_set_back_takes_no_version_for_another() {
    let scripts: (Script, Script, Script) = (
        |of, at| of.put(at, "a", "base"),
        |of, at| set_mode(of, at, "a", 0o640),
        |of, at| of.put(at, "a", ", more"),
    );
    let mut several = after(scripts, Knows::Bases, Stranded::Overtaken);
    settled(&mut several, &[("a", "base, more")], &[], "overtaken");
    let mut several = after(scripts, Knows::Bases, Stranded::SetBack);
    settled(
        &mut several,
        &[
            ("a", "base"),
            ("a COPY (changed ranges only)", "\0\0\0\0, more"),
        ],
        &[ConflictKind::Content],
        "set back",
    );
}

/// A machine sleeps for longer than the volume keeps versions.
fn slept() -> World {
    let mut world = World::new(1);
    world.put(ROOT, "old", &noise(1, 300_000));
    world.put(ROOT, "both", &noise(2, 70_000));
    world.sync().unwrap();
    let changed = world.lookup(ROOT, "both").unwrap();
    let handle = world.open(changed.inode);
    world.write(handle, 69_000, &noise(3, 2_000));
    world.close(handle);
    let changed = world.lookup(ROOT, "old").unwrap();
    let handle = world.open(changed.inode);
    world.write(handle, 1_000, &noise(4, 2_000));
    world.close(handle);
    world.put(ROOT, "new", &noise(5, 200_000));
    world.kill();
    let away = world.disk.copy();
    world.disk = MemoryDisk::default();
    world.mount().unwrap();
    world.put(ROOT, "both2", b"x");
    let call = Call::Rename {
        parent: ROOT,
        name: b"both2".to_vec(),
        new_parent: ROOT,
        new_name: b"both".to_vec(),
        mode: vere_ports::files::RenameMode::Replace,
    };
    world.call(call).unwrap();
    for number in 0..20 {
        world.put(ROOT, &format!("day {number}"), &noise(number + 10, 400));
        world.sync().unwrap();
        assert_eq!(world.finish(), Ok(Reply::Done));
        world.days(1);
        world.collect().unwrap();
    }
    world.sync().unwrap();
    world.kill();
    world.disk = away;
    world
}

fn names(world: &mut World) -> Vec<String> {
    let keys = world.volume().files.tree().keys(&[2]).unwrap();
    let mut names: Vec<String> = keys
        .iter()
        .filter_map(|key| match crate::rows::Key::decode(key) {
            Ok(crate::rows::Key::Entry { name, .. }) => {
                Some(String::from_utf8(name.to_vec()).unwrap())
            }
            _ => None,
        })
        .filter(|name| !name.starts_with("day "))
        .collect();
    names.sort();
    names
}

fn expect_awake(world: &mut World) {
    let names = names(world);
    assert_eq!(names.len(), 5, "{names:?}");
    assert_eq!(names[0], "both");
    assert_eq!(names[2..4], ["new", "old"]);
    assert!(names[1].starts_with("file ") && names[1].ends_with("(changed ranges only)"));
    assert!(names[4].starts_with("recovered files (conflict test "));
    let mut old = noise(1, 300_000);
    old[1_000..3_000].copy_from_slice(&noise(4, 2_000));
    assert!(world.get(ROOT, "old").unwrap() == old);
    assert!(world.get(ROOT, "new").unwrap() == noise(5, 200_000));
    assert_eq!(world.get(ROOT, "both").unwrap(), b"x");
    let folder = world.lookup(ROOT, &names[4]).unwrap().inode;
    let parts = world.get(folder, &names[1]).unwrap();
    assert!(parts[69_000..] == noise(3, 2_000) && parts[..69_000].iter().all(|octet| *octet == 0));
}

#[test]
fn a_machine_that_slept_too_long_keeps_its_changes() {
    let mut world = slept();
    let error = world.mount().unwrap_err();
    assert!(matches!(error, OpenError::Overtaken), "{error}");
    world.mount_stranded(Stranded::Overtaken).unwrap();
    let told = world
        .notices
        .iter()
        .filter(|notice| matches!(notice, Notice::Brought(_) | Notice::Conflict(_)));
    assert!(told.count() >= 3, "{:?}", world.notices);
    assert!(world.volume().status().conflicts >= 3);
    expect_awake(&mut world);
    world.sync().unwrap();
    assert_eq!(world.check(true, false).findings, []);
    world.kill();
    world.mount().unwrap();
    expect_awake(&mut world);
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    expect_awake(&mut world);
}

/// The machine loses power at every step of its disk: each start ends with the same files, and with each file once.
#[test]
fn changes_are_brought_in_once_however_often_the_machine_dies() {
    let world = slept();
    let (accounts, disk, now) = (world.accounts.clone(), world.disk, world.now);
    let mut stops = 0;
    for stop in 0.. {
        let mut world = World::new(1);
        (world.accounts, world.now) = (accounts.clone(), now);
        world.kill();
        world.disk = disk.copy();
        world.disk.stop_at(world.disk.steps() + stop);
        let opened = world.mount_stranded(Stranded::Overtaken);
        let is_over = opened.is_ok();
        world.kill();
        world.disk.crash(&mut Seeded(stop));
        if let Err(error) = world.mount() {
            assert!(matches!(error, OpenError::Overtaken), "{error}");
            world.mount_stranded(Stranded::Overtaken).unwrap();
        }
        expect_awake(&mut world);
        world.sync().unwrap();
        assert_eq!(world.check(true, false).findings, [], "{stop}");
        world.lose_folder();
        world.mount().unwrap();
        expect_awake(&mut world);
        stops += 1;
        if is_over {
            break;
        }
    }
    assert!(stops > 5, "{stops}");
}
