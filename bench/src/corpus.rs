//! Real messages from an mbox file, ready for the wire.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The longest text line without CRLF (RFC 5321 section 4.5.3.1.6).
const LINE_MAX: usize = 998;

/// Why an mbox file could not be used.
#[derive(Debug)]
pub enum CorpusError {
    /// The file cannot be opened, read or decompressed.
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the kernel or the decoder.
        source: io::Error,
    },
    /// The file contains no message.
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for CorpusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Self::Empty { path } => write!(f, "{} holds no message", path.display()),
        }
    }
}

impl std::error::Error for CorpusError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Empty { .. } => None,
        }
    }
}

/// Opens an mbox file, compressed where its name ends in `.zst`.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    const AT_ONCE: usize = 1 << 20;
    let file = File::open(path)?;
    if path.extension().is_none_or(|extension| extension != "zst") {
        return Ok(Box::new(BufReader::with_capacity(AT_ONCE, file)));
    }
    let decoder = zstd::stream::read::Decoder::new(file)?;
    Ok(Box::new(BufReader::with_capacity(AT_ONCE, decoder)))
}

/// A line of a message in an mboxrd file, without its end and without the quote before `From `.
pub(crate) fn line_of(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let quotes = line.iter().take_while(|octet| **octet == b'>').count();
    if quotes > 0 && line[quotes..].starts_with(b"From ") {
        return &line[1..];
    }
    line
}

/// Messages in wire format: CRLF lines, dots doubled, nothing after the last line.
///
/// Old mail does not keep today's rules, and a strict server would refuse it for reasons the
/// measurement is not about. So a CR inside a line becomes a space, a NUL is left out, and a line of
/// more than 998 octets is broken.
#[derive(Debug)]
pub struct Corpus {
    octets: Vec<u8>,
    messages: Vec<(Range<usize>, bool)>,
}

impl Corpus {
    /// Reads the first `count` messages of an mboxrd file, decompressed first when its name ends in
    /// `.zst`.
    ///
    /// # Errors
    ///
    /// [`CorpusError::Read`] when reading or decompressing fails, [`CorpusError::Empty`] when there
    /// is no message in the file.
    pub fn read(path: &Path, count: usize) -> Result<Self, CorpusError> {
        let failed = |source| CorpusError::Read {
            path: path.to_owned(),
            source,
        };
        let corpus = open(path).and_then(|input| Self::parse(input, count));
        let corpus = corpus.map_err(failed)?;
        if corpus.messages.is_empty() {
            return Err(CorpusError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(corpus)
    }

    /// Reads every file below a folder, a message each, in the order of the paths; returns the paths as well.
    pub(crate) fn read_folder(folder: &Path) -> io::Result<(Self, Vec<PathBuf>)> {
        let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                match entry.file_type()?.is_dir() {
                    true => folders.push(entry.path()),
                    false => files.push(entry.path()),
                }
            }
        }
        files.sort();
        let mut corpus = Self {
            octets: Vec::new(),
            messages: Vec::new(),
        };
        for file in &files {
            let text = fs::read(file)?;
            let start = corpus.octets.len();
            for (number, line) in text.split_inclusive(|octet| *octet == b'\n').enumerate() {
                if number > 0 || !line.starts_with(b"From ") {
                    corpus.push_line(line);
                }
            }
            corpus.end_message(start);
        }
        Ok((corpus, files))
    }

    /// The path of the test corpus: the file in the environment variable `VERE_CORPUS`, else
    /// `shared/corpus/mail.mbox.zst` in the working directory or one of its ancestors.
    pub fn locate() -> Option<PathBuf> {
        if let Some(path) = std::env::var_os("VERE_CORPUS") {
            return Some(path.into());
        }
        let here = std::env::current_dir().ok()?;
        here.ancestors()
            .map(|folder| folder.join("shared/corpus/mail.mbox.zst"))
            .find(|path| path.exists())
    }

    /// Reads mboxrd from `input`: a message begins after a line `From ...`, and a line `>From ...`
    /// with any number of `>` has one too many.
    fn parse(mut input: impl BufRead, count: usize) -> io::Result<Self> {
        let mut corpus = Self {
            octets: Vec::new(),
            messages: Vec::new(),
        };
        let mut start = None;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = input.read_until(b'\n', &mut line)?;
            if read == 0 || line.starts_with(b"From ") {
                if let Some(start) = start.take() {
                    corpus.end_message(start);
                }
                if read == 0 || corpus.messages.len() == count {
                    return Ok(corpus);
                }
                start = Some(corpus.octets.len());
            } else if start.is_some() {
                corpus.push_line(&line);
            }
        }
    }

    fn end_message(&mut self, start: usize) {
        // The empty line before the next From_ line belongs to the mbox.
        if self.octets[start..].ends_with(b"\r\n\r\n") {
            self.octets.truncate(self.octets.len() - 2);
        }
        let eight_bit = !self.octets[start..].is_ascii();
        self.messages.push((start..self.octets.len(), eight_bit));
    }

    fn push_line(&mut self, line: &[u8]) {
        let mut rest = line_of(line);
        loop {
            let (part, after) = rest.split_at(rest.len().min(LINE_MAX));
            if part.first() == Some(&b'.') {
                self.octets.push(b'.');
            }
            self.octets.extend(
                part.iter()
                    .filter(|octet| **octet != 0)
                    .map(|octet| match octet {
                        b'\r' => b' ',
                        other => *other,
                    }),
            );
            self.octets.extend_from_slice(b"\r\n");
            if after.is_empty() {
                return;
            }
            rest = after;
        }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether the corpus is empty; never true after [`Corpus::read`].
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Message `index`, modulo the number of messages, and whether the message has octets above 127.
    pub fn message(&self, index: usize) -> (&[u8], bool) {
        let (range, eight_bit) = &self.messages[index % self.messages.len()];
        (&self.octets[range.clone()], *eight_bit)
    }
}

#[cfg(test)]
mod tests {
    use super::{Corpus, CorpusError};
    use std::path::Path;

    const MBOX: &[u8] =
        b"From a Thu\nA: 1\n\n.dot\n>From x\n>>From y\n> From z\n\nFrom b\nB: \xe9\n\nend";

    #[test]
    fn mboxrd_becomes_wire_text() {
        let corpus = Corpus::parse(MBOX, 10).unwrap();
        assert_eq!(corpus.len(), 2);
        let first: &[u8] = b"A: 1\r\n\r\n..dot\r\nFrom x\r\n>From y\r\n> From z\r\n";
        assert_eq!(corpus.message(0), (first, false));
        assert_eq!(corpus.message(3), (&b"B: \xe9\r\n\r\nend\r\n"[..], true));
        assert_eq!(Corpus::parse(MBOX, 1).unwrap().len(), 1);
    }

    #[test]
    fn old_lines_are_brought_into_form() {
        let mut mbox = b"From a\nA: 1\r\n\nx\ry\0z\n".to_vec();
        mbox.extend_from_slice(&[b'.'; 1000]);
        let corpus = Corpus::parse(&mbox[..], 1).unwrap();
        let (message, _) = corpus.message(0);
        assert!(message.starts_with(b"A: 1\r\n\r\nx yz\r\n..."));
        assert!(message.ends_with(b".\r\n...\r\n"));
        assert_eq!(message.len(), 6 + 2 + 6 + 999 + 2 + 3 + 2);
    }

    #[test]
    fn folders_have_a_message_in_each_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("spam")).unwrap();
        std::fs::write(dir.path().join("spam/2"), "From x\nA: 1\n\n.b\n").unwrap();
        std::fs::write(dir.path().join("1"), "C: 2\n").unwrap();
        let (corpus, files) = Corpus::read_folder(dir.path()).unwrap();
        assert_eq!(corpus.message(0).0, b"C: 2\r\n");
        assert_eq!(corpus.message(1).0, b"A: 1\r\n\r\n..b\r\n");
        assert!(files.len() == 2 && files[1].ends_with("spam/2"));
    }

    #[test]
    fn files_are_read_plain_and_compressed() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("m.mbox");
        std::fs::write(&plain, MBOX).unwrap();
        assert_eq!(Corpus::read(&plain, 10).unwrap().len(), 2);
        let packed = dir.path().join("m.mbox.zst");
        std::fs::write(&packed, zstd::encode_all(MBOX, 1).unwrap()).unwrap();
        assert_eq!(Corpus::read(&packed, 10).unwrap().len(), 2);
        std::fs::write(&plain, b"no mail").unwrap();
        assert!(matches!(
            Corpus::read(&plain, 1),
            Err(CorpusError::Empty { .. })
        ));
        let missing = Corpus::read(Path::new("/nonexistent"), 1);
        assert!(matches!(missing, Err(CorpusError::Read { .. })));
    }
}
