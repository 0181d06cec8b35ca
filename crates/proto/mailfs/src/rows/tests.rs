//! Bounds of rows, and the places of their kinds in the key space.

use std::fmt::Debug;

use vere_ports::files::{FileKind, FileTime, Inode};

use super::*;
use crate::format::{Locator, MailId, PackNumber};

/// A row has these octets, comes back from them, and no part of them is a row, nor a longer text.
pub(super) fn exact<V: RowValue + PartialEq + Debug>(value: &V, octets: &[u8]) {
    assert_eq!(value.encode(), octets);
    assert_eq!(V::decode(octets).as_ref(), Ok(value));
    for end in 0..octets.len() {
        assert!(
            V::decode(&octets[..end]).is_err(),
            "{end} octets of {value:?}"
        );
    }
    let longer = [octets, &[0]].concat();
    let found = V::decode(&longer).unwrap_err().to_string();
    assert_eq!(found, "expected the row's end; found 1 octets");
}

/// The value with a bound reached reads, and one beyond does not.
fn bound<T>(read: impl Fn(usize) -> Result<T, RowError>, max: usize) {
    assert!(read(max).is_ok());
    assert!(read(max + 1).is_err());
}

fn inode(kind: FileKind) -> InodeRow {
    let time = FileTime {
        seconds: 1,
        nanoseconds: 0,
    };
    InodeRow {
        kind,
        mode: 0o644,
        links: 1,
        uid: 2,
        gid: 3,
        size: 4,
        home_or_device: 5,
        parent: 0,
        generation: 6,
        atime: time,
        mtime: time,
        ctime: time,
        btime: time,
        target: Vec::new(),
    }
}

fn again(row: &InodeRow) -> Result<InodeRow, RowError> {
    InodeRow::decode(&row.encode())
}

/// Rows of a kind lie side by side: whoever walks over a kind begins with its prefix.
#[test]
fn prefixes_are_those_of_the_keys() {
    let prefixes: [(&[u8], Key<'_>); 9] = [
        (&packs_prefix(), Key::Pack(7)),
        (&tombstones_prefix(), Key::Tombstone(7)),
        (&tree_prefix(), Key::Inode(Inode(9))),
        (&slots_prefix(), Key::Slot(7)),
        (&states_prefix(), Key::State(7)),
        (&snapshots_prefix(), Key::Snapshot(b"name")),
        (&writers_prefix(), Key::Writer(7)),
        (&facts_prefix(), Key::Account(7)),
        (
            &mailboxes_prefix(),
            Key::Mailbox {
                account: 1,
                mailbox: 16,
            },
        ),
    ];
    for (prefix, key) in &prefixes {
        let octets = key.encode();
        assert!(octets.starts_with(prefix), "{key:?}");
        assert_eq!(Key::decode(&octets).as_ref(), Ok(key));
    }
    assert_eq!(facts_prefix(), [1]);
    assert_eq!(tree_prefix(), [2]);
}

/// A name unfit for a path would let a hostile volume reach other places of a machine.
#[test]
fn names_of_entries_are_names_of_files() {
    let read = |name: &[u8]| Key::decode(&entry_key(3, name)).map(|key| key.encode());
    for name in [&b"a"[..], b"...", b".a", b"a b\xff", b"CON"] {
        assert_eq!(read(name), Ok(entry_key(3, name)));
    }
    for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0", b"../x"] {
        assert!(read(name).is_err(), "{name:?}");
    }
    bound(|octets| read(&vec![b'n'; octets]), NAME_OCTETS_MAX);
}

#[test]
fn a_folder_has_a_home_and_a_device_a_number() {
    let folder = inode(FileKind::Folder);
    assert!(folder.is_folder() && !inode(FileKind::File).is_folder());
    let with = |kind, number| {
        again(&InodeRow {
            home_or_device: number,
            ..inode(kind)
        })
    };
    assert!(with(FileKind::Folder, (1 << 40) - 1).is_ok());
    assert!(with(FileKind::Folder, 1 << 40).is_err());
    for kind in [FileKind::CharDevice, FileKind::BlockDevice] {
        let device = with(kind, u32::MAX.into()).unwrap();
        assert_eq!(device.device(), u32::MAX);
        assert!(with(kind, 1 << 32).is_err());
    }
    assert_eq!(folder.device(), 0);
    assert!(with(FileKind::File, u64::MAX).is_ok(), "unused");
}

#[test]
fn bounds_of_inodes() {
    let row = |mode, size| {
        again(&InodeRow {
            mode,
            size,
            ..inode(FileKind::File)
        })
    };
    assert!(row(0o7777, FILE_SIZE_MAX).is_ok());
    assert!(row(0o10000, 0).is_err());
    assert!(row(0, FILE_SIZE_MAX + 1).is_err());
    let link = |octets: usize| {
        again(&InodeRow {
            size: octets as u64,
            target: vec![b't'; octets],
            ..inode(FileKind::Symlink)
        })
    };
    bound(link, SYMLINK_OCTETS_MAX);
    assert!(link(0).is_err());
}

#[test]
fn bounds_of_extents() {
    let hole = |length| Run {
        length,
        skip: 0,
        extent: None,
    };
    let one = encode_extents(&[hole(1)]);
    let many = |count: usize| {
        let octets = [&[1, count as u8][..], &one[2..].repeat(count)].concat();
        decode_extents(0, &octets)
    };
    bound(many, EXTENTS_PER_ROW);
    assert!(many(0).is_err());
    let end = |offset| decode_extents(offset, &encode_extents(&[hole(5)]));
    assert!(end(FILE_SIZE_MAX - 5).is_ok());
    assert!(end(FILE_SIZE_MAX - 4).is_err());
}

/// A state whose pages are collected is told by its place alone.
#[test]
fn a_state_without_a_root_has_no_pages() {
    let mut state = StateRow {
        commit: MailId([2; 16]),
        uid: 1,
        time_ms: 2,
        superseded_ms: 3,
        root: Locator::default(),
    };
    assert!(!state.has_pages());
    state.root = Locator {
        pack: PackNumber(1),
        mail: MailId([1; 16]),
        ..Locator::default()
    };
    assert!(state.has_pages());
}
