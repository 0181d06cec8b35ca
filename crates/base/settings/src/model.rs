//! The settings as the parts of the system see them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use vere_units::{ByteSize, Span};

use crate::directory_store::DirectoryStore;
use crate::mail_store::MailStore;
use crate::network::IpNetwork;
use crate::outgoing::{Delivery, DestinationLimits, Route, Source};
use crate::quota::Quota;
use crate::services::{Dkim, Records, Sendmail};
use crate::spool_accounts::{DEFAULT_SPOOL_ACCOUNT, SpoolAccount, SpoolQueue};
use crate::value::Value;
use crate::watching::{Control, Log, Metrics};

/// One checked, immutable configuration.
///
/// Made by [`Settings::parse`](Self::parse) only, so that every value is inside its range; share
/// it as `Arc<Settings>`. Equal settings have equal values, however their files are written.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The name this system greets and signs with: a fully qualified domain name, lower case.
    pub hostname: String,
    /// The folder under which everything lies that is not placed elsewhere.
    pub data: PathBuf,
    /// The user to become when started as root.
    pub user: Option<String>,
    /// Listeners for mail from other systems.
    pub smtp: Listen,
    /// Listeners for mail of own users, TLS by STARTTLS.
    pub submission: Listen,
    /// Listeners for mail of own users, TLS from the first octet.
    pub submissions: Listen,
    /// Listeners for clients that read mail, TLS by STARTTLS.
    pub imap: Listen,
    /// Listeners for clients that read mail, TLS from the first octet.
    pub imaps: Listen,
    /// Listeners of the mail store for mail to be filed.
    pub lmtp: Listen,
    /// What accounts may hold.
    pub quota: Quota,
    /// How the mail store keeps its files.
    pub store: MailStore,
    /// Bounds on what clients may ask for.
    pub limits: Limits,
    /// Who may relay without authentication.
    pub relay: Networks,
    /// The priority of messages.
    pub priority: Priority,
    /// Mail from the programs of this machine; none without the section.
    pub sendmail: Option<Sendmail>,
    /// Signatures on what own users send; none without the section.
    pub dkim: Option<Dkim>,
    /// Lines about messages for other systems; none without the section.
    pub records: Option<Records>,
    /// Who may use XCLIENT.
    pub xclient: Networks,
    /// Whose SMTP connections begin with a PROXY header.
    pub proxy: Networks,
    /// Whose IMAP connections begin with a PROXY header.
    pub imap_proxy: Networks,
    /// Authentication.
    pub auth: Auth,
    /// Certificates in files.
    pub tls: Tls,
    /// Certificates from a certificate authority; none without the section.
    pub acme: Option<Acme>,
    /// Name resolution.
    pub resolver: Resolver,
    /// Where domains, accounts and aliases lie.
    pub directory: Directory,
    /// Delivery to next hops and into mailboxes.
    pub delivery: Delivery,
    /// Exceptions from delivery by MX, first match first.
    pub routes: Vec<Route>,
    /// What is allowed towards some destinations.
    pub destinations: Vec<DestinationLimits>,
    /// Under which addresses and names deliveries leave.
    pub sources: Vec<Source>,
    /// This gateway among others.
    pub gateway: Gateway,
    /// Queue storage.
    pub spool: Spool,
    /// Who of several gateways and nodes is responsible.
    pub cluster: Cluster,
    /// The OpenMetrics endpoint.
    pub metrics: Metrics,
    /// The log.
    pub log: Log,
    /// The socket of the commands that talk to a running system.
    pub control: Control,
    /// Every value by its key, for comparison.
    pub(crate) values: BTreeMap<String, Value>,
}

impl Settings {
    /// The source of this name.
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

/// The addresses a service listens on; none means that it does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Addresses with ports.
    pub listen: Vec<SocketAddr>,
}

/// Bounds on what clients may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Octets of one message, announced by SIZE.
    pub message_size_max: ByteSize,
    /// Recipients of one message.
    pub recipients_max: u32,
    /// Octets of one command line with its CRLF.
    pub command_line_length_max: ByteSize,
    /// Octets of one line of a message with its CRLF.
    pub text_line_length_max: ByteSize,
    /// Received header fields of one message before it counts as looping.
    pub hops_max: u32,
    /// Messages over one connection.
    pub messages_per_connection_max: u32,
    /// Refused commands before the connection is closed.
    pub errors_max: u32,
    /// Failed authentications before the connection is closed.
    pub auth_failures_max: u32,
    /// Longest wait for a command.
    pub command_timeout: Span,
    /// Longest wait for more of a message.
    pub data_timeout: Span,
    /// Longest time for one whole message.
    pub data_time_max: Span,
    /// How long a process that takes a message apart may be silent.
    pub parse_timeout: Span,
    /// Connections at once.
    pub connections_max: u32,
    /// Connections at once from one IPv4 address or one IPv6 /64.
    pub connections_per_client_max: u32,
    /// Memory for messages that are being received.
    pub body_memory_max: ByteSize,
    /// Room on the disk for what has come of long ones.
    pub body_disk_max: ByteSize,
    /// Memory for messages that clients fetch and have not read.
    pub fetch_memory_max: ByteSize,
    /// Messages in all queues, counted once per destination.
    pub queued_messages_max: u64,
    /// Percent of what may wait, or of memory, from which nothing new is begun.
    pub throttle_from: u32,
    /// Percent below which it is again.
    pub throttle_until: u32,
    /// Messages in the queue of one destination.
    pub messages_per_destination_max: u64,
    /// Their octets.
    pub octets_per_destination_max: ByteSize,
    /// Memory for the messages that leave next.
    pub queue_memory_max: ByteSize,
}

/// A set of networks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Networks {
    /// The networks; an address belongs to the set when it lies in one of them.
    pub networks: Vec<IpNetwork>,
}

impl Networks {
    /// Says whether `address` lies in one of the networks.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(address))
    }
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
    /// The one shown when no other fits.
    pub default: Option<CertificateFiles>,
    /// Those for names that clients ask for.
    pub sni: Vec<Sni>,
}

/// The certificate for one server name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sni {
    /// The name, lower case.
    pub name: String,
    /// Its certificate.
    pub files: CertificateFiles,
}

/// Certificates from a certificate authority (RFC 8555).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// The authority's directory, an https address.
    pub directory: String,
    /// Where the authority writes to, `mailto:` addresses.
    pub contact: Vec<String>,
    /// The names of the certificate, lower case; the host name when the file gives none.
    pub domains: Vec<String>,
    /// A PEM file of roots that the authority's own server is checked against, for test servers.
    pub root: Option<PathBuf>,
    /// Where challenges of type http-01 are answered.
    pub listen: Vec<SocketAddr>,
}

/// The priority of messages (RFC 6710).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priority {
    /// Whose clients may raise it without authentication.
    pub networks: Networks,
    /// The name of the policy that is announced.
    pub policy: PriorityPolicy,
}

/// A registered policy of what priorities mean (RFC 6710 section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorityPolicy {
    /// None is announced.
    None,
    /// As X.400 maps to mail.
    Mixer,
    /// As military messages have it.
    Stanag4406,
    /// As in emergencies.
    Nsep,
}

/// Name resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolver {
    /// The name servers; those of the operating system when empty.
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
    /// What separates a user name from a tag in `user+tag@domain`; none switches tags off.
    pub subaddress_separator: Option<char>,
}

/// One of the gateways that share nodes and register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Its name, and that of its group of queues.
    pub name: String,
    /// Gateways whose queues it takes over when they are dead; `*`: all.
    pub adopts: Vec<String>,
    /// How long such a gateway must have renewed nothing.
    pub adopt_after: Span,
}

/// When a message counts as safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When it is in the synced log of a node.
    Synced,
    /// When it is in the memory of enough nodes.
    Replicated,
}

/// Which nodes keep logs, with [`Durability::Synced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogBy {
    /// One of those on the same machine.
    Machine,
    /// Each.
    Node,
}

/// Queue storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spool {
    /// When a message counts as safe.
    pub durability: Durability,
    /// Which nodes keep logs.
    pub log: LogBy,
    /// Nodes that are to hold every message.
    pub replicas: u32,
    /// Nodes that must hold a message before it is acknowledged.
    pub replicas_min: u32,
    /// In how long a node must be slower than the others for most of the time to be replaced; 0: in none.
    pub slow_after: Span,
    /// How much later than the others' its answers must come for that.
    pub slow_lag: Span,
    /// How long such a node is left alone.
    pub slow_rest: Span,
    /// The file of the key shared by gateway and nodes, made at the first start.
    pub secret: PathBuf,
    /// Accounts on the nodes beside that one.
    pub accounts: Vec<SpoolAccount>,
    /// The account as which this machine speaks to the nodes.
    pub speaks_as: String,
    /// Accounts that may take this gateway's queues over.
    pub adopters: Vec<String>,
    /// Accounts that may read them.
    pub readers: Vec<String>,
    /// Queues with readers of their own.
    pub queues: Vec<SpoolQueue>,
    /// Octets that they may hold; `None`: no limit but the nodes'.
    pub group_max: Option<ByteSize>,
    /// Queues that a group may have on one node.
    pub queues_max: u32,
    /// Groups on one node.
    pub groups_max: u32,
    /// Memory of one node.
    pub memory_max: ByteSize,
    /// Disk of one node for what its memory does not hold; 0: none.
    pub spill_max: ByteSize,
    /// Octets of one segment of a log.
    pub segment_size: ByteSize,
    /// Damaged logs that a node keeps of which nothing says whose they were.
    pub kept_max: u32,
    /// The nodes; two local ones when the file names none.
    pub nodes: Vec<SpoolNode>,
    /// Certificates for the connections to nodes.
    pub tls: Option<SpoolTls>,
}

impl Spool {
    /// The file of the key of an account, if these settings know it.
    #[must_use]
    pub fn secret_of(&self, account: &str) -> Option<&Path> {
        if account == DEFAULT_SPOOL_ACCOUNT {
            return Some(&self.secret);
        }
        let mut accounts = self.accounts.iter();
        let known = accounts.find(|known| known.name == account)?;
        Some(&known.secret)
    }

    /// Nodes, by their places from 0, whose connections leave this machine in clear text although
    /// nobody said so: there is no `[spool.tls]`.
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

    /// For each node the place of the first that shares a log with it, which may be its own: nodes that lose
    /// power together. Where that is not sure each has its own.
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
    /// What is shown to the other side, by nodes and gateways alike.
    pub files: CertificateFiles,
    /// A PEM file of the authorities that the other side's certificate must come from.
    pub ca: PathBuf,
}

/// Which connections to a node are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTls {
    /// With `[spool.tls]` those over addresses that are not loopback.
    Auto,
    /// All.
    Required,
    /// None.
    Off,
}

/// One node of the spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolNode {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// A second address where it listens.
    pub standby: Option<SocketAddr>,
    /// Whether it runs on another machine.
    pub remote: bool,
    /// Which connections to it are encrypted.
    pub tls: LineTls,
    /// The folder of its logs.
    pub data: PathBuf,
}

impl SpoolNode {
    /// Where it listens, the address for standby connections last.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.listen).chain(self.standby)
    }

    /// Whether it is known to run on the same machine as another one: both run here, or have the same IP
    /// address, which for a loopback address may be the end of a tunnel to anywhere.
    fn is_beside(&self, other: &Self) -> bool {
        let ip = self.listen.ip().to_canonical();
        let same = ip == other.listen.ip().to_canonical() && !ip.is_loopback();
        self.remote == other.remote && (!self.remote || same)
    }
}

/// Who of several gateways and nodes is responsible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Where groups of queues keep who their members are.
    pub register: Register,
    /// How long a gateway delivers after its last renewal.
    pub lease: Span,
    /// What a successor waits beyond it.
    pub skew: Span,
}

/// A durable compare-and-set register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Register {
    /// Synced files in a folder of this machine.
    File(PathBuf),
    /// An etcd cluster.
    Etcd(Etcd),
}

/// An etcd cluster and how it is spoken with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etcd {
    /// `http://HOST:PORT` or `https://HOST:PORT` of 1 to 16 members.
    pub endpoints: Vec<String>,
    /// What its keys begin with.
    pub prefix: String,
    /// A PEM file of authorities; those of the operating system when absent.
    pub ca: Option<PathBuf>,
    /// What is shown to members that want a certificate.
    pub certificate: Option<CertificateFiles>,
    /// The user and the file of the password.
    pub login: Option<(String, PathBuf)>,
}
