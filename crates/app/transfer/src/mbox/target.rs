//! mbox files to write, as mboxrd.
//!
//! A mailbox `A/B` becomes `A/B.mbox`. During the transfer the file is called `A/B.mbox.part`, and has the length of
//! the last record: octets beyond the recorded length are cut off and written again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use vere_imap::date::DateTime;

use super::{behind_marks, from_line, header};
use crate::maildir::{make_folder, write_lf};
use crate::message::{Item, Message};
use crate::names::{self, Folder};
use crate::outcome::Put;
use vere_process::failure::Failure;

/// Octets of a message that are searched for the sender's address.
const HEAD: usize = 1_024;

/// A folder of mbox files.
#[derive(Debug)]
pub(crate) struct Target {
    root: PathBuf,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: BufWriter<File>,
    part: PathBuf,
    whole: PathBuf,
}

impl Target {
    pub(crate) const fn new(root: PathBuf) -> Self {
        Self { root, open: None }
    }

    /// Begins a file, or continues behind `length` octets.
    ///
    /// # Errors
    /// When a file of the name exists that no transfer of ours wrote.
    pub(crate) fn open(&mut self, folder: &Folder, length: u64) -> Result<(), Failure> {
        let name = names::to_file(&folder.path);
        let whole = self.root.join(format!("{name}.mbox"));
        let part = self.root.join(format!("{name}.mbox.part"));
        if let Some(parent) = whole.parent() {
            make_folder(parent)?;
        }
        if let Ok(about) = fs::metadata(&whole) {
            if about.len() != length {
                return Err(Failure::new(format!(
                    "{} is there and not as it was left: nothing is added to it",
                    whole.display()
                )));
            }
            fs::rename(&whole, &part)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&part)?;
        if file.metadata()?.len() < length {
            return Err(Failure::new(format!(
                "{} is shorter than it was left",
                part.display()
            )));
        }
        file.set_len(length)?;
        file.seek(SeekFrom::End(0))?;
        self.open = Some(Open {
            file: BufWriter::new(file),
            part,
            whole,
        });
        Ok(())
    }

    /// Adds a message.
    ///
    /// # Errors
    /// When the message cannot be written.
    pub(crate) fn put(&mut self, item: &Item, message: &mut Message) -> Result<Put, Failure> {
        let open = self.open.as_mut();
        let file = &mut open.ok_or_else(|| Failure::new("no mbox is open"))?.file;
        let sender = sender(message)?;
        file.write_all(from_line::line(&sender, item.date.map(DateTime::moment)).as_bytes())?;
        file.write_all(header::lines(&item.flags).as_bytes())?;
        let mut quoting = Quoting::new(file);
        write_lf(message, &mut quoting)?;
        quoting.end()?;
        Ok(Put::Kept(None))
    }

    /// Syncs the messages written last; returns the length of the file.
    ///
    /// # Errors
    /// When the sync fails.
    pub(crate) fn sync(&mut self) -> Result<u64, Failure> {
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| Failure::new("no mbox is open"))?;
        open.file.flush()?;
        open.file.get_ref().sync_all()?;
        Ok(open.file.stream_position()?)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When the file cannot be renamed.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        if let Some(open) = self.open.take() {
            drop(open.file);
            fs::rename(&open.part, &open.whole)?;
            File::open(open.whole.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }
}

/// The address in `Return-Path`, if the field is first, as in messages of the local store.
fn sender(message: &mut Message) -> io::Result<String> {
    message.rewind()?;
    let mut head = [0; HEAD];
    let octets = message.read(&mut head)?;
    let line = head[..octets].split(|octet| *octet == b'\n').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
    let path = line.strip_prefix("Return-Path: <").map(str::trim_end);
    let path = path.and_then(|path| path.strip_suffix('>'));
    Ok(path.unwrap_or_default().to_owned())
}

/// Puts `>` before lines of a body that begin with `From ` behind any number of `>`, and ends with an empty line.
struct Quoting<'a, W> {
    to: &'a mut W,
    /// The beginning of a line, for as long as the line may need a quote.
    held: Vec<u8>,
    undecided: bool,
    last: u8,
}

impl<'a, W: Write> Quoting<'a, W> {
    fn new(to: &'a mut W) -> Self {
        Self {
            to,
            held: Vec::new(),
            undecided: true,
            last: b'\n',
        }
    }

    /// Decides about the held beginning of a line, if enough of the line is known.
    fn decide(&mut self, is_end: bool) -> io::Result<()> {
        const WORD: &[u8] = b"From ";
        let rest = behind_marks(&self.held);
        if rest.starts_with(WORD) {
            self.to.write_all(b">")?;
        } else if WORD.starts_with(rest) && !is_end {
            return Ok(());
        }
        self.undecided = false;
        self.to.write_all(&self.held)?;
        self.held.clear();
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        self.decide(true)?;
        if self.last != b'\n' {
            self.to.write_all(b"\n")?;
        }
        self.to.write_all(b"\n")
    }
}

impl<W: Write> Write for Quoting<'_, W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        for line in octets.split_inclusive(|octet| *octet == b'\n') {
            let ends = line.last() == Some(&b'\n');
            if self.undecided {
                self.held.extend_from_slice(line);
                self.decide(ends)?;
            } else {
                self.to.write_all(line)?;
            }
            self.undecided |= ends;
        }
        self.last = octets.last().copied().unwrap_or(self.last);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mbox::{Source, Variant};
    use crate::message::{LineEnds, Writer};

    fn content(message: &mut Message) -> String {
        let mut all = Vec::new();
        let piece = |piece: &[u8]| {
            all.extend_from_slice(piece);
            Ok(())
        };
        message.pieces(piece).expect("memory");
        String::from_utf8(all).expect("text")
    }

    fn texts(path: &Path, variant: Variant) -> Vec<(String, Vec<String>)> {
        let mut source = Source::new(path.to_owned(), variant);
        let folders = source.folders().expect("files");
        let items = source.open(&folders[0]).expect("an mbox");
        let mut keys: Vec<_> = items.iter().map(|item| item.key.clone()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), items.len());
        let read = |item: &Item| source.read(item).ok().flatten().expect("a message");
        items
            .iter()
            .map(|item| (content(&mut read(item)), item.flags.clone()))
            .collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut target = Target::new(folder.path().to_owned());
        let place = Folder {
            path: vec!["A".to_owned(), "B".to_owned()],
            special_use: None,
            subscribed: None,
            number: 0,
        };
        let messages = [
            (
                "a: b\r\n\r\nFrom me\r\n>From you 12:00:00\r\n>>From\r\n\r\nFrom x Thu Jan  1 00:00:00 1970\r\n",
                vec!["\\Seen", "x"],
            ),
            ("a: b\r\n\r\n\r\n\r\n", vec!["\\Answered", "\\Draft"]),
            ("a: b\r\n\r\n", vec![]),
            ("a: b\r\n\r\n", vec![]),
            ("a: b\r\n", vec![]),
            (
                "a: b\r\nStatus: RO\r\nContent-Length: 1\r\n\r\nits own\r\n",
                vec![],
            ),
            ("a: b\r\n\r\nodd\nFrom x\r\n", vec![]),
            ("From: x\r\nFrom x\r\n\r\n\rF\r\n", vec!["\\Flagged"]),
        ];
        let flags = |flags: &[&str]| {
            flags
                .iter()
                .map(|&flag| flag.to_owned())
                .collect::<Vec<_>>()
        };
        target.open(&place, 0).expect("a file");
        let mut length = 0;
        for again in [false, true] {
            for (text, own) in &messages {
                let mut writer = Writer::new(LineEnds::Kept);
                writer.write(text.as_bytes()).expect("memory");
                let item = Item {
                    key: String::new(),
                    flags: flags(own),
                    date: None,
                    size: 0,
                    at: 0,
                };
                let put = target.put(&item, &mut writer.finish());
                assert!(put.is_ok());
            }
            let now = target.sync().expect("a disk");
            if !again {
                length = now;
            }
        }
        // Octets beyond the recorded length are cut off.
        target.open(&place, length).expect("the same file");
        target.close().expect("a name");
        let file = folder.path().join("A/B.mbox");
        assert_eq!(fs::metadata(&file).expect("the file").len(), length);
        let wanted: Vec<_> = messages
            .iter()
            .map(|(text, own)| ((*text).to_owned(), flags(own)))
            .collect();
        for variant in [Variant::Auto, Variant::Mboxrd] {
            let mut found = texts(&file, variant);
            for (found, wanted) in found.iter_mut().zip(&wanted) {
                found.1.sort();
                let mut flags = wanted.1.clone();
                flags.sort();
                assert_eq!((&found.0, &found.1), (&wanted.0, &flags), "{variant:?}");
            }
            assert_eq!(found.len(), wanted.len());
        }
        assert!(target.open(&place, length + 1).is_err());
    }

    #[test]
    fn others_may_not_read_it_and_a_file_in_the_way_is_named() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().expect("a folder");
        let place = Folder {
            path: vec!["A".to_owned()],
            special_use: None,
            subscribed: None,
            number: 0,
        };
        let root = folder.path().join("new");
        let mut target = Target::new(root.clone());
        target.open(&place, 0).expect("a file");
        target.close().expect("a name");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&root), 0o700);
        assert_eq!(mode(&root.join("A.mbox")), 0o600);
        let file = folder.path().join("file");
        fs::write(&file, "").expect("room");
        let failure = Target::new(file.clone())
            .open(&place, 0)
            .expect_err("a file");
        let said = failure.to_string();
        assert!(
            said.contains(&*file.to_string_lossy()) && said.contains("name a folder"),
            "{said}"
        );
    }

    #[test]
    fn variants_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mail");
        let from = "From x Thu Jan  1 00:00:00 1970\n";
        let body = "From a\n>From b\n>>From c\n";
        let check = |text: String, variant, wanted: &[&str]| {
            fs::write(&file, &text).expect("room");
            let found: Vec<String> = texts(&file, variant)
                .into_iter()
                .map(|(text, _)| text)
                .collect();
            let wanted: Vec<String> = wanted
                .iter()
                .map(|text| text.replace('\n', "\r\n"))
                .collect();
            assert_eq!(found, wanted, "{variant:?} {text:?}");
        };
        let quoted = format!("{from}a: b\n\n{body}\n{from}c: d\n\n");
        check(
            quoted.clone(),
            Variant::Auto,
            &["a: b\n\nFrom a\nFrom b\n>From c\n", "c: d\n"],
        );
        check(
            quoted.clone(),
            Variant::Mboxo,
            &["a: b\n\nFrom a\nFrom b\n>>From c\n", "c: d\n"],
        );
        check(
            quoted,
            Variant::Mboxcl2,
            &["a: b\n\nFrom a\n>From b\n>>From c\n", "c: d\n"],
        );
        // The length is right: a line within the message that looks like a separator is none.
        let inner = format!("x\n\n{from}>From y\n");
        let length = inner.len();
        let by_length = format!(
            "{from}Content-Length: {length}\nStatus: RO\n folded\na: b\n\n{inner}\n{from}c: d\n\n"
        );
        let whole = format!("a: b\n\n{inner}");
        check(by_length.clone(), Variant::Auto, &[&whole, "c: d\n"]);
        check(
            by_length.clone(),
            Variant::Mboxcl,
            &[&whole.replace(">From", "From"), "c: d\n"],
        );
        check(
            by_length,
            Variant::Mboxrd,
            &["a: b\n\nx\n", "From y\n", "c: d\n"],
        );
        // The length is wrong.
        let wrong = format!("{from}Content-Length: 3\na: b\n\nlong\n\n{from}c: d\n\n");
        check(wrong, Variant::Auto, &["a: b\n\nlong\n", "c: d\n"]);
        fs::write(&file, "a: b\n\n").expect("room");
        let mut source = Source::new(file, Variant::Auto);
        let folders = source.folders().expect("a file");
        assert!(source.open(&folders[0]).is_err());
    }
}
