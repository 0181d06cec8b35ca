//! The settings of the server of block lists.

use std::net::SocketAddr;
use std::path::PathBuf;

use vere_units::{ByteSize, Span};

use crate::network::Networks;

/// Formats of data files, by name in `dnsbl.zone.data`.
pub const DATA_FORMATS: &[&str] = &[
    "ip4set", "ip4trie", "ip4tset", "ip6trie", "ip6tset", "dnset", "generic", "combined", "cidr",
];

/// A server of block lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dnsbl {
    /// Addresses for queries, by UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// Threads for UDP; `None` for half of the cores, at most 8.
    pub threads: Option<u32>,
    /// The zones.
    pub zones: Vec<DnsblZone>,
    /// The interval between two checks of the files for changes.
    pub check_interval: Span,
    /// The TTL of records.
    pub ttl: Span,
    /// The TTL of negative answers.
    pub negative_ttl: Span,
    /// The name servers of zones without their own; empty for the name of this machine.
    pub name_servers: Vec<String>,
    /// Whether zones without test entries get them.
    pub test_entries: bool,
    /// Bounds of the answers to addresses that may be spoofed.
    pub rate: DnsblRate,
    /// TCP connections at once.
    pub connections_max: u32,
    /// TCP connections of one address.
    pub connections_per_client_max: u32,
    /// The longest wait for a query, and for a client that does not read.
    pub idle_timeout: Span,
    /// One of so many queries is logged; 0: none.
    pub log_every: u32,
}

/// Response-rate limiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsblRate {
    /// Answers with records to a network in a second. 0: no limit.
    pub positive: u32,
    /// Answers without records to a network in a second. 0: no limit.
    pub negative: u32,
    /// Errors to a network in a second. 0: no limit.
    pub errors: u32,
    /// Octets in a second by which answers may exceed 1.25 times their queries. 0: no limit.
    pub surplus: ByteSize,
    /// One of so many limited answers leaves truncated; 0: none.
    pub slip: u32,
    /// Networks that are remembered.
    pub networks: u32,
    /// Networks without limits.
    pub exempt: Networks,
}

/// A zone and its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsblZone {
    /// The name.
    pub name: String,
    /// The data, in the order of the answers.
    pub data: Vec<DnsblData>,
}

/// Files that are one dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsblData {
    /// One of [`DATA_FORMATS`].
    pub format: String,
    /// The files.
    pub files: Vec<PathBuf>,
}

impl DnsblData {
    /// Reads `FORMAT:FILE[,FILE...]`.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (format, files) = text.split_once(':').unwrap_or((text, ""));
        if !DATA_FORMATS.contains(&format) {
            let formats = DATA_FORMATS.join(", ");
            return Err(format!("expected FORMAT:FILE with one of {formats}"));
        }
        if files.split(',').any(str::is_empty) {
            return Err("expected a file behind each colon and comma".to_owned());
        }
        Ok(Self {
            format: format.to_owned(),
            files: files.split(',').map(PathBuf::from).collect(),
        })
    }
}
