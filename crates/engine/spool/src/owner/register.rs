//! Membership: what the owner wants the record to be, and what follows when it is.
//!
//! Whoever reads this file should see the rules:
//!
//! - R1: acknowledged is what all full members hold, and at least `replicas_min` of them (`settle`).
//! - R2: a member leaves by a change of the record first; until that succeeded nothing is
//!   acknowledged without it. A syncing member becomes full when it has everything.
//! - R3: a takeover raises the epoch, which fences the owner before; then the highest transaction among
//!   the full members that answer is adopted: all of them are prefixes of one order (`adoption`).
//! - R5: without a full member under its recorded incarnation the group stays closed. Unknown is never
//!   taken for empty.
//! - A member that is slower than the others for long leaves by R2 too, when it is not needed (`pace`).
//! - With logs (`duty`): a member leaves only when another one's log holds everything, or when it holds
//!   nothing itself.
//! - R6: while the register cannot be reached the record stays as it is, and receipt goes on.

mod steps;

use vere_units::Timestamp;

use super::membership::Membership;

/// How long to wait before the register is asked again after a failure.
const RETRY: std::time::Duration = std::time::Duration::from_millis(500);

/// How often it is looked at again while the group is shut, or its lease is not its own.
const LOOK: std::time::Duration = std::time::Duration::from_secs(5);

/// What the register is to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterRequest {
    /// The record of the group, linearizably.
    Read,
    /// Replace the record if its version is this one; `None`: if there is none.
    Swap {
        /// The version it must have.
        expected: Option<u64>,
        /// The new record.
        value: Vec<u8>,
    },
}

/// The register was not reached, or its value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterFailed;

/// What the register answered to a [`RegisterRequest::Swap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterSwap {
    /// It is replaced; the version it has now.
    Done(u64),
    /// Another version was there.
    Conflict,
    /// The register was not reached or did not answer: replaced or not, nobody knows.
    Unknown,
}

/// What is known of the record.
#[derive(Debug, Default)]
pub(super) struct Register {
    /// What was read last, and its version; `None` inside: there is no record.
    pub(super) known: Option<Option<(u64, Membership)>>,
    asked: Option<Asked>,
    request: Option<RegisterRequest>,
    retry_at: Timestamp,
    /// When it was read last.
    read_at: Timestamp,
    /// What is wrong with the register was told.
    alarmed: bool,
}

#[derive(Debug)]
enum Asked {
    Read,
    Swap(Membership),
}
