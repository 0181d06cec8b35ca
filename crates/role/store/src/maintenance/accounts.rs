//! `vere store accounts` and `remove-account`: of the store that runs, or on its files while none does.

use std::fmt::Write as _;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::json;
use vere_ports::directory::AccountName;
use vere_settings::Settings;

use super::error::MaintenanceError;
use super::owned::owned;
use crate::accounts::{self, AccountRow, AccountsPage};
use crate::files::Files;
use crate::mail_store::MailStore;
use vere_control::StoreRequest;
use vere_login::directory::{self, DirectoryError};
use vere_process::confirm::confirm;
use vere_process::wording;

/// How long the store may take for an answer: one import or export may have to end before.
const PATIENCE: Duration = Duration::from_secs(90);

/// Lists the accounts.
pub(super) fn list(settings: &Settings, json: bool) -> Result<String, MaintenanceError> {
    let directory = directory::open_if_there(settings)?;
    let (mut text, mut values) = (String::new(), Vec::new());
    for row in all(settings)? {
        let name = AccountName::parse(&row.account)?;
        let known = match &directory {
            Some(directory) => {
                let account = directory.store().account(&name);
                account.map_err(DirectoryError::from)?.is_some()
            }
            None => false,
        };
        if json {
            values.push(json!({
                "account": row.account,
                "mailboxes": row.mailboxes,
                "messages": row.messages,
                "octets": row.octets,
                "known": known,
            }));
        } else {
            let note = if known {
                ""
            } else {
                "  (not in the directory)"
            };
            let size = wording::size(row.octets);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{:<40} {:>10} {size:>12}{note}",
                row.account, row.messages
            );
        }
    }
    Ok(match json {
        true => format!("{:#}\n", serde_json::Value::from(values)),
        false => text,
    })
}

/// Removes what an account has that the directory does not know, once that is wanted.
///
/// # Errors
/// When the directory knows the account, or the store cannot be used.
pub fn remove(
    settings: &Settings,
    account: &AccountName,
    yes: bool,
) -> Result<String, MaintenanceError> {
    match yes {
        true => accounts::unknown(&directory::open(settings)?, account)?,
        false => confirm(&would_remove(settings, account)?)?,
    }
    let name = account.to_string();
    let gone = match ask(settings, &StoreRequest::RemoveAccount { account: name })? {
        Some(row) => row,
        None => alone(settings, |store| {
            accounts::unknown(&directory::open(settings)?, account)?;
            Ok(accounts::remove_alone(store, account)?)
        })?,
    };
    Ok(format!("{} of {account} removed\n", amount(&gone)))
}

/// The mail that [`remove`] would remove, in words.
///
/// # Errors
/// As of [`remove`].
pub(super) fn would_remove(
    settings: &Settings,
    account: &AccountName,
) -> Result<String, MaintenanceError> {
    // Without a directory, the check would report every account as unknown; opening fails first.
    accounts::unknown(&directory::open(settings)?, account)?;
    let request = StoreRequest::Account {
        account: account.to_string(),
    };
    let found = match ask(settings, &request)? {
        Some(row) => row,
        None => alone(settings, |store| Ok(accounts::one_alone(store, account)?))?,
    };
    Ok(format!("{} of {account} would be removed", amount(&found)))
}

/// Gives the mailboxes of an account that the directory does not know any more to another account.
///
/// # Errors
/// When the directory knows the old account or does not know the new one, or the store cannot be used.
pub fn rename(
    settings: &Settings,
    from: &AccountName,
    to: &AccountName,
) -> Result<(), MaintenanceError> {
    let request = StoreRequest::RenameAccount {
        from: from.to_string(),
        to: to.to_string(),
    };
    if ask::<AccountRow>(settings, &request)?.is_some() {
        return Ok(());
    }
    if !settings.data.join("store/log").is_dir() {
        return Ok(());
    }
    accounts::unknown(&directory::open(settings)?, from)?;
    alone(settings, |store| {
        Ok(accounts::rename_alone(store, from, to)?)
    })
}

/// Returns the running store's figures of an account; `None` if no store runs or the store does not answer.
pub fn mail_of(settings: &Settings, account: &AccountName) -> Option<AccountRow> {
    let account = account.to_string();
    ask(settings, &StoreRequest::Account { account }).ok()?
}

/// Returns an account's figures from the running store, else from the store's files; `None` without a store.
///
/// # Errors
/// When the figures cannot be read.
pub fn kept(
    settings: &Settings,
    account: &AccountName,
) -> Result<Option<AccountRow>, MaintenanceError> {
    let name = account.to_string();
    if let Some(row) = ask(settings, &StoreRequest::Account { account: name })? {
        return Ok(Some(row));
    }
    if !settings.data.join("store/log").is_dir() {
        return Ok(None);
    }
    alone(settings, |store| Ok(accounts::one_alone(store, account)?)).map(Some)
}

/// What an account has, in words.
pub fn amount(row: &AccountRow) -> String {
    format!(
        "{} ({}) in {}",
        wording::messages(row.messages),
        wording::size(row.octets),
        wording::counted(row.mailboxes, "mailbox", "mailboxes"),
    )
}

fn all(settings: &Settings) -> Result<Vec<AccountRow>, MaintenanceError> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let Some(page) = ask::<AccountsPage>(settings, &StoreRequest::Accounts { after })? else {
            return alone(settings, |store| Ok(accounts::all_alone(store)?));
        };
        rows.extend(page.accounts);
        after = page.after;
        if after.is_none() {
            return Ok(rows);
        }
    }
}

fn ask<T: DeserializeOwned>(
    settings: &Settings,
    request: &StoreRequest,
) -> Result<Option<T>, MaintenanceError> {
    let asked = vere_control::ask_store(&vere_control::store_socket(settings), request, PATIENCE);
    match asked? {
        Some(value) => Ok(Some(serde_json::from_value(value)?)),
        None => Ok(None),
    }
}

/// Works on a store at rest, with locked files, which root leaves to the owner of the data directory.
fn alone<T>(
    settings: &Settings,
    act: impl FnOnce(&mut MailStore) -> Result<T, MaintenanceError>,
) -> Result<T, MaintenanceError> {
    owned(settings, || act(&mut Files::of(settings)?.open()?))
}
