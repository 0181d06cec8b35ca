//! Stores for tests, opened and filled without the processes and threads of the role.

use tempfile::TempDir;
use vere_ports::directory::AccountName;
use vere_store::{
    Flags, InternalDate, MailboxId, OperationId, Prepared, QuotaLimit, RecipientFields,
    SystemFlags, Target,
};
use vere_units::Timestamp;

use super::files::Files;
use super::keeper::MailStore;

/// A folder in which a store can be opened.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("log")).unwrap();
    folder
}

/// An empty store.
pub(crate) fn store() -> (TempDir, MailStore) {
    let folder = folder();
    let store = Files::lock(folder.path()).unwrap().open().unwrap();
    (folder, store)
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
