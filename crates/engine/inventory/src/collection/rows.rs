//! Rows of a run on the way into the chain, and mails on the way out of accounts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use vere_ports::mail_accounts::{Answer, Fault, Listed, Request, UidRange};

use crate::format::{MailCopy, MailId, Subject};
use vere_placement::accounts::{LOG_MAILBOX, is_history, mailbox_name};

/// UIDs removed by one request.
const UIDS_MAX: usize = 500;
/// UIDs that a batch reaches over: the listing before the removal has at most as many rows.
const REACH: u32 = 2_000;
/// Requests for removal under way.
const BATCHES_MAX: usize = 4;

/// A changed row.
pub type RowChange = (Vec<u8>, Option<Vec<u8>>);

/// Rows made in turn, so that memory never holds all rows.
pub trait RowSource: Iterator<Item = RowChange> + fmt::Debug + Send {}

impl<T: Iterator<Item = RowChange> + fmt::Debug + Send> RowSource for T {}

/// Rows on the way into the chain.
#[derive(Debug, Default)]
pub struct Writing {
    /// Rows that are not changed yet.
    pub left: VecDeque<RowChange>,
    /// Rows behind these.
    pub source: Option<Box<dyn RowSource>>,
    /// Values that rows must have when they are changed: a row that a program has changed meanwhile stays.
    pub expected: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Rows that a commit must have before the next ones follow.
    pub keys: Vec<Vec<u8>>,
    /// Whether a commit for the keys is asked for.
    pub is_wanted: bool,
    /// The generation of the commit that has the keys.
    pub generation: Option<u64>,
    /// Rows that the chain has.
    pub done: usize,
    /// All rows.
    pub all: usize,
}

impl Writing {
    /// Rows to be changed.
    pub fn new(changes: Vec<RowChange>) -> Self {
        Self {
            all: changes.len(),
            left: changes.into(),
            ..Self::default()
        }
    }

    /// A number of rows, made in turn.
    pub fn of_source(source: Box<dyn RowSource>, all: usize) -> Self {
        Self {
            all,
            source: Some(source),
            ..Self::default()
        }
    }

    /// The next row that is not changed yet.
    pub fn next_row(&mut self) -> Option<RowChange> {
        let next = self.left.pop_front();
        next.or_else(|| self.source.as_mut()?.next())
    }

    /// Rows that have changed already.
    pub fn of_keys(keys: Vec<Vec<u8>>) -> Self {
        Self {
            all: keys.len(),
            keys,
            ..Self::default()
        }
    }

    /// Rows that the chain has.
    pub const fn done(&self) -> usize {
        self.done
    }

    /// All rows.
    pub fn all(&self) -> usize {
        self.all.max(self.done)
    }
}

/// Mails on the way out. Each batch is listed once more first: no other mail than the expected one goes.
#[derive(Debug, Default)]
pub struct Removing {
    batches: Vec<Batch>,
    waiting: VecDeque<usize>,
    asked: usize,
    /// Copies that are not removed, for whatever reason.
    pub kept: BTreeSet<MailCopy>,
    /// Mails removed, and their octets.
    pub removed: usize,
    /// The octets of the removed mails.
    pub octets: u64,
    /// Removed mails of the log and of pages.
    pub history: usize,
    /// Accounts that could not be changed, with the reason.
    pub failed: BTreeMap<u16, String>,
}

#[derive(Debug)]
struct Batch {
    account: u16,
    mailbox: u16,
    uid_validity: u32,
    mails: Vec<(u32, MailId)>,
    /// The mails that are there, and their octets; absent before the listing.
    there: Option<(Vec<u32>, u64)>,
    is_asked: bool,
    is_over: bool,
}

impl Removing {
    /// Adds mails of a mailbox, by UID.
    pub fn add(
        &mut self,
        (account, mailbox): (u16, u16),
        uid_validity: u32,
        mails: impl IntoIterator<Item = (u32, MailId)>,
    ) {
        let mut first = 0;
        let mut new: Vec<Vec<(u32, MailId)>> = Vec::new();
        for (uid, mail) in mails {
            match new.last_mut() {
                Some(last) if last.len() < UIDS_MAX && uid.saturating_sub(first) < REACH => {
                    last.push((uid, mail));
                }
                _ => {
                    first = uid;
                    new.push(vec![(uid, mail)]);
                }
            }
        }
        for mails in new {
            self.waiting.push_back(self.batches.len());
            self.batches.push(Batch {
                account,
                mailbox,
                uid_validity,
                mails,
                there: None,
                is_asked: false,
                is_over: false,
            });
        }
    }

    /// The next request: the number of the batch, the account.
    pub fn poll(&mut self) -> Option<(usize, u16, Request)> {
        if self.asked >= BATCHES_MAX {
            return None;
        }
        // The log loses its oldest mails first, so that the others stay connected whatever happens.
        let is_asked = |batch: &Batch| batch.is_asked && batch.mailbox == LOG_MAILBOX;
        let log_is_asked = self.batches.iter().any(is_asked);
        let batches = &self.batches;
        let may_go = |number: &usize| {
            let batch = batches.get(*number);
            batch.is_some_and(|batch| batch.mailbox != LOG_MAILBOX || !log_is_asked)
        };
        let place = self.waiting.iter().position(may_go)?;
        let number = self.waiting.remove(place)?;
        let batch = self.batches.get_mut(number)?;
        batch.is_asked = true;
        self.asked = self.asked.saturating_add(1);
        let mailbox = mailbox_name(batch.mailbox);
        let request = match &batch.there {
            None => Request::List {
                mailbox,
                range: UidRange {
                    first: batch.mails.first()?.0,
                    last: Some(batch.mails.last()?.0),
                },
            },
            Some((uids, _)) => Request::Remove {
                mailbox,
                uid_validity: batch.uid_validity,
                uids: uids.clone(),
            },
        };
        Some((number, batch.account, request))
    }

    /// The account has answered about a batch.
    pub fn answered(&mut self, number: usize, answer: Result<Answer, Fault>) {
        self.asked = self.asked.saturating_sub(1);
        let Some(batch) = self.batches.get_mut(number) else {
            return;
        };
        batch.is_asked = false;
        let failure = match answer {
            Ok(Answer::Listed {
                uid_validity,
                mails,
                ..
            }) if batch.there.is_none() => match batch.listed(uid_validity, &mails) {
                Ok(true) => {
                    self.waiting.push_front(number);
                    return;
                }
                Ok(false) => {
                    batch.is_over = true;
                    return;
                }
                Err(reason) => reason,
            },
            Ok(Answer::Removed) => {
                batch.is_over = true;
                let (uids, octets) = batch.there.clone().unwrap_or_default();
                self.removed = self.removed.saturating_add(uids.len());
                self.octets = self.octets.saturating_add(octets);
                if is_history(batch.mailbox) {
                    self.history = self.history.saturating_add(uids.len());
                }
                return;
            }
            Ok(_) => "the answer is to another request".to_owned(),
            Err(fault) => fault.to_string(),
        };
        self.failed(number, failure);
    }

    fn failed(&mut self, number: usize, reason: String) {
        let Some(batch) = self.batches.get_mut(number) else {
            return;
        };
        batch.is_over = true;
        let (account, mailbox) = (batch.account, batch.mailbox);
        let copies = batch.mails.iter().map(|(uid, _)| MailCopy {
            account,
            mailbox,
            uid: *uid,
        });
        self.kept.extend(copies);
        self.failed.insert(account, reason);
        if mailbox == LOG_MAILBOX {
            // Younger commits stay with the older ones.
            let batches = &self.batches;
            let is_log = |number: &usize| {
                let batch = batches.get(*number);
                batch.is_some_and(|batch| batch.mailbox == LOG_MAILBOX && batch.account == account)
            };
            self.waiting.retain(|number| !is_log(number));
        }
    }

    /// Batches that are over.
    pub fn done(&self) -> usize {
        self.batches.iter().filter(|batch| batch.is_over).count()
    }

    /// All batches.
    pub fn all(&self) -> usize {
        self.batches.len()
    }

    /// Whether every batch is over.
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.asked == 0
    }
}

impl Batch {
    /// Notes which mails are there. Returns whether any is.
    fn listed(&mut self, uid_validity: u32, mails: &[Listed]) -> Result<bool, String> {
        if uid_validity != self.uid_validity && uid_validity != 0 {
            let expected = self.uid_validity;
            return Err(format!(
                "UIDVALIDITY of {}: expected {expected}; found {uid_validity}",
                mailbox_name(self.mailbox)
            ));
        }
        let is_there = |mail: &&Listed| {
            let expected = self.mails.iter().find(|(uid, _)| *uid == mail.uid);
            let subject = Subject::parse(&mail.subject);
            matches!((expected, subject), (Some((_, id)), Ok(subject)) if subject.mail == *id)
        };
        let there: Vec<&Listed> = mails.iter().filter(is_there).collect();
        let octets = there.iter().map(|mail| u64::from(mail.size)).sum();
        let uids: Vec<u32> = there.iter().map(|mail| mail.uid).collect();
        let any = !uids.is_empty();
        self.there = Some((uids, octets));
        Ok(any)
    }
}
