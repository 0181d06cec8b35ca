//! Accounts on the nodes, and what they may do with single queues.

use std::path::PathBuf;

/// The account that the shared secret proves.
pub const DEFAULT_SPOOL_ACCOUNT: &str = "default";

/// An account on the nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolAccount {
    /// Its name.
    pub name: String,
    /// The file of its key, made at the first start.
    pub secret: PathBuf,
    /// Whether it may have queues of its own.
    pub makes_groups: bool,
}

/// Who may read one queue of this gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolQueue {
    /// Its name.
    pub name: String,
    /// Accounts that may read it, and no other of those that may only read.
    pub readers: Vec<String>,
}
