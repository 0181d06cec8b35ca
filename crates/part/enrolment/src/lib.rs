//! How a machine becomes a spool node.
//!
//! A gateway's machine has the CA of the spool ([`Authority`]). Its operator invites a machine: an [`Invitation`]
//! listens for a while, and the operator carries its [`Token`] to the other machine, where [`join`] brings a
//! certificate request and gets certificate, keys and settings. Later the gateway renews the certificates of itself
//! and of its nodes ([`renewal`]).
//!
//! The token has a pin, the SHA-256 of the CA certificate: so the joining machine knows the inviting one. It has a
//! secret: so the inviting machine knows the joining one. Both are checked inside TLS 1.3; a private key never leaves
//! its machine, the keys of the accounts on the nodes do.

mod authority;
mod crowd;
mod error;
mod files;
mod invitation;
mod joining;
pub mod renewal;
mod wire;

pub use authority::{Authority, Issued, LIFE_DAYS, Machine, Purpose};
pub use crowd::{CONNECTIONS_MAX, SOURCE_MAX};
pub use error::EnrolmentError;
pub use files::{Owner, write};
pub use invitation::{Ending, Invitation, Limits};
pub use joining::{Candidate, Joining, join, probe};
pub use vere_joinwire::{Token, TokenError, message};

/// Whether a text can name a node in its certificate: a label of the DNS in lower case (RFC 1123 section 2.1).
#[must_use]
pub fn is_node_name(name: &str) -> bool {
    let octets = name.as_bytes();
    let inner = |octet: &u8| matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let end = |octet: Option<&u8>| octet.is_some_and(|octet| *octet != b'-');
    octets.len() <= 63 && octets.iter().all(inner) && end(octets.first()) && end(octets.last())
}

#[cfg(test)]
mod tests;
