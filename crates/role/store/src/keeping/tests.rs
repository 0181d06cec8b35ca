use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vere_disk::mail_meta::FjallMeta;
use vere_ports::mail_meta::{Batch, MetaEngine as _, Partition, RowChange};
use vere_store::{Position, Prepared, SystemFlags};
use vere_units::{ByteSize, LogId, Timestamp};

use super::*;
use crate::filled;

const KEEP: Duration = Duration::from_secs(7 * 86_400);
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

fn ages() -> (tempfile::TempDir, Ages) {
    let folder = tempfile::tempdir().unwrap();
    let ages = Ages::read(&folder.path().join("kept.json"), LogId(7), Position(64));
    (folder, ages)
}

/// An account whose rows cannot be read.
fn broken() -> AccountName {
    AccountName::parse("aaa@demo.test").unwrap()
}

fn spoil(folder: &Path) {
    let mut meta = FjallMeta::open(&folder.join("meta"), ByteSize::mib(1)).unwrap();
    let unreadable = RowChange {
        key: vec![1],
        value: Some(vec![0xff]),
    };
    let batch = Batch {
        partition: Partition::Account(broken()),
        expected: 0,
        version: 1,
        clear: false,
        rows: vec![unreadable],
        hints: Vec::new(),
    };
    meta.apply(&[batch], 0).unwrap();
}

/// A store that keeps expunged messages, with some that are expunged one by one.
fn store(policy: &Policy) -> (tempfile::TempDir, MailStore, Keeping) {
    let folder = filled::folder();
    spoil(folder.path());
    let mut store = filled::lock(folder.path()).open().unwrap();
    let file = folder.path().join("kept.json");
    let mut keeping = Keeping::new(file, &store, Figures::default());
    keeping.set(policy.clone(), &mut store);
    for number in 1..=4 {
        let text = format!("Subject: {number}\r\n\r\n{}\r\n", "a".repeat(1_000));
        let body = Prepared::new(text.as_bytes(), b"", &[]).unwrap();
        filled::deliver(&mut store, &body, SystemFlags::DELETED, number);
    }
    (folder, store, keeping)
}

fn policy(size: u64) -> Policy {
    Policy {
        keep: KEEP,
        size,
        quotas: Arc::new(Quotas::unlimited()),
    }
}

fn expunge(store: &mut MailStore, uid: u32) {
    let inbox = filled::inbox(store);
    let uids: Vec<_> = vere_store::Uid::new(uid).into_iter().collect();
    drop(store.expunge(inbox, Some(&uids), now()).unwrap());
    filled::sync(store);
}

fn kept(store: &MailStore) -> u64 {
    let account = AccountName::parse("ann@demo.test").unwrap();
    let kept = store.kept_mailboxes(&account).unwrap();
    let kept = at_once(store, kept).unwrap();
    kept.iter().map(|keeper| keeper.messages).sum()
}

const ROOMY: Room = Room {
    is_scarce: false,
    free: 1_000,
    rests: 0,
    is_reclaiming: false,
};
const SCARCE: Room = Room {
    is_scarce: true,
    free: 10,
    ..ROOMY
};

/// Works until nothing is left to do.
fn work(keeping: &mut Keeping, store: &mut MailStore, room: Room) {
    for _ in 0..50 {
        keeping.step(store, room, 100).unwrap();
        filled::sync(store);
    }
}

#[test]
fn a_nearly_full_disk_lets_the_oldest_go_first() {
    let policy = policy(1 << 30);
    let (_folder, mut store, mut keeping) = store(&policy);
    expunge(&mut store, 1);
    keeping.look(&store, &policy);
    expunge(&mut store, 2);
    work(&mut keeping, &mut store, ROOMY);
    assert_eq!(kept(&store), 2);
    work(&mut keeping, &mut store, SCARCE);
    assert_eq!(kept(&store), 1);
    // No more goes before the space of those can have come back.
    work(&mut keeping, &mut store, SCARCE);
    assert_eq!(kept(&store), 1);
    // A new start begins with what is the oldest now.
    keeping.scarce = None;
    work(&mut keeping, &mut store, SCARCE);
    assert_eq!(kept(&store), 0);
}

/// Without marks nothing says how old the messages are: a part of the log goes, not everything.
#[test]
fn a_nearly_full_disk_takes_a_part_where_ages_are_unknown() {
    let policy = policy(1 << 30);
    let (_folder, mut store, mut keeping) = store(&policy);
    keeping.look_due = Instant::now() + LOOK_MAX;
    for uid in 1..=4 {
        expunge(&mut store, uid);
    }
    work(&mut keeping, &mut store, SCARCE);
    assert_eq!(kept(&store), 3);
}

/// The parts that go after each other when each of them had messages, and the oldest are right behind.
fn parts(ages: &Ages, rooms: &[Room]) -> Vec<u64> {
    let (mut scarce, mut parts) = (Scarce::new(), Vec::new());
    let mut now = Instant::now();
    for room in rooms {
        if let Some(part) = scarce.part(ages, Position(6_400), room, now) {
            parts.push(part.0);
            scarce.walked(true, Some(part), room, now);
        }
        now += Duration::from_secs(20);
    }
    parts
}

#[test]
fn the_next_part_waits_for_reclaiming_and_grows_while_no_room_comes() {
    let (_folder, ages) = ages();
    let rests = |rests, free| Room {
        rests,
        free,
        ..SCARCE
    };
    // Twenty seconds each: without a rest nothing goes before ten minutes.
    assert_eq!(parts(&ages, &[SCARCE; 30]), [100]);
    assert_eq!(parts(&ages, &[SCARCE; 32]), [100, 296]);
    let grows = [0, 1, 2].map(|number| rests(number, 10));
    assert_eq!(parts(&ages, &grows), [100, 296, 676]);
    let shrinks = [rests(0, 10), rests(1, 10), rests(2, 11)];
    assert_eq!(parts(&ages, &shrinks), [100, 296, 391]);
    // A pass that began before saw the messages that went.
    let under_way = Room {
        is_reclaiming: true,
        ..SCARCE
    };
    assert_eq!(parts(&ages, &[under_way, rests(1, 10)]), [100]);
    assert_eq!(parts(&ages, &[under_way, rests(2, 10)]), [100, 296]);
}

/// A part that had no messages costs no room: the next one begins with the oldest that are kept.
#[test]
fn a_part_without_messages_is_not_waited_for() {
    let (_folder, ages) = ages();
    let (mut scarce, now) = (Scarce::new(), Instant::now());
    let end = Position(6_400);
    assert_eq!(scarce.part(&ages, end, &SCARCE, now), Some(Position(100)));
    scarce.walked(false, Some(Position(5_760)), &SCARCE, now);
    assert_eq!(scarce.part(&ages, end, &SCARCE, now), Some(Position(5_770)));
    scarce.walked(true, None, &SCARCE, now);
    assert_eq!(scarce.part(&ages, end, &SCARCE, now), None);
}

#[test]
fn an_account_that_cannot_be_read_keeps_no_other_waiting() {
    let (_folder, mut store, mut keeping) = store(&policy(2_500));
    for uid in 1..=4 {
        expunge(&mut store, uid);
    }
    keeping.changed.add(broken());
    keeping.changed_due = Instant::now();
    work(&mut keeping, &mut store, ROOMY);
    assert!(keeping.left_out.has(&broken()));
    assert!(keeping.due < Instant::now() + Duration::from_secs(10));
    assert_eq!(kept(&store), 2);
}

#[test]
fn accounts_that_changed_wait_once_and_take_turns() {
    let mut changed = Changed::default();
    let [ann, bob] =
        ["ann", "bob"].map(|name| AccountName::parse(&format!("{name}@demo.test")).unwrap());
    let excess = Excess {
        messages: true,
        octets: false,
    };
    for account in [&ann, &bob, &ann, &bob] {
        changed.add(account.clone());
    }
    assert_eq!(changed.take_next(), Some((ann.clone(), Excess::default())));
    changed.again(ann.clone(), excess);
    changed.add(ann.clone());
    assert_eq!(changed.take_next(), Some((bob, Excess::default())));
    assert_eq!(changed.take_next(), Some((ann, excess)));
    assert_eq!(changed.take_next(), None);
}

#[test]
fn too_many_accounts_that_cannot_be_read_are_noticed() {
    let mut left_out = LeftOut::default();
    let mut add =
        |number: usize| left_out.add(AccountName::parse(&format!("a{number}@demo.test")).unwrap());
    assert!((0..1_000).all(&mut add));
    assert!(!add(1_000));
}

/// Each look writes a file and begins a walk over all accounts.
#[test]
fn without_a_time_looks_are_rare_once_nothing_is_kept() {
    let mut none = policy(1 << 30);
    none.keep = Duration::ZERO;
    let (_folder, mut store, mut keeping) = store(&none);
    keeping.look(&store, &none);
    work(&mut keeping, &mut store, ROOMY);
    keeping.look(&store, &none);
    assert!(keeping.look_due > Instant::now() + Duration::from_secs(500));
    // Other settings are heeded at once.
    keeping.set(policy(1 << 30), &mut store);
    assert!(keeping.look_due <= Instant::now());
}

#[test]
fn an_account_keeps_its_size_at_most() {
    let (_folder, mut store, mut keeping) = store(&policy(2_500));
    for uid in 1..=4 {
        expunge(&mut store, uid);
    }
    keeping.changed_due = Instant::now();
    work(&mut keeping, &mut store, ROOMY);
    assert_eq!(kept(&store), 2);
    // Without a time nothing is kept, and nothing stays.
    let mut none = policy(2_500);
    none.keep = Duration::ZERO;
    keeping.set(none, &mut store);
    work(&mut keeping, &mut store, ROOMY);
    assert_eq!(kept(&store), 0);
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + millis)
}

#[test]
fn nothing_expires_before_its_time_and_everything_soon_after() {
    let (_folder, mut ages) = ages();
    let hour = Duration::from_millis(HOUR);
    for number in 0..24 * 9 {
        let ran = (number > 0).then_some(hour);
        ages.look(Position(100 + number), at(number * HOUR), ran, KEEP);
        let expired = ages.expired(KEEP).0;
        let certain = (100 + number).saturating_sub(7 * 24);
        assert!(expired <= certain, "hour {number}: {expired}");
        if number > 24 * 7 + 3 {
            assert!(expired + 4 > certain, "hour {number}: {expired}");
        }
    }
}

/// A clock that jumps while a process runs, or that was far ahead when two processes started, makes nothing older.
#[test]
fn a_wrong_clock_lets_nothing_go() {
    let (folder, mut ages) = ages();
    let file = folder.path().join("kept.json");
    ages.look(Position(100), at(0), None, KEEP);
    let second = Some(Duration::from_secs(1));
    ages.look(Position(200), at(400 * DAY), second, KEEP);
    assert_eq!(ages.expired(KEEP), Position(0));
    ages.write(&file);
    for days in [800, 1_200, 0, 400] {
        let mut again = Ages::read(&file, LogId(7), Position(300));
        assert_eq!(again, ages);
        again.look(Position(300), at(days * DAY), None, KEEP);
        assert_eq!(again.expired(KEEP), Position(0), "{days}");
        again.write(&file);
        ages = again;
    }
}

#[test]
fn only_marks_of_this_log_count() {
    let (folder, mut ages) = ages();
    let file = folder.path().join("kept.json");
    ages.look(Position(100), at(0), None, KEEP);
    ages.look(Position(200), at(8 * DAY), Some(KEEP), KEEP);
    assert_eq!(ages.expired(KEEP), Position(100));
    ages.write(&file);
    let shorter = Ages::read(&file, LogId(7), Position(150));
    assert_eq!(shorter.expired(KEEP), Position(100));
    assert_eq!(shorter.after(Position(0), 1), None);
    let other = Ages::read(&file, LogId(8), Position(150));
    assert_eq!(other.expired(KEEP), Position(0));
    std::fs::write(&file, b"{\"version\":2}").unwrap();
    let unread = Ages::read(&file, LogId(7), Position(150));
    assert_eq!(unread.expired(KEEP), Position(0));
}

/// Whatever the clock shows: what is said to be old is at least as old as processes have run, and days between.
#[test]
fn ages_are_certain() {
    let mut random = 1_u64;
    let mut pick = move |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    for _ in 0..300 {
        let (folder, mut ages) = ages();
        let file = folder.path().join("kept.json");
        // The time that passed at most: what ran, and a day for each start.
        let (mut passed, mut ended) = (0, Vec::new());
        for number in 0..40 {
            let (hours, starts) = (pick(40), number == 0 || pick(2) == 0);
            let clock = at((40 + pick(120)) * DAY + passed);
            let position = Position(100 + number);
            passed += if starts { DAY } else { hours * HOUR };
            if starts {
                ages.write(&file);
                ages = Ages::read(&file, LogId(7), position);
            }
            let ran = (!starts).then_some(Duration::from_millis(hours * HOUR));
            ages.look(position, clock, ran, KEEP);
            ended.push((position, passed));
            let expired = ages.expired(KEEP);
            if let Some((_, then)) = ended.iter().find(|(position, _)| *position == expired) {
                assert!(passed - then >= 7 * DAY);
            }
        }
    }
}
