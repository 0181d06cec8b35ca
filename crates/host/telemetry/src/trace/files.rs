//! The files of the trace: their names, order, rotation and retention.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// First line of every file; the number is the version of the format.
pub(super) const HEADER: &[u8] = b"{\"trace_log\":1}\n";

/// The trace files of `dir` as (milliseconds in the name, path), oldest first.
pub(super) fn list(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if let Some(at) = entry.file_name().to_str().and_then(name_time) {
            files.push((at, entry.path()));
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn name_time(name: &str) -> Option<u64> {
    name.strip_prefix("trace-")?
        .strip_suffix(".jsonl")?
        .parse()
        .ok()
}

/// The file being written, and the older files kept.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    segment_octets_max: u64,
    retained_octets_max: u64,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    file: File,
    name_time: u64,
    octets: u64,
    /// The last write ended inside a line.
    torn: bool,
}

impl Files {
    /// Opens the newest file while it has space, or a new file, and deletes files beyond the
    /// limits.
    pub(super) fn open(
        dir: PathBuf,
        segment_octets_max: u64,
        retained_octets_max: u64,
    ) -> io::Result<Self> {
        fs::create_dir_all(&dir)?;
        let mut files = Self {
            dir,
            segment_octets_max,
            retained_octets_max,
            current: None,
        };
        files.current = match list(&files.dir)?.pop() {
            Some((name_time, path)) => Some(reopen(name_time, &path)?),
            None => None,
        };
        if files.has_no_room() {
            files.rotate()?;
        }
        files.trim()?;
        Ok(files)
    }

    /// Appends whole lines; begins a new file first when the current one is full.
    ///
    /// After an error a part of the lines may be in the file; the next call ends the torn line.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.has_no_room() {
            self.rotate()?;
            self.trim()?;
        }
        let Some(current) = &mut self.current else {
            return Err(io::Error::other("no trace file is open"));
        };
        if current.torn {
            current.file.write_all(b"\n")?;
            current.octets += 1;
        }
        current.torn = true;
        current.file.write_all(lines)?;
        current.torn = false;
        current.octets += lines.len() as u64;
        Ok(())
    }

    fn has_no_room(&self) -> bool {
        self.current
            .as_ref()
            .is_none_or(|c| c.octets >= self.segment_octets_max)
    }

    /// Begins a file whose name sorts after all other names, even after the clock went back.
    fn rotate(&mut self) -> io::Result<()> {
        let newest = list(&self.dir)?.last().map_or(0, |(at, _)| *at);
        let mut name_time = now_millis().max(newest.saturating_add(1));
        let mut file = loop {
            let path = self.dir.join(format!("trace-{name_time:013}.jsonl"));
            match OpenOptions::new()
                .create_new(true)
                .append(true)
                .mode(0o640)
                .open(path)
            {
                Ok(file) => break file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => name_time += 1,
                Err(error) => return Err(error),
            }
        };
        file.write_all(HEADER)?;
        let octets = HEADER.len() as u64;
        self.current = Some(Current {
            file,
            name_time,
            octets,
            torn: false,
        });
        Ok(())
    }

    /// Deletes the oldest files until the rest fits; never the current one.
    fn trim(&self) -> io::Result<()> {
        let current = self.current.as_ref().map_or(u64::MAX, |c| c.name_time);
        let mut files = Vec::new();
        let mut total = 0u64;
        for (at, path) in list(&self.dir)? {
            let octets = fs::metadata(&path).map_or(0, |m| m.len());
            total = total.saturating_add(octets);
            files.push((at, path, octets));
        }
        for (at, path, octets) in files {
            if total <= self.retained_octets_max || at >= current {
                break;
            }
            fs::remove_file(path)?;
            total = total.saturating_sub(octets);
        }
        Ok(())
    }
}

fn reopen(name_time: u64, path: &Path) -> io::Result<Current> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let octets = file.metadata()?.len();
    let mut last = [b'\n'];
    if octets > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    Ok(Current {
        file,
        name_time,
        octets,
        torn: last != [b'\n'],
    })
}

fn now_millis() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
