//! The mail store's log, written as by a store, and damaged in every way.
//!
//! The octets are instructions: segments, bodies and batches are written, then cut, flipped, left out, or
//! given wrong values with correct checksums. The formats are implemented here a second time, from
//! `docs/internals/store-log.md`. The store may return no data that is not in the files, and a log that
//! opened once, or was repaired, opens again with the same content.

mod writer;

use std::collections::BTreeMap;

use vere_faults::MemoryMeta;
use vere_ports::directory::AccountName;
use vere_store::{MailboxId, OpenReport, Store, StoreConfig, StoreError};
use vere_units::{ByteSize, Timestamp};

use crate::disk::Disk;
use writer::{ACCOUNT, LOG_ID, MAILBOX, Writer};

/// Metadata for comparison: by partition and key.
type Rows = BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>;
type MailStore = Store<Disk, MemoryMeta>;

pub(super) const SEEDS: &[&[u8]] = &[
    // A mailbox and two messages, all synced, then a change of flags.
    b"\x02\x01\x01\x03\x06",
    // A second segment, and a torn tail.
    b"\x02\x01\x03\x00\x01\x01\x09\x05",
    // A flipped octet in the synced part.
    b"\x02\x01\x01\x03\x01\x07\x00\x60\x00",
    // A snapshot of the mailbox, and a segment rewritten without the records covered by the snapshot.
    b"\x02\x01\x01\x06\x08\x01\x03\x00\x01\x0b\x00\x69",
    // The same log without the first segment.
    b"\x02\x01\x01\x06\x08\x01\x03\x00\x01\x0b\x00\x69\x0c\x00",
    // The records that create a mailbox, and name its owner, are lost, and the body of the only message.
    b"\x02\x0b\x00\x01\x01\x0b\x00\x02",
    // A record of an unknown kind, with other records behind.
    b"\x02\x01\x05\x07\x03new\x01\x03",
    // Impossible counters, and a message record without further fields.
    b"\x02\x01\x04\x01\x01\x02\x3D\x01\x07\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0\0\0\0\0\
        \xFF\xFF\xFF\xFF\0\0\0\0\0\0\0\0\x01\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\
        \0\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x03\x04\x01\x05\x04\0\0\0\x02\x01\x01",
    // The first segment is gone, and in the second there is nothing whole.
    b"\x0F\x04\x01\x05\x04\xFF\xFF\xFF\xFF\x18\x01\xFF\x02\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\0\0\0\0\0\0\0\0\0\0\
        \xFF\xFF\xFF\xFF\x40\0\0\0\0\0\0\0\0\x03\x0C\0\x0A\x01\0\x04\0\x01\x01\x05\x01\xFF\xFF\xFF\xFF",
];

/// Opens the log made by the instructions, reads every message, and repairs the log.
pub(super) fn open(octets: &[u8]) {
    let disk = Writer::new().run(octets);
    let _ = messages(&disk);
    repaired(&disk);
}

fn config() -> StoreConfig {
    StoreConfig {
        segment_size: ByteSize::kib(16),
        log_id: LOG_ID,
        ..StoreConfig::default()
    }
}

fn opened(disk: &Disk, meta: &MemoryMeta) -> Option<(MailStore, OpenReport)> {
    Store::open(disk.clone(), meta.clone(), config()).ok()
}

/// How many messages can be read; absent when the log does not open.
fn messages(disk: &Disk) -> Option<usize> {
    let (before, meta) = (disk.copy(), MemoryMeta::default());
    let (store, _) = opened(disk, &meta)?;
    let rows = meta.rows();
    are_written(&before, &rows);
    drop(store);
    // A log that opened once opens again: with complete metadata, and from the log alone.
    let Some((store, report)) = opened(disk, &meta) else {
        panic!("opened once and not again")
    };
    assert_eq!((report.replayed, report.cut), (0, 0));
    drop(store);
    let fresh = MemoryMeta::default();
    let Some((mut store, report)) = opened(disk, &fresh) else {
        panic!("opened with its metadata and not without")
    };
    assert_eq!(report.cut, 0);
    assert!(
        fresh.rows() == rows,
        "other metadata come from the same log"
    );
    let count = asked(&mut store);
    used(&mut store);
    Some(count)
}

/// Every row stands in a segment, key before value: a batch is not made up.
fn are_written(disk: &Disk, rows: &Rows) {
    let files = disk.files();
    for ((_, key), value) in rows {
        let row = [key.as_slice(), value].concat();
        let is_in = |file: &Vec<u8>| row.is_empty() || file.windows(row.len()).any(|at| at == row);
        assert!(files.values().any(is_in), "a row that nobody wrote");
    }
}

/// Asks for everything that a protocol asks for; gives how many messages could be read.
fn asked(store: &mut MailStore) -> usize {
    let _ = store.check_all();
    let Ok(owner) = AccountName::parse(ACCOUNT) else {
        return 0;
    };
    let _ = (store.list(&owner), store.quota(&owner));
    let id = MailboxId(MAILBOX);
    let _ = (store.status(id), store.claim_recent(id));
    let _ = store.expunged_since(id, vere_store::ModSeq(1));
    let synced = sync(store);
    let Ok(snapshot) = store.snapshot(id) else {
        return 0;
    };
    let Ok(snapshot) = snapshot.when(synced) else {
        return 0;
    };
    let reader = store.body_reader();
    let mut count = 0;
    for message in snapshot.iter_from(0) {
        let _ = store.own_fields(id, message.uid);
        let whole = reader
            .open(message.blob)
            .and_then(|mut body| body.message());
        count += usize::from(whole.is_ok());
    }
    count
}

/// A store that opened accepts mail, and space can be reclaimed.
fn used(store: &mut MailStore) {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let Ok(owner) = AccountName::parse("other@demo.test") else {
        return;
    };
    let Ok(inbox) = store.open_account(&owner, now) else {
        return;
    };
    let synced = sync(store);
    let Ok(inbox) = inbox.when(synced) else {
        panic!("what is synced is not safe")
    };
    writer::deliver(store, inbox, 1);
    writer::deliver(store, MailboxId(MAILBOX), 2);
    sync(store);
    let synced = store.synced();
    let Ok(snapshot) = store.snapshot(inbox) else {
        panic!("no mailbox where one was made")
    };
    let Ok(snapshot) = snapshot.when(synced) else {
        panic!("what is synced is not safe")
    };
    assert!(!snapshot.is_empty(), "what was delivered is not there");
    let _ = reclaimed(store);
}

/// Reclaims all reclaimable space.
fn reclaimed(store: &mut MailStore) -> Result<(), StoreError> {
    loop {
        match store.reclaim(1)? {
            vere_store::Reclaim::Working => drop(sync(store)),
            vere_store::Reclaim::Job(job) => drop(store.finish_reclaim(job.run())?),
            vere_store::Reclaim::Done(_) => return Ok(()),
        }
    }
}

fn sync(store: &mut MailStore) -> vere_store::Position {
    while let Ok(Some(job)) = store.sync_job() {
        if store.finish_sync(job.run()).is_err() {
            break;
        }
    }
    store.synced()
}

/// A repair ends, with a reason or a store that opens and can be asked.
fn repaired(disk: &Disk) {
    let disk = disk.copy();
    let fresh = MemoryMeta::default();
    let done = Store::repair(disk.clone(), None, fresh.clone(), config(), false);
    if done.is_err() {
        return;
    }
    let Some((mut store, report)) = opened(&disk, &fresh) else {
        panic!("repaired and does not open")
    };
    assert_eq!((report.replayed, report.cut), (0, 0));
    asked(&mut store);
}

#[cfg(test)]
mod tests {
    use vere_ports::mail_meta::MetaEngine as _;

    use super::*;

    #[test]
    fn seeds_get_far() {
        let read: Vec<_> = SEEDS
            .iter()
            .map(|seed| messages(&Writer::new().run(seed)))
            .collect();
        assert_eq!(
            read,
            [
                Some(2),
                Some(2),
                None,
                Some(3),
                None,
                None,
                None,
                Some(0),
                None
            ]
        );
    }

    #[test]
    fn seeds_are_repaired() {
        for seed in SEEDS {
            repaired(&Writer::new().run(seed));
        }
    }

    #[test]
    fn what_a_store_writes_is_what_is_written_here() {
        let disk = Writer::new().run(SEEDS[0]);
        let meta = MemoryMeta::default();
        let (mut store, report) = opened(&disk, &meta).unwrap();
        assert_eq!(report.replayed, 7);
        assert_eq!(store.check_all().unwrap().findings, []);
        assert_eq!(meta.applied().unwrap(), store.end().0);
    }
}
