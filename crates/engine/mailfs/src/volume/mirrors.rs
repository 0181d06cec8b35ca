//! Copies of commits and pages on further metadata accounts: the lead's mails, appended there behind the calls that wait.
//!
//! Only commits of the chain are copied: every commit in a copy is part of the chain.

use std::time::Duration;

use bytes::Bytes;
use vere_order::copies::{Copy, MirrorStatus, Next, Ticket};
use vere_order::recent::Known;
use vere_ports::files::{CallId, Errno, Reply};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;
use vere_sealing::mirror::{MirrorJob, recoded};
use vere_units::Timestamp;

use super::accounts::{LOG_COPY_MAILBOX, mailbox_name};
use super::found::Found;
use super::job::{Job, Task};
use super::record::Won;
use super::state::{Asked, Volume, Working};
use super::step::{Moment, Notice, Step};
use crate::breakage::{Breakage, is_broken};
use crate::format::{FormatError, MailId, Subject};

/// Time for another mount to copy its own pages.
const PAGES_PATIENCE: Duration = Duration::from_secs(60);
/// The longest time for which the end of a mount waits for copies.
const FINISH_PATIENCE: Duration = Duration::from_secs(10);

impl<S: Storage> Volume<S> {
    /// The metadata accounts behind the lead, in their order.
    pub(super) fn further_accounts(&self) -> Vec<u16> {
        self.terms.further_accounts()
    }

    /// The chain as an opening has found it: commits that a copy lacks are copied at once.
    pub(super) fn begin_mirrors<'a>(
        &mut self,
        chain: impl Iterator<Item = &'a Found>,
        uid_validity: u32,
    ) {
        for found in chain {
            let won = found.won(uid_validity);
            self.note_commit((won, found.record.parent), None, false, Timestamp::ZERO);
        }
    }

    fn note_commit(
        &mut self,
        (won, parent): (Won, MailId),
        mail: Option<Bytes>,
        is_own: bool,
        since: Timestamp,
    ) {
        self.mirrors.recent.note(Known {
            won,
            parent,
            mail,
            is_own,
            since,
        });
    }

    /// A commit of the mount is in the chain.
    pub(super) fn mirror_won(&mut self, won: Won) {
        let Some((parent, mail)) = self.chain.take_won() else {
            return;
        };
        let has_copies = !self.further_accounts().is_empty();
        let mail = has_copies.then_some(mail);
        self.note_commit((won, parent), mail, true, self.now.steady);
    }

    /// A commit is on the way to the lead. Copies have to wait for the chain.
    pub(super) fn mirror_sent(&mut self, mail: &Bytes) {
        if !is_broken(Breakage::CopiedEarly) {
            return;
        }
        for account in self.further_accounts() {
            let request = Request::Append {
                mailbox: mailbox_name(LOG_COPY_MAILBOX),
                mail: mail.clone(),
                alone: false,
            };
            self.ask(AccountId(account), Urgency::Commit, request, Asked::Quota);
        }
    }

    /// A commit of another mount is in the chain.
    pub(super) fn mirror_followed(&mut self, won: Won) {
        let outside = self.follow.outside.get(&won.commit);
        let parent = outside.map_or(MailId::NONE, |of| of.found.record.parent);
        self.note_commit((won, parent), None, false, self.now.steady);
    }

    /// A checkpoint of the mount is stored on the lead.
    pub(super) fn mirror_page(&mut self, mail: MailId, place: (u32, u32)) {
        for copy in self.mirrors.copies.values_mut() {
            copy.page_stored(mail, place);
        }
    }

    /// Another mount has stored pages, and copies them; should it end before, the mount does.
    pub(super) fn mirror_pages_later(&mut self) {
        let at = self.now.steady + PAGES_PATIENCE;
        self.mirrors.pages_at.get_or_insert(at);
    }

    /// Copies that `fsync` waits for.
    pub(super) fn mirrors_wanted(&self) -> usize {
        let further = self.further_accounts().len();
        self.terms.sync_copies.saturating_sub(1).min(further)
    }

    /// Answers calls as soon as further accounts have the commit of a generation, where the user wants several copies.
    pub(super) fn release_mirrored(&mut self, generation: u64, waiters: Vec<(CallId, Reply)>) {
        if waiters.is_empty() {
            return;
        }
        self.mirrors.waiters.push_back((generation, waiters));
        self.release_copied();
    }

    fn release_copied(&mut self) {
        let wanted = self.mirrors_wanted();
        let ready = self.mirrors.take_ready(wanted);
        for (call, reply) in ready {
            self.reply(call, Ok(reply));
        }
    }

    /// Goes on copying: called after every event.
    pub(super) fn tend_mirrors(&mut self) {
        if self.is_stopped() || self.is_unconfirmed() {
            return;
        }
        let further = self.further_accounts();
        let mirrors = &mut self.mirrors;
        mirrors
            .copies
            .retain(|account, _| further.contains(account));
        let now = self.now.steady;
        if mirrors.pages_at.take_if(|at| *at <= now).is_some() {
            mirrors.copies.values_mut().for_each(Copy::compare_pages);
        }
        for account in further {
            let mut copy = self.mirrors.copies.remove(&account).unwrap_or_default();
            self.tend_mirror(account, &mut copy);
            self.mirrors.copies.insert(account, copy);
        }
        let has = self.mirrors.copies.values().map(|copy| copy.has());
        if let Some(Some(least)) = has.min() {
            self.mirrors.recent.copied(least);
        }
        self.release_copied();
    }

    fn tend_mirror(&mut self, account: u16, copy: &mut Copy) {
        let lead = self.terms.lead;
        // A call waits for the copy, or the copy follows behind all calls.
        let urgency = match self.mirrors.waiters.is_empty() {
            true => Urgency::Idle,
            false => Urgency::Synced,
        };
        if !self.accounts.may(account, urgency) {
            return;
        }
        let mut is_in_chain = |subject: &Subject| -> Result<bool, Errno> {
            let row = self.pack_row(subject.pack.0)?;
            Ok(row.is_some_and(|row| row.mail == subject.mail))
        };
        let known = (&self.mirrors.recent, self.now.steady);
        if copy.compare(known, &mut is_in_chain).is_err() {
            self.fetch_missing(Urgency::Idle);
        }
        loop {
            let has_lead = self.accounts.may(lead, urgency);
            let (now, recent) = (self.now.steady, &self.mirrors.recent);
            let (to, ticket, request) = match copy.poll(recent, now, has_lead) {
                None => return,
                Some(Next::Ask(ticket, request)) => (account, ticket, request),
                Some(Next::AskLead(ticket, request)) => (lead, ticket, request),
                Some(Next::Append(ticket, generation)) => {
                    match self.commit_for(account, generation) {
                        Some(mail) => {
                            let request = Request::Append {
                                mailbox: mailbox_name(LOG_COPY_MAILBOX),
                                mail,
                                alone: false,
                            };
                            (account, ticket, request)
                        }
                        None => {
                            copy.reset();
                            return;
                        }
                    }
                }
            };
            self.ask(
                AccountId(to),
                urgency,
                request,
                Asked::Mirror(account, ticket),
            );
        }
    }

    /// The mail of a commit of the mount, in the encoding of an account.
    fn commit_for(&self, account: u16, generation: u64) -> Option<Bytes> {
        let known = self.mirrors.recent.at(generation)?;
        let mail = known.mail.clone()?;
        let (from, to) = (self.lead_encoding(), self.accounts.encoding(account)?);
        if from == to {
            return Some(mail);
        }
        recoded(
            &mail,
            (from, to),
            (known.parent, generation),
            self.now.date(),
        )
        .ok()
    }

    /// An account has answered about a copy.
    pub(super) fn mirror_answered(
        &mut self,
        account: u16,
        ticket: Ticket,
        answer: Result<Answer, Fault>,
    ) {
        let Some(mut copy) = self.mirrors.copies.remove(&account) else {
            return;
        };
        match copy.answered(ticket, answer, (&self.mirrors.recent, self.now.steady)) {
            Ok(None) => {}
            Ok(Some(fetched)) => {
                let encoding = self.accounts.encoding(account);
                let job = MirrorJob {
                    keys: self.seals.keys.clone(),
                    volume: self.seals.volume,
                    id: fetched.mail,
                    parent: fetched.parent,
                    from: self.lead_encoding(),
                    to: encoding.unwrap_or_else(|| self.lead_encoding()),
                    body: fetched.body,
                    date: self.now.date(),
                };
                let working = Working::Mirror(account, fetched.ticket);
                self.work(Job(Task::Mirror(job)), working);
            }
            Err((is_copy, fault)) => {
                let of = if is_copy { account } else { self.terms.lead };
                self.account_failed(of, &fault);
            }
        }
        self.mirrors.copies.insert(account, copy);
        self.tend_mirrors();
        self.tend_checkpoints();
    }

    /// The mail for a copy is made, or the lead's mail is no commit and no page.
    pub(super) fn mirror_made(
        &mut self,
        account: u16,
        ticket: Ticket,
        made: Result<Bytes, FormatError>,
    ) {
        if let Err(error) = &made {
            self.steps.push_back(Step::Log(Notice::Uncopied {
                account: AccountId(self.terms.lead),
                reason: error.to_string(),
            }));
        }
        if let Some(copy) = self.mirrors.copies.get_mut(&account) {
            copy.made(ticket, made.ok());
        }
    }

    /// A check repairs: whole copies are compared with the lead.
    pub(super) fn compare_mirrors(&mut self) {
        let copies = self.mirrors.copies.values_mut();
        copies.for_each(Copy::compare_whole);
        self.tend_mirrors();
    }

    /// A person has accepted a rollback: commits of the left branch leave the copies.
    pub fn leave_branch(&mut self, now: Moment) {
        self.at(now);
        for account in self.further_accounts() {
            let copy = self.mirrors.copies.entry(account).or_default();
            copy.leave_branch();
        }
        self.tend_mirrors();
    }

    /// When copies go on without an answer.
    pub(super) fn mirrors_due(&self) -> Option<Timestamp> {
        self.mirrors.due(self.now.steady)
    }

    /// Whether the end of the mount waits for copies on accounts that answer.
    pub(super) fn finish_waits_for_mirrors(&mut self) -> bool {
        let mirrors = &self.mirrors;
        let mut copies = mirrors.copies.iter();
        let is_copying = copies.any(|(account, copy)| {
            self.accounts.may(*account, Urgency::Idle)
                && !copy.pauses(self.now.steady)
                && !copy.is_level(&mirrors.recent)
        });
        if !is_copying {
            self.mirrors.finish_until = None;
            return false;
        }
        let until = self.now.steady + FINISH_PATIENCE;
        let until = *self.mirrors.finish_until.get_or_insert(until);
        if self.now.steady < until {
            return true;
        }
        self.mirrors.finish_until = None;
        false
    }

    /// How far each copy is.
    #[must_use]
    pub(super) fn mirror_status(&self) -> Vec<MirrorStatus> {
        let further = self.further_accounts().into_iter();
        further
            .map(|account| self.mirrors.status(account))
            .collect()
    }
}
