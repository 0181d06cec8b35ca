//! Repairing a store: its metadata made anew from the log, and of the log what is left of it.
//!
//! 1. The log is looked at ([`Survey`]): which records are whole, what was synced and is gone.
//! 2. Changes are chained: each names the version before it, so a partition that lost some is known.
//!    The old metadata, if there are any, have what the log lost, when they are new enough.
//! 3. New metadata are made of both.
//! 4. Damaged segments are written again with what is left; the octets as they were stay beside them.
//! 5. What new metadata and bodies disagree on is mended ([`mend`]), each partition by a batch in the log
//!    that has all its rows, so that the log alone tells the same from then on.
//!
//! Cut off anywhere, it can be done again: every step finds its work in what is there.

mod mend;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{Batch, MetaEngine, MetaError, Partition};
use vere_ports::storage::{Storage, StorageFile};

use crate::log::format::{RecordHead, RecordKind};
use crate::log::{Damage, OpenError, Replay, Survey};
use crate::model::{BlobId, MailboxId, MailboxName, Uid};
use crate::replay::{Applying, Gap};
use crate::rows::{MessageRow, keys};
use crate::{Store, StoreConfig, StoreError, batch};
use mend::Mending;

/// Partitions looked at in one go.
const PARTITIONS: usize = 1_000;
/// Octets of mending that wait for a sync.
const UNSYNCED_MAX: u64 = 16 * 1024 * 1024;

/// A message whose body is gone; its reference was taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostMessage {
    /// Whose it was, if that is known.
    pub account: Option<AccountName>,
    /// Where it was; none when the mailbox is in no list.
    pub mailbox: Option<MailboxName>,
    /// The mailbox.
    pub id: MailboxId,
    /// Its UID.
    pub uid: Uid,
    /// The body that is not there.
    pub body: BlobId,
    /// Octets it had.
    pub size: u32,
    /// When it arrived, in seconds since 1970.
    pub arrived: i64,
}

/// What a repair found and did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairReport {
    /// Whole records of the log.
    pub records: u64,
    /// Accounts.
    pub accounts: u64,
    /// Mailboxes.
    pub mailboxes: u64,
    /// Messages that are there, each reference counted.
    pub messages: u64,
    /// Stretches of the log of which nothing is left.
    pub damage: Vec<Damage>,
    /// Messages whose body is gone.
    pub lost: Vec<LostMessage>,
    /// Mailboxes that lost changes: flags may be older than they were, messages may be missing or back.
    pub changes_lost: Vec<MailboxId>,
    /// Accounts whose list of mailboxes lost changes.
    pub lists_lost: Vec<AccountName>,
    /// Partitions that lost changes in the log which the old metadata still had.
    pub from_metadata: u64,
    /// Bodies that no change which is left refers to, while changes are lost: messages of which nobody
    /// knows whose they are.
    pub nameless: Vec<BlobId>,
    /// Names in lists whose mailbox is gone; taken out.
    pub names_gone: Vec<(AccountName, MailboxName)>,
    /// Mailboxes that were in no list, under the names they have now.
    pub names_made: Vec<(AccountName, MailboxName)>,
    /// Partitions that are other than the log said.
    pub mended: u64,
    /// Octets behind the last whole record that were cut; not known of a dry run.
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

/// Why a store was not repaired. It is as damaged as it was, and no more.
#[derive(Debug)]
pub enum RepairError {
    /// The log cannot be read, or not written.
    Log(OpenError),
    /// What was mended could not be stored.
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

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RepairError {}

/// The changes of a partition, as far as the log has them.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    /// The version after the last one.
    last: u64,
    /// The version that the last change expected which did not follow the one before it.
    broken: Option<u64>,
}

/// What the log says, whole record by whole record.
#[derive(Debug, Default)]
struct Told {
    chains: HashMap<Partition, Chain>,
    /// Positions of bodies, rising.
    bodies: Vec<u64>,
    /// Bodies that no change refers or referred to; only looked for when something is lost.
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
        let rows = batch.rows.iter();
        for row in rows.filter(|row| row.key.starts_with(keys::MESSAGES)) {
            if let Some(message) = row.value.as_deref().and_then(MessageRow::decode) {
                nameless.remove(&message.blob.0);
            }
        }
    }
}

/// Partitions that lost changes.
#[derive(Debug, Default)]
struct Broken {
    /// Whose state the old metadata have, with the version it is.
    kept: BTreeMap<Vec<u8>, (Partition, u64)>,
    /// Whose changes are gone.
    gone: BTreeSet<Vec<u8>>,
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Makes metadata anew in `fresh`, which is empty, and mends what cannot be had from the log. `old`
    /// is what there was before, if it can be opened; it is only read. With `dry_run` nothing but
    /// `fresh` is written.
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

    /// Syncs until nothing waits.
    pub(crate) fn sync_all(&mut self) -> Result<(), StoreError> {
        while let Some(job) = self.sync_job()? {
            self.finish_sync(job.run())?;
        }
        Ok(())
    }
}

impl Broken {
    /// Finds the partitions whose changes do not follow one another, or end before the metadata do.
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
                // What all accounts share is nothing but hints, of which the log knows nothing.
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

    /// Makes metadata of the log, and of the old ones where they know more.
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
