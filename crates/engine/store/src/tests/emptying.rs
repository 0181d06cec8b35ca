//! Deleted mailboxes are emptied in bounded pieces, which nobody sees.

use vere_ports::mail_meta::Partition;

use super::*;

/// Rows of a partition in the engine, its version aside.
fn rows(bench: &Bench, mailbox: MailboxId) -> usize {
    let partition = Partition::Mailbox(mailbox.0).encode();
    let rows = bench.meta.rows();
    let own = rows
        .keys()
        .filter(|(of, key)| *of == partition && !key.is_empty());
    own.count()
}

#[test]
fn a_deleted_mailbox_is_gone_at_once_and_emptied_in_pieces() {
    let mut bench = Bench::new();
    let old = bench.create("Old");
    bench.fill(old, 1..=20);
    let before = rows(&bench, old);
    assert!(before > 40, "{before} rows");
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    assert_eq!(
        bench.store.snapshot(old).unwrap_err(),
        StoreError::NoMailbox
    );
    assert_eq!(bench.store.quota(&account("ann")).unwrap().messages, 0);
    assert_eq!(rows(&bench, old), before);
    let mut pieces = 0;
    let mut left = before;
    while bench.store.is_emptying() {
        bench.store.empty_some().unwrap();
        sync(&mut bench.store);
        let now = rows(&bench, old);
        // Its owner and its counters go with the last ones.
        let most = config().removed_at_once as usize + 2;
        assert!(left - now <= most, "{left} rows, then {now}");
        left = now;
        pieces += 1;
        assert_eq!(bench.store.check_all().unwrap().findings, []);
        if pieces == 5 {
            // Cut off: it goes on by itself, also where a log is all there is.
            bench.reopen(true);
        }
    }
    assert_eq!(left, 0);
    assert!(pieces > 10, "{pieces} pieces");
    bench.reopen(true);
    assert_eq!(rows(&bench, old), 0);
    let before = bench.store.end();
    empty(&mut bench.store);
    assert_eq!(bench.store.end(), before);
}

/// A change of the account for each mailbox would be as long as the list each time it is made.
#[test]
fn the_end_of_an_account_changes_its_list_a_few_times() {
    let mut bench = Bench::new();
    let large = StoreConfig {
        removed_at_once: 2_000,
        ..config()
    };
    let disk = bench.disk.clone();
    bench.store = Store::open(disk, bench.meta.clone(), large).unwrap().0;
    let count = 300;
    for number in 0..count {
        bench.create(&format!("box {number}"));
    }
    empty(&mut bench.store);
    let before = bench.store.counts().changes;
    let removed = bench.store.remove_account(&account("ann")).unwrap();
    let held = safe(&mut bench.store, removed);
    assert_eq!(held.mailboxes, count + 1);
    assert_eq!(bench.store.counts().changes - before, 1);
    let mut steps = 0;
    while bench.store.is_emptying() {
        bench.store.empty_some().unwrap();
        sync(&mut bench.store);
        steps += 1;
    }
    // Each is emptied by a separate change.
    let changes = bench.store.counts().changes - before;
    assert_eq!(changes, 1 + (count + 1) + steps);
    assert!(steps <= 4, "{steps} steps");
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

/// What cannot be read of one account's mailboxes holds up the emptying of no others, and is no failure of the store.
#[test]
fn what_cannot_be_read_keeps_no_others_from_being_emptied() {
    let mut bench = Bench::new();
    let bad = bench.create("Bad");
    bench.fill(bad, 1..=5);
    let bob = bench.store.open_account(&account("bob"), NOW).unwrap();
    let bobs = safe(&mut bench.store, bob);
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Bad"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    let removed = bench.store.remove_account(&account("bob")).unwrap();
    safe(&mut bench.store, removed);
    let account_of_ann = Partition::Account(account("ann"));
    for (unreadable, after_a_start) in [
        (Partition::Mailbox(bad.0), false),
        (Partition::Mailbox(bad.0), true),
        (account_of_ann, true),
    ] {
        if after_a_start {
            bench.reopen(false);
        }
        bench.meta.set_unreadable(Some(&unreadable));
        for _ in 0..3 {
            match bench.store.empty_some() {
                Ok(()) | Err(StoreError::Damaged(_)) => drop(sync(&mut bench.store)),
                Err(other) => panic!("{other}"),
            }
        }
        bench.meta.set_unreadable(None);
        assert_eq!(rows(&bench, bobs), 0);
        assert!(rows(&bench, bad) > 0);
    }
    // What could not be looked for is found at the next start.
    bench.reopen(false);
    empty(&mut bench.store);
    assert_eq!(rows(&bench, bad), 0);
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}

/// Whom a start finds nothing about, since the list of accounts cannot be read, waits; the store goes on.
#[test]
fn without_the_list_of_accounts_the_store_goes_on() {
    let mut bench = Bench::new();
    let old = bench.create("Old");
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    bench.reopen(false);
    bench.meta.set_unlisted(true);
    let looked = bench.store.empty_some();
    assert!(matches!(looked, Err(StoreError::Damaged(_))), "{looked:?}");
    assert!(!bench.store.is_emptying());
    // Who uses the account brings it up.
    bench.deliver(bench.inbox, 1);
    let listed = bench.store.list(&account("ann")).unwrap();
    safe(&mut bench.store, listed);
    empty(&mut bench.store);
    assert_eq!(rows(&bench, old), 0);
}

/// A start reads the mailboxes that were used last, before anybody knows which are gone.
#[test]
fn a_mailbox_that_is_being_emptied_is_not_read_again() {
    let mut bench = Bench::new();
    let old = bench.create("Old");
    bench.fill(old, 1..=20);
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    bench.reopen(false);
    let _ = bench.store.read_ahead(old);
    bench.store.empty_some().unwrap();
    assert!(bench.store.resident().iter().all(|(id, _)| *id != old));
    assert_eq!(bench.store.status(old).unwrap_err(), StoreError::NoMailbox);
    // That it is gone is told once more when it is.
    let mut told = 0;
    loop {
        while let Some(job) = bench.store.sync_job().unwrap() {
            let published = bench.store.finish_sync(job.run()).unwrap();
            told += usize::from(published.mailboxes.contains(&old));
        }
        if !bench.store.is_emptying() {
            break;
        }
        bench.store.empty_some().unwrap();
    }
    assert_eq!(told, 2);
}
