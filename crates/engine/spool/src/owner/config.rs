//! What an owner is told at its start, and what may go wrong.

use std::fmt;
use std::time::Duration;

use vere_spoolwire::{CloseReason, SharedSecret};

/// Who an owner is and how much it has in flight.
#[derive(Debug, Clone)]
pub struct OwnerConfig {
    /// The group: 1 to 255 octets of UTF-8.
    pub group: String,
    /// The secret shared with the node.
    pub secret: SharedSecret,
    /// The life of this owner's memory: a number that no owner of the group had before, not 0.
    pub life: u64,
    /// Octets sent and not acknowledged, at most; one change always goes.
    pub window: usize,
    /// Octets submitted and not acknowledged beyond which new records are not taken.
    pub pending_max: usize,
    /// After so long without a word from the node it is asked for one; after three times as long it
    /// is given up.
    pub heartbeat: Duration,
}

impl OwnerConfig {
    /// Defaults for everything but who it is.
    #[must_use]
    pub fn new(group: &str, secret: SharedSecret, life: u64) -> Self {
        Self {
            group: group.to_owned(),
            secret,
            life,
            window: 512 << 10,
            pending_max: 256 << 20,
            heartbeat: Duration::from_secs(5),
        }
    }
}

/// Why a connection must be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerError {
    /// The node closed it and said why.
    Closed(CloseReason),
    /// The peer does not know the secret.
    NotTheNode,
    /// The node broke the protocol, or the line damaged a frame.
    Protocol,
    /// Under the same incarnation the node has not processed what it acknowledged, or has processed
    /// what was never sent: it is damaged, or not the one it says.
    Behind,
    /// Three heartbeats went unanswered.
    Silent,
}

impl OwnerError {
    /// Whether connecting again cannot help: another owner took the group over.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Closed(CloseReason::TakenOver))
    }
}

impl fmt::Display for OwnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(reason) => write!(f, "node closed the connection: {reason}"),
            Self::NotTheNode => f.write_str("peer did not prove that it is the node"),
            Self::Protocol => f.write_str("node broke the protocol"),
            Self::Behind => f.write_str("node has not processed what it acknowledged"),
            Self::Silent => f.write_str("node is silent"),
        }
    }
}

impl std::error::Error for OwnerError {}

/// Why a change was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitError {
    /// The node was never reached: what is in the queues is not known.
    Unknown,
    /// Too much is waiting to be acknowledged.
    Busy,
    /// Nothing to do, or over a limit of the protocol or the node.
    Invalid,
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "node was never reached",
            Self::Busy => "too much is waiting to be acknowledged",
            Self::Invalid => "change is empty or over a limit",
        })
    }
}

impl std::error::Error for SubmitError {}
