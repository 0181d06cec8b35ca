//! What the processes of port 25 say to each other (`docs/internals/front.md`), and the gateway to its couriers (`docs/internals/couriers.md`).
//!
//! [`session`] has the packets between the front and a worker, [`message`] the frames between a worker and the gateway, [`question`] those
//! to the broker, which knows the directory of accounts; the front and the workers read what strangers send and must not read it. [`delivery`] has the frames between the gateway and a courier, which sends messages to next hops.
//!
//! The content of a session and the head of a message are octets here: `vere_smtp` encodes and decodes them, parses addresses
//! and numbers refusals. Numbers are little endian. Every reader takes its octets for hostile: a process behind a
//! sandbox may have been taken over.
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

pub mod delivery;
pub mod message;
pub mod note;
mod octets;
pub mod question;
pub mod session;

pub use octets::HandoffError;
