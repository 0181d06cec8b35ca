//! `vere dns`: the records by which other systems deliver here and trust mail from here.

mod authority;
mod caa;
mod connections;
mod dane;
mod keys;
mod names;
mod policies;
pub mod records;
mod served;
mod show;
mod subject;
mod web;

use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use tokio::time::timeout_at;
use vere_net::resolver::{Resolver, ResolverOptions};
use vere_outbound::Outbound;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use crate::finding::Level;
use crate::row::Row;

use subject::Subject;
pub use subject::public_addresses;
use subject::{domains, lower};

/// Exit code when something is to be mended.
const FINDINGS: u8 = 3;
/// A domain whose MX hosts are always there.
const PROBE: &str = "gmail.com";
/// Block lists beside the configured lists. Both answer without an agreement.
const LISTS: [&str; 2] = ["zen.spamhaus.org", "bl.spamcop.net"];

/// Check and print the DNS records that mail needs.
#[derive(Debug, Subcommand)]
pub enum DnsCommand {
    /// Check the records of a domain, the host's names, block lists, port 25 and the certificate.
    ///
    /// Every finding has a remedy. Exit code 0: nothing to mend, 3: findings.
    Check(CheckArgs),
    /// Print the records of a domain, as lines to paste into its zone or as JSON.
    Records(records::RecordsArgs),
}

/// What is checked, and from where.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The domain; by default every local domain.
    domain: Option<String>,
    /// A public address of this machine, also behind NAT; by default the public addresses of its interfaces. May be
    /// repeated.
    #[arg(long, value_name = "IP")]
    address: Vec<IpAddr>,
    /// Ask this block list, too. May be repeated.
    #[arg(long, value_name = "ZONE")]
    list: Vec<String>,
    /// Look at records only; open no connection.
    #[arg(long)]
    records_only: bool,
    /// Connect to an MX host of this domain to see whether port 25 is open outwards.
    #[arg(long, value_name = "DOMAIN", default_value = PROBE)]
    probe: String,
    /// Print JSON: a list of objects with `domain` and `checks`, each with `check`, `level`, `text` and `remedy`.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When no domain is known, or the settings cannot be used.
pub fn run(command: &DnsCommand, settings: &Arc<Settings>) -> Result<Outcome, Failure> {
    let args = match command {
        DnsCommand::Check(args) => args,
        DnsCommand::Records(args) => return records::run(args, settings),
    };
    let checked = checked(args, settings, None)?;
    let has_findings = checked
        .iter()
        .any(|(_, rows)| rows.iter().any(|row| row.level > Level::Ok));
    let text = match args.json {
        true => show::in_json(&checked)?,
        false => show::in_text(&checked),
    };
    let code = match has_findings {
        true => ExitCode::from(FINDINGS),
        false => ExitCode::SUCCESS,
    };
    Ok(Outcome::Report(text, code))
}

/// The results of every local domain, for `vere doctor`. The looks end after `patience`, and the last domain says so.
///
/// # Errors
/// When no domain is known, or the settings cannot be used.
pub(crate) fn examined(
    settings: &Arc<Settings>,
    addresses: &[IpAddr],
    patience: Duration,
) -> Result<Vec<(String, Vec<Row>)>, Failure> {
    let args = CheckArgs {
        domain: None,
        address: addresses.to_vec(),
        list: Vec::new(),
        records_only: false,
        probe: PROBE.to_owned(),
        json: false,
    };
    checked(&args, settings, Some(patience))
}

fn checked(
    args: &CheckArgs,
    settings: &Arc<Settings>,
    patience: Option<Duration>,
) -> Result<Vec<(String, Vec<Row>)>, Failure> {
    let domains = domains(args.domain.as_deref(), settings)?;
    let outbound = crate::outward::outbound(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let until = patience.map(|patience| Instant::now() + patience);
    let mut checked = Vec::new();
    for domain in domains {
        let mut subject = subject(args, settings, domain.clone())?;
        let whole = all(&mut subject, args, &outbound);
        let rows = match until {
            None => Some(runtime.block_on(whole)),
            Some(until) => runtime.block_on(async { timeout_at(until.into(), whole).await.ok() }),
        };
        let Some(rows) = rows else {
            let remedy = format!("vere dns check {domain}");
            let row = Row::warning("dns", "the DNS did not answer in time", remedy);
            checked.push((domain, vec![row]));
            break;
        };
        checked.push((domain, rows));
    }
    Ok(checked)
}

fn subject(args: &CheckArgs, settings: &Settings, domain: String) -> Result<Subject, Failure> {
    let front = settings.front.as_ref();
    let configured = front
        .map(|front| &front.lists.lists[..])
        .unwrap_or_default();
    let mut lists: Vec<String> = configured.iter().map(|list| list.zone.clone()).collect();
    lists.extend(args.list.iter().map(|zone| lower(zone)));
    lists.extend(LISTS.map(str::to_owned));
    lists.sort();
    lists.dedup();
    let (keys, signing) = keys::judged(settings, &domain)?;
    Ok(Subject {
        resolver: vere_outbound::resolver(settings)?,
        validating: validating(settings),
        mail_port: settings.delivery.port,
        hostname: settings.hostname.clone(),
        addresses: match args.address.is_empty() {
            true => subject::public_addresses(),
            false => args.address.clone(),
        },
        keys,
        signing,
        signs: settings.dkim.is_some(),
        lists,
        // Another domain than a local one may be checked where no directory is.
        reports: records::has_reports(settings, &domain)
            .unwrap_or_default()
            .then(|| format!("{}@{domain}", records::REPORTS)),
        web: web_server(settings),
        authority: authority::Authority::of(settings),
        ports: [
            (
                "_submissions._tcp",
                settings
                    .submissions
                    .listen
                    .first()
                    .map(std::net::SocketAddr::port),
            ),
            (
                "_imaps._tcp",
                settings
                    .imaps
                    .listen
                    .first()
                    .map(std::net::SocketAddr::port),
            ),
        ],
        domain,
    })
}

fn web_server(settings: &Settings) -> Option<subject::WebServer> {
    let web = settings.web.as_ref()?;
    Some(subject::WebServer {
        port: web.https.first()?.port(),
        has_policy: web.mta_sts.is_some(),
        roots: settings.delivery.ca.clone(),
    })
}

/// A resolver that validates, whether or not the settings ask for it. Without one DANE is not checked: a zone file has no
/// signatures.
fn validating(settings: &Settings) -> Option<Resolver> {
    if settings.resolver.zone.is_some() {
        return None;
    }
    let options = ResolverOptions {
        servers: settings.resolver.servers.clone(),
        dnssec: true,
        trust_anchor: settings.resolver.trust_anchor.clone(),
        ..ResolverOptions::default()
    };
    Resolver::new(&options).ok()
}

/// All checks that look at records only.
async fn records(subject: &Subject) -> Vec<Row> {
    let mut rows = names::host(subject).await;
    rows.extend(names::reverse(subject).await);
    rows.extend(names::exchangers(subject).await);
    rows.extend(policies::spf(subject).await);
    rows.extend(keys::dkim(subject).await);
    rows.push(policies::dmarc(subject).await);
    rows.push(caa::caa(subject).await);
    rows.extend(names::services(subject).await);
    rows.extend(web::names(subject).await);
    rows.extend(names::lists(subject).await);
    rows
}

async fn all(subject: &mut Subject, args: &CheckArgs, outbound: &Outbound) -> Vec<Row> {
    if let Some(authority) = subject.authority.as_mut().filter(|_| !args.records_only) {
        authority.ask().await;
    }
    let subject = &*subject;
    let mut rows = records(subject).await;
    if !args.records_only {
        rows.extend(policies::mta_sts(subject, outbound).await);
        rows.extend(web::certificates(subject).await);
        rows.extend(connections::incoming(subject, outbound).await);
        rows.push(connections::outgoing(&args.probe, outbound).await);
    }
    rows.extend(dane::rows(subject, !args.records_only).await);
    rows
}

#[cfg(test)]
mod tests;
