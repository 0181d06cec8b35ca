//! The DNS records of a new domain.

use std::fmt;
use std::net::IpAddr;

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
    /// A line of a zone file; an unknown value makes the line a comment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comment = if self.value.starts_with('(') {
            "; "
        } else {
            ""
        };
        write!(
            f,
            "{comment}{:<34} {:<5} {}",
            self.name, self.kind, self.value
        )
    }
}

/// What the records depend on.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) domain: &'a DomainName,
    pub(super) hostname: &'a DomainName,
    pub(super) ports: &'a Ports,
    /// Public addresses of this machine.
    pub(super) addresses: &'a [IpAddr],
    /// Whether Let's Encrypt issues the certificate.
    pub(super) acme: bool,
}

/// The records by which other systems deliver here and trust mail from here.
pub(super) fn records(place: &Place<'_>) -> Vec<Record> {
    let Place {
        domain,
        hostname,
        ports,
        ..
    } = place;
    let record = |name: String, kind, value: String| Record { name, kind, value };
    let text = |text: &str| format!("\"{text}\"");
    let reports = format!("rua=mailto:postmaster@{domain}");
    let mut records = addresses(place);
    records.extend([
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
    ]);
    if place.acme {
        let value = "0 issue \"letsencrypt.org\"".to_owned();
        records.push(record(format!("{hostname}."), "CAA", value));
    }
    records
}

/// The addresses of the host.
fn addresses(place: &Place<'_>) -> Vec<Record> {
    let name = || format!("{}.", place.hostname);
    let record = |address: &IpAddr| Record {
        name: name(),
        kind: if address.is_ipv4() { "A" } else { "AAAA" },
        value: address.to_string(),
    };
    if place.addresses.is_empty() {
        return vec![Record {
            name: name(),
            kind: "A",
            value: "(the public IPv4 address of this machine; AAAA for IPv6)".to_owned(),
        }];
    }
    place.addresses.iter().map(record).collect()
}

/// The record by which receivers verify the signatures of a key.
pub(super) fn of_key(key: &StoredKey) -> Record {
    Record {
        name: format!("{}.", key.record_name()),
        kind: "TXT",
        value: key.record_strings(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(addresses: &[IpAddr], acme: bool) -> Vec<String> {
        let name = |text: &str| DomainName::parse(text).unwrap();
        let place = Place {
            domain: &name("example.org"),
            hostname: &name("mail.example.org"),
            ports: &Ports::STANDARD,
            addresses,
            acme,
        };
        let spaced = |record: &Record| {
            let line = record.to_string();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        records(&place).iter().map(spaced).collect()
    }

    #[test]
    fn the_block_is_a_zone_file_with_the_addresses_of_this_machine() {
        let addresses = ["198.51.100.7", "2001:db8::7"].map(|text| text.parse().unwrap());
        let lines = lines(&addresses, true);
        assert_eq!(lines[0], "mail.example.org. A 198.51.100.7");
        assert_eq!(lines[1], "mail.example.org. AAAA 2001:db8::7");
        let caa = "mail.example.org. CAA 0 issue \"letsencrypt.org\"";
        assert_eq!(lines.last().unwrap(), caa);
    }

    #[test]
    fn an_unknown_address_is_a_comment() {
        let lines = lines(&[], false);
        assert!(
            lines[0].starts_with("; mail.example.org. A (the public"),
            "{lines:?}"
        );
        assert!(lines.iter().all(|line| !line.contains("CAA")), "{lines:?}");
    }
}
