//! Accounts that got kept messages and may exceed their size, each once, and accounts that cannot be read.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, Instant};

use vere_ports::directory::AccountName;
use vere_store::Excess;

/// How long an account is left out after it could not be read.
const LEFT_OUT: Duration = Duration::from_secs(60);
/// Accounts left out at most. When more cannot be read the store as a whole is at fault, and the work pauses.
const LEFT_OUT_MAX: usize = 1_000;

/// Accounts to be held to their size, in turn.
#[derive(Debug, Default)]
pub(super) struct Changed {
    waiting: BTreeMap<AccountName, Excess>,
    /// The account of the last turn.
    last: Option<AccountName>,
}

impl Changed {
    /// Adds an account, unless it waits already.
    pub(super) fn add(&mut self, account: AccountName) {
        self.waiting.entry(account).or_default();
    }

    /// Adds an account again of which more has to go.
    pub(super) fn again(&mut self, account: AccountName, excess: Excess) {
        self.waiting.insert(account, excess);
    }

    /// Takes the account whose turn it is, with the limits that it was about to go below.
    pub(super) fn take_next(&mut self) -> Option<(AccountName, Excess)> {
        let after = self.last.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self.waiting.range((after, Bound::Unbounded));
        let next = rest.next().or_else(|| self.waiting.iter().next());
        let account = next.map(|(account, _)| account.clone())?;
        self.last = Some(account.clone());
        self.waiting.remove_entry(&account)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Damaged accounts, each with the end of its pause.
#[derive(Debug, Default)]
pub(super) struct LeftOut(BTreeMap<AccountName, Instant>);

impl LeftOut {
    /// Leaves an account out for a while. Returns false when the set is full.
    pub(super) fn add(&mut self, account: AccountName) -> bool {
        self.forget_old();
        if self.0.len() >= LEFT_OUT_MAX {
            return false;
        }
        self.0.insert(account, Instant::now() + LEFT_OUT);
        true
    }

    pub(super) fn has(&self, account: &AccountName) -> bool {
        let until = self.0.get(account);
        until.is_some_and(|until| *until > Instant::now())
    }

    /// Forgets those whose time is over.
    pub(super) fn forget_old(&mut self) {
        let now = Instant::now();
        self.0.retain(|_, until| *until > now);
    }
}
