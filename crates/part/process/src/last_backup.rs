//! The record of the last good backup, in the data directory: `vere backup` writes the record, `vere status` and the
//! mail store's metrics read it.
//!
//! ```text
//! "vere-last-backup 1" LF milliseconds since 1970 LF number LF place LF
//! ```

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use vere_net::aside::write_private;
use vere_units::Timestamp;

use super::owner::Owner;

/// The name below the data directory.
pub const FILE_NAME: &str = "last-backup";
const HEAD: &str = "vere-last-backup 1";
/// Octets of a record that are read.
const OCTETS_MAX: u64 = 8 * 1024;

/// A finished backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastBackup {
    /// The time as of which the backup has the mail.
    pub made: Timestamp,
    /// The number within the place.
    pub number: u64,
    /// The place, as the operator named it.
    pub place: String,
}

impl LastBackup {
    /// Writes the record, whole or not at all. Root gives the file to the owner of the directory.
    ///
    /// # Errors
    /// When the file cannot be written; an earlier record stays.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        let place = self.place.replace(['\n', '\r'], " ");
        let made = self.made.as_millis();
        let text = format!("{HEAD}\n{made}\n{}\n{place}\n", self.number);
        let path = data.join(FILE_NAME);
        Owner::of(data)?.act(|| fs::rename(write_private(&path, text.as_bytes())?, &path))
    }

    /// Reads the record; `None` for a system without any backup.
    ///
    /// # Errors
    /// When the file cannot be read, or is no record.
    pub fn read(data: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(data.join(FILE_NAME)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut text = String::new();
        file.take(OCTETS_MAX).read_to_string(&mut text)?;
        let record = parse(&text);
        record.map(Some).ok_or_else(|| {
            let expected = format!("{FILE_NAME}: expected a record of the last backup");
            io::Error::new(ErrorKind::InvalidData, expected)
        })
    }
}

fn parse(text: &str) -> Option<LastBackup> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    let mut next = || lines.next();
    if next()? != HEAD {
        return None;
    }
    let made = Timestamp::from_millis(next()?.parse().ok()?);
    let number = next()?.parse().ok()?;
    let place = next()?.to_owned();
    Some(LastBackup {
        made,
        number,
        place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_damage_is_no_record() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(LastBackup::read(data.path()).unwrap(), None);
        let record = LastBackup {
            made: Timestamp::from_millis(1_700_000_000_123),
            number: 7,
            place: "s3://bucket/a b".to_owned(),
        };
        record.write(data.path()).unwrap();
        assert_eq!(LastBackup::read(data.path()).unwrap(), Some(record));
        let path = data.path().join(FILE_NAME);
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            LastBackup::read(data.path()).unwrap_err();
        }
    }
}
