//! The transport: ISO transport class 0 over TCP (RFC 1006, RFC 2126; X.224).
//!
//! Every transport protocol data unit (TPDU) travels in a packet (TPKT). A TSDU, the unit of the layer above, travels
//! in one data TPDU or several; the last one has the end mark (EOT). [`Transport`] gives a TSDU away in the pieces in which
//! it comes and never holds it as a whole.
//!
//! ```text
//! TPKT   u8 3 | u8 0 | u16 length of the packet, these four octets included
//! TPDU   u8 length of the header without this octet | u8 code | fields | parameters
//!   CR 0xE0  u16 0 | u16 source reference | u8 class and options | parameters
//!   CC 0xD0  u16 destination reference | u16 source reference | u8 class and options | parameters
//!   DR 0x80  u16 destination reference | u16 source reference | u8 reason | parameters
//!   ER 0x70  u16 destination reference | u8 cause | parameters
//!   DT 0xF0  u8 0x80 with the end mark, or 0 | user data
//! parameter  u8 code | u8 length | value
//! ```

mod machine;
mod tpdu;

pub use machine::{
    State, TPDU_SIZE_MAX, Transport, TransportConfig, TransportError, TransportEvent,
};
pub use tpdu::{Connection, DisconnectReason, RejectCause, TPKT_LEN, Tpdu, TpduError, TpduSize};

#[cfg(test)]
mod tests;
