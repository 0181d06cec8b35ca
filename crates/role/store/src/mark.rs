//! The mark: how far the log of the mail store got. The file lies beside the store's folder, because a restored copy
//! of the folder does not know of later changes.
//!
//! ```text
//! <data>/store.mark, 64 octets, written in place
//! vere-store-mark 1
//! log 16 hexadecimal digits: the id of the log
//! synced 16 hexadecimal digits: the position before which all of it was on stable storage
//! ```
//!
//! The file itself is not synced. A power cut loses only what the last seconds wrote, so the mark never claims more
//! than the log has.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use vere_store::Position;

/// The length of the file.
const LENGTH: usize = 64;

const HEAD: &str = "vere-store-mark 1";

/// A position in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogEnd {
    /// The log's id.
    pub(super) log: u64,
    /// Every change before this position was synced.
    pub(super) synced: Position,
}

impl LogEnd {
    fn as_text(self) -> String {
        let Self { log, synced } = self;
        let text = format!("{HEAD}\nlog {log:016x}\nsynced {:016x}", synced.0);
        format!("{text:<width$}\n", width = LENGTH - 1)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return None;
        }
        let mut number = |name: &str| {
            let digits = lines.next()?.strip_prefix(name)?.trim();
            u64::from_str_radix(digits, 16).ok()
        };
        Some(Self {
            log: number("log ")?,
            synced: Position(number("synced ")?),
        })
    }
}

/// Reads the mark from the file; absent when the file is absent.
///
/// # Errors
/// When the file cannot be read. A file with other content counts as absent, and a warning is logged.
pub(super) fn read(path: &Path) -> io::Result<Option<LogEnd>> {
    let mut octets = Vec::with_capacity(LENGTH);
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    file.take(LENGTH as u64).read_to_end(&mut octets)?;
    let place = LogEnd::parse(&String::from_utf8_lossy(&octets));
    if place.is_none() {
        tracing::warn!(file = %path.display(), "no mark of the mail store: expected `{HEAD}`");
    }
    Ok(place)
}

/// The open file, rewritten after each sync.
#[derive(Debug)]
pub(super) struct Mark {
    file: Option<File>,
    log: u64,
}

impl Mark {
    /// Opens or makes the file for the log with this id. A failure is logged and the store goes on: without the mark,
    /// a restored copy of the log goes unnoticed.
    pub(super) fn open(path: &Path, log: u64) -> Self {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path);
        let file = file.inspect_err(untold).ok();
        Self { file, log }
    }

    /// Notes that everything before this position is on stable storage.
    pub(super) fn reached(&mut self, synced: Position) {
        let log = self.log;
        let text = LogEnd { log, synced }.as_text();
        let Some(file) = &self.file else { return };
        if let Err(error) = file.write_all_at(text.as_bytes(), 0) {
            untold(&error);
            self.file = None;
        }
    }
}

fn untold(error: &io::Error) {
    tracing::warn!(
        %error,
        "the mark of the mail store cannot be written: a copy of its log that is put back will not be noticed"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: LogEnd = LogEnd {
        log: 0x0123_4567_89ab_cdef,
        synced: Position(u64::MAX),
    };

    #[test]
    fn every_place_has_the_same_length_and_is_read_again() {
        let first = LogEnd {
            log: 0,
            synced: Position(64),
        };
        for place in [PLACE, first] {
            let text = place.as_text();
            assert_eq!(text.len(), LENGTH, "{text}");
            assert_eq!(LogEnd::parse(&text), Some(place));
        }
    }

    #[test]
    fn what_is_no_mark_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.mark");
        assert_eq!(read(&path).unwrap(), None);
        let whole = PLACE.as_text();
        for text in [
            "",
            "vere",
            &whole[1..],
            &whole[..30],
            &whole.replace('4', "x"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn the_last_place_stands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.mark");
        let mut mark = Mark::open(&path, PLACE.log);
        for position in [u64::MAX, 100] {
            mark.reached(Position(position));
            let place = read(&path).unwrap().unwrap();
            assert_eq!((place.log, place.synced.0), (PLACE.log, position));
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LENGTH as u64);
    }
}
