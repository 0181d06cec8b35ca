//! What accounts may hold, and how that is taken from the checked values.

use vere_units::ByteSize;

use crate::assemble::Assembly;

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

impl Assembly {
    pub(crate) fn quota(&self) -> Quota {
        let default = self.account_quota("quota");
        Quota {
            default,
            accounts: self.each("quota.account", |at| {
                let own = self.account_quota(at);
                let quota = AccountQuota {
                    size: own.size.or(default.size),
                    messages: own.messages.or(default.messages),
                };
                (self.need(&format!("{at}.name")), quota)
            }),
            over: self.choice("quota.over", |text| {
                Some(match text {
                    "defer" => OverQuota::Defer,
                    "reject" => OverQuota::Reject,
                    _ => return None,
                })
            }),
            warn_at: self.need("quota.warn_at"),
        }
    }

    fn account_quota(&self, at: &str) -> AccountQuota {
        AccountQuota {
            size: self.maybe(&format!("{at}.size_max")),
            messages: self.maybe(&format!("{at}.messages_max")),
        }
    }
}
