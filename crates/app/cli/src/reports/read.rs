//! Finds reports in files, directories and mailboxes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use vere_process::failure::Failure;
use vere_reports::bounds::MESSAGE_OCTETS_MAX;
use vere_reports::{Report, ReportError, Summary};
use vere_transfer::{Origin, Seen, each_message};

/// The most octets of a message or file.
pub(super) const OCTETS_MAX: usize = MESSAGE_OCTETS_MAX;
/// The most files of a directory.
const FILES_MAX: usize = 100_000;
/// The most unreadable reports that are named.
const NAMED_MAX: usize = 20;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) summary: Summary,
    /// Messages and files without a report.
    pub(super) others: u64,
    pub(super) unreadable: Unreadable,
}

/// What looked like a report and could not be read.
#[derive(Debug, Default)]
pub(super) struct Unreadable {
    pub(super) count: u64,
    /// Place and reason of the first ones.
    pub(super) named: Vec<(String, String)>,
}

impl Reading {
    /// Reads a file, a Maildir, a directory of files, or standard input.
    ///
    /// # Errors
    /// When the path cannot be read.
    pub(super) fn path(&mut self, path: &Path) -> Result<(), Failure> {
        if path == Path::new("-") {
            let octets = bounded(io::stdin().lock());
            return self.octets("standard input", &octets?);
        }
        if path.join("cur").is_dir() {
            return self.mailboxes(path, Origin::Maildir(path));
        }
        if !path.is_dir() {
            return self.file(path);
        }
        for path in files(path)? {
            self.file(&path)?;
        }
        Ok(())
    }

    /// Takes a message of a mailbox.
    pub(super) fn seen(&mut self, place: &str, seen: &Seen<'_>) {
        let place = format!("{place}{}, message {}", seen.mailbox, seen.number);
        match &seen.octets {
            Some(octets) => self.report(&place, octets),
            None => self.others += 1,
        }
    }

    fn mailboxes(&mut self, path: &Path, origin: Origin<'_>) -> Result<(), Failure> {
        let place = format!("{}: ", path.display());
        each_message(origin, None, OCTETS_MAX, &mut |seen| {
            self.seen(&place, &seen)
        })
    }

    fn file(&mut self, path: &Path) -> Result<(), Failure> {
        let place = path.display().to_string();
        let wrong = |error: io::Error| Failure::new(format!("{place}: {error}"));
        let mut file = File::open(path).map_err(wrong)?;
        let mut begin = Vec::new();
        (&mut file).take(5).read_to_end(&mut begin).map_err(wrong)?;
        if begin == b"From " {
            return self.mailboxes(path, Origin::Mbox(path));
        }
        let octets = bounded(begin.chain(file)).map_err(wrong)?;
        self.octets(&place, &octets)
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the last step of functions that fail"
    )]
    fn octets(&mut self, place: &str, octets: &[u8]) -> Result<(), Failure> {
        self.report(place, octets);
        Ok(())
    }

    fn report(&mut self, place: &str, octets: &[u8]) {
        match Report::read(octets) {
            Ok(report) => {
                self.summary.add(&report);
            }
            Err(ReportError::None) => self.others += 1,
            Err(error) => {
                self.unreadable.count += 1;
                if self.unreadable.named.len() < NAMED_MAX {
                    let reason = error.to_string();
                    self.unreadable.named.push((place.to_owned(), reason));
                }
            }
        }
    }
}

/// At most one octet more than the bound, by which the reader of reports knows that the bound was exceeded.
fn bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    reader
        .take(OCTETS_MAX as u64 + 1)
        .read_to_end(&mut octets)?;
    Ok(octets)
}

/// The files directly in a directory, by name, without hidden ones.
fn files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |error: io::Error| Failure::new(format!("{}: {error}", directory.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if is_hidden || !entry.path().is_file() {
            continue;
        }
        if found.len() >= FILES_MAX {
            return Err(Failure::new(format!(
                "{}: expected at most {FILES_MAX} files; found more",
                directory.display()
            )));
        }
        found.push(entry.path());
    }
    found.sort();
    Ok(found)
}
