//! Lines of a mount's log: time, level, text. A mount in the background writes into a file of the state folder, one in the
//! foreground to standard error, where journald or a shell takes the lines.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use vere_mailfs::volume::Notice;
use vere_units::Timestamp;

/// Octets of a log that make the next mount begin another one.
const FILE_MAX: u64 = 4 << 20;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Info,
    Warn,
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

impl Level {
    /// The level of a notice.
    pub(crate) const fn of(notice: &Notice) -> Self {
        match notice {
            Notice::Recovered(_)
            | Notice::DiskHasRoom
            | Notice::SentAgain(_)
            | Notice::NotLocal(_) => Self::Info,
            // The volume goes on.
            Notice::Account { .. }
            | Notice::Forged { .. }
            | Notice::Left(_)
            | Notice::Brought(_)
            | Notice::Renewed(_) => Self::Warn,
            _ => Self::Error,
        }
    }
}

/// Writes a line.
pub(crate) fn log(level: Level, text: &str) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = now.map_or(0, |since| since.as_millis());
    let now = Timestamp::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
    // Without standard error nobody reads.
    let _unread = writeln!(io::stderr(), "{}", line(now, level, text));
}

/// Line ends of servers become blanks: a line is one record.
fn line(now: Timestamp, level: Level, text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    format!("{now} {level} {text}")
}

/// Opens the log of a mount in the background. A long log is kept once under another name.
pub(crate) fn open(file: &Path) -> io::Result<File> {
    if fs::metadata(file).is_ok_and(|facts| facts.len() > FILE_MAX) {
        fs::rename(file, file.with_extension("log.1"))?;
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{FILE_MAX, Level, line, open};
    use vere_units::Timestamp;

    #[test]
    fn a_line_is_one_record() {
        let text = line(Timestamp::from_millis(1_500), Level::Warn, "NO\r\nway");
        assert!(text.starts_with("1970-01-01T00:00:01"), "{text}");
        assert!(text.ends_with(" warn NO  way"), "{text}");
    }

    #[test]
    fn a_long_log_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mount.log");
        let file = open(&path).unwrap();
        file.set_len(FILE_MAX + 1).unwrap();
        let mut next = open(&path).unwrap();
        next.write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        let old = folder.path().join("mount.log.1");
        assert_eq!(std::fs::metadata(old).unwrap().len(), FILE_MAX + 1);
    }
}
