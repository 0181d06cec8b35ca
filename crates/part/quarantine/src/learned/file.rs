//! The file of learned senders: a line for each change, and a whole new file now and then.
//!
//! ```text
//! vere learned senders 1
//! 5d1c0f2a<TAB>+<TAB>20421<TAB>news@shop.example<TAB>ann@example.org      learned or used on a day since 1970
//! 9e0b77c1<TAB>-<TAB>20422<TAB>news@shop.example<TAB>ann@example.org      removed
//! ```
//!
//! The first word of a line is the CRC-32 of the rest, in hexadecimal. A line that does not fit its sum is passed over: the torn end after a
//! power cut, or damage. Lines are in the hands of the system once written, so that a killed process loses none.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use vere_checksum::crc32;

use super::senders::{Pair, Senders};

/// The first line.
const VERSION: &str = "vere learned senders 1";
/// Lines that a file may have beyond two for each entry.
const SPARE_LINES: usize = 1_000;

/// A change of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Learned or used.
    Noted,
    /// Removed.
    Removed,
}

/// The open file.
#[derive(Debug)]
pub(super) struct SendersFile {
    path: PathBuf,
    /// `None` before the first entry.
    file: Option<File>,
    /// Lines without the first one.
    lines: usize,
    /// Whether the last line may be torn.
    is_torn: bool,
}

impl SendersFile {
    /// Opens the file and reads the entries. Without a file nothing is made yet.
    ///
    /// # Errors
    /// When the file cannot be read, or has another version.
    pub(super) fn open(path: PathBuf) -> io::Result<(Self, Senders)> {
        let octets = match std::fs::read(&path) {
            Ok(octets) => Some(octets),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut senders = Senders::default();
        let mut opened = Self {
            path,
            file: None,
            lines: 0,
            is_torn: false,
        };
        if let Some(octets) = octets {
            opened.read(&octets, &mut senders)?;
            opened.file = Some(OpenOptions::new().append(true).open(&opened.path)?);
        }
        Ok((opened, senders))
    }

    fn read(&mut self, octets: &[u8], senders: &mut Senders) -> io::Result<()> {
        let text = String::from_utf8_lossy(octets);
        let mut lines = text.split('\n');
        let first = lines.next().unwrap_or_default();
        // A file whose first line is torn has no other.
        if first != VERSION && !(VERSION.starts_with(first) && text == first) {
            let text = format!("expected {VERSION:?} in the first line; found {first:?}");
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        let mut damaged = 0_usize;
        for line in lines.filter(|line| !line.is_empty()) {
            self.lines = self.lines.saturating_add(1);
            match parse(line) {
                Some((Change::Noted, day, pair)) => {
                    senders.set(&pair, Some(day));
                }
                Some((Change::Removed, _, pair)) => {
                    senders.set(&pair, None);
                }
                None => damaged = damaged.saturating_add(1),
            }
        }
        self.is_torn = !text.ends_with('\n') || first != VERSION;
        if damaged > 0 {
            let path = self.path.display();
            tracing::warn!(damaged, %path, "lines of the learned senders are damaged and passed over");
        }
        Ok(())
    }

    /// Adds changes; `senders` has them already. Writes the file anew where most lines are out of date.
    ///
    /// # Errors
    /// When the disk takes nothing. What is written is passed over or stands for itself.
    pub(super) fn add(
        &mut self,
        changes: &[(Change, u32, Pair)],
        senders: &Senders,
    ) -> io::Result<()> {
        let most = senders.len().saturating_mul(2).saturating_add(SPARE_LINES);
        let is_full = self.lines.saturating_add(changes.len()) > most;
        let Some(file) = self.file.as_mut().filter(|_| !is_full && !self.is_torn) else {
            return self.write_anew(senders);
        };
        let lines: String = changes.iter().map(line).collect();
        self.is_torn = true;
        file.write_all(lines.as_bytes())?;
        self.is_torn = false;
        self.lines = self.lines.saturating_add(changes.len());
        Ok(())
    }

    /// Writes all entries into a new file, which takes the place of the old one.
    fn write_anew(&mut self, senders: &Senders) -> io::Result<()> {
        let mut text = format!("{VERSION}\n");
        for (pair, used) in senders.iter() {
            text.push_str(&line(&(Change::Noted, used, pair.clone())));
        }
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        // The new file is at its end.
        self.file = Some(file);
        self.lines = senders.len();
        self.is_torn = false;
        Ok(())
    }

    /// A second handle of the file, to sync; `None` without a file.
    pub(super) fn handle(&self) -> io::Result<Option<File>> {
        self.file.as_ref().map(File::try_clone).transpose()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn line((change, day, pair): &(Change, u32, Pair)) -> String {
    let sign = match change {
        Change::Noted => '+',
        Change::Removed => '-',
    };
    let rest = format!("{sign}\t{day}\t{}\t{}", pair.sender, pair.recipient);
    format!("{:08x}\t{rest}\n", crc32(rest.as_bytes()))
}

fn parse(line: &str) -> Option<(Change, u32, Pair)> {
    let (sum, rest) = line.split_once('\t')?;
    if u32::from_str_radix(sum, 16).ok()? != crc32(rest.as_bytes()) {
        return None;
    }
    let mut words = rest.split('\t');
    let change = match words.next()? {
        "+" => Change::Noted,
        "-" => Change::Removed,
        _ => return None,
    };
    let day = words.next()?.parse().ok()?;
    let pair = Pair::of(words.next()?, words.next()?)?;
    words.next().is_none().then_some((change, day, pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(number: usize) -> Pair {
        Pair::of(&format!("s{number}@x.example"), "ann@a.example").unwrap()
    }

    fn noted(number: usize, day: u32) -> (Change, u32, Pair) {
        (Change::Noted, day, pair(number))
    }

    fn add(file: &mut SendersFile, senders: &mut Senders, change: (Change, u32, Pair)) {
        let used = (change.0 == Change::Noted).then_some(change.1);
        senders.set(&change.2, used);
        file.add(&[change], senders).unwrap();
    }

    #[test]
    fn every_cut_of_the_file_is_read_and_written_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned-senders");
        let (mut file, mut senders) = SendersFile::open(path.clone()).unwrap();
        assert_eq!(senders.len(), 0);
        assert!(!path.exists(), "no file before the first entry");
        for number in 0..3 {
            add(&mut file, &mut senders, noted(number, 7));
        }
        add(&mut file, &mut senders, (Change::Removed, 8, pair(1)));
        let whole = std::fs::read(&path).unwrap();
        let text = String::from_utf8(whole.clone()).unwrap();
        assert!(text.starts_with("vere learned senders 1\n"), "{text}");
        assert_eq!(SendersFile::open(path.clone()).unwrap().1, senders);
        let mut before = usize::MAX;
        for end in (0..=whole.len()).rev() {
            std::fs::write(&path, &whole[..end]).unwrap();
            let (mut file, mut senders) = SendersFile::open(path.clone()).unwrap();
            let lines = whole[..end].iter().filter(|octet| **octet == b'\n').count();
            let known = senders.len();
            assert!(
                known <= 3 && (lines < before || known > 0 || lines < 2),
                "{end}"
            );
            before = lines;
            add(&mut file, &mut senders, noted(9, 9));
            let (_, read) = SendersFile::open(path.clone()).unwrap();
            assert_eq!((&read, read.len()), (&senders, known + 1), "{end}");
        }
    }

    #[test]
    fn damage_costs_one_entry_and_another_version_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned-senders");
        let (mut file, mut senders) = SendersFile::open(path.clone()).unwrap();
        for number in 0..3 {
            add(&mut file, &mut senders, noted(number, 7));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("s1@", "t1@")).unwrap();
        let (_, read) = SendersFile::open(path.clone()).unwrap();
        senders.set(&pair(1), None);
        assert_eq!(read, senders);
        let newer = text.replace("senders 1", "senders 2");
        std::fs::write(&path, &newer).unwrap();
        let error = SendersFile::open(path.clone()).unwrap_err().to_string();
        assert!(
            error.contains("found \"vere learned senders 2\""),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
    }

    #[test]
    fn a_file_full_of_old_lines_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned-senders");
        let (mut file, mut senders) = SendersFile::open(path.clone()).unwrap();
        for day in 0..1_500 {
            add(&mut file, &mut senders, noted(1, day));
        }
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < 1_003, "{lines}");
        assert_eq!(SendersFile::open(path).unwrap().1, senders);
    }
}
