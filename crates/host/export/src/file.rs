//! Lines in a file: appended, synced, and set aside when the file is large.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use vere_units::ByteSize;

use crate::{Sink, SinkError};

/// Permissions of the file: mail addresses are nobody else's business, but a group may be let in.
const MODE: u32 = 0o640;
/// Octets looked at from the end to find the beginning of an unfinished line.
const TAIL: u64 = 1 << 20;

/// Where lines go, and how much is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOptions {
    /// The file.
    pub path: PathBuf,
    /// A file of this size is set aside as `PATH.1`, and what was there as `PATH.2`, and so on.
    pub size_max: ByteSize,
    /// Files set aside that are kept; older ones are removed.
    pub keep: u32,
}

/// A file that lines are appended to.
#[derive(Debug)]
pub struct FileSink {
    options: FileOptions,
    /// The open file and its size up to the last whole line; `None` before the first batch and after a
    /// failure.
    open: Option<(File, u64)>,
}

impl FileSink {
    /// A sink that opens its file with the first batch.
    #[must_use]
    pub const fn new(options: FileOptions) -> Self {
        Self {
            options,
            open: None,
        }
    }

    fn append(&mut self, lines: &[Bytes]) -> io::Result<()> {
        let mut octets = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        for line in lines {
            octets.extend_from_slice(line);
            octets.push(b'\n');
        }
        let (mut file, mut size) = match self.open.take() {
            Some(open) => open,
            None => open(&self.options.path)?,
        };
        if size > 0 && size + octets.len() as u64 > self.options.size_max.as_u64() {
            drop(file);
            self.set_aside()?;
            (file, size) = open(&self.options.path)?;
        }
        match file.write_all(&octets).and_then(|()| file.sync_data()) {
            Ok(()) => {
                self.open = Some((file, size + octets.len() as u64));
                Ok(())
            }
            Err(error) => {
                // Half a batch must not stay before its repetition. When even this fails, the next
                // opening cuts the unfinished line, and whole lines are there twice, as promised.
                let _ = file.set_len(size);
                Err(error)
            }
        }
    }

    fn set_aside(&self) -> io::Result<()> {
        let place = |number: u32| {
            let mut name = self.options.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        if self.options.keep == 0 {
            fs::remove_file(&self.options.path)?;
            return sync_folder(&self.options.path);
        }
        for number in (1..self.options.keep).rev() {
            match fs::rename(place(number), place(number + 1)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.options.path, place(1))?;
        sync_folder(&self.options.path)
    }
}

impl Sink for FileSink {
    async fn take(&mut self, lines: &[Bytes]) -> Result<(), SinkError> {
        let lines = lines.to_vec();
        let mut sink = Self {
            options: self.options.clone(),
            open: self.open.take(),
        };
        // Syncing may take long: not on the thread that serves everybody.
        let done = tokio::task::spawn_blocking(move || {
            let appended = sink.append(&lines);
            (sink, appended)
        });
        let path = self.options.path.display();
        let (sink, appended) = done
            .await
            .map_err(|error| SinkError(format!("{path}: {error}")))?;
        self.open = sink.open;
        appended.map_err(|error| SinkError(format!("{path}: {error}")))
    }
}

/// Opens the file for appending, without the unfinished line that a crash may have left at its end.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let is_new = !path.exists();
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(MODE)
        .open(path)?;
    if is_new {
        sync_folder(path)?;
    }
    let size = file.metadata()?.len();
    let start = size.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let whole = match tail.iter().rposition(|octet| *octet == b'\n') {
        Some(end) => start + end as u64 + 1,
        None => start,
    };
    if whole < size {
        file.set_len(whole)?;
    }
    Ok((file, whole))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
