//! The owner's title to its group. Before anything is acknowledged, each full member must have
//! noted this owner on stable storage (R3). The delivery lease depends on the title (rule R4, and
//! R6 for its second half).
//!
//! A node notes a new owner in its log like a change. A node that loses power before the sync
//! serves the earlier owner again. That owner would then get acknowledgements under numbers that
//! this owner gives out anew. So a new owner asks each member to confirm that everything received
//! is safe, by sending COMPLETE to a complete group.

mod steps;

use vere_spoolwire::Seq;
use vere_units::Timestamp;

/// State of a node's permanent note that this owner has the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Noted {
    /// The node may lose its note.
    #[default]
    No,
    /// The node was asked to confirm its note.
    Asked(Seq),
    /// The node serves no earlier owner any more under this incarnation.
    Safe,
}

/// The owner's title to its group at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Title {
    /// Epoch of the claim.
    pub epoch: u64,
    /// Whether a connected full member has fenced all earlier owners for good.
    pub fences: bool,
    /// Every full member has answered, under this epoch, a request sent at this time or later.
    pub confirmed: Option<Timestamp>,
}
