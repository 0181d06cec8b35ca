//! An opening from a copy, while the lead does not answer. UIDs of the lead say nothing there: generations do, and pages are
//! where the copy's listing has them. The volume takes no changes.

use vere_ports::mail_accounts::Listed;
use vere_ports::storage::Storage;

use super::{Opening, SLACK, Stage};
use crate::error::OpenError;
use crate::format::commit::Checkpoint;
use crate::format::{Kind, Subject};
use vere_keep::record::Won;
use vere_order::found::Found;
use vere_placement::accounts::{LOG_COPY_MAILBOX, LOG_MAILBOX, PAGES_COPY_MAILBOX, PAGES_MAILBOX};

impl<S: Storage> Opening<S> {
    /// The account whose log is read.
    pub(super) fn source(&self) -> u16 {
        let of = self.stand_in.as_ref();
        of.map_or(self.terms.lead, |stand_in| stand_in.account)
    }

    /// The mailbox whose commits are read, and that of their pages.
    pub(super) const fn mailboxes(&self) -> (u16, u16) {
        match self.stand_in {
            None => (LOG_MAILBOX, PAGES_MAILBOX),
            Some(_) => (LOG_COPY_MAILBOX, PAGES_COPY_MAILBOX),
        }
    }

    /// The mailbox that is asked for a page.
    pub(super) fn page_mailbox(&self, named: u16) -> u16 {
        self.stand_in.as_ref().map_or(named, |_| PAGES_COPY_MAILBOX)
    }

    pub(super) fn note_generations(&mut self, mails: &[Listed]) {
        if let Some(stand_in) = &mut self.stand_in {
            let subjects = mails.iter().filter_map(|mail| {
                let subject = Subject::parse(&mail.subject).ok()?;
                Some((mail.uid, subject)).filter(|_| subject.kind == Kind::Commit)
            });
            let generations = subjects.filter_map(|(uid, of)| Some((uid, of.generation?)));
            stand_in.generations.extend(generations);
        }
    }

    /// The pages of a copy are known by their listing.
    pub(super) fn note_pages(&mut self, mails: &[Listed]) {
        if self.stand_in.is_none() {
            return;
        }
        for mail in mails {
            if let Ok(subject) = Subject::parse(&mail.subject)
                && subject.kind == Kind::Pages
            {
                self.moved.entry(subject.mail).or_insert(mail.uid);
            }
        }
    }

    /// The listed commit that may be the newest one.
    pub(super) fn newest_listed(&self) -> Option<u32> {
        let may_be = |uid: &&u32| match self.commits.get(*uid) {
            Some(found) => found.as_ref().is_some_and(|of| self.is_of_this_log(of)),
            None => true,
        };
        let mut listed = self.listed.iter().rev().filter(may_be);
        match &self.stand_in {
            None => listed.next().copied(),
            Some(of) => listed.max_by_key(|uid| of.generations.get(*uid)).copied(),
        }
    }

    /// The UID of the commit below a checkpoint.
    pub(super) fn covered_uid(&self, checkpoint: &Checkpoint) -> u32 {
        let Some(of) = &self.stand_in else {
            return checkpoint.covered_uid;
        };
        let covers = checkpoint.covers.get();
        let mut all = of.generations.iter();
        let has = |(uid, generation): &(&u32, &u64)| {
            **generation == covers && !matches!(self.commits.get(*uid), Some(None))
        };
        all.find(has).map_or(0, |(uid, _)| *uid)
    }

    /// Whether a checkpoint covers a commit still unread.
    pub(super) fn has_covered_unread(&self, covered_uid: u32) -> bool {
        match self.stand_in {
            // An older checkpoint than the one at which the reading began.
            None => covered_uid < self.first_needed(),
            Some(_) => covered_uid != 0,
        }
    }

    /// Listed commits to be read, at the lead from a UID on, in a copy by generations.
    pub(super) fn needed_commits(&self, first: u32) -> Vec<u32> {
        let Some(of) = &self.stand_in else {
            return self.listed.range(first..).copied().collect();
        };
        let covers = self.base.map_or(0, |base| base.covers.get());
        let remembered = self.remembered.map_or(u64::MAX, |won| won.generation);
        let expected = self.expected.map_or(u64::MAX, |of| of.generation());
        let first = covers.min(remembered).min(expected);
        let first = first.saturating_sub(SLACK.into());
        let is_needed = |uid: &&u32| of.generations.get(*uid).is_some_and(|at| *at >= first);
        self.listed.iter().filter(is_needed).copied().collect()
    }

    /// Begins with the listing of the whole copy.
    pub(super) fn begin_at_copy(&mut self) {
        self.stage = Stage::Newest;
        self.list(1);
    }

    /// A copy older than the commits seen by the machine does not stand in, and neither does a copy with a gap.
    pub(super) fn check_copy(
        &self,
        gone: Option<Won>,
        chain: &[Found],
        outside: &[Found],
    ) -> Result<(), OpenError> {
        let found = chain.last().map_or(0, |newest| newest.record.generation);
        let behind = outside.iter().map(|found| found.record.generation);
        let expected = behind.chain(gone.map(|gone| gone.generation)).max();
        match (&self.stand_in, expected) {
            (Some(of), Some(expected)) if expected > found => Err(OpenError::CopyBehind {
                account: of.account,
                found,
                expected,
            }),
            _ => Ok(()),
        }
    }
}
