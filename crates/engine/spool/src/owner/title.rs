//! By what an owner has its group: each full member is to have on stable storage that it is this one's
//! before anything is acknowledged (R3), and what the delivery lease has to know (rule R4, and R6 for its
//! second half).
//!
//! A node notes a new owner in its log like a change. One that loses power before that is synced serves
//! the owner before again, who would get its changes acknowledged, under numbers that are given out anew
//! here. So a new owner asks each member to say when everything it was told is safe, which is what
//! COMPLETE asks of a group that is whole.

mod steps;

use vere_spoolwire::Seq;
use vere_units::Timestamp;

/// How far a node is with noting, for good, that the group is this owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Noted {
    /// It may forget it.
    #[default]
    No,
    /// It was asked to say when it is.
    Asked(Seq),
    /// No owner before will be served any more under this incarnation.
    Safe,
}

/// By what an owner has its group at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Title {
    /// The epoch under which it claimed the group.
    pub epoch: u64,
    /// Whether a full member answers it, and will never answer an owner before it any more.
    pub fences: bool,
    /// Every full member has answered, under this epoch, what was sent then or later.
    pub confirmed: Option<Timestamp>,
}
