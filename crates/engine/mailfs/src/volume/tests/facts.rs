//! Changes of key slots, key epochs and accounts: whatever is lost, and whenever the client dies, a slot that counts opens the
//! volume.

use super::*;
use crate::format::slot::{Cost, NewSlot, Slot, SlotKeys, SlotSecret};
use crate::format::volume::Facts;
use crate::format::{Kind, PackNumber, Subject, mail, open};
use crate::rows::{AccountRow, Key, RowValue, SlotRow};
use crate::volume::{CheckTerms, FactsChange, FactsReport, Leaving, Membership, Upkept};

const ROOT: Inode = Inode::ROOT;
/// Secrets, and a last one that nothing was made with.
pub(super) const OLD: &[u8] = &[1; 32];
pub(super) const NEW: &[u8] = &[2; 32];

pub(super) fn slot(number: u8, secret: &[u8], keys: &[(u16, VolumeKey)]) -> Slot {
    let new = NewSlot {
        volume: VolumeId([3; 16]),
        pack: PackNumber(1),
        number,
        cost: Cost::DEFAULT,
        salt: [secret[0]; 16],
        nonce: [secret[0]; 24],
    };
    let content = SlotKeys {
        keys: keys.to_vec(),
        label: "test".to_owned(),
    };
    Slot::make(&new, &content, SlotSecret::KeyFile(secret)).unwrap()
}

pub(super) fn put(number: u8, slot: &Slot) -> (Vec<u8>, Option<Vec<u8>>) {
    let row = SlotRow {
        mail: slot.head.mail,
        method: 2,
        label: "test".to_owned(),
    };
    (Key::Slot(number).encode(), Some(row.encode()))
}

pub(super) fn first_keys() -> Vec<(u16, VolumeKey)> {
    vec![(1, VolumeKey([7; 32]))]
}

pub(super) fn both_keys() -> Vec<(u16, VolumeKey)> {
    vec![(1, VolumeKey([7; 32])), (2, VolumeKey([8; 32]))]
}

impl World {
    /// A volume that the old secret opens, with a file.
    pub(super) fn with_slot(accounts: u16) -> Self {
        let mut world = Self::new(accounts);
        let first = slot(1, OLD, &first_keys());
        let change = FactsChange {
            rows: vec![put(1, &first)],
            slots: vec![first],
            name: "home".to_owned(),
            ..FactsChange::default()
        };
        world.change(change).unwrap();
        world.put(ROOT, "file", b"content");
        world.sync().unwrap();
        world
    }

    /// Carries a change out.
    pub(super) fn change(&mut self, change: FactsChange) -> Result<FactsReport, String> {
        self.begin_change(change);
        for _ in 0..200 {
            self.settle();
            if let Some(result) = self.volume().take_changed() {
                return result;
            }
            self.pass(Duration::from_secs(1));
        }
        panic!("the change stands still");
    }

    fn begin_change(&mut self, change: FactsChange) {
        let now = self.moment();
        assert_eq!(self.volume().change_facts(now, change), Ok(true));
    }

    /// The bodies of the mails of a kind that an account has in `head`.
    fn head_mails(&mut self, account: u16, of: Kind) -> Vec<Vec<u8>> {
        let account = self.accounts.get_mut(&account).unwrap();
        let Some(mailbox) = account.mailbox("head") else {
            return Vec::new();
        };
        let body = |whole: &Bytes| {
            let end = whole.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
            let header = String::from_utf8(whole[..end].to_vec()).unwrap();
            let subject = header
                .lines()
                .find_map(|line| line.strip_prefix("Subject: "));
            let subject = Subject::parse(subject.unwrap()).unwrap();
            let body = mail::unwrap(&whole[end + 4..], Encoding::EightBit).unwrap();
            (subject.kind == of).then_some(body)
        };
        mailbox.mails.values().filter_map(body).collect()
    }

    /// The slots of an account that a secret opens.
    pub(super) fn opened_by(&mut self, account: u16, secret: &[u8]) -> Vec<Slot> {
        let slots = self.head_mails(account, Kind::Slot);
        let slots = slots.iter().map(|body| Slot::decode(body).unwrap());
        slots
            .filter(|slot| slot.open(SlotSecret::KeyFile(secret)).is_ok())
            .collect()
    }

    /// Mounts as a machine without a folder does: by a slot of an account that the secret opens and that the volume lists.
    fn mount_by(&mut self, account: u16, secret: &[u8], keeps_folder: bool) -> bool {
        for slot in self.opened_by(account, secret) {
            let keys = slot.open(SlotSecret::KeyFile(secret)).unwrap().keys;
            if keeps_folder {
                self.kill();
            } else {
                self.lose_folder();
            }
            self.of.epoch = keys.last().unwrap().0;
            self.of.keys = Arc::new(Keys::of_epochs(&keys).unwrap());
            // The keys of an earlier epoch do not open every commit that the journal knows.
            if self.mount().is_err() {
                continue;
            }
            let listed = self.volume().slots().unwrap();
            if listed.values().any(|row| row.mail == slot.head.mail) {
                return true;
            }
        }
        false
    }

    /// What an account has, as soon as all rows are there.
    fn leaving(&mut self, account: u16) -> Leaving {
        for _ in 0..100 {
            let now = self.moment();
            if let Some(leaving) = self
                .volume()
                .leaving(now, account, &std::collections::HashMap::new())
                .unwrap()
            {
                return leaving;
            }
            self.settle();
        }
        panic!("no rows");
    }

    /// The newest facts of an account.
    fn facts(&mut self, account: u16) -> Facts {
        let mails = self.head_mails(account, Kind::Volume);
        let keys = Keys::of_epochs(&both_keys()).unwrap();
        let facts = mails.iter().map(|body| {
            let opened = open(body, &keys, None).unwrap();
            Facts::decode(opened.last()).unwrap()
        });
        facts.max_by_key(|facts| facts.generation).unwrap()
    }
}

/// Another passphrase for the first slot.
fn passwd() -> FactsChange {
    let new = slot(1, NEW, &first_keys());
    FactsChange {
        rows: vec![put(1, &new)],
        slots: vec![new],
        ..FactsChange::default()
    }
}

/// Another passphrase, and a new key epoch.
fn rotate() -> FactsChange {
    let new = slot(1, NEW, &both_keys());
    FactsChange {
        rows: vec![put(1, &new)],
        slots: vec![new],
        keys: Some((2, Arc::new(Keys::of_epochs(&both_keys()).unwrap()))),
        ..FactsChange::default()
    }
}

#[test]
fn a_change_replaces_slots_and_facts_on_every_account() {
    let mut world = World::with_slot(3);
    let report = world.change(passwd()).unwrap();
    assert!(report.behind.is_empty());
    // A slot and a mail of facts of each account.
    assert_eq!(report.removed, 6);
    for account in 1..=3 {
        assert!(world.opened_by(account, OLD).is_empty());
        assert_eq!(world.opened_by(account, NEW).len(), 1);
        assert_eq!(world.head_mails(account, Kind::Volume).len(), 1);
        let facts = world.facts(account);
        assert_eq!(facts.name, "home");
        assert!(facts.generation > 1);
        assert_eq!(facts.rows.len(), 1);
    }
    assert!(world.mount_by(2, NEW, false));
    assert_eq!(world.get(ROOT, "file").unwrap(), b"content");
    let now = world.moment();
    assert!(world.volume().check(now, CheckTerms::default()));
    world.settle();
    match world.volume().take_upkept() {
        Some(Upkept::Checked(report)) => assert!(report.is_clean(), "{:?}", report.findings),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_epoch_seals_what_follows_and_opens_what_was() {
    let mut world = World::with_slot(2);
    world.change(rotate()).unwrap();
    assert_eq!(world.volume().epoch(), 2);
    world.put(ROOT, "later", &noise(1, 700_000));
    world.sync().unwrap();
    assert_eq!(world.get(ROOT, "file").unwrap(), b"content");
    // The keys of before open no commit of the new epoch, and read that their slot counts no more.
    let of = world.of.clone();
    world.lose_folder();
    world.of = Create {
        keys: Arc::new(Keys::of_epochs(&first_keys()).unwrap()),
        ..of
    };
    world.mount().unwrap();
    assert_eq!(world.lookup(ROOT, "later").err(), Some(Errno::NoEnt));
    let old = slot(1, OLD, &first_keys());
    let listed = world.volume().slots().unwrap();
    assert!(listed.values().all(|row| row.mail != old.head.mail));
    for keeps_folder in [false, true] {
        assert!(world.mount_by(1, NEW, keeps_folder));
        assert_eq!(world.volume().epoch(), 2);
        assert_eq!(world.get(ROOT, "later").unwrap(), noise(1, 700_000));
        assert_eq!(world.get(ROOT, "file").unwrap(), b"content");
    }
}

#[test]
fn keys_of_an_earlier_epoch_add_nothing_to_the_chain() {
    let mut world = World::with_slot(1);
    world.change(rotate()).unwrap();
    let mailbox = world.accounts.get_mut(&1).unwrap().mailbox("log").unwrap();
    let honest = mailbox.mails.clone();
    // Somebody with the keys of before goes on from the newest commit that these keys open.
    world.lose_folder();
    world.of.keys = Arc::new(Keys::of_epochs(&first_keys()).unwrap());
    world.mount().unwrap();
    world.put(ROOT, "forged", b"forged");
    let _overtaken = world.begin(Call::Statistics);
    for _ in 0..50 {
        world.step();
    }
    world.pass(Duration::from_secs(10));
    let mailbox = world.accounts.get_mut(&1).unwrap().mailbox("log").unwrap();
    assert!(mailbox.mails.len() > honest.len());
    assert!(world.mount_by(1, NEW, false));
    assert_eq!(world.lookup(ROOT, "forged").err(), Some(Errno::NoEnt));
    assert_eq!(world.get(ROOT, "file").unwrap(), b"content");
}

/// The requests of a change, each unhurt.
fn requests(change: fn() -> FactsChange) -> usize {
    let mut world = World::with_slot(2);
    let before: usize = world.counts.values().sum();
    world.change(change()).unwrap();
    world.counts.values().sum::<usize>() - before
}

/// Each request in turn is hurt; the change still ends well.
fn hurt_each(change: fn() -> FactsChange, luck: Luck) {
    let requests = requests(change);
    assert!(requests >= 8, "{requests}");
    for hurt in 0..requests {
        let mut world = World::with_slot(2);
        let mut number = 0;
        world.fortune = Box::new(move |_, _| {
            let is_hurt = number == hurt;
            number += 1;
            if is_hurt { luck } else { Luck::Good }
        });
        let result = world.change(change());
        // A first look that fails goes to another account, which knows as much.
        assert!(result.is_ok(), "{hurt}: {result:?}");
        world.sync().unwrap();
        for account in 1..=2 {
            assert!(world.opened_by(account, OLD).is_empty(), "{hurt}");
            assert!(world.mount_by(account, NEW, false), "{hurt}");
            assert_eq!(world.get(ROOT, "file").unwrap(), b"content");
        }
    }
}

/// From each request on none is answered, and the client dies: a secret opens the volume, with the folder and without.
fn die_at_each(change: fn() -> FactsChange, luck: Luck) {
    for deadly in 0..requests(change) {
        for keeps_folder in [true, false] {
            let mut world = World::with_slot(2);
            let mut number = 0;
            world.fortune = Box::new(move |_, _| {
                number += 1;
                if number > deadly { luck } else { Luck::Good }
            });
            world.begin_change(change());
            for _ in 0..300 {
                world.step();
            }
            world.fortune = Box::new(|_, _| Luck::Good);
            for account in 1..=2 {
                let opens = [OLD, NEW].map(|secret| {
                    let disk = world.disk.clone();
                    let opens = world.mount_by(account, secret, keeps_folder);
                    if opens {
                        assert_eq!(world.get(ROOT, "file").unwrap(), b"content");
                    }
                    if keeps_folder {
                        world.kill();
                        world.disk = disk;
                    }
                    opens
                });
                let mut opens = opens.into_iter().filter(|opens| *opens);
                assert!(opens.next().is_some(), "{deadly} {keeps_folder}");
                assert!(opens.next().is_none(), "{deadly} {keeps_folder}");
            }
        }
    }
}

#[test]
fn a_change_makes_up_for_lost_requests() {
    hurt_each(passwd, Luck::Lost);
    hurt_each(rotate, Luck::Lost);
}

#[test]
fn a_change_makes_up_for_lost_answers() {
    hurt_each(passwd, Luck::Unanswered);
    hurt_each(rotate, Luck::Unanswered);
}

#[test]
fn a_client_that_dies_while_slots_change_leaves_one_that_opens() {
    die_at_each(passwd, Luck::Lost);
    die_at_each(passwd, Luck::Unanswered);
}

#[test]
fn a_client_that_dies_while_an_epoch_begins_leaves_a_slot_that_opens() {
    die_at_each(rotate, Luck::Lost);
    die_at_each(rotate, Luck::Unanswered);
}

#[test]
fn an_account_that_stays_away_keeps_the_slots_as_they_are() {
    let mut world = World::with_slot(2);
    world.fortune = Box::new(|account, _| match account.0 {
        2 => Luck::Lost,
        _ => Luck::Good,
    });
    let failed = world.change(passwd()).unwrap_err();
    assert!(failed.starts_with("account 2: "), "{failed}");
    world.fortune = Box::new(|_, _| Luck::Good);
    assert!(!world.mount_by(1, NEW, true));
    assert!(world.mount_by(1, OLD, true));
    world.pass(Duration::from_secs(60));
    // The next change removes what the broken one has left.
    world.change(passwd()).unwrap();
    assert_eq!(world.head_mails(1, Kind::Slot).len(), 1);
    assert!(world.mount_by(2, NEW, true));
}

#[test]
fn an_account_that_rests_for_long_holds_a_change_up_for_a_minute() {
    let mut world = World::with_slot(2);
    world.fortune = Box::new(|account, _| match account.0 {
        2 => Luck::Lost,
        _ => Luck::Good,
    });
    // The pauses between attempts grow to a quarter of an hour.
    for number in 0..12 {
        world.put(ROOT, &format!("file{number}"), &noise(number, 700_000));
        world.pass(Duration::from_secs(900));
    }
    let start = world.now;
    let failed = world.change(passwd()).unwrap_err();
    assert!(failed.contains("cannot be reached"), "{failed}");
    assert!(world.now - start <= 61_000, "{}", world.now - start);
}

fn terms_of(number: u16) -> AccountTerms {
    AccountTerms {
        account: number,
        encoding: Encoding::EightBit,
    }
}

fn account_row(number: u16, group: u16) -> (Vec<u8>, Option<Vec<u8>>) {
    let row = AccountRow {
        security: 0,
        encoding: 1,
        state: 0,
        port: 993,
        mail_octets_max: 1 << 20,
        host: "mail.example.org".to_owned(),
        user: "ann".to_owned(),
        groups: vec![group],
    };
    (Key::Account(number).encode(), Some(row.encode()))
}

fn add() -> FactsChange {
    FactsChange {
        rows: vec![account_row(3, 2)],
        accounts: vec![terms_of(3)],
        ..FactsChange::default()
    }
}

/// A world with an account that the volume does not have yet.
fn with_further() -> World {
    let mut world = World::with_slot(2);
    world.accounts.insert(3, MemoryAccount::new());
    world
}

fn joined(members: &[u16]) -> Membership {
    Membership {
        accounts: (1..=3).map(terms_of).collect(),
        groups: vec![
            GroupTerms {
                group: 1,
                accounts: vec![1],
            },
            GroupTerms {
                group: 2,
                accounts: members.to_vec(),
            },
        ],
    }
}

#[test]
fn a_further_account_gets_slots_facts_and_copies() {
    let mut world = with_further();
    let data = noise(5, 3 << 20);
    world.put(ROOT, "large", &data);
    world.sync().unwrap();
    let packs = world.accounts.get_mut(&2).unwrap().mailbox("data-0001");
    let packs = packs.unwrap().mails.len();
    assert!(packs > 0);
    let report = world.change(add()).unwrap();
    assert!(report.behind.is_empty());
    assert!(
        world
            .accounts
            .get_mut(&3)
            .unwrap()
            .mailbox("data-0001")
            .is_none()
    );
    let now = world.moment();
    world.volume().use_accounts(now, joined(&[2, 3]));
    world.settle();
    world.sync().unwrap();
    assert_eq!(world.volume().status().copies_missing, 0);
    let copies = world.accounts.get_mut(&3).unwrap().mailbox("data-0001");
    assert_eq!(copies.unwrap().mails.len(), packs);
    let facts = world.facts(3);
    assert!(
        facts
            .rows
            .contains(&(account_row(3, 2).0, account_row(3, 2).1.unwrap()))
    );
    assert_eq!(world.opened_by(3, OLD).len(), 1);
    world.terms.accounts.push(terms_of(3));
    world.terms.groups = joined(&[2, 3]).groups;
    assert!(world.mount_by(3, OLD, false));
    world.fortune = Box::new(|account, _| match account.0 {
        2 => Luck::Lost,
        _ => Luck::Good,
    });
    assert!(world.get(ROOT, "large").unwrap() == data);
}

#[test]
fn a_further_account_is_added_in_spite_of_every_fault() {
    let requests = {
        let mut world = with_further();
        let before: usize = world.counts.values().sum();
        world.change(add()).unwrap();
        world.counts.values().sum::<usize>() - before
    };
    for hurt in 0..requests {
        for luck in [Luck::Lost, Luck::Unanswered] {
            let mut world = with_further();
            let mut number = 0;
            world.fortune = Box::new(move |_, _| {
                let is_hurt = number == hurt;
                number += 1;
                if is_hurt { luck } else { Luck::Good }
            });
            world.change(add()).unwrap();
            assert_eq!(world.opened_by(3, OLD).len(), 1, "{hurt}");
            assert_eq!(world.head_mails(3, Kind::Volume).len(), 1, "{hurt}");
        }
        // The client dies: the volume is there, and the account can be added again.
        let mut world = with_further();
        let mut number = 0;
        world.fortune = Box::new(move |_, _| {
            number += 1;
            if number > hurt {
                Luck::Lost
            } else {
                Luck::Good
            }
        });
        world.begin_change(add());
        for _ in 0..300 {
            world.step();
        }
        world.fortune = Box::new(|_, _| Luck::Good);
        assert!(world.mount_by(1, OLD, hurt % 2 == 0));
        world.change(add()).unwrap();
        assert_eq!(world.opened_by(3, OLD).len(), 1, "{hurt}");
        assert_eq!(world.get(ROOT, "file").unwrap(), b"content");
    }
}

#[test]
fn an_account_leaves_whose_packs_are_elsewhere_too() {
    let mut world = with_further();
    let data = noise(6, 3 << 20);
    world.put(ROOT, "large", &data);
    world.sync().unwrap();
    assert!(world.leaving(2).only > 0);
    world.change(add()).unwrap();
    let now = world.moment();
    world.volume().use_accounts(now, joined(&[2, 3]));
    world.settle();
    world.sync().unwrap();
    let leaving = world.leaving(2);
    assert_eq!(leaving.only, 0);
    assert!(!leaving.rows.is_empty());
    let mut members = joined(&[3]);
    members.accounts.retain(|terms| terms.account != 2);
    let now = world.moment();
    world.volume().use_accounts(now, members.clone());
    let change = FactsChange {
        rows: leaving.rows,
        ..FactsChange::default()
    };
    world.change(change).unwrap();
    assert!(world.leaving(2).rows.is_empty());
    assert_eq!(world.volume().status().copies_missing, 0);
    world.put(ROOT, "later", &data);
    world.sync().unwrap();
    world.accounts.remove(&2);
    world.terms.accounts = members.accounts;
    world.terms.groups = members.groups;
    assert!(world.mount_by(3, OLD, false));
    for name in ["large", "later"] {
        assert!(world.get(ROOT, name).unwrap() == data);
    }
}

/// Whoever began a change may have given up, and takes no result.
#[test]
fn a_result_that_nobody_takes_holds_no_later_change_up() {
    let mut world = World::with_slot(2);
    world.begin_change(passwd());
    for _ in 0..5 {
        world.settle();
        world.pass(Duration::from_secs(1));
    }
    // A result is kept for a while.
    let now = world.moment();
    assert_eq!(world.volume().change_facts(now, passwd()), Ok(false));
    world.pass(Duration::from_secs(10));
    world.change(rotate()).unwrap();
    assert_eq!(world.volume().epoch(), 2);
}
