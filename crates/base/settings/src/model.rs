//! The settings in the form used by the parts of the system.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use vere_units::{ByteSize, Span};

use crate::acme::Acme;
use crate::directory_store::DirectoryStore;
use crate::dnsbl::Dnsbl;
use crate::filters::FilterSettings;
use crate::judging::Judging;
use crate::mail_store::MailStore;
use crate::network::Networks;
use crate::outgoing::{Delivery, DestinationLimits, Route, Source};
use crate::quota::Quota;
use crate::sending::Sending;
use crate::services::{Dkim, Front, Records, Reports, Sendmail};
use crate::spool_accounts::{DEFAULT_SPOOL_ACCOUNT, SpoolAccount, SpoolQueue};
use crate::value::Value;
use crate::watching::{Backup, Control, Log, Metrics};
use crate::web::Web;
use crate::x400::X400;

/// A checked, immutable configuration.
///
/// Made by [`Settings::parse`](Self::parse) only, so that every value is in range; shared as
/// `Arc<Settings>`. Equal settings have equal values, regardless of the notation in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The name this system greets and signs with: a fully qualified domain name, lower case.
    pub hostname: String,
    /// The directory of all data without a separate path.
    pub data: PathBuf,
    /// The user to become when started as root.
    pub user: Option<String>,
    /// Listeners for mail from other systems.
    pub smtp: Listen,
    /// Listeners for mail of own users, TLS by STARTTLS.
    pub submission: Listen,
    /// Listeners for mail of own users, TLS from the first octet.
    pub submissions: Listen,
    /// Listeners for IMAP clients, TLS by STARTTLS.
    pub imap: Listen,
    /// Listeners for clients that read mail, TLS from the first octet.
    pub imaps: Listen,
    /// Listeners of the mail store for mail to be filed.
    pub lmtp: Listen,
    /// The quotas of accounts.
    pub quota: Quota,
    /// The storage options of the mail store.
    pub store: MailStore,
    /// Limits on the requests of clients.
    pub limits: Limits,
    /// The networks that may relay without authentication.
    pub relay: Networks,
    /// The priority of messages.
    pub priority: Priority,
    /// What accounts may send.
    pub sending: Sending,
    /// Mail from programs on this machine; `None` without the section.
    pub sendmail: Option<Sendmail>,
    /// Processes of their own for port 25; `None` without the section.
    pub front: Option<Front>,
    /// A web server for mail programs and other systems; `None` without the section.
    pub web: Option<Web>,
    /// A server of block lists; `None` without the section.
    pub dnsbl: Option<Dnsbl>,
    /// An MTA of X.400; `None` without the section.
    pub x400: Option<X400>,
    /// Content filters, in the order in which they are asked.
    pub filters: Vec<FilterSettings>,
    /// Judgement of messages by rules with weights; `None` without the section.
    pub judging: Option<Judging>,
    /// DKIM signatures on local users' mail; `None` without the section.
    pub dkim: Option<Dkim>,
    /// Lines about messages for other systems; `None` without the section.
    pub records: Option<Records>,
    /// Reports to other systems about their mail; `None` without the section.
    pub reports: Option<Reports>,
    /// The networks permitted to use XCLIENT.
    pub xclient: Networks,
    /// The networks whose SMTP connections begin with a PROXY header.
    pub proxy: Networks,
    /// The networks whose IMAP connections begin with a PROXY header.
    pub imap_proxy: Networks,
    /// Authentication.
    pub auth: Auth,
    /// Certificates in files.
    pub tls: Tls,
    /// Certificates from a CA; `None` without the section.
    pub acme: Option<Acme>,
    /// Name resolution.
    pub resolver: Resolver,
    /// Where domains, accounts and aliases lie.
    pub directory: Directory,
    /// Delivery to next hops and into mailboxes.
    pub delivery: Delivery,
    /// Exceptions from delivery by MX, first match first.
    pub routes: Vec<Route>,
    /// Limits for single destinations.
    pub destinations: Vec<DestinationLimits>,
    /// Source addresses and names of deliveries.
    pub sources: Vec<Source>,
    /// The settings of this gateway among several gateways.
    pub gateway: Gateway,
    /// Queue storage.
    pub spool: Spool,
    /// The register that decides between several gateways and nodes.
    pub cluster: Cluster,
    /// The OpenMetrics endpoint.
    pub metrics: Metrics,
    /// Watching over backups.
    pub backup: Backup,
    /// The log.
    pub log: Log,
    /// The socket of the commands that talk to a running system.
    pub control: Control,
    /// Files with secrets, by the keys of the options that name them. A file may be missing: some are made at the
    /// first start.
    pub secret_files: Vec<(String, PathBuf)>,
    /// All files, directories and sockets that options name, by the keys of these options, whether they exist or not.
    pub named_files: Vec<(String, PathBuf)>,
    /// Every value by key, for comparison.
    pub(crate) values: BTreeMap<String, Value>,
}

impl Settings {
    /// The source with this name.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.name == name)
    }

    /// Finds the first route for `domain` (in any case, without trailing dot), if there is one.
    #[must_use]
    pub fn route(&self, domain: &str) -> Option<&Route> {
        self.routes
            .iter()
            .find(|route| route.domain.matches(domain))
    }
}

/// The addresses of a service; without addresses the service does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Addresses with ports.
    pub listen: Vec<SocketAddr>,
}

/// Limits on the requests of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Octets of a message, announced by SIZE.
    pub message_size_max: ByteSize,
    /// Recipients of a message.
    pub recipients_max: u32,
    /// Octets of a command line with CRLF.
    pub command_line_length_max: ByteSize,
    /// Octets of a line in a message, with CRLF.
    pub text_line_length_max: ByteSize,
    /// Received header fields of a message before it counts as looping.
    pub hops_max: u32,
    /// Messages over a connection.
    pub messages_per_connection_max: u32,
    /// Refused commands before the connection is closed.
    pub errors_max: u32,
    /// Failed authentications before the connection is closed.
    pub auth_failures_max: u32,
    /// Longest wait for a command.
    pub command_timeout: Span,
    /// Longest wait for more of a message.
    pub data_timeout: Span,
    /// The longest time for a whole message.
    pub data_time_max: Span,
    /// How long a process that takes a message apart may be silent.
    pub parse_timeout: Span,
    /// Connections at once.
    pub connections_max: u32,
    /// Concurrent connections from one IPv4 address or one IPv6 /64.
    pub connections_per_client_max: u32,
    /// Memory for messages being received.
    pub body_memory_max: ByteSize,
    /// Disk space for the received parts of long messages.
    pub body_disk_max: ByteSize,
    /// Memory for messages fetched by clients and not read yet.
    pub fetch_memory_max: ByteSize,
    /// Messages in all queues, counted once per destination.
    pub queued_messages_max: u64,
    /// Percentage of the queue limits, or of memory, from which new mail is throttled.
    pub throttle_from: u32,
    /// Percentage below which new mail is accepted again.
    pub throttle_until: u32,
    /// Messages in the queue of a destination.
    pub messages_per_destination_max: u64,
    /// Their octets.
    pub octets_per_destination_max: ByteSize,
    /// Memory for the messages next in line.
    pub queue_memory_max: ByteSize,
}

/// Authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// Networks whose clients may authenticate without TLS.
    pub plaintext_networks: Networks,
}

/// A certificate chain and its private key, both as PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Certificates in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The certificate when no server name matches.
    pub default: Option<CertificateFiles>,
    /// The certificates for server names requested by clients.
    pub sni: Vec<Sni>,
}

/// The certificate for a server name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sni {
    /// The name, lower case.
    pub name: String,
    /// Its certificate.
    pub files: CertificateFiles,
}

/// The priority of messages (RFC 6710).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priority {
    /// The networks whose clients may raise the priority without authentication.
    pub networks: Networks,
    /// The name of the announced policy.
    pub policy: PriorityPolicy,
}

/// A registered policy of priorities (RFC 6710 section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorityPolicy {
    /// None is announced.
    None,
    /// As X.400 maps to mail.
    Mixer,
    /// The policy of military messages.
    Stanag4406,
    /// As in emergencies.
    Nsep,
}

/// Name resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolver {
    /// The name servers; empty for the name servers of the operating system.
    pub servers: Vec<SocketAddr>,
    /// A file of static records; when given, no network is asked.
    pub zone: Option<PathBuf>,
    /// Whether answers are validated by DNSSEC.
    pub dnssec: bool,
    /// The file of keys that validation begins with; the root zone's when absent.
    pub trust_anchor: Option<PathBuf>,
}

/// Where domains, accounts and aliases lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// The store.
    pub store: DirectoryStore,
    /// The separator between user name and tag in `user+tag@domain`; `None` disables tags.
    pub subaddress_separator: Option<char>,
}

/// A gateway among several gateways with the same nodes and register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The name of the gateway and of its group of queues.
    pub name: String,
    /// The gateways whose queues this gateway takes over after their death; `*` for all gateways.
    pub adopts: Vec<String>,
    /// Time without a renewal after which a gateway counts as dead.
    pub adopt_after: Span,
}

/// When a message counts as safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Once the record is in the synced log of a node.
    Synced,
    /// Once the record is in the memory of enough nodes.
    Replicated,
}

/// The nodes that keep logs, with [`Durability::Synced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogBy {
    /// One node of each machine.
    Machine,
    /// Each.
    Node,
}

/// Queue storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spool {
    /// When a message counts as safe.
    pub durability: Durability,
    /// The nodes that keep logs.
    pub log: LogBy,
    /// Number of nodes that should hold every message.
    pub replicas: u32,
    /// Number of nodes that must hold a message before its acknowledgement.
    pub replicas_min: u32,
    /// The period of slowness after which a slow node is replaced; 0 disables the replacement.
    pub slow_after: Span,
    /// The delay of a node's answers, compared with the other nodes, that counts as slow.
    pub slow_lag: Span,
    /// The time that a slow node is excluded.
    pub slow_rest: Span,
    /// The file of the key shared by gateway and nodes, made at the first start.
    pub secret: PathBuf,
    /// Further accounts on the nodes.
    pub accounts: Vec<SpoolAccount>,
    /// The account of this machine on the nodes.
    pub speaks_as: String,
    /// Accounts that may take over this gateway's queues.
    pub adopters: Vec<String>,
    /// Accounts that may read this gateway's queues.
    pub readers: Vec<String>,
    /// Queues with readers of their own.
    pub queues: Vec<SpoolQueue>,
    /// The most octets in the queues; `None` for no limit but the nodes'.
    pub group_max: Option<ByteSize>,
    /// Queues of a group on a node.
    pub queues_max: u32,
    /// Groups on a node.
    pub groups_max: u32,
    /// Memory of a node.
    pub memory_max: ByteSize,
    /// Disk space of a node for records that do not fit into memory; 0 for none.
    pub spill_max: ByteSize,
    /// Octets of a log segment.
    pub segment_size: ByteSize,
    /// Damaged logs of unknown owners kept by a node.
    pub kept_max: u32,
    /// The nodes; two local nodes when the file names none.
    pub nodes: Vec<SpoolNode>,
    /// Certificates for the connections to nodes.
    pub tls: Option<SpoolTls>,
}

impl Spool {
    /// The key file of an account, if known in the settings.
    #[must_use]
    pub fn secret_of(&self, account: &str) -> Option<&Path> {
        if account == DEFAULT_SPOOL_ACCOUNT {
            return Some(&self.secret);
        }
        let mut accounts = self.accounts.iter();
        let known = accounts.find(|known| known.name == account)?;
        Some(&known.secret)
    }

    /// The nodes, by index, whose connections leave this machine in clear text without an explicit setting:
    /// `[spool.tls]` is missing.
    pub fn exposed(&self) -> impl Iterator<Item = (usize, &SpoolNode)> {
        let exposed = |node: &SpoolNode| {
            let outside = node
                .addresses()
                .any(|address| !address.ip().to_canonical().is_loopback());
            self.tls.is_none() && node.tls == LineTls::Auto && outside
        };
        self.nodes
            .iter()
            .enumerate()
            .filter(move |(_, node)| exposed(node))
    }

    /// For each node the index of the first node with the same log, possibly the node itself: such nodes
    /// lose power together. In doubt each node has its own log.
    #[must_use]
    pub fn log_places(&self) -> Vec<usize> {
        let shares = |node: &SpoolNode, other: &SpoolNode| {
            self.log == LogBy::Machine && node.is_beside(other)
        };
        let place = |(own, node): (usize, &SpoolNode)| {
            let first = self.nodes[..own]
                .iter()
                .position(|other| shares(node, other));
            first.unwrap_or(own)
        };
        self.nodes.iter().enumerate().map(place).collect()
    }
}

/// Mutual TLS between gateways and nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolTls {
    /// The certificate presented to the other side, by nodes and gateways alike.
    pub files: CertificateFiles,
    /// A PEM file of the CAs accepted for the other side's certificate.
    pub ca: PathBuf,
    /// The private key of the CA, on the machine that renews certificates.
    pub ca_key: Option<PathBuf>,
}

/// The connections of a node to encrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTls {
    /// With `[spool.tls]` all connections over addresses except loopback.
    Auto,
    /// All.
    Required,
    /// None.
    Off,
}

/// A node of the spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolNode {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// A second address of the node.
    pub standby: Option<SocketAddr>,
    /// Whether the node runs on another machine.
    pub remote: bool,
    /// The connections of the node to encrypt.
    pub tls: LineTls,
    /// The directory of the node's logs.
    pub data: PathBuf,
}

impl SpoolNode {
    /// The addresses of the node, the address for standby connections last.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.listen).chain(self.standby)
    }

    /// Whether both nodes certainly run on the same machine: both run here, or have the same IP address,
    /// except a loopback address, which may be the end of a tunnel to any machine.
    fn is_beside(&self, other: &Self) -> bool {
        let ip = self.listen.ip().to_canonical();
        let same = ip == other.listen.ip().to_canonical() && !ip.is_loopback();
        self.remote == other.remote && (!self.remote || same)
    }
}

/// The register that decides between several gateways and nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The place of the membership of groups.
    pub register: Register,
    /// How long a gateway delivers after its last renewal.
    pub lease: Span,
    /// The further wait of a successor.
    pub skew: Span,
}

/// A durable compare-and-set register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Register {
    /// Synced files in a directory of this machine.
    File(PathBuf),
    /// An etcd cluster.
    Etcd(Etcd),
}

/// An etcd cluster with credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etcd {
    /// `http://HOST:PORT` or `https://HOST:PORT` of 1 to 16 members.
    pub endpoints: Vec<String>,
    /// The prefix of the keys.
    pub prefix: String,
    /// A PEM file of authorities; those of the operating system when absent.
    pub ca: Option<PathBuf>,
    /// The certificate for members that demand a client certificate.
    pub certificate: Option<CertificateFiles>,
    /// The user and the file of the password.
    pub login: Option<(String, PathBuf)>,
}
