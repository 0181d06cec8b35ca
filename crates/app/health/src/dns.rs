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
mod wait;
mod web;

use std::cell::Cell;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
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
pub(crate) use wait::{Notice, PATIENCE};
use wait::{Progress, Source};

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
/// When the domain is no domain, no domain is known, or the settings cannot be used.
pub fn run(command: &DnsCommand, settings: &Arc<Settings>) -> Result<Outcome, Failure> {
    let args = match command {
        DnsCommand::Check(args) => args,
        DnsCommand::Records(args) => return records::run(args, settings),
    };
    let checked = checked(args, settings, None, &Notice::new(args.json))?;
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

/// The results of every local domain, for `vere doctor`. The looks end after [`PATIENCE`] in all, and the last domain says so.
///
/// # Errors
/// When no domain is known, or the settings cannot be used.
pub(crate) fn examined(
    settings: &Arc<Settings>,
    addresses: &[IpAddr],
    notice: &Notice,
) -> Result<Vec<(String, Vec<Row>)>, Failure> {
    let args = CheckArgs {
        domain: None,
        address: addresses.to_vec(),
        list: Vec::new(),
        records_only: false,
        probe: PROBE.to_owned(),
        json: false,
    };
    checked(&args, settings, Some(PATIENCE), notice)
}

/// Checks the domains, within `whole` if given. Each may take [`PATIENCE`], and the first that takes longer is the last. Waits
/// for silent name servers share that time, so that they end the command after a minute however many domains there are.
fn checked(
    args: &CheckArgs,
    settings: &Arc<Settings>,
    whole: Option<Duration>,
    notice: &Notice,
) -> Result<Vec<(String, Vec<Row>)>, Failure> {
    let domains = domains(args.domain.as_deref(), settings)?;
    let outbound = crate::outward::outbound(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let end = whole.map(|whole| Instant::now() + whole);
    let mut left = PATIENCE;
    let mut checked = Vec::new();
    let mut domains = domains.into_iter();
    while let Some(domain) = domains.next() {
        let mut subject = subject(args, settings, domain.clone())?;
        let begun = Instant::now();
        let until = end.map_or(begun + left, |end| end.min(begun + left));
        let given = args.domain.as_ref();
        let stranger = given.and_then(|_| subject::stranger(&domain, settings));
        let mut rows: Vec<Row> = stranger.into_iter().collect();
        let source = Cell::new(Source::NameServers);
        let answered = {
            let progress = Progress {
                rows: &mut rows,
                source: &source,
            };
            let tell = || notice.tell(&domain, source.get());
            let checks = all(&mut subject, args, &outbound, progress);
            runtime.block_on(async { wait::in_time(checks, until, tell).await })
        };
        let took = begun.elapsed();
        match answered {
            Some(true) => {}
            Some(false) => left = left.saturating_sub(took),
            None => rows.push(wait::late(&domain, source.get(), took, domains.len())),
        }
        checked.push((domain, rows));
        if answered.is_none() {
            break;
        }
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
async fn records(subject: &Subject, rows: &mut Vec<Row>) {
    rows.extend(names::host(subject).await);
    rows.extend(names::reverse(subject).await);
    rows.extend(names::exchangers(subject).await);
    rows.extend(policies::spf(subject).await);
    rows.extend(keys::dkim(subject).await);
    rows.push(policies::dmarc(subject).await);
    rows.push(caa::caa(subject).await);
    rows.extend(names::services(subject).await);
    rows.extend(web::names(subject).await);
    rows.extend(names::lists(subject).await);
}

/// Returns whether the name servers answer; without an answer nothing else is asked.
async fn all(
    subject: &mut Subject,
    args: &CheckArgs,
    outbound: &Outbound,
    Progress { rows, source }: Progress<'_>,
) -> bool {
    if let Some(row) = wait::silence(subject).await {
        rows.push(row);
        return false;
    }
    if let Some(authority) = subject.authority.as_mut().filter(|_| !args.records_only) {
        authority.ask().await;
    }
    let subject = &*subject;
    records(subject, rows).await;
    source.set(Source::Hosts);
    if !args.records_only {
        // First the most important connections: the time may be over before the rest.
        rows.extend(connections::incoming(subject, outbound).await);
        rows.push(connections::outgoing(&args.probe, outbound).await);
        rows.extend(policies::mta_sts(subject, outbound).await);
        rows.extend(web::certificates(subject).await);
    }
    rows.extend(dane::rows(subject, !args.records_only).await);
    true
}

#[cfg(test)]
mod tests;
