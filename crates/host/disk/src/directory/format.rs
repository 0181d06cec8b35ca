//! The text of the directory file.
//!
//! ```toml
//! version = 1
//!
//! [[domain]]
//! name = "example.org"
//! catch_all = "alice@example.org"     # may be absent
//!
//! [[account]]
//! address = "alice@example.org"
//! password = "$argon2id$..."          # absent: nobody can log in
//! scram_sha_256 = "SCRAM-SHA-256$..." # together with the password
//!
//! [[alias]]
//! address = "postmaster@example.org"
//! targets = ["alice@example.org", "bob@example.net"]
//! ```
//!
//! The reader applies the checks of changes, so that an edited file cannot contain records that a
//! command refuses. Changes edit the text and keep comments and order.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};
use vere_ports::directory::{
    Account, AccountName, Alias, Change, Credentials, Domain, DomainName, Records, StoreError,
};
use vere_units::Secret;

/// The version of the format.
const VERSION: i64 = 1;

/// The beginning of a new file.
pub(super) const EMPTY: &str = "\
# Domains, accounts and aliases. Written by `vere domain`, `vere account` and `vere alias`, which keep
# comments; a running system takes over changes at once.
version = 1
";

#[derive(Deserialize)]
struct Head {
    version: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(rename = "version")]
    _version: i64,
    #[serde(default)]
    domain: Vec<Spanned<DomainRow>>,
    #[serde(default)]
    account: Vec<Spanned<AccountRow>>,
    #[serde(default)]
    alias: Vec<Spanned<AliasRow>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DomainRow {
    name: String,
    catch_all: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountRow {
    address: String,
    password: Option<Secret<String>>,
    scram_sha_256: Option<Secret<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AliasRow {
    address: String,
    targets: Vec<String>,
}

/// Reads a whole file.
pub(super) fn parse(text: &str, path: &Path) -> Result<Records, StoreError> {
    let head: Head = toml::from_str(text).map_err(|error| syntax(text, path, &error))?;
    match head.version {
        Some(VERSION) => {}
        Some(found) => {
            return Err(StoreError::Version {
                path: path.to_owned(),
                found,
                known: VERSION,
            });
        }
        None => {
            let place = "line 1: the line `version = 1` is missing".to_owned();
            return Err(StoreError::Damaged(path.to_owned(), place));
        }
    }
    let body: Body = toml::from_str(text).map_err(|error| syntax(text, path, &error))?;
    let mut records = Records::default();
    let mut add = |at: usize, change: Result<Change, String>| {
        let made = change.and_then(|change| records.apply(&change).map_err(|e| e.to_string()));
        made.map_err(|words| {
            StoreError::Damaged(path.to_owned(), format!("line {}: {words}", line(text, at)))
        })
    };
    for row in body.domain {
        add(row.span().start, domain(row.into_inner()))?;
    }
    for row in body.account {
        add(row.span().start, account(row.into_inner()))?;
    }
    let mut names = std::collections::HashSet::new();
    for row in body.alias {
        let at = row.span().start;
        let change = alias(row.into_inner());
        // As a change, an alias replaces the existing alias; a file must not define an alias twice.
        let twice = matches!(&change, Ok(Change::SetAlias(a)) if !names.insert(a.name.clone()));
        add(
            at,
            if twice {
                Err("the alias stands twice".to_owned())
            } else {
                change
            },
        )?;
    }
    Ok(records)
}

/// Says where a text is not the format, without showing the line: it may hold a password's hash.
fn syntax(text: &str, path: &Path, error: &toml::de::Error) -> StoreError {
    let at = error.span().map_or(0, |span| span.start);
    let words = error.message().replace('\n', ", ");
    StoreError::Damaged(path.to_owned(), format!("line {}: {words}", line(text, at)))
}

fn line(text: &str, at: usize) -> usize {
    text.bytes()
        .take(at)
        .filter(|octet| *octet == b'\n')
        .count()
        + 1
}

fn domain(row: DomainRow) -> Result<Change, String> {
    let name = DomainName::parse(&row.name).map_err(|error| error.to_string())?;
    Ok(Change::AddDomain(Domain {
        name,
        catch_all: row.catch_all,
    }))
}

fn account(row: AccountRow) -> Result<Change, String> {
    let name = AccountName::parse(&row.address).map_err(|error| error.to_string())?;
    let credentials = match (row.password, row.scram_sha_256) {
        (None, None) => None,
        (Some(password_hash), Some(scram_sha_256)) => Some(Credentials {
            password_hash,
            scram_sha_256,
        }),
        _ => return Err("password and scram_sha_256 belong together".to_owned()),
    };
    Ok(Change::AddAccount(Account { name, credentials }))
}

fn alias(row: AliasRow) -> Result<Change, String> {
    let name = AccountName::parse(&row.address).map_err(|error| error.to_string())?;
    Ok(Change::SetAlias(Alias {
        name,
        targets: row.targets,
    }))
}

/// Makes a change, already checked, in the text of a file, already parsed.
pub(super) fn edit(text: &str, path: &Path, change: &Change) -> Result<String, StoreError> {
    let damaged = |words: String| StoreError::Damaged(path.to_owned(), words);
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| damaged(error.message().to_owned()))?;
    match change {
        Change::AddDomain(domain) => {
            let mut row = Table::new();
            row["name"] = value(domain.name.as_str());
            set(&mut row, "catch_all", domain.catch_all.as_deref());
            rows(&mut document, "domain").push(row);
        }
        Change::SetCatchAll(name, target) => {
            let found = rows(&mut document, "domain")
                .iter_mut()
                .find(|row| is_domain(row, name));
            if let Some(row) = found {
                set(row, "catch_all", target.as_deref());
            }
        }
        Change::RemoveDomain(name) => {
            rows(&mut document, "domain").retain(|row| !is_domain(row, name));
        }
        Change::AddAccount(account) => {
            let mut row = Table::new();
            row["address"] = value(account.name.to_string());
            set_credentials(&mut row, account.credentials.as_ref());
            rows(&mut document, "account").push(row);
        }
        Change::SetCredentials(name, credentials) => {
            if let Some(row) = named(rows(&mut document, "account"), name) {
                set_credentials(row, credentials.as_ref());
            }
        }
        Change::RemoveAccount(name) => {
            rows(&mut document, "account").retain(|row| !is_named(row, name));
        }
        Change::SetAlias(alias) => {
            let targets: toml_edit::Array = alias.targets.iter().collect();
            let all = rows(&mut document, "alias");
            if let Some(row) = named(all, &alias.name) {
                row["targets"] = value(targets);
            } else {
                let mut row = Table::new();
                row["address"] = value(alias.name.to_string());
                row["targets"] = value(targets);
                all.push(row);
            }
        }
        Change::RemoveAlias(name) => {
            rows(&mut document, "alias").retain(|row| !is_named(row, name));
        }
    }
    Ok(document.to_string())
}

/// Returns the rows of a kind, in any of the notations of the file.
fn rows<'d>(document: &'d mut DocumentMut, kind: &str) -> &'d mut ArrayOfTables {
    let item = document
        .entry(kind)
        .or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    if !item.is_array_of_tables() {
        let rows = std::mem::take(item)
            .into_array_of_tables()
            .unwrap_or_default();
        *item = Item::ArrayOfTables(rows);
    }
    match item {
        Item::ArrayOfTables(rows) => rows,
        _ => unreachable!("it has just been made one"),
    }
}

fn named<'r>(rows: &'r mut ArrayOfTables, name: &AccountName) -> Option<&'r mut Table> {
    rows.iter_mut().find(|row| is_named(row, name))
}

fn is_named(row: &Table, name: &AccountName) -> bool {
    let address = row.get("address").and_then(Item::as_str);
    address.is_some_and(|text| AccountName::parse(text).as_ref() == Ok(name))
}

fn is_domain(row: &Table, name: &DomainName) -> bool {
    let own = row.get("name").and_then(Item::as_str);
    own.is_some_and(|text| DomainName::parse(text).as_ref() == Ok(name))
}

fn set(row: &mut Table, key: &str, text: Option<&str>) {
    match text {
        Some(text) => row[key] = value(text),
        None => drop(row.remove(key)),
    }
}

fn set_credentials(row: &mut Table, credentials: Option<&Credentials>) {
    set(
        row,
        "password",
        credentials.map(|made| made.password_hash.expose().as_str()),
    );
    set(
        row,
        "scram_sha_256",
        credentials.map(|made| made.scram_sha_256.expose().as_str()),
    );
}
