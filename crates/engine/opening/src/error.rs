//! What an opening finds.

use vere_ports::files::Errno;
use vere_ports::mail_accounts::Fault;

use vere_keep::journal::JournalError;
use vere_order::fingerprint::Fingerprint;

/// Why a volume cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The lead account fails.
    #[error("account {0}: {1}")]
    Account(u16, Fault),
    /// The log has no first commit.
    #[error("account {0} has no commit of this volume that the key opens")]
    NoVolume(u16),
    /// The journal fails.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The disk fails.
    #[error("the journal cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// The log lacks a commit that was in the chain.
    #[error(
        "the log lacks the commit of generation {generation}, which this machine has seen: the account was set back"
    )]
    RolledBack {
        /// The generation of the missing commit.
        generation: u64,
    },
    /// A copy lacks commits that this machine has seen, or that later ones lie on, and the lead does not answer.
    #[error(
        "the lead does not answer, and its copy on account {account} ends with generation {found}; expected generation {expected}. Mount again when the lead answers"
    )]
    CopyBehind {
        /// The account.
        account: u16,
        /// The newest generation of the copy.
        found: u64,
        /// The newest generation that there is.
        expected: u64,
    },
    /// Another machine has changed the lead.
    #[error(
        "account {account} is the lead since another machine has changed the lead (epoch {epoch})"
    )]
    LeadChanged {
        /// The new lead.
        account: u16,
        /// The epoch of the change.
        epoch: u32,
    },
    /// The log is not the one of a lead, because the change to this account has not come to its end.
    #[error(
        "account {account}: expected a log since the change of the lead (epoch {epoch}); found none"
    )]
    NoLead {
        /// The account.
        account: u16,
        /// The epoch expected.
        epoch: u32,
    },
    /// The chain lacks the commit that a person expects.
    #[error(
        "expected the commit {expected} in the log; found a log without it, up to {found}: the accounts were set back, or the fingerprint is of another volume"
    )]
    Unexpected {
        /// The fingerprint given.
        expected: Fingerprint,
        /// The fingerprint of the newest commit.
        found: String,
    },
    /// A row cannot be read.
    #[error("rows of the volume: {0}")]
    Rows(#[from] Errno),
    /// The journal has changes on an earlier state, which no account has any more.
    #[error(
        "the accounts lack the earlier state of the volume on which changes of this machine's journal lie"
    )]
    Overtaken,
    /// The key slot that opened the volume counts no more.
    #[error("key slot {0}, which opened this mount, was removed by another machine")]
    Revoked(u8),
    /// The local disk does not tell enough.
    #[error("the local disk lacks what a start without accounts needs")]
    Unsure,
}
