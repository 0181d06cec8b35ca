use std::time::Duration;

use tempfile::TempDir;
use vere_store::{Prepared, SystemFlags};

use super::*;
use crate::filled::{self, deliver, inbox};

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
        large_from: None,
    };
    let chosen = choose(&mut store, &query).unwrap();
    let chosen = chosen.when(store.synced()).unwrap().unwrap();
    let messages = chosen.rows(|(message, _), _, _| match message.uid.get() {
        1 => Err(StoreError::Damaged("a body".to_owned()).into()),
        2 => Err(StoreError::Gone.into()),
        3 => Err(StoreError::Failed("EIO".to_owned()).into()),
        _ => Ok(Content::default()),
    });
    let messages = messages.messages;
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
        large_from: None,
        alone_max: usize::MAX,
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
            large_from: None,
        };
        let chosen = choose(&mut store, &query).unwrap();
        let chosen = chosen.when(store.synced()).unwrap().unwrap();
        // They are taken for so little that more are chosen than there is room for.
        let count = chosen.messages.len();
        let messages = chosen.rows(|referred, reader, found| reading.read(referred, reader, found));
        let messages = messages.messages;
        let octets: usize = messages.rows.iter().map(|row| row.content.len()).sum();
        assert!(octets > HUGE && octets < octets_max * OVERSHOOT + HUGE + 100);
        assert!(messages.rows.len() < count || messages.rest.is_empty());
        uids.extend(messages.rows.iter().map(|row| row.flags.uid));
        rest = messages.rest;
    }
    // None is left out, and none comes twice.
    assert!(uids.into_iter().eq(1..=u32::from(COUNT)));
}

/// Each row has its own of what is put together, whatever was read into the same memory before, and no more is
/// kept for the next than is bounded.
#[test]
fn each_row_has_its_header_and_what_was_found_in_it() {
    let (_folder, mut store) = filled::store();
    let lengths = [9_000, 0, MEMORY_MAX, 1, 5_000, 300];
    let texts = lengths.map(|length| {
        let subject = "s".repeat(length);
        format!("Subject: {subject}\r\n\r\nbody of {length}\r\n").into_bytes()
    });
    let records = texts.each_ref().map(|text| Parsed::of(text).encode());
    for ((text, record), number) in texts.iter().zip(&records).zip(0..) {
        let body = Prepared::new(text, record, &[]).unwrap();
        deliver(&mut store, &body, SystemFlags::default(), number);
    }
    let mailbox = inbox(&mut store);
    for (need, parsed) in [
        (Need::Header, false),
        (Need::Header, true),
        (Need::Parsed, true),
        (Need::Whole, true),
    ] {
        let query = FetchQuery {
            mailbox: mailbox.0,
            uids: UidSet::range(1, u32::MAX),
            changed_since: None,
            need,
            parsed,
            fields: None,
            octets_max: 1 << 20,
            large_from: None,
        };
        let chosen = choose(&mut store, &query).unwrap();
        let mut chosen = chosen.when(store.synced()).unwrap().unwrap();
        // Not of every message.
        let own = b"Delivered-To: ann@demo.test\r\n";
        chosen.messages[1].1 = own.to_vec();
        let mut reading = Reading {
            parsers: Parsers::new(Duration::from_secs(60)),
            need,
            parsed,
            fields: None,
            large_from: None,
            alone_max: usize::MAX,
            memory: Vec::new(),
        };
        let messages = chosen.rows(|referred, reader, found| {
            let content = reading.read(referred, reader, found);
            assert!(reading.memory.capacity() <= MEMORY_MAX);
            content
        });
        let messages = messages.messages;
        assert_eq!(messages.rows.len(), texts.len());
        for (at, row) in messages.rows.iter().enumerate() {
            let (text, record) = (&texts[at], &records[at]);
            let own = if at == 1 { &own[..] } else { &[] };
            let expected = match need {
                Need::Nothing | Need::Parsed => (&[][..], &[][..]),
                Need::Header => (own, &text[..vere_mime::header_len(text)]),
                Need::Whole => (own, &text[..]),
            };
            assert_eq!(row.content.split_at(row.own), expected);
            assert_eq!(row.parsed, if parsed { &record[..] } else { &[] });
        }
    }
}

/// A message that would take more than it may is read when there is room for it; one whose octets lie in a range of it
/// is given in pieces.
#[tokio::test]
async fn what_is_large_is_given_in_pieces_or_waits_for_room() {
    let (_folder, mut store) = filled::store();
    let header = format!("X-Long: {}\r\n\r\n", "h".repeat(50_000));
    let texts = [
        "Subject: small\r\n\r\ntext\r\n".to_owned(),
        format!("{header}{}", "so it goes ".repeat(20_000)),
        "Subject: last\r\n\r\ntext\r\n".to_owned(),
    ];
    for (text, number) in texts.iter().zip(0..) {
        let body = Prepared::new(text.as_bytes(), &[], &[]).unwrap();
        deliver(&mut store, &body, SystemFlags::default(), number);
    }
    let mailbox = inbox(&mut store);
    let mut read = |need, large_from, uids: UidSet| {
        let query = FetchQuery {
            mailbox: mailbox.0,
            uids,
            changed_since: None,
            need,
            parsed: false,
            fields: None,
            octets_max: 1 << 20,
            large_from,
        };
        let chosen = choose(&mut store, &query).unwrap();
        let mut chosen = chosen.when(store.synced()).unwrap().unwrap();
        chosen
            .messages
            .iter_mut()
            .for_each(|(_, own)| *own = b"Own: x\r\n".to_vec());
        let mut reading = Reading {
            parsers: Parsers::new(Duration::from_secs(60)),
            need,
            parsed: false,
            fields: None,
            large_from,
            alone_max: 10_000,
            memory: Vec::new(),
        };
        chosen.rows(|referred, reader, found| reading.read(referred, reader, found))
    };
    for (need, octets) in [(Need::Whole, texts[1].len()), (Need::Header, header.len())] {
        let all = || UidSet::range(1, 3);
        let batch = read(need, None, all());
        assert_eq!((batch.messages.rows.len(), batch.needs), (1, None));
        assert_eq!(batch.messages.rest, UidSet::range(2, 3));
        let batch = read(need, None, batch.messages.rest);
        assert_eq!(batch.needs, Some(2 * (octets + 8)));
        assert_eq!(batch.messages.rest, UidSet::range(2, 3));
        let batch = read(need, Some(9_000), all());
        assert_eq!((batch.messages.rows.len(), batch.needs), (2, None));
        assert_eq!(batch.messages.rest, UidSet::range(3, 3));
        let row = &batch.messages.rows[1];
        assert_eq!((row.behind, row.header), (octets + 8, header.len() + 8));
        let mut large = batch.large.expect("the large one");
        let expected = format!("Own: x\r\n{}", texts[1]);
        for (first, octets) in [(0, 100), (100, 50_000), (3, 2), (octets, 8), (2, 10)] {
            let query = vere_imap::server::PieceQuery {
                mailbox: mailbox.0,
                uid: 2,
                first,
                octets,
            };
            let piece = large.piece(query).await.unwrap();
            assert_eq!(piece, expected.as_bytes()[first..first + octets]);
        }
    }
}
