use std::time::Duration;

use tempfile::TempDir;
use vere_store::{Prepared, SystemFlags};

use super::*;
use crate::store::filled::{self, deliver, inbox};

/// Octets of the field of each message.
const HUGE: usize = 60_000;
const COUNT: u8 = 20;

/// A mailbox of messages whose fields are much longer than they are taken for.
fn filled() -> (TempDir, MailStore, MailboxId) {
    let (folder, mut store) = filled::store();
    for number in 0..COUNT {
        let text = format!("X-Huge: {number} {}\r\n\r\ntext\r\n", "x".repeat(HUGE));
        let body = Prepared::new(text.as_bytes(), &[], &[]).unwrap();
        deliver(&mut store, &body, SystemFlags::default(), number);
    }
    let mailbox = inbox(&mut store);
    (folder, store, mailbox)
}

/// One message is damaged, one is gone from the log, one cannot be read now: only the last may be asked for again.
#[test]
fn what_is_damaged_is_told_from_what_cannot_be_read_now() {
    let (_folder, mut store, mailbox) = filled();
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
    let (_folder, mut store, mailbox) = filled();
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
