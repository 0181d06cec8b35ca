//! The state of a volume for people.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::MirrorStatus;
use super::accounts::AccountStatus;
use super::chunk_store::ChunkStore;
use super::fingerprint::Fingerprint;
use super::state::Volume;
use super::step::{Moment, Notice};
use super::strategy::Strategy;
use crate::format::Kind;
use crate::rows::{Key, PackRow, RowValue, SettingsRow, UpkeepRow, packs_prefix};

/// The first octet of keys of facts.
const FACTS: u8 = 1;

/// The key and the value of a row.
type RowPair = (Vec<u8>, Vec<u8>);

/// The state of a mounted volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The newest commit's generation.
    pub generation: u64,
    /// The fingerprint of the newest commit.
    pub fingerprint: Fingerprint,
    /// This machine's number among the writers.
    pub writer: u16,
    /// Whether closing a file and changing names wait for the servers.
    pub strong: bool,
    /// Whether the servers have every change of a program.
    pub quiet: bool,
    /// Rows that wait for a commit, rows of copies included.
    pub rows_waiting: usize,
    /// Written octets that no account has.
    pub octets_waiting: u64,
    /// Octets on the way.
    pub octets_sending: usize,
    /// Octets a second that accounts took lately.
    pub octets_per_second: u64,
    /// Commits on the way.
    pub commits_sending: usize,
    /// Octets that this mount did not send, because the volume had them.
    pub octets_shared: u64,
    /// Octets of the journal.
    pub journal_octets: u64,
    /// Octets of opened chunks in memory.
    pub cache_octets: usize,
    /// Rows in memory, and who waits for rows.
    pub rows: RowsStatus,
    /// Octets of chunks on the local disk.
    pub disk_octets: u64,
    /// Chunks that the local disk had when they were read, since the start.
    pub disk_hits: u64,
    /// Chunks that the local disk lacked when they were read, since the start.
    pub disk_misses: u64,
    /// Inodes, and octets of files, as of the newest checkpoint.
    pub logical: Option<(u64, u64)>,
    /// The last collection and the last check; absent before the first.
    pub upkeep: Option<UpkeepRow>,
    /// How long content of the past stays, and files that are removed elsewhere, in seconds.
    pub retention: Option<(u64, u64)>,
    /// Copies of packs that accounts of their group lack.
    pub copies_missing: usize,
    /// The accounts.
    pub accounts: Vec<AccountStatus>,
    /// Conflicts with other mounts since the beginning of this mount.
    pub conflicts: u64,
    /// The latest of these, the newest last.
    pub conflicts_latest: Vec<String>,
    /// Commits of other mounts that lost a race and wait for a merge.
    pub commits_open: usize,
    /// Copies of commits and pages on further accounts.
    pub mirrors: Vec<MirrorStatus>,
    /// What a person must know about the key slot of the mount before the next mount.
    pub slot: Option<String>,
    /// Whether the mount began without accounts and has not compared its state with the log yet.
    pub unconfirmed: bool,
    /// Why the volume takes no changes, if so.
    pub read_only: Option<String>,
}

/// Rows in memory, and who waits for rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowsStatus {
    /// Octets of decoded pages in memory.
    pub octets: usize,
    /// Pages on the way from accounts.
    pub pages_waiting: usize,
    /// Calls that wait for pages.
    pub calls_waiting: usize,
}

/// A group, as the map of replicas has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStatus {
    /// The number.
    pub group: u16,
    /// How the group reads and writes.
    pub strategy: Strategy,
    /// The members.
    pub accounts: Vec<u16>,
    /// Packs of the group.
    pub packs: u64,
    /// Octets of these packs, each once.
    pub octets: u64,
    /// Packs that a member lacks, by member.
    pub missing: BTreeMap<u16, u64>,
}

impl<S: Storage> Volume<S> {
    /// Whether the lead account rests after a fault.
    pub fn lead_fails(&self) -> bool {
        self.accounts.rests_until(self.terms.lead).is_some()
    }

    /// The state as of the last event.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status_at(self.now)
    }

    /// The state now.
    #[must_use]
    pub fn status_at(&self, now: Moment) -> Status {
        let disk = self.local.chunks.as_ref();
        let (disk_hits, disk_misses) = disk.map_or((0, 0), ChunkStore::counts);
        Status {
            generation: self.chain.head().1,
            fingerprint: Fingerprint::of(self.chain.head()),
            writer: self.writer,
            strong: self.terms.strong,
            quiet: self.is_quiet(),
            rows_waiting: self.commits.pending(),
            octets_waiting: self.files.unsent().octets(),
            octets_sending: self.uploads.octets(),
            octets_per_second: self.speed.of(now.steady),
            commits_sending: self.chain.under_way(),
            octets_shared: self.local.shared(),
            journal_octets: self.journal.octets(),
            cache_octets: self.cache.octets(),
            rows: RowsStatus {
                octets: self.files.tree().pages().octets(),
                pages_waiting: self.pages.fetches.len(),
                calls_waiting: self.pages.parked.len(),
            },
            disk_octets: disk.map_or(0, ChunkStore::octets),
            disk_hits,
            disk_misses,
            logical: self.logical(),
            upkeep: self.upkeep_row(),
            retention: self.retention(),
            copies_missing: self.replicas.waiting(),
            accounts: self.accounts.status(now.steady),
            conflicts: self.follow.conflicts,
            conflicts_latest: self.follow.latest.iter().cloned().collect(),
            commits_open: self.open_commits(),
            mirrors: self.mirror_status(),
            slot: self.slot_line(),
            unconfirmed: self.is_unconfirmed(),
            read_only: match &self.read_only {
                None if self.journal.is_full() => Some(Notice::DiskFull.to_string()),
                reason => reason.as_ref().map(ToString::to_string),
            },
        }
    }

    /// Where the rows came from: the generation that the newest checkpoint covers, if any, and the number of commits behind.
    #[must_use]
    pub fn origin(&self) -> (Option<u64>, usize) {
        let newest = self.checkpoints.newest();
        let covers = newest.map(|checkpoint| checkpoint.covers.get());
        (covers, self.checkpoints.commits)
    }

    /// The rows of facts: accounts, groups, settings, slots.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn facts(&self) -> Result<Vec<RowPair>, Errno> {
        let mut rows = Vec::new();
        self.files.tree().visit(&[FACTS], None, &mut |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }

    fn logical(&self) -> Option<(u64, u64)> {
        self.checkpoints.newest?;
        self.files.tree().pages().counts().ok()
    }

    fn retention(&self) -> Option<(u64, u64)> {
        let row = self.files.tree().get(&Key::Settings.encode()).ok()??;
        let row = SettingsRow::decode(&row).ok()?;
        Some((row.keep_versions_s, row.keep_deleted_s))
    }

    fn upkeep_row(&self) -> Option<UpkeepRow> {
        let row = self.files.tree().get(&Key::Upkeep.encode()).ok()??;
        UpkeepRow::decode(&row).ok()
    }

    /// The map of replicas: a look at the row of every pack. A row that cannot be read counts for no group.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupStatus> {
        let mut groups: BTreeMap<u16, GroupStatus> = BTreeMap::new();
        for (group, accounts) in self.accounts.groups() {
            let status = GroupStatus {
                group,
                strategy: Strategy::default(),
                accounts: accounts.to_vec(),
                packs: 0,
                octets: 0,
                missing: BTreeMap::new(),
            };
            groups.insert(group, status);
        }
        for (group, strategy) in self.accounts.strategies() {
            if let Some(group) = groups.get_mut(&group) {
                group.strategy = strategy;
            }
        }
        let tree = self.files.tree();
        for key in tree.keys(&packs_prefix()).unwrap_or_default() {
            let row = tree.get(&key).ok().flatten();
            let row = row.as_deref().map(PackRow::decode);
            let (Ok(Key::Pack(_)), Some(Ok(row))) = (Key::decode(&key), row) else {
                continue;
            };
            if row.kind != Kind::Data as u8 {
                continue;
            }
            let Some(group) = groups.get_mut(&row.group) else {
                continue;
            };
            group.packs = group.packs.saturating_add(1);
            group.octets = group.octets.saturating_add(row.octets.into());
            for member in group.accounts.clone() {
                if row.copies.iter().all(|copy| copy.account != member) {
                    let missing = group.missing.entry(member).or_default();
                    *missing = missing.saturating_add(1);
                }
            }
        }
        groups.into_values().collect()
    }

    /// Whether closing a file and changing names wait for the servers, from now on. A volume that becomes strong sends what waits.
    pub fn set_strong(&mut self, now: Moment, strong: bool) {
        self.at(now);
        if strong && !self.terms.strong {
            self.want_all(Vec::new());
        }
        self.terms.strong = strong;
    }
}
