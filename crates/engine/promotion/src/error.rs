//! Why a lead stays.

use vere_ports::mail_accounts::Fault;

use crate::format::MailId;

/// Why a lead stays.
#[derive(Debug, thiserror::Error)]
pub enum PromotionError {
    /// An account fails.
    #[error("account {0}: {1}")]
    Account(u16, Fault),
    /// The source has no commit.
    #[error("account {0} has no commit of this volume that the key opens")]
    NoVolume(u16),
    /// The source has neither the first commit nor a checkpoint that is whole.
    #[error(
        "expected the first commit, or a checkpoint with its commit and its pages, on account {0}; found neither"
    )]
    NoState(u16),
    /// The source has a commit that cannot be read, behind all others.
    #[error(
        "account {account}: expected a commit that the key opens at UID {uid} of the log; found generation {generation} that it does not open: use the present passphrase or key file, after a change of keys"
    )]
    Unreadable {
        /// The account.
        account: u16,
        /// The mail.
        uid: u32,
        /// The generation that the subject tells.
        generation: u64,
    },
    /// A commit of the chain cannot be copied.
    #[error(
        "account {0}: the commit {1} of the chain cannot be copied: its mail is damaged or gone"
    )]
    Damaged(u16, MailId),
    /// The lead has changed to a third account.
    #[error(
        "another machine has made account {0} the lead: mount the volume once, and run the command again"
    )]
    Elsewhere(u16),
    /// The account has commits of a later lead than the source: it is the lead, or was one since.
    #[error(
        "account {0} is the lead already, or was since: mount the volume once, and look at `vere fs accounts list`"
    )]
    Leads(u16),
    /// Other machines commit faster than the change.
    #[error(
        "expected an end of the change within {0} looks at the accounts; found other machines that go on: run the command again"
    )]
    Unsettled(usize),
    /// The record of the change cannot be made.
    #[error("the commit of the change cannot be made: {0}")]
    Record(String),
}
