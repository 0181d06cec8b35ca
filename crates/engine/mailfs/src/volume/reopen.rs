//! A volume is opened anew while its programs go on, after a stop that a fresh opening mends.
//!
//! The host begins an attempt as soon as [`Volume::reopening_wanted`] has a reason. From then on the journal is the opening's,
//! and this volume serves reads alone: nothing is written, committed or sent. Changes, and calls that wait for a commit, wait for
//! the end of the attempt, each no longer than the time-out of calls. [`Volume::reopen`] makes the next volume, which takes over
//! open files, look-ups and waiting calls: calls that have done nothing yet are carried out there, and calls that have done
//! their work wait for commits there. A failed attempt leaves the old volume as a stopped one.

use std::io;
use std::mem;
use std::ops::ControlFlow;

use hashbrown::{HashMap, HashSet};
use vere_opening::{Create, OpenError, Opening, Reopen};
use vere_ports::files::{Call, CallId, Caller, Errno, Inode, Invalidate, Reply};
use vere_ports::mail_accounts::{AccountId, Request, UidRange, Urgency};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use super::accounts::{LOG_MAILBOX, mailbox_name};
use super::state::{Asked, Volume};
use super::step::{Moment, Notice, Step};
use crate::posix::Session;
use crate::rows::{Extent, Home, Key, ROOT_HOME, decode_entry, entries_prefix, inode_key};

/// Calls that wait, and when each fails.
#[derive(Debug, Default)]
struct Waiting {
    /// Calls that have done nothing yet.
    calls: Vec<(Timestamp, CallId, Caller, Call)>,
    /// Calls that have done their work and wait for a commit, and their replies.
    done: Vec<(Timestamp, CallId, Reply)>,
}

impl<S: Storage> Volume<S> {
    /// The host opens the volume anew after a stop.
    pub const fn allow_reopening(&mut self) {
        self.reopening.is_allowed = true;
    }

    /// Stops the volume for a reason that its host knows.
    pub fn stop(&mut self, now: Moment, reason: Notice) {
        self.at(now);
        self.fail(reason);
    }

    /// Why the volume is to be opened anew, from the stop on until the host gives up.
    #[must_use]
    pub fn reopen_reason(&self) -> Option<Reopen> {
        let of = &self.reopening;
        let has_journal = of.is_retired || !self.journal.has_failed();
        let reason = self.read_only.as_ref().and_then(Notice::reopen);
        reason.filter(|_| of.is_allowed && has_journal)
    }

    /// Whether the next attempt waits for an answer of the lead.
    #[must_use]
    pub fn waits_for_lead(&self) -> bool {
        self.reopening.lacks_lead && self.reopen_reason().is_some()
    }

    /// Why an attempt is to begin now, if so.
    #[must_use]
    pub fn reopening_wanted(&self) -> Option<Reopen> {
        let of = &self.reopening;
        let is_time = !of.is_under_way && !of.lacks_lead;
        self.reopen_reason().filter(|_| is_time)
    }

    /// Begins an attempt. Returns what the opening needs to know of the volume. None while none is wanted, or while records of
    /// the journal wait for room on the local disk.
    pub fn begin_reopening(&mut self, now: Moment) -> Option<(Reopen, Create)> {
        self.at(now);
        let reason = self.reopening_wanted()?;
        if !self.reopening.is_retired {
            // Records in memory would be lost.
            if !self.journal.retry().is_ok_and(|has_all| has_all) {
                return None;
            }
            self.retire();
        }
        self.reopening.is_under_way = true;
        let of = Create {
            volume: self.seals.volume,
            epoch: self.newest_epoch(),
            keys: self.seals.keys.clone(),
            machine: self.machine.clone(),
        };
        Some((reason, of))
    }

    /// Nothing is written, committed or sent any more.
    fn retire(&mut self) {
        self.reopening.is_retired = true;
        self.journal.hand_over();
        self.memory.hand_over();
        self.end_runs("the volume is opened anew: run the command again");
        (self.sync_at, self.retry_at) = (None, None);
    }

    /// Whether journal and log belong to the next volume.
    pub(super) const fn is_retired(&self) -> bool {
        self.reopening.is_retired
    }

    /// The attempt has failed, because an account fails or for another reason: changes are refused until the next attempt.
    pub fn reopening_failed(&mut self, now: Moment, is_outage: bool) {
        self.at(now);
        self.reopening.is_under_way = false;
        self.reopening.has_failed = true;
        if is_outage {
            self.reopening.lacks_lead = true;
            self.reopening.ask_at = Some(now.steady + self.terms.refresh);
        }
        self.refuse_blocked();
    }

    /// The volume is not opened anew: it stays as it is, and whoever waits is told.
    pub fn give_up_reopening(&mut self, now: Moment) {
        self.at(now);
        self.reopening.is_under_way = false;
        self.reopening.is_allowed = false;
        for call in self.commits.take_waiters() {
            self.reply(call, Err(Errno::Io));
        }
        self.refuse_blocked();
    }

    pub(super) fn refuse_blocked(&mut self) {
        for (call, _, _) in mem::take(&mut self.blocked) {
            self.reply(call, Err(Errno::RoFs));
        }
    }

    /// Whether changes, and calls that wait for a commit, wait for the next volume: an attempt is under way or about to begin.
    pub(super) fn holds_changes(&self) -> bool {
        let of = &self.reopening;
        let is_near = of.is_under_way || !(of.has_failed || of.lacks_lead);
        is_near && self.reopen_reason().is_some()
    }

    /// The volume stops: whether the lead lacks decides when an attempt makes sense.
    pub(super) fn note_stop(&mut self, notice: &Notice) {
        self.reopening.lacks_lead = notice.reopen().is_some_and(Reopen::lacks_lead);
    }

    /// An account has given an answer: the lead's is the sign for an attempt.
    pub(super) fn note_answer(&mut self, account: u16) {
        if account == self.terms.lead {
            self.reopening.lacks_lead = false;
        }
    }

    /// When the lead is asked for a sign.
    pub(super) fn sign_due(&self) -> Option<Timestamp> {
        let of = &self.reopening;
        let is_lacking = of.lacks_lead && !of.is_under_way && self.reopen_reason().is_some();
        is_lacking.then(|| of.ask_at.unwrap_or(self.now.steady))
    }

    /// Asks the lead for a sign, by the cheapest request that names the log.
    pub(super) fn ask_for_sign(&mut self) {
        if self.sign_due().is_none_or(|at| at > self.now.steady) {
            return;
        }
        self.reopening.ask_at = Some(self.now.steady + self.terms.refresh);
        let is_asked = |(_, asked): &(u16, Asked)| matches!(asked, Asked::Sign);
        if self.asked.values().any(is_asked) {
            return;
        }
        let first = u32::MAX;
        let list = Request::List {
            mailbox: mailbox_name(LOG_MAILBOX),
            range: UidRange { first, last: None },
        };
        let lead = AccountId(self.terms.lead);
        self.ask(lead, Urgency::Waited, list, Asked::Sign);
    }

    /// The volume of an opening in place of another one, with everything that programs have there. The other one goes on as a
    /// stopped volume after an error.
    ///
    /// # Errors
    /// [`OpenError`], with [`OpenError::Revoked`] for a volume that lists the key slot of the mount no more.
    pub fn reopen(opening: Opening<S>, old: &mut Self, now: Moment) -> Result<Self, OpenError> {
        old.at(now);
        if old.reopen_reason().is_none() {
            let text = "the journal's disk has failed, or the key counts no more";
            return Err(OpenError::Io(io::Error::other(text)));
        }
        let (mut volume, rest) = Self::begun(opening, now)?;
        volume.check_slot(old)?;
        let moves = rest.merged.as_ref().map_or(&[][..], |of| &of.moves);
        let stale = old.leave_to(&volume, moves);
        let (session, waiting) = old.suspend();
        volume.resume(session);
        for (from, to) in moves {
            if let Some(to) = to {
                volume.files.move_opens(*from, *to);
            }
        }
        if let Err(error) = volume.set_out(rest) {
            old.resume(volume.suspend().0);
            old.admit_all(waiting);
            return Err(error);
        }
        volume.inherit(old);
        let stale = stale.into_iter().map(Step::Invalidate);
        volume.steps.extend(stale);
        volume.admit_all(waiting);
        Ok(volume)
    }

    /// A slot that the volume does not list counts no more. A volume that lists none trusts each.
    fn check_slot(&self, old: &mut Self) -> Result<(), OpenError> {
        let listed = self.slots()?;
        match old.follow.slot {
            Some(own) if !listed.is_empty() && !listed.contains_key(&own.number) => {
                let notice = Notice::Revoked(own.number);
                old.steps.push_back(Step::Log(notice.clone()));
                old.read_only = Some(notice);
                Err(OpenError::Revoked(own.number))
            }
            _ => Ok(()),
        }
    }

    /// Keeps open files that the next volume lacks, and tells what the kernel has to forget.
    fn leave_to(&mut self, next: &Self, moves: &[(Inode, Option<Inode>)]) -> Vec<Invalidate> {
        let moved: HashSet<Inode> = moves.iter().map(|(from, _)| *from).collect();
        let is_gone = |inode: &Inode| {
            let is_there = next.files.tree().contains(&inode_key(*inode));
            !moved.contains(inode) && is_there == Ok(false)
        };
        let gone: Vec<Inode> = self.files.open_inodes().filter(is_gone).collect();
        for inode in gone {
            // A file whose rows are in missing pages is ESTALE from here on.
            let _kept = self.files.keep_open(inode);
        }
        let stale = self.stale(next);
        self.files.tree().take_missing();
        next.files.tree().take_missing();
        stale
    }

    /// Names and inodes that the kernel knows and that are others in the next volume. Without the names in the root folder the
    /// kernel forgets every name below that no program uses.
    fn stale(&self, next: &Self) -> Vec<Invalidate> {
        let mut stale = Vec::new();
        let known: HashMap<Inode, Option<Home>> = self.files.known_inodes().collect();
        let (before, after) = (self.files.tree(), next.files.tree());
        let folders = known
            .iter()
            .filter_map(|(inode, home)| Some((*inode, (*home)?)));
        for (parent, home) in folders.chain([(Inode::ROOT, ROOT_HOME)]) {
            // Names in missing pages were not read for long, and go with the root's.
            let _rest = before.visit(&entries_prefix(home), None, &mut |key, value| {
                let is_known = decode_entry(value).is_ok_and(|row| known.contains_key(&row.inode));
                let is_same = || {
                    after
                        .get(key)
                        .is_ok_and(|now| now.as_deref() == Some(value))
                };
                if let Ok(Key::Entry { name, .. }) = Key::decode(key)
                    && is_known
                    && (parent == Inode::ROOT || !is_same())
                {
                    let name = name.to_vec();
                    stale.push(Invalidate::Entry { parent, name });
                }
                Ok(ControlFlow::Continue(()))
            });
        }
        for inode in known.into_keys().chain([Inode::ROOT]) {
            let key = inode_key(inode);
            let (was, is) = (before.get(&key), after.get(&key));
            if was.is_err() || is.is_err() || was != is {
                stale.push(Invalidate::Inode(inode));
            }
        }
        stale
    }

    /// Takes what programs have, and whoever waits.
    fn suspend(&mut self) -> (Session, Waiting) {
        let (commits, cache) = (&self.commits, &mut self.cache);
        let mut held = |chunk: &Extent| cache.get(chunk).or_else(|| commits.pinned(chunk));
        let session = self.files.suspend(&mut held);
        let mut waiting = Waiting::default();
        let deadlines = &self.deadlines.by_call;
        let until = |call: &CallId| deadlines.get(call).copied();
        let parked = mem::take(&mut self.pages.parked).into_iter();
        let parked = parked.map(|parked| (parked.id, parked.caller, parked.call));
        let mut reads: Vec<_> = self.reads.waiting.drain().collect();
        reads.sort_unstable_by_key(|(call, _)| *call);
        let reads = reads.into_iter();
        let reads =
            reads.filter_map(|(id, read)| read.asked.map(|(caller, call)| (id, caller, call)));
        let blocked = mem::take(&mut self.blocked);
        for (id, caller, call) in parked.chain(reads).chain(blocked) {
            if let Some(until) = until(&id) {
                waiting.calls.push((until, id, caller, call));
            }
        }
        let mirrored = mem::take(&mut self.mirrors.waiters);
        let mirrored = mirrored.into_iter().flat_map(|(_, waiters)| waiters);
        for (id, reply) in self.commits.take_replies().into_iter().chain(mirrored) {
            if let Some(until) = until(&id) {
                waiting.done.push((until, id, reply));
            }
        }
        (session, waiting)
    }

    fn resume(&mut self, session: Session) {
        self.files.resume(session);
    }

    /// Takes over from a volume that ends: the local disk, the mode, the slot, and what people were told or are to be told.
    fn inherit(&mut self, old: &mut Self) {
        self.reopening.is_allowed = true;
        self.local = old.local.hand_over();
        self.terms.strong = old.terms.strong;
        self.follow.slot = old.follow.slot;
        let (count, latest) = (self.follow.conflicts, mem::take(&mut self.follow.latest));
        self.follow.latest = mem::take(&mut old.follow.latest);
        for conflict in latest {
            self.follow.conflict(conflict);
        }
        self.follow.conflicts = old.follow.conflicts.saturating_add(count);
        self.collected = old.collected.take();
        (self.upkeep, self.facts) = (old.upkeep.take(), old.facts.take());
        // Replies and lines of the old volume come first; its requests and jobs end with it.
        let is_told = |step: &Step<S::File>| {
            matches!(step, Step::Reply(..) | Step::Invalidate(_) | Step::Log(_))
        };
        let mut steps = mem::take(&mut old.steps);
        steps.retain(is_told);
        steps.append(&mut self.steps);
        self.steps = steps;
    }

    /// Calls that waited in another volume wait here.
    fn admit_all(&mut self, waiting: Waiting) {
        let mut replies = Vec::new();
        for (until, id, reply) in waiting.done {
            self.deadlines.begin(id, until);
            replies.push((id, reply));
        }
        if !replies.is_empty() {
            self.want_all(replies);
        }
        for (until, id, caller, call) in waiting.calls {
            self.deadlines.begin(id, until);
            self.admit(id, caller, call);
        }
    }
}
