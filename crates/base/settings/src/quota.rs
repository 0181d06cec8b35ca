//! The quotas of accounts.

use vere_units::ByteSize;

/// The quotas of accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The quota of accounts without a separate quota.
    pub default: AccountQuota,
    /// Single accounts, in the order of the file; the last one of a name holds.
    pub accounts: Vec<(String, AccountQuota)>,
    /// The treatment of mail over quota.
    pub over: OverQuota,
    /// The percentage from which a warning is logged.
    pub warn_at: u32,
}

/// The quota of an account; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountQuota {
    /// Octets of all messages.
    pub size: Option<ByteSize>,
    /// Messages.
    pub messages: Option<u32>,
}

/// The treatment of mail over quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverQuota {
    /// The mail waits in the queue (452).
    Defer,
    /// The mail is returned to the sender (552).
    Reject,
}
