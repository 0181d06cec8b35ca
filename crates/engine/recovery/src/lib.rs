//! The recovery of a volume from its accounts and a secret, without any file of a machine.
//!
//! Mailbox `head` of every account has key slots and the facts of the volume. A [`Recovery`] lists the mailbox on the accounts at
//! hand and reads the slots; [`Recovery::unlock`] opens these by a secret; the facts, which the keys open, name all accounts and
//! groups. A forged, altered or replayed mail is reported and changes nothing.

mod facts;
mod heads;
mod slots;

#[cfg(test)]
mod tests;

pub use facts::{Recovered, RecoveryError, account_rows, group_rows};
pub use heads::Recovery;
pub use slots::{SlotReport, SlotState};

use vere_mailfs::volume;
use vere_mailfs_format::{format, rows};
