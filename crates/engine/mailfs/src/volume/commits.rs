//! Commits: which changes go into the next mail of the log, when, and who waits for it.
//!
//! A commit has every row that changed since the last one. Content goes by its own pace: a file whose octets are not all
//! placed in packs is in the commit with the size and extents that the servers know already. Programs that wait for a file
//! (`fsync`) have its content sent first, or put into the commit itself where it is short.

use super::accounts::LOG_MAILBOX;
use super::record::{Part, Won};
use super::state::Volume;
use super::state::commits::{COMMITS_MAX, INLINE_MAX, Snapshot, Want};
use super::state::follow::Coming;
use super::state::uploads::CHUNKS_MAX;
use super::state::uploads::Cut;
use super::step::{Moment, Notice, Step};
use crate::breakage::{Breakage, is_broken};
use crate::content::{Source, UnsentId};
use crate::format::PackNumber;
use hashbrown::HashSet;
use std::collections::{BTreeMap, BTreeSet};
use vere_ports::files::{CallId, Errno, Inode, Reply};
use vere_ports::mail_accounts::Urgency;
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Somebody waits until the content of files, and every change of names, is on the servers.
    pub(super) fn want(&mut self, inodes: BTreeSet<Inode>, waiters: Vec<(CallId, Reply)>) {
        if self.holds_changes() {
            self.commits.wants.push(Want::of(inodes, waiters));
            return;
        }
        if self.is_stopped() || self.has_no_journal() || self.waits_in_vain() {
            for (call, _) in waiters {
                self.reply(call, Err(Errno::Io));
            }
            return;
        }
        let mut inodes = inodes;
        inodes.extend(self.commits.barriers.keys().copied());
        inodes.retain(|inode| self.commits.changed.contains_key(inode));
        self.commits.wants.push(Want::of(inodes, waiters));
        self.build_ready();
    }

    /// Whether the journal has failed: no commit follows until the next mount, and what the last one should have had is no part of
    /// the waiting changes any more.
    fn has_no_journal(&self) -> bool {
        self.journal.has_failed() || matches!(self.read_only, Some(Notice::Journal(_)))
    }

    /// Somebody waits for everything.
    pub(super) fn want_all(&mut self, waiters: Vec<(CallId, Reply)>) {
        let all = self.commits.changed.keys().copied().collect();
        self.want(all, waiters);
    }

    /// A pack is stored: wants may be ready.
    pub(super) fn pack_stored(&mut self, number: PackNumber) {
        let mut is_wanted = false;
        for want in &mut self.commits.wants {
            is_wanted |= want.packs.remove(&number.0);
        }
        if is_wanted {
            self.note_progress();
        }
        self.build_ready();
    }

    /// Builds a commit for all wants whose packs are stored.
    pub(super) fn build_ready(&mut self) {
        if self.journal.is_full() || self.is_stopped() || self.has_no_journal() {
            return;
        }
        if self.is_unconfirmed() {
            self.release_idle();
            return;
        }
        self.want_barriers();
        let unsent = self.commits.wants.iter();
        let unsent = unsent.filter(|want| want.snapshots.is_none());
        let inodes: BTreeSet<Inode> = unsent.flat_map(|want| want.inodes.clone()).collect();
        if !self.has_contents(inodes) {
            // `pages_came` goes on.
            return;
        }
        if !self.commits.wants.is_empty() && !self.has_numbers() {
            return;
        }
        self.send_contents();
        if self.is_barred() {
            return;
        }
        let is_held = self.is_behind() || self.chain.is_blocked() || self.follow.is_adopting;
        let is_full = self.commits.flights.len() >= COMMITS_MAX || is_held;
        let is_early = is_broken(Breakage::CommitBeforePacks);
        let is_ready = |want: &Want| want.packs.is_empty() || is_early;
        if is_full || !self.commits.wants.iter().any(is_ready) || !self.has_commit() {
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
        let is_empty = self.commits.pending.is_empty()
            && self.commits.changed.is_empty()
            && self.commits.abandoned.is_empty();
        match self.commits.flights.back_mut() {
            // Everything is on the way already.
            Some(last) if is_empty => last.waiters.extend(waiters),
            None if is_empty => {
                // A merge may have left nothing of the changes that waited.
                self.commits.since = None;
                self.commits.pending_from = None;
                self.release_mirrored(self.chain.head().1, waiters);
            }
            _ => {
                self.build(&inline, &snapshots, waiters);
                self.build_rest();
            }
        }
    }

    /// Goes on behind a partial commit.
    fn build_rest(&mut self) {
        let last = self.commits.flights.back();
        if last.is_some_and(|flight| flight.is_partial) {
            self.build_ready();
        }
    }

    /// Files that have taken another file's name, and whose content nobody wants yet, are wanted: the next commit has the rename.
    fn want_barriers(&mut self) {
        let commits = &self.commits;
        let is_late = |(inode, position): &(&Inode, &u64)| {
            let mut wants = commits.wants.iter();
            !wants.any(|want| want.covers(**inode, **position))
        };
        let late = commits.barriers.iter().filter(is_late);
        let late: BTreeSet<Inode> = late.map(|(inode, _)| *inode).collect();
        if !late.is_empty() && !commits.wants.is_empty() {
            self.commits.wants.push(Want::of(late, Vec::new()));
        }
    }

    /// Whether a rename waits for the content of its file.
    fn is_barred(&self) -> bool {
        let wants = &self.commits.wants;
        let waits = |(inode, position): (&Inode, &u64)| {
            let covering = wants.iter().filter(|want| want.covers(*inode, *position));
            let mut is_ready = covering.map(|want| want.packs.is_empty()).peekable();
            is_ready.peek().is_some() && !is_ready.any(|is_ready| is_ready)
        };
        self.commits.barriers.iter().any(waits)
    }

    /// Wants whose content is too long for a commit have it sent in packs.
    fn send_contents(&mut self) {
        let mut inline = 0_usize;
        let mut chunks = 0_usize;
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
            for inode in &inodes {
                self.adopt_placed(*inode);
            }
            let cuts: Vec<Cut> = inodes
                .iter()
                .flat_map(|inode| self.cut(*inode, false))
                .collect();
            let octets: usize = cuts.iter().map(Cut::octets).sum();
            let sending = |of: &Self| {
                inodes
                    .iter()
                    .flat_map(|inode| of.buffers().sending(*inode))
                    .collect::<HashSet<u64>>()
            };
            inline = inline.saturating_add(octets);
            chunks = chunks.saturating_add(cuts.len());
            if inline <= INLINE_MAX && chunks <= CHUNKS_MAX && sending(self).is_empty() {
                continue;
            }
            inline = inline.saturating_sub(octets);
            chunks = chunks.saturating_sub(cuts.len());
            self.upload(cuts, Urgency::Synced);
            // The disk works while the packs travel: the sync of the commit's own record finds little to do.
            self.steps
                .extend(self.journal.take_unsynced().map(Step::Sync));
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

    /// A commit is in the chain.
    pub(super) fn won(&mut self, won: Won) {
        let Some(mut flight) = self.commits.flights.pop_front() else {
            return;
        };
        debug_assert_eq!(flight.id, won.commit);
        self.memory.decided(won);
        self.accounts
            .number(self.terms.lead, LOG_MAILBOX, won.uid_validity);
        self.takes_room(self.terms.lead, flight.octets);
        self.follow.named(&flight.merged);
        if flight.adopts {
            self.follow.is_adopting = false;
            self.note_epoch(won);
            self.checkpoints.named = flight.checkpoint;
            let rows = std::mem::take(&mut flight.rows);
            self.comes(Coming {
                won,
                rows,
                octets: flight.octets,
                merged: flight.merged,
                checkpoint: None,
                writer: self.writer,
                epoch: self.seals.epoch,
                is_own_merge: true,
            });
            self.go_on_following();
            return;
        }
        let rows = self.note_won(won, &mut flight);
        let voids = self.voids(&flight, &rows);
        self.confirm_rows(won, rows);
        self.note_epoch(won);
        for (name, octets, extent) in std::mem::take(&mut flight.names) {
            self.note_chunk(name, octets, extent);
        }
        for (extent, octets) in flight.pinned {
            self.cache.put(extent, octets);
        }
        self.forget_fates();
        if self.is_quiet() && self.commits.changed.is_empty() {
            self.uploads.placed.clear();
        }
        self.note_progress();
        self.release_mirrored(won.generation, flight.waiters);
        self.registered();
        let needed = self.commits.needed(self.journal.position());
        if let Err(error) = self.release_journal(won, voids, needed) {
            self.fail(Notice::Journal(error.to_string()));
        }
        self.sync_soon();
        self.build_ready();
        self.resume_blocked();
        self.tend_checkpoints();
    }

    /// Drops the records that are in the chain. The numbers in use, and the commit below the changes, go on with the journal.
    fn release_journal(&mut self, won: Won, voids: Vec<Part>, needed: u64) -> std::io::Result<()> {
        let releases = self.journal.releases(needed);
        if releases {
            self.reserve();
        }
        let anchor = self.checkpoints.anchor;
        let parts = anchor.into_iter().chain([won]).map(Part::Won);
        let parts: Vec<Part> = parts.chain(voids).collect();
        self.journal.append(&parts)?;
        if self.journal.is_full() {
            // A later commit releases the records.
            return Ok(());
        }
        if releases {
            self.journal.sync()?;
        }
        self.journal.release(needed)
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
