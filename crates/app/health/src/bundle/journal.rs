//! The last lines of the log.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use vere_process::failure::Failure;

use crate::program::output;

/// Octets of the log.
const LOG_MAX: u64 = 3 << 20;
const LINES: &str = "10000";
const PATIENCE: Duration = Duration::from_secs(15);

/// The journal of the unit.
pub(super) fn of_unit() -> Result<String, Failure> {
    // From the last line on, so that the bound leaves out old lines.
    let words = [
        "journalctl",
        "-u",
        "vere.service",
        "-n",
        LINES,
        "-o",
        "short-iso",
        "--no-pager",
        "-q",
        "-r",
    ];
    let text = output(&words, PATIENCE, LOG_MAX).map_err(Failure::new)?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.reverse();
    match lines.is_empty() {
        true => Err(Failure::new(
            "the journal has no lines of vere.service that this user may read: as root, or name a file with --log",
        )),
        false => Ok(lines.join("\n") + "\n"),
    }
}

/// The end of a file, from the beginning of a line on.
pub(super) fn of_file(path: &Path) -> Result<String, Failure> {
    let wrong = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
    let mut file = File::open(path).map_err(wrong)?;
    let length = file.metadata().map_err(wrong)?.len();
    let start = length.saturating_sub(LOG_MAX);
    file.seek(SeekFrom::Start(start)).map_err(wrong)?;
    let mut octets = Vec::new();
    file.take(LOG_MAX).read_to_end(&mut octets).map_err(wrong)?;
    let text = String::from_utf8_lossy(&octets);
    let whole = match start {
        0 => &text[..],
        _ => text.split_once('\n').map_or("", |(_, rest)| rest),
    };
    Ok(whole.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_has_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(of_file(&path).unwrap(), "one\ntwo\n");
        let long = format!("first {}\nlast\n", "x".repeat(LOG_MAX as usize));
        std::fs::write(&path, long).unwrap();
        assert_eq!(of_file(&path).unwrap(), "last\n");
        assert!(of_file(&folder.path().join("none")).is_err());
    }
}
