//! DANE: the TLSA records of the host, with proof, and the certificate of the host (RFC 7672).

use vere_net::resolver::{LookupFailure, Resolver, TlsaAnswer, TxtAnswer};
use vere_net::tls::{Dane, Tlsa};

use super::served::{Unseen, shown_by_host};
use super::subject::{Subject, listed};
use crate::row::Row;

const CHECK: &str = "dane";
/// A name below the signed root zone, to see whether proofs arrive.
const PROVEN: &str = "com";

/// The facts for senders with DANE.
#[derive(Debug, Clone)]
struct Seen {
    domain: String,
    host: String,
    port: u16,
    /// Whether the MX records of the domain are proven.
    mx: bool,
    /// Whether the addresses of the host are proven.
    addresses: bool,
    records: Vec<Tlsa>,
    /// Whether the records are proven.
    proven: bool,
    /// The certificates of the host; `None` without connections.
    chain: Option<Result<Vec<Vec<u8>>, Unseen>>,
    /// Whether each renewal of the certificate brings a new key.
    new_keys: bool,
}

/// Looks at the records with proofs, whether or not the settings ask for proofs of other systems.
pub(super) async fn rows(subject: &Subject, connect: bool) -> Vec<Row> {
    let (host, port) = (&subject.hostname, subject.mail_port);
    let Some(resolver) = &subject.validating else {
        return Vec::new();
    };
    if let Err(failure) = proofs_arrive(resolver).await {
        let (plain, _) = subject.resolver.tlsa_with_proof(host, port).await;
        return vec![unproven(&name(host, port), &plain, &failure)];
    }
    let (_, mx) = resolver.exchangers(&subject.domain).await;
    let addresses = resolver.host(host).await;
    let (answer, proven) = resolver.tlsa_with_proof(host, port).await;
    let records = match answer {
        TlsaAnswer::Found(records) => records,
        TlsaAnswer::None => Vec::new(),
        TlsaAnswer::TempFail(failure) => return vec![unanswered(&name(host, port), &failure)],
    };
    let chain = match connect && !records.is_empty() {
        true => Some(shown_by_host(subject).await),
        false => None,
    };
    vec![judged(&Seen {
        domain: subject.domain.clone(),
        host: host.clone(),
        port,
        mx,
        addresses: !addresses.tlsa_bases.is_empty(),
        records,
        proven,
        chain,
        new_keys: subject.authority.is_some(),
    })]
}

fn name(host: &str, port: u16) -> String {
    format!("_{port}._tcp.{host}")
}

/// Whether the name servers pass signatures on.
async fn proofs_arrive(resolver: &Resolver) -> Result<(), LookupFailure> {
    match resolver.txt(PROVEN).await {
        TxtAnswer::TempFail(failure) => Err(failure),
        TxtAnswer::Found(_) | TxtAnswer::None | TxtAnswer::NoSuchName => Ok(()),
    }
}

/// The result without proofs.
fn unproven(name: &str, plain: &TlsaAnswer, failure: &LookupFailure) -> Row {
    match plain {
        TlsaAnswer::Found(_) => Row::warning(
            CHECK,
            format!("{name} has records, and their proof cannot be checked: {failure}"),
            "ask name servers that pass DNSSEC on, such as unbound on this machine: [resolver] servers",
        ),
        _ => Row::ok(
            CHECK,
            format!("not checked: DNSSEC does not get here: {failure}"),
        ),
    }
}

/// The fault of name servers without answers about TLSA records: RFC 7672 section 2.1.1.
fn unanswered(name: &str, failure: &LookupFailure) -> Row {
    Row::critical(
        CHECK,
        format!("{name} cannot be looked up, so that senders with DANE deliver nothing: {failure}"),
        "see that the name servers answer queries for TLSA and that the signatures are fresh, with: delv TLSA",
    )
}

fn judged(seen: &Seen) -> Row {
    let Seen { domain, host, .. } = seen;
    let name = name(host, seen.port);
    if seen.records.is_empty() {
        let text = match seen.mx && seen.addresses {
            true => format!("no record; the zones are signed, so that {name} TLSA would count"),
            false => "no record: TLS to this host is as good as each sender wants".to_owned(),
        };
        return Row::ok(CHECK, text);
    }
    if !(seen.proven && seen.addresses) {
        return Row::warning(
            CHECK,
            format!(
                "{name} has records, and the zone of {host} is not signed: senders ignore them"
            ),
            "sign the zone with DNSSEC and have the DS record published, or remove the TLSA records",
        );
    }
    let Some(dane) = Dane::new(&seen.records, &[host.clone(), domain.clone()]) else {
        return Row::warning(
            CHECK,
            format!(
                "no record of {name} is usable for mail: {}",
                listed(&seen.records)
            ),
            publish(&name, seen),
        );
    };
    let row = compared(&name, &dane, seen);
    if row.remedy.is_none() && !seen.mx {
        return Row::warning(
            CHECK,
            format!(
                "{name} has records, and the MX records of {domain} are not signed: most senders ignore them"
            ),
            format!("sign the zone of {domain} with DNSSEC and have the DS record published"),
        );
    }
    row
}

/// Compares the records with the certificate.
fn compared(name: &str, dane: &Dane, seen: &Seen) -> Row {
    let host = &seen.host;
    let chain = match &seen.chain {
        None => return Row::ok(CHECK, format!("{name} has {}", listed(&seen.records))),
        Some(Err(Unseen::Unreachable(why))) => {
            return Row::warning(
                CHECK,
                format!("the certificate of {host} cannot be compared with {name}: {why}"),
                "check from another network, or see the check of port 25",
            );
        }
        Some(Err(Unseen::NoTls)) => {
            return Row::critical(
                CHECK,
                format!("{host} offers no STARTTLS: senders with DANE deliver nothing"),
                format!("set [tls] or [acme], or remove the TLSA records of {name}"),
            );
        }
        Some(Ok(chain)) => chain,
    };
    if let Err(why) = dane.accepts(chain) {
        return Row::critical(
            CHECK,
            format!(
                "the certificate of {host} fails {name}, so that senders with DANE deliver nothing: {why}"
            ),
            publish(name, seen),
        );
    }
    let of_server = seen.records.iter().all(|record| record.usage == 3);
    if seen.new_keys && of_server {
        return Row::warning(
            CHECK,
            format!("{name} names the present certificate, and the next renewal brings a new key"),
            format!(
                "publish a record of the authority's certificate instead: {name}. TLSA 2 1 1 HASH"
            ),
        );
    }
    Row::ok(
        CHECK,
        format!("the certificate of {host} is that of {name}"),
    )
}

/// The record to publish, if the certificate is known.
fn publish(name: &str, seen: &Seen) -> String {
    let own = seen
        .chain
        .as_ref()
        .and_then(|chain| chain.as_ref().ok()?.first());
    match own.and_then(|own| Tlsa::of_key(own)) {
        Some(record) => format!("publish: {name}. TLSA {record}"),
        None => {
            format!("publish: {name}. TLSA 3 1 1 HASH, the SHA-256 of the certificate's public key")
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::generate_simple_self_signed;

    use super::*;
    use crate::finding::Level;

    fn certificate() -> Vec<u8> {
        let made = generate_simple_self_signed(vec!["mx.example.org".to_owned()]).unwrap();
        made.cert.der().to_vec()
    }

    fn record(usage: u8, of: &[u8]) -> Tlsa {
        Tlsa {
            usage,
            ..Tlsa::of_key(of).unwrap()
        }
    }

    fn seen() -> Seen {
        let own = certificate();
        Seen {
            domain: "example.org".to_owned(),
            host: "mx.example.org".to_owned(),
            port: 25,
            mx: true,
            addresses: true,
            records: vec![record(3, &own)],
            proven: true,
            chain: Some(Ok(vec![own])),
            new_keys: false,
        }
    }

    #[test]
    fn a_proven_record_of_the_certificate_is_right() {
        let row = judged(&seen());
        assert_eq!((row.level, row.remedy), (Level::Ok, None), "{}", row.text);
        let without = Seen {
            records: Vec::new(),
            chain: None,
            ..seen()
        };
        assert!(judged(&without).text.contains("would count"));
        let unsigned = Seen {
            mx: false,
            ..without
        };
        assert_eq!(judged(&unsigned).level, Level::Ok);
        assert_eq!(
            judged(&Seen {
                chain: None,
                ..seen()
            })
            .level,
            Level::Ok
        );
    }

    /// Asserts level and remedy.
    fn found(seen: &Seen, level: Level, part: &str) {
        let row = judged(seen);
        assert_eq!(row.level, level, "{row:?}");
        let remedy = row.remedy.as_deref().unwrap_or_default();
        assert!(remedy.contains(part), "{part}: {row:?}");
    }

    #[test]
    fn missing_proofs_have_remedies() {
        let mut records = seen();
        records.proven = false;
        found(&records, Level::Warning, "sign the zone");
        let mut addresses = seen();
        addresses.addresses = false;
        found(&addresses, Level::Warning, "sign the zone");
        let mut exchangers = seen();
        exchangers.mx = false;
        let part = "sign the zone of example.org";
        found(&exchangers, Level::Warning, part);
    }

    #[test]
    fn records_of_other_certificates_have_the_right_record_as_remedy() {
        let other = certificate();
        let mut wrong = seen();
        let own = wrong.records[0].clone();
        let right = own.to_string();
        for (usage, level) in [(3, Level::Critical), (2, Level::Critical)] {
            wrong.records = vec![record(usage, &other)];
            found(&wrong, level, &right);
        }
        // RFC 7672 section 3.1.3: usages 0 and 1 are not for mail.
        wrong.records = vec![Tlsa { usage: 1, ..own }];
        found(&wrong, Level::Warning, &right);
    }

    #[test]
    fn hosts_without_a_certificate_and_new_keys_have_remedies() {
        let mut host = seen();
        host.chain = Some(Err(Unseen::NoTls));
        found(&host, Level::Critical, "[tls] or [acme]");
        host.chain = Some(Err(Unseen::Unreachable("refused".to_owned())));
        found(&host, Level::Warning, "another network");
        let mut renewed = seen();
        renewed.new_keys = true;
        found(&renewed, Level::Warning, "TLSA 2 1 1");
    }

    #[test]
    fn lookups_that_fail_and_servers_without_proofs_are_told_apart() {
        let failed = unanswered("_25._tcp.mx.example.org", &LookupFailure::Code(2));
        assert_eq!(failed.level, Level::Critical);
        let found = TlsaAnswer::Found(seen().records);
        let of = |plain: &TlsaAnswer| unproven("_25._tcp.mx", plain, &LookupFailure::Bogus).level;
        assert_eq!(of(&found), Level::Warning);
        assert_eq!(of(&TlsaAnswer::None), Level::Ok);
    }
}
