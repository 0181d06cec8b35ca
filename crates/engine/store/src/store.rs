//! The store itself: opening, changing, syncing.

use std::collections::{BTreeSet, HashMap};

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{Batch, MetaEngine, Partition};
use vere_ports::storage::Storage;
use vere_units::ByteSize;

use crate::StoreError;
use crate::account::{Account, Emptying};
use crate::batch::{self, Change};
use crate::body::BodyReader;
use crate::log::format::{RECORD_HEAD, RecordKind};
use crate::log::{Log, OpenError, OpenReport, Position, SPARES, SyncJob, SyncOutcome, io_error};
use crate::mailbox::Mailbox;
use crate::model::{MailboxId, MailboxName, SpecialUse};
use crate::pending::Pending;
use crate::reclaim::{Pass, Removed};
use crate::replay::{Applying, Gap};

/// Uses of mailboxes are counted from here on, and those that nobody asked for yet down from here.
const FIRST_USE: u64 = 1 << 32;

/// Among whom equal content that arrives separately is stored once. Wider than an account, whoever can
/// see what a delivery costs can find out what others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// Within an account.
    #[default]
    Account,
    /// Among all accounts.
    All,
}

/// How the store is built.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// Octets of a segment file; a longer record gets one of its own.
    pub segment_size: ByteSize,
    /// Octets that messages of mailboxes may take in memory; those not used for longest are read
    /// again when they are needed.
    pub resident_max: ByteSize,
    /// Mailboxes of an account.
    pub mailboxes_max: u32,
    /// What a new account gets beside its `INBOX`, subscribed.
    pub new_account: Vec<(MailboxName, Option<SpecialUse>)>,
    /// UIDs in the history of what was expunged from a mailbox.
    pub expunged_max: u32,
    /// Rows of deleted mailboxes that are removed at once.
    pub removed_at_once: u32,
    /// Octets of the disk that are kept for removing messages when it is full.
    pub spare: ByteSize,
    /// Who shares what arrives separately.
    pub sharing: Sharing,
    /// A random number for a store that is made.
    pub log_id: u64,
    /// There was a log: where nothing of one can be read, none is begun and no file is touched.
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
            spare: ByteSize::new(0),
            sharing: Sharing::default(),
            log_id: 0,
            begun: false,
        }
    }
}

/// What became visible by a sync: whoever watches these looks at them again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Published {
    /// Everything before it is safe now.
    pub synced: Position,
    /// Mailboxes that changed.
    pub mailboxes: BTreeSet<MailboxId>,
    /// Accounts whose list of mailboxes changed.
    pub accounts: BTreeSet<AccountName>,
}

/// What was done since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages that came into mailboxes, copies included.
    pub messages_added: u64,
    /// Messages that were expunged or moved away; those of deleted mailboxes are not counted.
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

/// The mail store: a log of everything, and the metadata that follows from it.
#[derive(Debug)]
pub struct Store<S: Storage, M: MetaEngine> {
    pub(crate) log: Log<S>,
    pub(crate) meta: M,
    pub(crate) config: StoreConfig,
    pub(crate) pending: Pending,
    pub(crate) accounts: HashMap<AccountName, Account>,
    pub(crate) mailboxes: HashMap<MailboxId, Mailbox>,
    pub(crate) emptying: Emptying,
    /// Octets that messages take in memory, and the use that comes next.
    pub(crate) resident: usize,
    pub(crate) uses: u64,
    /// The use that the mailbox that was read ahead last counts as: before all others.
    pub(crate) ahead: u64,
    pub(crate) reclaiming: Option<Pass>,
    /// The number of the last pass.
    pub(crate) passes: u64,
    /// Octets that nothing needed when reclaiming ended last, and what was removed since.
    pub(crate) dead: u64,
    pub(crate) removed: Removed,
    pub(crate) counts: Counts,
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Opens the store in a directory, or makes one where there is none, and brings the metadata
    /// to where the log is.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: nothing is served then, and nothing was changed that matters.
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
        // Only now: opening may have failed for want of the room that these take.
        log.make_spare().map_err(io_error(SPARES[0]))?;
        let store = Self {
            log,
            meta,
            config,
            pending: Pending::default(),
            accounts: HashMap::new(),
            mailboxes: HashMap::new(),
            emptying: Emptying::default(),
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

    /// The number of its log, which was made with the store: what names positions of it names it too.
    #[must_use]
    pub fn log_id(&self) -> u64 {
        self.log.id()
    }

    /// What was done since it was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Everything before it is safe.
    #[must_use]
    pub fn synced(&self) -> Position {
        Position(self.log.synced())
    }

    /// The position after everything that was changed.
    #[must_use]
    pub fn end(&self) -> Position {
        Position(self.log.end())
    }

    /// What is to be done so that everything changed until now is safe; none when it is, or while
    /// another job is under way. Run it where it may block, then hand in what came of it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`], for good.
    pub fn sync_job(&mut self) -> Result<Option<SyncJob<S>>, StoreError> {
        self.log.sync_job()
    }

    /// Takes what came of a [`SyncJob`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`], for good: nobody may be told that what waits is done.
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
                // That it is gone is told once, not with every piece.
                Partition::Mailbox(id) if self.emptying.has(MailboxId(id)) => {}
                Partition::Mailbox(id) => drop(published.mailboxes.insert(MailboxId(id))),
            }
        }
        published.mailboxes.extend(self.emptying.take_begun());
        Ok(published)
    }

    /// Makes what the metadata engine has last, so that the next start replays less.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    pub fn persist(&mut self) -> Result<(), StoreError> {
        Ok(self.meta.persist()?)
    }

    /// Reads bodies that were written until now, away from the store.
    #[must_use]
    pub fn body_reader(&self) -> BodyReader<S> {
        let (segments, written) = self.log.segments();
        BodyReader {
            segments,
            written,
            log: self.log.id(),
        }
    }

    /// Logs a change of a partition, whole or not at all, and gives its new version.
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
        // Of changes about half is there once more in the rows that are left of them.
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
