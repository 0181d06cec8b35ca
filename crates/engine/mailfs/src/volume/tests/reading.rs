//! Reads from accounts: whole mails for large parts of a file, parts of mails for small ones, and damage in either.

use super::*;

const ROOT: Inode = Inode::ROOT;

/// A world with a file of 20 MiB, mounted by a machine that has nothing of it; and the file's octets.
fn stored(accounts: u16, copies: usize) -> (World, Vec<u8>) {
    let mut world = World::new(accounts);
    let data = noise(2, 20 << 20);
    if copies > 1 {
        world.terms.groups = vec![GroupTerms {
            group: 1,
            accounts: (1..=accounts).collect(),
        }];
        world.terms.sync_copies = copies;
        world.kill();
        world.mount().unwrap();
    }
    world.put(ROOT, "long", &data);
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    (world, data)
}

fn packs(world: &mut World) -> usize {
    let accounts = world.accounts.values_mut();
    let mails =
        accounts.filter_map(|account| account.mailbox("data-0001").map(|of| of.mails.len()));
    mails.sum()
}

#[test]
fn a_file_read_in_order_costs_a_request_for_each_mail() {
    let (mut world, data) = stored(4, 1);
    let packs = packs(&mut world);
    let before = world.count("read");
    assert!(world.get(ROOT, "long").unwrap() == data);
    let reads = world.count("read") - before;
    assert!(reads <= packs + 1, "{reads} requests for {packs} mails");
    assert_eq!(world.notices, []);
}

#[test]
fn a_read_in_the_midst_asks_for_its_chunk_alone() {
    let (mut world, data) = stored(1, 1);
    let inode = world.lookup(ROOT, "long").unwrap().inode;
    let handle = world.open(inode);
    let wanted = std::rc::Rc::new(std::cell::Cell::new(0));
    let seen = std::rc::Rc::clone(&wanted);
    world.fortune = Box::new(move |_, request| {
        if let Request::Read { parts, .. } = request {
            assert!(!parts.is_empty());
            seen.set(seen.get() + 1);
        }
        Luck::Good
    });
    let (offset, size) = (7 << 20, 4_096);
    let found = world.call(Call::Read {
        handle,
        offset,
        size,
    });
    let expected = data[offset as usize..][..size as usize].to_vec();
    assert_eq!(found, Ok(Reply::Octets(expected.into())));
    assert_eq!(wanted.get(), 1);
}

#[test]
fn a_file_read_in_order_from_its_midst_on_is_read_ahead() {
    let (mut world, data) = stored(1, 1);
    let inode = world.lookup(ROOT, "long").unwrap().inode;
    let handle = world.open(inode);
    let before = world.count("read");
    for number in 0..40 {
        let (offset, size) = ((7 << 20) + number * (64 << 10), 64 << 10);
        let found = world.call(Call::Read {
            handle,
            offset,
            size,
        });
        let expected = data[offset as usize..][..size as usize].to_vec();
        assert_eq!(found, Ok(Reply::Octets(expected.into())));
    }
    // The first chunk, the rest of its mail, and mails from there on; each read has found its octets there.
    let reads = world.count("read") - before;
    assert!(reads <= 14, "{reads}");
}

/// The first octets of a mail are a header, the last ones an index that a read needs not.
fn damage(account: &mut MemoryAccount) {
    let mailbox = account.mailbox("data-0001").unwrap();
    for mail in mailbox.mails.values_mut() {
        let mut octets = mail.to_vec();
        let middle = octets.len() / 2;
        octets[middle] ^= 0x40;
        *mail = octets.into();
    }
}

#[test]
fn a_damaged_mail_is_read_from_its_copy() {
    let (mut world, data) = stored(2, 2);
    damage(world.accounts.get_mut(&1).unwrap());
    assert!(world.get(ROOT, "long").unwrap() == data);
    let is_forged = |notice: &Notice| matches!(notice, Notice::Forged { .. });
    assert!(world.notices.iter().any(is_forged));
}

#[test]
fn a_damaged_mail_without_a_copy_is_an_error_and_never_other_octets() {
    let (mut world, data) = stored(1, 1);
    damage(world.accounts.get_mut(&1).unwrap());
    let inode = world.lookup(ROOT, "long").unwrap().inode;
    let handle = world.open(inode);
    let mut failed = 0;
    for offset in (0..data.len()).step_by(128 << 10) {
        let size = 128 << 10;
        let call = Call::Read {
            handle,
            offset: offset as u64,
            size,
        };
        match world.call(call) {
            Ok(Reply::Octets(octets)) => assert!(octets == data[offset..][..octets.len()]),
            other => {
                assert_eq!(other, Err(Errno::Io));
                failed += 1;
            }
        }
    }
    assert!(failed > 0);
}

#[test]
fn mails_that_are_gone_are_read_from_their_copies() {
    let (mut world, data) = stored(2, 2);
    let account = world.accounts.get_mut(&2).unwrap();
    account.mailbox("data-0001").unwrap().mails.clear();
    assert!(world.get(ROOT, "long").unwrap() == data);
}
