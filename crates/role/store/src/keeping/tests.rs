use std::sync::Arc;
use std::time::{Duration, Instant};

use vere_store::{Position, Prepared, SystemFlags};
use vere_units::{LogId, Timestamp};

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

/// A store that keeps expunged messages, with some that are expunged one by one.
fn store(policy: &Policy) -> (tempfile::TempDir, MailStore, Keeping) {
    let (folder, mut store) = filled::store();
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

/// Works until nothing is left to do.
fn work(keeping: &mut Keeping, store: &mut MailStore, is_scarce: bool) {
    for _ in 0..50 {
        keeping.step(store, is_scarce, 100).unwrap();
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
    work(&mut keeping, &mut store, false);
    assert_eq!(kept(&store), 2);
    work(&mut keeping, &mut store, true);
    assert_eq!(kept(&store), 1);
    // No more goes before the space of those can have come back.
    work(&mut keeping, &mut store, true);
    assert_eq!(kept(&store), 1);
    keeping.scarce_due = Instant::now();
    work(&mut keeping, &mut store, true);
    assert_eq!(kept(&store), 0);
}

#[test]
fn an_account_keeps_its_size_at_most() {
    let (_folder, mut store, mut keeping) = store(&policy(2_500));
    for uid in 1..=4 {
        expunge(&mut store, uid);
    }
    keeping.changed_due = Instant::now();
    work(&mut keeping, &mut store, false);
    assert_eq!(kept(&store), 2);
    // Without a time nothing is kept, and nothing stays.
    let mut none = policy(2_500);
    none.keep = Duration::ZERO;
    keeping.set(none, &mut store);
    work(&mut keeping, &mut store, false);
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
    assert_eq!(shorter.before(1), None);
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
