//! `vere quickstart`: from an empty machine to a mail system with an account.

mod bounds;
mod certificate;
pub(super) mod files;
mod names;
mod report;
pub(super) mod user;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use vere_directory::Directory;
use vere_health::dns::public_addresses;
use vere_health::dns::records::{Place, REPORTS, TTL};
use vere_health::machine::Memory;
use vere_ports::directory::{AccountName, DomainName};
use vere_settings::Settings;
use vere_units::Secret;

use vere_login::directory::create;

use super::account::{explained, generate, new_credentials};
use super::config::memory::write_drop_in;
use vere_process::failure::Failure;

use files::Plan;
use report::Report;

/// The ports of a web server, which another program may have.
const HTTP: u16 = 80;
const HTTPS: u16 = 443;
/// Local names beside the account's that every domain should accept mail for (RFC 2142).
const ROLES: [&str; 2] = ["postmaster", "abuse"];

/// Write a working configuration with your domain and account, and print the remaining steps.
#[derive(Debug, Args)]
pub(crate) struct QuickstartArgs {
    /// Your address; the part behind the @ becomes the local domain.
    #[arg(value_name = "you@your.domain")]
    address: String,
    /// The directory for the configuration; `/etc/vere` as root (mail goes to `/var/lib/vere`), `vere-data` below the
    /// working directory otherwise (mail goes to its `data`).
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The name of this machine in the DNS; by default `mail.` and the domain.
    #[arg(long)]
    hostname: Option<String>,
    /// A public address of this machine, also behind NAT; by default the public addresses of its interfaces. May be
    /// repeated.
    #[arg(long = "address", value_name = "IP")]
    addresses: Vec<IpAddr>,
    /// Get the certificate from Let's Encrypt, and agree to its terms: port 80 must be reachable under the host name.
    /// The default as root where the host name already leads to this machine and port 80 is free. With free ports the
    /// settings get `[web]`, which publishes an MTA-STS policy and configures mail programs.
    #[arg(long)]
    acme: bool,
    /// Make a self-signed certificate in any case.
    #[arg(long, conflicts_with = "acme")]
    self_signed: bool,
    /// Overwrite an existing configuration; the old file is kept beside the new file. Accounts, passwords and mail are
    /// never touched.
    #[arg(long)]
    force: bool,
    /// Print JSON: an object with `config`, `account`, `password` (null for an account that was there), `ports`, `dns` (as
    /// `vere dns records --json`), `notes`, `next`.
    #[arg(long)]
    json: bool,
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When the address is invalid, a file or account already exists, or files cannot be written. The configuration is
/// written last, so that a failure leaves no configuration.
pub(crate) fn run(args: &QuickstartArgs) -> Result<String, Failure> {
    let account = AccountName::parse(&args.address)?;
    let hostname = match &args.hostname {
        Some(text) => DomainName::parse(text)?,
        None => DomainName::parse(&format!("mail.{}", account.domain()))?,
    };
    let mut plan = Plan::new(args.dir.as_deref(), &account, &hostname)?;
    let path = plan.config();
    if path.exists() && !args.force {
        return Err(Failure::new(format!(
            "{} is there already; --force overwrites it and keeps the old one as {}",
            path.display(),
            files::old(&path).display()
        )));
    }
    let addresses = match args.addresses.is_empty() {
        true => public_addresses(),
        false => args.addresses.clone(),
    };
    choose(&mut plan, args, &addresses)?;
    plan.make_folders()?;
    plan.find_user();
    let settings = parsed(&plan)?;
    plan.make_certificate()?;
    let password = fill(&create(&settings)?, &account)?;
    let keys = super::dkim::ensure(&settings, account.domain().as_str())?;
    plan.give_to_user()?;
    if let Some(drop_in) = plan.drop_in() {
        write_drop_in(&settings, &path, drop_in)?;
    }
    plan.write()?;
    let report = Report {
        account: &account,
        hostname: &hostname,
        password: password.as_ref(),
        plan: &plan,
        place: Place {
            settings: &settings,
            domain: account.domain().as_str(),
            addresses: &addresses,
            keys: &keys,
            has_reports: true,
            ttl: TTL,
        },
    };
    Ok(if args.json {
        report.json()
    } else {
        report.text()
    })
}

/// Chooses the kind of the certificate and the bounds. Writes nothing.
fn choose(plan: &mut Plan, args: &QuickstartArgs, addresses: &[IpAddr]) -> Result<(), Failure> {
    plan.acme = match (args.acme, args.self_signed) {
        (true, _) => true,
        (_, true) => false,
        _ => plan.root && files::is_free(HTTP) && names::leads_here(&parsed(plan)?, addresses)?,
    };
    plan.web = plan.acme && plan.root && files::is_free(HTTP) && files::is_free(HTTPS);
    plan.find_certificate()?;
    match Memory::read() {
        Some(memory) => plan.fit(&memory),
        None => Ok(()),
    }
}

fn parsed(plan: &Plan) -> Result<Settings, Failure> {
    let path = plan.config();
    Ok(Settings::parse(&plan.text(), &path.to_string_lossy())?)
}

/// Adds domain, account, roles and the account for reports to the directory, where missing. Returns the password of the
/// account; `None` for an account that was there, which keeps its password.
fn fill(directory: &Directory, account: &AccountName) -> Result<Option<Secret<String>>, Failure> {
    let domain = account.domain();
    if directory.store().domain(domain)?.is_none() {
        directory
            .add_domain(domain.clone(), None)
            .map_err(explained)?;
    }
    let mut password = None;
    if directory.store().account(account)?.is_none() {
        let made = generate();
        let credentials = Some(new_credentials(&made)?);
        directory
            .add_account(account.clone(), credentials)
            .map_err(explained)?;
        password = Some(made);
    }
    let reports = AccountName::new(REPORTS, domain.clone())?;
    if !is_known(directory, &reports)? {
        directory.add_account(reports, None).map_err(explained)?;
    }
    for role in ROLES {
        let name = AccountName::new(role, domain.clone())?;
        if !is_known(directory, &name)? {
            directory
                .set_alias(name, [account.to_string().as_str()])
                .map_err(explained)?;
        }
    }
    Ok(password)
}

fn is_known(directory: &Directory, name: &AccountName) -> Result<bool, Failure> {
    let store = directory.store();
    Ok(store.alias(name)?.is_some() || store.account(name)?.is_some())
}

#[cfg(test)]
#[path = "quickstart/tests.rs"]
mod tests;
