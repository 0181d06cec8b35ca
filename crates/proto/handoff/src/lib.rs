//! What the processes of port 25 say to each other (`docs/internals/front.md`).
//!
//! [`session`] has the packets between the front and a worker, [`message`] the frames between a worker and the gateway.
//! The content of a session and the head of a message are octets here: `vere_smtp` encodes and decodes them. Numbers are little
//! endian. Every reader takes its octets for hostile: a process behind a sandbox may have been taken over.

pub mod message;
mod octets;
pub mod question;
pub mod session;

pub use octets::HandoffError;
