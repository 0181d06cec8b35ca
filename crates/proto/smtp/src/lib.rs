//! SMTP (RFC 5321) as machines without sockets or clocks, both sides.
//!
//! Octets and the time go in; octets and questions come out. The host owns the connection, the clock
//! and TLS, and answers the questions of the machine: whether the client may send, whether the
//! recipient can be reached, whether the message is safe.
//!
//! In reading order: [`address`], [`reply`] (the replies of servers), [`command`] (the commands of
//! clients), [`server`] and [`client`] (the two machines), [`refusal`] (every reason for a refusal,
//! with the reply), [`xclient`] and [`proxy`] (the real client behind a proxy), [`limits`].
//! Authentication is in the crate `vere-sasl`.
//!
//! Covered: RFC 5321, STARTTLS (3207), AUTH (4954), PIPELINING (2920), SIZE (1870), 8BITMIME (6152),
//! CHUNKING and BINARYMIME (3030), SMTPUTF8 (6531), DSN (3461), ENHANCEDSTATUSCODES (2034), LIMITS
//! (9422), XCLIENT (Postfix's), PROXY. REQUIRETLS (8689), MT-PRIORITY (6710). Not covered: DELIVERBY
//! (2852), ETRN, and the content of messages, which is carried as octets and never rewritten.

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

pub mod address;
pub mod client;
pub mod command;
pub mod limits;
pub mod proxy;
pub mod refusal;
pub mod reply;
pub mod server;
mod text;
pub mod xclient;
