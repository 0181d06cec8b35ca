//! Answers of accounts about a copy.

use std::collections::HashSet;

use bytes::Bytes;
use vere_placement::accounts::{LOG_COPY_MAILBOX, LOG_MAILBOX};
use vere_ports::mail_accounts::{Answer, Fault, Listed};
use vere_units::Timestamp;

use super::branch::left_branch;
use super::{Copy, Fetched, Next, Pages, Stage, TAIL, Ticket, What, list, listing};
use crate::compare::{Missing, commits_of, missing_commits, missing_pages};
use crate::format::{Kind, MailId, Subject};
use crate::pause::tells_time;
use crate::recent::Recent;

/// Holes before the newest commit of a copy that are filled without a comparison of whole logs.
const HOLES_MAX: usize = 32;
/// Commits outside the chain that are kept in memory.
const OTHERS_MAX: usize = 320;

impl Copy {
    /// An account has answered. Returns a mail to be made for the copy, or the next request.
    ///
    /// # Errors
    ///
    /// The fault of the account, which has to rest: whether the copy's account has failed, and the fault.
    pub fn answered(
        &mut self,
        Ticket(turn, what): Ticket,
        answer: Result<Answer, Fault>,
        (recent, now): (&Recent, Timestamp),
    ) -> Result<Option<Fetched>, (bool, Fault)> {
        let answer = answer.map_err(|fault| self.failed((turn, what), fault, now))?;
        if turn != self.turn {
            return Ok(None);
        }
        match (what, answer) {
            (
                _,
                Answer::Listed {
                    uid_validity,
                    uid_next,
                    mails,
                },
            ) => self.listed(what, (uid_validity, uid_next), mails, recent),
            (What::Read(mail), Answer::Read(parts)) => {
                let body = parts.into_iter().next().unwrap_or_default();
                let fetch = self.fetch.as_ref().filter(|of| of.missing.mail == mail);
                return Ok(fetch.map(|fetch| Fetched {
                    ticket: Ticket(turn, What::Made(mail)),
                    mail,
                    parent: fetch.missing.parent,
                    body,
                }));
            }
            // The mail has gone as garbage: the copy needs no such mail.
            (What::Read(_), _) => self.fetch = None,
            (What::Made(mail), _) => {
                self.pause.end();
                self.fetch.take_if(|fetch| fetch.missing.mail == mail);
            }
            (What::Remove, _) => self.is_removing = false,
            (What::Commit(generation), _) => {
                self.pause.end();
                self.sending.remove(&generation);
            }
            _ => {}
        }
        Ok(None)
    }

    fn failed(&mut self, (turn, what): (u32, What), fault: Fault, now: Timestamp) -> (bool, Fault) {
        let of_lead = matches!(what, What::LeadLog | What::LeadPages | What::Read(_));
        if turn == self.turn {
            if matches!(fault, Fault::Renumbered { .. }) {
                self.pages_validity = 0;
            }
            let is_append = matches!(what, What::Commit(_) | What::Made(_));
            if is_append && !tells_time(&fault) {
                self.pause.lengthen(now);
            }
            self.reset();
        }
        (!of_lead, fault)
    }

    fn listed(
        &mut self,
        what: What,
        (uid_validity, uid_next): (u32, u32),
        mails: Vec<Listed>,
        recent: &Recent,
    ) {
        match what {
            What::End => {
                let first = uid_next.saturating_sub(TAIL).max(1);
                let tail = listing(list(LOG_COPY_MAILBOX, first));
                let next = Next::Ask(self.ticket(What::Tail(first)), tail);
                self.queue.push_back(next);
            }
            What::Tail(first) => self.judge_tail(first, &mails, recent),
            What::Look => self.look(&mails, recent),
            What::CopyLog => {
                self.copy_validity = uid_validity;
                self.copy_log = Some(mails);
                self.queue.extend(self.behind_copy.take());
            }
            What::LeadLog => self.lead_log = Some((uid_validity, mails)),
            What::CopyPages => {
                if let Pages::Listing(_, copy) = &mut self.pages {
                    *copy = Some(mails);
                }
            }
            What::LeadPages => {
                if uid_validity != 0 {
                    self.pages_validity = uid_validity;
                }
                if let Pages::Listing(lead, _) = &mut self.pages {
                    *lead = Some(mails);
                }
            }
            What::Read(_) | What::Remove | What::Commit(_) | What::Made(_) => {}
        }
        self.end_pages();
    }

    /// The end of the copy's log: the newest commit of the chain there tells how far the copy is.
    fn judge_tail(&mut self, first: u32, mails: &[Listed], recent: &Recent) {
        self.note_uids(mails);
        self.others = others_of(mails, recent);
        let there = commits_of(mails);
        let has = newest_of(recent, &there).filter(|_| !self.is_thorough);
        let begins = recent.oldest().filter(|of| of.parent == MailId::NONE);
        self.stage = match (has, begins) {
            (Some(newest), _) => {
                let from = if first == 1 { 0 } else { begin_of(mails) };
                self.fill_holes((from, newest), &there, recent)
            }
            // An empty log, and the chain from its first commit on.
            (None, Some(oldest)) if first == 1 && there.is_empty() => {
                Stage::Next(oldest.won.generation)
            }
            // No commit of this generation is in memory, so that whole logs are compared.
            (None, _) => Stage::Next(0),
        };
    }

    /// Copies that other mounts have made.
    fn look(&mut self, mails: &[Listed], recent: &Recent) {
        self.is_looking = false;
        self.note_uids(mails);
        let Stage::Next(next) = self.stage else {
            return;
        };
        let there = commits_of(mails);
        if let Some(newest) = newest_of(recent, &there).filter(|newest| *newest >= next) {
            self.stage = self.fill_holes((next, newest), &there, recent);
        }
    }

    /// The copy has the newest of some generations. Those absent there are copied; many absent ones are no holes, so that
    /// whole logs are compared.
    fn fill_holes(
        &mut self,
        (from, newest): (u64, u64),
        there: &HashSet<MailId>,
        recent: &Recent,
    ) -> Stage {
        let known = recent.newest_first();
        let known = known.filter(|known| (from..=newest).contains(&known.won.generation));
        let absent = known.filter(|known| !there.contains(&known.won.commit));
        let mut absent: Vec<Missing> = absent.take(HOLES_MAX).map(Missing::known).collect();
        if absent.len() == HOLES_MAX {
            return Stage::Next(0);
        }
        absent.reverse();
        self.missing.extend(absent);
        Stage::Next(newest.saturating_add(1))
    }

    fn note_uids(&mut self, mails: &[Listed]) {
        let last = mails.iter().map(|mail| mail.uid).max();
        self.known = self.known.max(last.unwrap_or(0));
    }

    /// Compares whole logs as soon as both are listed. `is_in_chain` tells whether a row names the commit of a subject, and fails
    /// while the row is not there; the next call tries again. Returns whether nothing is left to be compared.
    ///
    /// # Errors
    ///
    /// The first error of `is_in_chain`.
    pub fn compare<E>(
        &mut self,
        (recent, now): (&Recent, Timestamp),
        is_in_chain: &mut dyn FnMut(&Subject) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let (Stage::Wide, Some((_, lead)), Some(copy)) =
            (self.stage, &self.lead_log, &self.copy_log)
        else {
            return Ok(true);
        };
        let there = commits_of(copy);
        let found = missing_commits(lead, &there, recent, is_in_chain)?;
        let Some((missing, next)) = found else {
            // The lead's listing lacks the end of the chain, and tells nothing.
            self.reset();
            self.pause.lengthen(now);
            return Ok(true);
        };
        if self.leaves_branch {
            self.left = left_branch(lead, copy, recent);
            self.leaves_branch = false;
        }
        self.others = others_of(copy, recent);
        let left: HashSet<MailId> = self.left_mails(copy);
        self.others.retain(|(_, mail)| !left.contains(mail));
        let last = copy.iter().map(|mail| mail.uid).max();
        self.known = last.unwrap_or(0);
        self.missing = missing.into();
        self.is_thorough = false;
        self.stage = Stage::Next(next);
        (self.lead_log, self.copy_log) = (None, None);
        Ok(true)
    }

    /// Mails of pages are compared as soon as both listings are there.
    fn end_pages(&mut self) {
        let Pages::Listing(Some(lead), Some(copy)) = &self.pages else {
            return;
        };
        for missing in missing_pages(lead, copy) {
            if self.pages_missing.iter().all(|of| of.mail != missing.mail) {
                self.pages_missing.push_back(missing);
            }
        }
        self.pages = Pages::Known;
    }

    /// The mail for the copy is made, or the lead's mail is none.
    pub fn made(&mut self, Ticket(turn, what): Ticket, mail: Option<Bytes>) {
        let What::Made(of) = what else {
            return;
        };
        let fetch = self.fetch.as_mut().filter(|_| turn == self.turn);
        if let Some(fetch) = fetch.filter(|fetch| fetch.missing.mail == of) {
            match mail {
                Some(mail) => fetch.body = Some(mail),
                None => {
                    let unmade = fetch.missing.generation;
                    if fetch.mailbox == LOG_MAILBOX {
                        self.unmade = Some(self.unmade.map_or(unmade, |of| of.min(unmade)));
                    }
                    self.fetch = None;
                }
            }
        }
    }
}

/// The generation of the newest commit of the chain that is there.
fn newest_of(recent: &Recent, there: &HashSet<MailId>) -> Option<u64> {
    let mut newest = recent.newest_first();
    let has = newest.find(|known| there.contains(&known.won.commit));
    has.map(|known| known.won.generation)
}

/// The generation at which the end of a log begins: commits before have lower generations.
fn begin_of(mails: &[Listed]) -> u64 {
    let mut commits = mails.iter().filter_map(|mail| {
        let subject = Subject::parse(&mail.subject).ok()?;
        subject.generation
    });
    commits.next().unwrap_or(0)
}

/// Commits of a copy, as new as those in memory or newer, and none of them.
fn others_of(mails: &[Listed], recent: &Recent) -> Vec<(u64, MailId)> {
    let oldest = recent.oldest().map_or(u64::MAX, |of| of.won.generation);
    let commits = mails.iter().rev().filter_map(|mail| {
        let subject = Subject::parse(&mail.subject).ok()?;
        let generation = subject.generation.filter(|of| *of >= oldest)?;
        let known = recent.at(generation);
        let is_other = known.is_none_or(|known| known.won.commit != subject.mail);
        (subject.kind == Kind::Commit && is_other).then_some((generation, subject.mail))
    });
    commits.take(OTHERS_MAX).collect()
}
