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
    /// The last backup, if made in this place.
    here: Option<LastBackup>,
}

impl<'a> Last<'a> {
    /// Reads the record. An unreadable record counts as absent: the next backup writes the record again.
    pub(crate) fn read(settings: &'a Settings, place: &'a str) -> Self {
        let last = LastBackup::read(&settings.data).ok().flatten();
        Self {
            place,
            host: &settings.hostname,
            here: last.filter(|last| last.place == place),
        }
    }

    /// Before the place is opened, since opening makes what is missing. A place with older backups is none of these: disks
    /// may take turns at one mount point.
    ///
    /// # Errors
    /// When the last backup was made in this place, and the place is empty.
    pub(crate) fn check_presence(&self) -> Result<(), Failure> {
        match &self.here {
            Some(last) if !Repository::is_there(self.place)? => Err(Failure::new(format!(
                "{}: expected backup {}, which this system made there at {}; found nothing. Is the disk mounted? \
                 --accept-place begins anew",
                self.place, last.number, last.made
            ))),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// When the newest backup is that of another host.
    pub(crate) fn check_host(&self, newest: Option<&Manifest>) -> Result<(), Failure> {
        match newest.filter(|newest| newest.host != self.host) {
            Some(newest) => Err(Failure::new(format!(
                "{}: backup {} there is of {}, and this system is {}; choose a place of its own, or, after a change of \
                 the host name, add --accept-place",
                self.place, newest.number, newest.host, self.host
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
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
        let error = last(&place, 2).check_presence().unwrap_err().to_string();
        assert!(
            error.contains("expected backup 2") && error.contains("mounted"),
            "{error}"
        );
        assert!(!root.exists());
        let never = Last {
            here: None,
            ..last(&place, 2)
        };
        never.check_presence().unwrap();
        drop(open(&root, Use::Writing).unwrap());
        last(&place, 2).check_presence().unwrap();
    }

    #[test]
    fn a_place_of_another_host_is_refused() {
        let mut manifest = small(1, "00");
        manifest.host = "other.example.org".to_owned();
        let error = last("place", 1)
            .check_host(Some(&manifest))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("of other.example.org, and this system is mx.example.org"),
            "{error}"
        );
        manifest.host = "mx.example.org".to_owned();
        last("place", 1).check_host(Some(&manifest)).unwrap();
    }
}
