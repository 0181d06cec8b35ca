//! Commits: which changes go into the next mail of the log, when, and who waits for it.
//!
//! A commit has every row that changed since the last one. Content goes by its own pace: a file whose octets are not all
//! placed in packs is in the commit with the size and extents that the servers know already. Programs that wait for a file
//! (`fsync`) have its content sent first, or put into the commit itself where it is short.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use hashbrown::HashSet;
use vere_ports::files::{CallId, Inode, Reply};
use vere_ports::mail_accounts::Urgency;
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use super::Volume;
use super::accounts::LOG_MAILBOX;
use super::packs::Located;
use super::record::{Part, Won};
use super::step::{Moment, Notice};
use super::uploads::Cut;
use crate::content::{Piece, Source, UnsentId};
use crate::format::{Kind, MailCopy, MailId, PackNumber};
use crate::rows::Extent;

/// Commits on their way at once.
const COMMITS_MAX: usize = 4;
/// Octets of content in a commit.
const INLINE_MAX: usize = 64 << 10;

/// Changes that no commit has, commits on their way, and who waits.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// Rows changed since the last commit was built.
    pub(super) pending: BTreeSet<Vec<u8>>,
    /// The journal's position of the first of them.
    pub(super) pending_from: Option<u64>,
    /// When the first change came that a commit must have soon.
    pub(super) since: Option<Timestamp>,
    /// Files whose content no commit has, and the position of the journal up to which the newest commit has it.
    pub(super) changed: BTreeMap<Inode, u64>,
    /// Files that have taken another file's name: their content goes before the rename.
    barriers: BTreeSet<Inode>,
    wants: Vec<Want>,
    pub(super) flights: VecDeque<Flight>,
    /// Commits begun before the start that the log does not have.
    pub(super) abandoned: Vec<MailId>,
}

/// Somebody wants the content of files on the servers.
#[derive(Debug)]
struct Want {
    inodes: BTreeSet<Inode>,
    /// Packs that must be stored before.
    packs: HashSet<u64>,
    /// Contents as they were when the packs were cut; none while the commit itself shall hold the content.
    snapshots: Option<Vec<Snapshot>>,
    waiters: Vec<(CallId, Reply)>,
}

/// The content of a file at a moment.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) inode: Inode,
    pub(super) since: u64,
    pub(super) size: u64,
    pub(super) pieces: Vec<(u64, Piece)>,
}

/// A commit on its way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) number: PackNumber,
    pub(super) id: MailId,
    pub(super) octets: u32,
    pub(super) has_content: bool,
    /// The oldest position of the journal that the commit makes needless.
    pub(super) from: u64,
    pub(super) waiters: Vec<(CallId, Reply)>,
    /// Chunks in the commit: nobody can fetch them before the commit is in the log.
    pub(super) pinned: Vec<(Extent, Bytes)>,
}

impl Commits {
    /// Rows that wait for a commit.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether changes wait for a commit, or commits for the log.
    pub(super) fn is_quiet(&self) -> bool {
        self.since.is_none() && self.flights.is_empty() && self.wants.is_empty()
    }

    /// Rows have changed at a position of the journal.
    pub(super) fn rows(
        &mut self,
        keys: impl Iterator<Item = Vec<u8>>,
        position: u64,
        now: Timestamp,
    ) {
        let before = self.pending.len();
        self.pending.extend(keys);
        if self.pending.len() > before {
            self.pending_from.get_or_insert(position);
            self.since.get_or_insert(now);
        }
    }

    /// A row has changed that may wait for other changes.
    pub(super) fn quietly(&mut self, key: Vec<u8>) {
        self.pending.insert(key);
    }

    /// The content of a file has changed by a record at this position or behind it.
    pub(super) fn content(&mut self, inode: Inode, position: u64, now: Timestamp) {
        self.changed.entry(inode).or_insert(position);
        self.since.get_or_insert(now);
    }

    /// A pack is sent under another number.
    pub(super) fn renumber(&mut self, before: PackNumber, after: PackNumber) {
        for want in &mut self.wants {
            if want.packs.remove(&before.0) {
                want.packs.insert(after.0);
            }
        }
    }

    /// A chunk of a commit on its way.
    pub(super) fn pinned(&self, extent: &Extent) -> Option<Bytes> {
        let mut pinned = self.flights.iter().flat_map(|flight| &flight.pinned);
        pinned
            .find(|(of, _)| of == extent)
            .map(|(_, octets)| octets.clone())
    }

    pub(super) fn changed(&self) -> impl Iterator<Item = Inode> + '_ {
        self.changed.keys().copied()
    }

    /// A file takes the name of another one.
    pub(super) fn barrier(&mut self, inode: Inode) {
        if self.changed.contains_key(&inode) {
            self.barriers.insert(inode);
        }
    }

    /// A file is gone: nobody needs its content.
    pub(super) fn forget(&mut self, inode: Inode) {
        self.changed.remove(&inode);
        self.barriers.remove(&inode);
    }

    /// When changes must be on their way at the latest.
    pub(super) fn due(&self, interval: std::time::Duration) -> Option<Timestamp> {
        self.since.map(|since| since + interval)
    }

    /// The oldest position of the journal that is still needed.
    fn needed(&self, end: u64) -> u64 {
        let contents = self.changed.values().copied();
        let flights = self.flights.iter().map(|flight| flight.from);
        let all = contents.chain(flights).chain(self.pending_from);
        all.min().unwrap_or(end)
    }

    /// Takes everyone who waits.
    pub(super) fn take_waiters(&mut self) -> Vec<CallId> {
        let wants = self.wants.drain(..).flat_map(|want| want.waiters);
        let flights = self
            .flights
            .iter_mut()
            .flat_map(|flight| flight.waiters.drain(..));
        wants.chain(flights).map(|(call, _)| call).collect()
    }
}

impl<S: Storage> Volume<S> {
    /// Somebody waits until the content of files, and every change of names, is on the servers.
    pub(super) fn want(&mut self, inodes: BTreeSet<Inode>, waiters: Vec<(CallId, Reply)>) {
        let mut inodes = inodes;
        inodes.extend(self.commits.barriers.iter().copied());
        inodes.retain(|inode| self.commits.changed.contains_key(inode));
        self.commits.wants.push(Want {
            inodes,
            packs: HashSet::new(),
            snapshots: None,
            waiters,
        });
        self.build_ready();
    }

    /// Somebody waits for everything.
    pub(super) fn want_all(&mut self, waiters: Vec<(CallId, Reply)>) {
        let all = self.commits.changed.keys().copied().collect();
        self.want(all, waiters);
    }

    /// A pack is stored: wants may be ready.
    pub(super) fn pack_stored(&mut self, number: PackNumber) {
        for want in &mut self.commits.wants {
            want.packs.remove(&number.0);
        }
        self.build_ready();
    }

    /// Builds a commit for all wants whose packs are stored.
    pub(super) fn build_ready(&mut self) {
        self.send_contents();
        let is_full = self.commits.flights.len() >= COMMITS_MAX || self.chain.is_overtaken();
        let is_ready = |want: &Want| want.packs.is_empty();
        if is_full || !self.commits.wants.iter().any(is_ready) {
            return;
        }
        let wants = std::mem::take(&mut self.commits.wants);
        let (ready, waiting): (Vec<Want>, Vec<Want>) = wants.into_iter().partition(is_ready);
        self.commits.wants = waiting;
        let mut waiters = Vec::new();
        let mut snapshots = BTreeMap::new();
        let mut inline = BTreeSet::new();
        for want in ready {
            waiters.extend(want.waiters);
            match want.snapshots {
                Some(taken) => {
                    snapshots.extend(taken.into_iter().map(|snapshot| (snapshot.inode, snapshot)))
                }
                None => inline.extend(want.inodes),
            }
        }
        let is_empty = self.commits.pending.is_empty() && self.commits.changed.is_empty();
        match self.commits.flights.back_mut() {
            // Everything is on its way already.
            Some(last) if is_empty => last.waiters.extend(waiters),
            None if is_empty => self.release_waiters(waiters),
            _ => self.build(&inline, &snapshots, waiters),
        }
    }

    /// Wants whose content is too long for a commit have it sent in packs.
    fn send_contents(&mut self) {
        let mut inline = 0_usize;
        for number in 0..self.commits.wants.len() {
            let Some(want) = self
                .commits
                .wants
                .get(number)
                .filter(|want| want.snapshots.is_none())
            else {
                continue;
            };
            let inodes = want.inodes.clone();
            let cuts: Vec<Cut> = inodes
                .iter()
                .flat_map(|inode| self.cut(*inode, false))
                .collect();
            let octets: usize = cuts.iter().map(Cut::octets).sum();
            let sending = |of: &Self| {
                inodes
                    .iter()
                    .flat_map(|inode| of.sending(*inode))
                    .collect::<HashSet<u64>>()
            };
            inline = inline.saturating_add(octets);
            if inline <= INLINE_MAX && sending(self).is_empty() {
                continue;
            }
            inline = inline.saturating_sub(octets);
            self.upload(cuts, Urgency::Synced, self.now);
            let packs = sending(self);
            let since = self.journal.position();
            let snapshots = inodes
                .iter()
                .filter_map(|inode| self.snapshot(*inode, since))
                .collect();
            if let Some(want) = self.commits.wants.get_mut(number) {
                want.packs = packs;
                want.snapshots = Some(snapshots);
            }
        }
    }

    fn snapshot(&mut self, inode: Inode, since: u64) -> Option<Snapshot> {
        Some(Snapshot {
            inode,
            size: self.files.size(inode).ok()?,
            since,
            pieces: self.files.pieces(inode),
        })
    }

    fn release_waiters(&mut self, waiters: Vec<(CallId, Reply)>) {
        for (call, reply) in waiters {
            self.reply(call, Ok(reply));
        }
    }

    /// A commit is in the chain.
    pub(super) fn won(&mut self, won: Won) {
        let Some(flight) = self.commits.flights.pop_front() else {
            return;
        };
        debug_assert_eq!(flight.id, won.commit);
        self.accounts
            .number(self.terms.lead, LOG_MAILBOX, won.uid_validity);
        if flight.has_content {
            let copy = MailCopy {
                account: self.terms.lead,
                mailbox: LOG_MAILBOX,
                uid: won.uid,
            };
            let located = Located {
                id: won.commit,
                copies: vec![copy],
            };
            self.locate(flight.number.0, located, (Kind::Commit, 0, flight.octets));
        }
        for (extent, octets) in flight.pinned {
            self.cache.put(extent, octets);
        }
        self.forget_fates();
        self.release_waiters(flight.waiters);
        let needed = self.commits.needed(self.journal.position());
        let noted = self.journal.append(&[Part::Won(won)]);
        if let Err(error) = noted.and_then(|_| self.journal.release(needed)) {
            self.fail(Notice::Journal(error.to_string()));
        }
        self.build_ready();
        self.resume_blocked();
    }

    /// Forgets the fates of buffers that neither files nor snapshots have.
    fn forget_fates(&mut self) {
        let wants = self
            .commits
            .wants
            .iter()
            .filter_map(|want| want.snapshots.as_ref());
        let pieces = wants.flatten().flat_map(|snapshot| &snapshot.pieces);
        let held: HashSet<u64> = pieces
            .filter_map(|(_, piece)| match piece.source {
                Source::Unsent { id, .. } => Some(id.0),
                _ => None,
            })
            .collect();
        let unsent = self.files.unsent();
        self.fates
            .retain(|buffer| held.contains(&buffer) || unsent.contains(UnsentId(buffer)));
    }

    /// Changes that have waited long enough are committed.
    pub(super) fn flush_due(&mut self, now: Moment) {
        let due = self.commits.due(self.terms.flush_interval);
        let is_wanted = !self.commits.wants.is_empty();
        if due.is_some_and(|due| due <= now.steady) && !is_wanted {
            self.commits.since = Some(now.steady);
            self.want_all(Vec::new());
        }
    }
}
