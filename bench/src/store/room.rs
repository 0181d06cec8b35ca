//! The parts of our store's disk use.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Files of the log with reserved space only.
const SPARE: &str = "spare-";
/// How a segment of the log is named.
const SEGMENT: &str = ".log";
/// Octets of a read.
const PIECE: u64 = 1024 * 1024;

/// Octets of reserved blocks of a store's log: space kept for a full disk, and the rest of the current segment.
pub(super) fn ahead(log: &Path) -> io::Result<u64> {
    let mut octets = 0;
    let mut newest = None;
    for entry in fs::read_dir(log)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(SPARE) {
            octets += entry.metadata()?.blocks() * 512;
        } else if name.ends_with(SEGMENT) {
            newest = newest.max(Some(name));
        }
    }
    let Some(newest) = newest else {
        return Ok(octets);
    };
    let file = File::open(log.join(newest))?;
    let allocated = file.metadata()?.blocks() * 512;
    Ok(octets + allocated.saturating_sub(written(&file)?))
}

/// Octets of a file up to the last octet other than zero.
fn written(file: &File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut piece = vec![0; PIECE as usize];
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        let piece = &mut piece[..(end - start) as usize];
        file.read_exact_at(piece, start)?;
        if let Some(last) = piece.iter().rposition(|octet| *octet != 0) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_to_is_room() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ahead(folder.path()).unwrap(), 0);
        let write = |name: &str, octets: &[u8]| fs::write(folder.path().join(name), octets);
        let mut newest = vec![0; 3 * PIECE as usize];
        newest[PIECE as usize] = 1;
        write("0000000000000040.log", &[7; 9_000]).unwrap();
        write("0000000000009040.log", &newest).unwrap();
        let file = File::open(folder.path().join("0000000000009040.log")).unwrap();
        assert_eq!(written(&file).unwrap(), PIECE + 1);
        let room = ahead(folder.path()).unwrap();
        write("spare-1", &[1; 100_000]).unwrap();
        let spare = folder.path().join("spare-1").metadata().unwrap().blocks() * 512;
        assert_eq!(ahead(folder.path()).unwrap(), room + spare);
    }
}
