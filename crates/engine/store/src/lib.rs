//! The mail store: a single copy of every message, and mailboxes of references.
//!
//! A message is written once to an append-only log, whatever the number of its recipients; mailboxes hold references.
//! Every change is a batch on one partition (an account's list of mailboxes, or a mailbox) and takes one record of
//! the same log. Metadata lie in an engine behind [`vere_ports::mail_meta`] and are replayed from the log. A single
//! sync of a single file therefore makes any number of changes safe. `docs/internals/store.md` explains the design,
//! `docs/internals/store-log.md` draws the files.
//!
//! Reading order: [`Store`] (opening, syncing), [`Committed`] (when clients may see a result), [`Snapshot`] (the
//! messages of a mailbox), [`Prepared`] and [`BodyReader`] (messages in and out). The operations are methods of
//! [`Store`], a file for each family.
//!
//! The store blocks on [`vere_ports::storage::Storage`] only. The host runs a [`SyncJob`] on a thread that may block.
//! Protocols and access rights to accounts are outside this crate.

mod account;
mod add;
mod batch;
mod body;
mod change;
mod check;
mod committed;
mod copying;
mod error;
mod keepers;
mod kept;
mod limits;
mod log;
mod mailbox;
mod model;
mod pending;
mod reclaim;
mod repair;
mod replay;
mod rows;
mod snapshot;
mod store;

pub use account::{Holding, Holdings, ListEntry};
pub use add::{Added, QuotaLimit, QuotaUsage, Target};
pub use body::{Body, BodyReader, PIECES_MEMORY, Pieces, Prepared, Unpacker, compress};
pub use change::Stored;
pub use check::{Check, CheckReport, Claim, Finding, LogSurvey};
pub use committed::Committed;
pub use copying::Copied;
pub use error::StoreError;
pub use kept::{Excess, KeepLimit, KeptAt, KeptMailbox, KeptPiece, LetGo};
pub use limits::{KEYWORDS_MAX, MESSAGE_OCTETS_MAX, MESSAGES_MAX};
pub use log::{
    Damage, LogFile, OpenError, OpenReport, Position, ReclaimJob, ReclaimOutcome, SPARES, SyncJob,
    SyncOutcome,
};
pub use model::{
    BlobId, FlagMode, Flags, HIERARCHY_DELIMITER, InternalDate, KEYWORD_OCTETS_MAX, Keyword,
    MAILBOX_LEVELS_MAX, MAILBOX_NAME_OCTETS_MAX, MailboxId, MailboxName, ModSeq, OperationId,
    SpecialUse, SystemFlags, Uid,
};
pub use reclaim::{Reclaim, ReclaimReport, Reclaimable};
pub use repair::{LostMessage, RepairError, RepairReport};
pub use rows::RecipientFields;
pub use snapshot::{Difference, Message, Snapshot, Status};
pub use store::{Counts, Published, Sharing, Store, StoreConfig};

#[cfg(test)]
mod tests;
