//! The stages of a collection: what is needed, what goes, and what moves.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::super::accounts::{LOG_MAILBOX, PAGES_MAILBOX};
use super::super::state::Volume;
use super::clock::volume_time;
use super::collect::{self, CollectReport, Present, TOMBSTONES_MAX, has_content, names_row};
use super::history::History;
use super::inspect::{Inspection, Suspect, Verdict};
use super::moving::Moving;
use super::rows::Writing;
use super::scan::{Scan, Scanned, Weighed, is_thin};
use super::slots::{self, Verified, is_of_slot};
use super::state::{Garbage, Stage, Then, Upkeep, What};
use super::survey::Survey;
use super::walk::Walk;
use crate::breakage::{Breakage, is_broken};
use crate::format::{Kind, MailCopy, Subject};
use crate::rows::{
    Key, RowValue, SettingsRow, SnapshotRow, StateRow, TombstoneRow, UpkeepRow, snapshots_prefix,
    states_prefix, tombstones_prefix,
};

/// Free room below which nothing moves: content in two packs takes room.
const MOVE_ROOM: u64 = 64 << 20;

impl<S: Storage> Volume<S> {
    /// The generation that the oldest checkpoint with pages covers; 0 while no checkpoint has ended.
    pub(super) fn oldest_kept(&self) -> Result<u64, Errno> {
        let (mut oldest, mut has_ended) = (0, false);
        self.files
            .tree()
            .visit(&states_prefix(), None, &mut |key, value| {
                let row = StateRow::decode(value);
                let has_pages = row.is_ok_and(|row| row.has_pages());
                has_ended |= !has_pages;
                if let (Ok(Key::State(generation)), true) = (Key::decode(key), has_pages) {
                    oldest = generation;
                    return Ok(ControlFlow::Break(()));
                }
                Ok(ControlFlow::Continue(()))
            })?;
        Ok(if has_ended { oldest } else { 0 })
    }

    /// Notes that a check has ended.
    pub(super) fn note_check(&mut self) -> Result<(), Errno> {
        let key = Key::Upkeep.encode();
        let row = self.files.tree().get(&key)?;
        let row = row.and_then(|row| UpkeepRow::decode(&row).ok());
        let row = UpkeepRow {
            checked_ms: self.now.millis(),
            ..row.unwrap_or_default()
        };
        if self.read_only.is_none() {
            self.put_row(key, row.encode());
        }
        Ok(())
    }

    /// Reads the rows that a collection goes by, and begins to list accounts.
    pub(super) fn prepare_collection(&mut self, upkeep: &mut Upkeep) -> Result<(), Errno> {
        let What::Collect(terms, _) = &upkeep.what else {
            return Ok(());
        };
        let tree = self.files.tree();
        let settings = tree.get(&Key::Settings.encode())?;
        let settings = settings.and_then(|row| SettingsRow::decode(&row).ok());
        let times = settings.map(|row| {
            let seconds = Duration::from_secs;
            (seconds(row.keep_versions_s), seconds(row.keep_deleted_s))
        });
        let row = tree.get(&Key::Upkeep.encode())?;
        let row = row.and_then(|row| UpkeepRow::decode(&row).ok());
        let wall = self.now.millis();
        let now = volume_time(row.as_ref(), self.collected, wall, self.now.steady);
        let present = Present {
            now,
            generation: self.chain.end().1.saturating_add(1),
            pack_wait: terms.pack_wait(times),
            grace: if is_broken(Breakage::NoGrace) {
                Duration::ZERO
            } else {
                terms.grace
            },
        };
        let mut states = Vec::new();
        tree.visit(&states_prefix(), None, &mut |key, value| {
            if let (Ok(Key::State(generation)), Ok(row)) =
                (Key::decode(key), StateRow::decode(value))
            {
                states.push((generation, row));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let mut snapshots = Vec::new();
        tree.visit(&snapshots_prefix(), None, &mut |_, value| {
            // A snapshot that cannot be read keeps nothing alive that could be named.
            snapshots.extend(SnapshotRow::decode(value).map(|row| row.root));
            Ok(ControlFlow::Continue(()))
        })?;
        let named = self.checkpoints.named.map(std::num::NonZeroU64::get);
        let mut history = History::new(states, named, (now, present.pack_wait));
        // A checkpoint from before the last change of the lead tells nothing about UIDs of the log: commits stay until a later one.
        let since = self.lead_since();
        history.oldest = history
            .oldest
            .filter(|(generation, _)| *generation >= since);
        // A checkpoint in use may lack a row, because that of another mount was faster.
        let limit = history.oldest.map_or(0, |(generation, _)| generation);
        history.roots.extend(self.checkpoints.roots(limit));
        let accounts = self.terms.accounts.iter().map(|terms| terms.account);
        let last = history.oldest.map_or(0, |(_, row)| row.uid);
        let survey = Survey::new(accounts, self.seals.volume.tag());
        upkeep.stage = Stage::Survey(survey.ends_log(self.terms.lead, last));
        upkeep.garbage = Garbage {
            present: Some(present),
            history,
            snapshots,
            row: UpkeepRow {
                volume_ms: now,
                collected_ms: wall,
                checked_ms: row.map_or(0, |row| row.checked_ms),
                ..UpkeepRow::default()
            },
            ..Garbage::default()
        };
        Ok(())
    }

    /// Takes what was listed; returns whether the listing is over.
    pub(super) fn list_on(&mut self, upkeep: &mut Upkeep) -> Result<bool, Errno> {
        let Stage::Survey(survey) = &mut upkeep.stage else {
            return Ok(false);
        };
        let listing = &mut upkeep.garbage.listing;
        listing.take(survey);
        let is_over = survey.is_over();
        self.look_through(listing)?;
        if !is_over {
            return Ok(false);
        }
        let slots = self.listed_slots()?;
        let stage = std::mem::replace(&mut upkeep.stage, Stage::Over);
        if let (Stage::Survey(survey), What::Collect(_, report)) = (stage, &mut upkeep.what) {
            listing.end(survey);
            report.failed.clone_from(&listing.unread);
            report.has_more |= listing.has_more;
        }
        // An account that does not answer may have become the lead: under a chain that this mount does not see, packs may be needed.
        let further = self.further_accounts();
        let mut unread = upkeep.garbage.listing.unread.keys();
        if let Some(account) = unread.find(|account| further.contains(account)) {
            upkeep.failed = Some(format!(
                "account {account} does not answer, and may be the lead by now: nothing is removed"
            ));
            return Ok(true);
        }
        let mut suspects = collect::suspects(&upkeep.garbage.listing);
        suspects.extend(self.find_losers(&mut upkeep.garbage));
        suspects.extend(slots::suspects(&upkeep.garbage.listing, &slots));
        upkeep.stage = Stage::Inspect(Inspection::new(suspects));
        Ok(true)
    }

    /// Mails are verified: the walk through pages begins.
    pub(super) fn begin_walk(upkeep: &mut Upkeep, verdicts: &[(Suspect, Verdict)]) {
        let What::Collect(_, report) = &mut upkeep.what else {
            return;
        };
        let is_bad = |(_, verdict): &&(Suspect, Verdict)| matches!(verdict, Verdict::Bad(_));
        report.forged = verdicts.iter().filter(is_bad).count();
        let garbage = &mut upkeep.garbage;
        garbage.good = collect::good(verdicts);
        garbage.slots = Verified::of(verdicts);
        garbage.losers.judge(verdicts);
        // Without an old checkpoint no page is old.
        let oldest = garbage.history.oldest;
        let roots = garbage.history.roots.iter().copied();
        let roots = roots.filter(|_| oldest.is_some());
        let walk = Walk::new(roots, garbage.snapshots.iter().copied());
        upkeep.stage = Stage::Walk(Box::new(walk));
    }

    /// The walk is over: packs are weighed.
    pub(super) fn end_walk(upkeep: &mut Upkeep) {
        let stage = std::mem::replace(&mut upkeep.stage, Stage::Over);
        if let Stage::Walk(walk) = stage {
            upkeep.garbage.packs = walk.packs;
            upkeep.garbage.reached = (!walk.is_broken).then_some(walk.mails);
            upkeep.stage = Stage::Scan(Box::new(Scan::new()));
        }
    }

    /// Goes on with the scan. Returns whether the plan is whole.
    pub(super) fn scan_on(&mut self, upkeep: &mut Upkeep) -> Result<bool, Errno> {
        self.decide(upkeep)?;
        let is_full = upkeep.garbage.plan.is_full();
        if let (true, What::Collect(_, report)) = (is_full, &mut upkeep.what) {
            report.has_more = true;
        }
        let Stage::Scan(scan) = &mut upkeep.stage else {
            return Ok(false);
        };
        let scanned = if is_full {
            Scanned::Over
        } else {
            scan.slice(self.files.tree())?
        };
        match scanned {
            Scanned::More => {}
            Scanned::Packs(packs) => upkeep.garbage.weighed.extend(packs),
            Scanned::Over => {
                self.end_plan(upkeep, !is_full)?;
                return Ok(true);
            }
        }
        upkeep.is_hungry = true;
        Ok(false)
    }

    /// Decides about the packs that are weighed.
    fn decide(&mut self, upkeep: &mut Upkeep) -> Result<(), Errno> {
        let What::Collect(terms, report) = &mut upkeep.what else {
            return Ok(());
        };
        let garbage = &mut upkeep.garbage;
        let Some(present) = garbage.present else {
            return Ok(());
        };
        let oldest = garbage.history.oldest.map(|(_, row)| row.uid);
        let lead_is_short = self.accounts.is_short(self.terms.lead);
        if garbage.weighed.is_empty() {
            return Ok(());
        }
        // Equal content that is written again names a stored pack before a row does.
        let mut in_use: HashSet<u64> = self.packs_in_use().collect();
        in_use.extend(self.packs_of_open());
        while let Some(pack) = garbage.weighed.front() {
            let number = pack.number;
            if !has_content(pack.row.kind) {
                garbage.weighed.pop_front();
                continue;
            }
            let tombstone = self.tombstone_row(number)?;
            let is_needed = pack.live > 0
                || garbage.packs.contains(&number)
                || upkeep.touched.contains(&number)
                || in_use.contains(&number)
                || self.uploads.has(number);
            let is_old = is_old_commit(pack, self.terms.lead, oldest);
            let is_commit = pack.row.kind == Kind::Commit as u8;
            let row = &mut garbage.row;
            row.octets = row.octets.saturating_add(pack.row.octets.into());
            row.live_octets = row
                .live_octets
                .saturating_add(pack.live.min(pack.row.octets).into());
            if is_needed {
                garbage.plan.keep(pack, tombstone.as_ref(), report);
                let moves = match is_commit {
                    true => pack.live > 0 && (is_old || lead_is_short),
                    false => is_thin(&pack.row, pack.live),
                };
                let octets = garbage.thin_octets.saturating_add(pack.live.into());
                let is_free = !garbage.packs.contains(&number) && !self.uploads.has(number);
                if moves && is_free && octets <= terms.move_max {
                    garbage.thin.insert(number);
                    garbage.thin_octets = octets;
                }
            } else if !is_commit || (is_old && !garbage.losers.is_held(pack.row.mail)) {
                garbage
                    .plan
                    .condemn(pack, tombstone.as_ref(), present, report);
            }
            garbage.weighed.pop_front();
        }
        Ok(())
    }

    /// Every pack is decided about: tombstones, strays and the past remain. Then the rows are written.
    fn end_plan(&mut self, upkeep: &mut Upkeep, is_whole: bool) -> Result<(), Errno> {
        let What::Collect(_, report) = &mut upkeep.what else {
            return Ok(());
        };
        let garbage = &mut upkeep.garbage;
        let Some(present) = garbage.present else {
            return Ok(());
        };
        let buried = self.tombstones_apart()?;
        let open = self.packs_of_open();
        self.plan_strays(garbage, present, report)?;
        let listed = self.plan_slots(garbage, present, report)?;
        for (number, row) in buried {
            if garbage.plan.is_full() {
                report.has_more = true;
                break;
            }
            if is_of_slot(&row) && listed.contains(&row.mail) {
                // The change that the slot belongs to has come to its end.
                let key = Key::Tombstone(number).encode();
                garbage.plan.changes.push((key, None));
            } else if !garbage.plan.has(number) && !open.contains(&number) {
                garbage.plan.add_apart(number, row, present, report);
            }
        }
        self.plan_history(garbage)?;
        let mut changes = std::mem::take(&mut garbage.history.changes);
        changes.append(&mut garbage.plan.changes);
        if is_whole {
            let key = Key::Upkeep.encode();
            if changes.is_empty() {
                // Nothing else is to be written: the row goes with the next commit.
                self.put_row(key, garbage.row.encode());
            } else {
                changes.push((key, Some(garbage.row.encode())));
            }
            self.collected = Some((self.now.steady, garbage.row.collected_ms));
        }
        let mut writing = Writing::new(changes);
        garbage.due = std::mem::take(&mut garbage.plan.due);
        // Rows of an earlier run may be in the journal only.
        for number in garbage.due.keys() {
            writing.keys.push(Key::Tombstone(*number).encode());
            writing.keys.push(Key::Pack(*number).encode());
        }
        upkeep.stage = Stage::Write(writing, Then::Remove);
        Ok(())
    }

    /// Tombstones of mails that no row names, or of duplicates.
    fn tombstones_apart(&self) -> Result<Vec<(u64, TombstoneRow)>, Errno> {
        let mut all = Vec::new();
        self.files
            .tree()
            .visit(&tombstones_prefix(), None, &mut |key, value| {
                if let (Ok(Key::Tombstone(pack)), Ok(row)) =
                    (Key::decode(key), TombstoneRow::decode(value))
                {
                    all.push((pack, row));
                }
                Ok(if all.len() < TOMBSTONES_MAX.saturating_mul(8) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            })?;
        let mut apart = Vec::new();
        for (number, row) in all {
            let pack = self.pack_row(number)?;
            if pack.is_none_or(|pack| !names_row(&row, &pack)) {
                apart.push((number, row));
            }
        }
        Ok(apart)
    }

    fn plan_strays(
        &self,
        garbage: &mut Garbage,
        present: Present,
        report: &mut CollectReport,
    ) -> Result<(), Errno> {
        let open = self.packs_of_open();
        let plan = &mut garbage.plan;
        for duplicate in &garbage.listing.duplicates {
            let Some(row) = self.pack_row(duplicate.pack)? else {
                continue;
            };
            let earlier = self.tombstone_row(duplicate.pack)?;
            // A pack that goes takes its duplicates with it, in turn.
            let is_dying = earlier.as_ref().is_some_and(|of| names_row(of, &row))
                || plan.names(duplicate.pack, &row);
            let is_named = row.copies.contains(&duplicate.kept);
            if garbage.good.contains(&duplicate.kept) && is_named && !is_dying && !plan.is_full() {
                plan.add_duplicate(duplicate, row.mail, earlier.as_ref(), present, report);
            }
        }
        for (subject, copy) in &garbage.listing.orphans {
            let is_stray =
                !open.contains(&subject.pack.0) && self.pack_row(subject.pack.0)?.is_none();
            if is_stray && garbage.good.contains(copy) && !plan.is_full() {
                let earlier = self.tombstone_row(subject.pack.0)?;
                plan.add_orphan((subject, *copy), earlier.as_ref(), present, report);
            }
        }
        Ok(())
    }

    /// Commits and pages without any use.
    fn plan_history(&self, garbage: &mut Garbage) -> Result<(), Errno> {
        let lead = self.terms.lead;
        let has_row = |subject: &Subject| self.has_row_of(subject);
        let mut commits = garbage.history.old_commits(&garbage.listing.log, &has_row);
        commits.retain(|(_, mail)| !garbage.losers.is_held(*mail));
        let knows = |mail| self.follow.is_merged(mail);
        commits.extend(garbage.losers.merged(&knows));
        let place = |mailbox, uid| MailCopy {
            account: lead,
            mailbox,
            uid,
        };
        let commits = commits.into_iter();
        garbage.doomed = commits
            .map(|(uid, mail)| (place(LOG_MAILBOX, uid), mail))
            .collect();
        let copies =
            garbage
                .history
                .old_copies(&garbage.listing.copies, &has_row, garbage.reached.as_ref());
        garbage.doomed.extend(copies);
        let Some(reached) = &garbage.reached else {
            return Ok(());
        };
        for (uid, subject) in garbage.history.old_pages(&garbage.listing.pages, reached) {
            let copy = place(PAGES_MAILBOX, uid);
            let row = self.pack_row(subject.pack.0)?;
            let is_named = row.is_some_and(|row| row.mail == subject.mail);
            if is_named {
                let key = Key::Pack(subject.pack.0).encode();
                garbage.plan.changes.push((key, None));
            }
            if is_named || garbage.good.contains(&copy) {
                garbage.doomed.push((copy, subject.mail));
            }
        }
        Ok(())
    }

    /// Content moves from thin packs, if there is any and there is room.
    pub(super) fn begin_moves(&mut self, upkeep: &mut Upkeep) {
        let packs = std::mem::take(&mut upkeep.garbage.thin);
        let room = MOVE_ROOM.saturating_add(upkeep.garbage.thin_octets);
        if packs.is_empty() || self.accounts.room().free < room {
            self.begin_anew(upkeep);
        } else {
            upkeep.stage = Stage::Move(Box::new(Moving::new(packs, self.now.steady)));
        }
    }

    /// Content has its new places: the rows are written, and the old packs are needless from then on.
    pub(super) fn end_moves(upkeep: &mut Upkeep, writing: Writing) {
        if let (Stage::Move(moving), What::Collect(_, report)) = (&upkeep.stage, &mut upkeep.what)
            && moving.octets > 0
        {
            report.packs_moved = moving.packs();
            report.octets_moved = moving.octets;
            // The tombstones of the old packs.
            report.has_more = true;
        }
        upkeep.stage = Stage::Write(writing, Then::Anew);
    }
}

/// Whether a pack is a commit below the oldest checkpoint that stays. A row is written for commits of the chain only.
fn is_old_commit(pack: &Weighed, lead: u16, oldest: Option<u32>) -> bool {
    let is_below =
        |copy: &MailCopy| copy.account == lead && oldest.is_some_and(|uid| copy.uid < uid);
    pack.row.kind == Kind::Commit as u8 && pack.row.copies.iter().all(is_below)
}
