//! `vere account`: the accounts of the local system.

mod password;
mod quota;
mod records;
mod rename;
mod show;
mod state;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use serde_json::json;
use vere_directory::Directory;
use vere_ports::directory::{Account, AccountName, ChangeError, DomainName, Page};
use vere_settings::{LocalDelivery, Settings};

use vere_login::directory::{create, open};
use vere_process::confirm::confirm;
use vere_process::failure::Failure;
use vere_role_store::maintenance::accounts;

pub(super) use password::{generate, new_credentials};
pub(super) use records::{each_alias, explained};
use records::{each_row, existing, leading, maildir};

use password::{Chosen, PasswordArgs};
use vere_process::json::printed;

/// Manage accounts.
#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Add an account in an existing domain.
    Add {
        /// The address, such as `you@example.org`.
        address: String,
        #[command(flatten)]
        password: PasswordArgs,
        /// Give the account the mail that an earlier account of the name left; without the option such a name is
        /// refused.
        #[arg(long)]
        inherit: bool,
        /// Print JSON: an object with `account` and, if one was generated, `password`.
        #[arg(long)]
        json: bool,
    },
    /// Print what is known about an account: logins, aliases, mail, quota, limits of sending.
    Show {
        /// The address.
        address: String,
        /// Print JSON: an object with `account`, `login` (`yes`, `no password` or `disabled`), `aliases`, `mail`, `quota`
        /// and `sending`.
        #[arg(long)]
        json: bool,
    },
    /// Refuse logins and end sessions; the mail, the password and the acceptance of mail stay.
    Disable {
        /// The address.
        address: String,
        /// Print JSON: an object with `account` and `changed`.
        #[arg(long)]
        json: bool,
    },
    /// Let a disabled account log in again, by its password.
    Enable {
        /// The address.
        address: String,
        /// Print JSON: an object with `account` and `changed`.
        #[arg(long)]
        json: bool,
    },
    Rename(rename::RenameArgs),
    Quota(quota::QuotaArgs),
    /// Remove an account; keep its mail, unless `--purge` is given.
    #[command(visible_alias = "remove")]
    Del {
        /// The address.
        address: String,
        /// Remove all its mailboxes and mail from the mail store as well, permanently.
        #[arg(long)]
        purge: bool,
        /// Print the account, mail and aliases that the removal would affect, and change nothing.
        #[arg(long, conflicts_with = "json")]
        dry_run: bool,
        /// Do not ask for confirmation.
        #[arg(long, requires = "purge")]
        yes: bool,
        /// Print JSON: an object with `account`, `mailbox`, `aliases` that still lead to the account and `purged`.
        #[arg(long)]
        json: bool,
    },
    /// List accounts.
    List {
        /// List only the accounts of this domain.
        domain: Option<String>,
        /// Print JSON: a list of objects with `account`, `login` and `disabled`.
        #[arg(long)]
        json: bool,
    },
    /// Set a new password.
    Passwd {
        /// The address.
        address: String,
        #[command(flatten)]
        password: PasswordArgs,
        /// Print JSON: an object with `account` and, if one was generated, `password`.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command and returns the text to print; the settings come with their file.
///
/// # Errors
/// When names or passwords are invalid, or the directory cannot be read or changed.
pub(crate) fn run(
    command: &AccountCommand,
    (file, settings): &(PathBuf, Arc<Settings>),
) -> Result<String, Failure> {
    match command {
        AccountCommand::Add {
            address,
            password,
            inherit,
            json,
        } => {
            let name = AccountName::parse(address)?;
            let directory = create(settings)?;
            no_tag(&name, settings)?;
            // Before anybody is asked for a password.
            if directory.store().domain(name.domain())?.is_none() {
                return Err(explained(ChangeError::NoSuchDomain(name.domain().clone())));
            }
            if directory.store().account(&name)?.is_some() {
                return Err(explained(ChangeError::AccountExists(name)));
            }
            let inherited = match inherit {
                true => kept(&name, settings).unwrap_or(None),
                false => refuse_kept(&name, settings).map(|()| None)?,
            };
            let chosen = password.choose(&name)?;
            let credentials = chosen.credentials()?;
            directory
                .add_account(name.clone(), credentials)
                .map_err(explained)?;
            let added = report("added", &name, &chosen, *json);
            Ok(match inherited {
                Some(what) if !json => {
                    format!("{added}it has what was kept of this name: {what}\n")
                }
                _ => added,
            })
        }
        AccountCommand::Passwd {
            address,
            password,
            json,
        } => set_password(address, password, *json, settings),
        AccountCommand::Del {
            address,
            purge,
            dry_run: true,
            ..
        } => would_remove(address, *purge, settings),
        AccountCommand::Del {
            address,
            purge,
            yes,
            json,
            ..
        } => remove(address, (*purge, *yes), *json, settings),
        AccountCommand::Quota(args) => quota::run(args, file, settings),
        AccountCommand::Rename(args) => rename::run(args, settings),
        AccountCommand::Show { address, json } => show::run(address, *json, settings),
        AccountCommand::Disable { address, json } => state::set(address, false, *json, settings),
        AccountCommand::Enable { address, json } => state::set(address, true, *json, settings),
        AccountCommand::List { domain, json } => list(domain.as_deref(), *json, settings),
    }
}

/// Replaces the password of an account. A new password does not enable a disabled account.
fn set_password(
    address: &str,
    password: &PasswordArgs,
    json: bool,
    settings: &Settings,
) -> Result<String, Failure> {
    let name = AccountName::parse(address)?;
    let directory = open(settings)?;
    let account = existing(&directory, &name)?;
    let chosen = password.choose(&name)?;
    let disabled = state::is_disabled(&account);
    let credentials = chosen.credentials()?;
    let credentials = credentials.map(|made| match disabled {
        true => made.locked(),
        false => made,
    });
    directory
        .set_credentials(name.clone(), credentials)
        .map_err(explained)?;
    let said = report("password set for", &name, &chosen, json);
    Ok(match disabled && !json {
        true => format!(
            "{said}the account stays disabled; enable it with: vere account enable {name}\n"
        ),
        false => said,
    })
}

/// The mail kept under a name, in words.
///
/// # Errors
/// When the mail store does not answer.
fn kept(name: &AccountName, settings: &Settings) -> Result<Option<String>, Failure> {
    if settings.delivery.local == LocalDelivery::Maildir {
        let mailbox = maildir(name, settings);
        let has_mail = ["new", "cur"].iter().any(|part| {
            let files = std::fs::read_dir(mailbox.join(part));
            files.is_ok_and(|mut files| files.next().is_some())
        });
        return Ok(has_mail.then(|| format!("mail in {}", mailbox.display())));
    }
    let row = accounts::kept(settings, name)?;
    Ok(row
        .filter(|row| row.messages > 0)
        .map(|row| accounts::amount(&row)))
}

/// The new owner of a name does not inherit the mail of the earlier owner.
fn refuse_kept(name: &AccountName, settings: &Settings) -> Result<(), Failure> {
    let found = kept(name, settings).map_err(|error| {
        Failure::new(format!(
            "whether mail of an earlier {name} is kept cannot be told: {error}; to take what there is: \
             vere account add --inherit {name}"
        ))
    })?;
    let Some(what) = found else {
        return Ok(());
    };
    let remove = match settings.delivery.local {
        LocalDelivery::Maildir => "remove that folder".to_owned(),
        LocalDelivery::Store => format!("vere store remove-account {name}"),
    };
    Err(Failure::new(format!(
        "{what} of an earlier {name} would belong to the new account; if that is right: \
         vere account add --inherit {name}; to begin without it: {remove}"
    )))
}

/// The note for the removal of an account that has, or may have, mail in the store.
fn mail_stays(name: &AccountName, settings: &Settings) -> String {
    let what = match accounts::mail_of(settings, name) {
        Some(row) if row.messages == 0 => return String::new(),
        Some(row) => accounts::amount(&row),
        None if settings.data.join("store/log").is_dir() => "what it has of mail".to_owned(),
        None => return String::new(),
    };
    format!(
        "in the mail store stays: {what}; the next account of this name gets it by `vere account add --inherit`; \
         it is removed by: vere store remove-account {name}\n"
    )
}

/// The text behind the separator is a tag of the account before the separator.
fn no_tag(name: &AccountName, settings: &Settings) -> Result<(), Failure> {
    let separator = settings.directory.subaddress_separator;
    match separator.filter(|mark| name.local().contains(*mark)) {
        Some(mark) => Err(Failure::new(format!(
            "{name}: {mark} stands before tags (directory.subaddress_separator), an account's name is \
             without one; an alias may have one"
        ))),
        None => Ok(()),
    }
}

fn report(what: &str, name: &AccountName, chosen: &Chosen, json: bool) -> String {
    let mut value = json!({ "account": name.to_string() });
    let text = match chosen {
        Chosen::Generated(password) => {
            value["password"] = password.expose().as_str().into();
            format!("{what} {name}\npassword: {}\n", password.expose())
        }
        Chosen::Given(_) => format!("{what} {name}\n"),
        Chosen::Nothing => format!("{what} {name}, nobody can log in to it\n"),
    };
    printed(json, value, text)
}

fn remove(
    address: &str,
    (purge, yes): (bool, bool),
    json: bool,
    settings: &Settings,
) -> Result<String, Failure> {
    let name = AccountName::parse(address)?;
    let directory = open(settings)?;
    let mailbox = maildir(&name, settings);
    if purge {
        may_purge(&directory, &name, yes, settings)?;
    }
    directory.remove_account(name.clone()).map_err(explained)?;
    let purged = match purge {
        true => Some(accounts::remove(settings, &name, true)?),
        false => None,
    };
    let leading = leading(&directory, &name)?;
    if json {
        let mailbox = mailbox.display().to_string();
        let mut value =
            json!({ "account": name.to_string(), "mailbox": mailbox, "aliases": leading });
        value["purged"] = purge.into();
        return Ok(format!("{value:#}\n"));
    }
    let mut out = format!("removed {name}\n");
    if mailbox.exists() {
        let _ = writeln!(out, "its mailbox is still there: {}", mailbox.display());
    }
    match purged {
        Some(what) => out += &what,
        None => out += &mail_stays(&name, settings),
    }
    if !leading.is_empty() {
        let _ = writeln!(out, "aliases that still lead to it: {}", leading.join(", "));
    }
    Ok(out)
}

/// What [`remove`] would change.
fn would_remove(address: &str, purge: bool, settings: &Settings) -> Result<String, Failure> {
    let name = AccountName::parse(address)?;
    let directory = open(settings)?;
    existing(&directory, &name)?;
    let mut out = format!("{name} would be removed\n");
    if let Some(what) = kept(&name, settings)? {
        let becomes = if purge {
            "would be removed"
        } else {
            "would stay"
        };
        let _ = writeln!(out, "{what} {becomes}");
    }
    let leading = leading(&directory, &name)?;
    if !leading.is_empty() {
        let _ = writeln!(
            out,
            "aliases that would still lead to it: {}",
            leading.join(", ")
        );
    }
    Ok(out)
}

/// Whether all mail of an account may be removed with the account, after a question to the user.
fn may_purge(
    directory: &Directory,
    name: &AccountName,
    yes: bool,
    settings: &Settings,
) -> Result<(), Failure> {
    if directory.store().account(name)?.is_none() {
        return Err(explained(ChangeError::NoSuchAccount(name.clone())));
    }
    if settings.delivery.local == LocalDelivery::Maildir {
        return Err(Failure::new(format!(
            "--purge is for the mail store; found delivery.local = \"maildir\": remove {} yourself",
            maildir(name, settings).display()
        )));
    }
    let what = kept(name, settings)?;
    match what.filter(|_| !yes) {
        Some(what) => Ok(confirm(&format!("{name} and {what} would be removed"))?),
        None => Ok(()),
    }
}

fn list(domain: Option<&str>, json: bool, settings: &Settings) -> Result<String, Failure> {
    let domain = domain.map(DomainName::parse).transpose()?;
    let directory = open(settings)?;
    if let Some(name) = &domain
        && directory.store().domain(name)?.is_none()
    {
        return Err(explained(ChangeError::NoSuchDomain(name.clone())));
    }
    let (mut text, mut values) = (String::new(), Vec::new());
    let read = |page: &Page| directory.store().accounts(page);
    let name = |account: &Account| account.name.clone();
    each_row(domain, read, name, |account| {
        let disabled = state::is_disabled(account);
        let login = account.credentials.is_some() && !disabled;
        let name = account.name.to_string();
        values.push(json!({ "account": name, "login": login, "disabled": disabled }));
        let note = match (login, disabled) {
            (true, _) => "",
            (false, true) => "  (disabled)",
            (false, false) => "  (no password)",
        };
        let _ = writeln!(text, "{}{note}", account.name);
    })?;
    Ok(printed(json, values, text))
}

#[cfg(test)]
#[path = "account/tests.rs"]
mod tests;
