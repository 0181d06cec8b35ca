//! Records from name servers, by hickory-resolver.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::dnssec::TrustAnchors;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::time::timeout;

use super::{Alias, Lookup, LookupFailure, Proof, Record as Plain, RecordKind, ResolverOptions};
use crate::tls::{Roots, Tlsa};

/// A record is asked again after a day whatever its time to live says.
const POSITIVE_TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// A nonexistent name is looked up again soon: the zone may be under repair.
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(10 * 60);

pub(super) struct Dns {
    resolver: TokioResolver,
    timeout: Duration,
}

impl std::fmt::Debug for Dns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dns")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Dns {
    /// Fails with the reason when there is no usable configuration.
    pub(super) fn new(options: &ResolverOptions) -> Result<Self, String> {
        let text = |error: NetError| error.to_string();
        let mut builder = if options.servers.is_empty() {
            TokioResolver::builder_tokio().map_err(text)?
        } else {
            let servers = options.servers.iter().map(|server| {
                let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()]
                    .map(|connection| with_port(connection, server.port()));
                NameServerConfig::new(server.ip(), true, connections.into())
            });
            let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        // Name servers are asked in clear text. The library would load roots even without need, and fail on a
        // machine without roots.
        let no_roots = Roots::none().client_config();
        builder = builder.with_tls_config(no_roots.map_err(|error| error.to_string())?);
        tune(builder.options_mut(), options);
        if options.dnssec {
            builder.options_mut().validate = true;
            if let Some(path) = &options.trust_anchor {
                let anchors = TrustAnchors::from_file(path);
                let anchors = anchors.map_err(|error| format!("{}: {error}", path.display()))?;
                builder = builder.with_trust_anchor(Arc::new(anchors));
            }
        }
        let resolver = builder.build().map_err(text)?;
        Ok(Self {
            resolver,
            timeout: options.timeout,
        })
    }

    pub(super) async fn mx(&self, domain: &str) -> (Lookup<(u16, String)>, Proof) {
        self.lookup(domain, RecordType::MX, |data| match data {
            RData::MX(mx) => Some((mx.preference, host_name(&mx.exchange))),
            _ => None,
        })
        .await
    }

    /// IPv6 and IPv4 addresses, looked up at the same time.
    pub(super) async fn addresses(&self, host: &str) -> [(Lookup<IpAddr>, Proof); 2] {
        let (v6, v4) = tokio::join!(
            self.lookup(host, RecordType::AAAA, |data| match data {
                RData::AAAA(address) => Some(IpAddr::V6(address.0)),
                _ => None,
            }),
            self.lookup(host, RecordType::A, |data| match data {
                RData::A(address) => Some(IpAddr::V4(address.0)),
                _ => None,
            })
        );
        [v6, v4]
    }

    pub(super) async fn txt(&self, name: &str) -> Lookup<String> {
        let found = self.lookup(name, RecordType::TXT, |data| match data {
            RData::TXT(txt) => Some(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned()),
            _ => None,
        });
        found.await.0
    }

    pub(super) async fn records(&self, name: &str, kind: RecordKind) -> Lookup<Plain> {
        let found = self.lookup(name, type_of(kind), |data| plain(data, kind));
        found.await.0
    }

    pub(super) async fn tlsa(&self, name: &str) -> (Lookup<Tlsa>, Proof) {
        self.lookup(name, RecordType::TLSA, |data| match data {
            RData::TLSA(tlsa) => Some(Tlsa {
                usage: tlsa.cert_usage.into(),
                selector: tlsa.selector.into(),
                matching: tlsa.matching.into(),
                data: tlsa.cert_data.clone(),
            }),
            _ => None,
        })
        .await
    }

    /// Looks up records of a type; `pick` skips the CNAME records on the way, which the proof covers.
    async fn lookup<T>(
        &self,
        name: &str,
        record: RecordType,
        pick: impl Fn(&RData) -> Option<T>,
    ) -> (Lookup<T>, Proof) {
        // A text that is no DNS name cannot exist in the DNS.
        let Some(name) = query_name(name) else {
            return (Lookup::NoSuchName, Proof::default());
        };
        match timeout(self.timeout, self.resolver.lookup(name.clone(), record)).await {
            Err(_) => (Lookup::Failed(LookupFailure::Timeout), Proof::default()),
            Ok(Err(error)) => (failed(&error), Proof::default()),
            Ok(Ok(answer)) => {
                let proof = proof(&name, answer.answers());
                let found: Vec<T> = answer
                    .answers()
                    .iter()
                    .filter_map(|record| pick(&record.data))
                    .collect();
                if found.is_empty() {
                    (Lookup::None, proof)
                } else {
                    (Lookup::Found(found), proof)
                }
            }
        }
    }
}

/// The DNSSEC proof of an answer.
fn proof(asked: &Name, answers: &[Record]) -> Proof {
    let is_signature = |record: &&Record| record.record_type() != RecordType::RRSIG;
    let mut records = answers.iter().filter(is_signature).peekable();
    let mut proof = Proof {
        secure: records.peek().is_some(),
        alias: None,
    };
    let mut name = asked.clone();
    for record in records {
        let secure = record.proof.is_secure();
        proof.secure &= secure;
        if let RData::CNAME(target) = &record.data
            && record.name == name
        {
            let first = proof.alias.get_or_insert(Alias {
                target: String::new(),
                secure,
            });
            name = target.0.clone();
            first.target = host_name(&name);
        }
    }
    proof
}

const fn type_of(kind: RecordKind) -> RecordType {
    match kind {
        RecordKind::A => RecordType::A,
        RecordKind::Aaaa => RecordType::AAAA,
        RecordKind::Mx => RecordType::MX,
        RecordKind::Ptr => RecordType::PTR,
        RecordKind::Txt => RecordType::TXT,
    }
}

fn plain(data: &RData, kind: RecordKind) -> Option<Plain> {
    match (data, kind) {
        (RData::A(address), RecordKind::A) => Some(Plain::A(address.0)),
        (RData::AAAA(address), RecordKind::Aaaa) => Some(Plain::Aaaa(address.0)),
        (RData::MX(mx), RecordKind::Mx) => Some(Plain::Mx(mx.preference, host_name(&mx.exchange))),
        (RData::PTR(name), RecordKind::Ptr) => Some(Plain::Ptr(host_name(name))),
        (RData::TXT(text), RecordKind::Txt) => Some(Plain::Txt(text.txt_data.concat())),
        _ => None,
    }
}

fn with_port(mut connection: ConnectionConfig, port: u16) -> ConnectionConfig {
    connection.port = port;
    connection
}

fn tune(resolver: &mut ResolverOpts, options: &ResolverOptions) {
    resolver.timeout = options.query_timeout;
    resolver.attempts = 2;
    resolver.cache_size = options.cache_entries_max;
    resolver.positive_max_ttl = Some(POSITIVE_TTL_MAX);
    resolver.negative_max_ttl = Some(NEGATIVE_TTL_MAX);
    // Beside random ids and ports, random case makes forged answers harder.
    resolver.case_randomization = true;
    resolver.try_tcp_on_error = true;
    if !options.servers.is_empty() {
        resolver.use_hosts_file = ResolveHosts::Never;
    }
}

/// The name as a question, never completed by a search list.
fn query_name(name: &str) -> Option<Name> {
    let parsed = if name.is_ascii() {
        // Octets as they are: macros of SPF put local parts into names.
        let name = name.strip_suffix('.').unwrap_or(name);
        Name::from_labels(name.split('.').map(str::as_bytes))
    } else {
        Name::from_utf8(name)
    };
    let mut parsed = parsed.ok().filter(|parsed| parsed.num_labels() > 0)?;
    parsed.set_fqdn(true);
    Some(parsed)
}

/// The name as text without the trailing dot; empty for the root.
fn host_name(name: &Name) -> String {
    let mut text = name.to_lowercase().to_ascii();
    if text.ends_with('.') {
        text.pop();
    }
    text
}

fn failed<T>(error: &NetError) -> Lookup<T> {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NoError => Lookup::None,
            ResponseCode::NXDomain => Lookup::NoSuchName,
            code => Lookup::Failed(LookupFailure::Code(code.into())),
        },
        NetError::Dns(DnsError::ResponseCode(code)) => {
            Lookup::Failed(LookupFailure::Code((*code).into()))
        }
        NetError::Dns(DnsError::DnssecBogus) => Lookup::Failed(LookupFailure::Bogus),
        // A proven absence comes as an answer without records; here it could not be proven, or the name
        // lies in a part of the tree that is not signed.
        NetError::Dns(DnsError::Nsec {
            response, proof, ..
        }) if proof.is_insecure() => match response.response_code {
            ResponseCode::NXDomain => Lookup::NoSuchName,
            _ => Lookup::None,
        },
        NetError::Dns(DnsError::Nsec { .. }) => Lookup::Failed(LookupFailure::Bogus),
        NetError::Timeout => Lookup::Failed(LookupFailure::Timeout),
        other => Lookup::Failed(LookupFailure::Server(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::query_name;

    /// Macros of SPF (RFC 7208 section 7) put local parts and address literals into names.
    #[test]
    fn names_have_the_octets_of_their_text() {
        for (name, first) in [
            ("ann+tag.example", Some("ann+tag")),
            ("srs0=x=y.example.", Some("srs0=x=y")),
            ("a@b.example", Some("a@b")),
            ("[192.0.2.1].example", Some("[192")),
            (r"a\032.example", Some(r"a\032")),
            ("-x.example", Some("-x")),
            ("b\u{fc}cher.example", Some("xn--bcher-kva")),
            ("", None),
            (".", None),
            ("a..example", None),
        ] {
            let asked = query_name(name);
            let label = asked.as_ref().and_then(|name| name.iter().next());
            assert_eq!(label, first.map(str::as_bytes), "{name}");
        }
        assert!(query_name(&"a".repeat(64)).is_none());
    }
}
