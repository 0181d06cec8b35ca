//! Volumes whose log has lost commits and whose pages survive: names come back with the content.

use std::collections::BTreeMap;

use vere_ports::files::FileKind;

use super::salvages::{assert_clean, begin_anew, lose, names, place, place_behind, read};
use super::*;
use crate::format::Subject;

const ROOT: Inode = Inode::ROOT;
/// A file too long for a commit.
const LONG: usize = 70_000;

/// Folders and files by their paths, with contents, links and attributes.
type Paths = BTreeMap<String, (FileKind, Vec<u8>, u32, Vec<u8>)>;

fn xattr(world: &mut World, inode: Inode) -> Vec<u8> {
    let call = Call::GetXattr {
        inode,
        name: b"user.note".to_vec(),
    };
    match world.call(call) {
        Ok(Reply::Octets(octets)) => octets.to_vec(),
        _ => Vec::new(),
    }
}

fn walk(world: &mut World, folder: Inode, path: &str, all: &mut Paths) {
    for name in names(world, folder) {
        let facts = world.lookup(folder, &name).unwrap();
        let path = format!("{path}/{name}");
        let content = match facts.kind {
            FileKind::File => world.get(folder, &name).unwrap(),
            _ => Vec::new(),
        };
        let note = xattr(world, facts.inode);
        all.insert(path.clone(), (facts.kind, content, facts.links, note));
        if facts.kind == FileKind::Folder {
            walk(world, facts.inode, &path, all);
        }
    }
}

fn paths(world: &mut World) -> Paths {
    let mut all = Paths::new();
    walk(world, ROOT, "", &mut all);
    all
}

/// Folders with files; two names of a file, a chunk of two files, a link, and attributes. The mount has ended.
fn filled() -> (World, Paths) {
    let mut world = World::new(2);
    for folder in 0..3_u64 {
        let outer = make_folder(&mut world, ROOT, &format!("outer-{folder}"), 0o750);
        let inner = make_folder(&mut world, outer, "inner", 0o750);
        for file in 0..4_u64 {
            let name = format!("file-{file}");
            world.put(inner, &name, &noise(folder * 10 + file, LONG));
            let inode = world.lookup(inner, &name).unwrap().inode;
            set_xattr(&mut world, inode, "note", noise(file, 9_000));
        }
        // Equal content lies in one place.
        world.put(outer, "again", &noise(folder * 10, LONG));
        let inode = world.lookup(inner, "file-1").unwrap().inode;
        let call = Call::Link {
            inode,
            parent: outer,
            name: b"second name".to_vec(),
        };
        world.call(call).unwrap();
        let call = Call::Symlink {
            parent: outer,
            name: b"link".to_vec(),
            target: b"inner/file-2".to_vec(),
        };
        world.call(call).unwrap();
    }
    let all = paths(&mut world);
    assert_eq!(world.finish(), Ok(Reply::Done));
    world.lose_folder();
    (world, all)
}

/// Mails of a mailbox on the lead, with their subjects.
fn subjects(world: &mut World, mailbox: &str) -> Vec<(u32, Subject)> {
    let account = world.accounts.get_mut(&1).unwrap();
    let mails = &account.mailbox(mailbox).unwrap().mails;
    let parse = |(uid, mail): (&u32, &Bytes)| {
        let text = String::from_utf8_lossy(mail);
        let line = text.lines().find_map(|line| line.strip_prefix("Subject: "));
        (*uid, Subject::parse(line.unwrap()).unwrap())
    };
    mails.iter().map(parse).collect()
}

fn remove(world: &mut World, mailbox: &str, is_gone: impl Fn(&Subject) -> bool) -> usize {
    let gone: Vec<u32> = subjects(world, mailbox)
        .into_iter()
        .filter(|(_, subject)| is_gone(subject))
        .map(|(uid, _)| uid)
        .collect();
    let account = world.accounts.get_mut(&1).unwrap();
    let mailbox = account.mailbox(mailbox).unwrap();
    for uid in &gone {
        mailbox.mails.remove(uid);
    }
    gone.len()
}

/// The generation that the newest pages cover.
fn covered(world: &mut World) -> u64 {
    let pages = subjects(world, "pages");
    let generations = pages.iter().filter_map(|(_, subject)| subject.generation);
    generations.max().unwrap()
}

fn remount_elsewhere(world: &mut World) {
    world.finish().unwrap();
    world.lose_folder();
    world.mount().unwrap();
}

#[test]
fn a_tree_comes_back_where_all_commits_are_lost() {
    let (mut world, before) = filled();
    lose(&mut world, "log");
    let found = read(&mut world);
    let past = found.past.as_ref().unwrap();
    assert!(past.is_whole());
    assert_eq!((past.missing(), past.spare()), (0, 0));
    begin_anew(&mut world, &found);
    let placed = place(&mut world, &found);
    assert_eq!((placed.files, placed.is_in_place), (0, true));
    assert_eq!((placed.restored.files, placed.restored.folders), (18, 6));
    assert_eq!((placed.restored.lost, placed.restored.left_out), (0, 0));
    assert!(paths(&mut world) == before);
    assert_clean(&mut world);
    // A second machine sees an equal tree, and writes on.
    remount_elsewhere(&mut world);
    assert!(paths(&mut world) == before);
    let outer = world.lookup(ROOT, "outer-1").unwrap().inode;
    world.put(outer, "new", b"x");
    world.sync().unwrap();
    assert_clean(&mut world);
    // A second salvage has nothing to add.
    let found = read(&mut world);
    let known = world.volume().status().generation;
    let now = world.moment();
    let again = world.volume().salvage(now, CALLER, &found, known).unwrap();
    assert!(!again.has_any(), "{again:?}");
}

/// The copy of another account serves as well.
#[test]
fn pages_of_a_further_account_serve() {
    let (mut world, before) = filled();
    lose(&mut world, "log");
    let lead = world.accounts.get_mut(&1).unwrap();
    let pages = std::mem::take(&mut lead.mailbox("pages").unwrap().mails);
    let other = world.accounts.get_mut(&2).unwrap();
    for mail in pages.into_values() {
        let request = Request::Append {
            mailbox: "pages-copy".to_owned(),
            mail,
            alone: true,
        };
        other.carry_out(&request).unwrap();
    }
    let found = read(&mut world);
    begin_anew(&mut world, &found);
    place(&mut world, &found);
    assert!(paths(&mut world) == before);
    assert_clean(&mut world);
}

/// A checkpoint stands on the covered commit. Without the commit the log has no beginning, though later commits are
/// there.
#[test]
fn later_commits_count_above_pages_whose_commit_is_lost() {
    let (mut world, _) = filled();
    let covers = covered(&mut world);
    world.mount().unwrap();
    let outer = world.lookup(ROOT, "outer-0").unwrap().inode;
    world.put(outer, "late", &noise(77, LONG));
    world.put(outer, "short", b"in a commit");
    world.call(unlink(outer, "again")).unwrap();
    let inner = world.lookup(outer, "inner").unwrap().inode;
    world.call(rename(inner, "file-3", ROOT, "moved")).unwrap();
    world.sync().unwrap();
    let before = paths(&mut world);
    world.lose_folder();
    // Garbage collection has removed older commits.
    assert!(remove(&mut world, "log", |of| of.generation <= Some(covers)) > 1);
    assert!(matches!(world.mount(), Err(OpenError::NoVolume(1))));
    let found = read(&mut world);
    let past = found.past.as_ref().unwrap();
    assert_eq!(past.covers(), covers);
    assert!(past.generation() > covers);
    begin_anew(&mut world, &found);
    let placed = place(&mut world, &found);
    assert_eq!((placed.files, placed.restored.lost), (0, 0));
    assert!(paths(&mut world) == before);
    assert_clean(&mut world);
}

/// The new tree of a killed salvage has a newer checkpoint than the lost tree, and few rows.
#[test]
fn a_salvage_that_was_killed_is_begun_again() {
    let (mut world, before) = filled();
    lose(&mut world, "log");
    let lost = read(&mut world);
    assert_eq!(lost.begun(), None);
    begin_anew(&mut world, &lost);
    let now = world.moment();
    world.volume().salvage(now, CALLER, &lost, 0).unwrap();
    // The rows have not left, and the machine is lost.
    world.lose_folder();
    for has_checkpoint in [false, true] {
        world.mount().unwrap();
        if has_checkpoint {
            world.finish().unwrap();
            world.lose_folder();
            world.mount().unwrap();
        }
        world.settle();
        assert!(paths(&mut world).is_empty());
        let found = read(&mut world);
        assert_eq!(found.begun(), Some(lost.generation()));
        let past = found.past.as_ref().unwrap();
        assert_eq!(past.covers(), lost.past.as_ref().unwrap().covers());
        if has_checkpoint {
            place(&mut world, &found);
        }
    }
    assert!(paths(&mut world) == before);
    assert_clean(&mut world);
    remount_elsewhere(&mut world);
    assert!(paths(&mut world) == before);
    assert_eq!(read(&mut world).begun(), None);
}

fn unlink(parent: Inode, name: &str) -> Call {
    Call::Unlink {
        parent,
        name: name.into(),
    }
}

fn rename(parent: Inode, name: &str, new_parent: Inode, new_name: &str) -> Call {
    Call::Rename {
        parent,
        name: name.into(),
        new_parent,
        new_name: new_name.into(),
        mode: vere_ports::files::RenameMode::Replace,
    }
}

/// Files of the tree stay; missing files and newer versions come beside.
#[test]
fn a_tree_that_lost_its_newest_commits_gets_what_it_lacks() {
    let (mut world, before) = filled();
    let old = covered(&mut world);
    world.mount().unwrap();
    let outer = world.lookup(ROOT, "outer-0").unwrap().inode;
    world.put(outer, "late", &noise(77, LONG));
    world.now += 5_000;
    let inode = world.lookup(outer, "again").unwrap().inode;
    let handle = world.open(inode);
    world.write(handle, 0, b"written anew");
    world.close(handle);
    let changed = world.get(outer, "again").unwrap();
    world.finish().unwrap();
    world.lose_folder();
    // The log ends where the first mount did.
    assert!(remove(&mut world, "log", |of| of.generation > Some(old + 1)) > 0);
    let found = read(&mut world);
    world
        .mount_with(|opening| opening.writers_above(found.last_writer()))
        .unwrap();
    let known = world.volume().status().generation;
    assert!(found.generation() > known);
    world.settle();
    // As `rebuild` does: all pages are read.
    let now = world.moment();
    assert!(
        world
            .volume()
            .check(now, crate::volume::CheckTerms::default())
    );
    world.settle();
    assert!(world.volume().take_upkept().is_some());
    let placed = place_behind(&mut world, &found, known);
    assert_eq!((placed.files, placed.is_in_place), (0, false));
    assert_eq!((placed.restored.files, placed.restored.lost), (2, 0));
    let after = paths(&mut world);
    for (path, was) in &before {
        assert!(after.get(path) == Some(was), "{path}");
    }
    assert!(after["/lost+found/tree/outer-0/late"].1 == noise(77, LONG));
    assert!(after["/lost+found/tree/outer-0/again"].1 == changed);
    assert_eq!(after.len(), before.len() + 5);
    assert_clean(&mut world);
}

#[test]
fn an_older_root_serves_where_the_newest_is_lost() {
    let (mut world, before) = filled();
    let old = covered(&mut world);
    world.mount().unwrap();
    let outer = world.lookup(ROOT, "outer-0").unwrap().inode;
    world.put(outer, "late", &noise(77, LONG));
    world.finish().unwrap();
    world.lose_folder();
    lose(&mut world, "log");
    assert!(remove(&mut world, "pages", |of| of.generation > Some(old)) > 0);
    let found = read(&mut world);
    let past = found.past.as_ref().unwrap();
    assert_eq!((past.covers(), past.is_whole()), (old, true));
    begin_anew(&mut world, &found);
    let placed = place(&mut world, &found);
    // The content of the late file has lost its name.
    assert_eq!((placed.files, placed.restored.lost), (1, 0));
    let mut after = paths(&mut world);
    let lost = after.remove("/lost+found").unwrap();
    assert_eq!(lost.0, FileKind::Folder);
    let is_late = |path: &String| path.starts_with("/lost+found/inode-");
    let late = after.keys().find(|path| is_late(path)).unwrap().clone();
    assert!(after.remove(&late).unwrap().1 == noise(77, LONG));
    assert!(after == before);
    assert_clean(&mut world);
}

/// A volume with several mails of leaves.
fn large() -> (World, Paths) {
    let mut world = World::new(1);
    for folder in 0..4_u64 {
        let inode = make_folder(&mut world, ROOT, &format!("folder-{folder}"), 0o750);
        for file in 0..16_u64 {
            let name = format!("file-{file:02}");
            world.put(inode, &name, &noise(folder * 100 + file, LONG));
            let file = world.lookup(inode, &name).unwrap().inode;
            set_xattr(&mut world, file, "note", noise(file.0, 50_000));
        }
    }
    let all = paths(&mut world);
    world.finish().unwrap();
    world.lose_folder();
    lose(&mut world, "log");
    (world, all)
}

/// Every content comes back, with a name where a page has the name.
fn assert_all_content(world: &mut World, before: &Paths) -> usize {
    let after = paths(world);
    let contents: Vec<&Vec<u8>> = after.values().map(|(_, content, ..)| content).collect();
    for (path, (_, content, ..)) in before {
        assert!(contents.contains(&content), "{path}");
    }
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let has = |path: &str, content: &[u8]| {
        let mut all = after.iter();
        all.any(|(at, now)| now.1 == content && name(at) == name(path))
    };
    let files = before.iter().filter(|(_, of)| of.0 == FileKind::File);
    files.filter(|(path, of)| has(path, &of.1)).count()
}

#[test]
fn lost_leaves_cost_their_own_names_only() {
    let (mut world, before) = large();
    let mails = subjects(&mut world, "pages");
    assert!(mails.len() >= 3, "{} mails of pages", mails.len());
    for lost in 0..mails.len() {
        let mut trial = World {
            accounts: world.accounts.clone(),
            ..World::new(1)
        };
        trial.now = world.now;
        let (_, gone) = mails[lost];
        assert_eq!(remove(&mut trial, "pages", |of| of.mail == gone.mail), 1);
        let found = read(&mut trial);
        let past = found.past.as_ref().unwrap();
        assert!(!past.is_whole());
        begin_anew(&mut trial, &found);
        let placed = place(&mut trial, &found);
        assert!(placed.restored.files > 0, "{placed:?}");
        let named = assert_all_content(&mut trial, &before);
        // The last mail has the root and few leaves.
        let is_root = lost + 1 == mails.len();
        let least = if is_root { 32 } else { 16 };
        assert!(named >= least, "{lost}: {named} names");
        assert_clean(&mut trial);
    }
}

#[test]
fn half_of_the_leaves_may_be_lost() {
    let (mut world, before) = large();
    let mails = subjects(&mut world, "pages");
    for (number, (_, gone)) in mails.iter().enumerate() {
        if number % 2 == 0 {
            remove(&mut world, "pages", |of| of.mail == gone.mail);
        }
    }
    let found = read(&mut world);
    begin_anew(&mut world, &found);
    place(&mut world, &found);
    assert_all_content(&mut world, &before);
    assert_clean(&mut world);
}

/// Pages that a stranger has made or altered count for nothing, whatever their subjects say.
#[test]
fn forged_pages_are_ignored() {
    let (mut world, before) = filled();
    lose(&mut world, "log");
    let pages = read(&mut world).report().pages;
    assert!(pages > 3, "{pages}");
    let account = world.accounts.get_mut(&1).unwrap();
    let mailbox = account.mailbox("pages").unwrap();
    let genuine: Vec<Bytes> = mailbox.mails.values().cloned().collect();
    let mut forged = Vec::new();
    for mail in &genuine {
        let begin = mail.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
        let (head, body) = mail.split_at(begin);
        let head = String::from_utf8_lossy(head);
        let mut altered = body.to_vec();
        let at = (altered.len() / 2..).find(|at| altered[*at].is_ascii_lowercase());
        altered[at.unwrap()] ^= 1;
        // The genuine pages under a newer generation and under another id; altered pages under both.
        for body in [body, &altered] {
            for (from, to) in [(" g0000", " g0fff"), (" i", " i0")] {
                let mut digits = head.replacen(from, to, 1);
                if from == " i" {
                    // An id has 32 digits.
                    let at = digits.find(" i0").unwrap() + 34;
                    digits.remove(at);
                }
                forged.push([digits.as_bytes(), body].concat());
            }
        }
    }
    for mail in forged {
        let uid = mailbox.uid_next;
        mailbox.mails.insert(uid, mail.into());
        mailbox.uid_next += 1;
    }
    let found = read(&mut world);
    assert_eq!(found.report().pages, pages);
    // Mails under wrong ids are told.
    assert!(found.report().unusable.len() >= genuine.len());
    let past = found.past.as_ref().unwrap();
    assert!(past.is_whole() && past.covers() < 1_000);
    begin_anew(&mut world, &found);
    place(&mut world, &found);
    assert!(paths(&mut world) == before);
    assert_clean_but_strays(&mut world);
}

/// Nothing of the tree is amiss, whatever lies around.
fn assert_clean_but_strays(world: &mut World) {
    let now = world.moment();
    let terms = crate::volume::CheckTerms {
        data: true,
        repair: false,
    };
    assert!(world.volume().check(now, terms));
    world.settle();
    let Some(crate::volume::Upkept::Checked(report)) = world.volume().take_upkept() else {
        panic!("no report");
    };
    let is_tree = |finding: &&crate::volume::Finding| {
        use crate::volume::Finding;
        matches!(
            finding,
            Finding::Tree { .. } | Finding::Pack { .. } | Finding::Lost { .. }
        )
    };
    let of_tree: Vec<_> = report.findings.iter().filter(is_tree).collect();
    assert!(of_tree.is_empty(), "{of_tree:?}");
}
