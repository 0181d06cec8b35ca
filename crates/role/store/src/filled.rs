//! Stores for tests, opened and filled without the processes and threads of the role.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use vere_directory::Directory;
use vere_ports::directory::{Account, AccountName, Change, Domain, MemoryStore};
use vere_store::{
    Flags, InternalDate, MailboxId, OperationId, Prepared, QuotaLimit, RecipientFields,
    SystemFlags, Target,
};
use vere_units::Timestamp;

use super::files::Files;
use super::mail_store::MailStore;

/// A folder in which a store can be opened.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("log")).unwrap();
    folder
}

/// Locks a store's folder. A program that another test starts at this moment has all that is open until it
/// executes, the lock of a store that was closed just now included.
pub(crate) fn lock(folder: &Path) -> Files {
    let patience = Instant::now() + Duration::from_secs(10);
    loop {
        match Files::lock(folder) {
            Ok(files) => return files,
            Err(error) => assert!(Instant::now() < patience, "{error:?}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// An empty store.
pub(crate) fn store() -> (TempDir, MailStore) {
    let folder = folder();
    let store = lock(folder.path()).open().unwrap();
    (folder, store)
}

/// A directory of accounts of one domain.
pub(crate) fn directory(accounts: &[AccountName]) -> Directory {
    let directory = Directory::new(Arc::new(MemoryStore::default()), None);
    let name = accounts[0].domain().clone();
    let catch_all = None;
    let domain = Change::AddDomain(Domain { name, catch_all });
    for change in std::iter::once(domain).chain(accounts.iter().map(added)) {
        directory.store().apply(&change).unwrap();
    }
    directory
}

/// The change that adds an account that nobody can log in to.
pub(crate) fn added(account: &AccountName) -> Change {
    Change::AddAccount(Account {
        name: account.clone(),
        credentials: None,
    })
}

/// Syncs until nothing waits.
pub(crate) fn sync(store: &mut MailStore) {
    while let Some(job) = store.sync_job().unwrap() {
        store.finish_sync(job.run()).unwrap();
    }
}

/// The `INBOX` of an account.
pub(crate) fn inbox_of(store: &mut MailStore, account: &str) -> MailboxId {
    let account = AccountName::parse(account).unwrap();
    let opened = store.open_account(&account, Timestamp::from_millis(1));
    let opened = opened.unwrap();
    sync(store);
    opened.when(store.synced()).unwrap()
}

/// The `INBOX` of the account that most tests have.
pub(crate) fn inbox(store: &mut MailStore) -> MailboxId {
    inbox_of(store, "ann@demo.test")
}

/// Delivers a message there by an operation of this number.
pub(crate) fn deliver(store: &mut MailStore, body: &Prepared, system: SystemFlags, number: u8) {
    let target = Target {
        mailbox: inbox(store),
        flags: Flags {
            system,
            keywords: Vec::new(),
        },
        internal_date: InternalDate::default(),
        fields: RecipientFields::default(),
        quota: QuotaLimit::default(),
    };
    let done = store.deliver(body, &[target], OperationId([number; 16]));
    let done = done.unwrap();
    sync(store);
    assert!(done.when(store.synced()).unwrap()[0].is_ok());
}
