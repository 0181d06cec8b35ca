//! Two machines change keys: one wins, the other says so, and neither takes anything from the other.

use super::facts::{NEW, OLD, both_keys, first_keys, put, slot};
use super::rig::Several;
use super::*;
use crate::format::slot::Slot;
use crate::format::volume::Facts;
use crate::format::{Builder, Head, Kind, MailId, PackNumber, Subject, mail};
use crate::rows::{AccountRow, Key, RowValue};
use crate::volume::{FactsChange, FactsReport};

pub(super) const THIRD: &[u8] = &[3; 32];

fn other_keys() -> Vec<(u16, VolumeKey)> {
    vec![(1, VolumeKey([7; 32])), (2, VolumeKey([9; 32]))]
}

pub(super) fn keys_of(keys: &[(u16, VolumeKey)]) -> Arc<Keys> {
    Arc::new(Keys::of_epochs(keys).unwrap())
}

/// New slots, with the keys of a further epoch if there is one.
pub(super) fn change(slots: Vec<Slot>, keys: &[(u16, VolumeKey)]) -> FactsChange {
    let (epoch, _) = keys.last().unwrap();
    FactsChange {
        rows: slots.iter().map(|slot| put(slot.number, slot)).collect(),
        slots,
        keys: (*epoch > 1).then(|| (*epoch, keys_of(keys))),
        name: "home".to_owned(),
        ..FactsChange::default()
    }
}

impl Several {
    /// Two mounts of a volume with two slots.
    pub(super) fn with_slots() -> Self {
        let mut several = Self::new(2);
        for mount in 0..2 {
            several.volume(mount).seals.keys = keys_of(&first_keys());
        }
        let slots = vec![slot(1, OLD, &first_keys()), slot(2, THIRD, &first_keys())];
        several.begin_change(0, change(slots, &first_keys()));
        several.changed(0).unwrap();
        several.quiet();
        several
    }

    pub(super) fn begin_change(&mut self, mount: usize, change: FactsChange) {
        let now = self.moment();
        assert_eq!(self.volume(mount).change_facts(now, change), Ok(true));
    }

    pub(super) fn changed(&mut self, mount: usize) -> Result<FactsReport, String> {
        for _ in 0..200 {
            self.settle();
            if let Some(result) = self.volume(mount).take_changed() {
                return result;
            }
            self.pass(1);
        }
        panic!("the change stands still");
    }

    /// The subjects of an account's mails of a kind in `head`.
    fn heads(&mut self, account: u16, kind: Kind) -> Vec<MailId> {
        let account = self.accounts.get_mut(&account).unwrap();
        let mails = account.mailbox("head").unwrap().mails.values();
        let subjects = mails.map(|whole| {
            let end = whole.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
            let header = std::str::from_utf8(&whole[..end]).unwrap();
            let mut lines = header.lines();
            let subject = lines.find_map(|line| line.strip_prefix("Subject: "));
            Subject::parse(subject.unwrap()).unwrap()
        });
        let of_kind = subjects.filter(|subject| subject.kind == kind);
        of_kind.map(|subject| subject.mail).collect()
    }

    fn append_mail(&mut self, mailbox: &str, head: &Head, generation: Option<u64>, body: &[u8]) {
        let date = Timestamp::from_millis(self.now);
        let newest = self.volume(1).chain.head().0;
        let parent = (head.kind == Kind::Commit).then_some(newest);
        let subject = Subject::of(head, parent, generation);
        let mail = mail::wrap(&subject, date, Encoding::EightBit, body);
        for account in self.accounts.values_mut() {
            let request = Request::Append {
                mailbox: mailbox.to_owned(),
                mail: mail.clone().into(),
                alone: true,
            };
            account.carry_out(&request).unwrap();
        }
    }
}

/// Both changes have their slots on the accounts before either has a commit.
fn race(first: FactsChange, second: FactsChange) -> (Several, usize) {
    let mut several = Several::with_slots();
    several.begin_change(0, first);
    several.begin_change(1, second);
    let results = [several.changed(0), several.changed(1)];
    several.quiet();
    let winner = results.iter().position(Result::is_ok).unwrap();
    let lost = results[1 - winner].as_ref().unwrap_err();
    assert!(
        lost.contains("another machine changed the keys; run again"),
        "{lost}"
    );
    (several, winner)
}

#[test]
fn of_two_new_keys_one_counts_and_the_other_machine_says_so() {
    let changes = || {
        [
            change(vec![slot(1, NEW, &both_keys())], &both_keys()),
            change(
                vec![
                    slot(1, &[4; 32], &other_keys()),
                    slot(2, &[5; 32], &other_keys()),
                ],
                &other_keys(),
            ),
        ]
    };
    for swap in [false, true] {
        let mut both = changes();
        if swap {
            both.reverse();
        }
        let [first, second] = both.clone();
        let (mut several, winner) = race(first, second);
        let [own, others] = [&both[winner], &both[1 - winner]];
        assert_eq!(several.volume(winner).epoch(), 2);
        let loser = several.volume(1 - winner);
        assert!(!loser.seals.keys.has(2), "the loser has keys of its own");
        let listed = several.volume(winner).slots().unwrap();
        for slot in &own.slots {
            assert_eq!(listed[&slot.number].mail, slot.head.mail);
        }
        // A slot of the loser has a key that no commit is sealed with.
        let mails: Vec<MailId> = listed.values().map(|row| row.mail).collect();
        assert!(
            others
                .slots
                .iter()
                .all(|slot| !mails.contains(&slot.head.mail))
        );
        for account in 1..=2 {
            let mut found = several.heads(account, Kind::Slot);
            found.sort_unstable();
            let mut expected = mails.clone();
            expected.sort_unstable();
            assert_eq!(found, expected, "account {account}");
        }
    }
}

#[test]
fn of_two_accounts_with_one_number_one_counts() {
    let account = |user: &str| {
        let row = AccountRow {
            security: 0,
            encoding: 1,
            state: 0,
            port: 993,
            mail_octets_max: 1 << 20,
            host: "mail.example.org".to_owned(),
            user: user.to_owned(),
            groups: vec![3],
        };
        FactsChange {
            rows: vec![(Key::Account(3).encode(), Some(row.encode()))],
            ..FactsChange::default()
        }
    };
    race(account("ann"), account("bob"));
}

#[test]
fn a_change_from_an_earlier_list_or_earlier_keys_is_refused() {
    let mut several = Several::with_slots();
    let listed = several.volume(1).slots().unwrap();
    let listed: BTreeMap<u8, MailId> = listed.iter().map(|(at, row)| (*at, row.mail)).collect();
    // A terminal has read the list, and waits for a passphrase; the other one changes a slot.
    let waiting = FactsChange {
        listed: Some(listed),
        ..change(vec![slot(1, &[4; 32], &first_keys())], &first_keys())
    };
    several.begin_change(1, change(vec![slot(1, NEW, &first_keys())], &first_keys()));
    several.changed(1).unwrap();
    several.begin_change(1, waiting.clone());
    several.changed(1).unwrap_err();
    several.begin_change(1, change(vec![slot(1, NEW, &both_keys())], &both_keys()));
    several.changed(1).unwrap();
    for stale in [
        FactsChange {
            listed: None,
            ..waiting
        },
        change(vec![slot(1, &[4; 32], &other_keys())], &other_keys()),
    ] {
        several.begin_change(1, stale);
        let refused = several.changed(1).unwrap_err();
        assert!(refused.contains("key"), "{refused}");
        assert_eq!(several.volume(1).epoch(), 2);
    }
    let newest = slot(1, NEW, &both_keys()).head.mail;
    assert_eq!(several.volume(1).slots().unwrap()[&1].mail, newest);
}

#[test]
fn the_mails_of_another_change_under_way_stay() {
    let mut several = Several::with_slots();
    let foreign = slot(2, &[6; 32], &first_keys());
    several.append_mail("head", &foreign.head, None, &foreign.encode());
    let facts = Facts {
        generation: 1_000,
        name: "home".to_owned(),
        lead_account: 1,
        ..Facts::default()
    };
    let newer = Builder::new(Kind::Volume, VolumeId([3; 16]), 1, 0, PackNumber(2));
    let newer = newer
        .finish(facts.encode().unwrap().into(), &keys())
        .unwrap();
    several.append_mail("head", &newer.head, Some(1_000), &newer.body);
    several.begin_change(0, change(vec![slot(1, NEW, &first_keys())], &first_keys()));
    several.changed(0).unwrap();
    for account in 1..=2 {
        let slots = several.heads(account, Kind::Slot);
        assert_eq!(slots.len(), 3, "account {account}");
        assert!(slots.contains(&foreign.head.mail));
        let facts = several.heads(account, Kind::Volume);
        assert_eq!(facts.len(), 2, "account {account}");
        assert!(facts.contains(&newer.mail_id()));
    }
}

#[test]
fn an_unreadable_mail_stops_a_mount_only_as_a_commit_of_later_keys() {
    let mut several = Several::with_slots();
    several.put(0, "file", "content");
    several.sync(0).unwrap();
    several.quiet();
    let sealed = |epoch, key| {
        let mail = Builder::new(Kind::Commit, VolumeId([3; 16]), epoch, 0, PackNumber(77));
        let keys = Keys::derive(&VolumeKey([key; 32]));
        mail.finish(Bytes::from_static(b"strange"), &keys).unwrap()
    };
    let (garbled, later) = (sealed(1, 9), sealed(2, 8));
    let generation = Some(several.volume(1).status().generation + 1);
    several.append_mail("log", &garbled.head, generation, b"no commit at all");
    several.append_mail("log", &garbled.head, generation, &garbled.body);
    several.quiet();
    assert_eq!(several.volume(1).read_only(), None);
    several.put(1, "file", ", more");
    several.sync(1).unwrap();
    several.append_mail("log", &later.head, generation, &later.body);
    several.quiet();
    assert!(matches!(
        several.volume(1).read_only(),
        Some(Notice::NewKeys)
    ));
}

/// The mount of a machine that was away while keys were changed stops, and the next one reads the log.
#[test]
fn keys_that_were_changed_meanwhile_stop_a_mount_from_the_local_disk() {
    let mut several = Several::with_slots();
    several.kill(0);
    let slots = vec![slot(1, NEW, &other_keys()), slot(2, THIRD, &other_keys())];
    several.begin_change(1, change(slots, &other_keys()));
    several.changed(1).unwrap();
    several.folder(1, "later").unwrap();
    several.sync(1).unwrap();
    several.mount_locally(0).unwrap();
    several.volume(0).seals.keys = keys_of(&first_keys());
    several.quiet();
    assert!(matches!(
        several.volume(0).read_only(),
        Some(Notice::NewKeys)
    ));
    several.kill(0);
    assert!(matches!(several.mount_locally(0), Err(OpenError::Unsure)));
}
