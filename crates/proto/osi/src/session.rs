//! The session (X.225): kernel, half-duplex, exceptions, minor synchronize and activity management, in protocol
//! versions 1 and 2, with basic concatenation.
//!
//! Every session protocol data unit (SPDU) travels in a TSDU: alone, or, for those of category 2, behind a GIVE TOKENS
//! or PLEASE TOKENS SPDU. [`Spdu`] is the unit, [`Session`] the machine of both roles with the states of X.225 Annex A.
//!
//! ```text
//! SPDU       u8 SI | LI | parameters | user information (DATA TRANSFER, to the end of the TSDU)
//! parameter  u8 PGI or PI | LI | value, or PI units in a PGI unit
//! LI         u8 0..254, or u8 255 and u16
//! ```
//!
//! A transport connection is used for one session and never again: X.225 leaves the reuse to the local choice, so the state STA 01A (it waits
//! for ABORT ACCEPT to reuse the connection) does not occur. Class 0 has no expedited data, so PREPARE does not occur either.

mod activity;
mod assembly;
mod establishing;
mod machine;
mod parameters;
mod releasing;
mod spdu;
mod state;
mod tokens;

pub use activity::SERIAL_MAX;
pub use machine::{
    Accepting, Connecting, Fault, NotAllowed, Session, SessionConfig, SessionEvent, SessionTimer,
};
pub use parameters::SpduError;
pub use spdu::{
    Abort, Accept, ActivityResume, Connect, ConnectionIdentifier, Enclosure, Exception, Item,
    OverflowAccept, REQUIREMENTS, Refuse, RefuseReason, Spdu, disconnect, requirement, version,
};
pub use state::{Incoming, State};
pub use tokens::{Token, Tokens};

#[cfg(test)]
mod tests;
