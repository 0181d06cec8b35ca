//! Power cuts at every point at which something is written, with what was not synced lost, torn or
//! kept: afterwards the store is whole, nothing acknowledged is missing, and doing everything once
//! more, as whoever got no answer does, ends as if there had been no cut.

use std::collections::{BTreeMap, BTreeSet};

use vere_faults::{Fate, Seeded};

use super::names::Names;
use super::*;
use crate::{Copied, FlagMode, ModSeq, SystemFlags, Uid};

/// What a user does, in order; each step may be done again.
#[derive(Debug, Clone, Copy)]
enum Step {
    Deliver(u64),
    Both(u64),
    Seen(u64),
    Move(u64),
    Copy(u64),
    Expunge(u64),
    Create,
    Rename,
    Delete,
    Subscribe(bool),
    /// To another account.
    Other(u64),
    RemoveOther,
}

fn steps() -> Vec<Step> {
    let mut steps = vec![
        Step::Deliver(1),
        Step::Deliver(2),
        Step::Both(3),
        Step::Seen(1),
    ];
    steps.extend([
        Step::Move(2),
        Step::Create,
        Step::Subscribe(true),
        Step::Deliver(4),
        Step::Copy(4),
        Step::Other(6),
        Step::Expunge(1),
        Step::Rename,
        Step::Both(5),
    ]);
    steps.extend([
        Step::Subscribe(false),
        Step::Delete,
        Step::RemoveOther,
        Step::Deliver(80),
        Step::Other(7),
        Step::Move(5),
        Step::Seen(4),
        Step::Deliver(89),
    ]);
    steps.extend([
        Step::Deliver(88),
        Step::Expunge(4),
        Step::Deliver(87),
        Step::Both(86),
    ]);
    steps
}

/// What was promised: in each mailbox, by UID, the content; what may be gone; the greatest numbers.
#[derive(Debug, Default)]
struct Promised {
    messages: BTreeMap<(u8, Uid), Vec<u8>>,
    leaving: BTreeSet<(u8, Uid)>,
    mod_seqs: BTreeMap<u8, ModSeq>,
    names: Names,
}

struct World {
    store: Tested,
    inbox: MailboxId,
    archive: MailboxId,
    promised: Promised,
}

const INBOX: u8 = 0;
const ARCHIVE: u8 = 1;
const LISTS: u8 = 2;

impl World {
    /// Opens the store of a disk and finds the mailboxes.
    fn open(disk: &MemoryDisk, meta: &MemoryMeta, promised: Promised) -> Result<Self, StoreError> {
        let opened = Store::open(disk.clone(), meta.clone(), config());
        let (mut store, _) = opened.map_err(|error| StoreError::Failed(error.to_string()))?;
        let inbox = store.open_account(&account("ann"), NOW)?;
        let archive = match store.mailbox_named(&account("ann"), &name("Archive")) {
            Err(StoreError::NoMailbox) => {
                store.create_mailbox(&account("ann"), &name("Archive"), None, NOW)?
            }
            found => found?,
        };
        let (inbox, archive) = (settled(&mut store, inbox)?, settled(&mut store, archive)?);
        Ok(Self {
            store,
            inbox,
            archive,
            promised,
        })
    }

    fn id(&self, mailbox: u8) -> MailboxId {
        if mailbox == INBOX {
            self.inbox
        } else {
            self.archive
        }
    }

    /// The UID of a message with a content.
    fn uid_of(&mut self, mailbox: u8, number: u64) -> Result<Option<Uid>, StoreError> {
        let snapshot = self.store.snapshot(self.id(mailbox))?;
        let snapshot = settled(&mut self.store, snapshot)?;
        let reader = self.store.body_reader();
        for message in snapshot.iter_from(0) {
            if reader.open(message.blob)?.message()? == super::message(number) {
                return Ok(Some(message.uid));
            }
        }
        Ok(None)
    }

    fn deliver(&mut self, number: u64, mailboxes: &[u8]) -> Result<(), StoreError> {
        let targets: Vec<_> = mailboxes
            .iter()
            .map(|mailbox| target(self.id(*mailbox)))
            .collect();
        let added = self
            .store
            .deliver(&prepared(number), &targets, operation(number))?;
        for (mailbox, added) in mailboxes.iter().zip(settled(&mut self.store, added)?) {
            let key = (*mailbox, added?.uid);
            let before = self.promised.messages.insert(key, super::message(number));
            assert!(
                before.is_none_or(|before| before == super::message(number)),
                "{key:?} was given twice"
            );
        }
        Ok(())
    }

    fn change(&mut self, number: u64, flag: SystemFlags) -> Result<Option<Uid>, StoreError> {
        let Some(uid) = self.uid_of(INBOX, number)? else {
            return Ok(None);
        };
        let flags = Flags {
            system: flag,
            keywords: Vec::new(),
        };
        let stored = self
            .store
            .store_flags(self.inbox, &[uid], FlagMode::Add, &flags, None)?;
        let stored = settled(&mut self.store, stored)?;
        let newest = self.promised.mod_seqs.entry(INBOX).or_default();
        *newest = stored.mod_seq.max(*newest);
        Ok(Some(uid))
    }

    fn step(&mut self, step: Step) -> Result<(), StoreError> {
        match step {
            Step::Deliver(number) => self.deliver(number, &[INBOX]),
            Step::Both(number) => self.deliver(number, &[INBOX, ARCHIVE]),
            Step::Seen(number) => self.change(number, SystemFlags::SEEN).map(drop),
            Step::Expunge(number) => {
                if let Some(uid) = self.change(number, SystemFlags::DELETED)? {
                    self.promised.leaving.insert((INBOX, uid));
                    let expunged = self.store.expunge(self.inbox, Some(&[uid]), NOW)?;
                    settled(&mut self.store, expunged)?;
                    self.promised.messages.remove(&(INBOX, uid));
                }
                Ok(())
            }
            Step::Move(number) => self.move_one(number),
            Step::Copy(number) => self.copy_one(number),
            Step::Create => self.promised.names.create(&mut self.store),
            Step::Rename => self.promised.names.rename(&mut self.store),
            Step::Delete => self.promised.names.delete(&mut self.store),
            Step::Subscribe(on) => self.promised.names.subscribe(&mut self.store, on),
            Step::Other(number) => self.promised.names.deliver(&mut self.store, number),
            Step::RemoveOther => self.promised.names.remove(&mut self.store),
        }
    }

    /// Copies a message; the operation is the same each time, and so is its UID.
    fn copy_one(&mut self, number: u64) -> Result<(), StoreError> {
        let Some(uid) = self.uid_of(INBOX, number)? else {
            return Ok(());
        };
        let id = operation(2_000 + number);
        let copied =
            self.store
                .copy(self.inbox, &[uid], self.archive, QuotaLimit::default(), id)?;
        let copied: Copied = settled(&mut self.store, copied)?;
        let key = (ARCHIVE, copied.to[0]);
        self.promised.messages.insert(key, super::message(number));
        Ok(())
    }

    /// Moves a message; the operation is the same each time, and so are its UIDs.
    fn move_one(&mut self, number: u64) -> Result<(), StoreError> {
        let Some(uid) = self.uid_of(INBOX, number)? else {
            return Ok(());
        };
        self.promised.leaving.insert((INBOX, uid));
        let id = operation(1_000 + number);
        let moved =
            self.store
                .move_to(self.inbox, &[uid], self.archive, QuotaLimit::default(), id)?;
        let moved: Copied = settled(&mut self.store, moved)?;
        self.promised.messages.remove(&(INBOX, uid));
        self.promised
            .messages
            .insert((ARCHIVE, moved.to[0]), super::message(number));
        Ok(())
    }

    /// What is there now, and that it is what was promised.
    fn verify(&mut self, context: &str) -> BTreeMap<u8, Vec<Vec<u8>>> {
        let report = self.store.check_all().unwrap();
        let findings = report
            .findings
            .iter()
            .filter(|finding| !matches!(finding, crate::Finding::Unreachable { messages: 0, .. }));
        assert_eq!(
            findings.collect::<Vec<_>>(),
            Vec::<&crate::Finding>::new(),
            "{context}"
        );
        let mut contents = BTreeMap::new();
        contents.insert(LISTS, self.promised.names.verify(&mut self.store, context));
        for mailbox in [INBOX, ARCHIVE] {
            let snapshot = self.store.snapshot(self.id(mailbox)).unwrap();
            let snapshot = safe(&mut self.store, snapshot);
            let status = snapshot.status();
            let reader = self.store.body_reader();
            let found: BTreeMap<_, _> = snapshot
                .iter_from(0)
                .map(|message| {
                    (
                        message.uid,
                        reader.open(message.blob).unwrap().message().unwrap(),
                    )
                })
                .collect();
            for ((_, uid), content) in self
                .promised
                .messages
                .iter()
                .filter(|((at, _), _)| *at == mailbox)
            {
                assert!(
                    *uid < status.uid_next,
                    "{context}: UID {uid} may be given again"
                );
                match found.get(uid) {
                    Some(there) => assert_eq!(there, content, "{context}: UID {uid}"),
                    None => assert!(
                        self.promised.leaving.contains(&(mailbox, *uid)),
                        "{context}: UID {uid} of {mailbox} is missing"
                    ),
                }
            }
            let promised = self
                .promised
                .mod_seqs
                .get(&mailbox)
                .copied()
                .unwrap_or_default();
            assert!(
                status.highest_mod_seq >= promised,
                "{context}: mod-sequences went back"
            );
            let mut all: Vec<_> = found.into_values().collect();
            all.sort();
            contents.insert(mailbox, all);
        }
        contents
    }
}

/// The value once it is safe; what a host waits for.
pub(super) fn settled<T: std::fmt::Debug>(
    store: &mut Tested,
    committed: Committed<T>,
) -> Result<T, StoreError> {
    while let Some(job) = store.sync_job()? {
        drop(store.finish_sync(job.run())?);
    }
    Ok(committed.when(store.synced()).unwrap())
}

/// Does all steps on a disk; false when the power failed before the end.
fn run(
    disk: &MemoryDisk,
    meta: &MemoryMeta,
    promised: Promised,
    persist: bool,
) -> (bool, Promised) {
    let Ok(mut world) = World::open(disk, meta, promised) else {
        return (false, Promised::default());
    };
    for step in steps() {
        if world.step(step).is_err() {
            return (false, world.promised);
        }
        if persist && matches!(step, Step::Move(_)) {
            world.store.persist().unwrap();
        }
    }
    (true, world.promised)
}

#[test]
fn no_cut_of_power_loses_what_was_acknowledged() {
    let (disk, meta) = (MemoryDisk::default(), MemoryMeta::default());
    let (done, promised) = run(&disk, &meta, Promised::default(), false);
    assert!(done);
    let expected = World::open(&disk, &meta, promised)
        .unwrap()
        .verify("without a cut");
    let points = disk.steps();
    assert!(points > 40, "{points} points to cut at");
    for point in 1..points {
        for seed in 0..8 {
            let context = format!("cut at {point} of {points}, seed {seed}");
            let mut fate = Seeded(point * 100 + seed);
            let (disk, meta) = (MemoryDisk::default(), MemoryMeta::default());
            disk.stop_at(point);
            let (_, promised) = run(&disk, &meta, Promised::default(), seed % 2 == 0);
            disk.crash(&mut fate);
            meta.crash(&mut fate);
            // A second cut while it is being opened again.
            if fate.pick(2) == 0 {
                disk.stop_at(disk.steps() + fate.pick(6) as u64);
                let _ = World::open(&disk, &meta, Promised::default());
                disk.crash(&mut fate);
                meta.crash(&mut fate);
            }
            let meta = if fate.pick(4) == 0 {
                MemoryMeta::default()
            } else {
                meta
            };
            let mut world = World::open(&disk, &meta, promised)
                .unwrap_or_else(|error| panic!("{context}: {error}"));
            world.verify(&context);
            let promised = std::mem::take(&mut world.promised);
            drop(world);
            let (done, promised) = run(&disk, &meta, promised, false);
            assert!(done, "{context}: once more");
            let mut world = World::open(&disk, &meta, promised).unwrap();
            assert_eq!(world.verify(&context), expected, "{context}: once more");
        }
    }
}

/// A failed sync is final: what was dropped then must not be taken for written later.
#[test]
fn after_a_failed_sync_nothing_is_acknowledged() {
    let mut bench = Bench::new();
    bench.deliver(bench.inbox, 1);
    bench.disk.fail_syncs(true);
    let waiting = bench
        .store
        .deliver(&prepared(2), &[target(bench.inbox)], operation(2))
        .unwrap();
    let job = bench.store.sync_job().unwrap().unwrap();
    assert!(bench.store.finish_sync(job.run()).is_err());
    bench.disk.fail_syncs(false);
    assert!(bench.store.sync_job().is_err());
    assert!(waiting.when(bench.store.synced()).is_err());
    assert!(
        bench
            .store
            .deliver(&prepared(3), &[target(bench.inbox)], operation(3))
            .is_err()
    );
    // What the system still shows is written again when the store is opened.
    bench.reopen(false);
    bench.disk.crash(&mut Seeded(1));
    bench.meta.crash(&mut Seeded(1));
    bench.reopen(false);
    assert!((1..=2).contains(&bench.read(bench.inbox).len()));
}

/// Octets that were synced and are not what was written any more: the store says so and does not open.
#[test]
fn damage_is_told_from_a_torn_end() {
    let mut bench = Bench::new();
    bench.fill(bench.inbox, 1..=30);
    let names = vere_ports::storage::Storage::list(&bench.disk).unwrap();
    let first = names.iter().min().unwrap();
    let data = bench.disk.file(first).unwrap();
    for at in (64..data.len() - 2_000).step_by(997) {
        let disk = bench.disk.copy();
        let mut damaged = data.clone();
        damaged[at] ^= 1;
        disk.set_file(first, Some(damaged));
        let opened = Store::open(disk, MemoryMeta::default(), config());
        let error = opened
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(
            error.contains(&format!("{first} is damaged")),
            "octet {at}: {error}"
        );
    }
    // The same without the first segment, and with the metadata but without the log.
    let disk = bench.disk.copy();
    disk.set_file(first, None);
    assert!(Store::open(disk, MemoryMeta::default(), config()).is_err());
    assert!(Store::open(MemoryDisk::default(), bench.meta.clone(), config()).is_err());
}

/// A full disk refuses what is new and goes on when there is room.
#[test]
fn a_full_disk_refuses_and_goes_on() {
    let mut bench = Bench::new();
    bench.disk.set_capacity(Some(40 * 1024));
    let mut taken = 0;
    let refused = loop {
        let number = 80 + taken % 10;
        let sent = bench.store.deliver(
            &prepared(number),
            &[target(bench.inbox)],
            operation(5_000 + taken),
        );
        match sent.map(|results| safe(&mut bench.store, results).remove(0)) {
            Ok(Ok(_)) => taken += 1,
            Ok(Err(error)) | Err(error) => break error,
        }
        assert!(taken < 10_000);
    };
    assert_eq!(refused, StoreError::DiskFull);
    bench.disk.set_capacity(None);
    bench.deliver(bench.inbox, 7);
    bench.reopen(true);
    assert_eq!(bench.read(bench.inbox).len() as u64, taken + 1);
    let report = bench.store.check_all().unwrap();
    assert_eq!((report.findings, report.messages), (Vec::new(), taken + 1));
}
