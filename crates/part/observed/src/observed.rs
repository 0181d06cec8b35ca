//! The files of what this system observes of DMARC and TLS, for the reports about it: a file for each day in a directory.
//!
//! [`Observed`] counts in memory; [`Observed::flush`] appends the counts to the files. One process has the directory. A crash loses what was
//! not flushed and tears the last line at most, which readers pass over. What was reported is synced before the next report is made, so
//! that a report goes out twice at most for a crash between.
//!
//! A file that has grown beyond [`REWRITE_OCTETS`] and twice what it needs is written anew beside itself and renamed. A file at
//! [`vere_reports::bounds::DAY_OCTETS_MAX`] takes nothing more.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use vere_reports::bounds::DAY_OCTETS_MAX;
use vere_reports::{Day, DmarcSeen, Kind, Observations, TlsSeen, day_of, file_name};
use vere_units::Timestamp;

/// Octets of a file below which it is never written anew.
pub const REWRITE_OCTETS: u64 = 1 << 20;
/// The ending of a file that is being written anew.
const ANEW: &str = "anew";

/// The counts of this system.
#[derive(Debug)]
pub struct Observed {
    directory: PathBuf,
    pending: RefCell<Observations>,
    /// The length of the file of a day after it was last written anew.
    needed: RefCell<BTreeMap<u64, u64>>,
}

impl Observed {
    /// Opens the directory, and makes it where it does not exist.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(directory: &Path) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            pending: RefCell::default(),
            needed: RefCell::default(),
        })
    }

    /// Counts a message that was checked by DMARC.
    pub fn dmarc(&self, at: Timestamp, seen: &DmarcSeen) {
        self.pending.borrow_mut().dmarc(at, seen);
    }

    /// Counts sessions with a host, or sessions that did not come about.
    pub fn tls(&self, at: Timestamp, seen: &TlsSeen, sessions: u64) {
        self.pending.borrow_mut().tls(at, seen, sessions);
    }

    /// Appends the counts to the files. Counts that cannot be written are lost: statistics are not worth the memory of a full disk's day.
    ///
    /// # Errors
    /// The first error; the files of other days are written all the same.
    pub fn flush(&self) -> io::Result<()> {
        let mut first = Ok(());
        for (day, lines) in self.pending.borrow_mut().take_lines() {
            first = first.and(self.append(day, &lines, false));
        }
        first
    }

    /// The days that have a file, the first one first.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn days(&self) -> io::Result<Vec<u64>> {
        let mut days = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            days.extend(name.to_str().and_then(day_of_name));
        }
        days.sort_unstable();
        Ok(days)
    }

    /// The counts of a day, without those that were not flushed.
    ///
    /// # Errors
    /// When the file cannot be read; a missing file has no counts.
    pub fn day(&self, day: u64) -> io::Result<Day> {
        let mut octets = Vec::new();
        match File::open(self.path(day)) {
            Ok(file) => file.take(DAY_OCTETS_MAX as u64).read_to_end(&mut octets)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(Day::read(day, &octets))
    }

    /// Notes that a report was handed over to be sent, and syncs the note.
    ///
    /// # Errors
    /// When the file cannot be written: then the same report would be made again.
    pub fn sent(&self, day: u64, kind: Kind, domain: &str) -> io::Result<()> {
        self.append(day, &Day::sent_line(kind, domain), true)
    }

    /// Removes the files of days before the given one.
    ///
    /// # Errors
    /// When the directory cannot be read or a file not removed.
    pub fn remove_before(&self, day: u64) -> io::Result<()> {
        for old in self.days()? {
            if old < day {
                fs::remove_file(self.path(old))?;
                self.needed.borrow_mut().remove(&old);
            }
        }
        Ok(())
    }

    fn path(&self, day: u64) -> PathBuf {
        self.directory.join(file_name(day))
    }

    fn append(&self, day: u64, lines: &[u8], synced: bool) -> io::Result<()> {
        let path = self.path(day);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        let length = file.metadata()?.len();
        if length.saturating_add(lines.len() as u64) > DAY_OCTETS_MAX as u64 {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "expected at most {DAY_OCTETS_MAX} octets in {}; found more",
                    path.display()
                ),
            ));
        }
        // A crash may have left an end without a line end; what is appended to it would be unreadable too.
        if length > 0 && last_octet(&mut file)? != b'\n' {
            file.write_all(b"\n")?;
        }
        file.write_all(lines)?;
        if synced {
            file.sync_data()?;
        }
        self.rewrite(day, length.saturating_add(lines.len() as u64))
    }

    /// Writes the file of a day anew, if it has become much longer than it needs to be.
    fn rewrite(&self, day: u64, length: u64) -> io::Result<()> {
        let needed = self.needed.borrow().get(&day).copied().unwrap_or(0);
        if length < REWRITE_OCTETS.max(needed.saturating_mul(2)) {
            return Ok(());
        }
        let lines = self.day(day)?.lines();
        let (path, anew) = (self.path(day), self.path(day).with_extension(ANEW));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&anew)?;
        file.write_all(&lines)?;
        // Without this a crash could leave an empty file under the name, and with it the notes of what was sent would be gone.
        file.sync_all()?;
        fs::rename(&anew, &path)?;
        File::open(&self.directory)?.sync_all()?;
        self.needed.borrow_mut().insert(day, lines.len() as u64);
        Ok(())
    }
}

fn last_octet(file: &mut File) -> io::Result<u8> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last[0])
}

/// The day of a file's name; `None` for other files.
fn day_of_name(name: &str) -> Option<u64> {
    let date = name.strip_suffix(".counts")?;
    let midnight = vere_reports::read_time(&format!("{date}T00:00:00Z"))?;
    let day = day_of(midnight);
    (file_name(day) == name).then_some(day)
}

#[cfg(test)]
mod tests {
    use vere_reports::{Reporter, TlsFailure, TlsFailureKind, TlsPolicyKind};

    use super::*;

    const NOON: Timestamp = Timestamp::from_millis(1_777_896_000_000);
    const REPORTER: Reporter<'_> = Reporter {
        organization: "Example",
        email: "postmaster@example.net",
        contact: None,
        submitter: "mx.example.net",
        generator: "vere",
    };

    fn failed(mx: &str) -> TlsSeen {
        TlsSeen {
            domain: "example.org".to_owned(),
            kind: TlsPolicyKind::NotFound,
            failure: Some(TlsFailure {
                kind: TlsFailureKind::StartTlsNotSupported,
                mx: Some(mx.to_owned()),
                ..TlsFailure::default()
            }),
            ..TlsSeen::default()
        }
    }

    fn failures(observed: &Observed) -> u64 {
        let day = observed.day(day_of(NOON)).expect("the file");
        day.tls("example.org", &REPORTER)
            .map_or(0, |report| report.policies[0].failures)
    }

    #[test]
    fn counts_survive_a_restart_and_a_torn_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("reports");
        let observed = Observed::open(&directory).expect("room");
        assert!(observed.days().expect("the directory").is_empty());
        for _ in 0..3 {
            observed.tls(NOON, &failed("mx.example.org"), 1);
        }
        observed.flush().expect("room");
        observed.tls(NOON, &failed("mx.example.org"), 1);
        observed.flush().expect("room");
        drop(observed);
        let file = directory.join("2026-05-04.counts");
        let whole = fs::read(&file).expect("the file");
        fs::write(&file, &whole[..whole.len() - 7]).expect("room");
        fs::write(directory.join("other.counts"), "x").expect("room");

        let observed = Observed::open(&directory).expect("room");
        assert_eq!(observed.days().expect("the directory"), [day_of(NOON)]);
        assert_eq!(failures(&observed), 3);
        observed.tls(NOON, &failed("mx.example.org"), 1);
        observed.flush().expect("room");
        assert_eq!(failures(&observed), 4);

        observed
            .sent(day_of(NOON), Kind::Tls, "example.org")
            .expect("room");
        let day = observed.day(day_of(NOON)).expect("the file");
        assert_eq!(day.open(Kind::Tls), [""; 0]);
        observed.remove_before(day_of(NOON)).expect("room");
        assert_eq!(observed.days().expect("the directory").len(), 1);
        observed.remove_before(day_of(NOON) + 1).expect("room");
        assert!(observed.days().expect("the directory").is_empty());
        assert_eq!(failures(&observed), 0);
    }

    #[test]
    fn a_long_file_is_written_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let observed = Observed::open(folder.path()).expect("room");
        observed
            .sent(day_of(NOON), Kind::Dmarc, "example.org")
            .expect("room");
        let (hosts, rounds) = (200, 60);
        for _ in 0..rounds {
            for host in 0..hosts {
                observed.tls(NOON, &failed(&format!("mx{host}.example.org")), 1);
            }
            observed.flush().expect("room");
        }
        assert_eq!(failures(&observed), hosts * rounds);
        let length = fs::metadata(folder.path().join("2026-05-04.counts"))
            .expect("the file")
            .len();
        assert!(length <= 2 * REWRITE_OCTETS, "{length}");
        assert_eq!(
            fs::read_dir(folder.path()).expect("the directory").count(),
            1
        );
        let sent = observed.day(day_of(NOON)).expect("the file").lines();
        assert!(String::from_utf8_lossy(&sent).contains("\"sent\""));
    }

    #[test]
    fn days_of_names() {
        assert_eq!(day_of_name("2026-05-04.counts"), Some(20_577));
        for name in [
            "2026-5-4.counts",
            "2026-05-04.anew",
            "2026-02-30.counts",
            "x.counts",
            ".counts",
        ] {
            assert_eq!(day_of_name(name), None, "{name}");
        }
    }
}
