//! Whether a place is the one of this system. A disk that is not mounted would have the backup on the disk below, and in
//! the place of another system `vere backup prune` would remove the backups of both.

use vere_process::failure::Failure;
use vere_process::last_backup::LastBackup;
use vere_settings::Settings;

use crate::manifest::Manifest;
use crate::repository::Repository;

/// The last backup of this system.
#[derive(Debug)]
pub(crate) struct Last<'a> {
    place: &'a str,
    host: &'a str,
    /// The last backup, if it is in this place.
    here: Option<LastBackup>,
}

impl<'a> Last<'a> {
    /// Reads the record. A record that cannot be read is none: the next backup writes another.
    pub(crate) fn read(settings: &'a Settings, place: &'a str) -> Self {
        let last = LastBackup::read(&settings.data).ok().flatten();
        Self {
            place,
            host: &settings.hostname,
            here: last.filter(|last| last.place == place),
        }
    }

    /// Before the place is opened, since opening makes what is missing.
    ///
    /// # Errors
    /// When the last backup is in this place, and nothing is there.
    pub(crate) fn check_identity(&self) -> Result<(), Failure> {
        match &self.here {
            Some(last) if !Repository::is_there(self.place)? => Err(self.gone(last, "nothing")),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// When the last backup of this system is missing among the backups, or the newest is that of another host.
    pub(crate) fn check(&self, numbers: &[u64], newest: Option<&Manifest>) -> Result<(), Failure> {
        let highest = numbers.last().copied().unwrap_or(0);
        if let Some(last) = self.here.as_ref().filter(|last| last.number > highest) {
            return Err(self.gone(last, "older ones"));
        }
        match newest.filter(|newest| newest.host != self.host) {
            Some(newest) => Err(Failure::new(format!(
                "{}: backup {} there is of {}, and this system is {}; choose a place of its own, or, after a change of \
                 the host name, add --accept-place",
                self.place, newest.number, newest.host, self.host
            ))),
            None => Ok(()),
        }
    }

    fn gone(&self, last: &LastBackup, found: &str) -> Failure {
        Failure::new(format!(
            "{}: expected backup {}, which this system made there at {}; found {found}. Is the disk mounted? \
             --accept-place begins anew",
            self.place, last.number, last.made
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use vere_units::Timestamp;

    use super::*;
    use crate::place::Use;
    use crate::repository::tests::{open, small};

    fn last<'a>(place: &'a str, number: u64) -> Last<'a> {
        let here = LastBackup {
            made: Timestamp::from_millis(0),
            number,
            place: place.to_owned(),
        };
        Last {
            place,
            host: "mx.example.org",
            here: Some(here),
        }
    }

    #[test]
    fn a_place_that_lost_the_last_backup_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("place");
        let place = root.display().to_string();
        let error = last(&place, 2).check_identity().unwrap_err().to_string();
        assert!(
            error.contains("expected backup 2") && error.contains("mounted"),
            "{error}"
        );
        assert!(!root.exists());
        let never = Last {
            here: None,
            ..last(&place, 2)
        };
        never.check_identity().unwrap();

        drop(open(&root, Use::Writing).unwrap());
        last(&place, 2).check_identity().unwrap();
        let error = last(&place, 2).check(&[1], None).unwrap_err().to_string();
        assert!(error.contains("found older ones"), "{error}");
        last(&place, 2).check(&[1, 2], None).unwrap();
        last(&place, 2).check(&[3], None).unwrap();
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_place_of_another_host_is_refused() {
        let mut manifest = small(1, "00");
        manifest.host = "other.example.org".to_owned();
        let error = last("place", 1)
            .check(&[1], Some(&manifest))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("of other.example.org, and this system is mx.example.org"),
            "{error}"
        );
        manifest.host = "mx.example.org".to_owned();
        last("place", 1).check(&[1], Some(&manifest)).unwrap();
    }
}
