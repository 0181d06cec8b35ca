use std::time::Duration;

use vere_ports::directory::AccountName;
use vere_store::{Flags, InternalDate, OperationId, Prepared, QuotaLimit, Target};
use vere_units::Timestamp;

use super::*;
use crate::store::files::Files;

/// Octets of the field of each message.
const HUGE: usize = 60_000;
const COUNT: u8 = 20;

fn sync(store: &mut MailStore) {
    while let Some(job) = store.sync_job().unwrap() {
        store.finish_sync(job.run()).unwrap();
    }
}

/// A mailbox of messages whose fields are much longer than they are taken for.
fn filled(store: &mut MailStore) -> MailboxId {
    let ann = AccountName::parse("ann@demo.test").unwrap();
    let opened = store.open_account(&ann, Timestamp::from_millis(1)).unwrap();
    sync(store);
    let mailbox = opened.when(store.synced()).unwrap();
    for number in 0..COUNT {
        let text = format!("X-Huge: {number} {}\r\n\r\ntext\r\n", "x".repeat(HUGE));
        let body = Prepared::new(text.as_bytes(), &[], &[]).unwrap();
        let target = Target {
            mailbox,
            flags: Flags::default(),
            internal_date: InternalDate::default(),
            fields: RecipientFields::default(),
            quota: QuotaLimit::default(),
        };
        let done = store.deliver(&body, &[target], OperationId([number; 16]));
        let done = done.unwrap();
        sync(store);
        assert!(done.when(store.synced()).unwrap()[0].is_ok());
    }
    mailbox
}

/// One message is damaged, one is gone from the log, one cannot be read now: only the last may be asked for again.
#[test]
fn what_is_damaged_is_told_from_what_cannot_be_read_now() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("log")).unwrap();
    let mut store = Files::lock(folder.path()).unwrap().open().unwrap();
    let mailbox = filled(&mut store);
    let query = FetchQuery {
        mailbox: mailbox.0,
        uids: UidSet::range(1, 5),
        changed_since: None,
        need: Need::Parsed,
        parsed: true,
        fields: None,
        octets_max: 32 * 1024,
    };
    let chosen = choose(&mut store, &query).unwrap();
    let chosen = chosen.when(store.synced()).unwrap().unwrap();
    let messages = chosen.rows(|(message, _), _, _| match message.uid.get() {
        1 => Err(StoreError::Damaged("a body".to_owned())),
        2 => Err(StoreError::Gone),
        3 => Err(StoreError::Failed("EIO".to_owned())),
        _ => Ok(Content::default()),
    });
    assert_eq!((messages.damaged, messages.unavailable), (2, 1));
    assert_eq!(messages.rows.len(), 2);
}

#[test]
fn a_batch_ends_by_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("log")).unwrap();
    let mut store = Files::lock(folder.path()).unwrap().open().unwrap();
    let mailbox = filled(&mut store);
    let names: Arc<[String]> = ["X-Huge".to_owned()].into();
    let octets_max = 32 * 1024;
    let mut reading = Reading {
        parsers: Parsers::new(Duration::from_secs(60)),
        need: Need::Header,
        parsed: false,
        fields: Some(Arc::clone(&names)),
        memory: Vec::new(),
    };
    let mut rest = UidSet::range(1, u32::MAX);
    let mut uids = Vec::new();
    while !rest.is_empty() {
        let query = FetchQuery {
            mailbox: mailbox.0,
            uids: rest,
            changed_since: None,
            need: Need::Header,
            parsed: false,
            fields: Some(Arc::clone(&names)),
            octets_max,
        };
        let chosen = choose(&mut store, &query).unwrap();
        let chosen = chosen.when(store.synced()).unwrap().unwrap();
        // They are taken for so little that more are chosen than there is room for.
        let count = chosen.messages.len();
        let messages = chosen.rows(|referred, reader, found| reading.read(referred, reader, found));
        let octets: usize = messages.rows.iter().map(|row| row.content.len()).sum();
        assert!(octets > HUGE && octets < octets_max * OVERSHOOT + HUGE + 100);
        assert!(messages.rows.len() < count || messages.rest.is_empty());
        uids.extend(messages.rows.iter().map(|row| row.flags.uid));
        rest = messages.rest;
    }
    // None is left out, and none comes twice.
    assert!(uids.into_iter().eq(1..=u32::from(COUNT)));
}
