//! Accounts and groups as a volume is told of them, and as `status` shows them.

use std::time::Duration;

use crate::format::Encoding;

/// An account as a volume uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountTerms {
    /// The number.
    pub account: u16,
    /// How octets are written in mails.
    pub encoding: Encoding,
}

/// Accounts that hold equal packs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupTerms {
    /// The number.
    pub group: u16,
    /// The members.
    pub accounts: Vec<u16>,
}

/// An account as `status` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountStatus {
    /// The number.
    pub account: u16,
    /// Requests under way.
    pub asked: u32,
    /// Why the account rests, if so.
    pub failing: Option<String>,
    /// How long the account fails already.
    pub failing_for: Duration,
    /// The time until the next attempt.
    pub next_attempt: Duration,
    /// Used octets and the limit, where told.
    pub quota: Option<(u64, u64)>,
    /// How octets are written in mails.
    pub encoding: Encoding,
    /// Why some requests wait for the budget of the day, and for how long.
    pub scarce: Option<(String, Duration)>,
    /// Octets a second to the account, where measured.
    pub up: Option<u64>,
    /// Octets a second from the account, where measured.
    pub down: Option<u64>,
}
