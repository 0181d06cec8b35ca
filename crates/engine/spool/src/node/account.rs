//! Accounts that a node knows, and what they were denied.

use std::collections::BTreeSet;
use std::fmt;

use vere_spoolwire::{CloseReason, DEFAULT_ACCOUNT, SharedSecret};

/// Denials that were told already and are not told again.
const TOLD_MAX: usize = 256;

/// Somebody whom a node knows, by a secret.
#[derive(Debug, Clone)]
pub struct Account {
    /// 1 to 32 octets of UTF-8.
    pub name: String,
    /// What proves it, shared with nobody but the nodes.
    pub secret: SharedSecret,
    /// Whether it may make groups.
    pub makes_groups: bool,
}

impl Account {
    /// The account of those who were given one secret and no name.
    #[must_use]
    pub fn default_with(secret: SharedSecret) -> Self {
        Self {
            name: DEFAULT_ACCOUNT.to_owned(),
            secret,
            makes_groups: true,
        }
    }
}

/// An account that proved itself and was not let do what it wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denial {
    /// Who.
    pub account: String,
    /// With which group.
    pub group: String,
    /// With which queue of it, when it was about one.
    pub queue: Option<String>,
    /// What: the reason it was told.
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

/// Denials to be told, each once.
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
