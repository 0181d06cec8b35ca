//! Membership: the record that the owner wants, and the effects of each accepted record.
//!
//! Rules of the membership:
//!
//! - R1: a change is acknowledged when all full members hold it, and at least `replicas_min` of
//!   them (`settle`).
//! - R2: a member leaves by a change of the record first; until the register accepts the change,
//!   nothing is acknowledged without this member. A syncing member becomes full when it has
//!   everything.
//! - R3: a takeover raises the epoch, which fences the earlier owner. Then the owner adopts the
//!   highest transaction among the answering full members: all their states are prefixes of one
//!   order (`adoption`).
//! - R5: without a full member under its recorded incarnation the group stays closed. An unknown
//!   state never counts as empty.
//! - A persistently slow member also leaves by R2, when it is not needed (`pace`).
//! - With logs (`duty`): a member leaves only when the log of another member is complete, or when
//!   the leaving member holds nothing.
//! - R6: while the register is unreachable the record stays unchanged, and the owner still accepts
//!   mail.

mod steps;

use vere_units::Timestamp;

use super::membership::Membership;

/// Pause after a failure before the next request to the register.
const RETRY: std::time::Duration = std::time::Duration::from_millis(500);

/// Interval of reads while the group is shut, and while another owner seems to have its lease.
const LOOK: std::time::Duration = std::time::Duration::from_secs(5);

/// Request to the register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterRequest {
    /// Reads the record of the group, linearizably.
    Read,
    /// Replaces the record of version `expected`; `None` expects an empty register.
    Swap {
        /// Version that the current record must have.
        expected: Option<u64>,
        /// The new record.
        value: Vec<u8>,
    },
}

/// The register is unreachable, or its value is unreadable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterFailed;

/// Answer of the register to a [`RegisterRequest::Swap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterSwap {
    /// The record was replaced and now has this version.
    Done(u64),
    /// The register holds another version.
    Conflict,
    /// The register did not answer: the record may or may not have been replaced.
    Unknown,
}

/// The owner's knowledge of the record.
#[derive(Debug, Default)]
pub(super) struct Register {
    /// Record and version of the last read; `None` inside: the register has no record.
    pub(super) known: Option<Option<(u64, Membership)>>,
    asked: Option<Asked>,
    request: Option<RegisterRequest>,
    retry_at: Timestamp,
    /// Time of the last read.
    read_at: Timestamp,
    /// The owner has reported the register's failure to the host.
    alarmed: bool,
}

#[derive(Debug)]
enum Asked {
    Read,
    Swap(Membership),
}
