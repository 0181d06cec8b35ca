//! Whether files of the system are there.

use std::io;
use std::path::Path;

use crate::failure::Failure;

/// Whether a file of the system is there, for somebody who may read it.
///
/// # Errors
/// When the person who types may not: that is not to be told as absence.
pub fn is_there(path: &Path, settings: &vere_settings::Settings) -> Result<bool, Failure> {
    match std::fs::File::open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(unreadable(path, &error, settings.user.as_deref())),
    }
}

fn unreadable(path: &Path, error: &io::Error, user: Option<&str>) -> Failure {
    let advice = match (error.kind(), user) {
        (io::ErrorKind::PermissionDenied, Some(user)) => {
            format!("; run this as root or as user {user}")
        }
        (io::ErrorKind::PermissionDenied, None) => {
            "; run this as root or as the user that the system runs as".to_owned()
        }
        _ => String::new(),
    };
    Failure::new(format!("cannot read {}: {error}{advice}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_read_is_not_told_that_nothing_is_there() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let said = |user| unreadable(Path::new("/var/lib/vere/x"), &denied, user).to_string();
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
