//! Key slots that count no more leave accounts that missed a change of keys.

use super::super::facts::{NEW, OLD, first_keys, put, slot};
use super::*;
use crate::format::{PackNumber, Subject, mail};
use crate::volume::FactsChange;

fn change() -> FactsChange {
    let new = slot(1, NEW, &first_keys());
    FactsChange {
        rows: vec![put(1, &new)],
        slots: vec![new],
        name: "home".to_owned(),
        ..FactsChange::default()
    }
}

/// The slot has changed, and the second account has the old one still.
fn changed_half() -> World {
    let mut world = World::with_slot(2);
    world.fortune = Box::new(|account, request| match request {
        Request::Remove { .. } if account.0 == 2 => Luck::Lost,
        _ => Luck::Good,
    });
    world.change(change()).unwrap();
    world.fortune = Box::new(|_, _| Luck::Good);
    world
}

fn found(world: &mut World) -> [(usize, usize); 2] {
    [1, 2].map(|account| {
        let of = |world: &mut World, secret| world.opened_by(account, secret).len();
        (of(world, OLD), of(world, NEW))
    })
}

#[test]
fn an_old_secret_opens_nothing_once_every_account_was_reached() {
    let mut world = World::with_slot(2);
    world.fortune = Box::new(|account, request| match request {
        Request::Remove { .. } if account.0 == 2 => Luck::Lost,
        _ => Luck::Good,
    });
    let report = world.change(change()).unwrap();
    assert!(report.behind.contains_key(&2));
    assert_eq!(found(&mut world), [(0, 1), (1, 1)]);
    world.fortune = Box::new(|_, _| Luck::Good);
    let first = world.collect().unwrap();
    assert_eq!((first.orphans, first.removed), (1, 0));
    let soon = world.collect().unwrap();
    assert_eq!((soon.orphans, soon.removed), (0, 0));
    world.days(2);
    assert_eq!(world.collect().unwrap().removed, 1);
    assert_eq!(found(&mut world), [(0, 1), (0, 1)]);
    assert_eq!(world.check(true, false).findings, []);
    world.days(2);
    assert_eq!(world.collect().unwrap().removed, 0);
}

#[test]
fn a_slot_whose_change_is_under_way_stays() {
    let mut world = World::with_slot(2);
    let new = slot(1, NEW, &first_keys());
    for number in [1, 2] {
        let subject = Subject::of(&new.head, None, None);
        let date = Timestamp::from_millis(world.now);
        let mail = mail::wrap(&subject, date, Encoding::EightBit, &new.encode());
        let request = Request::Append {
            mailbox: "head".to_owned(),
            mail: mail.into(),
            alone: true,
        };
        let account = world.accounts.get_mut(&number).unwrap();
        account.carry_out(&request).unwrap();
    }
    assert_eq!(new.head.pack, PackNumber(1));
    assert_eq!(world.collect().unwrap().orphans, 2);
    world.change(change()).unwrap();
    for _ in 0..2 {
        world.days(2);
        world.collect().unwrap();
        assert_eq!(found(&mut world), [(0, 1), (0, 1)]);
    }
    assert_eq!(world.check(true, false).findings, []);
}

/// The provider of the second account loses the new slot.
fn lose_new_slot(world: &mut World) {
    let new = slot(1, NEW, &first_keys()).head.mail.to_string();
    let head = world.shelf(2, "head");
    let is_new = |mail: &Bytes| {
        let needle = format!("i{new}");
        mail.windows(needle.len()).any(|at| at == needle.as_bytes())
    };
    head.mails.retain(|_, mail| !is_new(mail));
}

/// A mount once gave such accounts the slots a single time: nobody takes the result of that change.
#[test]
fn an_account_gets_the_slot_that_counts_each_time_it_is_lost() {
    let mut world = World::with_slot(2);
    world.change(change()).unwrap();
    for _ in 0..3 {
        lose_new_slot(&mut world);
        assert_eq!(found(&mut world), [(0, 1), (0, 0)]);
        world.collect().unwrap();
        world.pass(Duration::from_secs(60));
        assert_eq!(found(&mut world), [(0, 1), (0, 1)]);
        world.days(1);
    }
}

/// The next collection tells why.
#[test]
fn an_account_that_refuses_the_slot_is_reported() {
    let mut world = World::with_slot(2);
    world.change(change()).unwrap();
    lose_new_slot(&mut world);
    world.fortune = Box::new(|account, request| match request {
        Request::Append { .. } if account.0 == 2 => Luck::Lost,
        _ => Luck::Good,
    });
    world.collect().unwrap();
    world.days(1);
    let report = world.collect().unwrap();
    assert!(report.failed.contains_key(&2), "{report:?}");
}

#[test]
fn an_account_without_the_slot_that_counts_gets_it_before_it_loses_the_old_one() {
    let mut world = changed_half();
    lose_new_slot(&mut world);
    assert_eq!(found(&mut world), [(0, 1), (1, 0)]);
    assert_eq!(world.collect().unwrap().orphans, 0);
    world.pass(Duration::from_secs(60));
    assert_eq!(found(&mut world), [(0, 1), (1, 1)]);
    world.days(1);
    assert_eq!(world.collect().unwrap().orphans, 1);
    world.days(2);
    world.collect().unwrap();
    assert_eq!(found(&mut world), [(0, 1), (0, 1)]);
}

/// The second account has the new slot by a subject only, above the body of the old slot.
fn forge_new_slot(world: &mut World) {
    let new = slot(1, NEW, &first_keys()).head.mail.to_string();
    let head = world.shelf(2, "head");
    let begin = |mail: &Bytes| mail.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
    let has = |mail: &Bytes, word: &str| {
        let subject = &mail[..begin(mail)];
        subject.windows(word.len()).any(|at| at == word.as_bytes())
    };
    let is_new = |mail: &Bytes| has(mail, &format!("i{new}"));
    let is_old = |mail: &&Bytes| has(mail, "kslot") && !is_new(mail);
    let old = head.mails.values().find(is_old).unwrap().clone();
    let mail = head.mails.values_mut().find(|mail| is_new(mail)).unwrap();
    let subject = mail[..begin(mail)].to_vec();
    *mail = [subject.as_slice(), &old[begin(&old)..]].concat().into();
}

/// By a subject the account had the new slot, so that the old slot left, and no secret opened the account.
#[test]
fn an_account_whose_listed_slot_is_forged_keeps_the_old_one_until_it_has_another() {
    let mut world = changed_half();
    forge_new_slot(&mut world);
    assert_eq!(found(&mut world), [(0, 1), (2, 0)]);
    let first = world.collect().unwrap();
    assert_eq!((first.orphans, first.forged), (0, 1));
    world.pass(Duration::from_secs(60));
    assert_eq!(found(&mut world), [(0, 1), (1, 1)]);
    world.days(1);
    assert_eq!(world.collect().unwrap().orphans, 1);
    world.days(2);
    world.collect().unwrap();
    // The forged mail has left as the older one of an equal subject.
    assert_eq!(found(&mut world), [(0, 1), (0, 1)]);
}

/// An unread mail is neither there nor absent.
#[test]
fn slots_that_cannot_be_read_decide_nothing() {
    let mut world = changed_half();
    world.fortune = Box::new(|account, request| match request {
        Request::Read { mailbox, .. } if account.0 == 2 && mailbox == "head" => Luck::Lost,
        _ => Luck::Good,
    });
    let before = world.shelf(2, "head").mails.len();
    assert_eq!(world.collect().unwrap().orphans, 0);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.shelf(2, "head").mails.len(), before);
    world.fortune = Box::new(|_, _| Luck::Good);
    world.days(1);
    assert_eq!(world.collect().unwrap().orphans, 1);
}
