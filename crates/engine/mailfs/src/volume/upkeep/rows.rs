//! Rows of a run on their way into the chain, and mails on their way out of accounts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vere_ports::mail_accounts::{Answer, Fault, Request};

use super::super::accounts::mailbox_name;
use crate::format::MailCopy;

/// UIDs removed by one request.
const UIDS_MAX: usize = 500;
/// Requests for removal under way.
const BATCHES_MAX: usize = 4;

/// A changed row.
pub(crate) type RowChange = (Vec<u8>, Option<Vec<u8>>);

/// Rows on their way into the chain.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    pub(crate) left: VecDeque<RowChange>,
    /// Rows that a commit must have before the next ones follow.
    pub(crate) keys: Vec<Vec<u8>>,
    /// Whether a commit for the keys is asked for.
    pub(crate) is_wanted: bool,
    /// The generation of the commit that has the keys.
    pub(crate) generation: Option<u64>,
    pub(crate) done: usize,
    pub(crate) all: usize,
}

impl Writing {
    pub(crate) fn new(changes: Vec<RowChange>) -> Self {
        Self {
            all: changes.len(),
            left: changes.into(),
            ..Self::default()
        }
    }

    /// Rows that have changed already.
    pub(crate) fn of_keys(keys: Vec<Vec<u8>>) -> Self {
        Self {
            all: keys.len(),
            keys,
            ..Self::default()
        }
    }

    pub(crate) const fn done(&self) -> usize {
        self.done
    }

    pub(crate) const fn all(&self) -> usize {
        self.all
    }
}

/// Mails on their way out.
#[derive(Debug, Default)]
pub(super) struct Removing {
    batches: Vec<Batch>,
    waiting: VecDeque<usize>,
    asked: usize,
    /// Copies that are not removed, for whatever reason.
    pub(super) kept: BTreeSet<MailCopy>,
    pub(super) removed: BTreeSet<MailCopy>,
    pub(super) failed: BTreeMap<u16, String>,
}

#[derive(Debug)]
struct Batch {
    uid_validity: u32,
    copies: Vec<MailCopy>,
}

impl Removing {
    /// Adds mails of a mailbox.
    pub(super) fn add(&mut self, uid_validity: u32, copies: &[MailCopy]) {
        for copies in copies.chunks(UIDS_MAX) {
            self.waiting.push_back(self.batches.len());
            self.batches.push(Batch {
                uid_validity,
                copies: copies.to_vec(),
            });
        }
    }

    pub(super) fn next(&mut self) -> Option<(usize, u16, Request)> {
        if self.asked >= BATCHES_MAX {
            return None;
        }
        let number = self.waiting.pop_front()?;
        let batch = self.batches.get(number)?;
        let first = batch.copies.first()?;
        self.asked = self.asked.saturating_add(1);
        let request = Request::Remove {
            mailbox: mailbox_name(first.mailbox),
            uid_validity: batch.uid_validity,
            uids: batch.copies.iter().map(|copy| copy.uid).collect(),
        };
        Some((number, first.account, request))
    }

    pub(super) fn answered(&mut self, number: usize, answer: Result<Answer, Fault>) {
        self.asked = self.asked.saturating_sub(1);
        let Some(batch) = self.batches.get(number) else {
            return;
        };
        match answer {
            Ok(Answer::Removed) => self.removed.extend(&batch.copies),
            other => {
                let reason = match other {
                    Err(fault) => fault.to_string(),
                    Ok(_) => "the answer is to another request".to_owned(),
                };
                self.kept.extend(&batch.copies);
                if let Some(copy) = batch.copies.first() {
                    self.failed.insert(copy.account, reason);
                }
            }
        }
    }

    pub(super) fn done(&self) -> usize {
        let left = self.asked.saturating_add(self.waiting.len());
        self.all().saturating_sub(left)
    }

    pub(super) fn all(&self) -> usize {
        self.batches.len()
    }

    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.asked == 0
    }
}
