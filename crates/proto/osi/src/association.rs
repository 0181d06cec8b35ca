//! The facade: one association over one TCP connection.
//!
//! A host opens a TCP connection and makes an [`Association`] of it: [`Association::initiator`] or
//! [`Association::responder`]. It gives the octets it reads to [`receive`](Association::receive), and asks
//! [`poll`](Association::poll) until there is nothing: octets to write, in pieces for writev(2), events, and at last the
//! request to close. Received octets are looked at by `poll` only, so that a host that stops asking stops the peer.
//!
//! | the sender asks | the receiver sees | the receiver asks | the sender sees |
//! |---|---|---|---|
//! | `open` | `OpenIndication` | `accept` or `reject` | `Opened` or `Rejected` |
//! | `transfer`, `supply` | `TransferBegins`, `Apdu`, `Checkpoint` | `secured` | `CheckpointConfirmed` |
//! | | `Received` | `confirm` | `Transferred` |
//! | `interrupt`, `discard` | `TransferInterrupted`, `TransferDiscarded` | | `NotTransferred` |
//! | `resume` | `ResumeIndication` | `continue_from`, `already_received` or `refuse_transfer` | |
//! | | | `please_turn` | `TurnPlease` |
//! | `give_turn` | `TurnGiven` | | |
//! | `release` | `ReleaseIndication` | `accept_release` | `Released` |
//! | `abort` | `Aborted` | | |
//!
//! Responsibility for an APDU moves when the receiver calls `confirm`, and the sender learns it by `Transferred`. Between the
//! two the connection may break: the sender keeps the APDU and a [`Broken`](crate::rtse::Broken), and asks
//! the receiver on another association by `resume` or `discard_broken`; the receiver answers from what it has on stable storage.

mod closing;
mod event;
mod machine;
mod opening;
mod phase;
mod receiving;
mod request;
mod responding;
mod sending;

pub use event::{AbortCause, Event, Opened, Output, Rejected, Rejection, ResumeIndication, Timer};
pub use machine::{Association, AssociationError};
pub use request::{
    AcceptRequest, Addresses, Mode, OpenIndication, OpenRequest, Profile, RejectRequest,
    ResponderConfig, TransferFrom,
};

#[cfg(test)]
mod tests;
