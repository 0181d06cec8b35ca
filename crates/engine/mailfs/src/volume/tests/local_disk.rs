//! A local disk that fills up: changes are refused, nothing that was accepted is lost, and the mount goes on with new room.

use super::*;

const ROOT: Inode = Inode::ROOT;

fn fill(world: &mut World) -> Handle {
    let (_, handle) = world.create(ROOT, "a");
    world.write(handle, 0, b"before");
    world.sync().unwrap();
    let used = world.disk.used();
    // A longer write than the zeros behind the journal's records.
    world.disk.set_capacity(Some(used + 100));
    handle
}

fn write(handle: Handle, offset: u64, data: &[u8]) -> Call {
    Call::Write {
        handle,
        offset,
        data: Bytes::copy_from_slice(data),
        kill_set_id: false,
    }
}

fn notices(world: &World) -> Vec<&Notice> {
    let of_disk = |notice: &&Notice| matches!(notice, Notice::DiskFull | Notice::DiskHasRoom);
    world.notices.iter().filter(of_disk).collect()
}

#[test]
fn a_mount_goes_on_when_a_full_disk_has_room_again() {
    for folder_is_kept in [true, false] {
        let mut world = World::new(1);
        let handle = fill(&mut world);
        let long = noise(1, 900_000);
        assert_eq!(world.call(write(handle, 6, &long)), Err(Errno::NoSpc));
        let create = Call::MakeFolder {
            parent: ROOT,
            name: b"folder".to_vec(),
            mode: 0o755,
        };
        assert_eq!(world.call(create.clone()), Err(Errno::NoSpc));
        for _ in 0..5 {
            world.pass(Duration::from_secs(10));
        }
        assert_eq!(world.call(create.clone()), Err(Errno::NoSpc));
        assert!(world.volume().read_only().is_none());
        assert!(world.volume().status().read_only.is_some());
        // Reading goes on.
        assert!(world.get(ROOT, "a").unwrap().starts_with(b"before"));
        world.disk.set_capacity(None);
        world.pass(Duration::from_secs(2));
        assert_eq!(notices(&world), [&Notice::DiskFull, &Notice::DiskHasRoom]);
        assert_eq!(world.volume().status().read_only, None);
        assert!(world.call(create).is_ok());
        world.write(handle, 6, &long);
        assert_eq!(world.fsync(handle), Ok(Reply::Done));
        world.sync().unwrap();
        if folder_is_kept {
            world.kill();
        } else {
            world.lose_folder();
        }
        world.mount().unwrap();
        let content = [b"before".as_slice(), &long].concat();
        assert!(world.get(ROOT, "a").unwrap() == content);
        assert!(world.lookup(ROOT, "folder").is_ok());
    }
}

#[test]
fn a_kill_on_a_full_disk_loses_nothing_that_was_accepted() {
    let mut world = World::new(1);
    let handle = fill(&mut world);
    assert_eq!(
        world.call(write(handle, 6, &noise(1, 900_000))),
        Err(Errno::NoSpc)
    );
    world.kill();
    world.disk.set_capacity(None);
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "a").unwrap(), b"before");
    world.put(ROOT, "b", b"after");
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "b").unwrap(), b"after");
}

#[test]
fn mails_under_way_arrive_while_the_disk_is_full() {
    let mut world = World::new(1);
    let (_, handle) = world.create(ROOT, "a");
    let data = noise(3, 3 << 20);
    for (number, part) in data.chunks(1 << 20).enumerate() {
        world.write(handle, (number << 20) as u64, part);
    }
    let call = Call::Fsync {
        handle,
        data_only: false,
    };
    let id = world.begin(call);
    let held = world.hold_pack();
    let used = world.disk.used();
    world.disk.set_capacity(Some(used));
    world.let_go(held);
    world.settle();
    world.pass(Duration::from_secs(5));
    assert!(world.volume().read_only().is_none());
    world.disk.set_capacity(None);
    for _ in 0..5 {
        world.pass(Duration::from_secs(5));
    }
    assert_eq!(world.replies.remove(&id), Some(Ok(Reply::Done)));
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "a").unwrap() == data);
}

/// A world whose disk is full behind a write of so many octets, and a further file with a short content.
fn filled_by(octets: usize) -> (World, Handle, Result<Reply, Errno>) {
    let mut world = World::new(1);
    let handle = fill(&mut world);
    let (_, short) = world.create(ROOT, "short");
    world.write(short, 0, b"content");
    let written = world.call(write(handle, 6, &noise(1, octets)));
    (world, short, written)
}

/// The longest write that the journal has room for: the record of a commit has no room behind.
fn longest_write() -> usize {
    let (mut fits, mut exceeds) = (0, 900_000);
    while exceeds - fits > 1 {
        let middle = usize::midpoint(fits, exceeds);
        if filled_by(middle).2.is_ok() {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    fits
}

/// A write has filled the disk but for the record of its commit, and an fsync waits.
fn waiting_fsync(octets: usize) -> (World, CallId) {
    let (mut world, handle, written) = filled_by(octets);
    written.unwrap();
    let id = world.begin(Call::Fsync {
        handle,
        data_only: false,
    });
    world.settle();
    (world, id)
}

/// The record of a commit once turned the mount read-only for good.
#[test]
fn a_commit_waits_for_room_on_the_disk() {
    let octets = longest_write();
    for is_killed in [false, true] {
        let (mut world, id) = waiting_fsync(octets);
        assert!(world.volume().journal.is_full());
        assert_eq!(world.volume().read_only(), None);
        assert!(!world.replies.contains_key(&id));
        assert!(world.volume().chain.is_held());
        assert!(world.notices.contains(&Notice::DiskFull));
        let content = [b"before".as_slice(), &noise(1, octets)].concat();
        assert!(world.get(ROOT, "a").unwrap() == content);
        if is_killed {
            world.kill();
            world.disk.set_capacity(None);
            world.mount().unwrap();
            world.sync().unwrap();
        } else {
            world.disk.set_capacity(None);
            world.pass(Duration::from_secs(2));
            assert_eq!(world.replies.remove(&id), Some(Ok(Reply::Done)));
        }
        world.put(ROOT, "b", b"after");
        world.sync().unwrap();
        world.lose_folder();
        world.mount().unwrap();
        assert!(world.get(ROOT, "a").unwrap() == content);
        assert_eq!(world.get(ROOT, "b").unwrap(), b"after");
        assert_eq!(world.get(ROOT, "short").unwrap(), b"content");
    }
}

/// A mount on a full disk, read-only for another reason, once looked for room no longer.
#[test]
fn a_read_only_mount_looks_for_room_too() {
    let octets = longest_write();
    for may_send in [true, false] {
        let (mut world, id) = waiting_fsync(octets);
        assert!(world.volume().chain.is_held());
        let reason = match may_send {
            true => Notice::Rows(Errno::Io),
            false => Notice::Revoked(1),
        };
        world.volume().fail(reason);
        // The store of commits may have given room back.
        let used = world.disk.used();
        world.disk.set_capacity(Some(used));
        world.settle();
        assert_eq!(world.replies.remove(&id), Some(Err(Errno::Io)));
        world.pass(Duration::from_secs(5));
        assert!(world.volume().journal.is_full());
        let before = world.appended;
        world.disk.set_capacity(None);
        for _ in 0..5 {
            world.pass(Duration::from_secs(2));
        }
        assert!(!world.volume().journal.is_full());
        assert_eq!(notices(&world), [&Notice::DiskFull, &Notice::DiskHasRoom]);
        assert_eq!(world.volume().chain.is_held(), !may_send);
        assert_eq!(world.appended > before, may_send);
        let create = Call::MakeFolder {
            parent: ROOT,
            name: b"folder".to_vec(),
            mode: 0o755,
        };
        assert_eq!(world.call(create), Err(Errno::RoFs));
        if may_send {
            world.lose_folder();
        } else {
            world.kill();
        }
        world.mount().unwrap();
        let content = [b"before".as_slice(), &noise(1, octets)].concat();
        assert!(world.get(ROOT, "a").unwrap() == content);
        assert_eq!(world.get(ROOT, "short").unwrap(), b"content");
    }
}

/// A disk that fails during a look for room is left alone from then on.
#[test]
fn a_read_only_mount_gives_a_failed_disk_up() {
    let (mut world, _) = waiting_fsync(longest_write());
    world.volume().fail(Notice::Rows(Errno::Io));
    assert!(world.volume().local_room_at().is_some());
    world.disk.set_capacity(None);
    world.disk.fail_at(world.disk.steps() + 1);
    world.pass(Duration::from_secs(2));
    assert!(world.volume().journal.has_failed());
    assert_eq!(world.volume().local_room_at(), None);
}

/// Numbers once were given although the journal had no room for the note about them, or the mount turned read-only.
#[test]
fn no_numbers_are_given_without_room_for_the_note() {
    let (mut world, handle, written) = filled_by(longest_write());
    written.unwrap();
    let next = world.volume().sequence.0;
    world.volume().sequence.1 = next;
    let call = Call::Fsync {
        handle,
        data_only: false,
    };
    let id = world.begin(call);
    world.settle();
    assert_eq!(world.volume().sequence, (next, next));
    assert_eq!(world.volume().read_only(), None);
    world.disk.set_capacity(None);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.replies.remove(&id), Some(Ok(Reply::Done)));
}

/// The disk fails to sync what a commit begins: an fsync once was told, at its second try, that all was on the servers, and the
/// content could not be read any more.
#[test]
fn a_failed_sync_ends_every_fsync_and_no_read() {
    let mut world = World::new(1);
    let (_, handle) = world.create(ROOT, "a");
    world.write(handle, 0, b"content");
    world.disk.fail_syncs(true);
    assert_eq!(world.fsync(handle), Err(Errno::Io));
    world.disk.fail_syncs(false);
    assert_eq!(world.fsync(handle), Err(Errno::Io));
    assert_eq!(world.sync(), Err(Errno::Io));
    assert_eq!(world.get(ROOT, "a").unwrap(), b"content");
    assert_eq!(world.call(write(handle, 7, b"more")), Err(Errno::RoFs));
    assert_eq!(world.finish(), Err(Errno::Io));
    world.kill();
    world.mount().unwrap();
    assert_eq!(world.sync(), Ok(Reply::Done));
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "a").unwrap(), b"content");
}
