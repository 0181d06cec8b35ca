//! Names to next hops: MX (RFC 5321 section 5.1, RFC 7505), address and TXT records.
//!
//! [`Resolver`] asks name servers, or answers from a zone file without asking anybody, for tests
//! and demonstrations. Answers are cached by their time to live in bounded memory. Every answer
//! says whether a failure is final, so that a queue knows whether to try again.
//!
//! With [`ResolverOptions::dnssec`] every answer from name servers is validated (RFC 4035): failed
//! validation is a temporary failure, and [`Resolver::exchangers`], [`Resolver::hosts`] and
//! [`Resolver::tlsa`] return the proof. Answers from a zone file are not proven.
//!
//! Not covered: encrypted DNS, service records.

mod cache;
mod dns;
mod records;
mod zone;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dns::Dns;
pub use records::{Record, RecordKind, reverse_name};
use tokio::task::JoinSet;
pub use zone::{Zone, ZoneError};

use crate::tls::Tlsa;

/// Hosts kept of one MX answer, after ordering: more is an attack or a mistake.
pub const MX_HOSTS_MAX: usize = 32;
/// The most addresses kept of a host.
pub const ADDRESSES_MAX: usize = 32;
/// The most strings kept of a TXT answer.
pub const TXT_STRINGS_MAX: usize = 64;
/// The most records kept of an answer without a separate meaning.
pub const RECORDS_MAX: usize = 1_024;

/// The sources and time limits of the resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverOptions {
    /// The name servers; empty for the servers in `/etc/resolv.conf`.
    pub servers: Vec<SocketAddr>,
    /// A zone file; when given, no network is asked.
    pub zone: Option<PathBuf>,
    /// Whether answers are validated by DNSSEC; the name servers must pass its records on.
    pub dnssec: bool,
    /// A file of DNSKEY records as trust anchors; the anchors of the root zone if absent.
    pub trust_anchor: Option<PathBuf>,
    /// The longest wait for an answer of a server. Default 5 s.
    pub query_timeout: Duration,
    /// The longest wait for all lookups of a call. Default 20 s.
    pub timeout: Duration,
    /// The most octets of answers kept. Default 8 MiB; 0 keeps none.
    pub cache_octets_max: usize,
    /// The longest time to live of an answer without records. Default 10 minutes.
    pub negative_ttl_max: Duration,
}

impl Default for ResolverOptions {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            zone: None,
            dnssec: false,
            trust_anchor: None,
            query_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(20),
            cache_octets_max: 8 << 20,
            negative_ttl_max: Duration::from_secs(10 * 60),
        }
    }
}

/// Why there is no resolver: a matter of configuration.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    /// The zone file cannot be used.
    #[error("{0}")]
    Zone(#[source] ZoneError),
    /// `/etc/resolv.conf` or the trust anchor cannot be used; the text says why.
    #[error("cannot use the name servers (/etc/resolv.conf) or the trust anchor: {0}")]
    System(String),
}

/// The reason for a temporary failure; a retry may succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupFailure {
    /// No server answered in time.
    Timeout,
    /// A server answered with this code (RFC 1035 section 4.1.1, 2 is SERVFAIL).
    Code(u16),
    /// No server could be reached, or the answer was no DNS; the text has the details.
    Server(String),
    /// The answer is signed and the signature wrong, or should be signed and is not.
    Bogus,
}

impl fmt::Display for LookupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bogus => f.write_str("the answer fails DNSSEC validation"),
            Self::Timeout => f.write_str("no name server answered in time"),
            Self::Code(2) => f.write_str("the name server answered SERVFAIL"),
            Self::Code(5) => f.write_str("the name server answered REFUSED"),
            Self::Code(code) => write!(f, "the name server answered with code {code}"),
            Self::Server(text) => write!(f, "no usable answer from a name server: {text}"),
        }
    }
}

/// The mail exchangers of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MxAnswer {
    /// Preference and host, in the order to be tried: the lowest preference first, hosts of equal
    /// preference in random order (RFC 5321 section 5.1). Names have no trailing dot.
    Hosts(Vec<(u16, String)>),
    /// The domain takes no mail (RFC 7505).
    NullMx,
    /// The domain exists and has no MX record: its address records are the implicit exchanger.
    None,
    /// The domain does not exist: permanent.
    NoSuchDomain,
    /// The lookup failed temporarily.
    TempFail(LookupFailure),
}

/// The addresses of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressAnswer {
    /// At least one address; IPv6 before IPv4.
    Found(Vec<IpAddr>),
    /// The name exists, without an address: permanent.
    None,
    /// The name does not exist: permanent.
    NoSuchName,
    /// The lookup failed temporarily.
    TempFail(LookupFailure),
}

/// The text records of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxtAnswer {
    /// The strings of each record, joined; octets outside UTF-8 are replaced.
    Found(Vec<String>),
    /// The name exists, without a text record.
    None,
    /// The name does not exist.
    NoSuchName,
    /// The lookup failed temporarily.
    TempFail(LookupFailure),
}

/// The records of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordsAnswer {
    /// At least one, in no certain order.
    Found(Vec<Record>),
    /// The name exists, without such records.
    None,
    /// The name does not exist.
    NoSuchName,
    /// The lookup failed temporarily.
    TempFail(LookupFailure),
}

/// The addresses of a host, with the DNSSEC proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAnswer {
    /// Its addresses.
    pub addresses: AddressAnswer,
    /// Names below which TLSA records of the host may lie, to be tried in order (RFC 7672 section 2.2.2);
    /// empty for unproven addresses, which rule out proven TLSA records.
    pub tlsa_bases: Vec<String>,
}

/// The TLSA records of a port of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsaAnswer {
    /// Proven ones.
    Found(Vec<Tlsa>),
    /// No proven records exist.
    None,
    /// The lookup failed temporarily; RFC 7672 section 2.1.1: no mail may be sent to the host.
    TempFail(LookupFailure),
}

/// The DNSSEC proof of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Proof {
    /// All of it.
    secure: bool,
    /// The name is an alias of another name.
    alias: Option<Alias>,
}

/// Where a CNAME chain leads.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Alias {
    /// Its end.
    target: String,
    /// Whether the first step is proven.
    secure: bool,
}

/// The answer of a source for one name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Lookup<T> {
    Found(Vec<T>),
    None,
    NoSuchName,
    Failed(LookupFailure),
}

/// Answers questions about names; clones share the cache.
#[derive(Clone, Debug)]
pub struct Resolver {
    source: Arc<Source>,
}

#[derive(Debug)]
enum Source {
    Dns(Box<Dns>),
    Zone(Zone),
}

impl Resolver {
    /// Makes a resolver without any lookup.
    ///
    /// # Errors
    /// The zone file or the system's list of name servers cannot be used.
    pub fn new(options: &ResolverOptions) -> Result<Self, ResolverError> {
        let source = match &options.zone {
            Some(path) => Source::Zone(Zone::load(path).map_err(ResolverError::Zone)?),
            None => Source::Dns(Box::new(Dns::new(options).map_err(ResolverError::System)?)),
        };
        Ok(Self {
            source: Arc::new(source),
        })
    }

    /// A resolver that answers from `zone`.
    #[must_use]
    pub fn from_zone(zone: Zone) -> Self {
        Self {
            source: Arc::new(Source::Zone(zone)),
        }
    }

    /// The path of the zone file, if any, for the log.
    #[must_use]
    pub fn zone_file(&self) -> Option<&Path> {
        match &*self.source {
            Source::Zone(zone) => zone.path(),
            Source::Dns(_) => None,
        }
    }

    /// The mail exchangers of `domain` (A-labels or U-labels, with or without trailing dot).
    pub async fn mx(&self, domain: &str) -> MxAnswer {
        self.exchangers(domain).await.0
    }

    /// The mail exchangers of a domain, and whether DNSSEC proves the answer. The absence of MX records
    /// counts as proven: the address records must then be proven.
    pub async fn exchangers(&self, domain: &str) -> (MxAnswer, bool) {
        let (lookup, proof) = match &*self.source {
            Source::Dns(dns) => dns.mx(domain).await,
            Source::Zone(zone) => (zone.mx(domain), Proof::default()),
        };
        match lookup {
            Lookup::Found(hosts) => (exchangers(hosts), proof.secure),
            Lookup::None => (MxAnswer::None, true),
            Lookup::NoSuchName => (MxAnswer::NoSuchDomain, proof.secure),
            Lookup::Failed(failure) => (MxAnswer::TempFail(failure), false),
        }
    }

    /// The TLSA records of a port of a host, if DNSSEC proves them.
    pub async fn tlsa(&self, base: &str, port: u16) -> TlsaAnswer {
        match self.tlsa_with_proof(base, port).await {
            (TlsaAnswer::Found(_), false) => TlsaAnswer::None,
            (answer, _) => answer,
        }
    }

    /// The TLSA records of a port of a host, and whether DNSSEC proves them: for checks, since senders must not use
    /// records without proof.
    pub async fn tlsa_with_proof(&self, base: &str, port: u16) -> (TlsaAnswer, bool) {
        let Source::Dns(dns) = &*self.source else {
            return (TlsaAnswer::None, false);
        };
        match dns.tlsa(&format!("_{port}._tcp.{base}")).await {
            (Lookup::Found(records), proof) => (TlsaAnswer::Found(records), proof.secure),
            (Lookup::Failed(failure), _) => (TlsaAnswer::TempFail(failure), false),
            _ => (TlsaAnswer::None, false),
        }
    }

    /// The addresses of `host`.
    pub async fn addresses(&self, host: &str) -> AddressAnswer {
        self.host(host).await.addresses
    }

    /// The addresses of `host`, with the DNSSEC proof.
    pub async fn host(&self, host: &str) -> HostAnswer {
        match &*self.source {
            Source::Dns(dns) => {
                let [(v6, v6_proof), (v4, v4_proof)] = dns.addresses(host).await;
                let mut tlsa_bases = Vec::new();
                for (lookup, proof) in [(&v6, v6_proof), (&v4, v4_proof)] {
                    if matches!(lookup, Lookup::Found(_)) {
                        add_bases(&mut tlsa_bases, host, proof);
                    }
                }
                HostAnswer {
                    addresses: both_families((v6, v4)),
                    tlsa_bases,
                }
            }
            Source::Zone(zone) => HostAnswer {
                addresses: both_families(zone.addresses(host)),
                tlsa_bases: Vec::new(),
            },
        }
    }

    /// Several hosts, asked for at the same time; answers in the order of `names`.
    pub async fn hosts(&self, names: Vec<String>) -> Vec<HostAnswer> {
        let lost = |_: &String| HostAnswer {
            addresses: AddressAnswer::TempFail(LookupFailure::Server("lookup ended".to_owned())),
            tlsa_bases: Vec::new(),
        };
        let mut answers: Vec<HostAnswer> = names.iter().map(lost).collect();
        let mut asking = JoinSet::new();
        for (place, name) in names.into_iter().enumerate() {
            let resolver = self.clone();
            asking.spawn(async move { (place, resolver.host(&name).await) });
        }
        while let Some(answered) = asking.join_next().await {
            if let Ok((place, answer)) = answered {
                answers[place] = answer;
            }
        }
        answers
    }

    /// The records of a type.
    pub async fn records(&self, name: &str, kind: RecordKind) -> RecordsAnswer {
        self.records_with_ttl(name, kind).await.0
    }

    /// The records of a type, and the time for which the answer may be kept: the rest of its time to live, for an absence that of
    /// RFC 2308 section 5. The time is zero for a failure, and for answers from a zone file.
    pub async fn records_with_ttl(
        &self,
        name: &str,
        kind: RecordKind,
    ) -> (RecordsAnswer, Duration) {
        let (lookup, ttl) = match &*self.source {
            Source::Dns(dns) => dns.records(name, kind).await,
            Source::Zone(zone) => (zone.records(name, kind), Duration::ZERO),
        };
        let answer = match lookup {
            Lookup::Found(mut records) => {
                records.truncate(RECORDS_MAX);
                RecordsAnswer::Found(records)
            }
            Lookup::None => RecordsAnswer::None,
            Lookup::NoSuchName => RecordsAnswer::NoSuchName,
            Lookup::Failed(failure) => RecordsAnswer::TempFail(failure),
        };
        (answer, ttl)
    }

    /// The text records of `name`.
    pub async fn txt(&self, name: &str) -> TxtAnswer {
        let lookup = match &*self.source {
            Source::Dns(dns) => dns.txt(name).await,
            Source::Zone(zone) => zone.txt(name),
        };
        match lookup {
            Lookup::Found(mut texts) => {
                texts.truncate(TXT_STRINGS_MAX);
                TxtAnswer::Found(texts)
            }
            Lookup::None => TxtAnswer::None,
            Lookup::NoSuchName => TxtAnswer::NoSuchName,
            Lookup::Failed(failure) => TxtAnswer::TempFail(failure),
        }
    }
}

/// RFC 7672 section 2.2.2: the end of a chain of aliases comes first, and counts only when all of the chain
/// is proven; the name itself counts when at least its own record is.
fn add_bases(bases: &mut Vec<String>, host: &str, proof: Proof) {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let (end, own) = match proof.alias {
        Some(alias) => (proof.secure.then_some(alias.target), alias.secure),
        None => (None, proof.secure),
    };
    for base in end.into_iter().chain(own.then_some(host)) {
        if !bases.contains(&base) {
            bases.push(base);
        }
    }
}

/// Orders the hosts of MX records; the root as host means that no mail is taken.
fn exchangers(mut hosts: Vec<(u16, String)>) -> MxAnswer {
    if hosts.iter().all(|(_, host)| host.is_empty()) {
        return MxAnswer::NullMx;
    }
    // RFC 7505 section 3: a null MX beside other records is a mistake, and the other records apply.
    hosts.retain(|(_, host)| !host.is_empty());
    // A keyed hash is random enough to spread load, and needs no generator.
    let random = std::hash::RandomState::new();
    hosts.sort_by_cached_key(|(preference, host)| {
        (*preference, std::hash::BuildHasher::hash_one(&random, host))
    });
    hosts.dedup();
    hosts.truncate(MX_HOSTS_MAX);
    MxAnswer::Hosts(hosts)
}

fn both_families((v6, v4): (Lookup<IpAddr>, Lookup<IpAddr>)) -> AddressAnswer {
    let mut found = Vec::new();
    let mut failure = None;
    let mut missing = 0;
    for lookup in [v6, v4] {
        match lookup {
            Lookup::Found(addresses) => found.extend(addresses),
            Lookup::None => {}
            Lookup::NoSuchName => missing += 1,
            Lookup::Failed(why) => failure = Some(why),
        }
    }
    found.truncate(ADDRESSES_MAX);
    match failure {
        // Addresses of a single family are enough for delivery.
        _ if !found.is_empty() => AddressAnswer::Found(found),
        Some(failure) => AddressAnswer::TempFail(failure),
        None if missing == 2 => AddressAnswer::NoSuchName,
        None => AddressAnswer::None,
    }
}

#[cfg(test)]
mod tests;
