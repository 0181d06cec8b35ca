//! Segments that a crash has left unfinished are completed, before anything new is written.
//!
//! An end that is no whole entry was acknowledged to nobody. It is cut all the same only after it was copied to a file
//! `HHMM.cut`, in case that the disk has damaged the last entry.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use vere_checksum::crc32;
use vere_units::Timestamp;

use super::disk::create;
use crate::error::{OpenError, ReadError};
use crate::format::{FILE_HEAD_OCTETS, FileHead, FileKind, Record, Summary};
use crate::name::{Day, SegmentName};
use crate::read::{Issue, Row, Segment, days, segments};
use crate::stable::sync_folder;

/// Days, counted from the newest, in which a crash may have left segments: a minute before midnight belongs to the day
/// before. Readers need no repair; segments of other days stay as they are.
const DAYS: usize = 2;
/// Time between two signs of life.
const PULSE: Duration = Duration::from_secs(1);

/// Completes the segments of the newest days, and of the day of the clock. A segment that cannot be completed, as on a
/// full disk, stays as it is: readers need no repair, and new entries go into new segments. `alive` is called about once a
/// second.
pub(crate) fn repair(folder: &Path, now: Timestamp, alive: fn()) -> Result<(), OpenError> {
    let mut pulse = Pulse::new(alive);
    let mut all = days(folder).map_err(opening)?;
    let today = Day::of(now);
    let newest = all.split_off(all.len().saturating_sub(DAYS));
    let own = all.into_iter().filter(|day| *day == today);
    let chosen: Vec<Day> = own.chain(newest).collect();
    for day in chosen {
        for name in segments(folder, day).map_err(opening)? {
            let Ok(segment) = Segment::open(folder, name).map_err(opening)? else {
                tracing::error!(segment = %name, "segment of the archive missing, index present");
                continue;
            };
            pulse.beat();
            if let Err(error) = complete(folder, name, segment, &mut pulse) {
                let _ = fs::remove_file(name.path(folder, "new"));
                tracing::warn!(segment = %name, %error, "unfinished segment of the archive cannot be completed");
            }
        }
    }
    Ok(())
}

fn opening(error: ReadError) -> OpenError {
    match error {
        ReadError::System { path, source } => OpenError::System { path, source },
        other => OpenError::System {
            path: Path::new("").to_owned(),
            source: io::Error::other(other.to_string()),
        },
    }
}

/// Signs of life, not more than are needed.
struct Pulse {
    alive: fn(),
    last: Instant,
}

impl Pulse {
    fn new(alive: fn()) -> Self {
        alive();
        let last = Instant::now();
        Self { alive, last }
    }

    fn beat(&mut self) {
        if self.last.elapsed() >= PULSE {
            *self = Self::new(self.alive);
        }
    }
}

fn complete(
    folder: &Path,
    name: SegmentName,
    segment: Segment<File>,
    pulse: &mut Pulse,
) -> io::Result<()> {
    if segment.summary()?.is_some() {
        return Ok(());
    }
    let length = segment.length();
    let (end, summary) = rebuild(folder, name, &segment, pulse)?;
    drop(segment);
    let day = folder.join(name.day().to_string());
    if summary.entries == 0 {
        return set_aside(folder, name, length).and_then(|()| sync_folder(&day));
    }
    if end < length {
        cut(folder, name, end, length)?;
    }
    fs::rename(name.path(folder, "new"), name.path(folder, "idx"))?;
    sync_folder(&day)?;
    let cut = length.saturating_sub(end);
    tracing::warn!(segment = %name, entries = summary.entries, cut, "unfinished segment of the archive completed");
    Ok(())
}

/// Writes a new index beside the old one. Returns the end of the segment's entries.
fn rebuild(
    folder: &Path,
    name: SegmentName,
    segment: &Segment<File>,
    pulse: &mut Pulse,
) -> io::Result<(u64, Summary)> {
    let mut tell = |issue: Issue| {
        if issue.is_damage() {
            tracing::warn!(segment = %name, %issue, "segment of the archive");
        }
    };
    let path = name.path(folder, "new");
    // A leftover of a repair that was cut off.
    if let Err(error) = fs::remove_file(&path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut index = Index {
        pulse,
        file: BufWriter::new(create(&path)?),
        summary: Summary::default(),
        failed: None,
    };
    let head = FileHead {
        nonce: segment.nonce()?.unwrap_or_default(),
        start: name.start(),
    };
    index.file.write_all(&head.encode(FileKind::Index))?;
    let ends = segment.walk_index(&mut tell, &mut |row| index.add(row))?;
    let scan = segment.scan(ends, &mut tell)?.with_sums();
    let end = scan.walk_to_end(&mut tell, &mut |row| index.add(row))?;
    if let Some(error) = index.failed {
        return Err(error);
    }
    index.file.write_all(&index.summary.trailer(end))?;
    let file = index
        .file
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok((end, index.summary))
}

struct Index<'a> {
    pulse: &'a mut Pulse,
    file: BufWriter<File>,
    summary: Summary,
    failed: Option<io::Error>,
}

impl Index<'_> {
    fn add(&mut self, row: &Row<'_>) -> ControlFlow<()> {
        self.pulse.beat();
        // A damaged entry at the end is cut, and is no entry.
        if !row.is_sound {
            return ControlFlow::Continue(());
        }
        let record = Record::Entry {
            offset: row.offset,
            octets: row.octets,
            meta: u32::try_from(row.meta.len()).unwrap_or(u32::MAX),
            sum: crc32(row.meta),
        };
        self.summary.add(row.fields.at, row.octets);
        let written = self.file.write_all(&record.encode());
        match written.and_then(|()| self.file.write_all(row.meta)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Cuts the end that is no whole entry, after it was copied.
fn cut(folder: &Path, name: SegmentName, end: u64, length: u64) -> io::Result<()> {
    let mut segment = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.path(folder, "seg"))?;
    segment.seek(SeekFrom::Start(end))?;
    let mut copy = BufWriter::new(aside(folder, name)?);
    io::copy(
        &mut (&mut segment).take(length.saturating_sub(end)),
        &mut copy,
    )?;
    copy.into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()?;
    segment.set_len(end)?;
    segment.sync_all()
}

/// A segment without an entry: nothing was ever acknowledged, or nothing can be read any more.
fn set_aside(folder: &Path, name: SegmentName, length: u64) -> io::Result<()> {
    for extension in ["new", "idx"] {
        match fs::remove_file(name.path(folder, extension)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let path = name.path(folder, "seg");
    if length <= FILE_HEAD_OCTETS {
        return fs::remove_file(path);
    }
    tracing::warn!(segment = %name, length, "segment of the archive without a whole entry set aside");
    drop(aside(folder, name)?);
    fs::rename(path, name.path(folder, "cut"))
}

/// Makes the file for octets that no reader reads.
fn aside(folder: &Path, name: SegmentName) -> io::Result<File> {
    let path = name.path(folder, "cut");
    match create(&path) {
        // Octets of an earlier repair that was cut off before it had cut the segment: the same octets.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().write(true).truncate(true).open(&path)
        }
        other => other,
    }
}
