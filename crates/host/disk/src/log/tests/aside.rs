//! Groups whose logs are damaged: set aside, found again after a crash, and let go of.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::*;
use crate::log::is_damage;

const GROUP: &str = "gateway";

fn open(path: &Path) -> NodeDirectory {
    let options = LogOptions {
        segment_len: 1 << 12,
        reserve_len: 1 << 12,
        ..LogOptions::default()
    };
    NodeDirectory::open(path, options, no_wake()).unwrap()
}

fn synced(log: &mut DiskLog) {
    let end = log.append(b"what is to be kept").unwrap();
    log.start_sync();
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while log.synced().unwrap() < end {
        assert!(std::time::Instant::now() < patience);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// A node's directory with a group of two segments, and its first segment.
fn filled(path: &Path) -> PathBuf {
    let mut directory = open(path);
    let mut log = directory.create(GROUP, b"head one").unwrap();
    synced(&mut log);
    log.roll(b"head two").unwrap();
    synced(&mut log);
    path.join("group-0001/0000000000000001.log")
}

fn flip(file: &Path, at: u64) {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(file)
        .unwrap();
    let mut octet = [0];
    file.read_exact_at(&mut octet, at).unwrap();
    file.write_all_at(&[octet[0] ^ 0x40], at).unwrap();
}

/// What a start finds: how opening the one group ends, and the newest head.
fn start(directory: &NodeDirectory) -> (Result<(), OpenLogError>, Option<Vec<u8>>) {
    let groups = directory.groups().unwrap();
    let [(group, path)] = &groups[..] else {
        panic!("{groups:?}");
    };
    assert_eq!(group, GROUP);
    let opened = directory.open_group(path, &mut Reader::default());
    (opened.map(drop), directory.newest_head(path))
}

fn wait_for(what: impl Fn() -> bool) {
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !what() {
        assert!(std::time::Instant::now() < patience);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_damaged_group_is_set_aside_until_it_is_whole_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let segment = filled(path);
    flip(&segment, 100);
    let mut directory = open(path);
    let (opened, head) = start(&directory);
    assert!(is_damage(&opened.unwrap_err()));
    assert_eq!(head.as_deref(), Some(&b"head two"[..]));
    assert!(!directory.is_aside(GROUP));
    synced(&mut directory.replace(GROUP, b"anew").unwrap());
    let aside = path.join("damaged-0001");
    assert!(aside.join("0000000000000001.log").exists());
    assert!(directory.is_aside(GROUP));
    drop(directory);

    let mut directory = open(path);
    let (opened, head) = start(&directory);
    assert!(opened.is_ok());
    assert_eq!(head.as_deref(), Some(&b"anew"[..]));
    assert!(directory.is_aside(GROUP) && directory.missing().unwrap().is_empty());
    directory.discard(GROUP);
    assert!(!directory.is_aside(GROUP) && !aside.exists());
    wait_for(|| !path.join("gone-0001").exists());
    drop(directory);
    assert!(!open(path).is_aside(GROUP));
}

#[test]
fn a_crash_before_there_is_another_log_leaves_word_of_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    filled(path);
    fs::rename(path.join("group-0001"), path.join("damaged-0007")).unwrap();
    // A group that was on the way out.
    fs::create_dir(path.join("gone-0001")).unwrap();
    let mut directory = open(path);
    assert!(!path.join("gone-0001").exists());
    assert_eq!(directory.groups().unwrap(), []);
    let missing = directory.missing().unwrap();
    assert_eq!(missing, [(GROUP.to_owned(), path.join("damaged-0007"))]);
    let head = directory.newest_head(&missing[0].1);
    assert_eq!(head.as_deref(), Some(&b"head two"[..]));
    directory.replace(GROUP, b"anew").unwrap();
    assert_eq!(directory.missing().unwrap(), []);
    assert_eq!(start(&directory).1.as_deref(), Some(&b"anew"[..]));
}

#[test]
fn logs_that_are_damaged_one_after_the_other_are_kept_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    filled(path);
    let mut directory = open(path);
    let heads = |directory: &NodeDirectory| -> Vec<Option<Vec<u8>>> {
        let names = (1..=5).map(|number| path.join(format!("damaged-{number:04}")));
        names.map(|at| directory.newest_head(&at)).collect()
    };
    let as_found = |texts: [Option<&str>; 5]| {
        texts
            .map(|text| text.map(|text| text.as_bytes().to_vec()))
            .to_vec()
    };
    for head in ["second", "third", "fourth"] {
        directory.replace(GROUP, head.as_bytes()).unwrap();
    }
    let three = [Some("head two"), Some("second"), Some("third"), None, None];
    assert_eq!(heads(&directory), as_found(three));
    // No more than so many: the first was whole once, the last ones may have been.
    directory.replace(GROUP, b"fifth").unwrap();
    let fewer = [Some("head two"), None, Some("third"), Some("fourth"), None];
    assert_eq!(heads(&directory), as_found(fewer));
    drop(directory);

    let mut directory = open(path);
    assert_eq!(start(&directory).1.as_deref(), Some(&b"fifth"[..]));
    assert_eq!(
        directory.newest_head_aside(GROUP).as_deref(),
        Some(&b"fourth"[..])
    );
    assert_eq!(directory.newest_head_aside("another"), None);
    directory.replace(GROUP, b"sixth").unwrap();
    let others = [Some("head two"), None, None, Some("fourth"), Some("fifth")];
    assert_eq!(heads(&directory), as_found(others));
    directory.discard(GROUP);
    assert!(!directory.is_aside(GROUP));
    assert_eq!(heads(&directory), as_found([None; 5]));
    let gone = |number| path.join(format!("gone-{number:04}")).exists();
    wait_for(|| !(1..=5).any(gone));
}

/// No head of the group can be read any more, in its segments and apart from them.
fn behead(path: &Path) {
    for file in ["0000000000000001.log", "0000000000000002.log", "origin"] {
        let file = path.join("group-0001").join(file);
        if file.exists() {
            flip(&file, 20);
        }
    }
}

#[test]
fn what_does_not_say_whose_it_was_is_kept_for_people() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    filled(path);
    behead(path);
    let mut directory = open(path);
    directory.replace(GROUP, b"anew").unwrap();
    assert!(directory.is_aside(GROUP));
    assert_eq!(directory.newest_head_aside(GROUP), None);
    directory.discard(GROUP);
    assert!(!directory.is_aside(GROUP));
    let kept = path.join("kept-0001/0000000000000001.log");
    assert!(kept.exists() && !path.join("damaged-0001").exists());
    drop(directory);
    let mut directory = open(path);
    assert!(!directory.is_aside(GROUP) && kept.exists());
    // One more of another time does not take its place.
    directory.replace(GROUP, b"once more").unwrap();
    directory.discard(GROUP);
    assert!(kept.exists() && !path.join("kept-0002").exists());
}

/// Each time that happens one more is kept, up to a bound; the oldest goes first.
#[test]
fn of_what_is_kept_the_newest_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    filled(path);
    let kept = || -> Vec<u64> {
        let there = |number: &u64| path.join(format!("kept-{number:04}")).exists();
        (1..=20).filter(there).collect()
    };
    let most = LogOptions::default().kept_max as u64;
    for round in 1..=most + 3 {
        behead(path);
        let mut directory = open(path);
        directory.replace(GROUP, b"anew").unwrap();
        directory.discard(GROUP);
        assert_eq!(kept().last(), Some(&round));
        assert!(kept().len() as u64 <= most);
    }
    assert_eq!(kept(), [4, 5, 6, 7]);
    // A bound that became lower holds from the next start on.
    let options = LogOptions {
        kept_max: 1,
        ..LogOptions::default()
    };
    NodeDirectory::open(path, options, no_wake()).unwrap();
    assert_eq!(kept(), [7]);
    wait_for(|| (1..=20).all(|number| !path.join(format!("gone-{number:04}")).exists()));
}

/// One from before there was this file gets it, once the log was read.
#[test]
fn a_log_says_whose_it_is_apart_from_its_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    filled(path);
    let group = path.join("group-0001");
    let segments = ["0000000000000001.log", "0000000000000002.log"].map(|name| group.join(name));
    let origin = group.join("origin");
    fs::remove_file(&origin).unwrap();
    assert!(start(&open(path)).0.is_ok() && origin.exists());
    for segment in segments {
        flip(&segment, 20);
    }
    assert_eq!(
        open(path).newest_head(&group).as_deref(),
        Some(&b"head two"[..])
    );
    let len = fs::metadata(&origin).unwrap().len();
    for at in 0..len {
        flip(&origin, at);
        assert_eq!(open(path).newest_head(&group), None, "octet {at}");
        flip(&origin, at);
    }
    fs::File::options()
        .write(true)
        .open(&origin)
        .unwrap()
        .set_len(len - 1)
        .unwrap();
    assert_eq!(open(path).newest_head(&group), None);
}

#[test]
fn the_newest_head_that_can_be_read_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let first = filled(path);
    let second = path.join("group-0001/0000000000000002.log");
    let head = || open(path).newest_head(&path.join("group-0001"));
    // Without its payload, the one before it.
    flip(&second, HEAD_LEN as u64 + 1);
    assert_eq!(head().as_deref(), Some(&b"head one"[..]));
    flip(&first, 20);
    assert_eq!(head().as_deref(), Some(&b"head one"[..]), "the one apart");
    fs::remove_file(path.join("group-0001/origin")).unwrap();
    assert_eq!(head(), None);
    // Another segment's head in the file.
    fs::copy(&second, &first).unwrap();
    flip(&first, HEAD_LEN as u64 + 1);
    assert_eq!(head(), None);
}

#[test]
fn what_a_disk_does_not_give_back_is_damage_and_the_rest_is_not() {
    let io = |number: i32| OpenLogError::Io {
        file: PathBuf::new(),
        error: std::io::Error::from_raw_os_error(number),
    };
    let errnos = [nix::libc::EIO, nix::libc::EBADMSG, nix::libc::EUCLEAN];
    assert!(errnos.iter().all(|number| is_damage(&io(*number))));
    assert!(!is_damage(&io(nix::libc::EACCES)));
    let file = PathBuf::new();
    assert!(!is_damage(&OpenLogError::Version { file, version: 9 }));
    // Entries that somebody wrote who knows more.
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let directory = open(folder.path());
    let path = directory.groups().unwrap().remove(0).1;
    let opened = directory.open_group(&path, &mut Puzzled).unwrap_err();
    assert!(
        matches!(opened, OpenLogError::Unreadable { .. }),
        "{opened}"
    );
    assert!(!is_damage(&opened));
}

/// Makes nothing of any entry.
struct Puzzled;

impl LogReader for Puzzled {
    fn head(&mut self, _: u64, _: &[u8]) -> Result<(), UnreadableEntry> {
        Ok(())
    }

    fn entry(&mut self, _: u64, _: &[u8]) -> Result<(), UnreadableEntry> {
        Err(UnreadableEntry("it is new to me".to_owned()))
    }
}

#[test]
fn the_log_of_a_group_that_ended_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let segment = filled(path);
    flip(&segment, 100);
    let mut directory = open(path);
    synced(&mut directory.replace(GROUP, b"anew").unwrap());
    synced(&mut directory.create("another", b"other").unwrap());
    directory.remove(GROUP).unwrap();
    assert!(!directory.is_aside(GROUP));
    directory.remove("unknown").unwrap();
    let names = |directory: &NodeDirectory| {
        let groups = directory.groups().unwrap().into_iter();
        groups.map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(&directory), ["another"]);
    drop(directory);

    let mut directory = open(path);
    assert_eq!(names(&directory), ["another"]);
    assert!(directory.missing().unwrap().is_empty());
    // Another one of that name begins with nothing.
    synced(&mut directory.create(GROUP, b"once more").unwrap());
    assert_eq!(names(&directory), ["another", GROUP]);
}
