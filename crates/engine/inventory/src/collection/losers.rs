//! Losers of races with changes in the chain all the same, by a merge: a `merged` list of the chain has the loser.
//!
//! A loser may go with the commits of the same time. Proof is the record of a commit of the chain, read and verified, so commits
//! with such a list stay until a run has read them all. A commit without a namer is open, however old: the changes are nowhere else.

use std::collections::HashSet;

use super::history::History;
use crate::format::{Kind, MailCopy, MailId, Subject};
use crate::inspect::{Suspect, Verdict};
use vere_placement::accounts::LOG_MAILBOX;

/// Commits outside the chain for a run; the rest is left to the next run.
const LOSERS_MAX: usize = 2_000;
/// Commits of the chain read by a run.
const NAMERS_MAX: usize = 2_000;

/// Commits outside the chain, and possible namers.
#[derive(Debug, Default)]
pub struct Losers {
    candidates: Vec<(u32, Subject)>,
    /// Commits of the chain of the candidates' time, the oldest first.
    namers: Vec<(u32, Subject)>,
    /// Namers without a verdict.
    unread: HashSet<MailId>,
    /// Candidates with true subjects, by UID.
    good: HashSet<u32>,
    /// Commits in the lists of the namers.
    named: HashSet<MailId>,
}

impl Losers {
    /// Looks through the part of the log below every kept checkpoint. A commit with a row has content: the
    /// row tells when the content is needless.
    #[must_use]
    pub fn of(
        history: &History,
        log: &[(u32, Subject)],
        has_row: &dyn Fn(&Subject) -> bool,
    ) -> Self {
        let chain = history.chain(log);
        let Some(first) = chain.first().and_then(|(uids, _)| uids.first().copied()) else {
            return Self::default();
        };
        let ids: HashSet<MailId> = chain.iter().map(|(_, subject)| subject.mail).collect();
        let is_outside = |(uid, subject): &&(u32, Subject)| {
            let is_commit = subject.kind == Kind::Commit && !ids.contains(&subject.mail);
            is_commit && *uid < first && !has_row(subject)
        };
        let candidates: Vec<(u32, Subject)> = log
            .iter()
            .filter(is_outside)
            .take(LOSERS_MAX)
            .copied()
            .collect();
        let lowest = candidates.iter().map(|(uid, _)| *uid).min();
        let oldest = candidates.iter().filter_map(|(_, of)| of.generation).min();
        // A successor comes behind the loser, or has an equal generation at least where the loser came late.
        let is_behind = |(uids, of): &&(Vec<u32>, &Subject)| {
            let uid = uids.last().copied();
            lowest.is_some() && (uid > lowest || of.generation >= oldest)
        };
        let of_their_time = chain.iter().rev().filter(is_behind);
        let namers: Vec<(u32, Subject)> = of_their_time
            .filter_map(|(uids, subject)| Some((*uids.first()?, **subject)))
            .collect();
        Self {
            unread: namers.iter().map(|(_, subject)| subject.mail).collect(),
            candidates,
            namers,
            ..Self::default()
        }
    }

    /// Mails of the lead's log to be read.
    pub fn suspects(&self, lead: u16, uid_validity: u32) -> impl Iterator<Item = Suspect> + '_ {
        let namers = self.namers.iter().take(NAMERS_MAX);
        self.candidates
            .iter()
            .chain(namers)
            .map(move |(uid, subject)| Suspect {
                copy: MailCopy {
                    account: lead,
                    mailbox: LOG_MAILBOX,
                    uid: *uid,
                },
                uid_validity,
                subject: *subject,
            })
    }

    /// Mails are read.
    pub fn judge(&mut self, verdicts: &[(Suspect, Verdict)]) {
        let of_log = verdicts
            .iter()
            .filter(|(suspect, _)| suspect.copy.mailbox == LOG_MAILBOX);
        for (suspect, verdict) in of_log {
            match verdict {
                Verdict::Good(inspected) => {
                    let is_namer = self.unread.remove(&suspect.subject.mail);
                    if is_namer {
                        self.named.extend(&inspected.merged);
                    } else {
                        self.good.insert(suspect.copy.uid);
                    }
                }
                // No list can be read, now or later.
                Verdict::Bad(_) => {
                    self.unread.remove(&suspect.subject.mail);
                }
                Verdict::Unread(_) => {}
            }
        }
    }

    /// Whether a commit of the chain may name a loser and is not read yet.
    #[must_use]
    pub fn is_held(&self, commit: MailId) -> bool {
        self.unread.contains(&commit)
    }

    /// Losers whose changes the chain has. `knows` are further lists, of a mount.
    pub fn merged(&self, knows: &dyn Fn(MailId) -> bool) -> Vec<(u32, MailId)> {
        let all = self.candidates.iter();
        let merged = all.filter(|(uid, subject)| {
            let is_named = self.named.contains(&subject.mail) || knows(subject.mail);
            is_named && self.good.contains(uid)
        });
        merged.map(|(uid, subject)| (*uid, subject.mail)).collect()
    }
}
