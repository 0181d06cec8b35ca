//! What changed between versions so that an administrator has to decide.

use std::fmt;
use std::path::{Path, PathBuf};

use vere_settings::Settings;

/// There are Maildirs, and the settings do not say where mail for own accounts goes: it went there, and
/// now goes to the mail store. Whoever reads the Maildirs would see nothing new.
#[derive(Debug)]
pub struct Unsaid {
    /// Where they lie.
    folder: PathBuf,
}

impl fmt::Display for Unsaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        write!(
            f,
            "there are Maildirs in {folder}, and mail for own accounts goes to the mail store now unless \
             delivery.local says otherwise: set it to \"maildir\" to go on as before, or to \"store\" and \
             take over what is there with vere import -a ACCOUNT maildir:FOLDER"
        )
    }
}

/// Looks for Maildirs that mail was filed into without being told to.
///
/// # Errors
/// [`Unsaid`].
pub fn look(settings: &Settings) -> Result<(), Unsaid> {
    if settings.delivery.local_is_said {
        return Ok(());
    }
    let folder = above_accounts(Path::new(&settings.delivery.maildir));
    let any = folder
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_some());
    if any { Err(Unsaid { folder }) } else { Ok(()) }
}

/// The part of the template that is the same for all accounts.
fn above_accounts(template: &Path) -> PathBuf {
    let parts = template.components();
    parts
        .take_while(|part| !part.as_os_str().to_string_lossy().contains('{'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &Path, more: &str) -> Settings {
        let text = format!("version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n{more}");
        let file = folder.join("vere.toml");
        Settings::parse(&text, &file.to_string_lossy()).unwrap()
    }

    #[test]
    fn maildirs_that_nothing_names_are_found() {
        let folder = tempfile::tempdir().unwrap();
        assert!(look(&settings(folder.path(), "")).is_ok());
        let one = folder.path().join("data/maildir/example.org/alice/new");
        std::fs::create_dir_all(one).unwrap();
        let unsaid = look(&settings(folder.path(), "")).unwrap_err().to_string();
        assert!(unsaid.contains("data/maildir, and mail"), "{unsaid}");
        for said in ["maildir", "store"] {
            let said = format!("[delivery]\nlocal = \"{said}\"\n");
            assert!(look(&settings(folder.path(), &said)).is_ok());
        }
    }
}
