//! The MTA's side of the milter protocol, version 6, by which filters see and change mail: a machine without
//! sockets ([`Client`]), and the changes that a filter asks for ([`Change`], [`apply`]).
//!
//! No standard describes the protocol; the sources are libmilter's documentation (`smfi_*`, `xxfi_*`) and the behaviour of
//! libmilter 8.17. A packet has a length of four octets in network order, a code, and data:
//!
//! ```text
//! u32  octets behind this field: 1 and those of the data
//! u8   code
//! ...  data; texts end with NUL
//!
//! MTA     O  u32 version, u32 actions, u32 protocol      D  u8 code of a command, then name NUL value NUL ...
//!         C  host name NUL, family 4|6|U, u16 port, address NUL
//!         H  name NUL         M  <path> NUL              R  <path> NUL      T  (DATA)
//!         L  name NUL value NUL    N  (end of header)    B  octets          E  (end of message)
//!         Q  (end)            K  (end, and another client follows)
//! filter  O  u32 version, u32 actions, u32 protocol, then u32 stage and names of macros NUL ...
//!         c  continue    a  accept    r  reject    t  refuse for now    d  discard    s  no more of this    p  wait on
//!         y  reply NUL   f  connection failure     4  shutdown
//!         and before the answer to E:
//!         h  name NUL value NUL          i, m  u32 index, name NUL value NUL     b  octets of the body
//!         +  recipient NUL    2  recipient NUL parameters NUL    -  recipient NUL
//!         e  reverse-path NUL [parameters NUL]                    q  reason NUL
//! ```
//!
//! A filter sees a message as an SMTP session, command after command. The machine has the whole message: a filter that
//! refuses a recipient refuses the message, since no reply about a single recipient is possible any more.
//!
//! Not covered: rejected recipients, unknown commands, packets above 64 KiB (`SMFIP_MDS_*`).
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod answer;
mod apply;
mod change;
mod client;
mod error;
mod options;
mod packet;
mod session;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Refusal};
pub use apply::{apply, apply_to_recipients};
pub use change::{Change, FieldError, address, field_name, field_value};
pub use client::{Client, Ending, Limits, Verdict};
pub use error::MilterError;
pub use options::Options;
pub use packet::{PACKET_OCTETS_MAX, Packet};
pub use session::{Event, Session};
