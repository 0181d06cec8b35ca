//! What a session is told with and without what it has seen.

use std::sync::Arc;

use vere_ports::directory::AccountName;
use vere_store::{
    FlagMode, Flags, InternalDate, OperationId, Prepared, QuotaLimit, RecipientFields, SystemFlags,
    Target,
};
use vere_units::Timestamp;

use super::*;
use crate::filled;
use crate::mail_store::MailStore;

fn sync(store: &mut MailStore) {
    while let Some(job) = store.sync_job().unwrap() {
        store.finish_sync(job.run()).unwrap();
    }
}

fn deliver(store: &mut MailStore, mailbox: MailboxId, number: u8) {
    let body = Prepared::new(b"Subject: a\r\n\r\nb\r\n", &[], &[]).unwrap();
    let target = Target {
        mailbox,
        flags: Flags::default(),
        internal_date: InternalDate::default(),
        fields: RecipientFields::default(),
        quota: QuotaLimit::default(),
    };
    let done = store.deliver(&body, &[target], OperationId([number; 16]));
    drop(done.unwrap());
    sync(store);
}

/// Changes flags; what is deleted is expunged.
fn flag(store: &mut MailStore, mailbox: MailboxId, uid: u32, system: SystemFlags) {
    let flags = Flags {
        system,
        keywords: Vec::new(),
    };
    let uids = [Uid::new(uid).unwrap()];
    let done = store.store_flags(mailbox, &uids, FlagMode::Add, &flags, None);
    drop(done.unwrap());
    drop(
        store
            .expunge(mailbox, None, vere_process::clock::now())
            .unwrap(),
    );
    sync(store);
}

fn snapshot(store: &mut MailStore, mailbox: MailboxId) -> Snapshot {
    let snapshot = store.snapshot(mailbox).unwrap();
    snapshot.when(store.synced()).unwrap()
}

/// The same is told, of what is known, from numbers as from the messages; and these are not kept meanwhile.
#[test]
fn who_does_not_ask_keeps_nothing_and_is_told_the_same() {
    let folder = filled::folder();
    let files = filled::lock(folder.path());
    let mut store = files.open().unwrap();
    let ann = AccountName::parse("ann@demo.test").unwrap();
    let opened = store.open_account(&ann, Timestamp::from_millis(1)).unwrap();
    sync(&mut store);
    let mailbox = opened.when(store.synced()).unwrap();
    (0..10).for_each(|number| deliver(&mut store, mailbox, number));
    let before = snapshot(&mut store, mailbox);
    let watch = || Watch::new(Arc::default(), mailbox);
    let mut asks = OpenMailbox::new(before.clone(), watch());
    let mut rests = OpenMailbox::new(before.clone(), watch());
    // Without a change nothing is let go of.
    rests.rest();
    assert!(rests.seen.is_some());

    flag(&mut store, mailbox, 3, SystemFlags::SEEN);
    flag(&mut store, mailbox, 5, SystemFlags::DELETED);
    (10..13).for_each(|number| deliver(&mut store, mailbox, number));
    // One that came and went.
    flag(&mut store, mailbox, 12, SystemFlags::DELETED);
    rests.changed();
    rests.rest();
    assert!(rests.seen.is_none());

    let status = before.status();
    let mod_seq = status.highest_mod_seq;
    let expunged = store.expunged_since(mailbox, mod_seq).unwrap();
    let since = Since {
        mod_seq,
        uid_next: status.uid_next.get(),
        expunged: expunged.when(store.synced()).unwrap(),
    };
    let now = snapshot(&mut store, mailbox);
    let known = convert::all(&before);
    for unknown in [false, true] {
        // Where the history does not go back so far everything absent is gone.
        let expunged = since.expunged.clone().filter(|_| !unknown);
        let since = Since { expunged, ..since };
        let told = [&mut asks, &mut rests].map(|open| {
            let answer = changes(Some(open), &now, &since, 0);
            assert!(open.seen.is_some() && !open.is_behind);
            let gone = match answer.gone {
                Gone::These(uids) => uids.intersection(&known),
                Gone::AllBut(uids) => known.difference(&uids),
            };
            let changed = answer.changed.into_iter();
            let changed: Vec<_> = changed.filter(|of| of.uid < since.uid_next).collect();
            (gone.to_string(), changed, answer.added, answer.mod_seq)
        });
        assert_eq!(told[0], told[1]);
        let (gone, changed, added, _) = &told[0];
        assert_eq!((gone.as_str(), changed.len()), ("5", 1));
        assert_eq!(added.to_string(), "11,13");
        asks.seen = Some(before.clone());
        rests.seen = None;
    }
}
