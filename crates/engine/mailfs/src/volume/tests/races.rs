//! Contents that meet on the way: copies that share octets, packs that overtake each other, renames before content, commits
//! with much in them.

use vere_ports::files::{RenameMode, XattrMode};

use super::*;

const ROOT: Inode = Inode::ROOT;

fn copy(world: &mut World, from: Handle, to: Handle, length: u64) {
    let call = Call::CopyRange {
        from,
        from_offset: 0,
        to,
        to_offset: 0,
        length,
    };
    let written = u32::try_from(length).unwrap();
    assert_eq!(world.call(call), Ok(Reply::Written(written)));
}

impl World {
    /// Takes the first pack that is on the way out of the queue.
    pub(super) fn hold_pack(&mut self) -> (RequestId, AccountId, Request) {
        loop {
            self.take_steps();
            let is_pack = |(_, _, request): &(RequestId, AccountId, Request)| matches!(request, Request::Append { mailbox, .. } if mailbox != "log");
            if let Some(place) = self.waiting.iter().position(is_pack) {
                return self.waiting.remove(place).unwrap();
            }
            assert!(self.answer_next(), "no pack");
        }
    }

    /// Carries a held request out.
    pub(super) fn let_go(&mut self, (id, account, request): (RequestId, AccountId, Request)) {
        let answer = self.carry_out(account, &request);
        let now = self.moment();
        self.volume().answered(now, id, answer);
    }
}

/// The copy shares the source's buffer; what is sent for one is there for both.
#[test]
fn an_fsync_of_a_copy_has_the_content() {
    for octets in [2_000, 300_000] {
        let mut world = World::new(2);
        let data = noise(1, octets);
        let (_, from) = world.create(ROOT, "a");
        let (_, to) = world.create(ROOT, "b");
        world.write(from, 0, &data);
        copy(&mut world, from, to, octets as u64);
        world.fsync(from).unwrap();
        world.fsync(to).unwrap();
        world.lose_folder();
        world.mount().unwrap();
        assert!(world.get(ROOT, "b").unwrap() == data, "{octets}");
        assert!(world.get(ROOT, "a").unwrap() == data, "{octets}");
    }
}

/// A pack of older content arrives behind a commit with newer content of the file.
#[test]
fn an_older_snapshot_does_not_take_a_file_back() {
    let mut world = World::new(2);
    world.terms.lead = 1;
    world.terms.groups = vec![
        GroupTerms {
            group: 1,
            accounts: vec![1],
        },
        GroupTerms {
            group: 2,
            accounts: vec![2],
        },
    ];
    world.kill();
    world.mount().unwrap();
    let (_, handle) = world.create(ROOT, "f");
    world.write(handle, 0, &noise(1, 200_000));
    // The first pack's answer stays away.
    let held = world.begin(Call::Fsync {
        handle,
        data_only: false,
    });
    let late = world.hold_pack();
    world.write(handle, 0, &noise(2, 200_000));
    world.fsync(handle).unwrap();
    world.write(handle, 50, b"unsent");
    world.let_go(late);
    world.settle();
    assert_eq!(world.replies.remove(&held), Some(Ok(Reply::Done)));
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "f").unwrap() == noise(2, 200_000));
}

/// A commit that began before a rename must not have the rename without the content.
#[test]
pub(super) fn a_rename_during_an_fsync_waits_for_its_content() {
    let mut world = World::new(2);
    world.put(ROOT, "file", b"old");
    let (_, big) = world.create(ROOT, "big");
    world.write(big, 0, &noise(1, 200_000));
    world.sync().unwrap();
    world.write(big, 0, &noise(2, 200_000));
    let held = world.begin(Call::Fsync {
        handle: big,
        data_only: false,
    });
    let late = world.hold_pack();
    world.put(ROOT, "file.new", b"new content");
    let rename = Call::Rename {
        parent: ROOT,
        name: b"file.new".to_vec(),
        new_parent: ROOT,
        new_name: b"file".to_vec(),
        mode: RenameMode::Replace,
    };
    world.call(rename).unwrap();
    world.let_go(late);
    world.settle();
    assert_eq!(world.replies.remove(&held), Some(Ok(Reply::Done)));
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "file").unwrap(), b"new content");
}

/// A pack with the content before the last write is no reason to let the rename go.
#[test]
fn a_rename_takes_the_last_content_of_its_file() {
    let mut world = World::new(2);
    world.put(ROOT, "file", b"old");
    world.sync().unwrap();
    let (_, handle) = world.create(ROOT, "file.new");
    world.write(handle, 0, &noise(1, 200_000));
    let held = world.begin(Call::Fsync {
        handle,
        data_only: false,
    });
    let late = world.hold_pack();
    world.write(handle, 0, &noise(2, 200_000));
    let rename = Call::Rename {
        parent: ROOT,
        name: b"file.new".to_vec(),
        new_parent: ROOT,
        new_name: b"file".to_vec(),
        mode: RenameMode::Replace,
    };
    world.call(rename).unwrap();
    world.let_go(late);
    world.settle();
    assert_eq!(world.replies.remove(&held), Some(Ok(Reply::Done)));
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "file").unwrap() == noise(2, 200_000));
}

#[test]
fn thousands_of_short_files_fit_their_mails() {
    for octets in [2, 100] {
        let mut world = World::new(1);
        for number in 0..5_000_u32 {
            world.put(ROOT, &format!("{number}"), &noise(number.into(), octets));
        }
        assert_eq!(world.sync(), Ok(Reply::Done));
        assert_eq!(world.notices, []);
        world.lose_folder();
        world.mount().unwrap();
        assert!(world.get(ROOT, "4999").unwrap() == noise(4_999, octets));
    }
}

#[test]
fn long_rows_go_over_several_commits() {
    let mut world = World::new(1);
    for number in 0..60_u64 {
        let (file, handle) = world.create(ROOT, &format!("{number}"));
        world.close(handle);
        let call = Call::SetXattr {
            inode: file.inode,
            name: b"user.long".to_vec(),
            value: noise(number, 60_000),
            mode: XattrMode::Any,
        };
        world.call(call).unwrap();
    }
    assert_eq!(world.sync(), Ok(Reply::Done));
    assert_eq!(world.notices, []);
    world.lose_folder();
    world.mount().unwrap();
    let inode = world.lookup(ROOT, "59").unwrap().inode;
    let name = b"user.long".to_vec();
    let value = world.call(Call::GetXattr { inode, name }).unwrap();
    assert_eq!(value, Reply::Octets(noise(59, 60_000).into()));
}

/// One of two packs fails, and its account works again by the answer to the other one.
#[test]
fn a_pack_is_sent_again_when_its_account_has_recovered_meanwhile() {
    let mut world = World::new(1);
    let mut packs = 0;
    world.fortune = Box::new(move |_, request| {
        let is_pack = matches!(request, Request::Append { mailbox, .. } if mailbox != "log");
        packs += usize::from(is_pack);
        if is_pack && packs == 1 {
            Luck::Lost
        } else {
            Luck::Good
        }
    });
    let (_, handle) = world.create(ROOT, "a");
    let data = noise(1, 3 << 20);
    for number in 0..3_usize {
        world.write(
            handle,
            (number << 20) as u64,
            &data[number << 20..][..1 << 20],
        );
    }
    let begun = world.now;
    world.fsync(handle).unwrap();
    assert!(world.now - begun < 10_000);
}

#[test]
fn a_file_without_a_name_ends_with_the_next_mount() {
    let mut world = World::new(1);
    let (_, handle) = world.create(ROOT, "scratch");
    world.write(handle, 0, &noise(1, 500_000));
    world
        .call(Call::Unlink {
            parent: ROOT,
            name: b"scratch".to_vec(),
        })
        .unwrap();
    world.sync().unwrap();
    world.kill();
    world.mount().unwrap();
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    let inodes = world.inodes();
    assert_eq!(inodes, [ROOT]);
}

/// The journal goes on over many segments, and the writer keeps its number.
#[test]
fn a_writer_keeps_its_number_over_many_octets() {
    let mut world = World::new(1);
    let writer = world.volume().status().writer;
    for number in 0..3 {
        world.put(ROOT, &format!("{number}"), &noise(number, 40 << 20));
        world.sync().unwrap();
    }
    world.kill();
    world.mount().unwrap();
    assert_eq!(world.volume().status().writer, writer);
}
