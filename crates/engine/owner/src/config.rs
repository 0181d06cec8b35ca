//! Configuration of an owner, and its errors.

use std::fmt;
use std::time::Duration;

use vere_spoolwire::{Charter, CloseReason, DEFAULT_ACCOUNT, Grants, SharedSecret, SpoolError};

/// One network path to one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// Index of the node in [`OwnerConfig::nodes`].
    pub node: usize,
    /// Index of the address among the node's addresses.
    pub address: usize,
}

/// A node that may hold the group, and the paths to this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeName {
    /// Name in the settings and in the membership record.
    pub name: String,
    /// Number of addresses of the node, and so of links; at least 1. The second address carries a
    /// standby connection.
    pub links: usize,
    /// Machine of the node: nodes with the same number lose power together, and one log is enough
    /// for them.
    pub machine: usize,
}

/// Identity of an owner, nodes of its group, and limits of changes in flight.
#[derive(Debug, Clone)]
pub struct OwnerConfig {
    /// The group: 1 to 255 octets of UTF-8.
    pub group: String,
    /// Account with which this owner authenticates to the nodes.
    pub account: String,
    /// Secret of the account, shared with the nodes.
    pub secret: SharedSecret,
    /// Limit for metadata and bodies of the group, in octets; applies to a group created by this
    /// account.
    pub bytes_max: u64,
    /// Grants for other accounts on a group created by this account: see [`Grants::encode`].
    pub grants: Vec<u8>,
    /// The life of this owner's memory: not 0, and never used by another owner of the group.
    pub life: u64,
    /// Epoch of the owner from which to take the group; `None` takes the group from any owner, or
    /// creates it.
    pub takes: Option<u64>,
    /// Nodes that may hold the group, in the order of preference.
    pub nodes: Vec<NodeName>,
    /// Whether acknowledged changes must be in a synced log of one node of each machine.
    pub durable: bool,
    /// Number of replicas wanted; 1 to the number of nodes.
    pub replicas: usize,
    /// Number of full replicas required for an acknowledgement; 1 to `replicas`.
    pub replicas_min: usize,
    /// Maximum of octets sent to a replica without acknowledgement; eight changes may be sent whatever their length.
    pub window: usize,
    /// Limit of submitted octets without acknowledgement; above this limit the owner rejects new
    /// records.
    pub pending_max: usize,
    /// Limit of octets kept for a lagging replica in rebuild; above this limit the rebuild fails.
    pub lag_max: u64,
    /// Silence of a node after which the owner requests a sign of life. After three times this time
    /// the owner ends the connection.
    pub heartbeat: Duration,
    /// Absence of a full replica after which the owner isolates it.
    pub isolate_after: Duration,
    /// Time after which the owner isolates a connected full replica that acknowledges nothing while
    /// another replica is ahead.
    pub stall_after: Duration,
    /// Window in which a full member must be slower than the others for most of the time to be
    /// replaced by another node; 0 disables the comparison.
    pub slow_after: Duration,
    /// Delay of answers behind the other members that counts as slow.
    pub slow_lag: Duration,
    /// Pause after which a node that left as slow may join again; doubles each time.
    pub slow_rest: Duration,
    /// Time for which a takeover waits for full replicas that do not answer.
    pub adopt_wait: Duration,
    /// Pause after a failed rebuild before the owner tries the node again.
    pub rebuild_pause: Duration,
}

impl OwnerConfig {
    /// Creates a configuration with defaults: one node, named `node`, with one address.
    #[must_use]
    pub fn new(group: &str, secret: SharedSecret, life: u64) -> Self {
        Self {
            group: group.to_owned(),
            account: DEFAULT_ACCOUNT.to_owned(),
            secret,
            bytes_max: u64::MAX,
            grants: Vec::new(),
            life,
            takes: None,
            nodes: vec![NodeName {
                name: "node".to_owned(),
                links: 1,
                machine: 0,
            }],
            durable: false,
            replicas: 1,
            replicas_min: 1,
            window: 512 << 10,
            pending_max: 256 << 20,
            lag_max: 64 << 20,
            heartbeat: Duration::from_millis(300),
            isolate_after: Duration::from_secs(3),
            stall_after: Duration::from_secs(5),
            slow_after: Duration::ZERO,
            slow_lag: Duration::from_millis(5),
            slow_rest: Duration::from_secs(600),
            adopt_wait: Duration::from_secs(5),
            rebuild_pause: Duration::from_secs(5),
        }
    }
}

impl OwnerConfig {
    /// Charter for creating the group. Unreadable grants become empty grants.
    pub(super) fn charter(&self) -> Charter<'_> {
        Charter {
            bytes_max: self.bytes_max,
            grants: Grants::read(&self.grants).unwrap_or_default(),
        }
    }
}

/// Reason for ending a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The node closed the connection for this reason.
    #[error("node closed the connection: {0}")]
    Closed(CloseReason),
    /// The peer does not know the secret.
    #[error("peer failed to prove the identity of the node")]
    NotTheNode,
    /// The node broke the protocol, or the network damaged a frame.
    #[error("node broke the protocol")]
    Protocol,
    /// Under an unchanged incarnation the node has not processed a change that it acknowledged, or
    /// has processed a change that was never sent: the node is damaged, or another node.
    #[error("node has not processed changes that the node acknowledged")]
    Behind,
    /// Another node answered at the address, or the expected node in another life of its memory.
    #[error("another node answers at the address, or the node lost its memory")]
    AnotherNode,
    /// Three heartbeats went unanswered.
    #[error("node is silent")]
    Silent,
    /// The node answers heartbeats and acknowledges nothing.
    #[error("node sends no acknowledgements")]
    Stalled,
    /// The owner does not need the connection.
    #[error("node is not needed")]
    NotWanted,
}

/// Reason for rejecting a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitError {
    /// No full replica was reached yet: the content of the queues is unknown.
    Unknown,
    /// Too many octets wait for acknowledgement.
    Busy,
    /// The change is empty or exceeds a limit of the protocol or the node.
    Invalid,
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no full replica was reached yet",
            Self::Busy => "too much is waiting to be acknowledged",
            Self::Invalid => "change is empty or over a limit",
        })
    }
}

impl std::error::Error for SubmitError {}

impl From<SubmitError> for SpoolError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Unknown | SubmitError::Busy => Self::Busy,
            SubmitError::Invalid => Self::Invalid,
        }
    }
}
