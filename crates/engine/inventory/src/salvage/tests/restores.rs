//! A past state as rows of a new tree: whatever is lost, the new tree is sound.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use vere_ports::files::{Errno, FileKind, FileTime, Inode};

use super::super::{Count, Folder, Past, Restore, Restored, Salvaged};
use super::past_of;
use crate::finding::{CheckReport, Finding};
use crate::fit::check_tree;
use crate::format::{MailId, PackNumber};
use crate::rows::{
    EntryRow, Extent, Home, InodeRow, Key, PackRow, ROOT_HOME, RowValue, Run, decode_entry,
    decode_extents, encode_entry, encode_extents, entry_key, extents_key, inode_key, inode_of,
    xattr_key,
};
use crate::tree::Tree;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

const LOST: Folder = Folder {
    inode: Inode((900 << 24) | 1),
    home: 901,
};
const ROOT: Folder = Folder {
    inode: Inode::ROOT,
    home: ROOT_HOME,
};
const APART: Folder = Folder {
    inode: Inode((900 << 24) | 2),
    home: 902,
};
const FRAME: u32 = 500;

fn inode(kind: FileKind, links: u32, home: Home, parent: Inode) -> InodeRow {
    let time = FileTime {
        seconds: 5,
        nanoseconds: 0,
    };
    InodeRow {
        kind,
        mode: 0o640,
        links,
        uid: 7,
        gid: 8,
        size: if kind == FileKind::File { 10 } else { 0 },
        home_or_device: home,
        parent: parent.0,
        generation: 3,
        atime: time,
        mtime: time,
        ctime: time,
        btime: time,
        target: Vec::new(),
    }
}

fn blank() -> InodeRow {
    InodeRow {
        mode: 0o600,
        size: 0,
        ..inode(FileKind::File, 1, 0, Inode(0))
    }
}

/// Rows of a tree, and what tests name.
struct Made(Rows);

impl Made {
    fn put(&mut self, key: &[u8], value: Vec<u8>) {
        self.0.push((key.to_vec(), value));
    }

    fn entry(&mut self, home: Home, name: &str, inode: Inode, kind: FileKind) {
        let entry = encode_entry(EntryRow { inode, kind });
        self.put(&entry_key(home, name.as_bytes()), entry);
    }

    fn folder(&mut self, (home, parent): (Home, Inode), name: &str, number: Inode, own: Home) {
        self.entry(home, name, number, FileKind::Folder);
        let row = inode(FileKind::Folder, 2, own, parent);
        self.put(&inode_key(number), row.encode());
    }

    fn content(&mut self, file: Inode, pack: u64, at: u32) {
        let run = Run {
            length: 10,
            skip: 0,
            extent: Some(Extent {
                pack: PackNumber(pack),
                at,
                sealed_len: 96,
            }),
        };
        self.put(&extents_key(file, 0), encode_extents(&[run]));
    }

    fn file(&mut self, home: Home, name: &str, number: Inode, (pack, at): (u64, u32)) {
        self.entry(home, name, number, FileKind::File);
        let row = inode(FileKind::File, 1, 0, Inode(0));
        self.put(&inode_key(number), row.encode());
        self.content(number, pack, at);
    }

    fn pack(&mut self, number: u64) {
        let row = PackRow {
            mail: MailId([1; 16]),
            kind: 5,
            group: 1,
            octets: 10_000,
            copies: Vec::new(),
        };
        self.put(&Key::Pack(number).encode(), row.encode());
    }
}

fn number(home: Home, slot: u32) -> Inode {
    inode_of(home, slot)
}

/// `/a/b/c`, `/a/b/deep/d`, `/a/second` for `/a/b/c`, `/e`; two files share a chunk.
fn made() -> Made {
    let mut made = Made(Rows::new());
    let root = inode(FileKind::Folder, 4, ROOT_HOME, Inode::ROOT);
    made.put(&inode_key(Inode::ROOT), root.encode());
    made.put(
        &xattr_key(Inode::ROOT, b"user.root"),
        b"of the root".to_vec(),
    );
    let (a, b, deep) = (number(0, 2), number(10, 1), number(11, 1));
    made.folder((ROOT_HOME, Inode::ROOT), "a", a, 10);
    made.folder((10, a), "b", b, 11);
    made.folder((11, b), "deep", deep, 12);
    made.file(11, "c", number(11, 2), (5, 68));
    made.entry(10, "second", number(11, 2), FileKind::File);
    made.file(12, "d", number(12, 1), (5, 200));
    made.file(ROOT_HOME, "e", number(0, 3), (5, 68));
    made.put(&xattr_key(number(0, 3), b"user.note"), b"note".to_vec());
    made.pack(5);
    made.pack(6);
    made
}

fn salvaged(past: Past) -> Arc<Salvaged> {
    Arc::new(Salvaged {
        past: Some(past),
        is_whole: true,
        ..Salvaged::default()
    })
}

/// Puts a past state into a new tree, as a volume does.
fn restore(past: Past, target: Folder, is_wanted: &dyn Fn(Inode) -> bool) -> (Tree, Count) {
    let found = salvaged(past);
    let past = found.past.as_ref().unwrap();
    let wanted = |inode: Inode, _: &InodeRow| Ok::<bool, Errno>(is_wanted(inode));
    let mut plan = Restore::read(&found, past, (target, LOST, b"lost"), &wanted).unwrap();
    let mut next = 1_000;
    let mut homes = || {
        next += 1;
        Ok(next)
    };
    plan.give_places(past, &mut homes).unwrap();
    let count = plan.count();
    let mut last = Vec::new();
    let has_apart = target == APART;
    let has_lost = plan.has_lost() || has_apart;
    let mut folder = |of: Folder, parent: Inode, links: u32| {
        let row = inode(FileKind::Folder, links, of.home, parent);
        last.push((inode_key(of.inode).to_vec(), Some(row.encode())));
    };
    let below = plan.root_folders() + 2;
    let links = plan.lost_folders() + 2 + u32::from(has_apart);
    let mut entries = Vec::new();
    if has_lost {
        folder(LOST, Inode::ROOT, links);
        entries.push((ROOT_HOME, "lost", LOST.inode));
    }
    if has_apart {
        folder(APART, LOST.inode, below);
        folder(ROOT, Inode::ROOT, 3);
        entries.push((LOST.home, "tree", APART.inode));
    } else {
        folder(ROOT, Inode::ROOT, below + u32::from(has_lost));
    }
    for (home, name, inode) in entries {
        let entry = EntryRow {
            inode,
            kind: FileKind::Folder,
        };
        last.push((entry_key(home, name.as_bytes()), Some(encode_entry(entry))));
    }
    let rows = Restored::new(found.clone(), plan, (&blank(), Vec::new()), last);
    let mut tree = Tree::new();
    let all = rows.rows();
    let mut told = 0;
    for (key, value) in rows {
        told += 1;
        tree.put(&key, value.unwrap()).unwrap();
    }
    assert!(told <= all + 20, "{told} rows of {all}");
    (tree, count)
}

fn findings(tree: &Tree) -> Vec<Finding> {
    let mut report = CheckReport::default();
    check_tree(tree, &mut report).unwrap();
    report.findings
}

/// Paths of a tree, with the numbers of inodes.
fn paths(tree: &Tree) -> BTreeMap<String, Inode> {
    let mut all = BTreeMap::new();
    let mut left = vec![(ROOT_HOME, String::new())];
    while let Some((home, path)) = left.pop() {
        for key in tree.keys(&crate::rows::entries_prefix(home)).unwrap() {
            let Ok(Key::Entry { name, .. }) = Key::decode(&key) else {
                panic!("no entry");
            };
            let entry = decode_entry(&tree.get(&key).unwrap().unwrap()).unwrap();
            let path = format!("{path}/{}", String::from_utf8_lossy(name));
            assert!(all.insert(path.clone(), entry.inode).is_none());
            if entry.kind == FileKind::Folder {
                left.push((row(tree, entry.inode).home_or_device, path));
            }
        }
    }
    all
}

fn row(tree: &Tree, inode: Inode) -> InodeRow {
    let row = tree.get(&inode_key(inode)).unwrap();
    InodeRow::decode(&row.unwrap()).unwrap()
}

fn names(tree: &Tree) -> Vec<String> {
    paths(tree).into_keys().collect()
}

fn chunk(tree: &Tree, inode: Inode) -> (u64, u32) {
    let row = tree.get(&extents_key(inode, 0)).unwrap().unwrap();
    let extent = decode_extents(0, &row).unwrap()[0].extent.unwrap();
    (extent.pack.0, extent.at)
}

const ALL: [&str; 7] = [
    "/a",
    "/a/b",
    "/a/b/c",
    "/a/b/deep",
    "/a/b/deep/d",
    "/a/second",
    "/e",
];

#[test]
fn everything_comes_back_under_new_numbers() {
    let made = made();
    let (tree, count) = restore(past_of(&made.0, true), ROOT, &|_| true);
    assert_eq!(findings(&tree), []);
    assert_eq!(names(&tree), ALL);
    let counts = Count {
        files: 3,
        folders: 3,
        lost: 0,
        left_out: 0,
    };
    assert_eq!(count, counts);
    let paths = paths(&tree);
    assert_eq!(paths["/a/b/c"], paths["/a/second"]);
    assert_eq!(row(&tree, paths["/a/b/c"]).links, 2);
    let e = row(&tree, paths["/e"]);
    assert_eq!((e.mode, e.uid, e.size, e.generation), (0o640, 7, 10, 3));
    assert_eq!(chunk(&tree, paths["/e"]), (5, 68));
    assert_eq!(chunk(&tree, paths["/a/b/c"]), (5, 68));
    assert_eq!(chunk(&tree, paths["/a/b/deep/d"]), (5, 200));
    let note = tree.get(&xattr_key(paths["/e"], b"user.note")).unwrap();
    assert_eq!(note.unwrap(), "note");
    let note = tree.get(&xattr_key(Inode::ROOT, b"user.root")).unwrap();
    assert_eq!(note.unwrap(), "of the root");
    // A needed pack without a mail keeps the row; a needless pack has no row.
    assert!(tree.contains(&Key::Pack(5).encode()).unwrap());
    assert!(!tree.contains(&Key::Pack(6).encode()).unwrap());
    let old: Vec<u64> = made.0.iter().filter_map(|(key, _)| inode_in(key)).collect();
    let new = paths.values().filter(|inode| old.contains(&inode.0));
    assert_eq!(new.count(), 0, "a number of the lost state comes again");
}

fn inode_in(key: &[u8]) -> Option<u64> {
    match Key::decode(key) {
        Ok(Key::Inode(inode)) => Some(inode.0),
        _ => None,
    }
}

#[test]
fn beside_a_tree_only_what_is_wanted_comes_back() {
    let wanted = [number(12, 1), number(0, 3)];
    let is_wanted = |inode: Inode| wanted.contains(&inode);
    let (tree, count) = restore(past_of(&made().0, true), APART, &is_wanted);
    assert_eq!(findings(&tree), []);
    assert_eq!((count.files, count.folders, count.lost), (2, 3, 0));
    let expected = [
        "/lost",
        "/lost/tree",
        "/lost/tree/a",
        "/lost/tree/a/b",
        "/lost/tree/a/b/deep",
        "/lost/tree/a/b/deep/d",
        "/lost/tree/e",
    ];
    assert_eq!(names(&tree), expected);
    // A wanted folder comes with the folders above.
    let deep = number(11, 1);
    let (tree, count) = restore(past_of(&made().0, true), APART, &|inode| inode == deep);
    assert_eq!(findings(&tree), []);
    assert_eq!((count.files, count.folders), (0, 3));
    assert_eq!(names(&tree).last().unwrap(), "/lost/tree/a/b/deep");
    let (tree, count) = restore(past_of(&made().0, true), APART, &|_| false);
    assert_eq!((count.files, count.folders), (0, 0));
    assert_eq!(findings(&tree), []);
}

/// A part of the rows.
fn without(is_gone: impl Fn(&Key<'_>) -> bool) -> Rows {
    let mut rows = made().0;
    rows.retain(|(key, _)| !is_gone(&Key::decode(key).unwrap()));
    rows
}

#[test]
fn what_a_lost_folder_had_stays_together() {
    // The row of folder b is lost: the entry means little without the home.
    let rows = without(|key| *key == Key::Inode(number(10, 1)));
    let (tree, count) = restore(past_of(&rows, false), ROOT, &|_| true);
    assert_eq!(findings(&tree), []);
    let expected = [
        "/a",
        "/a/second",
        "/e",
        "/lost",
        "/lost/folder-b",
        "/lost/folder-b/c",
        "/lost/folder-b/deep",
        "/lost/folder-b/deep/d",
    ];
    assert_eq!(names(&tree), expected);
    assert_eq!((count.folders, count.lost), (3, 1));
    // The entry is lost: the folder has a row and no name.
    let rows = without(|key| matches!(key, Key::Entry { name: b"b", .. }));
    let (tree, count) = restore(past_of(&rows, false), ROOT, &|_| true);
    assert_eq!(findings(&tree), []);
    let found = names(&tree);
    assert!(found.contains(&format!("/lost/restored-{:x}/deep/d", number(10, 1).0)));
    assert_eq!(count.lost, 1);
}

#[test]
fn a_file_without_its_row_has_name_and_content() {
    let rows = without(|key| *key == Key::Inode(number(0, 3)));
    let (tree, _) = restore(past_of(&rows, false), ROOT, &|_| true);
    assert_eq!(findings(&tree), []);
    let paths = paths(&tree);
    let e = row(&tree, paths["/e"]);
    assert_eq!((e.mode, e.size, e.links), (0o600, 10, 1));
    assert_eq!(chunk(&tree, paths["/e"]), (5, 68));
}

#[test]
fn a_name_alone_is_remembered_for_the_content() {
    let e = number(0, 3);
    let rows = without(
        |key| matches!(key, Key::Inode(inode) | Key::Extents { inode, .. } | Key::Xattr { inode, .. } if *inode == e),
    );
    let found = salvaged(past_of(&rows, false));
    let past = found.past.as_ref().unwrap();
    let wanted = |_: Inode, _: &InodeRow| Ok::<bool, Errno>(true);
    let plan = Restore::read(&found, past, (ROOT, LOST, b"e"), &wanted).unwrap();
    assert_eq!(plan.name_of(e.0), Some(&b"e"[..]));
    assert_eq!(plan.name_of(number(11, 2).0), None);
    assert!(plan.has_root_name(b"e") && !plan.has_root_name(b"a"));
    let (tree, _) = restore(past_of(&rows, false), ROOT, &|_| true);
    assert_eq!(findings(&tree), []);
    assert!(!names(&tree).contains(&"/e".to_owned()));
}

#[test]
fn a_file_without_a_name_goes_to_the_lost_ones() {
    let rows = without(|key| matches!(key, Key::Entry { name: b"e", .. }));
    let (tree, count) = restore(past_of(&rows, false), ROOT, &|_| true);
    assert_eq!(findings(&tree), []);
    assert_eq!(count.lost, 1);
    let path = format!("/lost/restored-{:x}", number(0, 3).0);
    let e = paths(&tree)[&path];
    assert_eq!(row(&tree, e).links, 1);
    assert_eq!(chunk(&tree, e), (5, 68));
}

/// Leaves of different times may name a folder twice, or below itself.
#[test]
fn a_folder_has_one_place_and_none_below_itself() {
    let mut twice = made();
    let deep = number(11, 1);
    twice.entry(ROOT_HOME, "old place of deep", deep, FileKind::Folder);
    let (tree, _) = restore(past_of(&twice.0, false), ROOT, &|_| true);
    assert_eq!(findings(&tree), []);
    assert_eq!(names(&tree), ALL, "the place that the folder names itself");
    // Folder a lies below deep, and deep below a.
    let mut rows = without(|key| matches!(key, Key::Entry { name: b"a", .. }));
    let entry = EntryRow {
        inode: number(0, 2),
        kind: FileKind::Folder,
    };
    rows.push((entry_key(12, b"a"), encode_entry(entry)));
    let (tree, _) = restore(past_of(&rows, false), ROOT, &|_| true);
    assert_eq!(findings(&tree), []);
    let found = names(&tree);
    assert_eq!(found.iter().filter(|path| path.ends_with("/d")).count(), 1);
    assert_eq!(found.iter().filter(|path| path.ends_with("/c")).count(), 1);
}

/// Every row may be lost, alone or with others: the tree is sound, and content with a row is there.
#[test]
fn whatever_is_lost_the_tree_is_sound() {
    let all = made().0;
    let mut seed = 7_u64;
    for round in 0..600_usize {
        let mut rows = all.clone();
        let mut number = 0;
        rows.retain(|_| {
            number += 1;
            if round < all.len() {
                return number != round + 1;
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 61 > (round % 5) as u64
        });
        let target = if round % 2 == 0 { ROOT } else { APART };
        let has = |key: &[u8]| rows.iter().any(|(of, _)| of == key);
        let (tree, _) = restore(past_of(&rows, false), target, &|_| true);
        let found = findings(&tree);
        let is_tree = |finding: &&Finding| matches!(finding, Finding::Tree { .. });
        let wrong: Vec<&Finding> = found.iter().filter(is_tree).collect();
        assert!(wrong.is_empty(), "{round}: {wrong:?}");
        let chunks: HashSet<(u64, u32)> = paths(&tree)
            .into_values()
            .filter(|inode| tree.contains(&extents_key(*inode, 0)).unwrap())
            .map(|inode| chunk(&tree, inode))
            .collect();
        for (file, at) in [
            (self::number(11, 2), (5, 68)),
            (self::number(12, 1), (5, 200)),
        ] {
            if has(&inode_key(file)) && has(&extents_key(file, 0)) {
                assert!(chunks.contains(&at), "{round}: {file:?}");
            }
        }
    }
}

#[test]
fn lost_content_is_what_no_state_has_seen() {
    let mut rows = made();
    // An earlier version of the file lies in pack 6.
    rows.content(number(0, 9), 7, 68);
    let whole = salvaged(past_of(&rows.0, true));
    let broken = salvaged(past_of(&rows.0, false));
    for (found, is_whole) in [(whole, true), (broken, false)] {
        let past = found.past.as_ref().unwrap();
        let wanted = |_: Inode, _: &InodeRow| Ok::<bool, Errno>(true);
        let mut plan = Restore::read(&found, past, (ROOT, LOST, b"lost"), &wanted).unwrap();
        let mut next = 1_000;
        plan.give_places(past, &mut || {
            next += 1;
            Ok(next)
        })
        .unwrap();
        let mut known = HashSet::new();
        plan.note_chunks(past, &mut known);
        assert_eq!(known, HashSet::from([(5, 68), (5, 200)]));
        let ends =
            |pack, at, inode: Inode, end| plan.is_known(past, &known, (pack, at), (inode.0, end));
        let is_known = |pack, at, inode| ends(pack, at, inode, 1);
        // Octets behind those of the file are new, although the past knows the pack.
        assert!(!ends(6, FRAME, number(0, 3), 1 << 40));
        assert!(is_known(5, 68, number(0, 3)));
        // A chunk of a known pack without use is an older version where all leaves are there, or the file is whole.
        assert!(is_known(6, FRAME, number(0, 3)));
        assert_eq!(is_known(6, FRAME, number(0, 77)), is_whole);
        // A pack without a row in the state is newer.
        assert!(!is_known(8, FRAME, number(0, 3)));
        assert!(!is_known(7, 68, number(0, 9)));
    }
}

#[test]
fn errors_of_the_new_tree_and_of_numbers_end_the_plan() {
    let found = salvaged(past_of(&made().0, true));
    let past = found.past.as_ref().unwrap();
    let fails = |_: Inode, _: &InodeRow| Err(Errno::Again);
    let plan = Restore::read(&found, past, (ROOT, LOST, b"lost"), &fails);
    assert_eq!(plan.err(), Some(Errno::Again));
    let wanted = |_: Inode, _: &InodeRow| Ok::<bool, Errno>(true);
    let mut plan = Restore::read(&found, past, (ROOT, LOST, b"lost"), &wanted).unwrap();
    let full = plan.give_places(past, &mut || Err(Errno::NoSpc));
    assert_eq!(full, Err(Errno::NoSpc));
}
