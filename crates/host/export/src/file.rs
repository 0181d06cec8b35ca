//! Lines in a file: appended, synced, and set aside when the file is large.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use vere_units::{ByteSize, Timestamp};

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
    /// A file that would grow beyond is set aside as `PATH.TIME`, and never removed.
    pub size_max: ByteSize,
}

/// A file to which lines are appended.
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
        let known = self.open.take();
        let known = known.filter(|(file, _)| is_at(file, &self.options.path));
        let (mut file, mut size) = match known {
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
                // Half a batch must be removed before the batch is repeated. When even the removal fails,
                // the next opening cuts the unfinished line, and whole lines are duplicated, as
                // documented.
                let _ = file.set_len(size);
                Err(error)
            }
        }
    }

    fn set_aside(&self) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut millis = now.map_or(0, |since| since.as_millis());
        let mut aside = self.aside(millis);
        while aside.exists() {
            millis += 1;
            aside = self.aside(millis);
        }
        fs::rename(&self.options.path, aside)?;
        sync_folder(&self.options.path)
    }

    /// The name of a file set aside at this time, in ms since the Unix epoch.
    fn aside(&self, millis: u128) -> PathBuf {
        let time = Timestamp::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        let mut name = self.options.path.clone().into_os_string();
        name.push(format!(".{time}"));
        PathBuf::from(name)
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

/// Whether the path still leads to the open file: another process may have renamed the file.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |there: Metadata| {
        let here = file.metadata()?;
        Ok::<_, io::Error>((here.dev(), here.ino()) == (there.dev(), there.ino()))
    };
    fs::metadata(path).and_then(same).unwrap_or(false)
}

/// Opens the file for appending, for this process alone, and without the unfinished line that a crash may
/// have left at the end.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let is_new = !path.exists();
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(MODE)
        .open(path)?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::other("another process writes the file"),
        TryLockError::Error(error) => error,
    })?;
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
