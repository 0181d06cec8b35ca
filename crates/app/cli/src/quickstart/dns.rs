//! The DNS records of a new domain.

use std::fmt;

use vere_dkim::StoredKey;
use vere_ports::directory::DomainName;

use super::files::Ports;

/// A record; names end with a dot, texts are quoted, as in zone files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) value: String,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<34} {:<5} {}", self.name, self.kind, self.value)
    }
}

/// The records by which other systems deliver here and trust mail from here.
pub(super) fn records(domain: &DomainName, hostname: &DomainName, ports: &Ports) -> Vec<Record> {
    let record = |name: String, kind, value: String| Record { name, kind, value };
    let text = |text: &str| format!("\"{text}\"");
    let reports = format!("rua=mailto:postmaster@{domain}");
    vec![
        record(
            format!("{hostname}."),
            "A",
            "(this machine's IPv4 address; AAAA for IPv6)".to_owned(),
        ),
        record(format!("{domain}."), "MX", format!("10 {hostname}.")),
        record(format!("{domain}."), "TXT", text("v=spf1 mx -all")),
        record(
            format!("_dmarc.{domain}."),
            "TXT",
            text(&format!("v=DMARC1; p=none; {reports}")),
        ),
        record(
            format!("_smtp._tls.{domain}."),
            "TXT",
            text(&format!("v=TLSRPTv1; {reports}")),
        ),
        record(
            format!("_submissions._tcp.{domain}."),
            "SRV",
            format!("0 1 {} {hostname}.", ports.submissions),
        ),
        record(
            format!("_imaps._tcp.{domain}."),
            "SRV",
            format!("0 1 {} {hostname}.", ports.imaps),
        ),
    ]
}

/// The record by which receivers verify the signatures of a key.
pub(super) fn of_key(key: &StoredKey) -> Record {
    Record {
        name: format!("{}.", key.record_name()),
        kind: "TXT",
        value: key.record_strings(),
    }
}
