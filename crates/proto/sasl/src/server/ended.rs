//! The results of login attempts, for the log.

use crate::Mechanism;

/// An attempt to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// How the client tried.
    pub mechanism: Mechanism,
    /// The user name claimed by the client; empty if the exchange ended before the name.
    pub name: String,
    /// How it ended.
    pub result: LoginResult,
}

impl Login {
    /// An attempt that has just begun.
    #[must_use]
    pub const fn begun(mechanism: Mechanism) -> Self {
        Self {
            mechanism,
            name: String::new(),
            result: LoginResult::Undecided,
        }
    }

    /// The attempt with its result.
    #[must_use]
    pub fn ended(mut self, result: LoginResult) -> Self {
        self.result = result;
        self
    }
}

/// How an attempt to log in ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginResult {
    /// The client proved the identity.
    Accepted,
    /// The proof was wrong, or the account does not exist.
    Rejected,
    /// The proof could not be checked.
    Undecided,
}
