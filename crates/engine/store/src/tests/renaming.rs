//! An account under another name.

use std::collections::BTreeMap;

use vere_ports::directory::AccountName;

use vere_faults::Seeded;

use super::crashes::settled;
use super::*;
use crate::{CheckReport, Finding, StoreError};

/// By mailbox of an account: UIDVALIDITY, and the messages by UID.
type Contents = BTreeMap<String, (u32, Vec<(u32, Vec<u8>)>)>;

/// Ann has messages in two mailboxes, one that was expunged, a deleted mailbox and a subscription.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.store.set_keep_expunged(true);
    let (old, gone) = (bench.create("Old"), bench.create("Gone"));
    bench.fill(bench.inbox, 1..=3);
    bench.fill(old, 4..=6);
    bench.fill(gone, 7..=9);
    let ann = account("ann");
    let subscribed = bench.store.subscribe(&ann, &name("Old"), true).unwrap();
    safe(&mut bench.store, subscribed);
    let deleted = bench
        .store
        .delete_mailbox(&ann, &name("Gone"), NOW)
        .unwrap();
    safe(&mut bench.store, deleted);
    bench
}

fn rename(store: &mut Tested) -> Result<(), StoreError> {
    let renamed = store.rename_account(&account("ann"), &account("eve"))?;
    settled(store, renamed).map(drop)
}

fn contents(bench: &mut Bench, of: &AccountName) -> Contents {
    let listed = bench.store.list(of).unwrap();
    let listed = safe(&mut bench.store, listed);
    let mailboxes = listed
        .into_iter()
        .filter_map(|entry| Some((entry.name.as_str().to_owned(), entry.mailbox?)));
    let mailboxes: Vec<_> = mailboxes.collect();
    let content = |(name, id)| {
        let status = bench.store.status(id).unwrap();
        let validity = safe(&mut bench.store, status).uid_validity;
        (name, (validity, bench.read(id)))
    };
    mailboxes.into_iter().map(content).collect()
}

fn report(bench: &mut Bench) -> CheckReport {
    bench.store.check_all().unwrap()
}

#[test]
fn everything_of_an_account_is_there_under_the_new_name() {
    let mut bench = bench();
    let (ann, eve) = (account("ann"), account("eve"));
    let before = contents(&mut bench, &ann);
    let counted = report(&mut bench);
    rename(&mut bench.store).unwrap();
    for forget in [None, Some(false), Some(true)] {
        if let Some(forget) = forget {
            bench.reopen(forget);
        }
        assert_eq!(contents(&mut bench, &ann), Contents::new());
        assert_eq!(contents(&mut bench, &eve), before);
        let listed = bench.store.list(&eve).unwrap();
        let listed = safe(&mut bench.store, listed);
        let subscribed = listed.iter().find(|entry| entry.name == name("Old"));
        assert!(subscribed.unwrap().subscribed);
        let now = report(&mut bench);
        assert_eq!(now.findings, []);
        assert_eq!(
            (now.messages, now.kept_messages, now.bodies),
            (counted.messages, counted.kept_messages, counted.bodies)
        );
        let kept = bench.store.kept_mailboxes(&eve).unwrap();
        assert_eq!(safe(&mut bench.store, kept).len(), 1);
        let kept = bench.store.kept_mailboxes(&ann).unwrap();
        assert_eq!(safe(&mut bench.store, kept), []);
    }
    // The new owner's mail goes on; the old name begins anew, with another UIDVALIDITY.
    bench.deliver(bench.inbox, 20);
    assert_eq!(contents(&mut bench, &eve)["INBOX"].1.len(), 4);
    let opened = bench.store.open_account(&ann, NOW).unwrap();
    safe(&mut bench.store, opened);
    let validities: Vec<u32> = before.values().map(|(validity, _)| *validity).collect();
    assert!(!validities.contains(&contents(&mut bench, &ann)["INBOX"].0));
    assert_eq!(report(&mut bench).findings, []);
}

#[test]
fn mail_that_the_new_name_has_already_stays() {
    let mut bench = bench();
    let eve = account("eve");
    let before = contents(&mut bench, &account("ann"));
    let opened = bench.store.open_account(&eve, NOW).unwrap();
    let inbox = safe(&mut bench.store, opened);
    bench.deliver(inbox, 30);
    let made = bench
        .store
        .create_mailbox(&eve, &name("Old"), None, NOW)
        .unwrap();
    safe(&mut bench.store, made);
    rename(&mut bench.store).unwrap();
    let mut after = contents(&mut bench, &eve);
    let (_, own) = after.remove("INBOX-2").unwrap();
    assert_eq!(own, [(1, super::message(30))]);
    assert_eq!(after, before, "the empty mailbox made room");
    empty(&mut bench.store);
    bench.reopen(true);
    assert_eq!(report(&mut bench).findings, []);
    // A second time there is nothing to do.
    rename(&mut bench.store).unwrap();
    assert_eq!(contents(&mut bench, &eve).len(), 3);
}

#[test]
fn a_cut_off_renaming_is_finished_by_the_next_call() {
    let mut whole = bench();
    let (ann, eve) = (account("ann"), account("eve"));
    let before = contents(&mut whole, &ann);
    let (first, _) = (whole.disk.steps(), rename(&mut whole.store).unwrap());
    let points = first..whole.disk.steps();
    assert!(points.end - points.start >= 2, "{points:?}");
    for point in points {
        for seed in 0..8 {
            let context = format!("cut at {point}, seed {seed}");
            let mut bench = bench();
            assert_eq!(bench.disk.steps(), first, "the same every time");
            bench.disk.stop_at(point);
            let _ = rename(&mut bench.store);
            let mut fate = Seeded(point * 100 + seed);
            bench.disk.crash(&mut fate);
            bench.meta.crash(&mut fate);
            bench.reopen(seed % 2 == 0);
            // Whatever was reached, no message is lost.
            let mut there = contents(&mut bench, &ann);
            there.extend(contents(&mut bench, &eve));
            assert_eq!(there, before, "{context}");
            let findings = report(&mut bench).findings;
            let known = |finding: &Finding| matches!(finding, Finding::Unlisted { .. });
            assert!(findings.iter().all(known), "{context}: {findings:?}");
            rename(&mut bench.store).unwrap();
            assert_eq!(contents(&mut bench, &ann), Contents::new(), "{context}");
            assert_eq!(contents(&mut bench, &eve), before, "{context}");
            assert_eq!(report(&mut bench).findings, [], "{context}");
        }
    }
}
