//! `vere account`: who has a mailbox here.

mod password;

use std::fmt::Write as _;

use clap::Subcommand;
use serde_json::json;
use vere_directory::Directory;
use vere_ports::directory::{AccountName, ChangeError, DomainName, Page};
use vere_settings::Settings;

use super::store::accounts;
use super::{Failure, is_there};

pub(super) use password::{generate, new_credentials};

use password::{Chosen, PasswordArgs};

/// Rows asked of a store at once.
const PAGE: usize = 1_000;

/// Manages accounts.
#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Adds an account; its domain must be there.
    Add {
        /// The address, such as `you@example.org`.
        address: String,
        #[command(flatten)]
        password: PasswordArgs,
        /// Prints JSON: an object with `account` and, if one was generated, `password`.
        #[arg(long)]
        json: bool,
    },
    /// Removes an account; its mail stays where it is (`vere store remove-account` removes that).
    Del {
        /// The address.
        address: String,
        /// Prints JSON: an object with `account`, `mailbox` and `aliases` that still lead there.
        #[arg(long)]
        json: bool,
    },
    /// Lists accounts.
    List {
        /// Only those of this domain.
        domain: Option<String>,
        /// Prints JSON: a list of objects with `account` and `login`.
        #[arg(long)]
        json: bool,
    },
    /// Sets a new password.
    Passwd {
        /// The address.
        address: String,
        #[command(flatten)]
        password: PasswordArgs,
        /// Prints JSON: an object with `account` and, if one was generated, `password`.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command and gives what is to be printed.
///
/// # Errors
/// When names or passwords are not right, or the directory cannot be read or changed.
pub(crate) fn run(command: &AccountCommand, settings: &Settings) -> Result<String, Failure> {
    match command {
        AccountCommand::Add {
            address,
            password,
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
            let chosen = password.choose(&name)?;
            let credentials = chosen.credentials()?;
            directory
                .add_account(name.clone(), credentials)
                .map_err(explained)?;
            let added = report("added", &name, &chosen, *json);
            Ok(match *json {
                true => added,
                false => added + &mail_there(&name, settings),
            })
        }
        AccountCommand::Passwd {
            address,
            password,
            json,
        } => {
            let name = AccountName::parse(address)?;
            let directory = open(settings)?;
            if directory.store().account(&name)?.is_none() {
                return Err(explained(ChangeError::NoSuchAccount(name)));
            }
            let chosen = password.choose(&name)?;
            let credentials = chosen.credentials()?;
            directory
                .set_credentials(name.clone(), credentials)
                .map_err(explained)?;
            Ok(report("password set for", &name, &chosen, *json))
        }
        AccountCommand::Del { address, json } => remove(address, *json, settings),
        AccountCommand::List { domain, json } => list(domain.as_deref(), *json, settings),
    }
}

/// What is said to who adds an account that has mail already.
fn mail_there(name: &AccountName, settings: &Settings) -> String {
    match accounts::mail_of(settings, name).filter(|row| row.messages > 0) {
        Some(row) => format!(
            "mail of this name is there already, which it has now: {}; to begin without: \
             vere account del {name}; vere store remove-account {name}; and add it again\n",
            accounts::amount(&row)
        ),
        None => String::new(),
    }
}

/// What is said to who removes an account that has, or may have, mail in the store.
fn mail_stays(name: &AccountName, settings: &Settings) -> String {
    let what = match accounts::mail_of(settings, name) {
        Some(row) if row.messages == 0 => return String::new(),
        Some(row) => accounts::amount(&row),
        None if settings.data.join("store/log").is_dir() => "what it has of mail".to_owned(),
        None => return String::new(),
    };
    format!(
        "in the mail store stays, for the next account of this name: {what}; it is removed by: \
         vere store remove-account {name}\n"
    )
}

/// What stands behind the separator is a tag of the account before it.
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

/// Opens the directory of the settings; makes it when it is not there yet.
pub(super) fn create(settings: &Settings) -> Result<Directory, Failure> {
    let store = vere_disk::directory::create(&settings.directory.store)?;
    Ok(Directory::new(
        store,
        settings.directory.subaddress_separator,
    ))
}

/// Opens the directory of the settings, which must be there.
pub(super) fn open(settings: &Settings) -> Result<Directory, Failure> {
    use vere_settings::DirectoryStore::{File, Sqlite};
    let (File(path) | Sqlite(path)) = &settings.directory.store;
    if !is_there(path, settings)? {
        return Err(Failure::new(format!(
            "there are no domains yet ({} does not exist), begin with: vere domain add DOMAIN",
            path.display()
        )));
    }
    let store = vere_disk::directory::open(&settings.directory.store)?;
    Ok(Directory::new(
        store,
        settings.directory.subaddress_separator,
    ))
}

/// As [`open`]; nothing when it is not there yet.
pub(super) fn open_if_there(settings: &Settings) -> Result<Option<Directory>, Failure> {
    use vere_settings::DirectoryStore::{File, Sqlite};
    let (File(path) | Sqlite(path)) = &settings.directory.store;
    match is_there(path, settings)? {
        true => open(settings).map(Some),
        false => Ok(None),
    }
}

/// Adds to an error what to do about it.
pub(super) fn explained(error: ChangeError) -> Failure {
    let advice = match &error {
        ChangeError::NoSuchDomain(name) => format!(", add it with: vere domain add {name}"),
        ChangeError::AccountExists(name) => {
            format!(", for a new password: vere account passwd {name}")
        }
        ChangeError::NoSuchAccount(name) => {
            format!(", those there are: vere account list {}", name.domain())
        }
        ChangeError::DomainInUse(name, ..) => {
            format!(" (vere account list {name}; vere alias list {name})")
        }
        _ => String::new(),
    };
    Failure::new(format!("{error}{advice}"))
}

fn report(what: &str, name: &AccountName, chosen: &Chosen, json: bool) -> String {
    let name = name.to_string();
    match (json, chosen) {
        (true, Chosen::Generated(password)) => {
            format!(
                "{:#}\n",
                json!({ "account": name, "password": password.expose() })
            )
        }
        (true, _) => format!("{:#}\n", json!({ "account": name })),
        (false, Chosen::Generated(password)) => {
            format!("{what} {name}\npassword: {}\n", password.expose())
        }
        (false, Chosen::Given(_)) => format!("{what} {name}\n"),
        (false, Chosen::Nothing) => format!("{what} {name}, nobody can log in to it\n"),
    }
}

fn remove(address: &str, json: bool, settings: &Settings) -> Result<String, Failure> {
    let name = AccountName::parse(address)?;
    let directory = open(settings)?;
    directory.remove_account(name.clone()).map_err(explained)?;
    let mailbox = vere_disk::maildir::maildir_path(
        &settings.delivery.maildir,
        name.local(),
        name.domain().as_str(),
    );
    let mut leading: Vec<String> = Vec::new();
    each_alias(&directory, None, |alias| {
        let there = |target: &String| AccountName::parse(target).as_ref() == Ok(&name);
        if alias.targets.iter().any(there) {
            leading.push(alias.name.to_string());
        }
    })?;
    if json {
        let mailbox = mailbox.display().to_string();
        let value = json!({ "account": name.to_string(), "mailbox": mailbox, "aliases": leading });
        return Ok(format!("{value:#}\n"));
    }
    let mut out = format!("removed {name}\n");
    if mailbox.exists() {
        let _ = writeln!(out, "its mailbox is still there: {}", mailbox.display());
    }
    out += &mail_stays(&name, settings);
    if !leading.is_empty() {
        let _ = writeln!(out, "aliases that still lead to it: {}", leading.join(", "));
    }
    Ok(out)
}

fn list(domain: Option<&str>, json: bool, settings: &Settings) -> Result<String, Failure> {
    let domain = domain.map(DomainName::parse).transpose()?;
    let directory = open(settings)?;
    if let Some(name) = &domain
        && directory.store().domain(name)?.is_none()
    {
        return Err(explained(ChangeError::NoSuchDomain(name.clone())));
    }
    let mut page = Page {
        domain,
        after: None,
        limit: PAGE,
    };
    let (mut text, mut values) = (String::new(), Vec::new());
    loop {
        let rows = directory.store().accounts(&page)?;
        for account in &rows {
            let login = account.credentials.is_some();
            if json {
                values.push(json!({ "account": account.name.to_string(), "login": login }));
            } else {
                let note = if login { "" } else { "  (no password)" };
                let _ = writeln!(text, "{}{note}", account.name);
            }
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE => page.after = Some(last.name.clone()),
            _ => break,
        }
    }
    Ok(if json {
        format!("{:#}\n", serde_json::Value::from(values))
    } else {
        text
    })
}

/// Walks over all aliases, of one domain or of all.
pub(super) fn each_alias(
    directory: &Directory,
    domain: Option<DomainName>,
    mut look: impl FnMut(&vere_ports::directory::Alias),
) -> Result<(), Failure> {
    let mut page = Page {
        domain,
        after: None,
        limit: PAGE,
    };
    loop {
        let rows = directory.store().aliases(&page)?;
        rows.iter().for_each(&mut look);
        match rows.last() {
            Some(last) if rows.len() == PAGE => page.after = Some(last.name.clone()),
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "account/tests.rs"]
mod tests;
