//! Contradictions between rows, and the paths of files.

use std::collections::{BTreeSet, HashSet};

use super::*;
use crate::finding::{CheckReport, Finding, MailPlace, Weight};
use crate::fit::check_tree;
use crate::paths::{Paths, needs};

/// The findings about a tree after a change.
fn after(change: impl FnOnce(&mut Tree)) -> Vec<String> {
    let mut tree = tree();
    change(&mut tree);
    let mut report = CheckReport::default();
    check_tree(&tree, &mut report).unwrap();
    report.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sound_tree_has_no_finding() {
    let mut report = CheckReport::default();
    check_tree(&tree(), &mut report).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.inodes, report.packs), (4, 1));
    assert!(report.is_clean() && report.worst().is_none());
}

#[test]
fn links_are_counted() {
    let name = |inode: Inode| format!("inode {}", inode.0);
    let second = |tree: &mut Tree| {
        put_entry(tree, ROOT_HOME, b"f", file(), FileKind::File);
    };
    let expected = format!("{}: expected 2 links; found 1", name(file()));
    assert_eq!(after(second), [expected]);
    let lonely = |tree: &mut Tree| {
        tree.remove(&entry_key(HOME, b"f")).unwrap();
    };
    let expected = [
        format!("{}: expected 0 links; found 1", name(file())),
        format!("{}: expected an entry; found none", name(file())),
    ];
    assert_eq!(after(lonely), expected);
    // A folder has a link of its own, its entry, and one of each folder inside.
    let deeper = |tree: &mut Tree| {
        let inside = inode_of(HOME, 9);
        put_entry(tree, HOME, b"e", inside, FileKind::Folder);
        put_inode(tree, inside, &inode(FileKind::Folder, 2, 88, folder()));
    };
    let expected = format!("{}: expected 3 links; found 2", name(folder()));
    assert_eq!(after(deeper), [expected]);
    let empty_root = |tree: &mut Tree| {
        let root = inode(FileKind::Folder, 2, ROOT_HOME, Inode::ROOT);
        put_inode(tree, Inode::ROOT, &root);
    };
    assert_eq!(after(empty_root), ["inode 1: expected 3 links; found 2"]);
    // A removed folder, still open, has none.
    let removed = |tree: &mut Tree| {
        let gone = inode_of(HOME, 9);
        put_inode(tree, gone, &inode(FileKind::Folder, 0, 88, folder()));
        let key = Key::Unnamed {
            writer: 1,
            inode: gone,
        };
        tree.put(&key.encode(), Vec::new()).unwrap();
    };
    assert_eq!(after(removed), [""; 0]);
}

#[test]
fn entries_and_inodes_tell_the_same() {
    let name = |inode: Inode| format!("inode {}", inode.0);
    let other_type = |tree: &mut Tree| {
        put_entry(tree, HOME, b"f", file(), FileKind::Symlink);
    };
    let expected = format!("{}: an entry tells another type", name(file()));
    assert_eq!(after(other_type), [expected]);
    let nothing = inode_of(HOME, 9);
    let dangling = |tree: &mut Tree| {
        put_entry(tree, HOME, b"g", nothing, FileKind::File);
    };
    let expected = format!(
        "{}: expected the inode of an entry; found no row",
        name(nothing)
    );
    assert_eq!(after(dangling), [expected]);
    // The folder names another parent.
    let elsewhere = |tree: &mut Tree| {
        put_inode(tree, folder(), &inode(FileKind::Folder, 2, HOME, folder()));
    };
    let expected = format!("{}: the parent lacks the folder's entry", name(folder()));
    assert_eq!(after(elsewhere), [expected]);
}

#[test]
fn content_has_a_file() {
    let name = |inode: Inode| format!("inode {}", inode.0);
    let nothing = inode_of(HOME, 9);
    let lost = format!("{}: content or attributes without an inode", name(nothing));
    let content = |tree: &mut Tree| put_extents(tree, nothing, 0, 5);
    assert_eq!(after(content), std::slice::from_ref(&lost));
    let xattr = |inode| {
        move |tree: &mut Tree| {
            let key = Key::Xattr {
                inode,
                name: b"user.a",
            };
            tree.put(&key.encode(), b"value".to_vec()).unwrap();
        }
    };
    assert_eq!(after(xattr(nothing)), [lost]);
    assert_eq!(after(xattr(folder())), [""; 0]);
    let of_folder = |tree: &mut Tree| put_extents(tree, folder(), 0, 5);
    let expected = format!("{}: content of an inode that is no file", name(folder()));
    assert_eq!(after(of_folder), [expected]);
}

#[test]
fn extents_do_not_overlap() {
    // The row at 0 ends at 15.
    let behind = |tree: &mut Tree| put_extents(tree, file(), 15, 5);
    assert_eq!(after(behind), [""; 0]);
    let over = |tree: &mut Tree| put_extents(tree, file(), 14, 5);
    let found = after(over);
    assert_eq!(found.len(), 1);
    let text = "expected extents from 15 on; found extents from 14 on";
    assert!(
        found[0].starts_with("row 02") && found[0].ends_with(text),
        "{found:?}"
    );
    // Another file may begin anywhere.
    let other = |tree: &mut Tree| put_extents(tree, unnamed(), 0, 5);
    assert_eq!(after(other), [""; 0]);
}

#[test]
fn packs_have_the_octets_that_files_need() {
    let of = file().0;
    let short = |tree: &mut Tree| put_pack(tree, 5, 167, Vec::new());
    let expected = format!("pack 5: inode {of} needs 168 octets; found 167");
    assert_eq!(after(short), [expected]);
    let absent = |tree: &mut Tree| {
        tree.remove(&Key::Pack(5).encode()).unwrap();
    };
    let expected = format!("pack 5: inode {of} needs the pack; found no row");
    assert_eq!(after(absent), [expected]);
}

#[test]
fn rows_that_nobody_can_read_are_told() {
    for key in [
        inode_key(file()).to_vec(),
        entry_key(HOME, b"f"),
        extents_key(file(), 0).to_vec(),
        Key::Pack(5).encode(),
        Key::Tombstone(6).encode(),
        Key::Writer(1).encode(),
    ] {
        let found = after(|tree| tree.put(&key, vec![99]).unwrap());
        let digits: String = key.iter().map(|octet| format!("{octet:02x}")).collect();
        let row = format!("row {digits}: ");
        assert!(
            found.iter().any(|found| found.starts_with(&row)),
            "{found:?}"
        );
    }
}

#[test]
fn a_file_is_told_by_its_path() {
    let tree = tree();
    let wanted: HashSet<Inode> = [file(), folder()].into();
    let paths = Paths::of(&tree, &wanted).unwrap();
    assert_eq!(paths.path(file()), "/d/f");
    assert_eq!(paths.path(folder()), "/d");
    assert_eq!(paths.path(unnamed()), format!("inode {}", unnamed().0));
    let none = Paths::of(&tree, &HashSet::new()).unwrap();
    assert_eq!(none.path(folder()), format!("inode {}", folder().0));
    // Folders below themselves, in a damaged volume: an end all the same.
    let mut circle = self::tree();
    circle.remove(&entry_key(ROOT_HOME, b"d")).unwrap();
    put_entry(&mut circle, HOME, b"d", folder(), FileKind::Folder);
    let paths = Paths::of(&circle, &wanted).unwrap();
    assert!(paths.path(file()).ends_with("/d/d/f"));
}

#[test]
fn files_that_need_a_pack_are_found() {
    let mut tree = tree();
    put_extents(&mut tree, file(), 15, 5);
    put_extents(&mut tree, unnamed(), 100, 6);
    let packs: BTreeSet<PackNumber> = [PackNumber(5), PackNumber(7)].into();
    let found = needs(&tree, &packs).unwrap();
    // The first octet of the pack lies behind the hole.
    assert_eq!(found.len(), 1);
    assert_eq!(found[&PackNumber(5)], [(file(), 5)].into());
    let packs: BTreeSet<PackNumber> = [PackNumber(6)].into();
    let found = needs(&tree, &packs).unwrap();
    assert_eq!(found[&PackNumber(6)], [(unnamed(), 105)].into());
    assert!(needs(&tree, &BTreeSet::new()).unwrap().is_empty());
}

fn place() -> MailPlace {
    MailPlace::of(MailCopy {
        account: 2,
        mailbox: 16,
        uid: 9,
    })
}

/// A loss outweighs damage, damage outweighs waste, and waste outweighs a note: only damage and loss are no clean end.
#[test]
fn findings_are_weighed() {
    let (account, pack, text) = (2, 5, || "text".to_owned());
    let lost = Finding::Lost {
        path: text(),
        offset: 1,
        pack,
    };
    let waste = Finding::Unnamed {
        place: place(),
        pack,
    };
    let missing = Finding::Missing {
        place: place(),
        pack,
        paths: vec!["/a".to_owned(), "/b".to_owned()],
    };
    let lacking = Finding::Lacking { account, pack };
    let mut report = CheckReport::default();
    for (finding, weight, kind, is_clean) in [
        (lacking, Weight::Note, "lacking", true),
        (waste, Weight::Waste, "unnamed", true),
        (missing.clone(), Weight::Damage, "missing", false),
        (lost, Weight::Loss, "lost", false),
    ] {
        assert_eq!((finding.weight(), finding.kind()), (weight, kind));
        report.add(finding);
        assert_eq!(
            (report.worst(), report.is_clean()),
            (Some(weight), is_clean)
        );
    }
    let line = "account 2, mailbox data-0001, UID 9: expected a copy of pack 5; found no such mail. Files: /a, /b";
    assert_eq!(missing.to_string(), line);
    let damaged = Finding::Damaged {
        place: place(),
        pack,
        reason: text(),
        paths: Vec::new(),
    };
    assert!(damaged.to_string().ends_with("Files: none"));
}

/// A report of a broken volume stays within memory, and counts the rest.
#[test]
fn a_report_has_a_bound() {
    let mut report = CheckReport::default();
    for pack in 0..100_002 {
        report.add(Finding::Lacking { account: 1, pack });
    }
    assert_eq!((report.findings.len(), report.left_out), (100_000, 2));
}
