//! Files on accounts: written, synced, read back on another machine; the mails of each operation.

use vere_ports::files::{Changes, RenameMode};

use super::*;

const ROOT: Inode = Inode::ROOT;

/// Otherwise the engine waits for 64 MiB at the end of a segment.
#[test]
fn a_long_file_is_synced_while_a_program_writes() {
    let mut world = World::new(2);
    let (_, handle) = world.create(ROOT, "long");
    let before = world.count("sync");
    for number in 0..20 {
        world.write(handle, number << 20, &noise(number, 1 << 20));
    }
    // No time has passed.
    assert_eq!(world.count("sync") - before, 2);
}

#[test]
fn a_file_survives_the_loss_of_the_machine_after_fsync() {
    let mut world = World::new(1);
    let (_, handle) = world.create(ROOT, "a");
    world.write(handle, 0, b"hello");
    assert_eq!(world.fsync(handle), Ok(Reply::Done));
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "a").unwrap(), b"hello");
    assert_eq!(world.notices, []);
}

#[test]
fn a_short_fsync_is_a_single_mail() {
    let mut world = World::new(1);
    let (_, handle) = world.create(ROOT, "a");
    let before = world.count("commit");
    world.write(handle, 0, &noise(1, 32 << 10));
    world.appended = 0;
    world.fsync(handle).unwrap();
    assert_eq!(
        (world.count("commit") - before, world.count("pack")),
        (1, 0)
    );
    assert!(
        world.appended < (32 << 10) * 104 / 100,
        "{}",
        world.appended
    );
    assert_eq!((world.count("list"), world.count("read")), (0, 0));
}

#[test]
fn long_files_go_in_packs_over_all_accounts() {
    let mut world = World::new(4);
    let data = noise(2, 20 << 20);
    world.appended = 0;
    world.put(ROOT, "long", &data);
    world.sync().unwrap();
    assert!(
        world.appended < data.len() * 103 / 100,
        "{}",
        world.appended
    );
    for account in world.accounts.values_mut() {
        assert!(account.mailbox("data-0001").unwrap().mails.len() >= 4);
    }
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "long").unwrap() == data);
}

#[test]
fn unsynced_changes_are_sent_after_the_interval() {
    let mut world = World::new(1);
    world.put(ROOT, "a", b"one");
    world.put(ROOT, "b", b"two");
    let before = world.count("commit");
    world.pass(Duration::from_secs(4));
    assert_eq!(world.count("commit"), before);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.count("commit"), before + 1);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.count("commit"), before + 1);
    assert!(world.volume().is_quiet());
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "b").unwrap(), b"two");
}

#[test]
fn the_journal_brings_back_what_no_commit_has() {
    let mut world = World::new(1);
    world.put(ROOT, "a", b"one");
    world.sync().unwrap();
    world.put(ROOT, "b", &noise(3, 300_000));
    let handle = {
        let inode = world.lookup(ROOT, "a").unwrap().inode;
        world.open(inode)
    };
    world.write(handle, 3, b" and more");
    world.kill();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "a").unwrap(), b"one and more");
    assert!(world.get(ROOT, "b").unwrap() == noise(3, 300_000));
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "a").unwrap(), b"one and more");
    assert!(world.get(ROOT, "b").unwrap() == noise(3, 300_000));
}

/// The pattern of editors: the new content must be on the servers no later than the rename.
#[test]
fn a_rename_over_a_file_takes_the_content_along() {
    let mut world = World::new(1);
    world.put(ROOT, "file", b"old");
    world.sync().unwrap();
    world.put(ROOT, "file.new", &noise(4, 200_000));
    let rename = Call::Rename {
        parent: ROOT,
        name: b"file.new".to_vec(),
        new_parent: ROOT,
        new_name: b"file".to_vec(),
        mode: RenameMode::Replace,
    };
    world.call(rename).unwrap();
    let (_, other) = world.create(ROOT, "other");
    world.write(other, 0, b"x");
    world.fsync(other).unwrap();
    world.lose_folder();
    world.mount().unwrap();
    let found = world.get(ROOT, "file").unwrap();
    assert!(found == noise(4, 200_000), "{} octets", found.len());
    assert_eq!(world.get(ROOT, "other").unwrap(), b"x");
}

#[test]
fn an_fsync_does_not_wait_for_a_long_copy() {
    let mut world = World::new(1);
    // The account takes packs, and never answers.
    let (_, copy) = world.create(ROOT, "copy");
    world.write(copy, 0, &noise(5, 1 << 20));
    let (_, small) = world.create(ROOT, "small");
    world.write(small, 0, b"x");
    world.fsync(small).unwrap();
    assert_eq!(world.count("pack"), 0);
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "small").unwrap(), b"x");
    assert_eq!(world.get(ROOT, "copy").unwrap(), b"");
}

/// A call's reply, and the mails that it took.
fn mails(world: &mut World, call: Call) -> (Reply, usize) {
    let before = world.count("commit") + world.count("pack");
    let reply = world.call(call).unwrap();
    let after = world.count("commit") + world.count("pack");
    (reply, after - before)
}

fn strong() -> World {
    let mut world = World::new(1);
    world.terms.strong = true;
    world.kill();
    world.mount().unwrap();
    world
}

/// The thesis's Table 3.1, alone and durable: mails of operations on content.
#[test]
fn mails_per_operation_on_content() {
    let mut world = strong();
    let flags = OpenFlags {
        read: true,
        write: true,
        ..OpenFlags::default()
    };
    let create = Call::Create {
        parent: ROOT,
        name: b"f".to_vec(),
        mode: 0o644,
        flags,
    };
    let (Reply::Created(file, handle), 1) = mails(&mut world, create) else {
        panic!("a new file is one mail");
    };
    let write = Call::Write {
        handle,
        offset: 0,
        data: Bytes::from_static(b"content"),
        kill_set_id: false,
    };
    let read = Call::Read {
        handle,
        offset: 0,
        size: 7,
    };
    let stat = Call::GetAttributes { inode: file.inode };
    for (call, count) in [
        (write, 0),
        (read, 0),
        (stat, 0),
        (Call::Flush { handle }, 1),
        (Call::Release { handle }, 0),
    ] {
        assert_eq!(mails(&mut world, call.clone()).1, count, "{call:?}");
    }
}

/// The thesis's Table 3.1, alone and durable: mails of operations on names and facts.
#[test]
fn mails_per_operation_on_names() {
    let mut world = strong();
    world.put(ROOT, "f", b"content");
    let inode = world.lookup(ROOT, "f").unwrap().inode;
    let change = |changes| Call::SetAttributes { inode, changes };
    let calls = [
        Call::MakeFolder {
            parent: ROOT,
            name: b"d".to_vec(),
            mode: 0o755,
        },
        Call::Rename {
            parent: ROOT,
            name: b"f".to_vec(),
            new_parent: ROOT,
            new_name: b"g".to_vec(),
            mode: RenameMode::NoReplace,
        },
        change(Changes {
            mode: Some(0o600),
            ..Changes::default()
        }),
        change(Changes {
            size: Some(2),
            ..Changes::default()
        }),
        Call::Unlink {
            parent: ROOT,
            name: b"g".to_vec(),
        },
    ];
    for call in calls {
        assert_eq!(mails(&mut world, call.clone()).1, 1, "{call:?}");
    }
}

/// A journal is brought in on the machine that has registered the journal's writer.
#[test]
fn the_machine_of_a_writer_is_told() {
    use crate::volume::Registrant;
    let mut world = World::new(1);
    world.put(Inode::ROOT, "a", b"x");
    world.sync().unwrap();
    let writer = world.volume().writer;
    let of = |world: &mut World, writer| world.volume().registrant(writer).unwrap();
    assert_eq!(of(&mut world, writer), Registrant::ThisMachine);
    assert_eq!(of(&mut world, writer + 1), Registrant::Nobody);
    world.lose_folder();
    world.of.machine.id = [8; 16];
    world.mount().unwrap();
    assert_eq!(of(&mut world, writer), Registrant::Other("test".to_owned()));
}
