//! Commits of a left branch leave the copy, after a person has accepted a rollback.
//!
//! Each commit in a copy was in the chain at the time of copying. So a commit is of a left branch where the chain has a different
//! commit of the generation, or where the lead, listed behind the copy, lacks a commit newer than the chain. A commit in the
//! list of the lead stays: an open commit may wait to be merged.

use std::collections::{HashSet, VecDeque};

use vere_placement::accounts::{LOG_COPY_MAILBOX, mailbox_name};
use vere_ports::mail_accounts::{Listed, Request};

use super::{Copy, Next, What};
use crate::compare::commits_of;
use crate::format::{Kind, MailId, Subject};
use crate::recent::Recent;

/// UIDs removed by one request.
const UIDS_MAX: usize = 500;
/// Commits removed by a comparison; the next one finds the rest.
const LEFT_MAX: usize = 20_000;

impl Copy {
    /// A person has accepted a rollback: whole logs are compared, and commits of the left branch go.
    pub fn leave_branch(&mut self) {
        self.compare_whole();
        self.leaves_branch = true;
    }

    /// Whether commits of a left branch are looked for, or on their way out.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaves_branch || self.is_removing || !self.left.is_empty()
    }

    pub(super) fn remove(&mut self, uids: Vec<u32>) -> Next {
        self.is_removing = true;
        let request = Request::Remove {
            mailbox: mailbox_name(LOG_COPY_MAILBOX),
            uid_validity: self.copy_validity,
            uids,
        };
        Next::Ask(self.ticket(What::Remove), request)
    }

    /// The commits on the way out.
    pub(super) fn left_mails(&self, copy: &[Listed]) -> HashSet<MailId> {
        let uids: HashSet<u32> = self.left.iter().flatten().copied().collect();
        let left = copy.iter().filter(|mail| uids.contains(&mail.uid));
        let subjects = left.filter_map(|mail| Subject::parse(&mail.subject).ok());
        subjects.map(|subject| subject.mail).collect()
    }
}

/// The UIDs of commits of a left branch.
pub(super) fn left_branch(lead: &[Listed], copy: &[Listed], recent: &Recent) -> VecDeque<Vec<u32>> {
    let (Some(oldest), Some(head)) = (recent.oldest(), recent.head()) else {
        return VecDeque::new();
    };
    let known = oldest.won.generation;
    let there = commits_of(lead);
    let is_left = |subject: &Subject, generation: u64| {
        let of_chain = recent.at(generation);
        let is_other = of_chain.is_some_and(|of| of.won.commit != subject.mail);
        let is_newer = generation > head.generation;
        (is_other || is_newer) && !there.contains(&subject.mail)
    };
    let left = copy.iter().filter(|mail| {
        let subject = Subject::parse(&mail.subject).ok();
        subject.is_some_and(|subject| {
            let generation = subject.generation.filter(|of| *of >= known);
            subject.kind == Kind::Commit && generation.is_some_and(|of| is_left(&subject, of))
        })
    });
    let uids: Vec<u32> = left.map(|mail| mail.uid).take(LEFT_MAX).collect();
    uids.chunks(UIDS_MAX).map(<[u32]>::to_vec).collect()
}
