//! IMAP4rev1 (RFC 3501) and IMAP4rev2 (RFC 9051), both sides, as machines without sockets or
//! clocks.
//!
//! Octets and the time go in; octets and questions come out. The host owns the connection, the clock,
//! TLS and the mailboxes, and answers what the machine asks: is this password right, which messages
//! does this mailbox hold, what changed in it since.
//!
//! In reading order: [`set`] (which messages), [`command`] (what clients say), [`message`] (a
//! message as IMAP shows it), [`server`] (the machine), [`limits`]; [`client`] stands for itself.
//!
//! Covered: both revisions, and of extensions those of [`server::capability`]. The grammar is our own: of
//! what is spoken here, imap-codec 2.0 (alpha 10) has no SEARCH RETURN, no LIST selection and return
//! options, no saved results and no mailbox names in UTF-8.
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

/// The number of a message in its mailbox, which it keeps (RFC 9051 section 2.3.1.1).
pub type Uid = u32;

/// The number of a change in a mailbox, rising (RFC 7162 section 3.1).
pub type ModSeq = u64;
