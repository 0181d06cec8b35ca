//! What an owner is told at its start, and what may go wrong.

use std::fmt;
use std::time::Duration;

use vere_spoolwire::{Charter, CloseReason, DEFAULT_ACCOUNT, Grants, SharedSecret};

/// One way to one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The node: its place in [`OwnerConfig::nodes`].
    pub node: usize,
    /// The address: its place among those of the node.
    pub address: usize,
}

/// A node of the group's circle and the ways to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeName {
    /// Its name in the settings, and in the membership record.
    pub name: String,
    /// Addresses it is reached at, so links to it; at least one. With two of them one connection is
    /// on standby.
    pub links: usize,
    /// Its machine: nodes of the same number lose power together, and one log is enough for them.
    pub machine: usize,
}

/// Who an owner is, where its group may lie, and how much it has in flight.
#[derive(Debug, Clone)]
pub struct OwnerConfig {
    /// The group: 1 to 255 octets of UTF-8.
    pub group: String,
    /// The account as which this owner speaks to the nodes.
    pub account: String,
    /// Its secret, shared with the nodes.
    pub secret: SharedSecret,
    /// Octets of metadata and bodies that the group may hold; of a group that this account made.
    pub bytes_max: u64,
    /// What other accounts may do with such a group: see [`Grants::encode`].
    pub grants: Vec<u8>,
    /// The life of this owner's memory: a number that no owner of the group had before, not 0.
    pub life: u64,
    /// The group is taken only from the owner of this epoch; `None`: from any, or made when it is new.
    pub takes: Option<u64>,
    /// The nodes on which the group may lie, in the order of preference.
    pub nodes: Vec<NodeName>,
    /// Whether what is acknowledged must be in a synced log, of one node of each machine.
    pub durable: bool,
    /// Replicas wanted; 1 to the number of nodes.
    pub replicas: usize,
    /// Full replicas without which nothing is acknowledged; 1 to `replicas`.
    pub replicas_min: usize,
    /// Octets sent to a replica and not acknowledged by it, at most; one change always goes.
    pub window: usize,
    /// Octets submitted and not acknowledged beyond which new records are not taken.
    pub pending_max: usize,
    /// Octets kept for a replica that is being rebuilt and lags; beyond them it is given up.
    pub lag_max: u64,
    /// After so long without a word a node is asked for one; after three times as long the connection
    /// is given up.
    pub heartbeat: Duration,
    /// How long a full replica may be away before it is isolated.
    pub isolate_after: Duration,
    /// How long a full replica that lives may acknowledge nothing while another one is ahead of it,
    /// before it is isolated.
    pub stall_after: Duration,
    /// In how long a full member must be slower than the others for most of the time, to be replaced by
    /// another node; 0: in none.
    pub slow_after: Duration,
    /// How much later than the others' its answers must come for that.
    pub slow_lag: Duration,
    /// How long a node that left so is left alone; twice as long each time.
    pub slow_rest: Duration,
    /// How long a takeover waits for full replicas that do not answer.
    pub adopt_wait: Duration,
    /// How long a node is left alone after a rebuild on it failed.
    pub rebuild_pause: Duration,
}

impl OwnerConfig {
    /// Defaults for everything but who it is: one node, named `node`, with one address.
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
    /// What a group is made with. Grants that cannot be read are none.
    pub(super) fn charter(&self) -> Charter<'_> {
        Charter {
            bytes_max: self.bytes_max,
            grants: Grants::read(&self.grants).unwrap_or_default(),
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
    /// Where the node was looked for another one is, or the same in another life of its memory.
    AnotherNode,
    /// Three heartbeats went unanswered.
    Silent,
    /// The node lives and acknowledges nothing.
    Stalled,
    /// The owner does not need it.
    NotWanted,
}

impl fmt::Display for OwnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(reason) => write!(f, "node closed the connection: {reason}"),
            Self::NotTheNode => f.write_str("peer did not prove that it is the node"),
            Self::Protocol => f.write_str("node broke the protocol"),
            Self::Behind => f.write_str("node has not processed what it acknowledged"),
            Self::AnotherNode => {
                f.write_str("another node answers there, or the same in another life of its memory")
            }
            Self::Silent => f.write_str("node is silent"),
            Self::Stalled => f.write_str("node acknowledges nothing"),
            Self::NotWanted => f.write_str("node is not needed"),
        }
    }
}

impl std::error::Error for OwnerError {}

/// Why a change was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitError {
    /// No full replica was reached yet: what is in the queues is not known.
    Unknown,
    /// Too much is waiting to be acknowledged.
    Busy,
    /// Nothing to do, or over a limit of the protocol or the node.
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
