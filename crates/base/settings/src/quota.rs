//! What accounts may hold.

use vere_units::ByteSize;

/// What accounts may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Those that are not named.
    pub default: AccountQuota,
    /// Single accounts, in the order of the file; the last one of a name holds.
    pub accounts: Vec<(String, AccountQuota)>,
    /// What becomes of mail that an account has no room for.
    pub over: OverQuota,
    /// The percentage from which a warning is logged.
    pub warn_at: u32,
}

/// What one account may hold; where nothing is said, anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountQuota {
    /// Octets of all messages.
    pub size: Option<ByteSize>,
    /// Messages.
    pub messages: Option<u32>,
}

/// What becomes of mail that an account has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverQuota {
    /// It waits where it is (452).
    Defer,
    /// It is returned to its sender (552).
    Reject,
}
