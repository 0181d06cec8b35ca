//! Repairing a store: rebuilds the metadata from the log, and salvages a damaged log.
//!
//! 1. A [`Survey`] of the log finds intact records, and synced records that are lost.
//! 2. Changes are chained: each change carries the version before, which exposes partitions that lost changes. Old
//!    metadata, if present and recent enough, have the changes that the log lost.
//! 3. New metadata are built from log and old metadata.
//! 4. Damaged segments are written again with their intact records; the original octets stay beside the new files.
//! 5. Disagreements between new metadata and bodies are mended ([`mend`]), each partition by a batch in the log with
//!    all rows. From then on the log alone yields the mended metadata.
//!
//! An interrupted repair can be repeated: every step derives its work from the files on the disk.

mod mend;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{Batch, MetaEngine, MetaError, Partition};
use vere_ports::storage::{Storage, StorageFile};

use crate::batch;
use crate::error::StoreError;
use crate::log::format::{RecordHead, RecordKind};
use crate::log::{Damage, OpenError, Replay, Survey};
use crate::model::{BlobId, MailboxId, MailboxName, Uid};
use crate::replay::{Applying, Gap};
use crate::rows::{Referring, keys};
use crate::store::{Store, StoreConfig};
use mend::Mending;

/// Partitions looked at in one go.
const PARTITIONS: usize = 1_000;
/// Maximum octets of mending that wait for a sync.
const UNSYNCED_MAX: u64 = 16 * 1024 * 1024;

/// A message whose body is gone; the repair removed the message from its mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostMessage {
    /// The account of the message, if known.
    pub account: Option<AccountName>,
    /// The name of the mailbox; absent if the mailbox is in no list.
    pub mailbox: Option<MailboxName>,
    /// The mailbox.
    pub id: MailboxId,
    /// The UID of the message.
    pub uid: Uid,
    /// The missing body.
    pub body: BlobId,
    /// Octets of the message.
    pub size: u32,
    /// Arrival of the message, in seconds since 1970.
    pub arrived: i64,
}

/// The findings and actions of a repair, or of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairReport {
    /// Whole records of the log.
    pub records: u64,
    /// Accounts.
    pub accounts: u64,
    /// Mailboxes.
    pub mailboxes: u64,
    /// Remaining messages, each reference counted.
    pub messages: u64,
    /// Stretches of the log without intact records.
    pub damage: Vec<Damage>,
    /// Messages whose body is gone.
    pub lost: Vec<LostMessage>,
    /// Expunged messages that cannot be brought back any more, because their body is gone.
    pub kept_lost: u64,
    /// Mailboxes that lost changes: flags may be older than they were, messages may be missing or back.
    pub changes_lost: Vec<MailboxId>,
    /// Accounts whose list of mailboxes lost changes.
    pub lists_lost: Vec<AccountName>,
    /// Partitions that lost changes in the log which the old metadata still had.
    pub from_metadata: u64,
    /// Bodies without a reference in the remaining changes, listed if the log is damaged: messages of unknown owner.
    pub nameless: Vec<BlobId>,
    /// Names removed from lists because the mailbox is gone.
    pub names_gone: Vec<(AccountName, MailboxName)>,
    /// Mailboxes that were in no list, under their new names.
    pub names_made: Vec<(AccountName, MailboxName)>,
    /// Partitions changed by mending.
    pub mended: u64,
    /// Octets cut behind the last intact record; a dry run reports 0.
    pub cut: u64,
}

impl RepairReport {
    /// Whether something is lost for good.
    #[must_use]
    pub fn has_losses(&self) -> bool {
        let changes = self.changes_lost.len() + self.lists_lost.len() + self.names_gone.len();
        changes + self.lost.len() + self.nameless.len() > 0
    }
}

/// The reason for a failed repair. A failed repair adds no damage to the store.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// Reading or writing the log failed.
    #[error("{0}")]
    Log(OpenError),
    /// Storing the mended rows failed.
    #[error("{0}")]
    Store(StoreError),
}

impl From<OpenError> for RepairError {
    fn from(error: OpenError) -> Self {
        Self::Log(error)
    }
}

impl From<StoreError> for RepairError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<MetaError> for RepairError {
    fn from(error: MetaError) -> Self {
        Self::Log(OpenError::Meta(error))
    }
}

/// The changes of a partition, as far as the log has them.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    /// The version after the last one.
    last: u64,
    /// The version expected by the last change that did not follow its predecessor.
    broken: Option<u64>,
}

/// The contents of the log, from its intact records.
#[derive(Debug, Default)]
struct Told {
    chains: HashMap<Partition, Chain>,
    /// Positions of bodies, rising.
    bodies: Vec<u64>,
    /// Bodies that no change refers or referred to; collected only if the log is damaged.
    nameless: Option<BTreeSet<u64>>,
    records: u64,
}

impl Told {
    fn record(&mut self, head: &RecordHead, payload: &[u8]) {
        self.records += 1;
        if head.kind == RecordKind::Body {
            if let Some(nameless) = &mut self.nameless {
                nameless.insert(head.position);
            }
            return self.bodies.push(head.position);
        }
        let Some(batch) = batch::decode(payload, head.position) else {
            return;
        };
        let chain = self.chains.entry(batch.partition).or_default();
        if batch.clear {
            chain.broken = None;
        } else if batch.expected != chain.last {
            chain.broken = Some(batch.expected);
        }
        chain.last = head.position;
        let Some(nameless) = &mut self.nameless else {
            return;
        };
        for row in &batch.rows {
            for message in Referring::all_of(&row.key, row.value.as_deref()) {
                nameless.remove(&message.blob.0);
            }
        }
    }
}

/// Partitions that lost changes.
#[derive(Debug, Default)]
struct Broken {
    /// Partitions whose state the old metadata have, with its version.
    kept: BTreeMap<Vec<u8>, (Partition, u64)>,
    /// Partitions whose changes are lost.
    gone: BTreeSet<Vec<u8>>,
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Rebuilds the metadata in `fresh`, an empty engine, and mends partitions that the log no longer has in full.
    /// `old` is the previous metadata, if readable; `old` is not changed. With `dry_run` only `fresh` is written.
    ///
    /// # Errors
    ///
    /// [`RepairError`].
    pub fn repair(
        storage: S,
        old: Option<&M>,
        mut fresh: M,
        config: StoreConfig,
        dry_run: bool,
    ) -> Result<RepairReport, RepairError> {
        let applied = old.map_or(Ok(0), MetaEngine::applied)?;
        let survey = Survey::of(&storage, applied)?;
        let mut told = Told {
            nameless: (!survey.damage.is_empty()).then(BTreeSet::new),
            ..Told::default()
        };
        survey.records(&mut |head, _, payload| {
            told.record(head, payload);
            Ok(())
        })?;
        let broken = Broken::of(&told, old)?;
        broken.build(&survey, old, &mut fresh)?;
        let mut report = RepairReport {
            records: told.records,
            damage: survey.damage.clone(),
            from_metadata: broken.kept.len() as u64,
            ..RepairReport::default()
        };
        let mut mending = Mending::new(&fresh, told, broken)?;
        if dry_run {
            while let Some(partition) = mending.next(&fresh)? {
                mending.partition(&fresh, &partition, &mut report)?;
            }
            mending.finish(&mut report);
            return Ok(report);
        }
        survey.mend(&storage)?;
        drop(survey);
        let (mut store, opened) = Self::open(storage, fresh, config)?;
        report.cut = opened.cut;
        while let Some(partition) = mending.next(&store.meta)? {
            if let Some(change) = mending.partition(&store.meta, &partition, &mut report)? {
                store.commit(change)?;
            }
            if store.log.end() - store.log.synced() > UNSYNCED_MAX {
                store.sync_all()?;
            }
        }
        for change in mending.finish(&mut report) {
            store.commit(change)?;
        }
        store.sync_all()?;
        store.persist()?;
        Ok(report)
    }

    /// Syncs until no change waits.
    pub(crate) fn sync_all(&mut self) -> Result<(), StoreError> {
        while let Some(job) = self.sync_job()? {
            self.finish_sync(job.run())?;
        }
        Ok(())
    }
}

impl Broken {
    /// Finds partitions whose chain of changes has a gap, or ends before the old metadata do.
    fn of<M: MetaEngine>(told: &Told, old: Option<&M>) -> Result<Self, MetaError> {
        let mut broken = Self::default();
        for (partition, chain) in &told.chains {
            let version = old.map_or(Ok(0), |old| old.version(partition))?;
            let needed = chain.broken.unwrap_or(chain.last + 1);
            if version >= needed {
                let kept = (partition.clone(), version);
                broken.kept.insert(partition.encode(), kept);
            } else if chain.broken.is_some() {
                broken.gone.insert(partition.encode());
            }
        }
        let Some(old) = old else { return Ok(broken) };
        let mut after = None;
        loop {
            let partitions = old.partitions(after.as_ref(), PARTITIONS)?;
            for partition in &partitions {
                // The partition shared by all accounts has only hints, which the log does not record.
                if !told.chains.contains_key(partition) && *partition != keys::EVERYBODY {
                    let kept = (partition.clone(), old.version(partition)?);
                    broken.kept.insert(partition.encode(), kept);
                }
            }
            match partitions.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(broken),
            }
        }
    }

    /// Builds metadata from the log, and from the old metadata where they have more changes.
    fn build<F: StorageFile, M: MetaEngine>(
        &self,
        survey: &Survey<F>,
        old: Option<&M>,
        fresh: &mut M,
    ) -> Result<(), RepairError> {
        let end = survey.end;
        let mut applying = Applying::new(fresh, Gap::Pass);
        for (partition, version) in self.kept.values() {
            let mut rows = Vec::new();
            if let Some(old) = old {
                old.scan(partition, &[], &mut |key, value| {
                    rows.push(batch::put(key, value.to_vec()));
                    true
                })?;
            }
            let state = Batch {
                partition: partition.clone(),
                expected: 0,
                version: *version,
                clear: true,
                rows,
                hints: Vec::new(),
            };
            applying.take(state, 0)?;
        }
        survey.records(&mut |head, offset, payload| {
            let done = applying.record(head, payload);
            done.map_err(|reason| OpenError::Damaged {
                file: "log".to_owned(),
                offset,
                reason,
            })
        })?;
        Ok(applying.finish(end)?)
    }

    fn has(&self, partition: &Partition) -> bool {
        let octets = partition.encode();
        self.gone.contains(&octets) || self.kept.contains_key(&octets)
    }
}
