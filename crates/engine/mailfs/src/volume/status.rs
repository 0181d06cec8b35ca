//! The state of a volume for people.

use vere_ports::storage::Storage;

use super::accounts::AccountStatus;
use super::state::Volume;

/// The state of a mounted volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The newest commit's generation.
    pub generation: u64,
    /// This machine's number among the writers.
    pub writer: u16,
    /// Rows that wait for a commit.
    pub rows_waiting: usize,
    /// Written octets that no account has.
    pub octets_waiting: u64,
    /// Octets on their way.
    pub octets_sending: usize,
    /// Commits on their way.
    pub commits_sending: usize,
    /// Octets of the journal.
    pub journal_octets: u64,
    /// Octets of opened chunks in memory.
    pub cache_octets: usize,
    /// Copies of packs that accounts of their group lack.
    pub copies_missing: usize,
    /// The accounts.
    pub accounts: Vec<AccountStatus>,
    /// Why the volume takes no changes, if so.
    pub read_only: Option<String>,
}

impl<S: Storage> Volume<S> {
    /// The state now.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            generation: self.chain.head().1,
            writer: self.writer,
            rows_waiting: self.commits.pending(),
            octets_waiting: self.files.unsent().octets(),
            octets_sending: self.uploads.octets(),
            commits_sending: self.chain.under_way(),
            journal_octets: self.journal.octets(),
            cache_octets: self.cache.octets(),
            copies_missing: self.replicas.waiting(),
            accounts: self.accounts.status(),
            read_only: self.read_only.as_ref().map(ToString::to_string),
        }
    }
}
