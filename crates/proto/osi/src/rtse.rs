//! Reliable transfer (X.228; X.410 for its 1984 mode): an APDU arrives once or the sender knows that it did not.
//!
//! The APDUs of the reliable transfer server are in [`apdu`]. [`Outgoing`] and [`Incoming`] follow one transfer each; what
//! is left of a transfer after a break is a [`Broken`], a plain value that the host can keep on disk. The machine around
//! them is [`Association`](crate::association::Association).
//!
//! A transfer is an activity of the session. The APDU is cut into segments of the negotiated checkpoint size, with a minor
//! synchronization point between two segments; at most the window of points awaits its confirmation. The sender ends the
//! activity; responsibility moves with the confirmation of that end, and not before.
//!
//! X.228 has the procedures: association establishment, transfer, turn please, turn give, transfer interrupt, transfer
//! discard, transfer resumption, transfer abort, provider abort, user abort.
//!
//! Remote operations (ROSE, X.229) attach here: their APDUs are APDUs that are transferred, with the context tags 0 to 15 that X.228
//! leaves to them.

pub mod apdu;
mod incoming;
mod outgoing;
mod wrapper;

pub use apdu::{
    AbortReason, ConnectionData, DialogueMode, RefuseReason, Rtab, Rtoac, Rtorj, Rtorq,
    SessionConnectionIdentifier,
};
pub use incoming::{Incoming, IncomingState};
pub use outgoing::{Broken, Checkpoint, Outgoing, OutgoingState, Segment};
pub use wrapper::{Unwrapper, wrapper};

#[cfg(test)]
mod tests;
