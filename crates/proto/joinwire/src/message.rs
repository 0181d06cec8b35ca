//! The messages between the machines: JSON behind a length of four octets, inside TLS.
//!
//! | from | message | content |
//! |---|---|---|
//! | joining | [`Request::Join`] | the secret, a certificate request |
//! | inviting | [`Reply::Accepted`] or [`Reply::Refused`] | certificate, keys, settings |
//! | joining | [`Request::Done`] | its files are written |
//! | inviting | [`Reply::Recorded`] or [`Reply::Refused`] | the node is in the settings |

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::wire::{receive, send};

/// Octets of the longest request, which anybody can send.
pub const REQUEST_MAX: usize = 8 * 1024;
/// Octets of the longest reply.
pub const REPLY_MAX: usize = 256 * 1024;
/// The version of the messages.
pub const VERSION: u32 = 1;

/// A message of the joining machine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The machine wants to be the node.
    Join {
        /// [`VERSION`].
        version: u32,
        /// The secret of the token in hexadecimal digits.
        secret: String,
        /// A PKCS #10 request (RFC 2986) in PEM, for the machine's own key.
        request: String,
    },
    /// The machine has written everything that it was given.
    Done,
}

/// A message of the inviting machine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// The machine is the node.
    Accepted(Box<Membership>),
    /// The machine is not, and why.
    Refused(String),
    /// The node is in the settings of the inviting machine.
    Recorded,
}

/// The facts that make a machine a node.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Membership {
    /// The name of the node.
    pub node: String,
    /// Where the node listens, and gateways connect to.
    pub listen: SocketAddr,
    /// The name of the inviting gateway.
    pub gateway: String,
    /// The node's certificate in PEM.
    pub certificate: String,
    /// The CA certificate in PEM.
    pub ca: String,
    /// The key of the account `default`: 64 hexadecimal digits.
    pub key: String,
    /// `spool.durability`.
    pub durability: String,
    /// `spool.queues_max`.
    pub queues_max: u32,
    /// `spool.groups_max`.
    pub groups_max: u32,
    /// Further accounts on the nodes.
    pub accounts: Vec<Account>,
}

/// An account on the nodes (`[[spool.account]]`).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// The name.
    pub name: String,
    /// Whether the account makes groups of queues.
    pub makes_groups: bool,
    /// The key: 64 hexadecimal digits.
    pub key: String,
}

impl Request {
    /// Reads a message as it comes from the other machine, behind its length. `None`: another text, too long or cut.
    #[must_use]
    pub fn decode(mut octets: &[u8]) -> Option<Self> {
        receive(&mut octets, REQUEST_MAX).ok()
    }

    /// The message behind its length.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encoded(self)
    }
}

impl Reply {
    /// As [`Request::decode`].
    #[must_use]
    pub fn decode(mut octets: &[u8]) -> Option<Self> {
        receive(&mut octets, REPLY_MAX).ok()
    }

    /// As [`Request::encode`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encoded(self)
    }
}

fn encoded(message: &impl Serialize) -> Vec<u8> {
    let mut octets = Vec::new();
    // A vector takes everything, and every message has a form in JSON.
    let _ = send(&mut octets, message);
    octets
}

/// Keys are not for logs.
macro_rules! without_content {
    ($($kind:ty),*) => {$(
        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($kind), " [redacted]"))
            }
        }
    )*};
}

without_content!(Request, Reply, Membership, Account);
