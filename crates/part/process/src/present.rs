//! Checks whether files of the system exist.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The operator cannot read a file of the system, so nobody knows whether the file is usable.
#[derive(Debug)]
pub struct PresenceError {
    /// The file.
    pub path: PathBuf,
    /// The error of the system.
    pub source: io::Error,
    /// The setting `user`: the user that roles run as.
    pub user: Option<String>,
}

impl fmt::Display for PresenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {}: {}", self.path.display(), self.source)?;
        match (self.source.kind(), &self.user) {
            (io::ErrorKind::PermissionDenied, Some(user)) => {
                write!(f, "; run this as root or as user {user}")
            }
            (io::ErrorKind::PermissionDenied, None) => {
                f.write_str("; run this as root or as the user that the system runs as")
            }
            _ => Ok(()),
        }
    }
}

impl Error for PresenceError {
    /// The display holds the text of the direct cause already; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

/// Whether a file of the system exists, for an operator with read permission.
///
/// # Errors
/// When the operator cannot read the file, which must not pass for absence.
pub fn is_there(path: &Path, settings: &vere_settings::Settings) -> Result<bool, PresenceError> {
    match std::fs::File::open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(PresenceError {
            path: path.to_owned(),
            source,
            user: settings.user.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_read_is_not_told_that_nothing_is_there() {
        let said = |user: Option<&str>| {
            let error = PresenceError {
                path: "/var/lib/vere/x".into(),
                source: io::ErrorKind::PermissionDenied.into(),
                user: user.map(str::to_owned),
            };
            error.to_string()
        };
        let text = said(Some("vere"));
        assert!(text.contains("/var/lib/vere/x: "), "{text}");
        assert!(text.ends_with("run this as root or as user vere"), "{text}");
        assert!(said(None).contains("root"));
        let settings = "version = 1\nhostname = \"a.b\"\n";
        let settings = vere_settings::Settings::parse(settings, "/f").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(matches!(is_there(&path, &settings), Ok(false)));
        std::fs::write(&path, "").unwrap();
        assert!(matches!(is_there(&path, &settings), Ok(true)));
        // A file in place of a folder is another trouble than absence.
        is_there(&path.join("below"), &settings).unwrap_err();
    }
}
