//! Accounts that cannot be reached, fill up, lose or alter mails: the documented outcome, never a hang.

use super::*;

const ROOT: Inode = Inode::ROOT;

/// A group of two accounts besides the lead's.
fn replicated() -> World {
    let mut world = World::new(3);
    world.terms.groups = vec![GroupTerms {
        group: 1,
        accounts: vec![2, 3],
    }];
    world.kill();
    world.mount().unwrap();
    world
}

fn data_mails(world: &mut World, account: u16) -> usize {
    let account = world.accounts.get_mut(&account).unwrap();
    account
        .mailbox("data-0001")
        .map_or(0, |mailbox| mailbox.mails.len())
}

fn cut_off(world: &mut World, cut: &'static [u16]) {
    world.fortune = Box::new(move |account, _| {
        if cut.contains(&account.0) {
            Luck::Lost
        } else {
            Luck::Good
        }
    });
}

#[test]
fn every_member_of_a_group_gets_every_pack() {
    let mut world = replicated();
    let data = noise(1, 3 << 20);
    world.put(ROOT, "a", &data);
    world.sync().unwrap();
    assert_eq!(
        (data_mails(&mut world, 2), data_mails(&mut world, 3)),
        (3, 3)
    );
    assert_eq!(world.volume().status().copies_missing, 0);
}

#[test]
fn a_member_that_comes_back_is_given_what_it_missed() {
    let mut world = replicated();
    cut_off(&mut world, &[3]);
    let data = noise(2, 3 << 20);
    world.put(ROOT, "a", &data);
    assert_eq!(world.sync(), Ok(Reply::Done));
    let packs = data_mails(&mut world, 2);
    assert!(packs >= 2);
    assert_eq!(data_mails(&mut world, 3), 0);
    assert_eq!(world.volume().status().copies_missing, packs);
    // Neither a kill nor time makes the mount forget.
    world.kill();
    world.mount().unwrap();
    assert_eq!(world.volume().status().copies_missing, packs);
    world.fortune = Box::new(|_, _| Luck::Good);
    for _ in 0..10 {
        world.pass(Duration::from_secs(60));
    }
    assert_eq!(data_mails(&mut world, 3), packs);
    assert_eq!(world.volume().status().copies_missing, 0);
    world.sync().unwrap();
    world.lose_folder();
    cut_off(&mut world, &[2]);
    world.mount().unwrap();
    assert!(world.get(ROOT, "a").unwrap() == data);
}

#[test]
fn packs_go_to_another_group_when_theirs_is_away() {
    let mut world = World::new(3);
    cut_off(&mut world, &[2, 3]);
    let data = noise(3, 3 << 20);
    world.put(ROOT, "a", &data);
    assert_eq!(world.sync(), Ok(Reply::Done));
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "a").unwrap() == data);
}

#[test]
fn without_accounts_calls_fail_in_time_and_nothing_is_lost() {
    let mut world = World::new(2);
    world.put(ROOT, "before", b"before");
    world.sync().unwrap();
    world.kill();
    world.mount().unwrap();
    cut_off(&mut world, &[1, 2]);
    let (_, handle) = world.create(ROOT, "a");
    world.write(handle, 0, b"written");
    let begun = world.now;
    assert_eq!(world.fsync(handle), Err(Errno::Io));
    assert!(world.now - begun <= 61_000, "{}", world.now - begun);
    assert_eq!(world.get(ROOT, "before"), Err(Errno::Io));
    world.fortune = Box::new(|_, _| Luck::Good);
    assert_eq!(world.fsync(handle), Ok(Reply::Done));
    assert_eq!(world.get(ROOT, "before").unwrap(), b"before");
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "a").unwrap(), b"written");
}

#[test]
fn writers_wait_when_too_much_is_unsent() {
    let mut world = World::new(1);
    world.terms.unsent_max = 4 << 20;
    world.kill();
    world.mount().unwrap();
    cut_off(&mut world, &[1]);
    let (_, handle) = world.create(ROOT, "a");
    for number in 0..4 {
        world.write(handle, number << 20, &noise(number, 1 << 20));
    }
    let data = Bytes::from(noise(4, 1 << 20));
    let write = Call::Write {
        handle,
        offset: 4 << 20,
        data,
        kill_set_id: false,
    };
    let waiting = world.begin(write);
    world.settle();
    assert!(!world.replies.contains_key(&waiting));
    world.fortune = Box::new(|_, _| Luck::Good);
    world.pass(Duration::from_secs(6));
    world.pass(Duration::from_secs(6));
    assert_eq!(
        world.replies.remove(&waiting),
        Some(Ok(Reply::Written(1 << 20)))
    );
    world.sync().unwrap();
    assert_eq!(world.get(ROOT, "a").unwrap().len(), 5 << 20);
}

/// An account alters every mail of a kind in turn, octet by octet: a replica answers, or EIO, and the mail is named.
#[test]
fn altered_packs_are_noticed_and_replaced() {
    let mut world = replicated();
    let data = noise(6, 100_000);
    world.put(ROOT, "a", &data);
    world.sync().unwrap();
    for account in [2, 3] {
        let mailbox = world
            .accounts
            .get_mut(&account)
            .unwrap()
            .mailbox("data-0001")
            .unwrap();
        for mail in mailbox.mails.values_mut() {
            let mut octets = mail.to_vec();
            let middle = octets.len() / 2;
            octets[middle] ^= 1;
            *mail = octets.into();
        }
        world.kill();
        world.cache = MemoryDisk::default();
        world.mount().unwrap();
        let read = world.get(ROOT, "a");
        match account {
            2 => assert!(read.unwrap() == data),
            _ => assert_eq!(read, Err(Errno::Io)),
        }
    }
    let is_named = |notice: &Notice| matches!(notice, Notice::Forged { .. });
    assert!(world.notices.iter().any(is_named));
    assert!(
        world
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::Unreadable { .. }))
    );
}

#[test]
fn a_log_that_was_set_back_is_noticed() {
    let mut world = World::new(1);
    world.put(ROOT, "a", b"one");
    world.sync().unwrap();
    let before = world.accounts.clone();
    world.put(ROOT, "a2", b"two");
    world.sync().unwrap();
    world.kill();
    world.accounts = before;
    let error = world.mount().unwrap_err();
    assert!(matches!(error, OpenError::RolledBack { .. }), "{error}");
}

/// Writes are refused before the account would refuse a mail, and what is accepted fits; room that is made can be used.
#[test]
fn a_full_account_refuses_writes_before_anything_is_lost() {
    let mut world = World::new(1);
    world.accounts.get_mut(&1).unwrap().quota = Some(40 << 20);
    world.kill();
    world.mount().unwrap();
    let (_, handle) = world.create(ROOT, "a");
    let mut written = Vec::new();
    let refused = loop {
        let data = noise(written.len() as u64, 1 << 20);
        let call = Call::Write {
            handle,
            offset: written.len() as u64,
            data: Bytes::copy_from_slice(&data),
            kill_set_id: false,
        };
        match world.call(call) {
            Ok(_) => written.extend_from_slice(&data),
            Err(errno) => break errno,
        }
        assert!(written.len() < 40 << 20);
    };
    assert_eq!(refused, Errno::NoSpc);
    assert!(written.len() > 10 << 20, "{}", written.len());
    assert_eq!(world.fsync(handle), Ok(Reply::Done));
    assert_eq!(world.notices, []);
    // What makes room is never refused.
    let changes = vere_ports::files::Changes {
        mode: Some(0o600),
        ..Default::default()
    };
    let inode = world.lookup(ROOT, "a").unwrap().inode;
    world.call(Call::SetAttributes { inode, changes }).unwrap();
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "a").unwrap() == written);
    world.accounts.get_mut(&1).unwrap().quota = None;
    world.pass(Duration::from_secs(601));
    world.put(ROOT, "b", b"more");
}
