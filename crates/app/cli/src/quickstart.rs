//! `vere quickstart`: from an empty machine to a mail system with an account.

mod dns;
pub(super) mod files;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use vere_directory::Directory;
use vere_dkim::StoredKey;
use vere_health::dns::public_addresses;
use vere_ports::directory::{AccountName, DomainName};
use vere_settings::Settings;
use vere_units::Secret;

use vere_login::directory::create;

use super::account::{explained, generate, new_credentials};
use super::config::memory::write_drop_in;
use vere_process::failure::Failure;

use dns::Record;
use files::{Plan, Ports};

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
    /// Get the certificate from Let's Encrypt instead of a self-signed certificate: port 80 must be reachable under
    /// the host name. The option agrees to the terms of the CA.
    #[arg(long)]
    acme: bool,
    /// Overwrite an existing configuration and set a new password for an existing account; the old file is kept
    /// beside the new file, and mail is never touched.
    #[arg(long)]
    force: bool,
    /// Print JSON: an object with `config`, `account`, `password`, `ports`, `dns`, `notes`, `next`.
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
    let plan = Plan::new(args.dir.as_deref(), &account, &hostname, args.acme)?;
    let path = plan.config();
    if path.exists() && !args.force {
        return Err(Failure::new(format!(
            "{} is there already; --force overwrites it and keeps the old one as {}",
            path.display(),
            files::old(&path).display()
        )));
    }
    let text = plan.text();
    let settings = Settings::parse(&text, &path.to_string_lossy())?;
    let password = generate();
    plan.make_folders()?;
    if !args.acme {
        plan.make_certificate()?;
    }
    fill(&create(&settings)?, &account, &password, args.force)?;
    let keys = super::dkim::ensure(&settings, account.domain().as_str())?;
    plan.give_to_user()?;
    if let Some(drop_in) = plan.drop_in() {
        write_drop_in(&settings, &path, drop_in)?;
    }
    plan.write(&text)?;
    let report = Report {
        account: &account,
        hostname: &hostname,
        password: &password,
        plan: &plan,
        keys: &keys,
    };
    Ok(if args.json {
        report.json()
    } else {
        report.text()
    })
}

/// Adds domain, account and roles to the directory, where missing.
fn fill(
    directory: &Directory,
    account: &AccountName,
    password: &Secret<String>,
    force: bool,
) -> Result<(), Failure> {
    let exists = directory.store().account(account)?.is_some();
    if exists && !force {
        return Err(Failure::new(format!(
            "account {account} is there already; --force sets a new password for it"
        )));
    }
    let credentials = Some(new_credentials(password)?);
    let domain = account.domain();
    if directory.store().domain(domain)?.is_none() {
        directory
            .add_domain(domain.clone(), None)
            .map_err(explained)?;
    }
    if exists {
        directory
            .set_credentials(account.clone(), credentials)
            .map_err(explained)?;
    } else {
        directory
            .add_account(account.clone(), credentials)
            .map_err(explained)?;
    }
    for role in ROLES {
        let name = AccountName::new(role, domain.clone())?;
        let taken = directory.store().alias(&name)?.is_some()
            || directory.store().account(&name)?.is_some();
        if !taken {
            directory
                .set_alias(name, [account.to_string().as_str()])
                .map_err(explained)?;
        }
    }
    Ok(())
}

/// The files created, and the steps that remain for the user.
struct Report<'a> {
    account: &'a AccountName,
    hostname: &'a DomainName,
    password: &'a Secret<String>,
    plan: &'a Plan,
    /// The keys that sign the domain's mail.
    keys: &'a [StoredKey],
}

impl Report<'_> {
    fn records(&self) -> Vec<Record> {
        let mut records = dns::records(&dns::Place {
            domain: self.account.domain(),
            hostname: self.hostname,
            ports: &self.plan.ports,
            addresses: &public_addresses(),
            acme: self.plan.acme,
        });
        records.extend(self.keys.iter().map(dns::of_key));
        records
    }

    fn next(&self) -> String {
        match self.plan.has_unit() {
            true => "systemctl enable --now vere".to_owned(),
            false => format!("vere serve -c {}", quoted(&self.plan.config())),
        }
    }

    /// Returns the notes for the operator, without the DNS records.
    fn notes(&self) -> Vec<String> {
        let (account, hostname) = (self.account, self.hostname);
        let mut notes = vec![
            format!(
                "once the records are published and the system runs, look for faults with: vere dns check {}",
                account.domain()
            ),
            format!(
                "ask whoever gave you the IP address to let its reverse record (PTR) say {hostname}"
            ),
            format!(
                "once the certificate is one that others trust, publish MTA-STS (RFC 8461): a policy \
                 at https://mta-sts.{}/.well-known/mta-sts.txt and the record _mta-sts",
                account.domain()
            ),
        ];
        let [gateway, store, front] = self.plan.ports.all_metrics();
        notes.push(format!(
            "metrics for Prometheus are at http://127.0.0.1:{gateway}/metrics, and at the ports {store} (mail store) \
             and {front} (front)"
        ));
        if self.plan.ports == Ports::HIGH {
            notes.push(format!(
                "you are not root, so the ports are {}; other systems deliver to port 25",
                self.plan.ports
            ));
        }
        if self.plan.acme {
            notes.push(format!(
                "port 80 of {hostname} must be reachable for the certificate"
            ));
        } else {
            notes.push(
                "the certificate is self-signed: mail programs will ask whether to trust it; \
                 --acme gets one that they trust"
                    .to_owned(),
            );
        }
        notes.extend(self.plan.note_on_user());
        notes.extend(self.plan.drop_in().map(|drop_in| {
            format!(
                "{} limits the memory of the service by the bounds of these settings; make it again when limits \
                 change: vere config memory --systemd",
                drop_in.display()
            )
        }));
        notes
    }

    fn text(&self) -> String {
        let Self {
            account,
            hostname,
            password,
            plan,
            keys: _,
        } = self;
        let mut text = format!(
            "wrote {}\nmail is kept below {}\n\naccount   {account}\npassword  {}\n\
             server    {hostname}, ports {}\n\nDNS records to add:\n\n",
            plan.config().display(),
            plan.data.display(),
            password.expose(),
            plan.ports,
        );
        for record in self.records() {
            let _ = writeln!(text, "  {record}");
        }
        text.push('\n');
        for note in self.notes() {
            let _ = writeln!(text, "- {note}");
        }
        let _ = writeln!(text, "\nnext: {}", self.next());
        text
    }

    fn json(&self) -> String {
        let record = |record: &Record| json!({ "name": record.name, "type": record.kind, "value": record.value });
        let ports = &self.plan.ports;
        let value = json!({
            "config": self.plan.config(),
            "data": self.plan.data,
            "account": self.account.to_string(),
            "password": self.password.expose(),
            "hostname": self.hostname.as_str(),
            "ports": {
                "smtp": ports.smtp,
                "submission": ports.submission,
                "submissions": ports.submissions,
                "imaps": ports.imaps,
                "lmtp": ports.lmtp,
                "metrics": ports.metrics,
            },
            "dns": self.records().iter().map(record).collect::<Vec<_>>(),
            "notes": self.notes(),
            "next": self.next(),
        });
        format!("{value:#}\n")
    }
}

/// A path as a single word of a shell command.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
#[path = "quickstart/tests.rs"]
mod tests;
