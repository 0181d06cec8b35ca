//! Records from name servers, by hickory-resolver.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

use super::cache::{Cache, Kept, Question};
use super::{Alias, Lookup, LookupFailure, Proof, Record as Plain, RecordKind, ResolverOptions};
use crate::tls::{Roots, Tlsa};

/// A record is asked again after a day whatever its time to live says.
const POSITIVE_TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Seconds for which an answer without records is kept where the library validates: its error does not have the time to live of the
/// SOA record.
const UNTOLD_TTL: u32 = 60;

/// Octets of a record beside the text: the value and an allocation.
const RECORD_OCTETS: usize = size_of::<Data>() + 16;

/// The data of a record that anybody asks for.
#[derive(Debug)]
enum Data {
    Plain(Plain),
    Tlsa(Tlsa),
}

impl Data {
    fn octets(&self) -> usize {
        RECORD_OCTETS
            + match self {
                Self::Plain(Plain::A(_) | Plain::Aaaa(_)) => 0,
                Self::Plain(Plain::Mx(_, name) | Plain::Ptr(name) | Plain::Srv(_, name)) => {
                    name.capacity()
                }
                Self::Plain(Plain::Caa(tag, value)) => tag.capacity() + value.capacity(),
                Self::Plain(Plain::Txt(text)) => text.capacity(),
                Self::Tlsa(tlsa) => tlsa.data.capacity(),
            }
    }
}

/// An answer with the proof.
type Answer = (Lookup<Data>, Proof);

impl Kept for Answer {
    fn octets(&self) -> usize {
        let (lookup, proof) = self;
        let records = match lookup {
            Lookup::Found(records) => records.iter().map(Data::octets).sum(),
            Lookup::None | Lookup::NoSuchName | Lookup::Failed(_) => 0,
        };
        let alias = proof.alias.as_ref().map(|alias| alias.target.capacity());
        alias.unwrap_or_default() + records
    }
}

pub(super) struct Dns {
    resolver: TokioResolver,
    timeout: Duration,
    /// A nonexistent name is looked up again soon: the zone may be under repair.
    negative_ttl_max: Duration,
    cache: Cache<Answer>,
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
            negative_ttl_max: options.negative_ttl_max,
            cache: Cache::new(options.cache_octets_max),
        })
    }

    pub(super) async fn mx(&self, domain: &str) -> (Lookup<(u16, String)>, Proof) {
        self.lookup(domain, RecordType::MX, |data| match data {
            Data::Plain(Plain::Mx(preference, host)) => Some((*preference, host.clone())),
            _ => None,
        })
        .await
    }

    /// IPv6 and IPv4 addresses, looked up at the same time.
    pub(super) async fn addresses(&self, host: &str) -> [(Lookup<IpAddr>, Proof); 2] {
        let (v6, v4) = tokio::join!(
            self.lookup(host, RecordType::AAAA, |data| match data {
                Data::Plain(Plain::Aaaa(address)) => Some(IpAddr::V6(*address)),
                _ => None,
            }),
            self.lookup(host, RecordType::A, |data| match data {
                Data::Plain(Plain::A(address)) => Some(IpAddr::V4(*address)),
                _ => None,
            })
        );
        [v6, v4]
    }

    pub(super) async fn txt(&self, name: &str) -> Lookup<String> {
        let found = self.lookup(name, RecordType::TXT, |data| match data {
            Data::Plain(Plain::Txt(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        });
        found.await.0
    }

    /// The records, and for how long the answer may be kept.
    pub(super) async fn records(&self, name: &str, kind: RecordKind) -> (Lookup<Plain>, Duration) {
        let pick = |data: &Data| match data {
            Data::Plain(record) => Some(record.clone()),
            Data::Tlsa(_) => None,
        };
        let (lookup, _, until) = self.lookup_until(name, type_of(kind), pick).await;
        (lookup, until.saturating_duration_since(Instant::now()))
    }

    pub(super) async fn tlsa(&self, name: &str) -> (Lookup<Tlsa>, Proof) {
        self.lookup(name, RecordType::TLSA, |data| match data {
            Data::Tlsa(tlsa) => Some(tlsa.clone()),
            Data::Plain(_) => None,
        })
        .await
    }

    /// Looks up records of a type.
    async fn lookup<T>(
        &self,
        name: &str,
        record: RecordType,
        pick: impl Fn(&Data) -> Option<T>,
    ) -> (Lookup<T>, Proof) {
        let (lookup, proof, _) = self.lookup_until(name, record, pick).await;
        (lookup, proof)
    }

    /// Looks up records of a type; with the end of the answer's life.
    async fn lookup_until<T>(
        &self,
        name: &str,
        record: RecordType,
        pick: impl Fn(&Data) -> Option<T>,
    ) -> (Lookup<T>, Proof, Instant) {
        let now = Instant::now();
        // A text that is no DNS name cannot exist in the DNS.
        let Some(name) = query_name(name) else {
            return (Lookup::NoSuchName, Proof::default(), now);
        };
        let question = (name, record);
        let (answer, until) = match self.cache.find(&question, now) {
            Some(known) => known,
            None => self.ask(question).await,
        };
        let (lookup, proof) = &*answer;
        let lookup = match lookup {
            Lookup::Found(found) => Lookup::Found(found.iter().filter_map(pick).collect()),
            Lookup::None => Lookup::None,
            Lookup::NoSuchName => Lookup::NoSuchName,
            Lookup::Failed(failure) => Lookup::Failed(failure.clone()),
        };
        (lookup, proof.clone(), until)
    }

    /// Asks the name servers, and keeps the answer for the time to live, whose end comes with the answer.
    async fn ask(&self, question: Question) -> (Arc<Answer>, Instant) {
        let (name, record) = &question;
        let asked = timeout(self.timeout, self.resolver.lookup(name.clone(), *record)).await;
        let now = Instant::now();
        let (answer, until) = match asked {
            Err(_) => (failure(LookupFailure::Timeout), now),
            Ok(Err(error)) => {
                let validates = self.resolver.options().validate;
                let life = negative_life(&error, validates).min(self.negative_ttl_max);
                (failed(&error), now + life)
            }
            Ok(Ok(answer)) => {
                let proof = proof(name, answer.answers());
                // Records of other types are the aliases on the way, which the proof covers, and signatures.
                let of_type = |one: &&Record| one.record_type() == *record;
                let records = answer.answers().iter().filter(of_type);
                let mut found: Vec<Data> = records.filter_map(|one| data(&one.data)).collect();
                found.shrink_to_fit();
                let lookup = match found.is_empty() {
                    true => Lookup::None,
                    false => Lookup::Found(found),
                };
                let until = answer.valid_until().min(now + POSITIVE_TTL_MAX);
                ((lookup, proof), until)
            }
        };
        let answer = Arc::new(answer);
        self.cache.keep(question, &answer, (now, until));
        (answer, until)
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
        RecordKind::Caa => RecordType::CAA,
        RecordKind::Srv => RecordType::SRV,
    }
}

fn data(data: &RData) -> Option<Data> {
    let plain = match data {
        RData::A(address) => Plain::A(address.0),
        RData::AAAA(address) => Plain::Aaaa(address.0),
        RData::MX(mx) => Plain::Mx(mx.preference, host_name(&mx.exchange)),
        RData::PTR(name) => Plain::Ptr(host_name(name)),
        RData::TXT(txt) => Plain::Txt(txt.txt_data.concat()),
        RData::CAA(caa) => Plain::Caa(
            caa.tag.to_ascii_lowercase(),
            String::from_utf8_lossy(&caa.value).into_owned(),
        ),
        RData::SRV(srv) => Plain::Srv(srv.port, host_name(&srv.target)),
        RData::TLSA(tlsa) => {
            return Some(Data::Tlsa(Tlsa {
                usage: tlsa.cert_usage.into(),
                selector: tlsa.selector.into(),
                matching: tlsa.matching.into(),
                data: tlsa.cert_data.clone(),
            }));
        }
        _ => return None,
    };
    Some(Data::Plain(plain))
}

fn with_port(mut connection: ConnectionConfig, port: u16) -> ConnectionConfig {
    connection.port = port;
    connection
}

fn tune(resolver: &mut ResolverOpts, options: &ResolverOptions) {
    resolver.timeout = options.query_timeout;
    resolver.attempts = 2;
    // The library's cache is bounded by answers, not by octets; `Cache` takes its place.
    resolver.cache_size = 0;
    resolver.positive_max_ttl = Some(POSITIVE_TTL_MAX);
    resolver.negative_max_ttl = Some(options.negative_ttl_max);
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

const fn failure(why: LookupFailure) -> Answer {
    (
        Lookup::Failed(why),
        Proof {
            secure: false,
            alias: None,
        },
    )
}

/// Whether an answer without records says that there are none.
const fn is_absence(code: ResponseCode) -> bool {
    matches!(code, ResponseCode::NoError | ResponseCode::NXDomain)
}

/// How long an answer without records is kept (RFC 2308 section 5). A failure is not kept.
fn negative_life(error: &NetError, validates: bool) -> Duration {
    let seconds = match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) if is_absence(none.response_code) => none
            .negative_ttl
            .unwrap_or(if validates { UNTOLD_TTL } else { 0 }),
        NetError::Dns(DnsError::Nsec {
            response, proof, ..
        }) if proof.is_insecure() && is_absence(response.response_code) => UNTOLD_TTL,
        _ => 0,
    };
    Duration::from_secs(seconds.into())
}

fn failed(error: &NetError) -> Answer {
    let lookup = match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NoError => Lookup::None,
            ResponseCode::NXDomain => Lookup::NoSuchName,
            code => return failure(LookupFailure::Code(code.into())),
        },
        NetError::Dns(DnsError::ResponseCode(code)) => {
            return failure(LookupFailure::Code((*code).into()));
        }
        NetError::Dns(DnsError::DnssecBogus) => return failure(LookupFailure::Bogus),
        // A proven absence comes as an answer without records; here it could not be proven, or the name
        // lies in a part of the tree that is not signed.
        NetError::Dns(DnsError::Nsec {
            response, proof, ..
        }) if proof.is_insecure() => match response.response_code {
            ResponseCode::NXDomain => Lookup::NoSuchName,
            _ => Lookup::None,
        },
        NetError::Dns(DnsError::Nsec { .. }) => return failure(LookupFailure::Bogus),
        NetError::Timeout => return failure(LookupFailure::Timeout),
        other => return failure(LookupFailure::Server(other.to_string())),
    };
    (lookup, Proof::default())
}

#[cfg(test)]
mod tests {
    use hickory_resolver::net::NoRecords;
    use hickory_resolver::proto::op::Query;

    use super::*;

    #[test]
    fn a_kept_answer_counts_all_its_octets() {
        let of = |records| (Lookup::Found(records), Proof::default()).octets();
        let one = of(vec![Data::Plain(Plain::Txt(vec![b'x'; 60_000]))]);
        assert!((60_000..60_200).contains(&one), "{one}");
        let address = |_| Data::Plain(Plain::A([192, 0, 2, 1].into()));
        let many = of((0..4_000).map(address).collect());
        assert!(many >= 4_000 * size_of::<Data>(), "{many}");
    }

    #[test]
    fn a_failure_is_not_kept_and_an_absence_is() {
        let life = |code, ttl, validates| {
            let mut none = NoRecords::new(Query::new(), code);
            none.negative_ttl = ttl;
            let error = NetError::Dns(DnsError::NoRecordsFound(none));
            negative_life(&error, validates).as_secs()
        };
        for (code, ttl, validates, seconds) in [
            (ResponseCode::NoError, Some(30), false, 30),
            (ResponseCode::NXDomain, Some(3_600), true, 3_600),
            (ResponseCode::NXDomain, None, false, 0),
            (ResponseCode::NXDomain, None, true, 60),
            (ResponseCode::ServFail, Some(30), false, 0),
            (ResponseCode::Refused, None, true, 0),
        ] {
            assert_eq!(life(code, ttl, validates), seconds, "{code} {ttl:?}");
        }
    }

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
