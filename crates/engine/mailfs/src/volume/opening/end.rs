//! The end of an opening: rows of pages and commits become the tree of a volume.

use std::mem;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::Opening;
use crate::format::MailId;
use crate::format::commit::RowChange;
use crate::tree::{Change, Tree};
use crate::volume::accounts::{LOG_MAILBOX, PAGES_MAILBOX};
use crate::volume::boot::{assemble, in_order};
use crate::volume::chain::Chain;
use crate::volume::fingerprint::Fingerprint;
use crate::volume::record::Won;
use crate::volume::replay::Replay;
use crate::volume::state::Volume;
use crate::volume::state::checkpoints::{Checkpoints, own_row};
use crate::volume::state::opening::{Found, OpenError};
use crate::volume::step::Moment;

impl<S: Storage> Opening<S> {
    /// The volume, as the log and the journal have it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn finish(mut self, now: Moment) -> Result<Volume<S>, OpenError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let lead = self.terms.lead;
        let missing = OpenError::NoVolume(lead);
        let (Some(journal), chain) = (self.journal.take(), self.chain()?) else {
            return Err(missing);
        };
        let Some(newest) = chain.last() else {
            return Err(missing);
        };
        self.check_expected(&chain)?;
        let head = self.won(newest);
        let epoch = newest.head.epoch;
        let tree = self.rows(&chain)?;
        let checkpoints = self.checkpoints(&chain);
        let mut volume = assemble(
            self.terms,
            self.of,
            (tree, journal),
            now,
            Chain::new(head, self.known),
        );
        volume.resume_epoch(epoch);
        volume.checkpoints = checkpoints;
        volume.accounts.number(lead, LOG_MAILBOX, self.uid_validity);
        let replay = Replay::of(&self.records, &chain)?;
        volume.replay(self.records, &replay)?;
        volume.number_mailboxes()?;
        volume.read_strategies()?;
        if self.pages_validity != 0 {
            volume
                .accounts
                .number(lead, PAGES_MAILBOX, self.pages_validity);
        }
        let moved = self.moved.into_iter();
        let validity = self.pages_validity;
        volume.pages.moved = moved.map(|(mail, uid)| (mail, (validity, uid))).collect();
        volume.tend_epoch();
        if volume.writer == 0 {
            volume.note_writer(self.lost_writer)?;
        }
        volume.begin()?;
        volume.begin_scan();
        volume.make_copies();
        Ok(volume)
    }

    /// The chain must have the commit that a person expects, if any.
    fn check_expected(&self, chain: &[Found]) -> Result<(), OpenError> {
        let own = |found: &Found| Fingerprint::of((found.head.mail, found.record.generation));
        match self.expected {
            Some(expected) if !chain.iter().any(|found| own(found) == expected) => {
                let newest = chain.last().map(own);
                let found = newest.map(|newest| newest.to_string()).unwrap_or_default();
                Err(OpenError::Unexpected { expected, found })
            }
            _ => Ok(()),
        }
    }

    fn won(&self, found: &Found) -> Won {
        Won {
            commit: found.head.mail,
            generation: found.record.generation,
            uid_validity: self.uid_validity,
            uid: found.uid,
        }
    }

    /// The chain from the first commit on, or from the checkpoint's or the journal's commit on, whichever is older.
    fn chain(&mut self) -> Result<Vec<Found>, OpenError> {
        let commits = mem::take(&mut self.commits);
        let covered = self.base.and_then(|base| {
            let found = commits.get(&base.covered_uid)?.as_ref()?;
            Some((found.head.mail, base))
        });
        let commits: Vec<Found> = commits.into_values().flatten().collect();
        let has_first = commits
            .iter()
            .any(|found| found.record.parent == MailId::NONE);
        let Some((covered, base)) = covered else {
            return Ok(in_order(commits, None));
        };
        let older = self
            .remembered
            .filter(|won| won.generation < base.covers.get());
        let first = older.map_or(covered, |won| won.commit);
        let chain = in_order(commits, (!has_first).then_some(first));
        if chain.iter().any(|found| found.head.mail == covered) {
            return Ok(chain);
        }
        // The checkpoint is one of a chain that lacks the commit of the journal.
        let generation = older.map_or(base.covers.get(), |won| won.generation);
        Err(OpenError::RolledBack { generation })
    }

    /// Commits that the checkpoint does not cover.
    fn behind<'a>(&self, chain: &'a [Found]) -> impl Iterator<Item = &'a Found> {
        let covers = self.base.map_or(0, |base| base.covers.get());
        chain
            .iter()
            .filter(move |found| found.record.generation > covers)
    }

    fn rows(&mut self, chain: &[Found]) -> Result<Tree, Errno> {
        let mut pages = mem::take(&mut self.pages);
        pages.set_root(self.base.map(|base| base.root));
        let mut tree = Tree::over(pages);
        for row in self.behind(chain).flat_map(|found| self.rows_of(found)) {
            let RowChange { key, value } = row;
            tree.apply(Change { key, value })?;
        }
        Ok(tree)
    }

    fn rows_of(&self, found: &Found) -> Vec<RowChange> {
        let mut rows = found.record.rows.clone();
        if !found.record.index.entries.is_empty() {
            // A commit cannot hold its own UID: a later commit may have been lost with its mount.
            let mail = (found.head.pack, found.octets);
            rows.push(own_row(self.won(found), self.terms.lead, mail));
        }
        rows
    }

    fn checkpoints(&self, chain: &[Found]) -> Checkpoints {
        let named = chain.last().and_then(|newest| newest.record.checkpoint);
        let mut checkpoints = Checkpoints::new(self.base, named);
        for found in self.behind(chain) {
            let octets = usize::try_from(found.octets).unwrap_or(usize::MAX);
            checkpoints.note(self.won(found), octets);
        }
        checkpoints
    }
}
