//! Options of a link: nodes, limits, times.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use vere_cluster::Register;
use vere_owner::lease::LeaseTerms;
use vere_spoolwire::KeptGrants;
use vere_units::ByteSize;

use crate::credentials::Credentials;
use vere_process::encryption::Encryption;

/// A node of the group's circle.
#[derive(Debug, Clone)]
pub struct NodeAddresses {
    /// Its name in the settings.
    pub name: String,
    /// Nodes of the same number are on the same machine, where one log is enough.
    pub machine: usize,
    /// Where it listens; over a second address a connection is on standby.
    pub addresses: Vec<SocketAddr>,
    /// TLS for the connections to encrypt; `None`: all in the clear.
    pub encryption: Option<Encryption>,
}

/// Terms for replacing a node that answers later than its peers. By default, no node is replaced.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlowTerms {
    /// Period in which the node was slower most of the time.
    pub after: Duration,
    /// Delay behind the other nodes.
    pub lag: Duration,
    /// Pause before the node may serve the group again; each repetition lengthens the pause.
    pub rest: Duration,
}

/// How to reach the nodes, and how much to have in flight.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// The nodes on which the group may lie, in the order of preference.
    pub nodes: Vec<NodeAddresses>,
    /// Whether an acknowledgement requires a synced log.
    pub durable: bool,
    /// Replicas of the group, as a target.
    pub replicas: usize,
    /// Replicas required before a commit is acknowledged.
    pub replicas_min: usize,
    /// Terms for replacing a slow replica.
    pub slow: SlowTerms,
    /// The register with the membership record of the group.
    pub register: Rc<Register>,
    /// The group this gateway owns: 1 to 255 octets.
    pub group: String,
    /// Credentials of the gateway towards the nodes.
    pub credentials: Credentials,
    /// Rights of other accounts to the group.
    pub grants: Vec<u8>,
    /// Accounts that may read single queues of the group, by account name.
    pub readers: BTreeMap<String, KeptGrants>,
    /// Octets of records that the group may hold.
    pub group_max: u64,
    /// Octets sent and not acknowledged, at most.
    pub window: ByteSize,
    /// Octets asked for and not acknowledged, at most; beyond it [`SpoolError::Busy`](super::SpoolError::Busy).
    pub pending_max: ByteSize,
    /// How long a commit of new records may wait for its acknowledgement.
    pub commit_timeout: Duration,
    /// How long a read may wait for its answer.
    pub read_timeout: Duration,
    /// How long connecting and authenticating may take.
    pub connect_timeout: Duration,
    /// The first pause before connecting again; doubled up to `backoff_max`.
    pub backoff_min: Duration,
    /// The longest pause before connecting again.
    pub backoff_max: Duration,
    /// A silent node is asked for a sign of life after this time, and its connection given up after
    /// three of them.
    pub heartbeat: Duration,
    /// How long a node may be away before the group goes on without it.
    pub isolate_after: Duration,
    /// How long the delivery lease lasts.
    pub lease: LeaseTerms,
    /// The life of this owner: a number that no owner of the group had before.
    pub life: u64,
    /// Whether the group is named for another gateway.
    pub adopted: bool,
    /// The group is taken only from the owner of this epoch; `None`: from any.
    pub takes: Option<u64>,
    /// Lives of owners of the group that are known to be over: their lease is not waited for.
    pub dead: Vec<u64>,
}

impl LinkOptions {
    /// Defaults for everything but where, which group and by which secret: a replica on every node,
    /// one is enough.
    pub fn new(
        nodes: Vec<NodeAddresses>,
        register: Rc<Register>,
        group: &str,
        credentials: Credentials,
    ) -> Self {
        Self {
            durable: false,
            replicas: nodes.len(),
            replicas_min: 1,
            slow: SlowTerms::default(),
            nodes,
            register,
            group: group.to_owned(),
            credentials,
            grants: Vec::new(),
            readers: BTreeMap::new(),
            group_max: u64::MAX,
            window: ByteSize::new(512 << 10),
            pending_max: ByteSize::new(256 << 20),
            commit_timeout: Duration::from_secs(15),
            read_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            backoff_min: Duration::from_millis(20),
            backoff_max: Duration::from_secs(2),
            heartbeat: Duration::from_millis(300),
            isolate_after: Duration::from_secs(3),
            lease: LeaseTerms {
                lease: Duration::from_secs(10),
                skew: Duration::from_secs(2),
            },
            life: random_life(),
            adopted: false,
            takes: None,
            dead: Vec::new(),
        }
    }
}

/// A number that no owner had before.
pub fn random_life() -> u64 {
    vere_process::secret::random_number().max(1)
}
