//! A group whose log is damaged: given up, filled again by its owner, and what was set aside let go of.

use vere_spoolwire::{
    Change, Charter, FLAG_KEPT, Hello, KeptGrants, Role, Txn, encode_change, encode_kept_create,
    encode_reset,
};
use vere_units::Secret;

use super::peer::{HELLO, Peer, READER, Site, encoded, owner_of, request};
use super::*;
use crate::node::{Account, Notice};

const QUEUE: QueueId = QueueId(3);

fn record(id: u64) -> Change<'static> {
    Change::Put {
        queue: QUEUE,
        id: RecordId(id),
        meta: b"meta",
        body: Some(b"body"),
    }
}

/// What an owner sends to fill a group whose last transaction is `through`: a queue with records 1 to 5.
fn copy(through: u64) -> Vec<u8> {
    let queue = QueueStat {
        id: QUEUE,
        name: "q".to_owned(),
        limits: QueueLimits::UNLIMITED,
        readers: KeptGrants::default(),
        first: RecordId(1),
        next: RecordId(6),
        length: 5,
        bytes: 40,
    };
    encoded(|out| {
        encode_reset(out, Txn(through));
        encode_kept_create(out, Txn(through), &queue);
        for id in 1..=5 {
            encode_change(out, Txn(through), &record(id), FLAG_KEPT);
        }
    })
}

fn complete() -> Vec<u8> {
    request(Request::Complete, 70)
}

/// A synced group of an owner in epoch 2, with what [`copy`] copies.
fn filled() -> Site {
    let mut site = Site::new(Some(MemoryLog::new(1 << 10)));
    let (mut owner, _) = site.welcomed(owner_of(7, 2));
    owner.send(&mut site.node, &[copy(10), complete()].concat());
    site.settle();
    assert!(is_completed(&mut site, &mut owner));
    site
}

fn is_completed(site: &mut Site, owner: &mut Peer) -> bool {
    let answers = owner.answers(&mut site.node);
    let alive = |answer: &Answer| matches!(answer, Answer::Alive { seq: Seq(70), .. });
    answers.iter().any(alive)
}

fn is_aside(site: &Site) -> bool {
    site.log.as_ref().unwrap().0.borrow().aside.is_some()
}

/// The log is found damaged.
fn damage(site: &mut Site) {
    site.log.as_ref().unwrap().0.borrow_mut().damaged = true;
    site.node.end_turn(now());
    let Some(Notice::Damaged { group, reason }) = site.node.take_notice() else {
        panic!("nothing was found");
    };
    assert_eq!((&*group, &*reason), ("gateway", "test"));
    assert_eq!(site.node.failure(), None);
}

#[test]
fn it_is_given_up_and_filled_again_by_its_owner() {
    let mut site = filled();
    let before = site.contents();
    let (mut owner, _) = site.welcomed(owner_of(7, 2));
    let (mut reader, _) = site.welcomed(READER);
    damage(&mut site);
    for peer in [&mut owner, &mut reader] {
        assert_eq!(peer.closed(&mut site.node), Some(CloseReason::LogFailed));
        site.node.closed(peer.id);
    }
    assert_eq!(site.node.take_notice(), None, "told once");

    let (mut owner, welcome) = site.welcomed(owner_of(7, 2));
    assert!(welcome.syncing, "it does not count");
    assert_eq!(site.contents(), before, "it may be all that is left");
    assert!(!is_aside(&site));
    owner.send(&mut site.node, &copy(10));
    site.settle();
    assert!(is_aside(&site) && site.stat().damaged);
    owner.send(&mut site.node, &complete());
    site.node.end_turn(now());
    assert!(is_aside(&site), "not all of it is synced");
    site.settle();
    assert!(is_completed(&mut site, &mut owner));
    assert!(!is_aside(&site) && !site.stat().damaged);
    let group = "gateway".to_owned();
    assert_eq!(site.node.take_notice(), Some(Notice::Repaired { group }));
    assert_eq!(site.contents(), before);
    owner.send(
        &mut site.node,
        &encoded(|out| encode_change(out, Txn(11), &record(6), 0)),
    );
    site.settle();
    site.crash(0);
    let (_, welcome) = site.welcomed(owner_of(7, 2));
    assert!(!welcome.syncing && welcome.synced);
    assert_eq!(welcome.processed, Txn(11));
    assert_eq!(site.stat().records, 6);
}

#[test]
fn what_is_filled_halfway_stays_incomplete() {
    let mut site = filled();
    damage(&mut site);
    let (owner, _) = site.welcomed(owner_of(7, 2));
    owner.send(&mut site.node, &copy(10));
    site.settle();
    site.crash(0);
    let log = site.log.clone().unwrap();
    site.node.set_log_store(log);
    let (mut owner, welcome) = site.welcomed(owner_of(7, 2));
    assert!(welcome.syncing && site.stat().damaged && is_aside(&site));
    owner.send(&mut site.node, &[copy(12), complete()].concat());
    site.settle();
    assert!(is_completed(&mut site, &mut owner) && !is_aside(&site));
}

#[test]
fn what_was_whole_before_a_crash_lets_go_of_the_rest_after_it() {
    let mut site = filled();
    let old = site.log.as_ref().unwrap().0.borrow().clone();
    site.log.as_ref().unwrap().0.borrow_mut().aside = Some(Box::new(old));
    site.crash(0);
    let log = site.log.clone().unwrap();
    site.node.set_log_store(log);
    assert!(is_aside(&site) && site.stat().damaged);
    site.settle();
    assert!(!is_aside(&site) && !site.stat().damaged);
}

#[test]
fn a_duty_that_comes_before_is_the_next_logs() {
    for log in [true, false] {
        let mut site = filled();
        damage(&mut site);
        let (mut owner, _) = site.welcomed(owner_of(7, 2));
        let duty = request(Request::Duty { log }, 60);
        owner.send(&mut site.node, &[duty, copy(10), complete()].concat());
        site.settle();
        let answers = owner.answers(&mut site.node);
        for wanted in [60, 70] {
            let alive =
                |answer: &Answer| matches!(answer, Answer::Alive { seq, .. } if seq.0 == wanted);
            assert!(answers.iter().any(alive), "{wanted}: {answers:?}");
        }
        assert_eq!(site.stat().synced, log);
        assert!(!site.stat().syncing && !is_aside(&site));
        site.crash(0);
        assert_eq!(site.stat().syncing, !log);
    }
}

#[test]
fn without_room_for_another_log_it_is_tried_again() {
    let mut site = filled();
    damage(&mut site);
    site.log.as_ref().unwrap().0.borrow_mut().capacity = 0;
    let (mut owner, _) = site.welcomed(owner_of(7, 2));
    owner.send(&mut site.node, &copy(10));
    assert_eq!(owner.closed(&mut site.node), Some(CloseReason::LogFull));
    site.node.closed(owner.id);
    site.log.as_ref().unwrap().0.borrow_mut().capacity = u64::MAX;
    let (mut owner, welcome) = site.welcomed(owner_of(7, 2));
    assert!(welcome.syncing);
    owner.send(&mut site.node, &[copy(10), complete()].concat());
    site.settle();
    assert!(is_completed(&mut site, &mut owner));
    assert_eq!(site.stat().records, 5);
}

#[test]
fn what_waited_for_room_in_it_does_not_wait_for_ever() {
    for room_first in [false, true] {
        let mut site = filled();
        let (mut owner, _) = site.welcomed(owner_of(7, 2));
        let set_room = |site: &Site, octets| {
            site.log.as_ref().unwrap().0.borrow_mut().capacity = octets;
        };
        set_room(&site, 1);
        let put = encoded(|out| encode_change(out, Txn(11), &record(6), 0));
        owner.send(&mut site.node, &put);
        site.settle();
        assert!(!site.node.takes_input(owner.id), "there is no room");
        if room_first {
            set_room(&site, u64::MAX);
        }
        damage(&mut site);
        assert_eq!(owner.closed(&mut site.node), Some(CloseReason::LogFailed));
        site.node.closed(owner.id);
        set_room(&site, u64::MAX);

        let (mut owner, welcome) = site.welcomed(owner_of(7, 2));
        assert!(welcome.syncing, "it does not count");
        owner.send(&mut site.node, &[copy(10), complete()].concat());
        site.settle();
        assert!(is_completed(&mut site, &mut owner));
        assert!(!is_aside(&site) && !site.stat().damaged);
        assert_eq!(site.contents(), filled().contents());
    }
}

/// A node that starts and cannot read the log of its group; `head`: what can be read of it.
fn unreadable(head: Option<&[u8]>) -> Site {
    let log = MemoryLog::new(1 << 10);
    let account = |name: &str, seed, makes_groups| Account {
        name: name.to_owned(),
        secret: Secret::new([seed; 32]),
        makes_groups,
    };
    let mut config = Site::new(None).config;
    config
        .accounts
        .extend([account("west", 2, true), account("watch", 3, false)]);
    let mut site = Site::with(config, Some(log));
    let reason = "flipped".to_owned();
    let begun = site.node.begin_again("gateway", head, reason.clone());
    assert_eq!(begun, Ok(()));
    let group = "gateway".to_owned();
    let notice = Notice::Damaged { group, reason };
    assert_eq!(site.node.take_notice(), Some(notice));
    site
}

fn hello_of(account: &str, role: Role) -> Hello<'_> {
    Hello {
        account,
        role,
        charter: Charter::OWN,
        ..HELLO
    }
}

fn says(site: &mut Site, hello: Hello<'_>, seed: u8) -> Option<CloseReason> {
    let mut peer = Peer::new(&mut site.node).unwrap();
    let secret = Secret::new([seed; 32]);
    match peer.say_with(&mut site.node, hello, &secret) {
        Some(welcome) => {
            assert!(welcome.syncing);
            None
        }
        None => peer.closed(&mut site.node),
    }
}

#[test]
fn a_log_that_cannot_be_read_begins_again() {
    let mut before = filled();
    let (owner, _) = before.welcomed(owner_of(7, 2));
    for id in 6..60 {
        let put = encoded(|out| encode_change(out, Txn(id + 5), &record(id), 0));
        owner.send(&mut before.node, &put);
        before.settle();
    }
    let head = before.log.as_ref().unwrap().0.borrow();
    let (_, newest) = head.segments.last_key_value().unwrap();
    let mut site = unreadable(Some(&newest.head));
    // It is still the same account's and the same owner's.
    let west = hello_of("west", Role::Owner);
    assert_eq!(says(&mut site, west, 2), Some(CloseReason::MayNotOwn));
    assert_eq!(site.rejected(owner_of(6, 1)), CloseReason::Fenced);
    let (mut owner, welcome) = site.welcomed(owner_of(7, 2));
    assert!(welcome.syncing && welcome.processed > Txn(0));
    owner.send(&mut site.node, &[copy(10), complete()].concat());
    site.settle();
    assert!(is_completed(&mut site, &mut owner));
    assert_eq!(site.contents(), filled().contents());
    site.crash(0);
    assert_eq!(site.stat().records, 5);
}

#[test]
fn when_not_even_a_head_can_be_read_nobody_has_it_but_who_runs_the_nodes() {
    for crash in [false, true] {
        let mut site = unreadable(None);
        if crash {
            site.crash(0);
        }
        let watch = hello_of("watch", Role::Owner);
        assert_eq!(says(&mut site, watch, 3), Some(CloseReason::MayNotOwn));
        let reader = hello_of("west", Role::Reader);
        assert_eq!(says(&mut site, reader, 2), Some(CloseReason::NoGroup));
        let west = hello_of("west", Role::Owner);
        assert_eq!(says(&mut site, west, 2), Some(CloseReason::MayNotOwn));
        let (_, welcome) = site.welcomed(HELLO);
        assert!(welcome.syncing);
        assert_eq!(says(&mut site, west, 2), Some(CloseReason::MayNotOwn));
        assert!(site.stat().processed > Txn(0), "not a group that never was");
        site.settle();
        site.crash(0);
        assert_eq!(says(&mut site, reader, 2), Some(CloseReason::MayNotRead));
        assert!(site.welcomed(HELLO).1.syncing);
    }
}
