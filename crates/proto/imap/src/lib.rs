//! IMAP4rev1 (RFC 3501) and IMAP4rev2 (RFC 9051), both sides, as machines without sockets or
//! clocks.
//!
//! Octets and the time go in; octets and questions come out. The host owns the connection, the clock, TLS
//! and the mailboxes, and answers the questions of the machine: whether a password is right, which
//! messages a mailbox holds, and which messages changed.
//!
//! In reading order: [`set`] (sets of messages), [`command`] (the commands of clients), [`message`] (the
//! IMAP view of a message), [`server`] (the machine), [`limits`]; [`client`] is independent of the server
//! side.
//!
//! Covered: both revisions, and the extensions of [`server::capability`]. The grammar is our own:
//! imap-codec 2.0 (alpha 10) lacks SEARCH RETURN, LIST selection and return options, saved results and
//! mailbox names in UTF-8.
//!
//! Not covered: ACL, SORT and THREAD, METADATA, COMPRESS, NOTIFY, CATENATE.

#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "a panic is how a test fails"
    )
)]

pub mod client;
pub mod command;
pub mod date;
pub mod flags;
pub mod limits;
pub mod message;
pub mod server;
pub mod set;
pub mod utf7;

mod write;

/// The UID of a message, permanent within the mailbox (RFC 9051 section 2.3.1.1).
pub type Uid = u32;

/// The number of a change in a mailbox, rising (RFC 7162 section 3.1).
pub type ModSeq = u64;
