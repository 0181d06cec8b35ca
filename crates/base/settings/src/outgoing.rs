//! Delivery: to next hops, by routes, from sources.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use vere_units::{ByteSize, Secret, Span};

/// Where mail for own accounts goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalDelivery {
    /// Into a Maildir for each account.
    Maildir,
    /// To the mail store, over LMTP.
    Store,
}

/// Delivery to next hops and into mailboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Where mail for own accounts goes.
    pub local: LocalDelivery,
    /// Whether the file says so.
    pub local_is_said: bool,
    /// Where the Maildir of an account lies; holds the places `{domain}` and `{local}`, which must
    /// be filled with checked names only.
    pub maildir: String,
    /// Whether forwarded mail has a reverse-path of the alias's domain.
    pub srs: bool,
    /// Concurrent connections to a destination.
    pub connections_per_destination_max: u32,
    /// Concurrent connections to the hosts that serve one or more destinations.
    pub connections_per_site_max: u32,
    /// Connections at once to all destinations.
    pub connections_max: u32,
    /// The most octets of a message sent together with its envelope.
    pub one_round_max: ByteSize,
    /// Longest wait for a connection.
    pub connect_timeout: Span,
    /// Messages over a connection before a new connection is made.
    pub messages_per_connection_max: u32,
    /// Encryption towards next hops without a route.
    pub tls: TlsMode,
    /// Whether MTA-STS policies hold.
    pub mta_sts: bool,
    /// Whether TLSA records hold.
    pub dane: bool,
    /// The port of MTA-STS policy hosts.
    pub mta_sts_port: u16,
    /// A PEM file of roots beside those of the operating system.
    pub ca: Option<PathBuf>,
    /// The port of next hops found by MX.
    pub port: u16,
    /// Processes that find next hops and send messages; 0: the gateway does so.
    pub courier_processes: u32,
    /// The waits before the second, third, ... attempt; the last wait repeats.
    pub retry: Vec<Span>,
    /// When a message is given up and returned.
    pub expire: Span,
    /// The time after which the sender gets a delay notice.
    pub delay_notice: Span,
    /// How long the queue of a destination stays after its last message.
    pub queue_idle: Span,
    /// Reports to an address per hour; 0 for no limit.
    pub reports_per_hour_max: u32,
    /// The name of the source for next hops that no route gives another.
    pub source: Option<String>,
}

/// Limits for single destinations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationLimits {
    /// The destinations; `None` only during the check for contradictions.
    pub scope: Option<DestinationScope>,
    /// Connections at once.
    pub connections_max: Option<u32>,
    /// Messages over a connection.
    pub messages_per_connection_max: Option<u32>,
    /// Messages in a time.
    pub rate: Option<Rate>,
    /// Messages at once after a rest.
    pub burst: Option<u32>,
    /// The least time between the starts of two connections.
    pub connection_interval: Option<Span>,
    /// The priority when connections are short.
    pub priority: DestinationPriority,
    /// Whether messages are sent one at a time, in the order of acceptance.
    pub in_order: bool,
}

/// The destinations of limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DestinationScope {
    /// Domains whose mail is routed by MX.
    Domain(RoutePattern),
    /// The next hop of a route, or the mailboxes of this system.
    NextHop(NextHop),
    /// The sites of these hosts.
    Mx(RoutePattern),
}

/// The priority when connections are short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestinationPriority {
    /// Behind the others.
    Low,
    /// In turns.
    Normal,
    /// Before the others.
    High,
}

/// Messages in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// So many ...
    pub messages: u32,
    /// ... in this time.
    pub per: Span,
}

/// The source addresses and name of deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name for use in routes.
    pub name: String,
    /// The address of connections over IPv4; the system chooses when absent.
    pub ipv4: Option<Ipv4Addr>,
    /// The address of connections over IPv6; the system chooses when absent.
    pub ipv6: Option<Ipv6Addr>,
    /// The name given in EHLO, lower case.
    pub hostname: String,
}

/// How much encryption a next hop must offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// None is used.
    Off,
    /// TLS is used where offered, with any certificate.
    Opportunistic,
    /// TLS must be offered, with a certificate valid for the next hop's name.
    Required,
    /// The same from the first octet on, without STARTTLS (RFC 8314 section 3.3).
    Implicit,
}

impl TlsMode {
    /// Whether mail is sent only with a certificate valid for the next hop's name.
    #[must_use]
    pub fn is_verified(self) -> bool {
        matches!(self, Self::Required | Self::Implicit)
    }
}

/// An exception from delivery by MX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The destinations of the route.
    pub domain: RoutePattern,
    /// The next hop of the route.
    pub next_hop: NextHop,
    /// The protocol spoken there.
    pub protocol: Protocol,
    /// Encryption; `delivery.tls` when the file does not say.
    pub tls: TlsMode,
    /// The user to authenticate as; present together with the password.
    pub username: Option<String>,
    /// The password.
    pub password: Option<Secret<String>>,
    /// The file with the password in the first line.
    pub password_file: Option<PathBuf>,
    /// Whether the password may travel without TLS.
    pub password_in_clear: bool,
    /// The name of the source of the deliveries.
    pub source: Option<String>,
    /// Whether every client may send to the recipients that the next hop accepts when asked.
    pub call_ahead: bool,
}

/// The destinations of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoutePattern {
    /// `*`: every domain.
    Any,
    /// `example.org`: this domain, lower case.
    Exact(String),
    /// `.example.org`: every domain below this domain, lower case, without the dot.
    Subdomains(String),
}

impl RoutePattern {
    /// Says whether the pattern fits `domain`, which may be in any case.
    #[must_use]
    pub fn matches(&self, domain: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(own) => own.eq_ignore_ascii_case(domain),
            Self::Subdomains(parent) => {
                let (domain, parent) = (domain.as_bytes(), parent.as_bytes());
                domain.len() > parent.len() + 1
                    && domain[domain.len() - parent.len()..].eq_ignore_ascii_case(parent)
                    && domain[domain.len() - parent.len() - 1] == b'.'
            }
        }
    }
}

/// Where mail goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextHop {
    /// The hosts in the domain's MX records.
    Mx,
    /// Mailboxes of this system.
    Local,
    /// A host, without an MX lookup.
    Host {
        /// A host name, lower case, or an IP address without brackets.
        host: String,
        /// The port; `delivery.port` when the file does not say.
        port: u16,
    },
}

/// The protocol towards a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 5321.
    Smtp,
    /// RFC 2033.
    Lmtp,
}
