//! Commits read from the log, and the chain of a whole log.

use super::*;
use crate::fingerprint::Fingerprint;
use crate::format::commit::{Checkpoint, Record, RecordKind, RowChange};
use crate::format::{
    Builder, ChunkId, Codec, Encoding, FormatError, Index, IndexEntry, Keys, Locator, MailCopy,
    VolumeKey,
};
use crate::found::{Found, in_order, is_own_row, own_row};
use crate::rows::{Key, PackRow, RowValue};

const VOLUME: VolumeId = VolumeId([9; 16]);

fn keys() -> Keys {
    Keys::of_epochs(&[(1, VolumeKey([3; 32])), (2, VolumeKey([4; 32]))]).unwrap()
}

fn record(parent: MailId, generation: u64) -> Record {
    Record {
        kind: RecordKind::Change,
        lead_epoch: 1,
        generation,
        parent,
        time: 0,
        checkpoint: None,
        merged: Vec::new(),
        ancestors: Vec::new(),
        rows: vec![RowChange {
            key: b"key".to_vec(),
            value: Some(b"value".to_vec()),
        }],
        index: Index::default(),
    }
}

/// The body of a mail whose last frame is a record, with content if any.
fn body(kind: Kind, mut record: Record, content: Option<&[u8]>) -> Vec<u8> {
    let mut builder = Builder::new(kind, VOLUME, 1, 0, PackNumber(5));
    if let Some(content) = content {
        let content = Bytes::copy_from_slice(content);
        let place = builder.push(Codec::Plain, content).unwrap();
        record.index.entries.push(IndexEntry {
            place,
            chunk: ChunkId([8; 16]),
            inode: 2,
            offset: 0,
        });
    }
    let last = record.encode().unwrap();
    let sealed = builder.finish(last.into(), &keys()).unwrap();
    Encoding::EightBit.encode(&sealed.body)
}

fn read(body: &[u8]) -> Result<Found, FormatError> {
    Found::read(11, body, Encoding::EightBit, (&keys(), VOLUME))
}

/// A commit of an epoch, found at a UID.
fn found(uid: u32, number: u8, parent: MailId, epoch: u16) -> Found {
    let mut head = head_of(number, Kind::Commit);
    head.epoch = epoch;
    Found {
        uid,
        head,
        octets: 100,
        record: record(parent, 4),
    }
}

fn uids(found: &[Found]) -> Vec<u32> {
    found.iter().map(|found| found.uid).collect()
}

#[test]
fn a_commit_is_read_with_its_place() {
    let mut of = record(HEAD, 4);
    let text = body(Kind::Commit, of.clone(), None);
    let commit = read(&text).unwrap();
    assert_eq!((commit.uid, &commit.record), (11, &of));
    assert_eq!(commit.id(), commit.head.mail);
    assert_ne!(commit.id(), MailId::NONE);
    let child = Child {
        id: commit.id(),
        parent: HEAD,
        covers: 0,
    };
    assert_eq!(commit.child(), child);
    let place = Won {
        commit: commit.id(),
        generation: 4,
        uid_validity: NUMBERS,
        uid: 11,
    };
    assert_eq!(commit.won(NUMBERS), place);
    assert_eq!(commit.rows(2), of.rows, "no content, no row of its own");
    of.checkpoint = Some(Checkpoint {
        covers: 3.try_into().unwrap(),
        covered_uid: 10,
        root: Locator::default(),
    });
    let text = body(Kind::Commit, of, None);
    assert_eq!(read(&text).unwrap().child().covers, 3);
}

/// The commit cannot name its own UID: readers of the log add the row.
#[test]
fn a_commit_with_content_has_a_row_of_its_own() {
    let commit = read(&body(Kind::Commit, record(HEAD, 4), Some(b"content"))).unwrap();
    let rows = commit.rows(2);
    assert_eq!(rows.len(), 2);
    let row = PackRow::decode(rows[1].value.as_deref().unwrap()).unwrap();
    assert_eq!(Key::decode(&rows[1].key), Ok(Key::Pack(5)));
    let copy = MailCopy {
        account: 2,
        mailbox: 1,
        uid: 11,
    };
    assert_eq!((row.mail, row.copies), (commit.id(), vec![copy]));
    assert!(row.octets > 68 + 7);
    let own = own_row(commit.won(0), 2, (PackNumber(5), row.octets));
    assert_eq!(own, rows[1]);
    let is_own = |of, change: &RowChange| is_own_row(of, &change.key, change.value.as_deref());
    assert!(is_own(commit.id(), &own));
    assert!(!is_own(HEAD, &own), "another mail's row");
    assert!(!is_own(commit.id(), &rows[0]), "no row of a pack");
    let removed = RowChange {
        value: None,
        ..own.clone()
    };
    assert!(!is_own(commit.id(), &removed));
    let elsewhere = RowChange {
        key: rows[0].key.clone(),
        ..own
    };
    assert!(!is_own(commit.id(), &elsewhere));
}

#[test]
fn no_other_mail_is_a_commit() {
    let text = body(Kind::Commit, record(HEAD, 4), None);
    let mut damaged = text.clone();
    damaged[90] ^= 1;
    assert!(read(&damaged).is_err());
    let other = Found::read(11, &text, Encoding::EightBit, (&keys(), VolumeId([1; 16])));
    assert!(other.is_err(), "another volume with the same keys");
    let pages = read(&body(Kind::Pages, record(HEAD, 4), None));
    assert!(pages.is_err(), "a record in a mail of another kind");
}

/// 1 ─ 2 ─ 3, a younger child of 1, a copy of 2, and a line without a beginning.
#[test]
fn the_chain_of_a_log_has_the_elder_children() {
    let log = || {
        vec![
            found(16, 8, id(77), 1),
            found(15, 3, id(2), 1),
            found(14, 2, id(1), 1),
            found(13, 9, id(1), 1),
            found(12, 2, id(1), 1),
            found(11, 1, MailId::NONE, 1),
        ]
    };
    let (chain, outside) = in_order(log(), None);
    assert_eq!(uids(&chain), [11, 12, 15]);
    assert_eq!(uids(&outside), [13, 16]);
    // A chain may begin later, with commits before gone.
    let (chain, outside) = in_order(log(), Some(id(2)));
    assert_eq!(uids(&chain), [12, 15]);
    assert_eq!(chain[0].id(), id(2));
    assert!(!uids(&outside).contains(&12));
    let (chain, outside) = in_order(log(), Some(id(99)));
    assert_eq!((chain.len(), outside.len()), (0, 6));
}

/// The keys of an ended epoch may be in other hands.
#[test]
fn a_commit_with_older_keys_than_its_parent_does_not_count() {
    let log = vec![
        found(11, 1, MailId::NONE, 1),
        found(12, 2, id(1), 2),
        found(13, 3, id(2), 1),
        found(14, 4, id(2), 2),
        found(15, 5, id(4), 2),
    ];
    let (chain, outside) = in_order(log, None);
    assert_eq!(uids(&chain), [11, 12, 14, 15]);
    assert_eq!(uids(&outside), [0_u32; 0]);
}

#[test]
fn a_fingerprint_tells_the_generation() {
    let own: Fingerprint = "4711-9c1185a5".parse().unwrap();
    assert_eq!(own.generation(), 4_711);
}
