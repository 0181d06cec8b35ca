//! The policies of the domain: SPF, DMARC, MTA-STS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use vere_judging::Names;
use vere_net::sts::StsAnswer;
use vere_outbound::Outbound;
use vere_spf::{Session, SpfResult};

use super::subject::Subject;
use crate::row::Row;

/// Addresses of documentation, which no policy means (RFC 5737, RFC 3849).
const STRANGERS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(203, 0, 113, 77)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x77, 0, 0, 0, 0, 0x77)),
];

/// Whether the SPF policy allows the machine alone.
pub(super) async fn spf(subject: &Subject) -> Vec<Row> {
    const CHECK: &str = "spf";
    let domain = &subject.domain;
    let remedy = format!("publish: {domain}. TXT \"v=spf1 mx -all\"");
    let texts = match subject.texts(CHECK, domain, "v=spf1").await {
        Ok(texts) => texts,
        Err(row) => return vec![row],
    };
    let [text] = texts.as_slice() else {
        let text = match texts.len() {
            0 => format!("{domain} has no SPF record"),
            count => {
                format!("{domain} has {count} SPF records, and receivers refuse more than one")
            }
        };
        return vec![Row::critical(CHECK, text, remedy)];
    };
    let mut rows = Vec::new();
    for address in &subject.addresses {
        let result = evaluated(subject, *address).await;
        if result != SpfResult::Pass {
            rows.push(not_passed(subject, *address, result));
        }
    }
    for stranger in STRANGERS {
        match evaluated(subject, stranger).await {
            SpfResult::Pass => rows.push(Row::critical(
                CHECK,
                format!("the policy allows everybody: {text}"),
                remedy.clone(),
            )),
            SpfResult::Neutral => rows.push(Row::warning(
                CHECK,
                format!("the policy says nothing about other senders: {text}"),
                "end it with -all, or with ~all while you try it",
            )),
            _ => continue,
        }
        break;
    }
    if rows.is_empty() {
        rows.push(Row::ok(CHECK, text.clone()));
    }
    rows
}

async fn evaluated(subject: &Subject, client: IpAddr) -> SpfResult {
    let sender = format!("postmaster@{}", subject.domain);
    let session = Session {
        client,
        helo: &subject.hostname,
        reverse_path: &sender,
    };
    vere_spf::check(&Names::new(subject.resolver.clone()), session).await
}

fn not_passed(subject: &Subject, address: IpAddr, result: SpfResult) -> Row {
    let family = match address {
        IpAddr::V4(_) => "ip4",
        IpAddr::V6(_) => "ip6",
    };
    let remedy = match result {
        SpfResult::PermError => {
            "correct the record: a term is wrong, or the terms need more than ten look-ups"
                .to_owned()
        }
        SpfResult::TempError => "see that the name servers of the names in it answer".to_owned(),
        _ => format!(
            "add mx or {family}:{address} to the record of {}",
            subject.domain
        ),
    };
    Row::critical("spf", format!("mail from {address} gets {result}"), remedy)
}

/// Whether receivers know what to do with forged mail.
pub(super) async fn dmarc(subject: &Subject) -> Row {
    const CHECK: &str = "dmarc";
    let name = format!("_dmarc.{}", subject.domain);
    // Reports to an address for other mail would stay unread.
    let reports = subject.reports.as_ref();
    let reports = reports.map_or_else(String::new, |to| format!("; rua=mailto:{to}"));
    let remedy = format!("publish: {name}. TXT \"v=DMARC1; p=none{reports}\"");
    let texts = match subject.texts(CHECK, &name, "v=DMARC1").await {
        Ok(texts) => texts,
        Err(row) => return row,
    };
    let [text] = texts.as_slice() else {
        let text = match texts.len() {
            0 => format!("{name} has no record: large receivers refuse bulk mail"),
            count => format!("{name} has {count} records: receivers use none"),
        };
        return Row::critical(CHECK, text, remedy);
    };
    match tag(text, "p").as_deref() {
        Some("none" | "quarantine" | "reject") => Row::ok(CHECK, text.clone()),
        Some(other) => {
            let text = format!("expected p=none, p=quarantine or p=reject; found p={other}");
            Row::critical(CHECK, text, remedy)
        }
        None => Row::critical(
            CHECK,
            format!("the record has no policy (p=): {text}"),
            remedy,
        ),
    }
}

/// The value of a tag in lower case.
fn tag(text: &str, name: &str) -> Option<String> {
    let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(tag, _)| tag.trim().eq_ignore_ascii_case(name));
    values
        .next()
        .map(|(_, value)| value.trim().to_ascii_lowercase())
}

/// Whether the policy of MTA-STS can be fetched and names the host. The policy may be missing.
pub(super) async fn mta_sts(subject: &Subject, outbound: &Outbound) -> Vec<Row> {
    const CHECK: &str = "mta-sts";
    let (domain, host) = (&subject.domain, &subject.hostname);
    let name = format!("_mta-sts.{domain}");
    match subject.texts(CHECK, &name, "v=STSv1").await {
        Ok(texts) if texts.is_empty() => return vec![unannounced(subject, outbound).await],
        Ok(_) => {}
        Err(row) => return vec![row],
    }
    vec![match outbound.sts_answer(domain).await {
        StsAnswer::None => Row::critical(
            CHECK,
            format!("the record {name} cannot be understood"),
            format!("publish: {name}. TXT \"v=STSv1; id=1\", with another id after each change"),
        ),
        StsAnswer::Unavailable(error) => Row::critical(
            CHECK,
            format!("the policy cannot be fetched: {error}"),
            format!("serve https://mta-sts.{domain}/.well-known/mta-sts.txt, or remove {name}"),
        ),
        StsAnswer::Policy(held) if held.policy.names(host) => Row::ok(
            CHECK,
            format!("mode {}, names {host}", held.policy.mode.as_str()),
        ),
        StsAnswer::Policy(held) => Row::critical(
            CHECK,
            format!(
                "the policy names {}, and not {host}",
                held.policy.mx.join(", ")
            ),
            format!("add the line \"mx: {host}\" to the policy, and change the id in {name}"),
        ),
    }]
}

/// The policy of a domain without the record by which senders learn of it: whether it can be fetched already.
async fn unannounced(subject: &Subject, outbound: &Outbound) -> Row {
    const CHECK: &str = "mta-sts";
    const NONE: &str = "no policy: TLS to this domain is as good as each sender wants";
    let domain = &subject.domain;
    if !subject.web.as_ref().is_some_and(|web| web.has_policy) {
        return Row::ok(CHECK, NONE);
    }
    match outbound.fetched_policy(domain).await {
        Ok(policy) => Row::ok(
            CHECK,
            format!(
                "the policy (mode {}) can be fetched; senders look for it with: _mta-sts.{domain}. TXT \"v=STSv1; id=1\"",
                policy.mode.as_str()
            ),
        ),
        Err(error) => Row::ok(
            CHECK,
            format!("{NONE}; the policy of the web server cannot be fetched yet: {error}"),
        ),
    }
}
