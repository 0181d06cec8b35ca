//! A session with a document: opened, saved several times while edited, saved at last, closed (Table 4.1).
//!
//! The calls are those of LibreOffice Writer: a lock file, a file beside the document that is synced and takes its name,
//! a backup copy. The time of typing passes on no system; the score is that of the thesis, for ten minutes of editing.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::content;
use super::files::{load, store};
use super::results::{Results, at};
use super::system::System;
use crate::error::BenchError;

pub(super) const WAITING: &str = "Table 4.1: waiting in a session with a document";
pub(super) const SCORE: &str = "Table 4.1: score of a session of ten minutes";

/// The thesis's session.
const SESSION: Duration = Duration::from_secs(600);

/// Octets of the document, and saves before the last.
const DOCUMENT: usize = 400 * 1024;
const SAVES: usize = 5;

/// Runs a session on a cold mount.
pub(super) fn measure(
    round_trip: u64,
    root: &Path,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    let path = root.join("letter.odt");
    store(&path, &content::octets(DOCUMENT)).map_err(BenchError::io("write a document"))?;
    system.arrive(&path, DOCUMENT as u64)?;
    system.remount_cold()?;
    let contents: Vec<_> = (0..=SAVES).map(|_| content::octets(DOCUMENT)).collect();
    let begun = Instant::now();
    session(root, &path, &contents).map_err(BenchError::io("edit a document"))?;
    let took = begun.elapsed();
    let name = system.name();
    results.time(name, at(round_trip, WAITING), took);
    let score = 100.0 * SESSION.as_secs_f64() / (SESSION + took).as_secs_f64();
    results
        .figures
        .add(name, at(round_trip, SCORE), score, "points");
    Ok(())
}

fn session(root: &Path, path: &Path, contents: &[Vec<u8>]) -> io::Result<()> {
    let lock = root.join(".~lock.letter.odt#");
    File::create_new(&lock)?.write_all(b",bench,host,today;")?;
    load(path)?;
    for content in contents {
        fs::metadata(path)?;
        let (next, backup) = (root.join("lu1.tmp"), root.join("letter.bak"));
        store(&next, content)?;
        fs::rename(path, &backup)?;
        fs::rename(&next, path)?;
        fs::remove_file(&backup)?;
        fs::metadata(path)?;
    }
    fs::remove_file(lock)
}
