//! The state of an account, for people and for the choice of accounts.

use tokio::time::Instant;
use vere_ports::mail_accounts::Fault;

use crate::budget::BudgetState;

/// What is known about an account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountState {
    /// Open connections.
    pub connections: usize,
    /// The reason of the last failure, unless the account has answered since.
    pub fault: Option<Fault>,
    /// The earliest time of the next connection, if in the future.
    pub dial_from: Option<Instant>,
    /// The earliest time of the next request, if in the future: the account asked for patience.
    pub ask_from: Option<Instant>,
    /// The budget of octets to the account, if any.
    pub upload: Option<BudgetState>,
    /// The budget of octets from the account, if any.
    pub download: Option<BudgetState>,
    /// Octets of the longest mail, where the account tells (APPENDLIMIT, RFC 7889).
    pub append_limit: Option<u32>,
    /// Whether APPEND is answered by UIDs (UIDPLUS, RFC 4315).
    pub tells_uids: bool,
}
