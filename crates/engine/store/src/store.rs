//! The store itself: opening, changing, syncing.

use std::collections::{BTreeSet, HashMap};

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{Batch, MetaEngine, Partition};
use vere_ports::storage::Storage;
use vere_units::ByteSize;

use crate::account::{Account, Emptying};
use crate::batch::{self, Change};
use crate::body::BodyReader;
use crate::error::StoreError;
use crate::keepers::Keepers;
use crate::log::format::{RECORD_HEAD, RecordKind};
use crate::log::{
    Log, LogFile, OpenError, OpenReport, Position, SPARES, SyncJob, SyncOutcome, io_error,
};
use crate::mailbox::Mailbox;
use crate::model::{MailboxId, MailboxName, SpecialUse};
use crate::pending::Pending;
use crate::reclaim::{Pass, Removed};
use crate::replay::{Applying, Gap};

/// First number of a mailbox use. Uses count upwards; mailboxes read ahead of use count downwards.
const FIRST_USE: u64 = 1 << 32;

/// The accounts among which equal content of separate deliveries is stored once. Beyond one account, a sender who can
/// measure the cost of a delivery can find out the content of other accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// Within an account.
    #[default]
    Account,
    /// Among all accounts.
    All,
}

/// Configuration of a store.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// Octets of a segment file; a longer record gets a segment file of its own.
    pub segment_size: ByteSize,
    /// Octets of memory for messages of mailboxes. Mailboxes unused for longest are evicted and read again on use.
    pub resident_max: ByteSize,
    /// Maximum number of mailboxes of an account.
    pub mailboxes_max: u32,
    /// Mailboxes of a new account beside `INBOX`, subscribed.
    pub new_account: Vec<(MailboxName, Option<SpecialUse>)>,
    /// Maximum number of UIDs in a mailbox's history of expunged messages.
    pub expunged_max: u32,
    /// Rows of deleted mailboxes removed per step.
    pub removed_at_once: u32,
    /// Whether expunged messages are kept until [`Store::let_go`].
    pub keep_expunged: bool,
    /// Octets of the disk kept in reserve, for removing messages when the disk is full.
    pub spare: ByteSize,
    /// Which accounts share equal content of separate deliveries.
    pub sharing: Sharing,
    /// A random number for the log of a new store.
    pub log_id: u64,
    /// The store had a log before. If no log can be read, opening fails and touches no file, instead of starting a
    /// new log.
    pub begun: bool,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            segment_size: ByteSize::mib(64),
            resident_max: ByteSize::mib(256),
            mailboxes_max: 10_000,
            new_account: Vec::new(),
            expunged_max: 100_000,
            removed_at_once: 2_000,
            keep_expunged: false,
            spare: ByteSize::new(0),
            sharing: Sharing::default(),
            log_id: 0,
            begun: false,
        }
    }
}

/// The changes that a sync made visible; watching sessions read these mailboxes and accounts again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Published {
    /// Every change before this position is safe.
    pub synced: Position,
    /// Mailboxes that changed.
    pub mailboxes: BTreeSet<MailboxId>,
    /// Accounts whose list of mailboxes changed.
    pub accounts: BTreeSet<AccountName>,
}

/// Counters of operations since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages added to mailboxes, copies included.
    pub messages_added: u64,
    /// Messages expunged or moved away; messages of deleted mailboxes are not counted.
    pub messages_removed: u64,
    /// Changes logged.
    pub changes: u64,
    /// Their octets.
    pub change_octets: u64,
    /// Bodies logged.
    pub bodies: u64,
    /// Their octets.
    pub body_octets: u64,
}

/// The mail store: a log of all records, and the metadata replayed from the log.
#[derive(Debug)]
pub struct Store<S: Storage, M: MetaEngine> {
    pub(crate) log: Log<S>,
    pub(crate) meta: M,
    pub(crate) config: StoreConfig,
    pub(crate) pending: Pending,
    pub(crate) accounts: HashMap<AccountName, Account>,
    pub(crate) mailboxes: HashMap<MailboxId, Mailbox>,
    pub(crate) emptying: Emptying,
    pub(crate) kept: Keepers,
    /// Octets that messages take in memory, and the use that comes next.
    pub(crate) resident: usize,
    pub(crate) uses: u64,
    /// The use number of the mailbox read ahead last, below all other use numbers.
    pub(crate) ahead: u64,
    pub(crate) reclaiming: Option<Pass>,
    /// The number of the last pass.
    pub(crate) passes: u64,
    /// Octets found needless by the last reclaiming pass, and octets removed since.
    pub(crate) dead: u64,
    pub(crate) removed: Removed,
    pub(crate) counts: Counts,
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Opens the store in a directory, or creates a store in an empty directory, and replays the log into the
    /// metadata.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: the store stays closed, and no change of importance was made.
    pub fn open(
        storage: S,
        mut meta: M,
        config: StoreConfig,
    ) -> Result<(Self, OpenReport), OpenError> {
        let from = meta.applied().map_err(OpenError::Meta)?;
        let mut replay = Applying::new(&mut meta, Gap::Wait);
        let sizes = (config.segment_size.as_u64(), config.spare.as_u64());
        let new_id = (!config.begun).then_some(config.log_id);
        let (mut log, report) = Log::open(storage, sizes, new_id, from, &mut replay)?;
        replay.finish(log.end())?;
        // The spare files come last: opening may have failed for want of their disk space.
        log.make_spare().map_err(io_error(SPARES[0]))?;
        let store = Self {
            log,
            meta,
            config,
            pending: Pending::default(),
            accounts: HashMap::new(),
            mailboxes: HashMap::new(),
            emptying: Emptying::default(),
            kept: Keepers::default(),
            resident: 0,
            uses: FIRST_USE,
            ahead: FIRST_USE,
            reclaiming: None,
            passes: 0,
            dead: 0,
            removed: Removed::default(),
            counts: Counts::default(),
        };
        Ok((store, report))
    }

    /// The number of the log, created with the store. Data that refers to log positions names this number too.
    #[must_use]
    pub fn log_id(&self) -> vere_units::LogId {
        vere_units::LogId(self.log.id())
    }

    /// Returns the counters of operations since the store was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The position before which every change is safe.
    #[must_use]
    pub fn synced(&self) -> Position {
        Position(self.log.synced())
    }

    /// The position after the last change.
    #[must_use]
    pub fn end(&self) -> Position {
        Position(self.log.end())
    }

    /// Returns the job that makes all changes up to now safe; absent if every change is safe already, or while another
    /// job runs. Run the job on a thread that may block, then pass the outcome to [`Store::finish_sync`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`], for good.
    pub fn sync_job(&mut self) -> Result<Option<SyncJob<S>>, StoreError> {
        self.log.sync_job()
    }

    /// Accepts the outcome of a [`SyncJob`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`], for good: no waiting change may be confirmed to a client.
    pub fn finish_sync(&mut self, outcome: SyncOutcome) -> Result<Published, StoreError> {
        self.log.finish(outcome)?;
        let synced = self.log.synced();
        let batches = self.pending.take_before(synced);
        if let Err(error) = self.meta.apply(&batches, synced) {
            return Err(self.log.fail(error.to_string()));
        }
        self.pending.applied(&batches);
        let mut published = Published {
            synced: Position(synced),
            ..Published::default()
        };
        for batch in batches {
            match batch.partition {
                Partition::Account(name) => drop(published.accounts.insert(name)),
                // The deletion of a mailbox is published once, not with every piece of emptying.
                Partition::Mailbox(id) if self.emptying.has(MailboxId(id)) => {}
                Partition::Mailbox(id) => drop(published.mailboxes.insert(MailboxId(id))),
            }
        }
        published.mailboxes.extend(self.emptying.take_begun());
        Ok(published)
    }

    /// Persists the rows of the metadata engine, so that the next start replays less of the log.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    pub fn persist(&mut self) -> Result<(), StoreError> {
        Ok(self.meta.persist()?)
    }

    /// Returns the files of the log that together hold every change before [`Store::synced`], for a copy. A copy of
    /// these octets opens as a store of its own, which has everything that was safe. Until the copy is made, no segment
    /// may be reclaimed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the length of a file cannot be read.
    pub fn log_files(&self) -> Result<Vec<LogFile>, StoreError> {
        self.log.files()
    }

    /// Returns a reader for the bodies written until now, independent of the store.
    #[must_use]
    pub fn body_reader(&self) -> BodyReader<S> {
        let (segments, written) = self.log.segments();
        BodyReader {
            segments,
            written,
            log: self.log.id(),
        }
    }

    /// Logs a change of a partition, atomically, and returns the partition's new version.
    pub(crate) fn commit(&mut self, change: Change) -> Result<u64, StoreError> {
        let payload = batch::encode(
            &change.partition,
            change.expected,
            change.clear,
            &change.rows,
        );
        self.log.reserve((RECORD_HEAD + payload.len()) as u64)?;
        let version = self.log.append(RecordKind::Batch, &[&payload])?;
        self.counts.changes += 1;
        self.counts.change_octets += payload.len() as u64;
        // About half the octets of changes remain needed as current rows.
        self.count_removed(version, payload.len() as u64 / 2);
        if let Some(pass) = &mut self.reclaiming {
            pass.note(&change.partition, change.clear, &change.rows);
        }
        self.pending.push(Batch {
            partition: change.partition,
            expected: change.expected,
            version,
            clear: change.clear,
            rows: change.rows,
            hints: change.hints,
        });
        Ok(version)
    }
}
