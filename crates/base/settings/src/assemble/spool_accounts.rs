//! Sections about accounts on the nodes.

use super::Assembly;
use crate::spool_accounts::{SpoolAccount, SpoolQueue};

impl Assembly {
    pub(super) fn spool_accounts(&self) -> Vec<SpoolAccount> {
        self.each("spool.account", |at| SpoolAccount {
            name: self.need(&format!("{at}.name")),
            secret: self.path(&format!("{at}.secret")),
            makes_groups: self.choice(&format!("{at}.groups"), |text| Some(text == "makes")),
        })
    }

    pub(super) fn spool_queues(&self) -> Vec<SpoolQueue> {
        self.each("spool.queue", |at| SpoolQueue {
            name: self.need(&format!("{at}.name")),
            readers: self.need(&format!("{at}.readers")),
        })
    }
}
