//! Accounts on the nodes, and their rights in single queues.

use std::path::PathBuf;

/// The account proved by the shared secret.
pub const DEFAULT_SPOOL_ACCOUNT: &str = "default";

/// An account on the nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolAccount {
    /// Its name.
    pub name: String,
    /// The account's key file, created at the first start.
    pub secret: PathBuf,
    /// Whether the account may create groups.
    pub makes_groups: bool,
}

/// The readers of a queue of this gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolQueue {
    /// Its name.
    pub name: String,
    /// The accounts that may read the queue, instead of all accounts with the right to read the
    /// group.
    pub readers: Vec<String>,
}
