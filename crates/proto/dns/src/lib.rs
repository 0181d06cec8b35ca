//! The server's half of the DNS (RFC 1035) for authoritative answers: [`read`] takes a query apart, [`Response`] writes
//! the answer into the caller's memory, [`Cookies`] tells clients from spoofed addresses (RFC 7873, RFC 9018).
//!
//! Queries are hostile: every length is bounded, a question has no compression pointers, and nothing is allocated. A
//! response is no query and gets no answer, so that two servers never answer each other.
//!
//! Left out: zone transfers, updates, DNSSEC, and the resolver's half.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use vere_dns::{Data, Owner, Received, Response, Section, Type, read};
//!
//! let packet = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x012\x02bl\x04test\x00\x00\x01\x00\x01";
//! let Received::Query(query) = read(packet) else { panic!("a query") };
//! assert_eq!(query.kind(), Type::A);
//! let mut memory = [0; 512];
//! let mut response = Response::new(&query, &mut memory, query.datagram_max());
//! response.record(Section::Answer, Owner::Question, 60, &Data::A(Ipv4Addr::new(127, 0, 0, 2)));
//! assert_eq!(response.finish(None), packet.len() + 16);
//! ```
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

mod codes;
mod cookie;
mod head;
mod name;
mod query;
mod response;
#[cfg(test)]
mod tests;

pub use self::codes::{Class, Rcode, Type};
pub use self::cookie::{ClientCookie, CookieState, Cookies, ServerCookie};
pub use self::name::{LABEL_MAX, Labels, NAME_MAX, Name, NameError};
pub use self::query::{ErrorReply, Query, Received, read};
pub use self::response::{Data, Owner, Response, Section};

/// Octets of a header (RFC 1035 section 4.1.1).
pub const HEADER: usize = 12;
/// Octets of a datagram that every client takes (RFC 1035 section 4.2.1).
pub const DATAGRAM_MIN: usize = 512;
/// Octets of a datagram that no path has to fragment, as agreed on the DNS flag day of 2020. No answer is longer.
pub const DATAGRAM_MAX: usize = 1_232;
