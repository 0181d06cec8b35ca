//! Transactions of SQLite, with a rollback journal and with a log (WAL), and the database's check on a cold mount.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::plan::Plan;
use super::results::{Results, at};
use super::system::System;
use crate::error::BenchError;

/// A journal, the figure of its transactions, and the figure of the check behind.
type Journal = (&'static str, &'static str, &'static str);

pub(super) const ROLLBACK: &str = "SQLite, rollback journal";
pub(super) const LOG: &str = "SQLite, WAL";
pub(super) const ROLLBACK_WHOLE: &str = "SQLite, rollback journal: whole behind a remount";
pub(super) const LOG_WHOLE: &str = "SQLite, WAL: whole behind a remount";

const JOURNALS: [Journal; 2] = [
    ("DELETE", ROLLBACK, ROLLBACK_WHOLE),
    ("WAL", LOG, LOG_WHOLE),
];

/// Rows of a transaction.
const ROWS: usize = 10;

/// Runs the transactions of a round with both journals.
pub(super) fn measure(
    plan: &Plan,
    round_trip: u64,
    root: &Path,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    let name = system.name();
    for (mode, figure, whole) in JOURNALS {
        let path = root.join(format!("{mode}.db"));
        let wrote = write(&path, mode, plan.transactions);
        match &wrote {
            Ok(took) => {
                let rate = plan.transactions as f64 / took.as_secs_f64().max(1e-9);
                let figure = at(round_trip, figure);
                results.figures.add(name, figure, rate, "transactions/s");
            }
            Err(error) => results.trouble(format!("{name}: {round_trip} ms: {figure}: {error}")),
        }
        system.remount_cold()?;
        let found = check(&path);
        let wanted = plan.transactions * ROWS;
        let is_whole = wrote.is_ok() && matches!(&found, Ok(found) if *found == wanted);
        if !is_whole {
            let found =
                found.map_or_else(|error| error.to_string(), |found| format!("{found} rows"));
            results.trouble(format!(
                "{name}: {round_trip} ms: {whole}: expected {wanted} rows; found {found}"
            ));
        }
        let figure = at(round_trip, whole);
        results
            .figures
            .add(name, figure, f64::from(u8::from(is_whole)), "1 = yes");
    }
    Ok(())
}

fn write(path: &Path, mode: &str, transactions: usize) -> rusqlite::Result<Duration> {
    let mut database = Connection::open(path)?;
    database.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(()))?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")?;
    let begun = Instant::now();
    for number in 0..transactions {
        let transaction = database.transaction()?;
        for row in 0..ROWS {
            let text =
                format!("row {row} of transaction {number}, with a text of usual length behind");
            transaction.execute("INSERT INTO t (text) VALUES (?1)", [text])?;
        }
        transaction.commit()?;
    }
    let took = begun.elapsed();
    database.close().map_err(|(_, error)| error)?;
    Ok(took)
}

/// The rows of a database, or the failure of its check.
fn check(path: &Path) -> rusqlite::Result<usize> {
    let database = Connection::open(path)?;
    let said: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if said != "ok" {
        return Err(rusqlite::Error::InvalidParameterName(said));
    }
    database.query_row("SELECT count(*) FROM t", [], |row| row.get(0))
}
