//! Room comes back, and no cut of power and nothing done meanwhile loses a body.

use vere_faults::Seeded;
use vere_ports::mail_meta::Partition;
use vere_ports::storage::Storage as _;

use super::*;
use crate::rows::keys;
use crate::{FlagMode, Reclaim, Sharing, SystemFlags, Uid};

/// Reclaims until there is nothing left to do; octets saved.
pub(super) fn reclaim(store: &mut Tested) -> Result<u64, StoreError> {
    let mut saved = 0;
    loop {
        match store.reclaim(10)? {
            Reclaim::Working => {}
            Reclaim::Job(job) => saved += store.finish_reclaim(job.run())?,
            Reclaim::Done(report) if report.covered == 0 => return Ok(saved),
            Reclaim::Done(_) => {
                while let Some(job) = store.sync_job()? {
                    store.finish_sync(job.run())?;
                }
            }
        }
    }
}

/// A body that zstd does nothing for.
pub(super) fn noise(number: u64) -> Prepared {
    let mut seeded = Seeded(number);
    let text: Vec<u8> = (0..250)
        .flat_map(|_| seeded.next_u64().to_le_bytes())
        .collect();
    let message = [format!("Subject: {number}\r\n\r\n").as_bytes(), &text].concat();
    Prepared::new(&message, &[], &[]).unwrap()
}

pub(super) fn add(bench: &mut Bench, mailbox: MailboxId, number: u64, id: u64) -> Uid {
    let added = bench
        .store
        .deliver(&noise(number), &[target(mailbox)], operation(id))
        .unwrap();
    safe(&mut bench.store, added).remove(0).unwrap().uid
}

pub(super) fn expunge(bench: &mut Bench, uids: &[Uid]) {
    let flags = Flags {
        system: SystemFlags::DELETED,
        keywords: Vec::new(),
    };
    let stored = bench
        .store
        .store_flags(bench.inbox, uids, FlagMode::Add, &flags, None)
        .unwrap();
    safe(&mut bench.store, stored);
    let gone = bench.store.expunge(bench.inbox, None, NOW).unwrap();
    safe(&mut bench.store, gone);
}

/// A store with sixty messages, of which every third stays, some through another mailbox alone.
fn filled() -> Bench {
    let mut bench = Bench::new();
    let other = bench.create("Other");
    let inbox = bench.inbox;
    let uids: Vec<_> = (1..=60).map(|n| add(&mut bench, inbox, n, n)).collect();
    let copied = bench.store.copy(
        inbox,
        &uids[3..6],
        other,
        QuotaLimit::default(),
        operation(900),
    );
    drop(safe(&mut bench.store, copied.unwrap()));
    let gone: Vec<_> = uids
        .iter()
        .copied()
        .filter(|uid| uid.get() % 3 != 0)
        .collect();
    expunge(&mut bench, &gone);
    bench
}

fn log_octets(bench: &mut Bench) -> u64 {
    let report = bench.store.check_all().unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.messages, 20 + 3);
    report.log_octets
}

#[test]
fn room_comes_back_and_what_is_referred_to_stays() {
    let mut bench = filled();
    let before = log_octets(&mut bench);
    let dead = bench.store.count_dead().unwrap();
    let saved = reclaim(&mut bench.store).unwrap();
    let after = log_octets(&mut bench);
    // The changes that a snapshot covers go as well, and it takes room itself.
    assert!(before - after <= saved && dead <= saved);
    assert!(dead > 50_000, "{dead} of {before}");
    assert_eq!(reclaim(&mut bench.store), Ok(0));
    for forget in [false, true] {
        bench.reopen(forget);
        assert_eq!(log_octets(&mut bench), after);
        assert_eq!(reclaim(&mut bench.store), Ok(0));
    }
    // Again, in segments that were written again before.
    let gone: Vec<_> = (3..=30).filter_map(Uid::new).collect();
    expunge(&mut bench, &gone);
    assert!(reclaim(&mut bench.store).unwrap() > 10_000);
    bench.reopen(true);
    let report = bench.store.check_all().unwrap();
    assert_eq!((report.findings, report.messages), (Vec::new(), 10 + 3));
}

/// What a mailbox refers to is unknown when its rows cannot be read: nothing goes, what cannot be read is
/// named, and everything else goes on.
#[test]
fn metadata_that_cannot_be_read_keep_room_from_coming_back_and_nothing_else() {
    let mut bench = filled();
    let other = bench.create("Third");
    let damaged = Partition::Mailbox(other.0);
    bench.meta.set_unreadable(Some(&damaged));
    let Err(StoreError::Damaged(what)) = reclaim(&mut bench.store) else {
        panic!("room came back");
    };
    assert!(what.contains(&format!("mailbox {}", other.0)), "{what}");
    assert!(!bench.store.is_reclaiming());
    bench.deliver(bench.inbox, 777);
    let before = bench.read(bench.inbox);
    bench.meta.set_unreadable(None);
    assert!(reclaim(&mut bench.store).unwrap() > 50_000);
    assert_eq!(bench.read(bench.inbox), before);
}

/// Hints of accounts that are not named are not taken for forgotten.
#[test]
fn without_the_list_of_partitions_hints_stay_and_it_is_told() {
    let mut bench = filled();
    let before = hints(&bench);
    let told = loop {
        match bench.store.reclaim(10) {
            Ok(Reclaim::Working) => {}
            Ok(Reclaim::Job(job)) => {
                let _ = bench.store.finish_reclaim(job.run()).unwrap();
                bench.meta.set_unlisted(true);
            }
            Ok(Reclaim::Done(report)) => panic!("{report:?}"),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&told, StoreError::Damaged(what) if what.contains("list of partitions")),
        "{told}"
    );
    assert_eq!(hints(&bench), before);
    bench.meta.set_unlisted(false);
    reclaim(&mut bench.store).unwrap();
    assert!(hints(&bench) < before);
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

/// Once it is known what goes, a mailbox that cannot be read keeps its changes, and that is all.
#[test]
fn a_mailbox_that_cannot_be_read_gets_no_snapshot() {
    let mut bench = filled();
    let inbox = Partition::Mailbox(bench.inbox.0);
    let report = loop {
        match bench.store.reclaim(10).unwrap() {
            Reclaim::Working => {}
            Reclaim::Job(job) => {
                let _ = bench.store.finish_reclaim(job.run()).unwrap();
                bench.meta.set_unreadable(Some(&inbox));
            }
            Reclaim::Done(report) => break report,
        }
    };
    assert!(report.saved > 50_000, "{report:?}");
    assert_eq!((report.unreadable, report.snapshots), (1, 0));
    bench.meta.set_unreadable(None);
    assert!(reclaim(&mut bench.store).is_ok());
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

/// A session that read the list before goes on reading from the old file.
#[test]
fn readers_from_before_go_on_reading() {
    let mut bench = filled();
    let reader = bench.store.body_reader();
    let snapshot = bench.snapshot(bench.inbox);
    assert!(reclaim(&mut bench.store).unwrap() > 0);
    for message in snapshot.iter_from(0) {
        let old = reader.open(message.blob).unwrap().message().unwrap();
        let new = bench
            .store
            .body_reader()
            .open(message.blob)
            .unwrap()
            .message()
            .unwrap();
        assert_eq!(old, new);
    }
}

/// The same content comes again while its body, which nothing referred to, is left out by a job.
#[test]
fn what_is_referred_to_meanwhile_stays() {
    let mut bench = filled();
    let inbox = bench.inbox;
    let mut number = 1_000;
    loop {
        match bench.store.reclaim(10).unwrap() {
            Reclaim::Working => {}
            Reclaim::Job(job) => {
                let outcome = job.run();
                // Contents 1, 2, 4, ... were expunged; their bodies are still there.
                for content in [1, 2, 4, 5, 7, 20, 40, 41] {
                    number += 1;
                    add(&mut bench, inbox, content, number);
                }
                bench.store.finish_reclaim(outcome).unwrap();
                let report = bench.store.check_all().unwrap();
                assert_eq!(report.findings, []);
            }
            Reclaim::Done(_) => break,
        }
    }
    assert!(number > 1_020);
    bench.reopen(true);
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

/// A large mailbox is not walked over in one go, and what changes between two steps counts.
#[test]
fn marking_goes_in_steps() {
    let mut bench = Bench::new();
    let inbox = bench.inbox;
    let first = add(&mut bench, inbox, 1, 1);
    let other = bench.create("Other");
    let mut uids = vec![first];
    while uids.len() < 6_000 {
        // Each copy doubles them, and the body is one.
        let number = 1_000 + uids.len() as u64;
        let to = if bench.snapshot(other).is_empty() {
            other
        } else {
            inbox
        };
        let copied = bench
            .store
            .copy(inbox, &uids, to, QuotaLimit::default(), operation(number));
        drop(safe(&mut bench.store, copied.unwrap()));
        uids = bench
            .snapshot(inbox)
            .iter_from(0)
            .map(|message| message.uid)
            .collect();
    }
    for number in 2..30 {
        add(&mut bench, inbox, number, number);
    }
    let mut steps = 0;
    loop {
        match bench.store.reclaim(10).unwrap() {
            Reclaim::Working => {
                // A body that was in a mailbox not walked over yet is found in one that was.
                if steps == 1 {
                    let last = bench.snapshot(inbox).iter_from(0).last().unwrap().uid;
                    let moved = bench.store.move_to(
                        inbox,
                        &[last],
                        other,
                        QuotaLimit::default(),
                        operation(9_000),
                    );
                    drop(safe(&mut bench.store, moved.unwrap()));
                }
                steps += 1;
            }
            Reclaim::Job(job) => {
                bench.store.finish_reclaim(job.run()).unwrap();
            }
            Reclaim::Done(_) => break,
        }
    }
    assert!(steps > 3, "{steps} steps");
    bench.reopen(true);
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

/// A pass was given up while a job was under way, a body that the job left out was referred to again, and
/// another pass began, which has not seen that yet.
#[test]
fn what_a_job_of_another_pass_did_is_dropped() {
    let mut bench = filled();
    let inbox = bench.inbox;
    let job = loop {
        match bench.store.reclaim(10).unwrap() {
            Reclaim::Working => {}
            Reclaim::Job(job) => break job,
            Reclaim::Done(_) => panic!("nothing to do"),
        }
    };
    let outcome = job.run();
    bench.store.stop_reclaiming();
    for content in [1, 2, 4, 5] {
        add(&mut bench, inbox, content, 1_000 + content);
    }
    assert!(matches!(bench.store.reclaim(10), Ok(Reclaim::Working)));
    assert_eq!(bench.store.finish_reclaim(outcome), Ok(0));
    assert_eq!(half_made(&bench), 0);
    assert_eq!(bench.store.check_all().unwrap().findings, []);
    reclaim(&mut bench.store).unwrap();
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

/// Files that were to take the place of others.
fn half_made(bench: &Bench) -> usize {
    let names = bench.disk.list().unwrap();
    names.iter().filter(|name| name.ends_with(".new")).count()
}

#[test]
fn a_job_that_finds_the_disk_full_leaves_nothing_behind() {
    for room in [0, 100, 5_000] {
        let mut bench = filled();
        let job = loop {
            match bench.store.reclaim(10).unwrap() {
                Reclaim::Working => {}
                Reclaim::Job(job) => break job,
                Reclaim::Done(_) => panic!("nothing to do"),
            }
        };
        let used = bench.disk.used();
        bench.disk.set_capacity(Some(used + room));
        let outcome = job.run();
        assert!(outcome.made.is_err(), "{room} octets were enough");
        assert_eq!(half_made(&bench), 0);
        assert!(bench.disk.used() <= used);
    }
}

#[test]
fn no_cut_of_power_while_reclaiming_loses_a_body() {
    let begin = |bench: &Bench| bench.disk.steps();
    let mut whole = filled();
    let start = begin(&whole);
    assert!(reclaim(&mut whole.store).unwrap() > 0);
    let points = whole.disk.steps() - start;
    assert!(points > 12, "{points} points to cut at");
    let expected = whole.read(whole.inbox);
    for point in 0..points {
        for seed in 0..4 {
            let mut bench = filled();
            let mut fate = Seeded(point * 10 + seed);
            bench.disk.stop_at(begin(&bench) + point);
            assert!(reclaim(&mut bench.store).is_err(), "cut at {point}");
            bench.disk.crash(&mut fate);
            bench.meta.crash(&mut fate);
            bench.reopen(seed == 0);
            assert_eq!(
                bench.read(bench.inbox),
                expected,
                "cut at {point}, seed {seed}"
            );
            log_octets(&mut bench);
            reclaim(&mut bench.store).unwrap();
            log_octets(&mut bench);
            bench.reopen(true);
            assert_eq!(
                bench.read(bench.inbox),
                expected,
                "cut at {point}, seed {seed}"
            );
        }
    }
}

/// How many hints there are.
fn hints(bench: &Bench) -> usize {
    let kind = |key: &[u8]| key.first().is_some_and(|kind| keys::is_hint(*kind));
    let of = |partition: &[u8]| partition[0] == b'a' || partition == keys::EVERYBODY.encode();
    let rows = bench.meta.rows();
    let hints = rows
        .keys()
        .filter(|(partition, key)| of(partition) && kind(key));
    hints.count()
}

/// A message that answers the one before it.
fn answer(number: u64) -> Prepared {
    Prepared::new(&message(number), b"", &[number, number - 1]).unwrap()
}

/// They were never removed: some thirty octets for each message that ever came.
#[test]
fn hints_go_with_what_they_name() {
    for sharing in [Sharing::Account, Sharing::All] {
        let mut bench = Bench::new();
        bench.store.config.sharing = sharing;
        let inbox = bench.inbox;
        let deliver = |bench: &mut Bench, number: u64, id: u64| {
            let sent = bench
                .store
                .deliver(&answer(number), &[target(inbox)], operation(id));
            safe(&mut bench.store, sent.unwrap()).remove(0).unwrap().uid
        };
        // Threads of ten messages; of the second one the last stays.
        let numbers = (0..200).map(|number| number + number / 10);
        let numbers: Vec<u64> = numbers.map(|number| number + 10).collect();
        let uids: Vec<_> = numbers
            .iter()
            .map(|number| deliver(&mut bench, *number, *number))
            .collect();
        let stays = uids[19];
        let gone: Vec<_> = uids[..180]
            .iter()
            .copied()
            .filter(|uid| *uid != stays)
            .collect();
        let before = hints(&bench);
        assert_eq!(before, 200 + 220);
        expunge(&mut bench, &gone);
        let thread = bench.snapshot(inbox).find(stays).unwrap().thread;
        for number in 5_001..5_040 {
            add(&mut bench, inbox, number, number);
        }
        assert!(reclaim(&mut bench.store).unwrap() > 0);
        // The contents of what stays, and the names that its threads have; what is written to is left alone.
        assert_eq!(hints(&bench), 21 + 39 + 11 * 3, "{sharing:?}");
        assert_eq!(bench.store.check_all().unwrap().findings, []);
        // A thread goes on of which one message is left, and content that is there is found.
        let uid = deliver(&mut bench, numbers[19] + 1, 9_000);
        assert_eq!(bench.snapshot(inbox).find(uid).unwrap().thread, thread);
        let bodies = bench.store.counts().bodies;
        deliver(&mut bench, numbers[19], 9_001);
        assert_eq!(bench.store.counts().bodies, bodies);
        deliver(&mut bench, numbers[5], 9_002);
        assert_eq!(bench.store.counts().bodies, bodies + 1);
    }
}
