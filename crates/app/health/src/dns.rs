//! `vere dns`: the records by which other systems deliver here and trust mail from here.

mod connections;
mod keys;
mod names;
mod policies;
mod row;
mod show;
mod subject;

use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use vere_outbound::{Outbound, OutboundMetrics};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use crate::finding::Level;

use row::Row;
use subject::Subject;
pub use subject::public_addresses;

/// Exit code when something is to be mended.
const FINDINGS: u8 = 3;
/// Block lists beside the configured lists. Both answer without an agreement.
const LISTS: [&str; 2] = ["zen.spamhaus.org", "bl.spamcop.net"];

/// Check the DNS records that mail needs.
#[derive(Debug, Subcommand)]
pub enum DnsCommand {
    /// Check the records of a domain, the host's names, block lists, port 25 and the certificate.
    ///
    /// Every finding has a remedy. Exit code 0: nothing to mend, 3: findings.
    Check(CheckArgs),
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
    #[arg(long, value_name = "DOMAIN", default_value = "gmail.com")]
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
    let DnsCommand::Check(args) = command;
    let domains = domains(args, settings)?;
    let outbound = Outbound::new(
        settings,
        vere_outbound::resolver(settings)?,
        OutboundMetrics::default(),
        None,
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut checked = Vec::new();
    for domain in domains {
        let subject = subject(args, settings, domain.clone())?;
        checked.push((domain, runtime.block_on(all(&subject, args, &outbound))));
    }
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

fn domains(args: &CheckArgs, settings: &Settings) -> Result<Vec<String>, Failure> {
    if let Some(domain) = &args.domain {
        return Ok(vec![lower(domain)]);
    }
    let directory = vere_login::directory::open(settings)?;
    let known = directory.store().domains()?.into_iter();
    let domains: Vec<String> = known.map(|domain| domain.name.to_string()).collect();
    match domains.is_empty() {
        true => Err(Failure::new(
            "expected a local domain; found none: name one, or: vere domain add DOMAIN",
        )),
        false => Ok(domains),
    }
}

fn lower(domain: &str) -> String {
    domain.trim_end_matches('.').to_ascii_lowercase()
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
    Ok(Subject {
        resolver: vere_outbound::resolver(settings)?,
        hostname: settings.hostname.clone(),
        addresses: match args.address.is_empty() {
            true => subject::public_addresses(),
            false => args.address.clone(),
        },
        keys: keys::of(settings, &domain)?,
        signs: settings.dkim.is_some(),
        lists,
        authority: settings.acme.as_ref().map(|acme| acme.directory.clone()),
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

/// All checks that look at records only.
async fn records(subject: &Subject) -> Vec<Row> {
    let mut rows = names::host(subject).await;
    rows.extend(names::reverse(subject).await);
    rows.extend(names::exchangers(subject).await);
    rows.extend(policies::spf(subject).await);
    rows.extend(keys::dkim(subject).await);
    rows.push(policies::dmarc(subject).await);
    rows.push(policies::caa(subject).await);
    rows.extend(names::services(subject).await);
    rows.extend(names::lists(subject).await);
    rows
}

async fn all(subject: &Subject, args: &CheckArgs, outbound: &Outbound) -> Vec<Row> {
    let mut rows = records(subject).await;
    if !args.records_only {
        rows.extend(policies::mta_sts(subject, outbound).await);
        rows.extend(connections::incoming(subject, outbound).await);
        rows.push(connections::outgoing(&args.probe, outbound).await);
    }
    rows
}

#[cfg(test)]
mod tests;
