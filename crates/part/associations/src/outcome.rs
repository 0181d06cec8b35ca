//! Outcomes of transfers.

use vere_osi::association::AssociationError;
use vere_osi::rtse::Broken;
use vere_osi::session::Exception;

use crate::end::End;

/// What became of a transfer of this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The peer has confirmed the APDU: the peer is responsible.
    Transferred,
    /// The peer is not responsible: the APDU may be sent again, anywhere. The value, if any, lets another association with the
    /// same peer continue behind the last checkpoint.
    NotTransferred(NotTransferred, Option<Broken>),
    /// The peer has refused the APDU, and is not responsible.
    Refused(Exception, Option<Broken>),
    /// The peer may be responsible: the end of the APDU was sent, and its confirmation did not come. `settle` on another
    /// association with the same peer decides.
    InDoubt(End, Broken),
}

/// Why an APDU was not transferred.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTransferred {
    /// The association has ended before the end of the APDU was sent.
    #[error(transparent)]
    Ended(#[from] End),
    /// The peer has forgotten the transfer, as this side asked.
    #[error("the transfer was discarded")]
    Discarded,
    /// The request has no place now: no turn, or another transfer in progress.
    #[error(transparent)]
    Host(#[from] AssociationError),
}

impl Outcome {
    /// Whether the peer is responsible.
    #[must_use]
    pub const fn is_transferred(&self) -> bool {
        matches!(self, Self::Transferred)
    }

    /// The outcome of a transfer that an end has broken off.
    pub(crate) fn broken(end: End, broken: Option<Broken>) -> Self {
        match broken {
            Some(broken) if broken.ended => Self::InDoubt(end, broken),
            broken => Self::NotTransferred(end.into(), broken),
        }
    }
}
