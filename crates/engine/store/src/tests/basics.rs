//! Every operation, and that it is still so after the store was opened again.

use std::collections::BTreeSet;

use vere_ports::storage::Storage as _;

use super::*;
use crate::{FlagMode, Keyword, ModSeq, Sharing, SpecialUse, SystemFlags, Uid};

fn uid(number: u32) -> Uid {
    Uid::new(number).unwrap()
}

fn flags(system: SystemFlags, keywords: &[&str]) -> Flags {
    Flags {
        system,
        keywords: keywords
            .iter()
            .map(|text| Keyword::new(text).unwrap())
            .collect(),
    }
}

#[test]
fn a_message_to_many_is_written_once() {
    let mut bench = Bench::new();
    let boxes: Vec<_> = (0..15)
        .map(|n| {
            let opened = bench
                .store
                .open_account(&account(&format!("user{n}")), NOW)
                .unwrap();
            safe(&mut bench.store, opened)
        })
        .collect();
    let body = Prepared::new(
        &[&b"Subject: x\r\n\r\n"[..], &[b'x'; 300]].concat(),
        &[],
        &[],
    )
    .unwrap();
    let before = bench.store.end().0;
    let targets: Vec<_> = boxes
        .iter()
        .enumerate()
        .map(|(n, id)| {
            let mut target = target(*id);
            target.fields.return_path = Some(b"from@demo.test".as_slice().into());
            target.fields.delivered_to = Some(format!("user{n}@demo.test").into_bytes().into());
            target
        })
        .collect();
    let results = bench.store.deliver(&body, &targets, operation(1)).unwrap();
    let results = safe(&mut bench.store, results);
    assert!(
        results
            .iter()
            .all(|result| result.as_ref().is_ok_and(|added| added.uid == Uid::FIRST))
    );
    let written = bench.store.end().0 - before;
    assert!(
        written < 15 * 600,
        "{written} octets for 15 references and one body"
    );
    for (n, id) in boxes.iter().enumerate() {
        let read = bench.read(*id);
        let text = format!(
            "Return-Path: <from@demo.test>\r\nDelivered-To: user{n}@demo.test\r\nSubject: x\r\n\r\n"
        );
        assert!(read[0].1.starts_with(text.as_bytes()));
    }
    let blobs: BTreeSet<_> = boxes
        .iter()
        .map(|id| bench.snapshot(*id).get(0).unwrap().blob)
        .collect();
    assert_eq!(blobs.len(), 1);
}

#[test]
fn equal_content_is_shared_within_an_account_only() {
    let mut bench = Bench::new();
    let sent = bench.create("Sent");
    let other = bench.store.open_account(&account("bob"), NOW).unwrap();
    let other = safe(&mut bench.store, other);
    for (mailbox, id) in [(bench.inbox, 1), (sent, 2), (other, 3)] {
        bench.try_deliver(mailbox, 7, operation(id)).unwrap();
    }
    let (inbox, sent) = (bench.snapshot(bench.inbox), bench.snapshot(sent));
    let other = bench.snapshot(other);
    assert_eq!(inbox.get(0).unwrap().blob, sent.get(0).unwrap().blob);
    assert_ne!(inbox.get(0).unwrap().blob, other.get(0).unwrap().blob);
}

#[test]
fn all_accounts_share_where_they_are_to() {
    let mut bench = Bench::new();
    let config = StoreConfig {
        sharing: Sharing::All,
        ..config()
    };
    let opened = Store::open(bench.disk.clone(), bench.meta.clone(), config);
    bench.store = opened.unwrap().0;
    let bob = bench.store.open_account(&account("bob"), NOW).unwrap();
    let bob = safe(&mut bench.store, bob);
    bench.try_deliver(bench.inbox, 7, operation(1)).unwrap();
    bench.try_deliver(bob, 7, operation(2)).unwrap();
    let of = |snapshot: Snapshot| snapshot.get(0).unwrap().blob;
    assert_eq!(of(bench.snapshot(bench.inbox)), of(bench.snapshot(bob)));
    // The place of the hints is no mailbox to whoever looks through everything.
    assert_eq!(bench.store.check_all().unwrap().findings, []);
    let uid = bench.snapshot(bench.inbox).get(0).unwrap().uid;
    super::reclaiming::expunge(&mut bench, &[uid]);
    super::reclaiming::reclaim(&mut bench.store).unwrap();
    assert_eq!(bench.read(bob)[0].1, message(7));
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

#[test]
fn equal_content_is_shared_before_the_first_one_is_synced() {
    let mut bench = Bench::new();
    let deliver = |bench: &mut Bench, id| {
        let targets = [target(bench.inbox)];
        bench.store.deliver(&prepared(7), &targets, operation(id))
    };
    let first = deliver(&mut bench, 1).unwrap();
    let second = deliver(&mut bench, 2).unwrap();
    drop(safe(&mut bench.store, first));
    drop(safe(&mut bench.store, second));
    drop(deliver(&mut bench, 3).unwrap());
    let snapshot = bench.snapshot(bench.inbox);
    let blobs: BTreeSet<_> = snapshot.iter_from(0).map(|each| each.blob).collect();
    assert_eq!((snapshot.len(), blobs.len()), (3, 1));
}

/// What comes in again may be the only good copy.
#[test]
fn a_damaged_body_is_not_shared() {
    let mut bench = Bench::new();
    bench.deliver(bench.inbox, 7);
    let needle = b"so it goes";
    for name in bench.disk.list().unwrap() {
        let mut data = bench.disk.file(&name).unwrap();
        if let Some(at) = memchr::memmem::find(&data, needle) {
            data[at] ^= 1;
            bench.disk.set_file(&name, Some(data));
        }
    }
    bench.reopen(false);
    bench.try_deliver(bench.inbox, 7, operation(8)).unwrap();
    let snapshot = bench.snapshot(bench.inbox);
    let reader = bench.store.body_reader();
    let read = snapshot.iter_from(0);
    let read: Vec<_> = read.map(|each| reader.open(each.blob)?.message()).collect();
    assert!(matches!(read[0], Err(StoreError::Damaged(_))), "{read:?}");
    assert_eq!(read[1], Ok(message(7)));
}

#[test]
fn messages_that_refer_to_each_other_are_a_thread() {
    let mut bench = Bench::new();
    let sent = bench.create("Sent");
    let threads: Vec<_> = [
        (bench.inbox, &[1][..]),
        (sent, &[2, 1]),
        (bench.inbox, &[3, 9, 2]),
        (sent, &[4, 8]),
    ]
    .into_iter()
    .enumerate()
    .map(|(n, (mailbox, references))| {
        let body = Prepared::new(&message(n as u64), &[], references).unwrap();
        let added = bench
            .store
            .deliver(&body, &[target(mailbox)], operation(n as u64))
            .unwrap();
        let added = safe(&mut bench.store, added).remove(0).unwrap();
        bench.snapshot(mailbox).find(added.uid).unwrap().thread
    })
    .collect();
    assert_eq!(threads[..2], threads[1..3]);
    assert_ne!(threads[0], threads[3]);
}

#[test]
fn an_operation_is_done_once_and_its_id_is_not_for_other_content() {
    let mut bench = Bench::new();
    let first = bench.deliver(bench.inbox, 1);
    assert_eq!(bench.deliver(bench.inbox, 1), first);
    bench.reopen(false);
    assert_eq!(bench.deliver(bench.inbox, 1), first);
    let guessed = bench.try_deliver(bench.inbox, 2, operation(1));
    assert_eq!(guessed, Err(StoreError::IdCollision));
    assert_eq!(bench.snapshot(bench.inbox).len(), 1);
}

#[test]
fn everything_is_there_again_from_the_log_alone() {
    let mut bench = Bench::new();
    let (inbox, archive) = (bench.inbox, bench.create("Archive/2024"));
    bench.fill(inbox, 1..=120);
    let seen = flags(SystemFlags::SEEN, &["Work"]);
    let stored = bench
        .store
        .store_flags(inbox, &[uid(3), uid(5)], FlagMode::Add, &seen, None);
    drop(safe(&mut bench.store, stored.unwrap()));
    let uids: Vec<_> = (10..60).map(uid).collect();
    let moved = bench
        .store
        .move_to(inbox, &uids, archive, QuotaLimit::default(), operation(900));
    assert_eq!(safe(&mut bench.store, moved.unwrap()).from, uids);
    let subscribed = bench
        .store
        .subscribe(&account("ann"), &name("Archive/2024"), true)
        .unwrap();
    safe(&mut bench.store, subscribed);
    let gone =
        bench
            .store
            .create_mailbox(&account("ann"), &name("Old"), Some(SpecialUse::Junk), NOW);
    let gone = safe(&mut bench.store, gone.unwrap());
    bench.deliver(gone, 500);
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW)
        .unwrap();
    safe(&mut bench.store, deleted);
    empty(&mut bench.store);

    let (before, read) = (bench.meta.rows(), bench.read(archive));
    let difference = bench.snapshot(inbox);
    bench.reopen(true);
    let mut hints = before;
    // Which content lies where is a hint, and not in the log.
    hints
        .retain(|(partition, key), _| partition[0] != b'a' || key[0] < crate::rows::keys::CONTENTS);
    assert_eq!(bench.meta.rows(), hints);
    assert_eq!(bench.read(archive), read);
    let now = bench.snapshot(inbox);
    assert_eq!(now.since(&difference), crate::Difference::default());
    assert_eq!(now.status(), difference.status());
    assert_eq!(bench.store.status(gone).unwrap_err(), StoreError::NoMailbox);
    assert_eq!(bench.read(inbox).len(), 70);
}

#[test]
fn flags_count_and_conditions_hold() {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    bench.fill(inbox, 1..=3);
    let at = bench.snapshot(inbox).status();
    assert_eq!((at.messages, at.unseen, at.deleted), (3, 3, 0));
    let seen = flags(SystemFlags::SEEN, &[]);
    let all = [uid(1), uid(2), uid(9)];
    let stored = bench
        .store
        .store_flags(inbox, &all, FlagMode::Add, &seen, None)
        .unwrap();
    let stored = safe(&mut bench.store, stored);
    assert_eq!(stored.changed, [uid(1), uid(2)]);
    assert!(stored.mod_seq > at.highest_mod_seq);
    // Again: nothing changes, no number is used.
    let again = bench
        .store
        .store_flags(inbox, &all, FlagMode::Add, &seen, None)
        .unwrap();
    let again = safe(&mut bench.store, again);
    assert_eq!((again.changed.len(), again.mod_seq), (0, stored.mod_seq));
    // What changed since stays.
    let deleted = flags(SystemFlags::DELETED, &["$Junk"]);
    let since = Some(at.highest_mod_seq);
    let both = [uid(1), uid(3)];
    let stored = bench
        .store
        .store_flags(inbox, &both, FlagMode::Replace, &deleted, since)
        .unwrap();
    let stored = safe(&mut bench.store, stored);
    assert_eq!(
        (stored.changed, stored.modified),
        (vec![uid(3)], vec![uid(1)])
    );
    let snapshot = bench.snapshot(inbox);
    let status = snapshot.status();
    assert_eq!((status.unseen, status.deleted), (1, 1));
    assert_eq!(snapshot.keywords(), [Keyword::new("$JUNK").unwrap()]);
    assert_eq!(snapshot.find(uid(3)).unwrap().keywords, 1);
}

#[test]
fn what_was_expunged_is_known_for_a_while() {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    bench.fill(inbox, 1..=300);
    let deleted = flags(SystemFlags::DELETED, &[]);
    let mut marks: Vec<(ModSeq, Vec<Uid>)> = Vec::new();
    for round in 0..10_u32 {
        let uids: Vec<_> = (0..25).map(|n| uid(round * 25 + n + 1)).collect();
        let stored = bench
            .store
            .store_flags(inbox, &uids, FlagMode::Add, &deleted, None)
            .unwrap();
        let stored = safe(&mut bench.store, stored);
        marks.push((stored.mod_seq, uids.clone()));
        let expunged = bench.store.expunge(inbox, None, NOW).unwrap();
        assert_eq!(safe(&mut bench.store, expunged), uids);
    }
    let status = bench.snapshot(inbox).status();
    assert_eq!((status.messages, status.deleted), (50, 0));
    let mut known = 0;
    for (at, (mod_seq, _)) in marks.iter().enumerate() {
        let expunged = bench.store.expunged_since(inbox, *mod_seq).unwrap();
        match safe(&mut bench.store, expunged) {
            Some(uids) => {
                known += 1;
                assert_eq!(
                    uids,
                    marks[at..]
                        .iter()
                        .flat_map(|(_, uids)| uids.clone())
                        .collect::<Vec<_>>()
                );
            }
            None => assert!(*mod_seq < status.expunged_floor),
        }
    }
    assert!((2..=4).contains(&known), "{known} of 100 UIDs' worth");
}

#[test]
fn names_move_with_those_below_and_validity_rises() {
    let mut bench = Bench::new();
    let ann = account("ann");
    let first = bench.create("a");
    bench.create("a/b");
    bench.create("ab");
    let renamed = bench
        .store
        .rename_mailbox(&ann, &name("a"), &name("c/d"))
        .unwrap();
    safe(&mut bench.store, renamed);
    let list = bench.store.list(&ann).unwrap();
    let list = safe(&mut bench.store, list);
    let names: Vec<_> = list.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["INBOX", "ab", "c/d", "c/d/b"]);
    assert_eq!(list[2].mailbox, Some(first));
    let taken = bench
        .store
        .rename_mailbox(&ann, &name("ab"), &name("c/d/b"))
        .unwrap_err();
    assert_eq!(taken, StoreError::Exists);
    let inside = bench
        .store
        .rename_mailbox(&ann, &name("c/d"), &name("c/d/e"))
        .unwrap_err();
    assert_eq!(inside, StoreError::Name);
    let inbox = bench
        .store
        .delete_mailbox(&ann, &MailboxName::inbox(), NOW)
        .unwrap_err();
    assert_eq!(inbox, StoreError::Inbox);

    let before = bench.snapshot(first).status().uid_validity;
    let deleted = bench.store.delete_mailbox(&ann, &name("c/d"), NOW).unwrap();
    safe(&mut bench.store, deleted);
    bench.reopen(false);
    let again = bench.create("c/d");
    assert_ne!(again, first);
    assert!(bench.snapshot(again).status().uid_validity > before);
}

#[test]
fn quota_is_the_sum_of_the_mailboxes() {
    let mut bench = Bench::new();
    let other = bench.create("other");
    bench.deliver(bench.inbox, 1);
    bench.deliver(other, 2);
    let used = bench.store.quota(&account("ann")).unwrap();
    assert_eq!(used.messages, 2);
    assert_eq!(used.octets, (message(1).len() + message(2).len()) as u64);
    let mut full = target(other);
    full.quota.octets = Some(used.octets + 10);
    let results = bench
        .store
        .deliver(&prepared(3), &[full], operation(3))
        .unwrap();
    assert_eq!(
        safe(&mut bench.store, results),
        [Err(StoreError::OverQuota)]
    );
    let none = QuotaLimit {
        octets: None,
        messages: Some(2),
    };
    let copied = bench
        .store
        .copy(other, &[uid(1)], bench.inbox, none, operation(4));
    assert_eq!(copied.unwrap_err(), StoreError::OverQuota);
}

#[test]
fn what_is_not_synced_is_shown_to_nobody() {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    let results = bench
        .store
        .deliver(&prepared(1), &[target(inbox)], operation(1))
        .unwrap();
    let snapshot = bench.store.snapshot(inbox).unwrap();
    let synced = bench.store.synced();
    let (results, snapshot) = (
        results.when(synced).unwrap_err(),
        snapshot.when(synced).unwrap_err(),
    );
    let job = bench.store.sync_job().unwrap().unwrap();
    // One at a time; what comes meanwhile waits for the next.
    let late = bench
        .store
        .deliver(&prepared(2), &[target(inbox)], operation(2))
        .unwrap();
    assert!(bench.store.sync_job().unwrap().is_none());
    let published = bench.store.finish_sync(job.run()).unwrap();
    assert_eq!(published.mailboxes.into_iter().collect::<Vec<_>>(), [inbox]);
    let synced = published.synced;
    assert!(results.when(synced).is_ok() && snapshot.when(synced).is_ok());
    assert!(late.when(synced).is_err());
}

#[test]
fn messages_leave_memory_and_come_back() {
    let mut bench = Bench::new();
    let other = bench.create("other");
    bench.fill(bench.inbox, 1..=50);
    bench.fill(other, 51..=90);
    bench.store.config.resident_max = ByteSize::new(1);
    for (mailbox, len) in [(bench.inbox, 50), (other, 40), (bench.inbox, 50)] {
        assert_eq!(bench.snapshot(mailbox).len(), len);
        let loaded = bench
            .store
            .mailboxes
            .values()
            .filter(|each| each.messages.is_some());
        assert_eq!(loaded.count(), 1);
    }
    // Also what is not synced yet.
    let waiting = bench
        .store
        .deliver(&prepared(91), &[target(other)], operation(91))
        .unwrap();
    bench.snapshot(bench.inbox);
    let snapshot = bench.store.snapshot(other).unwrap();
    assert_eq!(safe(&mut bench.store, snapshot).len(), 41);
    drop(safe(&mut bench.store, waiting));
}

/// Bodies that are read in turn are asked for together, segment by segment.
#[test]
fn bodies_that_lie_close_together_are_read_ahead() {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    bench.fill(inbox, 1..=120);
    let snapshot = bench.snapshot(inbox);
    let blobs: Vec<_> = snapshot.iter_from(0).map(|message| message.blob).collect();
    let reader = bench.store.body_reader();
    let needed = |blobs: &[crate::BlobId]| {
        reader.will_need(blobs.iter().copied());
        bench.disk.take_needed()
    };
    let all = needed(&blobs);
    let octets: u64 = all.iter().map(|(_, octets)| octets).sum();
    let span = blobs.last().unwrap().0 - blobs[0].0;
    assert!(all.len() > 1, "{all:?}");
    assert!(octets > span / 2, "{octets} of {span}");
    // A few are read when they are wanted, and so are those in no order.
    assert_eq!(needed(&blobs[..3]), []);
    let back: Vec<_> = blobs.iter().rev().copied().collect();
    assert_eq!(needed(&back), []);
}

/// The parser and the store cut a message at the same place, whatever its lines end with.
#[test]
fn an_empty_line_of_either_kind_ends_the_header() {
    for (header, rest) in [
        ("A: b\r\n\r\n", "c\r\n\r\nd\r\n"),
        ("A: b\n\n", "c\r\n\r\nd\r\n"),
        ("A: b\r\n\n", "c\n"),
        ("A: b\n\r\n", "c\n"),
        ("\n", "A: b\r\n\r\n"),
        ("A: b\n", ""),
    ] {
        let message = [header, rest].concat();
        let prepared = Prepared::new(message.as_bytes(), b"", &[]).unwrap();
        let lens = [&prepared.payload[8..12], &prepared.payload[12..16]];
        let lens = lens.map(|len| u32::from_le_bytes(len.try_into().unwrap()) as usize);
        assert_eq!(lens, [header.len(), rest.len()], "{message:?}");
    }
}

/// What a copy that fails in its middle has added goes again, also where somebody has marked it meanwhile.
#[test]
fn copies_are_taken_back() {
    let mut bench = Bench::new();
    let archive = bench.create("Archive");
    bench.fill(bench.inbox, 1..=10);
    bench.deliver(archive, 11);
    let of = bench.snapshot(bench.inbox);
    let uids: Vec<Uid> = of.iter_from(0).map(|message| message.uid).collect();
    let copied = bench.store.copy(
        bench.inbox,
        &uids,
        archive,
        QuotaLimit::default(),
        operation(900),
    );
    let copied = safe(&mut bench.store, copied.unwrap());
    let marked = bench.store.store_flags(
        archive,
        &copied.to[..3],
        FlagMode::Add,
        &flags(SystemFlags::SEEN, &[]),
        None,
    );
    safe(&mut bench.store, marked.unwrap());
    // Also in pieces, and once more than needed.
    for piece in [&copied.to[..4], &copied.to[4..], &copied.to] {
        let back = bench.store.take_back(archive, piece).unwrap();
        safe(&mut bench.store, back);
    }
    for forget in [false, true] {
        assert_eq!(bench.snapshot(archive).len(), 1);
        assert_eq!(bench.snapshot(bench.inbox).len(), 10);
        let usage = bench.store.quota(&account("ann")).unwrap();
        assert_eq!(usage.messages, 11);
        bench.reopen(forget);
    }
}

/// A new account gets all its mailboxes or nothing; one that is there gets none.
#[test]
fn a_new_account_has_its_mailboxes_at_once() {
    let (disk, meta) = (MemoryDisk::default(), MemoryMeta::default());
    let name = |text: &str| MailboxName::new(text).unwrap();
    let with_more = StoreConfig {
        new_account: vec![
            (name("Sent"), Some(SpecialUse::Sent)),
            (name("Lists/2026"), None),
        ],
        ..config()
    };
    let (mut store, _) = Store::open(disk.clone(), meta.clone(), config()).unwrap();
    let opened = store.open_account(&account("old"), NOW).unwrap();
    safe(&mut store, opened);
    drop(store);
    let (mut store, _) = Store::open(disk.clone(), meta.clone(), with_more.clone()).unwrap();
    for owner in ["old", "new"] {
        let opened = store.open_account(&account(owner), NOW).unwrap();
        safe(&mut store, opened);
    }
    // Whoever removes one of them has it removed.
    let deleted = store
        .delete_mailbox(&account("new"), &name("Lists/2026"), NOW)
        .unwrap();
    safe(&mut store, deleted);
    let again = store.open_account(&account("new"), NOW).unwrap();
    safe(&mut store, again);
    drop(store);
    let (mut store, _) = Store::open(disk, MemoryMeta::default(), with_more).unwrap();
    let mut list = |owner: &str| -> Vec<_> {
        let listed = store.list(&account(owner)).unwrap();
        let entries = safe(&mut store, listed).into_iter();
        let about = |entry: crate::ListEntry| {
            let there = (entry.mailbox.is_some(), entry.subscribed);
            (entry.name.to_string(), there, entry.special_use)
        };
        entries.map(about).collect()
    };
    let inbox = ("INBOX".to_owned(), (true, false), None);
    assert_eq!(list("old"), std::slice::from_ref(&inbox));
    assert_eq!(
        list("new"),
        [
            inbox,
            ("Lists/2026".to_owned(), (false, true), None),
            ("Sent".to_owned(), (true, true), Some(SpecialUse::Sent)),
        ]
    );
}
