//! Sections about the quotas of accounts.

use super::Assembly;
use crate::quota::{AccountQuota, OverQuota, Quota};

impl Assembly {
    pub(super) fn quota(&self) -> Quota {
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
