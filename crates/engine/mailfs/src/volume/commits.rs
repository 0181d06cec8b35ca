//! Commits: which changes go into the next mail of the log, when, and who waits for it.
//!
//! A commit has every row that changed since the last one. Content goes by its own pace: a file whose octets are not all
//! placed in packs is in the commit with the size and extents that the servers know already. Programs that wait for a file
//! (`fsync`) have its content sent first, or put into the commit itself where it is short.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use hashbrown::HashSet;
use vere_ports::files::{CallId, Errno, Inode, Reply};
use vere_ports::mail_accounts::Urgency;
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use super::Volume;
use super::accounts::LOG_MAILBOX;
use super::job::Unpacked;
use super::packs::{Fate, Located};
use super::record::{Begun, Part, Won};
use super::step::{Moment, Notice};
use super::uploads::Cut;
use crate::content::{Piece, Source, UnsentId};
use crate::format::commit::{Record, RecordKind, RowChange};
use crate::format::{
    Builder, Codec, FormatError, Index, Kind, MailCopy, MailId, PackNumber, Sealed, Subject, mail,
};
use crate::rows::{Extent, Key};

/// Commits on their way at once.
const COMMITS_MAX: usize = 4;
/// Octets of content in a commit.
const INLINE_MAX: usize = 64 << 10;

/// Changes that no commit has, commits on their way, and who waits.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// Rows changed since the last commit was built.
    pending: BTreeSet<Vec<u8>>,
    /// The journal's position of the first of them.
    pending_from: Option<u64>,
    /// When the first change came that a commit must have soon.
    since: Option<Timestamp>,
    /// Files whose content no commit has, and the position of the journal up to which the newest commit has it.
    changed: BTreeMap<Inode, u64>,
    /// Files that have taken another file's name: their content goes before the rename.
    barriers: BTreeSet<Inode>,
    wants: Vec<Want>,
    flights: VecDeque<Flight>,
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
struct Snapshot {
    inode: Inode,
    since: u64,
    size: u64,
    pieces: Vec<(u64, Piece)>,
}

/// A commit on its way.
#[derive(Debug)]
struct Flight {
    number: PackNumber,
    id: MailId,
    octets: u32,
    has_content: bool,
    /// The oldest position of the journal that the commit makes needless.
    from: u64,
    waiters: Vec<(CallId, Reply)>,
    /// Chunks in the commit: nobody can fetch them before the commit is in the log.
    pinned: Vec<(Extent, Bytes)>,
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

    fn build(
        &mut self,
        inline: &BTreeSet<Inode>,
        snapshots: &BTreeMap<Inode, Snapshot>,
        waiters: Vec<(CallId, Reply)>,
    ) {
        let calls: Vec<CallId> = waiters.iter().map(|(call, _)| *call).collect();
        if let Err(error) = self.try_build(inline, snapshots, waiters) {
            self.fail(Notice::Journal(error.to_string()));
            for call in calls {
                self.reply(call, Err(Errno::Io));
            }
        }
    }

    fn try_build(
        &mut self,
        inline: &BTreeSet<Inode>,
        snapshots: &BTreeMap<Inode, Snapshot>,
        waiters: Vec<(CallId, Reply)>,
    ) -> Result<(), BuildError> {
        let number = self.next_pack();
        let seals = self.seals.clone();
        let mut builder = Builder::new(Kind::Commit, seals.volume, seals.epoch, 0, number);
        let mut index = Index::default();
        let mut pinned = Vec::new();
        for cut in inline
            .iter()
            .flat_map(|inode| self.cut(*inode, false))
            .collect::<Vec<_>>()
        {
            let unpacked: Unpacked = self.gather(&cut);
            let plain = unpacked.joined();
            let place = builder.push(Codec::Plain, plain.clone())?;
            index
                .entries
                .push(unpacked.entry(&plain, place, &seals.keys));
            let extent = Extent {
                pack: number,
                at: place.at,
                sealed_len: place.sealed_len,
            };
            self.place(&cut, extent);
            pinned.push((extent, plain));
        }
        let has_content = !index.entries.is_empty();
        let mut from = self.commits.pending_from.unwrap_or(self.journal.position());
        self.include_contents(snapshots, &mut from);
        let (parent, generation) = self.chain.end();
        let record = Record {
            kind: RecordKind::Change,
            lead_epoch: 1,
            generation: generation.saturating_add(1),
            parent,
            time: self.now.millis(),
            checkpoint: None,
            merged: std::mem::take(&mut self.commits.abandoned),
            ancestors: Vec::new(),
            rows: self.take_rows(),
            index,
        };
        let sealed: Sealed = builder.finish(record.encode()?.into(), &seals.keys)?;
        let id = sealed.mail_id();
        let subject = Subject::of(&sealed.head, Some(parent), Some(record.generation));
        let mail = mail::wrap(
            &subject,
            self.now.date(),
            self.lead_encoding(),
            &sealed.body,
        );
        let exceptions = self.commits.changed.iter();
        let begun = Begun {
            commit: id,
            parent,
            through: self.journal.position(),
            exceptions: exceptions.map(|(inode, since)| (inode.0, *since)).collect(),
        };
        self.journal.append(&[Part::Begun(begun)])?;
        self.commits.pending_from = None;
        self.commits.since = self.commits.changed.keys().next().map(|_| self.now.steady);
        self.commits.flights.push_back(Flight {
            number,
            id,
            octets: u32::try_from(sealed.body.len()).unwrap_or(u32::MAX),
            has_content,
            from,
            waiters,
            pinned,
        });
        self.chain.send(id, mail.into());
        self.advance_chain();
        Ok(())
    }

    /// Has the rows of files say what is placed: the whole content where all of it is, else the content of a snapshot.
    fn include_contents(&mut self, snapshots: &BTreeMap<Inode, Snapshot>, from: &mut u64) {
        for (inode, since) in self.commits.changed.clone() {
            let snapshot = snapshots
                .get(&inode)
                .filter(|_| self.files.unsent_octets_of(inode) > 0);
            if self.files.unsent_octets_of(inode) == 0 {
                self.commits.forget(inode);
            } else if let Some(snapshot) = snapshot
                && let Some(pieces) = self.resolve(&snapshot.pieces)
            {
                if let Err(error) = self.files.store_snapshot(inode, &pieces, snapshot.size) {
                    self.fail(Notice::Rows(error));
                }
                self.collect_rows();
                self.commits.changed.insert(inode, snapshot.since);
            } else {
                continue;
            }
            *from = (*from).min(since);
            // The row may have been in a commit with an earlier size.
            self.commits.quietly(Key::Inode(inode).encode());
        }
    }

    /// The pieces with chunks in place of buffers; `None` if a range has no place yet.
    fn resolve(&self, pieces: &[(u64, Piece)]) -> Option<Vec<(u64, Piece)>> {
        let mut out = Vec::with_capacity(pieces.len());
        for (offset, piece) in pieces {
            let Source::Unsent { id, skip } = piece.source else {
                out.push((*offset, *piece));
                continue;
            };
            let mut at = *offset;
            for (_, length, fate) in self.fates.of(id.0, skip, piece.length) {
                let Some(Fate::Placed { extent, skip }) = fate else {
                    return None;
                };
                let source = Source::Chunk { extent, skip };
                out.push((at, Piece { length, source }));
                at = at.saturating_add(length.into());
            }
        }
        Some(out)
    }

    /// The rows of the commit: every changed row as it is now, and inodes with the size that the servers know.
    fn take_rows(&mut self) -> Vec<RowChange> {
        let pending = std::mem::take(&mut self.commits.pending);
        let mut rows = Vec::with_capacity(pending.len());
        for key in pending {
            let value = match Key::decode(&key) {
                Ok(Key::Inode(inode)) if self.commits.changed.contains_key(&inode) => self
                    .files
                    .sent_inode_row(inode)
                    .map(|row| row.map(|row| row.encode())),
                _ => self
                    .files
                    .tree()
                    .get(&key)
                    .map(|value| value.map(<[u8]>::to_vec)),
            };
            match value {
                Ok(value) => rows.push(RowChange { key, value }),
                Err(error) => self.fail(Notice::Rows(error)),
            }
        }
        rows
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

/// Why a commit cannot be made.
#[derive(Debug, thiserror::Error)]
enum BuildError {
    #[error("the commit is refused by its own format: {0}")]
    Format(#[from] FormatError),
    #[error("the journal cannot be written: {0}")]
    Journal(#[from] std::io::Error),
}
