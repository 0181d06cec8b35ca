//! The directory in a SQLite database.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Row, TransactionBehavior, params,
};
use vere_ports::directory::{
    Account, AccountName, Alias, Change, ChangeError, Credentials, DirectoryStore, Domain,
    DomainName, Lookup, NameError, Page, StoreError,
};
use vere_units::Secret;

use super::{folder, give_to_owner_of_folder, make_folder, system};

/// The version of the schema.
const VERSION: i64 = 1;
/// Marks a database as a directory, so that no other database is written to: "VERE".
const APPLICATION_ID: i64 = 0x5645_5245;
/// How long a statement waits for another process's change.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The tables. Names are in canonical form, in the order of octets.
const SCHEMA: &str = "
CREATE TABLE domain (
    name TEXT PRIMARY KEY,
    catch_all TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE account (
    name TEXT PRIMARY KEY,
    domain TEXT NOT NULL REFERENCES domain (name),
    password_hash TEXT,
    scram_sha_256 TEXT,
    CHECK ((password_hash IS NULL) = (scram_sha_256 IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX account_by_domain ON account (domain, name);
CREATE TABLE alias (
    name TEXT PRIMARY KEY,
    domain TEXT NOT NULL REFERENCES domain (name)
) STRICT, WITHOUT ROWID;
CREATE INDEX alias_by_domain ON alias (domain, name);
CREATE TABLE target (
    alias TEXT NOT NULL REFERENCES alias (name) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    address TEXT NOT NULL,
    PRIMARY KEY (alias, position)
) STRICT, WITHOUT ROWID;
";

/// Domains, accounts and aliases in a SQLite database.
///
/// Write-ahead log with full syncing: a change is durable when the call returns, and readers never
/// wait for a change. Text from clients reaches statements as parameters only.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens a database, which must exist and be a directory.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the database is missing or is no directory.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // The library's own words do not say that the file is not there.
        let path = path.canonicalize().map_err(system("open", path))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(database(&path))?;
        prepare(&connection, &path)?;
        check_version(&connection, &path)?;
        Ok(Self {
            path,
            connection: Mutex::new(connection),
        })
    }

    /// Opens a database, or creates an empty database with its parent directories.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the database cannot be created or is no directory.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let parent = folder(path);
        make_folder(parent)?;
        // The library would make the file readable for all.
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let file = options.open(path).map_err(system("make", path))?;
        let metadata = file.metadata().map_err(system("read", path))?;
        let is_new = metadata.len() == 0;
        if is_new {
            give_to_owner_of_folder(&file, path);
        }
        // Closing a file releases all locks of this process on the file, including the library's
        // locks: the next process to close the database would believe itself the last user and
        // remove the log.
        drop(file);
        if is_new {
            make(path)?;
        }
        Self::open(path)
    }

    pub(super) fn connection(&self) -> MutexGuard<'_, Connection> {
        // An unfinished transaction is rolled back when it is dropped, also by a panic.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the tables in an empty database, unless another process is faster.
fn make(path: &Path) -> Result<(), StoreError> {
    let mut connection = Connection::open(path).map_err(database(path))?;
    prepare(&connection, path)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(database(path))?;
    if pragma(&transaction, "user_version", path)? == 0 {
        transaction.execute_batch(SCHEMA).map_err(database(path))?;
        for (name, value) in [
            ("user_version", VERSION),
            ("application_id", APPLICATION_ID),
        ] {
            transaction
                .pragma_update(None, name, value)
                .map_err(database(path))?;
        }
    }
    transaction.commit().map_err(database(path))?;
    let parent = folder(path);
    let opened = std::fs::File::open(parent).map_err(system("open folder", parent))?;
    opened.sync_all().map_err(system("sync folder", parent))
}

fn prepare(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let made = || {
        connection.busy_timeout(LOCK_WAIT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // A database from elsewhere must not run functions of its choice.
        connection.pragma_update(None, "trusted_schema", false)
    };
    made().map_err(database(path))
}

fn check_version(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    if pragma(connection, "application_id", path)? != APPLICATION_ID {
        let words = "is a database of another program".to_owned();
        return Err(StoreError::Damaged(path.to_owned(), words));
    }
    match pragma(connection, "user_version", path)? {
        VERSION => Ok(()),
        found => Err(StoreError::Version {
            path: path.to_owned(),
            found,
            known: VERSION,
        }),
    }
}

fn pragma(connection: &Connection, name: &str, path: &Path) -> Result<i64, StoreError> {
    connection
        .pragma_query_value(None, name, |row| row.get(0))
        .map_err(database(path))
}

/// Makes a store error from an error of the library.
pub(super) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    let path = path.to_path_buf();
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(path.clone()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged(path.clone(), error.to_string())
        }
        _ => StoreError::Database(path.clone(), error.to_string()),
    }
}

/// A connection and the file's name for errors: the common view of checks and lookups.
struct View<'c> {
    connection: &'c Connection,
    path: &'c Path,
}

impl View<'_> {
    fn one<T>(
        &self,
        sql: &str,
        name: &str,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let found = || {
            self.connection
                .prepare_cached(sql)?
                .query_row([name], read)
                .optional()
        };
        found().map_err(database(self.path))
    }

    fn many<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let found = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map(parameters, read)?;
            rows.collect::<rusqlite::Result<Vec<T>>>()
        };
        found().map_err(database(self.path))
    }

    fn targets(&self, alias: &AccountName) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT address FROM target WHERE alias = ?1 ORDER BY position";
        self.many(sql, [alias.to_string()], |row| row.get(0))
    }

    /// Makes a name of what the database holds.
    fn name<T>(
        &self,
        text: &str,
        parse: fn(&str) -> Result<T, NameError>,
    ) -> Result<T, StoreError> {
        parse(text).map_err(|error| StoreError::Damaged(self.path.to_owned(), error.to_string()))
    }

    fn domain_of(&self, (name, catch_all): DomainRow) -> Result<Domain, StoreError> {
        Ok(Domain {
            name: self.name(&name, DomainName::parse)?,
            catch_all,
        })
    }

    fn account_of(&self, (name, hash, scram): AccountRow) -> Result<Account, StoreError> {
        let credentials = hash.zip(scram).map(|(hash, scram)| Credentials {
            password_hash: Secret::new(hash),
            scram_sha_256: Secret::new(scram),
        });
        Ok(Account {
            name: self.name(&name, AccountName::parse)?,
            credentials,
        })
    }

    /// Makes a checked change.
    fn make(&self, change: &Change) -> Result<(), StoreError> {
        let made = match change {
            Change::AddDomain(domain) => self.connection.execute(
                "INSERT INTO domain (name, catch_all) VALUES (?1, ?2)",
                params![domain.name.as_str(), domain.catch_all],
            ),
            Change::SetCatchAll(name, target) => self.connection.execute(
                "UPDATE domain SET catch_all = ?2 WHERE name = ?1",
                params![name.as_str(), target],
            ),
            Change::RemoveDomain(name) => self
                .connection
                .execute("DELETE FROM domain WHERE name = ?1", [name.as_str()]),
            Change::AddAccount(account) => self.connection.execute(
                "INSERT INTO account (name, domain, password_hash, scram_sha_256)
                 VALUES (?1, ?2, ?3, ?4)",
                params![
                    account.name.to_string(),
                    account.name.domain().as_str(),
                    account
                        .credentials
                        .as_ref()
                        .map(|made| made.password_hash.expose()),
                    account
                        .credentials
                        .as_ref()
                        .map(|made| made.scram_sha_256.expose()),
                ],
            ),
            Change::SetCredentials(name, credentials) => self.connection.execute(
                "UPDATE account SET password_hash = ?2, scram_sha_256 = ?3 WHERE name = ?1",
                params![
                    name.to_string(),
                    credentials.as_ref().map(|made| made.password_hash.expose()),
                    credentials.as_ref().map(|made| made.scram_sha_256.expose()),
                ],
            ),
            Change::RemoveAccount(name) => self
                .connection
                .execute("DELETE FROM account WHERE name = ?1", [name.to_string()]),
            Change::SetAlias(alias) => self.set_alias(alias),
            Change::RemoveAlias(name) => self
                .connection
                .execute("DELETE FROM alias WHERE name = ?1", [name.to_string()]),
        };
        made.map(drop).map_err(database(self.path))
    }

    fn set_alias(&self, alias: &Alias) -> rusqlite::Result<usize> {
        let name = alias.name.to_string();
        self.connection.execute(
            "INSERT INTO alias (name, domain) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            [&name, alias.name.domain().as_str()],
        )?;
        self.connection
            .execute("DELETE FROM target WHERE alias = ?1", [&name])?;
        let sql = "INSERT INTO target (alias, position, address) VALUES (?1, ?2, ?3)";
        let mut insert = self.connection.prepare_cached(sql)?;
        for (position, target) in (0_i64..).zip(&alias.targets) {
            insert.execute(params![name, position, target])?;
        }
        Ok(alias.targets.len())
    }
}

type DomainRow = (String, Option<String>);
type AccountRow = (String, Option<String>, Option<String>);

fn domain_row(row: &Row<'_>) -> rusqlite::Result<DomainRow> {
    Ok((row.get(0)?, row.get(1)?))
}

fn account_row(row: &Row<'_>) -> rusqlite::Result<AccountRow> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

impl Lookup for View<'_> {
    fn domain(&self, name: &DomainName) -> Result<Option<Domain>, StoreError> {
        let sql = "SELECT name, catch_all FROM domain WHERE name = ?1";
        self.one(sql, name.as_str(), domain_row)?
            .map(|row| self.domain_of(row))
            .transpose()
    }

    fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreError> {
        let sql = "SELECT name, password_hash, scram_sha_256 FROM account WHERE name = ?1";
        self.one(sql, &name.to_string(), account_row)?
            .map(|row| self.account_of(row))
            .transpose()
    }

    fn alias(&self, name: &AccountName) -> Result<Option<Alias>, StoreError> {
        // An alias always has targets; a single statement reads all targets of one moment.
        let targets = self.targets(name)?;
        Ok((!targets.is_empty()).then(|| Alias {
            name: name.clone(),
            targets,
        }))
    }

    fn count(&self, domain: &DomainName) -> Result<(usize, usize), StoreError> {
        let sql = "SELECT (SELECT count(*) FROM account WHERE domain = ?1),
                          (SELECT count(*) FROM alias WHERE domain = ?1)";
        let counts = self.one(sql, domain.as_str(), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(counts.unwrap_or_default())
    }
}

/// The rest of a listing's statement: `?1` domain or NULL, `?2` last name or empty, `?3` count.
///
/// Two forms, since one with `OR` would not use the index.
fn listing(columns: &str, table: &str, page: &Page) -> String {
    let domain = if page.domain.is_some() {
        "domain = ?1"
    } else {
        "?1 IS NULL"
    };
    format!("SELECT {columns} FROM {table} WHERE {domain} AND name > ?2 ORDER BY name LIMIT ?3")
}

fn parameters(page: &Page) -> (Option<String>, String, i64) {
    (
        page.domain.as_ref().map(ToString::to_string),
        page.after
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        i64::try_from(page.limit).unwrap_or(i64::MAX),
    )
}

impl Lookup for SqliteStore {
    fn domain(&self, name: &DomainName) -> Result<Option<Domain>, StoreError> {
        View {
            connection: &self.connection(),
            path: &self.path,
        }
        .domain(name)
    }

    fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreError> {
        View {
            connection: &self.connection(),
            path: &self.path,
        }
        .account(name)
    }

    fn alias(&self, name: &AccountName) -> Result<Option<Alias>, StoreError> {
        View {
            connection: &self.connection(),
            path: &self.path,
        }
        .alias(name)
    }

    fn count(&self, domain: &DomainName) -> Result<(usize, usize), StoreError> {
        View {
            connection: &self.connection(),
            path: &self.path,
        }
        .count(domain)
    }
}

impl DirectoryStore for SqliteStore {
    fn apply(&self, change: &Change) -> Result<(), ChangeError> {
        let mut connection = self.connection();
        // Immediate: the lock of all changes is taken before anything is checked.
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(database(&self.path))?;
        let view = View {
            connection: &transaction,
            path: &self.path,
        };
        change.check(&view)?;
        view.make(change)?;
        Ok(transaction.commit().map_err(database(&self.path))?)
    }

    fn revision(&self) -> Result<u64, StoreError> {
        let connection = self.connection();
        // `data_version` counts changes of other connections only, `total_changes` the changes of
        // this connection only.
        let others = pragma(&connection, "data_version", &self.path)?;
        Ok((others.cast_unsigned() << 32) ^ connection.total_changes())
    }

    fn domains(&self) -> Result<Vec<Domain>, StoreError> {
        let connection = self.connection();
        let view = View {
            connection: &connection,
            path: &self.path,
        };
        let rows = view.many(
            "SELECT name, catch_all FROM domain ORDER BY name",
            [],
            domain_row,
        )?;
        rows.into_iter().map(|row| view.domain_of(row)).collect()
    }

    fn accounts(&self, page: &Page) -> Result<Vec<Account>, StoreError> {
        let connection = self.connection();
        let view = View {
            connection: &connection,
            path: &self.path,
        };
        let sql = listing("name, password_hash, scram_sha_256", "account", page);
        let rows = view.many(&sql, parameters(page), account_row)?;
        rows.into_iter().map(|row| view.account_of(row)).collect()
    }

    fn aliases(&self, page: &Page) -> Result<Vec<Alias>, StoreError> {
        let connection = self.connection();
        // Reads names and targets of one moment.
        let transaction = connection
            .unchecked_transaction()
            .map_err(database(&self.path))?;
        let view = View {
            connection: &transaction,
            path: &self.path,
        };
        let names: Vec<String> =
            view.many(&listing("name", "alias", page), parameters(page), |row| {
                row.get(0)
            })?;
        let one = |text: String| {
            let name = view.name(&text, AccountName::parse)?;
            let targets = view.targets(&name)?;
            Ok(Alias { name, targets })
        };
        names.into_iter().map(one).collect()
    }
}
