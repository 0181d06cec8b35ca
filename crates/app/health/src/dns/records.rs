//! `vere dns records`: the records by which other systems deliver here and trust mail from here, as lines of a zone file
//! (RFC 1035 section 5.1) and as JSON.

use std::fmt::{self, Write as _};
use std::net::{IpAddr, SocketAddr};

use clap::Args;
use serde::Serialize;
use vere_dkim::StoredKey;
use vere_ports::directory::AccountName;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::{Settings, StsMode, Web};

use super::subject::{domains, lower, public_addresses};
use super::{authority, keys};

/// Time in seconds that name servers keep a record, by default.
pub const TTL: u32 = 3600;
/// The local part of the address for reports of other systems, once there is such an account or alias.
pub const REPORTS: &str = "reports";
/// Names below a domain that lead to the web server.
const WEB_NAMES: [&str; 3] = ["mta-sts", "autoconfig", "autodiscover"];

/// Domains, and the form of the output.
#[derive(Debug, Args)]
pub struct RecordsArgs {
    /// The domain; by default every local domain.
    domain: Option<String>,
    /// A public address of this machine, also behind NAT; by default the public addresses of its interfaces. May be
    /// repeated.
    #[arg(long, value_name = "IP")]
    address: Vec<IpAddr>,
    /// Time in seconds that name servers keep a record.
    #[arg(long, value_name = "SECONDS", default_value_t = TTL,
        value_parser = clap::value_parser!(u32).range(0..=0x7fff_ffff))]
    ttl: u32,
    /// Print JSON: a list of objects with `name`, `type`, `ttl` and `value` as in a zone file.
    #[arg(long)]
    json: bool,
}

/// A record; names end with a dot, texts are quoted, as in zone files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// The name.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Time in seconds that name servers keep the record.
    pub ttl: u32,
    /// The data of the record.
    pub value: String,
}

impl fmt::Display for Record {
    /// A line of a zone file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            kind,
            ttl,
            value,
        } = self;
        write!(f, "{name:<34} {ttl:>5} IN {kind:<5} {value}")
    }
}

/// The facts on which the records of a domain depend.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The settings of the system.
    pub settings: &'a Settings,
    /// The domain in lower case, in ASCII, without a dot at the end.
    pub domain: &'a str,
    /// Public addresses of this machine.
    pub addresses: &'a [IpAddr],
    /// Keys that sign now or later.
    pub keys: &'a [StoredKey],
    /// Whether reports of other systems have an address at the domain: [`REPORTS`].
    pub has_reports: bool,
    /// Time in seconds that name servers keep a record.
    pub ttl: u32,
}

impl Place<'_> {
    /// The records of the domain. Addresses of a host outside the domain belong to another zone, and come all the same.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        let mut records = self.host();
        records.extend(self.mail());
        records.extend(self.signatures());
        records.extend(self.services());
        records.extend(
            self.settings
                .web
                .as_ref()
                .map(|web| self.web(web))
                .into_iter()
                .flatten(),
        );
        records
    }

    /// One block to paste into the zone of the domain. Lines about other zones and unknown addresses are comments.
    #[must_use]
    pub fn block(&self) -> String {
        let mut block = String::new();
        if self.addresses.is_empty() {
            let host = &self.settings.hostname;
            let _ = writeln!(
                block,
                "; {host}. {} IN A (the public IPv4 address of this machine, AAAA for IPv6: --address IP)",
                self.ttl
            );
        }
        for record in self.records() {
            let comment = match self.is_inside(&record.name) {
                true => "",
                false => "; in another zone: ",
            };
            let _ = writeln!(block, "{comment}{record}");
        }
        block
    }

    fn is_inside(&self, name: &str) -> bool {
        let rest = name.strip_suffix('.').unwrap_or(name);
        let above = rest.strip_suffix(self.domain);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }

    fn record(&self, name: String, kind: &'static str, value: String) -> Record {
        Record {
            name,
            kind,
            ttl: self.ttl,
            value,
        }
    }

    /// A record below the domain; an empty name stands for the domain.
    fn below(&self, name: &str, kind: &'static str, value: String) -> Record {
        let name = match name {
            "" => format!("{}.", self.domain),
            name => format!("{name}.{}.", self.domain),
        };
        self.record(name, kind, value)
    }

    /// The addresses of the host, and the authority that may issue its certificates.
    fn host(&self) -> Vec<Record> {
        let host = &self.settings.hostname;
        let address = |address: &IpAddr| {
            let kind = if address.is_ipv4() { "A" } else { "AAAA" };
            self.record(format!("{host}."), kind, address.to_string())
        };
        let mut records: Vec<Record> = self.addresses.iter().map(address).collect();
        let acme = self.settings.acme.as_ref();
        if let Some(identity) = acme.and_then(|acme| authority::known(&acme.directory)) {
            let issue = format!("0 issue \"{identity}\"");
            records.push(self.record(format!("{host}."), "CAA", issue));
        }
        records
    }

    /// Where mail goes, and who may send it.
    fn mail(&self) -> Vec<Record> {
        let host = &self.settings.hostname;
        let reports = format!("rua=mailto:{REPORTS}@{}", self.domain);
        let dmarc = match self.has_reports {
            true => format!("\"v=DMARC1; p=none; {reports}\""),
            false => "\"v=DMARC1; p=none\"".to_owned(),
        };
        let mut records = vec![
            self.below("", "MX", format!("10 {host}.")),
            self.below("", "TXT", "\"v=spf1 mx -all\"".to_owned()),
            self.below("_dmarc", "TXT", dmarc),
        ];
        if self.has_reports {
            let text = format!("\"v=TLSRPTv1; {reports}\"");
            records.push(self.below("_smtp._tls", "TXT", text));
        }
        records
    }

    fn signatures(&self) -> impl Iterator<Item = Record> {
        let of = move |key: &StoredKey| {
            let name = format!("{}.", key.record_name());
            self.record(name, "TXT", key.record_strings())
        };
        self.keys.iter().map(of)
    }

    /// How mail programs find the services (RFC 6186, RFC 8314 section 5.1).
    fn services(&self) -> impl Iterator<Item = Record> {
        let settings = self.settings;
        let services: [(&str, &[SocketAddr]); 4] = [
            ("_submissions._tcp", &settings.submissions.listen),
            ("_submission._tcp", &settings.submission.listen),
            ("_imaps._tcp", &settings.imaps.listen),
            ("_imap._tcp", &settings.imap.listen),
        ];
        let with_port = move |(name, listen): (&'static str, &[SocketAddr])| {
            let port = listen.iter().find(|at| !at.ip().is_loopback())?.port();
            Some(self.service(name, port))
        };
        services.into_iter().filter_map(with_port)
    }

    fn service(&self, name: &str, port: u16) -> Record {
        let value = format!("0 1 {port} {}.", self.settings.hostname);
        self.below(name, "SRV", value)
    }

    /// The names of the web server, and the record of the MTA-STS policy (RFC 8461 section 3.1).
    fn web(&self, web: &Web) -> Vec<Record> {
        let Some(https) = web.https.first() else {
            return Vec::new();
        };
        let lead = format!("{}.", self.settings.hostname);
        let is_policy = |name: &&&str| **name != "mta-sts" || web.mta_sts.is_some();
        let name = |name: &&str| self.below(name, "CNAME", lead.clone());
        let mut records: Vec<Record> = WEB_NAMES.iter().filter(is_policy).map(name).collect();
        records.push(self.service("_autodiscover._tcp", https.port()));
        if let Some(mode) = web.mta_sts {
            let text = format!("\"v=STSv1; id={}\"", policy_id(web, mode));
            records.push(self.below("_mta-sts", "TXT", text));
        }
        records
    }
}

/// The id of a policy: another one for every other policy, and the same for the same.
fn policy_id(web: &Web, mode: StsMode) -> String {
    let policy = format!("{mode:?} {} {}", web.mta_sts_max_age, web.mx.join(" "));
    format!("{:08x}", vere_checksum::crc32c(policy.as_bytes()))
}

/// Whether the domain has an account or alias for reports of other systems.
///
/// # Errors
/// When the directory cannot be read.
pub fn has_reports(settings: &Settings, domain: &str) -> Result<bool, Failure> {
    let directory = vere_login::directory::open(settings)?;
    let name = AccountName::parse(&format!("{REPORTS}@{domain}"))?;
    let store = directory.store();
    Ok(store.account(&name)?.is_some() || store.alias(&name)?.is_some())
}

/// Runs the command.
///
/// # Errors
/// When no domain is known, or keys or the directory cannot be read.
pub(super) fn run(args: &RecordsArgs, settings: &Settings) -> Result<Outcome, Failure> {
    let addresses = match args.address.is_empty() {
        true => public_addresses(),
        false => args.address.clone(),
    };
    let (mut all, mut text) = (Vec::new(), String::new());
    for domain in domains(args.domain.as_deref(), settings)? {
        let place = Place {
            settings,
            domain: &lower(&domain),
            addresses: &addresses,
            keys: &keys::of(settings, &domain)?,
            has_reports: has_reports(settings, &domain)?,
            ttl: args.ttl,
        };
        match args.json {
            true => all.extend(place.records()),
            false => text += &place.block(),
        }
    }
    if args.json {
        text = serde_json::to_string_pretty(&all)? + "\n";
    }
    Ok(Outcome::Print(text))
}

#[cfg(test)]
mod tests;
