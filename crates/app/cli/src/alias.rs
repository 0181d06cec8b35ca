//! `vere alias`: addresses whose mail goes to other addresses.

use std::fmt::Write as _;

use clap::Subcommand;
use serde_json::json;
use vere_directory::{Directory, Resolution};
use vere_ports::directory::{AccountName, Alias, DomainName};
use vere_settings::Settings;
use vere_smtp::address::AddrSpec;

use vere_login::directory::{create, open};

use super::account::{each_alias, explained};
use vere_process::failure::Failure;
use vere_process::json::printed;

/// Manage aliases.
#[derive(Debug, Subcommand)]
pub(crate) enum AliasCommand {
    /// Add an alias. An alias with itself among its targets keeps a copy for the account of the same name.
    Add {
        /// The address, such as `sales@example.org`.
        address: String,
        /// The targets of the mail: local or remote addresses.
        #[arg(required = true, value_name = "TARGET")]
        targets: Vec<String>,
        /// Replace the targets of an existing alias.
        #[arg(long)]
        replace: bool,
        /// Print JSON: an object with `alias` and `targets`.
        #[arg(long)]
        json: bool,
    },
    /// Remove an alias.
    Del {
        /// The address.
        address: String,
        /// Print JSON: an object with `alias`.
        #[arg(long)]
        json: bool,
    },
    /// List aliases.
    List {
        /// List only the aliases of this domain.
        domain: Option<String>,
        /// Print JSON: a list of objects with `alias` and `targets`.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When names are invalid, or the directory cannot be read or changed.
pub(crate) fn run(command: &AliasCommand, settings: &Settings) -> Result<String, Failure> {
    match command {
        AliasCommand::Add {
            address,
            targets,
            replace,
            json,
        } => {
            let name = AccountName::parse(address)?;
            let directory = create(settings)?;
            let old = directory.store().alias(&name)?;
            match &old {
                Some(old) if !replace => {
                    return Err(Failure::new(format!(
                        "alias {name} exists already and leads to {}; give all its targets with \
                         --replace",
                        old.targets.join(", ")
                    )));
                }
                _ => {}
            }
            directory
                .set_alias(name.clone(), targets.iter().map(String::as_str))
                .map_err(explained)?;
            undo_loop(&directory, &name, old)?;
            added(&directory, &name, targets, *json)
        }
        AliasCommand::Del { address, json } => {
            let name = AccountName::parse(address)?;
            open(settings)?
                .remove_alias(name.clone())
                .map_err(explained)?;
            let value = json!({ "alias": name.to_string() });
            Ok(printed(*json, value, format!("removed {name}\n")))
        }
        AliasCommand::List { domain, json } => list(domain.as_deref(), *json, settings),
    }
}

fn added(
    directory: &Directory,
    name: &AccountName,
    targets: &[String],
    json: bool,
) -> Result<String, Failure> {
    let value = json!({ "alias": name.to_string(), "targets": targets });
    let mut text = format!("{name} leads to {}\n", targets.join(", "));
    for target in targets {
        let missing = AddrSpec::parse(target)
            .is_ok_and(|address| directory.resolve(&address) == Ok(Resolution::NoSuchUser));
        if missing {
            let _ = writeln!(text, "there is no {target} yet");
        }
    }
    let keeps = |target: &String| AccountName::parse(target).as_ref() == Ok(name);
    if directory.store().account(name)?.is_some() && !targets.iter().any(keeps) {
        let _ = writeln!(
            text,
            "warning: {name} is an account, which gets nothing any more; to keep a copy there name it \
             among the targets"
        );
    }
    Ok(printed(json, value, text))
}

/// Takes back an alias that leads to nobody but itself, directly or over further aliases: its mail would be refused.
fn undo_loop(directory: &Directory, name: &AccountName, old: Option<Alias>) -> Result<(), Failure> {
    let address = AddrSpec::new(name.local(), name.domain().as_str())?;
    if directory.resolve(&address)? != Resolution::Loop {
        return Ok(());
    }
    match old {
        Some(old) => {
            let targets = old.targets.iter().map(String::as_str);
            directory.set_alias(name.clone(), targets)
        }
        None => directory.remove_alias(name.clone()),
    }
    .map_err(explained)?;
    Err(Failure::new(format!(
        "{name} would lead to nobody but itself, nothing was changed"
    )))
}

fn list(domain: Option<&str>, json: bool, settings: &Settings) -> Result<String, Failure> {
    let domain = domain.map(DomainName::parse).transpose()?;
    let directory = open(settings)?;
    let (mut text, mut values) = (String::new(), Vec::new());
    each_alias(&directory, domain, |alias| {
        values.push(json!({ "alias": alias.name.to_string(), "targets": alias.targets }));
        let _ = writeln!(text, "{}  {}", alias.name, alias.targets.join(", "));
    })?;
    Ok(printed(json, values, text))
}
