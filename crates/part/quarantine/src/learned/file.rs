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
//!
//! A thread of its own writes the new file, since the gateway's thread writes the lines. The old file has every change until the new one takes its
//! place, and a change in the meantime makes the new one useless.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use vere_checksum::crc32;

use super::senders::{Pair, Senders, is_forgotten};

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
    /// The new file under way.
    new: Option<NewFile>,
}

/// A new file that a thread writes.
#[derive(Debug)]
struct NewFile {
    thread: JoinHandle<io::Result<File>>,
    lines: usize,
    /// Whether the old file has further changes.
    is_stale: bool,
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
            new: None,
        };
        if let Some(octets) = octets {
            // A first line that is torn has no other behind: the file is begun anew.
            if opened.read(&octets, &mut senders)? {
                opened.file = Some(OpenOptions::new().append(true).open(&opened.path)?);
            }
        }
        Ok((opened, senders))
    }

    /// Reads the entries; `false` for a file without a whole first line.
    fn read(&mut self, octets: &[u8], senders: &mut Senders) -> io::Result<bool> {
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
        self.is_torn = !text.ends_with('\n');
        if damaged > 0 {
            let path = self.path.display();
            tracing::warn!(damaged, %path, "lines of the learned senders are damaged and passed over");
        }
        Ok(first == VERSION)
    }

    /// Adds changes; `senders` has them already. Has the file written anew where most lines are out of date on this day.
    ///
    /// # Errors
    /// When the disk takes nothing. What is written is passed over or stands for itself.
    pub(super) fn add(
        &mut self,
        changes: &[(Change, u32, Pair)],
        senders: &Senders,
        day: u32,
    ) -> io::Result<()> {
        self.take_new();
        if self.file.is_none() {
            // The first entries.
            let file = write_new(&self.path, &whole(senders, day).0)?;
            self.put_in_place(file, senders.len())?;
            return Ok(());
        }
        let Some(file) = self.file.as_mut() else {
            return Ok(());
        };
        // A line end closes a torn line.
        let mut lines = if self.is_torn { "\n" } else { "" }.to_owned();
        lines.extend(changes.iter().map(line));
        self.is_torn = true;
        file.write_all(lines.as_bytes())?;
        self.is_torn = false;
        self.lines = self.lines.saturating_add(changes.len());
        let most = senders.len().saturating_mul(2).saturating_add(SPARE_LINES);
        match &mut self.new {
            Some(new) => new.is_stale = true,
            None if self.lines > most => self.begin_new(senders, day),
            None => {}
        }
        Ok(())
    }

    /// Has a thread write all entries into a new file.
    fn begin_new(&mut self, senders: &Senders, day: u32) {
        let (text, lines) = whole(senders, day);
        let path = self.path.clone();
        let thread = std::thread::Builder::new()
            .name("learned-senders".to_owned())
            .spawn(move || write_new(&path, &text));
        match thread {
            Ok(thread) => {
                self.new = Some(NewFile {
                    thread,
                    lines,
                    is_stale: false,
                });
            }
            Err(error) => self.give_up_new(&error),
        }
    }

    /// Puts a new file in its place, once the thread has written a whole one.
    fn take_new(&mut self) {
        let Some(new) = self.new.take_if(|new| new.thread.is_finished()) else {
            return;
        };
        // A panic in the thread is one in the process.
        let Ok(written) = new.thread.join() else {
            return;
        };
        let taken = match written {
            Ok(_) if new.is_stale => return,
            Ok(file) => self.put_in_place(file, new.lines),
            Err(error) => Err(error),
        };
        if let Err(error) = taken {
            self.give_up_new(&error);
        }
    }

    fn put_in_place(&mut self, file: File, lines: usize) -> io::Result<()> {
        std::fs::rename(beside(&self.path), &self.path)?;
        // The new file is at its end. From here on it is the list, whatever the disk says of its folder.
        self.file = Some(file);
        self.lines = lines;
        self.is_torn = false;
        Ok(())
    }

    /// Leaves the old file in use. The next attempt follows after as many lines as a file may have.
    fn give_up_new(&mut self, error: &io::Error) {
        let path = self.path.display();
        tracing::warn!(%error, %path, "learned senders cannot be written anew; the file grows");
        self.lines = 0;
    }

    /// Handles of the file and its folder, to sync; absent without a file.
    pub(super) fn handles(&self) -> io::Result<Vec<File>> {
        let Some(file) = &self.file else {
            return Ok(Vec::new());
        };
        let mut handles = vec![file.try_clone()?];
        if let Some(folder) = self.path.parent() {
            handles.push(File::open(folder)?);
        }
        Ok(handles)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// All entries as a file, and how many. Entries long out of use are left out.
fn whole(senders: &Senders, day: u32) -> (String, usize) {
    let mut text = format!("{VERSION}\n");
    let mut lines = 0_usize;
    for (pair, used) in senders.iter().filter(|(_, used)| !is_forgotten(*used, day)) {
        text.push_str(&line(&(Change::Noted, used, pair.clone())));
        lines = lines.saturating_add(1);
    }
    (text, lines)
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Writes a new file beside the old one.
fn write_new(path: &Path, text: &str) -> io::Result<File> {
    let mut file = File::create(beside(path))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(file)
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
        file.add(&[change], senders, 10).unwrap();
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
        let lines = || std::fs::read_to_string(&path).unwrap().lines().count();
        // Each further change may come before the thread is done.
        for _ in 0..1_000 {
            if lines() < 1_003 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            add(&mut file, &mut senders, noted(1, 1_500));
        }
        assert!(lines() < 1_003, "{}", lines());
        assert_eq!(SendersFile::open(path.clone()).unwrap().1, senders);
        add(&mut file, &mut senders, noted(2, 1_500));
        assert_eq!(SendersFile::open(path.clone()).unwrap().1, senders);
    }

    #[test]
    fn a_new_file_has_no_place_for_entries_long_out_of_use() {
        let mut senders = Senders::default();
        senders.set(&pair(1), Some(100));
        senders.set(&pair(2), Some(500));
        assert_eq!(whole(&senders, 830).1, 2, "a clock a year ahead");
        let (text, lines) = whole(&senders, 831);
        assert_eq!(lines, 1);
        assert!(text.contains("s2@x.example") && !text.contains("s1@x.example"));
    }

    /// The disk takes nothing in the meantime: no whole file is written for a line.
    #[test]
    fn a_torn_line_is_closed_by_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned-senders");
        let (mut file, mut senders) = SendersFile::open(path.clone()).unwrap();
        add(&mut file, &mut senders, noted(1, 7));
        let writable = file.file.replace(File::open(&path).unwrap());
        assert!(file.add(&[noted(2, 7)], &senders, 10).is_err());
        std::fs::write(beside(&path), "untouched").unwrap();
        file.file = Some(OpenOptions::new().append(true).open(&path).unwrap());
        drop(writable);
        add(&mut file, &mut senders, noted(3, 7));
        assert_eq!(std::fs::read_to_string(beside(&path)).unwrap(), "untouched");
        assert_eq!(SendersFile::open(path).unwrap().1, senders);
    }
}
