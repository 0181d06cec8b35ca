//! Accounts of a node, and denials.

use std::collections::BTreeSet;
use std::fmt;

use vere_spoolwire::{CloseReason, DEFAULT_ACCOUNT, SharedSecret};

/// Number of reported denials that the node remembers in order not to repeat them.
const TOLD_MAX: usize = 256;

/// An account with its secret.
#[derive(Debug, Clone)]
pub struct Account {
    /// 1 to 32 octets of UTF-8.
    pub name: String,
    /// Secret of the account, shared only with the nodes.
    pub secret: SharedSecret,
    /// Whether the account may create groups.
    pub makes_groups: bool,
}

impl Account {
    /// Creates the default account for a deployment with one secret and no names.
    #[must_use]
    pub fn default_with(secret: SharedSecret) -> Self {
        Self {
            name: DEFAULT_ACCOUNT.to_owned(),
            secret,
            makes_groups: true,
        }
    }
}

/// A denial: an authenticated account lacked a right.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denial {
    /// Name of the account.
    pub account: String,
    /// Name of the group.
    pub group: String,
    /// Name of the queue, if the denial concerned a single queue.
    pub queue: Option<String>,
    /// Reason sent to the peer.
    pub reason: CloseReason,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            account,
            group,
            queue,
            reason,
        } = self;
        write!(f, "account {account:?}, group {group:?}")?;
        if let Some(queue) = queue {
            write!(f, ", queue {queue:?}")?;
        }
        write!(f, ": {reason}")
    }
}

/// Denials to report, each once.
#[derive(Debug, Default)]
pub(super) struct Denials {
    told: BTreeSet<Denial>,
    untold: Vec<Denial>,
}

impl Denials {
    pub(super) fn note(&mut self, denial: Denial) {
        if self.told.contains(&denial) {
            return;
        }
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        self.told.insert(denial.clone());
        self.untold.push(denial);
    }

    pub(super) fn take(&mut self) -> Option<Denial> {
        self.untold.pop()
    }
}
