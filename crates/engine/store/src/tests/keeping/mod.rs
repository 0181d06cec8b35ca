//! Expunged messages and deleted mailboxes are kept, come back, and go.

mod cuts;
mod model;

use super::reclaiming::{add, expunge, noise, reclaim};
use super::repairing::repair;
use super::*;
use crate::{
    Copied, Excess, FlagMode, KeepLimit, KeptMailbox, KeptPiece, Keyword, Position, SystemFlags,
    Uid,
};

const ALL: KeepLimit = KeepLimit {
    before: Position(0),
    messages: u64::MAX,
    octets: u64::MAX,
    excess: Excess {
        messages: false,
        octets: false,
    },
};
const NOTHING: KeepLimit = KeepLimit {
    before: Position(u64::MAX),
    ..ALL
};

/// A store that keeps expunged messages.
fn keeping() -> Bench {
    let mut bench = Bench::new();
    bench.store.set_keep_expunged(true);
    bench
}

fn keepers(store: &mut Tested) -> Vec<KeptMailbox> {
    let keepers = store.kept_mailboxes(&account("ann")).unwrap();
    safe(store, keepers)
}

/// All pieces of a mailbox.
fn pieces(store: &mut Tested, id: MailboxId) -> Vec<KeptPiece> {
    let (mut pieces, mut after) = (Vec::new(), None);
    loop {
        let piece = store.kept_after(id, after).unwrap();
        let Some(piece) = safe(store, piece) else {
            return pieces;
        };
        assert!(after.is_none_or(|after| after < piece.at));
        assert!(!piece.messages.is_empty());
        after = Some(piece.at);
        pieces.push(piece);
    }
}

/// Brings everything of a mailbox back.
fn bring_all(store: &mut Tested, from: MailboxId, to: MailboxId) -> Vec<Copied> {
    let pieces = pieces(store, from);
    let bring = |piece: &KeptPiece| {
        let uids: Vec<_> = piece.messages.iter().map(|message| message.uid).collect();
        let back = store.undelete(from, piece.at, &uids, to, QuotaLimit::default());
        safe(store, back.unwrap())
    };
    pieces.iter().map(bring).collect()
}

fn let_go(store: &mut Tested, limit: &KeepLimit) -> (u64, u64) {
    let (mut messages, mut octets) = (0, 0);
    let mut limit = *limit;
    loop {
        let done = store.let_go(&account("ann"), None, &limit).unwrap();
        let done = safe(store, done);
        limit.excess = done.excess;
        messages += done.messages;
        octets += done.octets;
        if !done.more {
            let kept = keepers(store);
            let kept: u64 = kept.iter().map(|keeper| keeper.messages).sum();
            assert_eq!(kept, done.kept_messages);
            assert_eq!(done.oldest.is_some(), kept > 0);
            return (messages, octets);
        }
    }
}

fn whole(bench: &mut Bench) {
    let report = bench.store.check_all().unwrap();
    assert_eq!(report.findings, []);
}

fn uids(numbers: impl IntoIterator<Item = u32>) -> Vec<Uid> {
    numbers.into_iter().filter_map(Uid::new).collect()
}

#[test]
fn expunged_messages_come_back_as_new_ones() {
    let mut bench = keeping();
    let inbox = bench.inbox;
    let flags = Flags {
        system: SystemFlags::FLAGGED,
        keywords: vec![Keyword::new("$Work").unwrap()],
    };
    let target = Target {
        flags,
        fields: RecipientFields {
            return_path: Some(b"a@demo.test".as_slice().into()),
            delivered_to: None,
        },
        ..target(inbox)
    };
    let added = bench.store.deliver(&prepared(7), &[target], operation(7));
    safe(&mut bench.store, added.unwrap()).remove(0).unwrap();
    bench.fill(inbox, 8..=9);
    let before = bench.read(inbox);
    let date = bench.snapshot(inbox).get(0).unwrap().internal_date;
    expunge(&mut bench, &uids([1, 3]));
    for forget in [false, true] {
        bench.reopen(forget);
        assert_eq!(bench.read(inbox).len(), 1);
        assert_eq!(bench.store.quota(&account("ann")).unwrap().messages, 1);
        let keeper = keepers(&mut bench.store).remove(0);
        let octets = (before[0].1.len() + before[2].1.len()) as u64;
        assert_eq!((keeper.messages, keeper.octets), (2, octets));
        assert_eq!((keeper.name, keeper.deleted), (MailboxName::inbox(), None));
        let piece = pieces(&mut bench.store, inbox).remove(0);
        assert_eq!(piece.expunged, NOW);
        assert_eq!(piece.messages[0].uid, Uid::FIRST);
        whole(&mut bench);
    }
    let back = bring_all(&mut bench.store, inbox, inbox);
    assert_eq!(back[0].to, uids([4, 5]));
    let now = bench.read(inbox);
    assert_eq!(now[1], (4, before[0].1.clone()));
    assert_eq!(now[2], (5, before[2].1.clone()));
    let snapshot = bench.snapshot(inbox);
    let message = *snapshot.get(1).unwrap();
    assert_eq!(message.flags, SystemFlags::FLAGGED);
    assert_eq!((message.keywords, message.internal_date), (1, date));
    assert_eq!(keepers(&mut bench.store), []);
    // The same again adds none.
    assert_eq!(bring_all(&mut bench.store, inbox, inbox), []);
    for forget in [false, true] {
        bench.reopen(forget);
        assert_eq!(bench.read(inbox), now);
        whole(&mut bench);
    }
}

/// Nothing is kept of copies that are taken back, of moved messages, and while nothing is to be kept.
#[test]
fn only_expunged_messages_are_kept() {
    let mut bench = keeping();
    let (inbox, other) = (bench.inbox, bench.create("Other"));
    bench.fill(inbox, 1..=3);
    let quota = QuotaLimit::default();
    let moved = bench
        .store
        .move_to(inbox, &uids([1]), other, quota, operation(100));
    drop(safe(&mut bench.store, moved.unwrap()));
    let copied = bench
        .store
        .copy(inbox, &uids([2]), other, quota, operation(101));
    let copied = safe(&mut bench.store, copied.unwrap());
    let taken = bench.store.take_back(other, &copied.to).unwrap();
    safe(&mut bench.store, taken);
    let empty = bench.create("Empty");
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Empty"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    assert_eq!(keepers(&mut bench.store), []);
    assert!(bench.store.kept_after(empty, None).is_err());
    bench.store.set_keep_expunged(false);
    expunge(&mut bench, &uids([2]));
    assert_eq!(keepers(&mut bench.store), []);
    bench.store.set_keep_expunged(true);
    expunge(&mut bench, &uids([3]));
    assert_eq!(keepers(&mut bench.store).len(), 1);
    assert_eq!(bench.store.take_keepers(), [account("ann")]);
    assert_eq!(bench.store.take_keepers(), []);
}

#[test]
fn messages_come_back_to_another_mailbox_and_within_the_quota() {
    let mut bench = keeping();
    let (inbox, other) = (bench.inbox, bench.create("Andere Ablage"));
    bench.fill(inbox, 1..=4);
    expunge(&mut bench, &uids([1, 2, 3]));
    let at = pieces(&mut bench.store, inbox)[0].at;
    let quota = QuotaLimit {
        octets: None,
        messages: Some(2),
    };
    let over = bench.store.undelete(inbox, at, &uids([1, 2]), other, quota);
    assert_eq!(over.unwrap_err(), StoreError::OverQuota);
    let back = bench
        .store
        .undelete(inbox, at, &uids([2, 99]), other, quota);
    let back = safe(&mut bench.store, back.unwrap());
    assert_eq!((back.to, back.from), (uids([1]), uids([2])));
    let again = bench.store.undelete(inbox, at, &uids([2]), other, quota);
    assert_eq!(safe(&mut bench.store, again.unwrap()).to, []);
    assert_eq!(bench.read(other).len(), 1);
    assert_eq!(keepers(&mut bench.store)[0].messages, 2);
    let bob = bench.store.open_account(&account("bob"), NOW).unwrap();
    let bob = safe(&mut bench.store, bob);
    let foreign = bench.store.undelete(inbox, at, &uids([1]), bob, quota);
    assert_eq!(foreign.unwrap_err(), StoreError::OtherAccount);
    bring_all(&mut bench.store, inbox, other);
    bench.reopen(true);
    assert_eq!(bench.read(other).len(), 3);
    whole(&mut bench);
}

#[test]
fn a_deleted_mailbox_comes_back_under_any_name() {
    let mut bench = keeping();
    let inbox = bench.inbox;
    let old = bench.create("Entwürfe alt");
    bench.fill(old, 1..=300);
    // Some were expunged before the deletion.
    let flags = Flags {
        system: SystemFlags::DELETED,
        keywords: Vec::new(),
    };
    let stored = bench
        .store
        .store_flags(old, &uids(5..8), FlagMode::Add, &flags, None);
    safe(&mut bench.store, stored.unwrap());
    let gone = bench.store.expunge(old, None, NOW).unwrap();
    assert_eq!(safe(&mut bench.store, gone).len(), 3);
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Entwürfe alt"), NOW);
    let published = sync(&mut bench.store);
    assert!(published.mailboxes.contains(&old));
    drop(deleted.unwrap());
    for forget in [false, true] {
        // No session reaches it.
        assert_eq!(bench.store.status(old).unwrap_err(), StoreError::NoMailbox);
        assert!(bench.store.snapshot(old).is_err());
        assert_eq!(bench.store.quota(&account("ann")).unwrap().messages, 0);
        let keeper = keepers(&mut bench.store).remove(0);
        assert_eq!(keeper.name, name("Entwürfe alt"));
        assert_eq!((keeper.deleted, keeper.messages), (Some(NOW), 300));
        whole(&mut bench);
        bench.reopen(forget);
        drop(bench.store.list(&account("ann")).unwrap());
    }
    assert!(!bench.store.is_emptying() || bench.store.empty_some().is_ok());
    let again = bench.create("Entwürfe alt");
    assert_ne!(again, old);
    let back = bring_all(&mut bench.store, old, again);
    let counts: Vec<_> = back.iter().map(|piece| piece.to.len()).collect();
    assert_eq!(counts, [3, 253, 44]);
    assert_eq!(bench.read(again).len(), 300);
    assert_eq!(keepers(&mut bench.store), []);
    // Nothing is left of it.
    empty(&mut bench.store);
    assert!(bench.store.kept_after(old, None).is_err());
    assert_eq!(bench.read(inbox).len(), 0);
    bench.reopen(true);
    whole(&mut bench);
    let (report, _) = repair(&bench.disk, None, false).unwrap();
    assert_eq!((report.mended, report.kept_lost), (0, 0));
}

/// Twenty rows of one message each are more than one step removes.
#[test]
fn too_many_go_down_to_ninety_percent_of_small_limits_and_over_steps() {
    let mut bench = keeping();
    let inbox = bench.inbox;
    bench.fill(inbox, 1..=21);
    for uid in 1..=21 {
        expunge(&mut bench, &uids(uid..uid + 1));
    }
    let limit = |messages| KeepLimit { messages, ..ALL };
    assert_eq!(let_go(&mut bench.store, &limit(20)).0, 3);
    // The first step ends at ten, which is no more than the limit.
    assert_eq!(let_go(&mut bench.store, &limit(10)).0, 9);
    assert_eq!(let_go(&mut bench.store, &limit(9)).0, 0);
    assert_eq!(let_go(&mut bench.store, &limit(0)).0, 9);
}

#[test]
fn old_ones_go_and_then_the_oldest_of_too_many() {
    let mut bench = keeping();
    let inbox = bench.inbox;
    let old = bench.create("Old");
    bench.fill(inbox, 1..=20);
    bench.fill(old, 31..=35);
    for first in [1, 5] {
        expunge(&mut bench, &uids(first..first + 4));
    }
    let mark = bench.store.end();
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    for first in [9, 13] {
        expunge(&mut bench, &uids(first..first + 4));
    }
    assert_eq!(let_go(&mut bench.store, &ALL), (0, 0));
    let before = KeepLimit {
        before: mark,
        ..ALL
    };
    assert_eq!(let_go(&mut bench.store, &before).0, 8);
    let oldest = pieces(&mut bench.store, inbox).remove(0);
    assert_eq!(oldest.messages[0].uid.get(), 9);
    // Ten are too many for the limit: the deleted mailbox is the oldest, and goes as a whole.
    let limit = KeepLimit {
        messages: 10,
        ..ALL
    };
    assert_eq!(let_go(&mut bench.store, &limit).0, 5);
    empty(&mut bench.store);
    assert_eq!(keepers(&mut bench.store).len(), 1);
    let octets = KeepLimit {
        octets: keepers(&mut bench.store)[0].octets - 1,
        ..ALL
    };
    assert_eq!(let_go(&mut bench.store, &octets).0, 4);
    bench.reopen(true);
    whole(&mut bench);
    assert_eq!(let_go(&mut bench.store, &NOTHING).0, 4);
    assert_eq!(bench.read(inbox).len(), 4);
    whole(&mut bench);
    let (messages, octets) = bench.store.kept_since_opening();
    assert_eq!(messages, -4);
    assert!(octets < 0);
}

#[test]
fn a_removed_account_keeps_nothing() {
    let mut bench = keeping();
    let inbox = bench.inbox;
    let old = bench.create("Old");
    bench.fill(inbox, 1..=3);
    bench.fill(old, 4..=6);
    expunge(&mut bench, &uids([1]));
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    assert_eq!(bench.store.kept_since_opening().0, 4);
    let removed = bench.store.remove_account(&account("ann")).unwrap();
    assert_eq!(safe(&mut bench.store, removed).usage.messages, 2);
    empty(&mut bench.store);
    assert_eq!(bench.store.kept_since_opening(), (0, 0));
    assert_eq!(keepers(&mut bench.store), []);
    bench.reopen(true);
    let report = bench.store.check_all().unwrap();
    assert_eq!((report.findings, report.bodies), (Vec::new(), 0));
}

/// Reclaiming leaves what is kept, and frees it when it goes.
#[test]
fn room_comes_back_when_kept_messages_go() {
    let mut bench = keeping();
    let (inbox, old) = (bench.inbox, bench.create("Old"));
    for number in 1..=60 {
        add(&mut bench, inbox, number, number);
    }
    for number in 61..=70 {
        add(&mut bench, old, number, number);
    }
    expunge(&mut bench, &uids(1..=20));
    let mark = bench.store.end();
    expunge(&mut bench, &uids(21..=40));
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    reclaim(&mut bench.store).unwrap();
    for forget in [false, true] {
        bench.reopen(forget);
        let report = bench.store.check_all().unwrap();
        assert_eq!((report.findings, report.bodies), (Vec::new(), 70));
        assert_eq!((report.messages, report.kept_messages), (20, 50));
    }
    let dead = bench.store.count_dead().unwrap();
    let before = KeepLimit {
        before: mark,
        ..ALL
    };
    assert_eq!(let_go(&mut bench.store, &before).0, 20);
    assert!(bench.store.count_dead().unwrap() > dead + 30_000);
    assert!(reclaim(&mut bench.store).unwrap() > 30_000);
    bench.reopen(true);
    let report = bench.store.check_all().unwrap();
    assert_eq!((report.findings, report.bodies), (Vec::new(), 50));
    let kept = pieces(&mut bench.store, inbox).remove(0);
    let mut body = bench
        .store
        .body_reader()
        .open(kept.messages[0].blob)
        .unwrap();
    assert_eq!(*body.hash(), noise(21).hash);
    assert!(body.message().is_ok());
}

/// A message that is expunged while references are marked keeps its body.
#[test]
fn expunging_while_room_is_reclaimed_keeps_bodies() {
    for stop in 0..12 {
        let mut bench = keeping();
        let inbox = bench.inbox;
        let numbers: Vec<_> = (1..=40).map(|n| add(&mut bench, inbox, n, n)).collect();
        bench.store.set_keep_expunged(false);
        expunge(&mut bench, &numbers[..30]);
        bench.store.set_keep_expunged(true);
        let mut step = 0;
        loop {
            if step == stop {
                expunge(&mut bench, &numbers[30..]);
            }
            step += 1;
            match bench.store.reclaim(1).unwrap() {
                crate::Reclaim::Working => {}
                crate::Reclaim::Job(job) => drop(bench.store.finish_reclaim(job.run()).unwrap()),
                crate::Reclaim::Done(_) => break,
            }
        }
        let report = bench.store.check_all().unwrap();
        assert_eq!(report.findings, [], "stopped at {stop}");
        assert_eq!(report.bodies, 10);
    }
}

/// A program that knew nothing of kept messages writes counters without their number.
#[test]
fn numbers_that_an_older_program_dropped_are_counted_again() {
    let mut bench = keeping();
    let inbox = bench.inbox;
    bench.fill(inbox, 1..=3);
    expunge(&mut bench, &uids([1, 2]));
    let mut edit = bench.store.edit(inbox).unwrap();
    edit.head.kept = None;
    bench.store.commit_edit(edit).unwrap();
    sync(&mut bench.store);
    bench.reopen(false);
    assert_eq!(keepers(&mut bench.store)[0].messages, 2);
    whole(&mut bench);
}

/// A repair takes kept messages out whose bodies are gone, and nothing else.
#[test]
fn a_repair_knows_of_kept_messages() {
    let mut bench = keeping();
    let (inbox, old) = (bench.inbox, bench.create("Old"));
    for number in 1..=30 {
        add(&mut bench, inbox, number, number);
    }
    for number in 31..=40 {
        add(&mut bench, old, number, number);
    }
    expunge(&mut bench, &uids(1..=20));
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    let kept = pieces(&mut bench.store, inbox).remove(0);
    let lost = [
        kept.messages[3].blob,
        pieces(&mut bench.store, old)[0].messages[2].blob,
    ];
    for name in vere_ports::storage::Storage::list(&bench.disk).unwrap() {
        let mut data = bench.disk.file(&name).unwrap();
        let first = u64::from_str_radix(name.trim_end_matches(".log"), 16).unwrap();
        for blob in lost {
            let at = blob.0.checked_sub(first).map(|at| at as usize + 64 + 60);
            if let Some(octet) = at.and_then(|at| data.get_mut(at)) {
                *octet ^= 1;
            }
        }
        bench.disk.set_file(&name, Some(data));
    }
    let (report, meta) = repair(&bench.disk, Some(&bench.meta), false).unwrap();
    assert_eq!((report.kept_lost, report.lost.len()), (2, 0));
    assert_eq!(report.names_made, []);
    bench.store = Store::open(bench.disk.clone(), meta, config()).unwrap().0;
    let report = bench.store.check_all().unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.messages, report.kept_messages), (10, 28));
    assert_eq!(bring_all(&mut bench.store, inbox, inbox)[0].to.len(), 19);
    bring_all(&mut bench.store, old, inbox);
    assert_eq!(bench.read(inbox).len(), 38);
}
