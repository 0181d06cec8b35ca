//! Cases that random calls seldom meet.

use vere_ports::files::{
    Allocate, Call, Caller, Changes, Entry, Errno, FileKind, FileTime, Handle, Inode, OpenFlags,
    RenameMode, Reply, Seek, XattrMode,
};

use super::super::{LINKS_MAX, Numbers, Outcome};
use super::rig::{BOTH, ROOT, Rig, USER, entry};
use crate::rows::{InodeRow, Key, encode_extents, extents_key, inode_key, unnamed_prefix};

fn lookup(rig: &mut Rig, parent: Inode, name: &[u8]) -> Result<Inode, Errno> {
    let name = name.to_vec();
    rig.call(Call::Lookup { parent, name }).map(entry)
}

fn set(rig: &mut Rig, inode: Inode, changes: Changes) -> Result<u16, Errno> {
    match rig.call(Call::SetAttributes { inode, changes })? {
        Reply::Attributes(facts) => Ok(facts.mode),
        other => panic!("{other:?}"),
    }
}

fn change_row(rig: &mut Rig, inode: Inode, change: impl FnOnce(&mut InodeRow)) {
    let key = inode_key(inode);
    let mut row = InodeRow::decode(&rig.files.tree().get(&key).unwrap().unwrap()).unwrap();
    change(&mut row);
    rig.files.tree_mut().put(&key, row.encode()).unwrap();
}

fn list(rig: &mut Rig, handle: Handle, with_attributes: bool) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let cursor = all.last().map_or(0, |entry| entry.cursor);
        let call = Call::ReadFolder {
            handle,
            cursor,
            with_attributes,
        };
        match rig.call(call).unwrap() {
            Reply::Entries(entries) if entries.is_empty() => return all,
            Reply::Entries(entries) => all.extend(entries),
            other => panic!("{other:?}"),
        }
    }
}

fn open_folder(rig: &mut Rig, inode: Inode) -> Handle {
    match rig.call(Call::OpenFolder { inode }).unwrap() {
        Reply::Opened { handle, .. } => handle,
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_names_are_refused() {
    let mut rig = Rig::new();
    let cases = [
        (vec![b'x'; 255], Ok(())),
        (vec![b'x'; 256], Err(Errno::NameTooLong)),
        (Vec::new(), Err(Errno::Inval)),
        (b"a/b".to_vec(), Err(Errno::Inval)),
        (b"a\0b".to_vec(), Err(Errno::Inval)),
        (b"..".to_vec(), Err(Errno::Exist)),
    ];
    for (name, expected) in cases {
        let call = Call::MakeFolder {
            parent: ROOT,
            name,
            mode: 0,
        };
        assert_eq!(rig.call(call).map(|_| ()), expected);
    }
    let folder = rig.folder(ROOT, "f");
    assert_eq!(lookup(&mut rig, folder, b".."), Ok(ROOT));
    assert_eq!(lookup(&mut rig, folder, b"."), Ok(folder));
    let dots = |name: &[u8]| Call::RemoveFolder {
        parent: folder,
        name: name.to_vec(),
    };
    assert_eq!(rig.call(dots(b".")), Err(Errno::Inval));
    assert_eq!(rig.call(dots(b"..")), Err(Errno::NotEmpty));
    let link = |octets| Call::Symlink {
        parent: ROOT,
        name: b"l".to_vec(),
        target: vec![b'x'; octets],
    };
    assert_eq!(rig.call(link(4096)), Err(Errno::NameTooLong));
    assert_eq!(rig.call(link(0)), Err(Errno::NoEnt));
    assert!(rig.call(link(4095)).is_ok());
}

#[test]
fn links_have_a_bound() {
    let mut rig = Rig::new();
    let (file, _) = rig.file(ROOT, "a");
    change_row(&mut rig, file, |row| row.links = LINKS_MAX);
    let call = Call::Link {
        inode: file,
        parent: ROOT,
        name: b"b".to_vec(),
    };
    assert_eq!(rig.call(call), Err(Errno::MLink));
    let full = rig.folder(ROOT, "full");
    change_row(&mut rig, full, |row| row.links = LINKS_MAX);
    let call = Call::MakeFolder {
        parent: full,
        name: b"b".to_vec(),
        mode: 0,
    };
    assert_eq!(rig.call(call), Err(Errno::MLink));
    rig.folder(ROOT, "c");
    let call = Call::Rename {
        parent: ROOT,
        name: b"c".to_vec(),
        new_parent: full,
        new_name: b"c".to_vec(),
        mode: RenameMode::Replace,
    };
    assert_eq!(rig.call(call), Err(Errno::MLink));
}

#[test]
fn sizes_have_a_bound() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    let top = i64::MAX.cast_unsigned();
    let write = |offset| Call::Write {
        handle,
        offset,
        data: vec![1, 2].into(),
        kill_set_id: false,
    };
    assert_eq!(rig.call(write(top - 1)), Err(Errno::FBig));
    assert_eq!(rig.call(write(u64::MAX)), Err(Errno::FBig));
    assert_eq!(rig.call(write(top - 2)), Ok(Reply::Written(2)));
    assert_eq!(rig.attributes(file).size, top);
    assert_eq!(rig.attributes(file).allocated, 4096);
    let changes = Changes {
        size: Some(top + 1),
        ..Changes::default()
    };
    assert_eq!(set(&mut rig, file, changes), Err(Errno::FBig));
    let room = |offset, length| Call::Allocate {
        handle,
        offset,
        length,
        mode: Allocate::Plain,
    };
    assert_eq!(rig.call(room(top, 1)), Err(Errno::FBig));
    assert_eq!(rig.call(room(u64::MAX, u64::MAX)), Err(Errno::FBig));
    assert_eq!(rig.call(room(0, 0)), Err(Errno::Inval));
}

#[test]
fn a_file_without_a_name_lives_until_the_last_close() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    rig.write(handle, 0, b"first");
    rig.upload_all();
    rig.call(Call::Unlink {
        parent: ROOT,
        name: b"a".to_vec(),
    })
    .unwrap();
    assert!(rig.files.tree().any(&unnamed_prefix(1)).unwrap());
    assert_eq!(rig.attributes(file).links, 0);
    rig.write(handle, 5, b" second");
    rig.upload_all();
    assert_eq!(&rig.read(handle, 0, 99)[..], b"first second");
    let link = Call::Link {
        inode: file,
        parent: ROOT,
        name: b"b".to_vec(),
    };
    assert_eq!(rig.call(link), Err(Errno::NoEnt));
    rig.call(Call::Release { handle }).unwrap();
    assert!(!rig.files.tree().any(&unnamed_prefix(1)).unwrap());
    assert_eq!(rig.files.tree().keys(&[]).unwrap().len(), 1);
    // The kernel still knows the inode, so that a path in `/proc` leads to the content.
    assert_eq!(rig.attributes(file).links, 0);
    let again = rig.open(file, BOTH);
    assert_eq!(&rig.read(again, 0, 99)[..], b"first second");
    rig.call(Call::Release { handle: again }).unwrap();
    rig.call(Call::Forget {
        inode: file,
        lookups: 1,
    })
    .unwrap();
    assert_eq!(
        rig.call(Call::GetAttributes { inode: file }),
        Err(Errno::Stale)
    );
}

#[test]
fn a_mount_ends_the_nameless_files_of_the_last() {
    let mut rig = Rig::new();
    let (_, handle) = rig.file(ROOT, "a");
    rig.write(handle, 0, b"unsent");
    rig.call(Call::Unlink {
        parent: ROOT,
        name: b"a".to_vec(),
    })
    .unwrap();
    rig.remount();
    assert_eq!(rig.files.tree().keys(&[]).unwrap().len(), 1);
    assert_eq!(rig.files.unsent().octets(), 0);
    assert_eq!(rig.files.dirty().count(), 0);
}

#[test]
fn set_id_bits_end_with_owner_and_content() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    let mode = |mode| Changes {
        mode: Some(mode),
        ..Changes::default()
    };
    let owner = Changes {
        uid: Some(5),
        ..Changes::default()
    };
    assert_eq!(set(&mut rig, file, mode(0o6755)), Ok(0o6755));
    assert_eq!(set(&mut rig, file, owner), Ok(0o755));
    // Set-group-id without execution by the group is no privilege.
    assert_eq!(set(&mut rig, file, mode(0o6745)), Ok(0o6745));
    assert_eq!(set(&mut rig, file, owner), Ok(0o2745));
    assert_eq!(set(&mut rig, file, mode(0o6755)), Ok(0o6755));
    let name = b"security.capability".to_vec();
    let call = Call::SetXattr {
        inode: file,
        name: name.clone(),
        value: vec![1],
        mode: XattrMode::Any,
    };
    rig.call(call).unwrap();
    rig.write(handle, 0, b"x");
    assert_eq!(rig.attributes(file).mode, 0o6755);
    let data = vec![1].into();
    rig.call(Call::Write {
        handle,
        offset: 0,
        data,
        kill_set_id: true,
    })
    .unwrap();
    assert_eq!(rig.attributes(file).mode, 0o755);
    assert_eq!(
        rig.call(Call::GetXattr { inode: file, name }),
        Err(Errno::NoData)
    );
    let folder = rig.folder(ROOT, "f");
    assert_eq!(set(&mut rig, folder, mode(0o2755)), Ok(0o2755));
    assert_eq!(
        set(
            &mut rig,
            folder,
            Changes {
                gid: Some(7),
                ..owner
            }
        ),
        Ok(0o2755)
    );
    rig.caller = USER;
    let below = rig.folder(folder, "below");
    let facts = rig.attributes(below);
    assert_eq!((facts.mode, facts.gid, facts.uid), (0o2755, 7, 1000));
}

#[test]
fn holes_and_data_are_found() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    rig.write(handle, 100_000, &[1; 1000]);
    for uploaded in [false, true] {
        if uploaded {
            rig.upload_all();
        }
        let mut seek = |offset, seek| {
            rig.call(Call::Seek {
                handle,
                offset,
                seek,
            })
        };
        assert_eq!(seek(0, Seek::Data), Ok(Reply::Offset(100_000)));
        assert_eq!(seek(0, Seek::Hole), Ok(Reply::Offset(0)));
        assert_eq!(seek(100_500, Seek::Data), Ok(Reply::Offset(100_500)));
        assert_eq!(seek(100_500, Seek::Hole), Ok(Reply::Offset(101_000)));
        assert_eq!(seek(101_000, Seek::Data), Err(Errno::NxIo));
        assert_eq!(seek(101_000, Seek::Hole), Err(Errno::NxIo));
    }
    let mode = Allocate::PunchHole;
    let call = Call::Allocate {
        handle,
        offset: 100_000,
        length: 5000,
        mode,
    };
    rig.call(call).unwrap();
    let seek = Call::Seek {
        handle,
        offset: 0,
        seek: Seek::Data,
    };
    assert_eq!(rig.call(seek), Err(Errno::NxIo));
    assert_eq!(
        (rig.attributes(file).size, rig.attributes(file).allocated),
        (101_000, 0)
    );
    assert!(
        !rig.files
            .tree()
            .contains(&extents_key(file, 100_000))
            .unwrap()
    );
}

#[test]
fn a_listing_survives_removals() {
    let mut rig = Rig::new();
    let folder = rig.folder(ROOT, "f");
    for at in 0..1000 {
        let (_, handle) = rig.file(folder, &format!("{at:04}"));
        rig.call(Call::Release { handle }).unwrap();
    }
    let handle = open_folder(&mut rig, folder);
    let mut seen = Vec::new();
    let mut cursor = 0;
    loop {
        let call = Call::ReadFolder {
            handle,
            cursor,
            with_attributes: true,
        };
        let Reply::Entries(entries) = rig.call(call).unwrap() else {
            panic!("no entries");
        };
        // The host takes seven of each reply, and the program removes these before the next.
        let Some(last) = entries.iter().take(7).next_back() else {
            break;
        };
        cursor = last.cursor;
        for entry in entries.into_iter().take(7).filter(|entry| entry.cursor > 2) {
            rig.call(Call::Unlink {
                parent: folder,
                name: entry.name.clone(),
            })
            .unwrap();
            seen.push(entry.name);
        }
    }
    assert_eq!(seen.len(), 1000);
    assert!(seen.is_sorted());
    assert!(
        rig.call(Call::RemoveFolder {
            parent: ROOT,
            name: b"f".to_vec()
        })
        .is_ok()
    );
    assert!(list(&mut rig, handle, false).is_empty());
}

#[test]
fn a_listing_goes_back_to_a_cursor() {
    let mut rig = Rig::new();
    for name in ["a", "b", "d"] {
        rig.file(ROOT, name);
    }
    let handle = open_folder(&mut rig, ROOT);
    let all = list(&mut rig, handle, false);
    assert_eq!(all.len(), 5);
    rig.file(ROOT, "c");
    rig.call(Call::Unlink {
        parent: ROOT,
        name: b"b".to_vec(),
    })
    .unwrap();
    let call = |cursor| Call::ReadFolder {
        handle,
        cursor,
        with_attributes: false,
    };
    let Reply::Entries(rest) = rig.call(call(all[2].cursor)).unwrap() else {
        panic!("no entries");
    };
    assert_eq!((rest.len(), &rest[0]), (1, &all[4]));
    let names: Vec<_> = list(&mut rig, handle, false)
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, [&b"."[..], b"..", b"a", b"c", b"d"]);
}

#[test]
fn a_large_folder_is_listed_once_through() {
    let mut rig = Rig::new();
    for at in 0..100_000 {
        let call = Call::MakeNode {
            parent: ROOT,
            name: at.to_string().into_bytes(),
            kind: FileKind::Fifo,
            mode: 0,
            device: 0,
        };
        rig.tick();
        let now = rig.now;
        rig.files.call(rig.caller, call, now);
    }
    let handle = open_folder(&mut rig, ROOT);
    assert_eq!(list(&mut rig, handle, true).len(), 100_002);
}

#[test]
fn attributes_have_namespaces() {
    let mut rig = Rig::new();
    let (file, _) = rig.file(ROOT, "a");
    let call = Call::Symlink {
        parent: ROOT,
        name: b"l".to_vec(),
        target: b"a".to_vec(),
    };
    let link = rig.call(call).map(entry).unwrap();
    let mut set = |inode, name: &str, octets| {
        let (name, value) = (name.into(), vec![0; octets]);
        rig.call(Call::SetXattr {
            inode,
            name,
            value,
            mode: XattrMode::Any,
        })
        .map(|_| ())
    };
    assert_eq!(set(file, "user.a", 65_536), Ok(()));
    assert_eq!(set(file, "user.a", 65_537), Err(Errno::TooBig));
    assert_eq!(set(file, "user.", 1), Err(Errno::Inval));
    assert_eq!(
        set(file, "system.posix_acl_access", 1),
        Err(Errno::OpNotSupp)
    );
    assert_eq!(set(link, "user.a", 1), Err(Errno::Perm));
    assert_eq!(set(link, "trusted.a", 1), Ok(()));
    assert_eq!(set(file, "trusted.a", 1), Ok(()));
    let full = (0..400).map(|at| set(file, &format!("user.{at:0240}"), 0));
    assert!(full.collect::<Vec<_>>().contains(&Err(Errno::NoSpc)));
    let names = |rig: &mut Rig| match rig.call(Call::ListXattrs { inode: link }) {
        Ok(Reply::Names(names)) => names,
        other => panic!("{other:?}"),
    };
    assert_eq!(names(&mut rig), [b"trusted.a"]);
    rig.caller = USER;
    assert!(names(&mut rig).is_empty());
}

#[test]
fn syncs_name_their_inode() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    let sync = |inode, reply| Outcome::Sync { inode, reply };
    let outcome = rig.outcome(Call::Fsync {
        handle,
        data_only: true,
    });
    assert_eq!(outcome, sync(Some(file), Reply::Done));
    let flags = OpenFlags { sync: true, ..BOTH };
    let handle = rig.open(file, flags);
    let data = vec![1].into();
    let outcome = rig.outcome(Call::Write {
        handle,
        offset: 0,
        data,
        kill_set_id: false,
    });
    assert_eq!(outcome, sync(Some(file), Reply::Written(1)));
    let handle = open_folder(&mut rig, ROOT);
    let outcome = rig.outcome(Call::FsyncFolder { handle });
    assert_eq!(outcome, sync(None, Reply::Done));
}

#[test]
fn no_home_is_no_room() {
    let mut rig = Rig::new();
    *rig.files.numbers() = Numbers::new(1, 7, 8);
    let (_, _) = rig.file(ROOT, "a");
    let call = Call::MakeFolder {
        parent: ROOT,
        name: b"b".to_vec(),
        mode: 0,
    };
    assert_eq!(rig.call(call.clone()), Err(Errno::NoSpc));
    rig.file(ROOT, "c");
    rig.files.numbers().extend(9);
    assert!(rig.call(call).is_ok());
}

#[test]
fn wrong_rows_are_errors_of_their_files() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    let (other, _) = rig.file(ROOT, "b");
    rig.write(handle, 0, &[1; 100]);
    rig.upload_all();
    rig.call(Call::Release { handle }).unwrap();
    let tree = rig.files.tree_mut();
    tree.put(&inode_key(other), vec![1, 9]).unwrap();
    let run = crate::rows::Run {
        length: 50,
        skip: 0,
        extent: None,
    };
    tree.put(&extents_key(file, 50), encode_extents(&[run]))
        .unwrap();
    let gone = Key::Entry {
        home: 0,
        name: b"gone",
    }
    .encode();
    tree.put(&gone, [&[77; 8][..], &[1]].concat()).unwrap();
    let wrong = Key::Entry {
        home: 0,
        name: b"wrong",
    }
    .encode();
    tree.put(&wrong, vec![0; 3]).unwrap();
    for name in [&b"a"[..], b"b", b"gone", b"wrong"] {
        assert_eq!(lookup(&mut rig, ROOT, name), Err(Errno::Io));
    }
    let folder = open_folder(&mut rig, ROOT);
    assert_eq!(list(&mut rig, folder, true).len(), 2);
    assert_eq!(list(&mut rig, folder, false).len(), 5);
    let damage = rig.files.take_damage();
    let found: Vec<_> = damage.iter().map(|damage| damage.what.as_str()).collect();
    assert_eq!(
        found,
        [
            "expected extents in order; found the offset 50 before the end 100",
            "expected a type from 1 to 7; found 9",
            "expected the inode of a name; found no row",
            "expected an inode; found 3 octets",
        ]
    );
    assert!(
        rig.call(Call::Unlink {
            parent: ROOT,
            name: b"gone".to_vec()
        })
        .is_ok()
    );
}

#[test]
fn a_circle_of_folders_ends() {
    let mut rig = Rig::new();
    let one = rig.folder(ROOT, "one");
    let two = rig.folder(one, "two");
    change_row(&mut rig, one, |row| row.parent = two.0);
    rig.folder(ROOT, "three");
    let call = Call::Rename {
        parent: ROOT,
        name: b"three".to_vec(),
        new_parent: two,
        new_name: b"x".to_vec(),
        mode: RenameMode::Replace,
    };
    assert_eq!(rig.call(call), Err(Errno::Io));
}

#[test]
fn times_of_access_wait_for_other_changes() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    rig.write(handle, 0, b"x");
    rig.files.tree_mut().take_changes();
    rig.read(handle, 0, 1);
    let read_at = rig.now;
    assert!(rig.files.tree_mut().take_changes().is_empty());
    rig.read(handle, 0, 1);
    assert_eq!(rig.attributes(file).atime, read_at);
    rig.now.seconds += 24 * 60 * 60;
    rig.read(handle, 0, 1);
    assert_eq!(rig.attributes(file).atime, rig.now.before());
    rig.files.settle_atimes().unwrap();
    let changes = rig.files.tree_mut().take_changes();
    assert_eq!(changes.len(), 1);
}

trait Before {
    fn before(self) -> Self;
}

impl Before for FileTime {
    /// The time of the call before.
    fn before(mut self) -> Self {
        self.nanoseconds -= 1;
        self
    }
}

#[test]
fn truncation_at_open_takes_rights_of_others_only() {
    let mut rig = Rig::new();
    let (file, _) = rig.file(ROOT, "a");
    let flags = OpenFlags {
        truncate: true,
        ..BOTH
    };
    for (caller, mode) in [(Caller { uid: 0, gid: 0 }, 0o6755), (USER, 0o755)] {
        let changes = Changes {
            mode: Some(0o6755),
            size: Some(9),
            ..Changes::default()
        };
        set(&mut rig, file, changes).unwrap();
        rig.caller = caller;
        rig.open(file, flags);
        let facts = rig.attributes(file);
        assert_eq!((facts.mode, facts.size), (mode, 0));
    }
}
