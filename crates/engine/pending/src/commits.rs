//! Changes that no commit has, commits on the way, and who waits.

use crate::content::{Piece, Source};
use crate::format::commit::RowChange;
use crate::format::{ChunkId, MERGED_MAX, MailId, PackNumber};
use crate::merge::Places;
use crate::rows::{Extent, Key, extents_prefix, inode_key};
use bytes::Bytes;
use hashbrown::HashSet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use vere_ports::files::{CallId, Inode, Reply};
use vere_units::Timestamp;

/// Commits on the way at once.
pub const COMMITS_MAX: usize = 4;
/// Octets of content in a commit.
pub const INLINE_MAX: usize = 64 << 10;
/// Quiet rows that make a commit of their own.
pub const QUIET_MAX: usize = 2_000;

/// Changes that no commit has, commits on the way, and who waits.
#[derive(Debug, Default)]
pub struct Commits {
    /// Rows changed since the last commit was built.
    pub pending: BTreeSet<Vec<u8>>,
    /// Rows whose base the journal has since the last commit was built.
    pub based: HashSet<Vec<u8>>,
    /// Octets of these rows, or more.
    pub pending_octets: usize,
    /// The journal's position of the first of them.
    pub pending_from: Option<u64>,
    /// When the first change came that a commit must have soon.
    pub since: Option<Timestamp>,
    /// Files whose content no commit has, and the position of the journal up to which the newest commit has it.
    pub changed: BTreeMap<Inode, u64>,
    /// Files that have taken another file's name, and the position of the journal at the rename: their content goes before.
    pub barriers: BTreeMap<Inode, u64>,
    /// Who wants content on the servers.
    pub wants: Vec<Want>,
    /// Commits on the way, oldest first.
    pub flights: VecDeque<Flight>,
    /// Lost commits whose mail is not located yet.
    pub strays: Vec<Flight>,
    /// Files whose content a partial commit has whole, and whose rows are not all in the chain as far as is known.
    pub included: BTreeSet<Inode>,
    /// Commits that lost, or that were begun before the start and are not in the chain: the next commit replaces them.
    pub abandoned: Vec<MailId>,
}

/// Somebody wants the content of files on the servers.
#[derive(Debug)]
pub struct Want {
    /// The files.
    pub inodes: BTreeSet<Inode>,
    /// Packs that must be stored before.
    pub packs: HashSet<u64>,
    /// Contents as they were when the packs were cut; absent while the commit itself shall hold the content.
    pub snapshots: Option<Vec<Snapshot>>,
    /// Who waits, and the replies.
    pub waiters: Vec<(CallId, Reply)>,
}

impl Want {
    /// Whether the want has the content of a file as of a position of the journal.
    pub fn covers(&self, inode: Inode, position: u64) -> bool {
        let is_new = |taken: &Vec<Snapshot>| {
            let mut of_it = taken.iter().filter(|snapshot| snapshot.inode == inode);
            of_it.any(|snapshot| snapshot.since >= position)
        };
        self.inodes.contains(&inode) && self.snapshots.as_ref().is_none_or(is_new)
    }

    /// The content of these files, in the commit itself if it is short.
    pub fn of(inodes: BTreeSet<Inode>, waiters: Vec<(CallId, Reply)>) -> Self {
        Self {
            inodes,
            packs: HashSet::new(),
            snapshots: None,
            waiters,
        }
    }
}

/// The content of a file at a moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The file.
    pub inode: Inode,
    /// The position of the journal at that moment.
    pub since: u64,
    /// The size.
    pub size: u64,
    /// The pieces, by offset.
    pub pieces: Vec<(u64, Piece)>,
}

/// A commit on the way.
#[derive(Debug)]
pub struct Flight {
    /// The number of the mail.
    pub number: PackNumber,
    /// The mail.
    pub id: MailId,
    /// Octets of the decoded mail.
    pub octets: u32,
    /// Whether the commit has content of files.
    pub has_content: bool,
    /// The oldest position of the journal that the commit makes needless.
    pub from: u64,
    /// Who waits, and the replies.
    pub waiters: Vec<(CallId, Reply)>,
    /// Chunks in the commit: nobody can fetch them before the commit is in the log.
    pub pinned: Vec<(Extent, Bytes)>,
    /// The ids and lengths of these chunks.
    pub names: Vec<(ChunkId, usize, Extent)>,
    /// The checkpoint that the commit names, by its covered generation.
    pub checkpoint: Option<NonZeroU64>,
    /// The rows.
    pub rows: Vec<RowChange>,
    /// Commits that the record replaces.
    pub merged: Vec<MailId>,
    /// Whether the commit has changes of other mounts only.
    pub adopts: bool,
    /// Whether a later commit has the rest of the rows.
    pub is_partial: bool,
    /// Files whose content this commit, or a partial one before, has whole.
    pub included: BTreeSet<Inode>,
}

impl Flight {
    /// The commit's change of a row. A commit has its rows in the order of their keys.
    pub fn row(&self, key: &[u8]) -> Option<&RowChange> {
        let place = self.rows.binary_search_by(|row| row.key[..].cmp(key));
        self.rows.get(place.ok()?)
    }
}

impl Commits {
    /// Rows that wait for a commit.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether a changed row waits for a commit.
    pub fn holds(&self, key: &[u8]) -> bool {
        self.pending.contains(key)
    }

    /// Rows that wait for a commit, or are on the way.
    pub fn rows_unsettled(&self) -> usize {
        let sent = self.flights.iter().map(|flight| flight.rows.len());
        sent.fold(self.pending.len(), usize::saturating_add)
    }

    /// Rows of a commit in the chain that are as the commit has them: neither changed since nor in a later commit. A file whose
    /// content waits has another row.
    pub fn settled<'a>(&self, rows: &'a [RowChange]) -> impl Iterator<Item = &'a [u8]> {
        let is_settled = |key: &&[u8]| {
            let waits = match Key::decode(key) {
                Ok(Key::Inode(inode)) => self.changed.contains_key(&inode),
                _ => false,
            };
            let mut flights = self.flights.iter();
            let is_sent = flights.any(|flight| flight.row(key).is_some());
            !waits && !is_sent && !self.pending.contains(*key)
        };
        rows.iter().map(|row| &row.key[..]).filter(is_settled)
    }

    /// Takes the files whose content partial commits have, with all rows in the chain.
    pub fn take_settled(&mut self) -> Vec<Inode> {
        let mut included = std::mem::take(&mut self.included);
        let settled = included
            .extract_if(.., |inode| self.has_settled(*inode))
            .collect();
        self.included = included;
        settled
    }

    fn has_settled(&self, inode: Inode) -> bool {
        let (row, extents) = (inode_key(inode), extents_prefix(inode));
        let is_of_it = |key: &[u8]| key == row || key.starts_with(&extents);
        let mut waiting = self.pending.range(extents.to_vec()..);
        let waits = waiting.next().is_some_and(|key| key.starts_with(&extents));
        let sent = self.flights.iter().flat_map(|flight| &flight.rows);
        let is_pending = waits || self.pending.contains(&row[..]);
        let is_changed = self.changed.contains_key(&inode);
        !is_changed && !is_pending && !sent.into_iter().any(|row| is_of_it(&row.key))
    }

    /// A commit that tells the progress of the journal is in the chain, with the content of these files.
    pub fn has_all(&mut self, files: &BTreeSet<Inode>) {
        let later = self.flights.iter().flat_map(|flight| &flight.included);
        let later: BTreeSet<Inode> = later.copied().collect();
        self.included
            .retain(|inode| !files.contains(inode) || later.contains(inode));
    }

    /// Whether changes wait for a commit, or commits for the log.
    pub fn is_quiet(&self) -> bool {
        self.since.is_none() && self.flights.is_empty() && self.wants.is_empty()
    }

    /// Rows have changed at a position of the journal.
    pub fn rows(&mut self, keys: impl Iterator<Item = Vec<u8>>, position: u64, now: Timestamp) {
        for key in keys {
            self.pending.insert(key);
            self.pending_from.get_or_insert(position);
            self.since.get_or_insert(now);
        }
    }

    /// A row has changed that may wait for other changes.
    pub fn quietly(&mut self, key: Vec<u8>) {
        self.pending.insert(key);
    }

    /// The content of a file has changed by a record at this position or behind it.
    pub fn content(&mut self, inode: Inode, position: u64, now: Timestamp) {
        self.changed.entry(inode).or_insert(position);
        self.since.get_or_insert(now);
    }

    /// A pack is sent under another number.
    pub fn renumber(&mut self, before: PackNumber, after: PackNumber) {
        for want in &mut self.wants {
            if want.packs.remove(&before.0) {
                want.packs.insert(after.0);
            }
        }
    }

    /// Octets that were to be in a pack are in another one: whoever waits for the first waits for both.
    pub fn also(&mut self, pack: PackNumber, other: PackNumber) {
        for want in &mut self.wants {
            if want.packs.contains(&pack.0) {
                want.packs.insert(other.0);
            }
        }
    }

    /// A chunk of a commit on the way.
    pub fn pinned(&self, extent: &Extent) -> Option<Bytes> {
        let flights = self.flights.iter().chain(&self.strays);
        let mut pinned = flights.flat_map(|flight| &flight.pinned);
        pinned
            .find(|(of, _)| of == extent)
            .map(|(_, octets)| octets.clone())
    }

    /// Files whose content no commit has.
    pub fn changed(&self) -> impl Iterator<Item = Inode> + '_ {
        self.changed.keys().copied()
    }

    /// A file takes the name of another one.
    pub fn barrier(&mut self, inode: Inode, position: u64) {
        if self.changed.contains_key(&inode) {
            self.barriers.insert(inode, position);
        }
    }

    /// A commit has the content of a file as of a position of the journal.
    pub fn included(&mut self, inode: Inode, since: u64) {
        self.changed.insert(inode, since);
        if self
            .barriers
            .get(&inode)
            .is_some_and(|position| *position <= since)
        {
            self.barriers.remove(&inode);
        }
    }

    /// A file is gone: nobody needs its content.
    pub fn forget(&mut self, inode: Inode) {
        self.changed.remove(&inode);
        self.barriers.remove(&inode);
    }

    /// The content of a file goes on with another inode, or is void.
    pub fn moved(&mut self, from: Inode, to: Option<Inode>) {
        let since = self.changed.remove(&from);
        let barrier = self.barriers.remove(&from);
        if let (Some(to), Some(since)) = (to, since) {
            self.changed.insert(to, since);
            if let Some(barrier) = barrier {
                self.barriers.insert(to, barrier);
            }
        }
        for want in &mut self.wants {
            if want.inodes.remove(&from) {
                want.inodes.extend(to);
            }
            if let Some(snapshots) = &mut want.snapshots {
                match to {
                    Some(to) => {
                        let moved = snapshots.iter_mut().filter(|taken| taken.inode == from);
                        moved.for_each(|taken| taken.inode = to);
                    }
                    None => snapshots.retain(|taken| taken.inode != from),
                }
            }
        }
    }

    /// Another mount has moved chunks.
    pub fn relocate(&mut self, places: &Places) {
        let taken = self
            .wants
            .iter_mut()
            .filter_map(|want| want.snapshots.as_mut());
        for (_, piece) in taken.flatten().flat_map(|snapshot| &mut snapshot.pieces) {
            if let Source::Chunk { extent, .. } = &mut piece.source
                && let Some(place) = places.get(extent)
            {
                *extent = *place;
            }
        }
    }

    /// Records from a position on are needed.
    pub fn hold_from(&mut self, position: u64) {
        let from = self.pending_from.get_or_insert(position);
        *from = (*from).min(position);
    }

    /// Commits on the way are lost: their changes wait for a commit again, and so does everyone who waited for them.
    pub fn lose(&mut self, now: Timestamp) {
        let mut waiters = Vec::new();
        self.based.clear();
        for mut flight in std::mem::take(&mut self.flights) {
            waiters.append(&mut flight.waiters);
            self.abandoned.push(flight.id);
            if flight.adopts {
                continue;
            }
            self.hold_from(flight.from);
            self.abandoned.append(&mut flight.merged);
            if flight.has_content {
                self.strays.push(flight);
            }
        }
        self.since.get_or_insert(now);
        self.wants.push(Want::of(BTreeSet::new(), waiters));
    }

    /// Whether the mail of a lost commit is needed.
    pub fn is_stray(&self, id: MailId) -> bool {
        self.strays.iter().any(|flight| flight.id == id)
    }

    /// Takes a lost commit whose mail is located: pack and octets.
    pub fn take_stray(&mut self, id: MailId) -> Option<(PackNumber, u32)> {
        let place = self.strays.iter().position(|flight| flight.id == id)?;
        let flight = self.strays.remove(place);
        Some((flight.number, flight.octets))
    }

    /// The rows that wait are others, which the merge has left.
    pub fn wait_for(&mut self, keys: BTreeSet<Vec<u8>>, position: u64, now: Timestamp) {
        if keys.is_empty() {
            self.pending.clear();
            return;
        }
        self.pending = keys;
        self.hold_from(position);
        self.since.get_or_insert(now);
    }

    /// The commits that the next one replaces: as many as a commit can name.
    pub fn take_abandoned(&mut self) -> Vec<MailId> {
        let rest = self
            .abandoned
            .split_off(self.abandoned.len().min(MERGED_MAX));
        std::mem::replace(&mut self.abandoned, rest)
    }

    /// When changes must be on the way at the latest.
    pub fn due(&self, interval: std::time::Duration) -> Option<Timestamp> {
        self.since.map(|since| since + interval)
    }

    /// The oldest position of the journal that is still needed.
    pub fn needed(&self, end: u64) -> u64 {
        let contents = self.changed.values().copied();
        let flights = self.flights.iter().chain(&self.strays);
        let flights = flights.map(|flight| flight.from);
        let all = contents.chain(flights).chain(self.pending_from);
        all.min().unwrap_or(end)
    }

    /// Takes everyone who waits.
    pub fn take_waiters(&mut self) -> Vec<CallId> {
        let all = self.take_replies().into_iter();
        all.map(|(call, _)| call).collect()
    }

    /// Takes everyone who waits, with the replies.
    pub fn take_replies(&mut self) -> Vec<(CallId, Reply)> {
        let wants = self.wants.drain(..).flat_map(|want| want.waiters);
        let flights = self
            .flights
            .iter_mut()
            .flat_map(|flight| flight.waiters.drain(..));
        wants.chain(flights).collect()
    }
}

#[cfg(test)]
mod tests;
