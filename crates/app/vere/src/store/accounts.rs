//! Whole accounts: what each has in the mail store, and the end of what one has that the directory does not know.

use serde::{Deserialize, Serialize};
use vere_directory::Directory;
use vere_ports::directory::AccountName;
use vere_store::Holding;

use super::keeper::{Keeper, MailStore};
use super::listeners::Reception;
use crate::failure::Failure;

/// Accounts looked at in one go: others wait for the store that long.
const PAGE: usize = 100;

/// What an account has in the mail store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccountRow {
    pub(crate) account: String,
    pub(crate) mailboxes: u64,
    pub(crate) messages: u64,
    pub(crate) octets: u64,
}

/// Some accounts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AccountsPage {
    pub(crate) accounts: Vec<AccountRow>,
    /// Behind which one the next begin, unless these are the last.
    pub(crate) after: Option<String>,
}

fn row(holding: Holding) -> AccountRow {
    AccountRow {
        account: holding.account.to_string(),
        mailboxes: holding.mailboxes,
        messages: holding.usage.messages,
        octets: holding.usage.octets,
    }
}

/// Some accounts of the store that runs.
///
/// # Errors
/// When they cannot be read.
pub(super) async fn page(keeper: &Keeper, after: Option<String>) -> Result<AccountsPage, Failure> {
    let after = after.as_deref().map(AccountName::parse).transpose()?;
    let asked = keeper.ask(move |store| store.holdings(after, PAGE)).await;
    let (holdings, after) = asked?;
    Ok(AccountsPage {
        accounts: holdings.into_iter().map(row).collect(),
        after: after.map(|name| name.to_string()),
    })
}

/// What an account has in the store that runs.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn one(keeper: &Keeper, account: &str) -> Result<AccountRow, Failure> {
    let account = AccountName::parse(account)?;
    let asked = keeper.ask(move |store| store.holding(&account)).await;
    Ok(row(asked?))
}

/// Removes what an account has in the store that runs, for a user of the system.
///
/// # Errors
/// When the directory knows it or cannot be read, or the store fails.
pub(super) async fn remove(
    reception: &Reception,
    account: &AccountName,
    operator: u32,
) -> Result<AccountRow, Failure> {
    unknown(reception.directory(), account)?;
    let name = account.clone();
    let asked = reception
        .keeper()
        .ask(move |store| store.remove_account(&name));
    let gone = row(asked.await?);
    log(&gone, operator);
    Ok(gone)
}

/// Holds for an account that the directory does not know.
///
/// # Errors
/// When it does, or cannot be read.
pub(crate) fn unknown(directory: &Directory, account: &AccountName) -> Result<(), Failure> {
    match directory.store().account(account)? {
        None => Ok(()),
        Some(_) => Err(Failure::new(format!(
            "the directory knows {account}, its mail stays; to remove both begin with: vere account del {account}"
        ))),
    }
}

fn log(gone: &AccountRow, operator: u32) {
    tracing::warn!(
        account = gone.account,
        mailboxes = gone.mailboxes,
        messages = gone.messages,
        octets = gone.octets,
        operator,
        "all mail of an account removed"
    );
}

/// All accounts of a store that nobody else uses.
///
/// # Errors
/// When they cannot be read.
pub(crate) fn all_alone(store: &MailStore) -> Result<Vec<AccountRow>, Failure> {
    let held = store.holdings(None, usize::MAX)?.when(store.end());
    let (holdings, _) = held.map_err(|_| not_synced())?;
    Ok(holdings.into_iter().map(row).collect())
}

/// What an account has in a store that nobody else uses.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn one_alone(store: &MailStore, account: &AccountName) -> Result<AccountRow, Failure> {
    let held = store.holding(account)?.when(store.end());
    Ok(row(held.map_err(|_| not_synced())?))
}

/// Removes what an account has in a store that nobody else uses; it is safe then.
///
/// # Errors
/// When the store cannot be written.
pub(crate) fn remove_alone(
    store: &mut MailStore,
    account: &AccountName,
) -> Result<AccountRow, Failure> {
    let gone = store.remove_account(account)?;
    sync(store)?;
    while store.is_emptying() {
        if let Err(error) = store.empty_some() {
            // It is removed; the role goes on with what is left of it.
            tracing::warn!(%error, "the room of removed mailboxes is not all given back yet");
            break;
        }
        sync(store)?;
    }
    let gone = row(gone.when(store.synced()).map_err(|_| not_synced())?);
    log(&gone, nix::unistd::geteuid().as_raw());
    Ok(gone)
}

fn sync(store: &mut MailStore) -> Result<(), Failure> {
    while let Some(job) = store.sync_job()? {
        store.finish_sync(job.run())?;
    }
    Ok(())
}

fn not_synced() -> Failure {
    Failure::new("the store is not synced")
}
