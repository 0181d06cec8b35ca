//! `vere alias`: addresses whose mail goes to others.

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

/// Manages aliases.
#[derive(Debug, Subcommand)]
pub(crate) enum AliasCommand {
    /// Adds an alias. One that names itself among its targets keeps a copy for the account of the
    /// same name.
    Add {
        /// The address, such as `sales@example.org`.
        address: String,
        /// Where its mail goes: addresses, here or elsewhere.
        #[arg(required = true, value_name = "TARGET")]
        targets: Vec<String>,
        /// Replaces the targets of an alias that is there already.
        #[arg(long)]
        replace: bool,
        /// Prints JSON: an object with `alias` and `targets`.
        #[arg(long)]
        json: bool,
    },
    /// Removes an alias.
    Del {
        /// The address.
        address: String,
        /// Prints JSON: an object with `alias`.
        #[arg(long)]
        json: bool,
    },
    /// Lists aliases.
    List {
        /// Only those of this domain.
        domain: Option<String>,
        /// Prints JSON: a list of objects with `alias` and `targets`.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command and gives what is to be printed.
///
/// # Errors
/// When names are not right, or the directory cannot be read or changed.
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
            Ok(if *json {
                format!("{:#}\n", json!({ "alias": name.to_string() }))
            } else {
                format!("removed {name}\n")
            })
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
    if json {
        return Ok(format!(
            "{:#}\n",
            json!({ "alias": name.to_string(), "targets": targets })
        ));
    }
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
    Ok(text)
}

/// Takes an alias back that leads to nobody but itself, over others too: its mail would be refused.
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
        if json {
            let value = json!({ "alias": alias.name.to_string(), "targets": alias.targets });
            values.push(value);
        } else {
            let _ = writeln!(text, "{}  {}", alias.name, alias.targets.join(", "));
        }
    })?;
    Ok(if json {
        format!("{:#}\n", serde_json::Value::from(values))
    } else {
        text
    })
}
