mod listings;

use std::collections::BTreeMap;

use bytes::Bytes;
use vere_faults::accounts::MemoryAccount;
use vere_ports::mail_accounts::{AccountId, Request};
use vere_units::Timestamp;

use super::slots::{FoundSlot, Slots, Work};
use super::*;
use crate::format::slot::{Cost, NewSlot, Slot, SlotKeys, SlotSecret};
use crate::format::volume::Facts;
use crate::format::{
    Builder, Encoding, Keys, Kind, PackNumber, Subject, VolumeId, VolumeKey, mail,
};
use crate::rows::{Key, RowValue as _, SlotRow};
use crate::volume::{Notice, OpenStep};

const VOLUME: VolumeId = VolumeId([3; 16]);
const TAG: u32 = 0x0303_0303;
const CHEAP: Cost = Cost {
    memory_kib: 8,
    passes: 1,
    lanes: 1,
};

fn slot(number: u8, epochs: &[u16], phrase: &str) -> Slot {
    let new = NewSlot {
        volume: VOLUME,
        pack: PackNumber(u64::from(number)),
        number,
        cost: CHEAP,
        salt: [number; 16],
        nonce: [number; 24],
    };
    let keys = epochs.iter().map(|epoch| (*epoch, key(*epoch)));
    let content = SlotKeys {
        keys: keys.collect(),
        label: format!("slot {number}"),
    };
    Slot::make(&new, &content, SlotSecret::Passphrase(phrase.as_bytes())).unwrap()
}

fn key(epoch: u16) -> VolumeKey {
    VolumeKey([u8::try_from(epoch).unwrap(); 32])
}

fn append(account: &mut MemoryAccount, subject: &Subject, encoding: Encoding, body: &[u8]) {
    let mail = mail::wrap(subject, Timestamp::from_millis(0), encoding, body);
    let request = Request::Append {
        mailbox: "head".to_owned(),
        mail: Bytes::from(mail),
        alone: true,
    };
    account.carry_out(&request).unwrap();
}

fn put_slot(account: &mut MemoryAccount, slot: &Slot) {
    let subject = Subject::of(&slot.head, None, None);
    append(account, &subject, Encoding::EightBit, &slot.encode());
}

/// Facts of a generation; `claimed` is the generation in the subject.
fn put_facts(account: &mut MemoryAccount, epoch: u16, facts: &Facts, claimed: u64) {
    let mail = Builder::new(Kind::Volume, VOLUME, epoch, 0, PackNumber(2));
    let keys = Keys::derive(&key(epoch));
    let sealed = mail.finish(facts.encode().unwrap().into(), &keys).unwrap();
    let subject = Subject::of(&sealed.head, None, Some(claimed));
    append(account, &subject, Encoding::Base64, &sealed.body);
}

fn facts(generation: u64, slots: &[&Slot]) -> Facts {
    let row = |slot: &&Slot| {
        let row = SlotRow {
            mail: slot.head.mail,
            method: 1,
            label: "of a test".to_owned(),
        };
        (Key::Slot(slot.number).encode(), row.encode())
    };
    Facts {
        generation,
        lead_account: 1,
        name: format!("of {generation}"),
        rows: slots.iter().map(row).collect(),
        ..Facts::default()
    }
}

fn recover(
    accounts: &mut BTreeMap<u16, MemoryAccount>,
    phrase: &str,
) -> (Result<Recovered, RecoveryError>, Vec<String>) {
    let numbers: Vec<AccountId> = accounts.keys().map(|number| AccountId(*number)).collect();
    let mut recovery = Recovery::new(numbers, TAG);
    let mut notices = Vec::new();
    let mut carry = |recovery: &mut Recovery| {
        while let Some(step) = recovery.poll() {
            match step {
                OpenStep::Ask(id, account, _, request) => {
                    let account = accounts.get_mut(&account.0).unwrap();
                    recovery.answered(id, account.carry_out(&request));
                }
                OpenStep::Log(notice @ Notice::Forged { .. }) => notices.push(notice.to_string()),
                OpenStep::Log(notice) => panic!("{notice}"),
            }
        }
        assert!(recovery.is_idle());
    };
    carry(&mut recovery);
    let unlocked = recovery.unlock(SlotSecret::Passphrase(phrase.as_bytes()));
    carry(&mut recovery);
    (unlocked.and_then(|()| recovery.finish()), notices)
}

fn accounts(number: u16) -> BTreeMap<u16, MemoryAccount> {
    (1..=number)
        .map(|number| (number, MemoryAccount::new()))
        .collect()
}

#[test]
fn one_account_and_a_passphrase_give_keys_and_facts() {
    let mut all = accounts(1);
    let first = slot(1, &[1], "phrase");
    let account = all.get_mut(&1).unwrap();
    put_slot(account, &first);
    put_facts(account, 1, &facts(7, &[]), 7);
    let (found, notices) = recover(&mut all, "phrase");
    let found = found.unwrap();
    assert_eq!((&found.slot, found.volume), (&first, VOLUME));
    assert_eq!(found.facts, facts(7, &[]));
    assert_eq!(found.slots.first().unwrap().state, SlotState::Opens);
    assert_eq!((notices.len(), found.behind.len()), (0, 0));
    let (refused, _) = recover(&mut all, "another");
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("one of 1 key slots"), "{refused}");
}

#[test]
fn a_revoked_slot_opens_nothing() {
    let mut all = accounts(1);
    let (old, new) = (slot(1, &[1], "old"), slot(1, &[1, 2], "new"));
    let account = all.get_mut(&1).unwrap();
    for slot in [&old, &new] {
        put_slot(account, slot);
    }
    put_facts(account, 1, &facts(1, &[&old]), 1);
    put_facts(account, 2, &facts(2, &[&new]), 2);
    let (found, _) = recover(&mut all, "new");
    let found = found.unwrap();
    assert_eq!((found.slot, found.facts.generation), (new, 2));
    let closed = found
        .slots
        .iter()
        .filter(|slot| slot.state == SlotState::Closed);
    assert_eq!(closed.count(), 1);
    // The old passphrase opens the old facts only, which still list its slot: the account alone cannot tell more.
    let (found, notices) = recover(&mut all, "old");
    assert_eq!(found.unwrap().facts.generation, 1);
    assert!(
        notices.iter().any(|text| text.contains("epoch")),
        "{notices:?}"
    );
    // Without a new epoch the old passphrase reads the newest facts, and these revoke its slot.
    put_facts(
        all.get_mut(&1).unwrap(),
        1,
        &facts(3, &[&slot(2, &[1], "x")]),
        3,
    );
    let (found, _) = recover(&mut all, "old");
    assert_eq!(found.unwrap_err(), RecoveryError::Revoked { number: 1 });
}

/// Who has a revoked key makes mails of its epoch; those of the newest epoch count.
#[test]
fn facts_by_a_revoked_key_change_nothing() {
    let mut all = accounts(1);
    let new = slot(1, &[1, 2], "new");
    let account = all.get_mut(&1).unwrap();
    put_slot(account, &new);
    put_facts(account, 2, &facts(2, &[&new]), 2);
    put_facts(account, 1, &facts(1_000, &[]), 1_000);
    let (found, _) = recover(&mut all, "new");
    assert_eq!(found.unwrap().facts.generation, 2);
}

#[test]
fn forged_altered_and_replayed_mails_are_reported() {
    let mut all = accounts(2);
    let first = slot(1, &[1], "phrase");
    for account in all.values_mut() {
        put_slot(account, &first);
        put_facts(account, 1, &facts(1, &[]), 1);
    }
    let account = all.get_mut(&1).unwrap();
    put_facts(account, 1, &facts(9, &[]), 9);
    // An old mail again, with a subject that claims more; facts of a stranger; a slot of a stranger; a slot that was altered.
    put_facts(account, 1, &facts(1, &[]), 1_000);
    put_facts(account, 5, &facts(2_000, &[]), 2_000);
    put_slot(account, &slot(2, &[5], "of a stranger"));
    let mut octets = first.encode();
    *octets.last_mut().unwrap() ^= 1;
    let subject = Subject::of(&first.head, None, None);
    append(account, &subject, Encoding::EightBit, &octets);
    append(account, &subject, Encoding::EightBit, b"lunch");
    let (found, notices) = recover(&mut all, "phrase");
    let found = found.unwrap();
    assert_eq!(found.facts, facts(9, &[]));
    assert_eq!(found.slot, first);
    assert_eq!(found.behind, [AccountId(2)]);
    assert_eq!(notices.len(), 4, "{notices:?}");
    let strange = found.slots.iter().find(|slot| slot.number == 2).unwrap();
    assert_eq!(
        (strange.state.clone(), strange.label.clone()),
        (SlotState::Closed, None)
    );
}

#[test]
fn a_flood_of_slots_has_an_end() {
    let mut all = accounts(1);
    let first = slot(1, &[1], "phrase");
    let account = all.get_mut(&1).unwrap();
    put_slot(account, &first);
    put_facts(account, 1, &facts(1, &[]), 1);
    for number in 0..300_u16 {
        put_slot(account, &costly(number, CHEAP));
    }
    let (found, notices) = recover(&mut all, "phrase");
    assert_eq!(found.unwrap().slot, first);
    let unread = notices.iter().filter(|text| text.contains("not read"));
    assert_eq!(unread.count(), 1, "{notices:?}");
}

/// A stranger's slot.
fn costly(number: u16, cost: Cost) -> Slot {
    let [high, low] = number.to_be_bytes();
    let mut salt = [0; 16];
    salt[..2].copy_from_slice(&[high, low]);
    let new = NewSlot {
        volume: VOLUME,
        pack: PackNumber(9),
        number: 9,
        cost,
        salt,
        nonce: [0; 24],
    };
    let content = SlotKeys {
        keys: vec![(1, key(5))],
        label: String::new(),
    };
    Slot::make(&new, &content, SlotSecret::Passphrase(b"x")).unwrap()
}

#[test]
fn costly_slots_are_tried_last_and_within_a_bound() {
    let first = slot(1, &[1], "phrase");
    let mut slots = Slots::default();
    let dear = Cost {
        memory_kib: 64,
        ..CHEAP
    };
    let strange = (0..20).map(|number| costly(number, dear));
    for slot in strange.chain([first.clone()]) {
        slots.found.insert(slot.head.mail, FoundSlot::new(slot));
    }
    let most = Work {
        all: 64 * 10,
        further: 64 * 3,
    };
    let phrase = SlotSecret::Passphrase(b"phrase");
    assert_eq!(slots.open(phrase, most), 4);
    let (best, _) = slots.best(|_, _| true).unwrap();
    assert_eq!(best, &first);
    let untried = slots.reports(|_, _| true);
    let untried = untried
        .iter()
        .filter(|slot| slot.state == SlotState::Untried);
    assert_eq!(untried.count(), 17);
    let file = SlotSecret::KeyFile(&[0; 32]);
    assert_eq!(slots.open(file, most), 0);
}

#[test]
fn an_account_that_fails_is_named() {
    let mut recovery = Recovery::new([AccountId(1)], TAG);
    let Some(OpenStep::Ask(id, ..)) = recovery.poll() else {
        panic!("no question");
    };
    let fault = vere_ports::mail_accounts::Fault::Refused("no".to_owned());
    recovery.answered(id, Err(fault));
    assert!(recovery.is_idle());
    let refused = recovery.unlock(SlotSecret::Passphrase(b"x"));
    assert_eq!(refused, Err(RecoveryError::NoSlot));
}

/// One account has a flood of slots that are cheaper than the valid one; another account has the valid one.
#[test]
fn a_flood_on_one_account_leaves_the_slots_of_another_their_turn() {
    let dear = Cost {
        memory_kib: 16,
        ..CHEAP
    };
    let valid = costly(99, dear);
    let mut slots = Slots::default();
    for number in 0..40 {
        let mut found = FoundSlot::new(slot(number, &[1], "strange"));
        found.accounts.insert(AccountId(1));
        slots.found.insert(found.slot.head.mail, found);
    }
    let mut found = FoundSlot::new(valid.clone());
    found.accounts.insert(AccountId(2));
    slots.found.insert(valid.head.mail, found);
    let most = Work {
        all: 8 * 10,
        further: 8,
    };
    assert_eq!(slots.open(SlotSecret::Passphrase(b"x"), most), 6);
    let opened = slots.opened();
    assert_eq!(opened.first().map(|(slot, _)| slot), Some(&valid));
}

#[test]
fn a_mount_gets_the_slots_that_open_newest_keys_first() {
    let mut all = accounts(2);
    let (old, new) = (slot(1, &[1], "phrase"), slot(2, &[1, 2], "phrase"));
    put_slot(all.get_mut(&1).unwrap(), &old);
    put_slot(all.get_mut(&2).unwrap(), &new);
    put_slot(all.get_mut(&2).unwrap(), &slot(3, &[1, 2], "another"));
    let mut recovery = Recovery::new([AccountId(1), AccountId(2)], TAG);
    while let Some(step) = recovery.poll() {
        if let OpenStep::Ask(id, account, _, request) = step {
            let account = all.get_mut(&account.0).unwrap();
            recovery.answered(id, account.carry_out(&request));
        }
    }
    let found = recovery.candidates(SlotSecret::Passphrase(b"phrase"));
    let slots: Vec<&Slot> = found.iter().map(|(slot, _)| slot).collect();
    assert_eq!(slots, [&new, &old]);
}
