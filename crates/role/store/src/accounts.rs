//! Whole accounts: usage of each account in the mail store, and removal of mail whose account the directory does not
//! know.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};
use vere_directory::Directory;
use vere_ports::directory::{AccountName, NameError, StoreError as DirectoryError};
use vere_store::{Holding, StoreError};

use super::keeper::Keeper;
use super::mail_store::MailStore;
use super::reception::Reception;

/// Accounts in one page: the store answers no other question while it lists a page.
const PAGE: usize = 100;

/// Why accounts cannot be listed, or mail cannot be removed.
#[derive(Debug)]
pub enum AccountsError {
    /// The requested name is no valid account name.
    Name(NameError),
    /// The store cannot be read or written.
    Store(StoreError),
    /// The directory cannot be read.
    Directory(DirectoryError),
    /// The directory knows the account, so the mail must stay.
    Known(AccountName),
    /// The directory does not know the account that gets the mail.
    Unknown(AccountName),
    /// The store did not sync the change.
    NotSynced,
}

impl fmt::Display for AccountsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Directory(error) => error.fmt(f),
            Self::Known(account) => write!(
                f,
                "the directory knows {account}, its mail stays; to remove both begin with: vere account del {account}"
            ),
            Self::Unknown(account) => write!(f, "the directory does not know {account}"),
            Self::NotSynced => f.write_str("the store is not synced"),
        }
    }
}

/// The causes have none of their own.
impl Error for AccountsError {}

impl From<NameError> for AccountsError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<StoreError> for AccountsError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<DirectoryError> for AccountsError {
    fn from(error: DirectoryError) -> Self {
        Self::Directory(error)
    }
}

/// Usage of an account in the mail store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRow {
    /// The address of the account.
    pub account: String,
    /// Its mailboxes.
    pub mailboxes: u64,
    /// Messages in them.
    pub messages: u64,
    /// Octets of the messages.
    pub octets: u64,
}

/// A page of accounts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AccountsPage {
    pub(crate) accounts: Vec<AccountRow>,
    /// Account after which the next page begins; none on the last page.
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

/// Returns a page of accounts of the running store.
///
/// # Errors
/// When the accounts cannot be read.
pub(super) async fn page(
    keeper: &Keeper,
    after: Option<String>,
) -> Result<AccountsPage, AccountsError> {
    let after = after.as_deref().map(AccountName::parse).transpose()?;
    let asked = keeper.ask(move |store| store.holdings(after, PAGE)).await;
    let (holdings, after) = asked?;
    Ok(AccountsPage {
        accounts: holdings.into_iter().map(row).collect(),
        after: after.map(|name| name.to_string()),
    })
}

/// Returns the usage of an account in the running store.
///
/// # Errors
/// When the account cannot be read.
pub(super) async fn one(keeper: &Keeper, account: &str) -> Result<AccountRow, AccountsError> {
    let account = AccountName::parse(account)?;
    let asked = keeper.ask(move |store| store.holding(&account)).await;
    Ok(row(asked?))
}

/// Removes all mail of an account from the running store, for the operating system's user `operator`.
///
/// # Errors
/// When the directory knows the account or cannot be read, or the store fails.
pub(super) async fn remove(
    reception: &Reception,
    account: &AccountName,
    operator: u32,
) -> Result<AccountRow, AccountsError> {
    unknown(reception.directory(), account)?;
    let name = account.clone();
    let asked = reception
        .keeper()
        .ask(move |store| store.remove_account(&name));
    let gone = row(asked.await?);
    log(&gone, operator);
    Ok(gone)
}

/// Checks that the directory does not know an account.
///
/// # Errors
/// When the directory knows the account, or cannot be read.
pub(crate) fn unknown(directory: &Directory, account: &AccountName) -> Result<(), AccountsError> {
    match directory.store().account(account)? {
        None => Ok(()),
        Some(_) => Err(AccountsError::Known(account.clone())),
    }
}

/// Gives all mail of an account of the running store to another account, for the operating system's user `operator`.
///
/// # Errors
/// When the directory knows the first account or does not know the other one, or the store fails.
pub(super) async fn rename(
    reception: &Reception,
    (from, to): (&str, &str),
    operator: u32,
) -> Result<AccountRow, AccountsError> {
    let (from, to) = (AccountName::parse(from)?, AccountName::parse(to)?);
    unknown(reception.directory(), &from)?;
    if reception.directory().store().account(&to)?.is_none() {
        return Err(AccountsError::Unknown(to));
    }
    let name = to.clone();
    let asked = reception
        .keeper()
        .ask(move |store| store.rename_account(&from, &name));
    let moved = row(asked.await?);
    log_renamed(&moved, &to, operator);
    Ok(moved)
}

/// As [`rename`], in a store that no other process uses.
///
/// # Errors
/// When the store cannot be written.
pub(crate) fn rename_alone(
    store: &mut MailStore,
    from: &AccountName,
    to: &AccountName,
) -> Result<(), AccountsError> {
    let moved = store.rename_account(from, to)?;
    sync(store)?;
    let moved = row(moved.when(store.synced()).map_err(|_| not_synced())?);
    log_renamed(&moved, to, nix::unistd::geteuid().as_raw());
    Ok(())
}

fn log_renamed(moved: &AccountRow, to: &AccountName, operator: u32) {
    tracing::warn!(
        account = moved.account,
        %to,
        mailboxes = moved.mailboxes,
        messages = moved.messages,
        operator,
        "account renamed"
    );
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

/// Returns all accounts of a store that no other process uses.
///
/// # Errors
/// When the accounts cannot be read.
pub(crate) fn all_alone(store: &MailStore) -> Result<Vec<AccountRow>, AccountsError> {
    let held = store.holdings(None, usize::MAX)?.when(store.end());
    let (holdings, _) = held.map_err(|_| not_synced())?;
    Ok(holdings.into_iter().map(row).collect())
}

/// Returns the usage of an account in a store that no other process uses.
///
/// # Errors
/// When the account cannot be read.
pub(crate) fn one_alone(
    store: &MailStore,
    account: &AccountName,
) -> Result<AccountRow, AccountsError> {
    let held = store.holding(account)?.when(store.end());
    Ok(row(held.map_err(|_| not_synced())?))
}

/// Removes all mail of an account from a store that no other process uses, and syncs the removal.
///
/// # Errors
/// When the store cannot be written.
pub(crate) fn remove_alone(
    store: &mut MailStore,
    account: &AccountName,
) -> Result<AccountRow, AccountsError> {
    let gone = store.remove_account(account)?;
    sync(store)?;
    while store.is_emptying() {
        if let Err(error) = store.empty_some() {
            // The account is removed; the role will empty the remaining mailboxes.
            tracing::warn!(%error, "the room of removed mailboxes is not all given back yet");
            break;
        }
        sync(store)?;
    }
    let gone = row(gone.when(store.synced()).map_err(|_| not_synced())?);
    log(&gone, nix::unistd::geteuid().as_raw());
    Ok(gone)
}

fn sync(store: &mut MailStore) -> Result<(), AccountsError> {
    while let Some(job) = store.sync_job()? {
        store.finish_sync(job.run())?;
    }
    Ok(())
}

fn not_synced() -> AccountsError {
    AccountsError::NotSynced
}
