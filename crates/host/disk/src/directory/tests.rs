//! One suite for every store, then what is particular to each.

mod content;
mod editing;
mod files;
mod processes;

use std::path::PathBuf;

use tempfile::TempDir;
use vere_ports::directory::{
    Account, AccountName, Alias, Change, ChangeError, Credentials, Domain, DomainName, Lookup,
    MemoryStore, Page,
};
use vere_units::Secret;

use super::*;

const ALL: Page = Page {
    domain: None,
    after: None,
    limit: usize::MAX,
};

fn name(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

fn domain(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

fn add_domain(text: &str) -> Change {
    Change::AddDomain(Domain {
        name: domain(text),
        catch_all: None,
    })
}

fn add_account(text: &str) -> Change {
    Change::AddAccount(Account {
        name: name(text),
        credentials: None,
    })
}

fn set_alias(text: &str, targets: &[&str]) -> Change {
    let targets = targets.iter().map(ToString::to_string).collect();
    Change::SetAlias(Alias {
        name: name(text),
        targets,
    })
}

fn credentials(text: &str) -> Credentials {
    let secret = |kind: &str| Secret::new(format!("{kind} {text} \"'\\\n$x$"));
    Credentials {
        password_hash: secret("hash"),
        scram_sha_256: secret("scram"),
    }
}

/// The stores on disk, each in a separate folder.
fn places(folder: &TempDir) -> [Place; 2] {
    let path = |name: &str| folder.path().join(name);
    [
        Place::File(path("file/directory.toml")),
        Place::Sqlite(path("sqlite/directory.db")),
    ]
}

fn file_in(folder: &TempDir) -> PathBuf {
    folder.path().join("directory.toml")
}

/// Runs a test against every store.
fn with_each(test: impl Fn(&dyn DirectoryStore)) {
    test(&MemoryStore::default());
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        test(&*create(&place).unwrap());
    }
}

fn accounts(store: &dyn DirectoryStore, page: &Page) -> Vec<String> {
    store
        .accounts(page)
        .unwrap()
        .into_iter()
        .map(|account| account.name.to_string())
        .collect()
}
