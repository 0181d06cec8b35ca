//! `vere domain`: the local domains.

use std::fmt::Write as _;

use clap::Subcommand;
use serde_json::json;
use vere_ports::directory::{AccountName, DomainName};
use vere_settings::Settings;

use vere_login::directory::{create, open};

use super::account::explained;
use vere_process::failure::Failure;
use vere_process::json::printed;

/// Manage domains.
#[derive(Debug, Subcommand)]
pub(crate) enum DomainCommand {
    /// Add a domain.
    Add {
        /// The domain; international names in either form.
        domain: String,
        /// The recipient of mail for unknown users; by default such mail is refused.
        #[arg(long, value_name = "ADDRESS")]
        catch_all: Option<String>,
        /// The recipient of the postmaster's mail, which every domain must accept (RFC 5321 section 4.5.1).
        #[arg(long, value_name = "ADDRESS")]
        postmaster: Option<String>,
        /// Print JSON: an object with `domain`.
        #[arg(long)]
        json: bool,
    },
    /// List domains.
    List {
        /// Print JSON: a list of objects with `domain`, `catch_all`, `accounts`, `aliases`.
        #[arg(long)]
        json: bool,
    },
    /// Remove a domain without accounts and aliases.
    Del {
        /// The domain.
        domain: String,
        /// Print JSON: an object with `domain`.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When names are invalid, or the directory cannot be read or changed.
pub(crate) fn run(command: &DomainCommand, settings: &Settings) -> Result<String, Failure> {
    match command {
        DomainCommand::Add {
            domain,
            catch_all,
            postmaster,
            json,
        } => {
            let name = DomainName::parse(domain)?;
            let directory = create(settings)?;
            directory
                .add_domain(name.clone(), catch_all.as_deref())
                .map_err(explained)?;
            let mut text = format!("added {name}\n");
            if let Some(target) = postmaster {
                let alias = AccountName::new("postmaster", name.clone())?;
                directory
                    .set_alias(alias, [target.as_str()])
                    .map_err(explained)?;
            } else {
                let _ = writeln!(
                    text,
                    "the postmaster's mail has to go to somebody: \
                     vere alias add postmaster@{name} ADDRESS"
                );
            }
            Ok(printed(*json, json!({ "domain": name.as_str() }), text))
        }
        DomainCommand::Del { domain, json } => {
            let name = DomainName::parse(domain)?;
            open(settings)?
                .remove_domain(name.clone())
                .map_err(explained)?;
            let value = json!({ "domain": name.as_str() });
            Ok(printed(*json, value, format!("removed {name}\n")))
        }
        DomainCommand::List { json } => list(*json, settings),
    }
}

fn list(json: bool, settings: &Settings) -> Result<String, Failure> {
    let directory = open(settings)?;
    let (mut text, mut values) = (String::new(), Vec::new());
    for domain in directory.store().domains()? {
        let (accounts, aliases) = directory.store().count(&domain.name)?;
        values.push(json!({
            "domain": domain.name.as_str(),
            "catch_all": domain.catch_all,
            "accounts": accounts,
            "aliases": aliases,
        }));
        let _ = write!(
            text,
            "{:<40} {accounts:>7} accounts {aliases:>7} aliases",
            domain.name
        );
        if let Some(target) = domain.catch_all {
            let _ = write!(text, "  others to {target}");
        }
        text.push('\n');
    }
    Ok(printed(json, values, text))
}
