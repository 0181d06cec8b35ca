//! The store on a disk in memory.

mod basics;
mod crashes;
mod emptying;
mod full_disk;
mod joining;
mod keeping;
mod names;
mod pieces;
mod reclaiming;
mod renaming;
mod repairing;
mod snapshots;
mod unreadable;

use std::ops::RangeInclusive;

use vere_faults::{MemoryDisk, MemoryMeta};
use vere_ports::directory::AccountName;
use vere_ports::storage::{Storage as _, StorageFile as _};
use vere_units::{ByteSize, Timestamp};

use crate::{
    Added, Committed, Flags, InternalDate, MailboxId, MailboxName, OperationId, Prepared,
    Published, QuotaLimit, RecipientFields, Snapshot, Store, StoreConfig, StoreError, Target,
};

type Tested = Store<MemoryDisk, MemoryMeta>;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn config() -> StoreConfig {
    StoreConfig {
        segment_size: ByteSize::kib(16),
        log_id: 0x1234_5678_9abc_def0,
        expunged_max: 100,
        removed_at_once: 3,
        ..StoreConfig::default()
    }
}

fn account(name: &str) -> AccountName {
    AccountName::parse(&format!("{name}@demo.test")).unwrap()
}

fn name(text: &str) -> MailboxName {
    MailboxName::new(text).unwrap()
}

fn operation(number: u64) -> OperationId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    OperationId(id)
}

fn message(number: u64) -> Vec<u8> {
    let text = "so it goes ".repeat((number % 90) as usize);
    format!("Subject: {number}\r\nFrom: a@demo.test\r\n\r\n{text}{number}\r\n").into_bytes()
}

fn prepared(number: u64) -> Prepared {
    Prepared::new(&message(number), b"parsed", &[]).unwrap()
}

fn target(mailbox: MailboxId) -> Target {
    Target {
        mailbox,
        flags: Flags::default(),
        internal_date: InternalDate {
            seconds: 1_700_000_000,
            zone_minutes: 60,
        },
        fields: RecipientFields::default(),
        quota: QuotaLimit::default(),
    }
}

/// Syncs until nothing waits.
fn sync(store: &mut Tested) -> Published {
    let mut published = Published::default();
    while let Some(job) = store.sync_job().unwrap() {
        let more = store.finish_sync(job.run()).unwrap();
        published.synced = more.synced;
        published.mailboxes.extend(more.mailboxes);
        published.accounts.extend(more.accounts);
    }
    published
}

/// Empties all mailboxes that were deleted.
fn empty(store: &mut Tested) {
    while store.is_emptying() {
        store.empty_some().unwrap();
        sync(store);
    }
}

/// The value once it is safe.
fn safe<T: std::fmt::Debug>(store: &mut Tested, committed: Committed<T>) -> T {
    sync(store);
    committed.when(store.synced()).unwrap()
}

/// Puts a file on a disk.
fn put(disk: &MemoryDisk, name: &str, data: &[u8]) {
    let file = disk.create(name).unwrap();
    file.write_at([data, &[]], 0).unwrap();
    file.sync().unwrap();
    disk.sync().unwrap();
}

/// A store with a new account, on a separate disk.
struct Bench {
    disk: MemoryDisk,
    meta: MemoryMeta,
    store: Tested,
    inbox: MailboxId,
}

impl Bench {
    fn new() -> Self {
        let (disk, meta) = (MemoryDisk::default(), MemoryMeta::default());
        let (mut store, _) = Store::open(disk.clone(), meta.clone(), config()).unwrap();
        let inbox = store.open_account(&account("ann"), NOW).unwrap();
        let inbox = safe(&mut store, inbox);
        Self {
            disk,
            meta,
            store,
            inbox,
        }
    }

    /// Opens it again, as it is on the disk, with an engine that has nothing when `forget`.
    fn reopen(&mut self, forget: bool) {
        if forget {
            self.meta = MemoryMeta::default();
        }
        self.store = Store::open(self.disk.clone(), self.meta.clone(), config())
            .unwrap()
            .0;
    }

    fn create(&mut self, text: &str) -> MailboxId {
        let made = self
            .store
            .create_mailbox(&account("ann"), &name(text), None, NOW);
        safe(&mut self.store, made.unwrap())
    }

    fn deliver(&mut self, mailbox: MailboxId, number: u64) -> Added {
        self.try_deliver(mailbox, number, operation(number))
            .unwrap()
    }

    fn fill(&mut self, mailbox: MailboxId, numbers: RangeInclusive<u64>) {
        numbers.for_each(|number| {
            self.deliver(mailbox, number);
        });
    }

    fn try_deliver(
        &mut self,
        mailbox: MailboxId,
        number: u64,
        id: OperationId,
    ) -> Result<Added, StoreError> {
        let results = self
            .store
            .deliver(&prepared(number), &[target(mailbox)], id)
            .unwrap();
        safe(&mut self.store, results).remove(0)
    }

    fn snapshot(&mut self, mailbox: MailboxId) -> Snapshot {
        let snapshot = self.store.snapshot(mailbox).unwrap();
        safe(&mut self.store, snapshot)
    }

    /// The messages of a mailbox as they read.
    fn read(&mut self, mailbox: MailboxId) -> Vec<(u32, Vec<u8>)> {
        let snapshot = self.snapshot(mailbox);
        let reader = self.store.body_reader();
        let read = |message: &crate::Message| {
            let mut body = reader.open(message.blob).unwrap();
            let own = self
                .store
                .own_fields(mailbox, message.uid)
                .unwrap()
                .render();
            let whole = [own, body.message().unwrap()].concat();
            assert_eq!(whole.len() as u32, message.size);
            (message.uid.get(), whole)
        };
        snapshot.iter_from(0).map(read).collect()
    }
}
