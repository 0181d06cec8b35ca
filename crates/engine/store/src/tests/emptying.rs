//! Deleted mailboxes are emptied in bounded pieces, which nobody sees.

use super::*;

/// Rows of a partition in the engine, its version aside.
fn rows(bench: &Bench, mailbox: MailboxId) -> usize {
    let partition = vere_ports::mail_meta::Partition::Mailbox(mailbox.0).encode();
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
    let deleted = bench.store.delete_mailbox(&account("ann"), &name("Old"));
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
    // Each is emptied by a change of its own.
    let changes = bench.store.counts().changes - before;
    assert_eq!(changes, 1 + (count + 1) + steps);
    assert!(steps <= 4, "{steps} steps");
    assert_eq!(bench.store.check_all().unwrap().findings, []);
}
