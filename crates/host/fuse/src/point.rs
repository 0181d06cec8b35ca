//! The folder to mount at, and the table of mounts. A stat of a mount point may wait for the engine behind a mount, so the
//! table comes first.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;

use crate::error::MountError;

/// Time for a look at a silent mount.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// A line of the table of mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// The mount point.
    pub point: PathBuf,
    /// The minor number of the device: the number of the connection below `/sys/fs/fuse/connections`.
    pub minor: u32,
    /// The type, such as `fuse.vere`.
    pub kind: String,
    /// The source.
    pub source: String,
}

impl Mounted {
    pub(crate) fn is_fuse(&self) -> bool {
        self.kind == "fuse" || self.kind.starts_with("fuse.")
    }
}

/// The uppermost mount at a folder.
///
/// # Errors
/// When the table of mounts cannot be read.
pub fn mounted_at(point: &Path) -> io::Result<Option<Mounted>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table
        .split(|octet| *octet == b'\n')
        .filter_map(line)
        .rfind(|mounted| mounted.point == point))
}

/// A line: number, parent, major:minor, root, mount point, options, tags up to `-`, type, source, options.
fn line(line: &[u8]) -> Option<Mounted> {
    let mut words = line.split(|octet| *octet == b' ');
    let device = text(words.nth(2)?);
    let point = unescape(words.nth(1)?);
    words.find(|word| *word == b"-")?;
    let kind = text(words.next()?);
    let source = text(&unescape(words.next()?));
    Some(Mounted {
        point: PathBuf::from(OsString::from_vec(point)),
        minor: device.split_once(':')?.1.parse().ok()?,
        kind,
        source,
    })
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// The table writes blank, TAB, LF and backslash as a backslash and three octal digits.
fn unescape(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
            .filter(|_| *first == b'\\');
        match digits {
            Some(octet) => {
                plain.push(octet);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

/// The absolute path of a mount point, found without a look at the mount itself.
pub(crate) fn absolute(point: &Path) -> io::Result<PathBuf> {
    let whole = std::path::absolute(point)?;
    match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        _ => whole.canonicalize(),
    }
}

/// Checks a folder before a mount, and gives the absolute path.
pub(crate) fn check(point: &Path) -> Result<PathBuf, MountError> {
    let whole = match absolute(point) {
        Ok(whole) => whole,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(MountError::PointAbsent(point.into()));
        }
        Err(error) => return Err(look_error(point, error)),
    };
    let table =
        mounted_at(&whole).map_err(|error| MountError::system("/proc/self/mountinfo", error))?;
    if let Some(mounted) = table.filter(Mounted::is_fuse) {
        return Err(in_use(&whole, mounted));
    }
    let whole = whole
        .canonicalize()
        .map_err(|error| look_error(point, error))?;
    let facts = fs::metadata(&whole).map_err(|error| look_error(point, error))?;
    if !facts.is_dir() {
        return Err(MountError::PointNoFolder(point.into()));
    }
    let mut entries = fs::read_dir(&whole).map_err(|error| look_error(point, error))?;
    match entries.next() {
        None => Ok(whole),
        Some(Ok(entry)) => Err(MountError::PointFull(
            point.into(),
            entry.file_name().to_string_lossy().into_owned(),
        )),
        Some(Err(error)) => Err(look_error(point, error)),
    }
}

fn look_error(point: &Path, error: io::Error) -> MountError {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::NotFound, _) => MountError::PointAbsent(point.into()),
        (io::ErrorKind::NotADirectory, _) => MountError::PointNoFolder(point.into()),
        (_, Some(code)) if code == Errno::ENOTCONN as i32 => MountError::PointStale(point.into()),
        _ => MountError::system(point.display().to_string(), error),
    }
}

/// A mount in the way: does its process live? The look runs in a separate thread.
fn in_use(point: &Path, mounted: Mounted) -> MountError {
    if is_dead(point) {
        MountError::PointStale(point.into())
    } else {
        MountError::PointBusy(point.into(), mounted.source)
    }
}

/// Whether the process behind a mount has ended.
pub(crate) fn is_dead(point: &Path) -> bool {
    let (found, answer) = mpsc::channel();
    let looked_at = point.to_path_buf();
    let look = thread::Builder::new()
        .name("fuse-look".into())
        .spawn(move || {
            let errno = fs::metadata(looked_at)
                .err()
                .and_then(|error| error.raw_os_error());
            // The asker may have gone on.
            let _late = found.send(errno);
        });
    look.is_ok()
        && matches!(
            answer.recv_timeout(LOOK_TIMEOUT),
            Ok(Some(code)) if code == Errno::ENOTCONN as i32
        )
}

#[cfg(test)]
mod tests {
    use super::{line, unescape};
    use std::path::Path;

    #[test]
    fn lines_of_the_table() {
        let mounted = line(b"36 35 0:52 / /mnt/a\\040b rw,noatime shared:1 master:2 - fuse.vere home\\134x rw,user_id=0").unwrap();
        assert_eq!(mounted.point, Path::new("/mnt/a b"));
        assert_eq!(
            (
                mounted.minor,
                mounted.kind.as_str(),
                mounted.source.as_str()
            ),
            (52, "fuse.vere", "home\\x")
        );
        assert_eq!(line(b"36 35 0:52 / /mnt rw"), None);
        assert_eq!(line(b""), None);
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape(b"a\\040b\\"), b"a b\\");
        assert_eq!(unescape(b"\\999\\01"), b"\\999\\01");
    }
}
