//! The removal of replaced key slots and facts, account by account.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vere_ports::mail_accounts::{Answer, Fault, Listed, Request, UidRange};

use crate::format::{Kind, MailId, Subject};
use vere_placement::accounts::{HEAD_MAILBOX, mailbox_name};

/// Attempts for an account.
const ATTEMPTS_MAX: u8 = 3;
/// Mails removed by one request.
const UIDS_MAX: usize = 500;

/// Accounts on the way to be tidy.
#[derive(Debug)]
pub struct Tidying {
    accounts: VecDeque<u16>,
    /// The volume's word in subjects.
    tag: u32,
    /// Slots that the run has replaced. A slot that no row lists may belong to a change of another machine under way.
    slots: BTreeSet<MailId>,
    /// The facts of the run, and their generation.
    facts: (MailId, u64),
    /// Mails of the first account to be removed, with UIDVALIDITY.
    found: Option<(u32, Vec<u32>)>,
    is_asked: bool,
    attempts: u8,
    /// Mails removed.
    pub removed: usize,
    /// Accounts that were left as they are, with the reason.
    pub failed: Vec<(u16, String)>,
}

impl Tidying {
    /// These slots go, and facts of earlier generations than these.
    #[must_use]
    pub fn new(
        accounts: Vec<u16>,
        tag: u32,
        slots: BTreeSet<MailId>,
        facts: (MailId, u64),
    ) -> Self {
        Self {
            accounts: accounts.into(),
            tag,
            slots,
            facts,
            found: None,
            is_asked: false,
            attempts: 0,
            removed: 0,
            failed: Vec::new(),
        }
    }

    /// Whether no account is left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Accounts that wait for another attempt get none.
    pub fn give_up(&mut self) {
        let waiting = usize::from(self.is_asked);
        for account in self.accounts.drain(waiting.min(self.accounts.len())..) {
            let reason = "expected an answer in time; found none".to_owned();
            self.failed.push((account, reason));
        }
    }

    /// Accounts left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.accounts.len()
    }

    /// The next request, to an account that may be asked.
    pub fn next(&mut self, may_try: impl Fn(u16) -> bool) -> Option<(u16, Request)> {
        let account = self.accounts.front().copied()?;
        if self.is_asked || !may_try(account) {
            return None;
        }
        let mailbox = mailbox_name(HEAD_MAILBOX);
        let request = match &self.found {
            None => Request::List {
                mailbox,
                range: UidRange {
                    first: 1,
                    last: None,
                },
            },
            Some((uid_validity, uids)) => Request::Remove {
                mailbox,
                uid_validity: *uid_validity,
                uids: uids.clone(),
            },
        };
        self.is_asked = true;
        Some((account, request))
    }

    /// The account has answered.
    pub fn answered(&mut self, answer: Result<Answer, Fault>) {
        self.is_asked = false;
        match answer {
            Ok(Answer::Listed {
                uid_validity,
                mails,
                ..
            }) => {
                let uids = self.needless(&mails);
                if uids.is_empty() {
                    self.go_on();
                } else {
                    self.found = Some((uid_validity, uids));
                }
            }
            Ok(_) => {
                let (_, uids) = self.found.take().unwrap_or_default();
                self.removed = self.removed.saturating_add(uids.len());
                self.go_on();
            }
            Err(fault) => {
                // The mailbox may have changed meanwhile.
                self.found = None;
                self.attempts = self.attempts.saturating_add(1);
                let again = matches!(fault, Fault::Unreachable(_) | Fault::Throttled(..));
                if !again || self.attempts >= ATTEMPTS_MAX {
                    let account = self.accounts.front().copied().unwrap_or(0);
                    self.failed.push((account, fault.to_string()));
                    self.go_on();
                }
            }
        }
    }

    fn go_on(&mut self) {
        self.accounts.pop_front();
        self.attempts = 0;
    }

    /// Replaced slots, duplicates, and earlier facts of an account with those of the run.
    fn needless(&self, mails: &[Listed]) -> Vec<u32> {
        let subjects = || {
            let parsed = mails.iter().filter_map(|mail| {
                let subject = Subject::parse(&mail.subject).ok()?;
                Some((mail.uid, subject))
            });
            parsed.filter(|(_, subject)| subject.volume == self.tag)
        };
        let (facts, generation) = self.facts;
        let has_facts = subjects().any(|(_, subject)| subject.mail == facts);
        let is_earlier = |of: &Subject| of.generation.is_none_or(|of| of < generation);
        let is_needless = |subject: &Subject| match subject.kind {
            Kind::Slot => self.slots.contains(&subject.mail),
            Kind::Volume => has_facts && subject.mail != facts && is_earlier(subject),
            _ => false,
        };
        // Of equal facts the lowest UID counts. Of equal slots the newest mail stays: it may have taken the place of a damaged or
        // forged mail with an equal subject.
        let mut seen = BTreeSet::new();
        let mut newest: BTreeMap<MailId, u32> = BTreeMap::new();
        for (uid, subject) in subjects() {
            let known = newest.entry(subject.mail).or_default();
            *known = uid.max(*known);
        }
        let needless = subjects().filter(|(uid, subject)| match subject.kind {
            Kind::Slot => is_needless(subject) || newest.get(&subject.mail) != Some(uid),
            Kind::Volume => is_needless(subject) || !seen.insert(subject.mail),
            _ => false,
        });
        needless.map(|(uid, _)| uid).take(UIDS_MAX).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Head, PackNumber, VolumeId};

    fn listed(uid: u32, kind: Kind, mail: u8, generation: Option<u64>) -> Listed {
        let head = Head {
            kind,
            volume: VolumeId([3; 16]),
            mail: MailId([mail; 16]),
            epoch: 1,
            group: 0,
            frames: 0,
            pack: PackNumber(1),
            last_sealed_len: 0,
        };
        Listed {
            uid,
            size: 100,
            subject: Subject::of(&head, None, generation).to_string(),
        }
    }

    #[test]
    fn replaced_slots_doubles_and_earlier_facts_go() {
        let tag = VolumeId([3; 16]).tag();
        let slots = BTreeSet::from([MailId([1; 16])]);
        let tidying = Tidying::new(vec![1], tag, slots, (MailId([9; 16]), 40));
        let slot = |uid, mail| listed(uid, Kind::Slot, mail, None);
        let facts = |uid, mail, generation| listed(uid, Kind::Volume, mail, Some(generation));
        let mails = [
            slot(1, 1),
            slot(2, 2),
            // The mails before may be damaged: the last mail is new.
            slot(3, 2),
            slot(4, 2),
            facts(5, 7, 30),
            facts(6, 9, 40),
            facts(7, 9, 40),
            facts(8, 8, 50),
            listed(9, Kind::Commit, 1, Some(3)),
        ];
        assert_eq!(tidying.needless(&mails), [1, 2, 3, 5, 7]);
        // Without the facts of the run earlier facts stay.
        assert_eq!(tidying.needless(&mails[..5]), [1, 2, 3]);
        let other = Tidying::new(vec![1], tag ^ 1, BTreeSet::new(), (MailId([9; 16]), 40));
        assert_eq!(other.needless(&mails), []);
    }
}
