//! Accounts that leave a volume while several machines use it: nothing new goes to them, from whichever machine.

use super::rig::Several;
use super::*;
use crate::rows::{AccountRow, Key, PackRow, RowValue};
use crate::volume::{FactsChange, GONE, Membership};

fn member(account: u16) -> AccountTerms {
    AccountTerms {
        account,
        encoding: Encoding::EightBit,
    }
}

/// Two mounts over the accounts 1, 2 and 3; the last two form a group.
fn of_three() -> Several {
    let mut several = Several::new(2);
    several.accounts.insert(3, MemoryAccount::new());
    several.terms.accounts.push(member(3));
    several.terms.groups[1].accounts.push(3);
    for number in 0..2 {
        several.kill(number);
        several.mount(number).unwrap();
    }
    several.settle();
    several
}

/// The first mount lets account 2 go.
fn let_go(several: &mut Several) {
    let now = several.moment();
    let mut groups = several.terms.groups.clone();
    groups[1].accounts.retain(|account| *account != 2);
    let membership = Membership {
        accounts: [1, 3].map(member).to_vec(),
        groups,
    };
    several.volume(0).use_accounts(now, membership);
    let row = AccountRow {
        security: 0,
        encoding: 1,
        state: GONE,
        port: 993,
        mail_octets_max: 1 << 20,
        host: "mail.example.org".to_owned(),
        user: "ann".to_owned(),
        groups: vec![2],
    };
    let change = FactsChange {
        rows: vec![(Key::Account(2).encode(), Some(row.encode()))],
        ..FactsChange::default()
    };
    assert_eq!(several.volume(0).change_facts(now, change), Ok(true));
    for _ in 0..30 {
        several.pass(1);
    }
    several.volume(0).take_changed().unwrap().unwrap();
}

fn mails_of(several: &mut Several, account: u16) -> usize {
    let account = several.accounts.get_mut(&account).unwrap();
    let mailbox = account.mailbox("data-0001");
    mailbox.map_or(0, |mailbox| mailbox.mails.len())
}

fn put_many(several: &mut Several, word: &str) {
    for number in 0..8 {
        let data = noise(number, 400_000);
        let path = format!("{word}{number}");
        let handle = several.append(1, &path, &data).unwrap();
        several.close(1, handle);
        several.sync(1).unwrap();
    }
    several.settle();
}

fn has_notice(several: &Several) -> bool {
    let mut notices = several.mounts[1].notices.iter();
    notices.any(|notice| *notice == Notice::Left(AccountId(2)))
}

#[test]
fn another_mount_places_nothing_on_an_account_that_has_left() {
    let mut several = of_three();
    put_many(&mut several, "before");
    let before = mails_of(&mut several, 2);
    assert!(before > 0);
    let_go(&mut several);
    assert!(has_notice(&several));
    put_many(&mut several, "after");
    assert_eq!(mails_of(&mut several, 2), before);
    // A machine whose description still names the account opens the volume.
    several.finish(1);
    several.kill(1);
    several.mounts[1].notices.clear();
    several.mounts[1].disk = MemoryDisk::default();
    several.mount(1).unwrap();
    several.settle();
    assert!(has_notice(&several));
    put_many(&mut several, "later");
    assert_eq!(mails_of(&mut several, 2), before);
}

/// Packs that are under way when the account leaves have their copies elsewhere in the end.
#[test]
fn packs_under_way_are_elsewhere_too() {
    for files in 1..6 {
        let mut several = of_three();
        for number in 0..files {
            let path = format!("file{number}");
            let handle = several.append(1, &path, &noise(number, 400_000)).unwrap();
            several.close(1, handle);
        }
        let _waiting = several.begin_sync(1);
        several.until_append(1);
        several.mounts[1].is_held = true;
        let_go(&mut several);
        several.mounts[1].is_held = false;
        for _ in 0..30 {
            several.pass(1);
        }
        several.sync(1).unwrap();
        several.sync(0).unwrap();
        several.pass(30);
        let now = several.moment();
        let leaving = several
            .volume(0)
            .leaving(now, 2, &std::collections::HashMap::new())
            .unwrap()
            .unwrap();
        assert_eq!(leaving, crate::volume::Leaving::default(), "{files}");
    }
}

#[test]
fn a_row_that_changes_meanwhile_stays() {
    let mut world = World::new(2);
    world.terms.groups = vec![GroupTerms {
        group: 1,
        accounts: vec![1, 2],
    }];
    world.kill();
    world.mount().unwrap();
    world.put(Inode::ROOT, "file", &noise(1, 700_000));
    world.sync().unwrap();
    for _ in 0..20 {
        world.pass(Duration::from_secs(1));
    }
    let now = world.moment();
    let leaving = world
        .volume()
        .leaving(now, 2, &std::collections::HashMap::new())
        .unwrap()
        .unwrap();
    assert_eq!(leaving.only, 0);
    // The copy of the other account is found damaged, say.
    let key = leaving.rows[0].0.clone();
    let row = world.volume().files.tree().get(&key).unwrap().unwrap();
    let mut row = PackRow::decode(&row).unwrap();
    row.copies.retain(|copy| copy.account == 2);
    world.volume().put_row(key.clone(), row.encode());
    let change = FactsChange {
        rows: leaving.rows,
        expected: leaving.expected,
        ..FactsChange::default()
    };
    let now = world.moment();
    assert_eq!(world.volume().change_facts(now, change), Ok(true));
    for _ in 0..20 {
        world.pass(Duration::from_secs(1));
    }
    world.volume().take_changed().unwrap().unwrap();
    let now = world.moment();
    let left = world
        .volume()
        .leaving(now, 2, &std::collections::HashMap::new())
        .unwrap()
        .unwrap();
    assert_eq!((left.only, left.rows.len()), (1, 0));
}
