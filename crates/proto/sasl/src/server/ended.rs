//! How attempts to log in ended, for whoever keeps a log of them.

use crate::Mechanism;

/// An attempt to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// How the client tried.
    pub mechanism: Mechanism,
    /// Who it said it was; empty when it did not come to that.
    pub name: String,
    /// How it ended.
    pub result: LoginResult,
}

impl Login {
    /// One that has just begun.
    #[must_use]
    pub const fn begun(mechanism: Mechanism) -> Self {
        Self {
            mechanism,
            name: String::new(),
            result: LoginResult::Undecided,
        }
    }

    /// The same with its end.
    #[must_use]
    pub fn ended(mut self, result: LoginResult) -> Self {
        self.result = result;
        self
    }
}

/// How an attempt to log in ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginResult {
    /// The client is who it says.
    Accepted,
    /// It is not, or there is no such account.
    Rejected,
    /// It could not be found out.
    Undecided,
}
