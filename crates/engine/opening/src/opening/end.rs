//! The end of an opening: rows of pages and commits become the tree of a volume. Changes that wait in the journal lie on the
//! state of an earlier commit; later commits are followed one by one, as a mount does.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::ops::ControlFlow;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;
use vere_replay::Replay;

use super::Opening;
use super::log::Log;
use super::opened::{Opened, Places};
use crate::error::OpenError;
use crate::follow::Follow;
use crate::format::MailId;
use crate::format::commit::RowChange;
use crate::machine::registration;
use crate::notice::Moment;
use crate::rows::{Key, RowValue, StateRow, states_prefix};
use crate::tree::{Change, Tree};
use vere_keep::record::{Part, Won};
use vere_order::fingerprint::Fingerprint;
use vere_order::found::{Found, in_order};
use vere_pending::checkpoints::Checkpoints;

impl<S: Storage> Opening<S> {
    /// What the volume begins with, as the log and the journal have it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn finish(mut self, now: Moment) -> Result<Opened<S>, OpenError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let changes = self.changes();
        let missing = OpenError::NoVolume(self.source());
        let log = self.log();
        self.check_lead(&changes, log.as_ref().ok())?;
        let (Some(mut journal), mut log) = (self.journal.take(), log?) else {
            return Err(missing);
        };
        self.check_epoch(&log)?;
        self.check_expected(&log.chain)?;
        let brought = match self.stranded {
            Some(of) => Some(self.merge_stranded(&log, &mut journal, (of, now))?),
            None => None,
        };
        let gone = self.gone(&log.chain);
        self.check_copy(gone, &log.chain, &log.outside)?;
        let (epoch, newest_ms) = newest_of(&log.chain);
        let is_displaced = self.is_displaced(gone, &log);
        let replay = self.replay_of(&log, gone, is_displaced)?;
        let later = self.split_later(&mut log, &replay);
        let Some(base) = log.chain.last() else {
            return Err(self.limit.map_or(missing, |_| OpenError::Overtaken));
        };
        let head = base.won(self.uid_validity);
        let (tree, mut follow, merged) = match brought {
            Some(of) => (of.tree, of.follow, Some(of.merged)),
            None => {
                let (tree, follow) = self.rows(&log)?;
                (tree, follow, None)
            }
        };
        self.check_age(&tree, newest_ms, now)?;
        let first = self.local.map(|_| self.first_needed());
        if let Some(gone) = gone {
            self.check_changes(gone, is_displaced, (&tree, &replay))?;
        }
        let merged_later = later.iter().map(|found| &found.record.merged);
        merged_later.for_each(|merged| follow.named(merged));
        follow.registration = registration(&self.of.machine, self.random);
        self.forget_former_log();
        Ok(Opened {
            checkpoints: self.checkpoints(&log.chain),
            terms: self.terms,
            of: self.of,
            tree,
            journal,
            memory: self.memory,
            records: self.records,
            replay,
            head,
            known: self.known,
            epoch,
            follow,
            log,
            later,
            places: Places {
                log: self.uid_validity,
                pages: self.pages_validity,
                moved: self.moved,
                first,
            },
            last_id: self.last_id,
            stand_in: self.stand_in.map(|of| (of.account, of.reason)),
            lost_writer: self.lost_writer,
            merged,
        })
    }

    /// The records of the journal that no commit has.
    fn replay_of(
        &self,
        log: &Log,
        gone: Option<Won>,
        is_displaced: bool,
    ) -> Result<Replay, OpenError> {
        let replay = Replay::of(&self.records, &log.chain, &log.outside, gone);
        replay.map_err(|lacking| match is_displaced {
            true => OpenError::Overtaken,
            false => OpenError::RolledBack {
                generation: lacking.generation,
            },
        })
    }

    /// Without the commit that the machine has seen last, changes of the journal lie on nothing.
    fn check_changes(
        &self,
        gone: Won,
        is_displaced: bool,
        (tree, replay): (&Tree, &Replay),
    ) -> Result<(), OpenError> {
        if !is_displaced {
            self.check_gone(gone, tree)?;
        }
        match replay.has_changes(&self.records) {
            true => Err(OpenError::Overtaken),
            false => Ok(()),
        }
    }

    /// Takes the commits out of the chain that are followed one by one, above the changes of the journal.
    fn split_later(&self, log: &mut Log, replay: &Replay) -> Vec<Found> {
        let behind = self.behind(&log.chain).count();
        let covered = log.chain.len().saturating_sub(behind);
        let below = match replay.has_changes(&self.records) {
            true => replay.base.max(covered),
            false => log.chain.len(),
        };
        log.chain.split_off(below.min(log.chain.len()))
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

    /// The chain from the first commit on, or from the checkpoint's or the journal's commit on, whichever is older.
    fn log(&mut self) -> Result<Log, OpenError> {
        let covered_uid = self.base.map(|base| self.covered_uid(&base));
        let commits = mem::take(&mut self.commits);
        let covered = self.base.and_then(|base| {
            let found = commits.get(&covered_uid?)?.as_ref()?;
            Some((found.id(), base))
        });
        let commits: Vec<Found> = commits.into_values().flatten().collect();
        let has_first = commits
            .iter()
            .any(|found| found.record.parent == MailId::NONE);
        let older = covered.and_then(|(_, base)| {
            self.remembered
                .filter(|won| won.generation < base.covers.get())
        });
        // A commit removed by `gc` is looked for among the rows of checkpoints.
        let is_there = |won: &Won| commits.iter().any(|found| found.id() == won.commit);
        let oldest = older.filter(is_there);
        let first = covered.map(|(covered, _)| oldest.map_or(covered, |won| won.commit));
        let (chain, outside) = in_order(commits, first.filter(|_| !has_first));
        if let Some((covered, base)) = covered
            && !chain.iter().any(|found| found.id() == covered)
        {
            // The checkpoint is one of a chain that lacks the commit of the journal.
            let generation = older.map_or(base.covers.get(), |won| won.generation);
            return Err(OpenError::RolledBack { generation });
        }
        Ok(without_ancestors(chain, outside))
    }

    /// The newest commit that the journal knows, if the log lacks the commit.
    fn gone(&self, chain: &[Found]) -> Option<Won> {
        let is_there = |won: &Won| chain.iter().any(|found| found.id() == won.commit);
        self.remembered.filter(|won| !is_there(won))
    }

    /// A commit that `gc` has removed is in the chain all the same where a row of a checkpoint names a commit that the journal
    /// knows; and where none of the journal's commits has such a row, the volume has gone on too far since to tell.
    fn check_gone(&self, newest: Won, tree: &Tree) -> Result<(), OpenError> {
        if self.is_local() {
            return Err(OpenError::Unsure);
        }
        let rolled_back = OpenError::RolledBack {
            generation: newest.generation,
        };
        let mut states = BTreeMap::new();
        tree.visit(&states_prefix(), None, &mut |key, value| {
            if let (Ok(Key::State(generation)), Ok(row)) =
                (Key::decode(key), StateRow::decode(value))
            {
                states.insert(generation, row);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let has_ended = states.values().any(|row| !row.has_pages());
        let oldest = states.iter().find(|(_, row)| row.has_pages());
        let oldest = oldest.filter(|_| has_ended);
        if oldest.is_none_or(|(generation, _)| newest.generation >= *generation) {
            return Err(rolled_back);
        }
        let parts = self.records.iter().flat_map(|(_, parts)| parts);
        for part in parts {
            if let Part::Won(won) | Part::Follows(won) = part
                && let Some(row) = states.get(&won.generation)
                && row.commit != won.commit
            {
                return Err(rolled_back);
            }
        }
        Ok(())
    }

    /// Commits that the checkpoint does not cover.
    fn behind<'a>(&self, chain: &'a [Found]) -> impl Iterator<Item = &'a Found> {
        let covers = self.base.map_or(0, |base| base.covers.get());
        chain
            .iter()
            .filter(move |found| found.record.generation > covers)
    }

    /// The tree, and earlier values of rows as far as their pages are there.
    pub(super) fn rows(&mut self, log: &Log) -> Result<(Tree, Follow), Errno> {
        let mut pages = mem::take(&mut self.pages);
        pages.set_root(self.base.map(|base| base.root));
        let mut tree = Tree::over(pages);
        let mut follow = Follow::default();
        follow.named(&log.merged);
        let covers = self.base.map_or(0, |base| base.covers.get());
        for found in &log.chain {
            follow.named(&found.record.merged);
            let mut before = Vec::new();
            if found.record.generation > covers {
                for RowChange { key, value } in found.rows(self.source()) {
                    match tree.in_chain(&key) {
                        Ok(old) => before.push((key.clone(), old)),
                        Err(_) => follow.forget_history(),
                    }
                    tree.apply(Change { key, value }, found.record.generation)?;
                }
            }
            if found.record.generation >= covers {
                follow.remember(found.id(), before);
            }
        }
        tree.take_missing();
        Ok((tree, follow))
    }

    fn checkpoints(&self, chain: &[Found]) -> Checkpoints {
        let named = chain.last().and_then(|newest| newest.record.checkpoint);
        let mut checkpoints = Checkpoints::new(self.base, named);
        let covers = self.base.map(|base| base.covers.get());
        let covered = chain
            .iter()
            .find(|found| Some(found.record.generation) == covers);
        checkpoints.anchor = covered.map(|found| found.won(self.uid_validity));
        for found in self.behind(chain) {
            let octets = usize::try_from(found.octets).unwrap_or(usize::MAX);
            checkpoints.note(found.won(self.uid_validity), octets);
            checkpoints.note_rows(found.record.rows.len());
        }
        checkpoints
    }
}

/// Epoch and time of the newest commit.
fn newest_of(chain: &[Found]) -> (u16, i64) {
    let newest = chain
        .last()
        .map(|found| (found.head.epoch, found.record.time));
    newest.unwrap_or_default()
}

/// Commits before the first one of the chain are no commits outside.
fn without_ancestors(chain: Vec<Found>, outside: Vec<Found>) -> Log {
    let mut others: HashMap<MailId, Found> = outside
        .into_iter()
        .map(|found| (found.id(), found))
        .collect();
    let mut merged = Vec::new();
    let mut parent = chain.first().map(|first| first.record.parent);
    // Each commit leaves the map, so that a circle ends.
    while let Some(found) = parent.and_then(|parent| others.remove(&parent)) {
        parent = Some(found.record.parent);
        merged.extend(found.record.merged);
    }
    let mut outside: Vec<Found> = others.into_values().collect();
    outside.sort_by_key(|found| found.uid);
    Log {
        chain,
        outside,
        merged,
    }
}
