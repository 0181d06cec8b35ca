//! What a mount is told about its volume.

use std::sync::Arc;
use std::time::Duration;

use vere_mailfs_format::format::{Keys, VolumeId};
use vere_placement::accounts::{AccountTerms, GroupTerms};

use crate::machine::Machine;

/// What a mount is told about its volume.
#[derive(Debug, Clone)]
pub struct Terms {
    /// All accounts.
    pub accounts: Vec<AccountTerms>,
    /// The account whose log orders the commits.
    pub lead: u16,
    /// The epoch of the lead as far as the machine knows, from 1 on.
    pub lead_epoch: u32,
    /// Whether the journal was written under another lead: UIDs in the journal and on the local disk are of another log.
    pub is_new_lead: bool,
    /// Accounts that keep commits and pages: the lead, and those of the lowest numbers besides.
    pub metadata_accounts: usize,
    /// Groups for packs.
    pub groups: Vec<GroupTerms>,
    /// Whether closing a file and changing names wait for the servers.
    pub strong: bool,
    /// How long a call may wait for accounts.
    pub call_timeout: Duration,
    /// Accounts of a group that have a pack before a commit names it.
    pub sync_copies: usize,
    /// How long a change may wait for its commit.
    pub flush_interval: Duration,
    /// How long records of the journal may be unsynced.
    pub journal_sync: Duration,
    /// Written octets that are not on servers; more block their writers.
    pub unsent_max: u64,
    /// Octets of opened chunks in memory.
    pub cache_max: usize,
    /// Chunks on the way ahead of need.
    pub fetches_max: usize,
    /// Rows of a commit; more go in several commits.
    pub rows_max: usize,
    /// How often the log is listed for commits of other mounts.
    pub refresh: Duration,
}

impl Terms {
    /// The metadata accounts behind the lead, in their order.
    #[must_use]
    pub fn further_accounts(&self) -> Vec<u16> {
        let accounts = self.accounts.iter().map(|terms| terms.account);
        let mut accounts: Vec<u16> = accounts.filter(|of| *of != self.lead).collect();
        accounts.sort_unstable();
        accounts.truncate(self.metadata_accounts.saturating_sub(1));
        accounts
    }
}

/// Facts of a volume besides the terms.
#[derive(Debug, Clone)]
pub struct Create {
    /// The volume.
    pub volume: VolumeId,
    /// The epoch of the key.
    pub epoch: u16,
    /// The keys of the epoch.
    pub keys: Arc<Keys>,
    /// This machine, for the list of writers.
    pub machine: Machine,
}
