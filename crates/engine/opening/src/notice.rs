//! The time of an event, and what a volume tells people.

use vere_files::merge::Conflict;
use vere_ports::files::{Errno, FileTime};
use vere_ports::mail_accounts::AccountId;
use vere_units::Timestamp;

/// The time of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// A clock that never steps: deadlines.
    pub steady: Timestamp,
    /// The wall clock: times of files and mails.
    pub wall: FileTime,
}

impl Moment {
    /// The wall clock as a date of mails, from 1970 on.
    #[must_use]
    pub fn date(self) -> Timestamp {
        Timestamp::from_millis(u64::try_from(self.millis()).unwrap_or(0))
    }

    /// The wall clock in milliseconds since 1970.
    #[must_use]
    pub fn millis(self) -> i64 {
        let seconds = self.wall.seconds.saturating_mul(1_000);
        seconds.saturating_add((self.wall.nanoseconds / 1_000_000).into())
    }
}

/// Something that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// An account fails; the volume goes on without the account, and tries again.
    #[error("account {}: {fault}", .account.0)]
    Account {
        /// The account.
        account: AccountId,
        /// The fault.
        fault: String,
    },
    /// A failing account has answered.
    #[error("account {} works again", .0.0)]
    Recovered(AccountId),
    /// Another machine has removed an account that the description of this machine names.
    #[error(
        "account {} has left the volume: nothing new goes there. The description of the volume on this machine still names the account",
        .0.0
    )]
    Left(AccountId),
    /// A mail is not what its subject says, or no mail of this volume.
    #[error("account {}, mailbox {mailbox}, UID {uid}: {reason}", .account.0)]
    Forged {
        /// The account.
        account: AccountId,
        /// The mailbox.
        mailbox: String,
        /// The mail.
        uid: u32,
        /// Why.
        reason: String,
    },
    /// A mail of the lead is no commit and no page of the chain, and is not copied.
    #[error("account {}: a mail is not copied to a further account: {reason}", .account.0)]
    Uncopied {
        /// The lead.
        account: AccountId,
        /// Why.
        reason: String,
    },
    /// A mount cannot begin from the local disk, and reads the log of the lead, which takes round trips.
    #[error("the local disk lacks {0}: the mount reads the log of the lead account")]
    NotLocal(String),
    /// The lead does not answer, and the volume was opened from a copy.
    #[error(
        "the lead, account {}, does not answer ({reason}): the volume is read-only, as of its copy on account {}, until the lead answers",
        .lead.0,
        .account.0
    )]
    StandIn {
        /// The lead.
        lead: AccountId,
        /// The account with the copy.
        account: AccountId,
        /// The fault of the lead.
        reason: String,
    },
    /// Content of a file cannot be read from any account.
    #[error("inode {inode}, offset {offset}: no account has the octets: {reason}")]
    Unreadable {
        /// The inode.
        inode: u64,
        /// The offset of the chunk that is missing.
        offset: u64,
        /// What every account said.
        reason: String,
    },
    /// The journal cannot be written: the volume takes no more changes.
    #[error("the journal cannot be written: {0}")]
    Journal(String),
    /// Records behind a damaged one at the end of the journal have no effect.
    #[error(
        "{file} of the journal is damaged at octet {at}: the changes in the {octets} octets behind are lost; a power cut does so to changes of its last second, anything else is a fault of the disk"
    )]
    LeftOut {
        /// The segment.
        file: String,
        /// Where the damaged record began.
        at: u64,
        /// Octets from there on.
        octets: u64,
    },
    /// The local disk is full: the volume takes no changes until there is room.
    #[error("the local disk is full: changes are refused until there is room")]
    DiskFull,
    /// The local disk has room again.
    #[error("the local disk has room again")]
    DiskHasRoom,
    /// The log has other numbers than before: its order is lost.
    #[error("{0}")]
    Renumbered(String),
    /// A pack cannot be made.
    #[error("a pack cannot be made: {0}")]
    Pack(String),
    /// A row of the volume cannot be read or written.
    #[error("rows of the volume: {0}")]
    Rows(Errno),
    /// A checkpoint is not written; the commits have everything, and the next mount reads more of them.
    #[error("no checkpoint is written: {0}")]
    Checkpoint(String),
    /// The mount and another one have changed the same.
    #[error("{0}")]
    Conflict(Conflict),
    /// The state below changes of the journal is gone; they lie on the newest state now.
    #[error(
        "the accounts lack the earlier state on which changes of this machine lie: the changes were brought onto the newest state; conflicts: {0}"
    )]
    Brought(usize),
    /// A commit of another mount lost a race, and lies on a state that is not known any more: the commit stays as it is.
    #[error(
        "the commit of UID {0} of the log cannot be merged: its parent is too old, or its content is gone"
    )]
    Stranded(u32),
    /// Mails with content that no commit names yet were removed as garbage: the journal has the content, and the next mount sends
    /// it again.
    #[error(
        "pack {0} was removed before a commit named it: its content has to be sent once more, by a fresh opening"
    )]
    Buried(u64),
    /// Mails with content that no commit names yet were removed as garbage: the content of so many files is sent again.
    #[error(
        "packs were removed before a commit named them: the content of {0} files is sent again"
    )]
    SentAgain(usize),
    /// Another machine has removed the key slot that opened this mount: the mount sends nothing more, and the journal stays.
    #[error(
        "key slot {0}, which opened this mount, was removed by another machine: nothing is sent any more, and the journal keeps unsent changes; unmount, and mount with the passphrase or key file of another slot"
    )]
    Revoked(u8),
    /// Another machine has given the key slot of this mount another secret. The mount goes on.
    #[error(
        "key slot {0}, which opened this mount, has another passphrase or key file since: the next mount needs the new one"
    )]
    Renewed(u8),
    /// Another mount has changed the keys, and this one cannot read a commit since.
    #[error("the keys of the volume were changed: mount again with the new slot")]
    NewKeys,
    /// The mount was away for longer than the log keeps commits: the volume takes no more changes.
    #[error(
        "the mount was away for too long: the log lacks commits between generation {head}, the newest one here, and {generation}; the log has to be read anew"
    )]
    Gap {
        /// The generation of the newest commit of the mount.
        head: u64,
        /// A generation that the chain has.
        generation: u64,
    },
    /// Another machine has changed the lead.
    #[error(
        "account {}: another machine has made the account the lead (epoch {epoch}): the volume opens again under the new lead",
        .lead.0
    )]
    LeadChanged {
        /// The new lead.
        lead: AccountId,
        /// The epoch of the change.
        epoch: u32,
    },
    /// The log lacks what the mount began with: the volume takes no more changes.
    #[error(
        "the log lacks the commit of generation {0}, which this machine has seen: the account was set back, or the log no longer keeps the commit; mount again, so that the log is read"
    )]
    Unconfirmed(u64),
    /// A page is lost that a commit of another mount changes: the volume takes no more changes.
    #[error(
        "no account has a page of rows that a commit of another mount changes: this mount stays behind until the log is read anew"
    )]
    Behind,
    /// Another mount writes under the writer's number: the state folder is a copy, or was copied.
    #[error("another state folder uses the number {0} of a writer: this mount takes a new one")]
    Copied(u16),
}
