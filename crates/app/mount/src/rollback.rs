//! Volumes whose accounts were set back.

use std::fs;
use std::path::{Path, PathBuf};

use vere_mailfs::volume::OpenError;
use vere_process::failure::Failure;

use crate::folders;

/// Journals set aside before somebody has to look.
const ASIDE_MAX: usize = 100;

/// Moves a journal away, and makes room for a new one. Returns where the old one is.
pub(crate) fn set_aside(journal: &Path) -> Result<PathBuf, Failure> {
    let name = |number: usize| journal.with_extension(format!("set-aside-{number}"));
    let free = (1..=ASIDE_MAX).map(name).find(|path| !path.exists());
    let aside = free.ok_or_else(|| {
        Failure::new(format!(
            "{}: expected at most {ASIDE_MAX} journals set aside; found more",
            journal.display()
        ))
    })?;
    fs::rename(journal, &aside)?;
    folders::make_private(journal)?;
    Ok(aside)
}

/// The reason with the remedy.
pub(crate) fn explained(error: OpenError) -> Failure {
    let remedy = match error {
        OpenError::RolledBack { .. } => {
            ". If the older state is to count, `vere fs check VOLUME --accept-rollback` accepts it and sets the journal of this machine aside"
        }
        OpenError::NoVolume(_) => {
            ". `vere fs rebuild VOLUME --salvage` saves the content of files into lost+found"
        }
        _ => "",
    };
    Failure::new(format!("{}{remedy}", Failure::from(error)))
}

#[cfg(test)]
mod tests {
    use super::{explained, set_aside};
    use std::fs;
    use vere_mailfs::volume::OpenError;

    #[test]
    fn a_journal_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        for number in 1..=2 {
            fs::create_dir_all(&journal).unwrap();
            fs::write(journal.join("segment"), "x").unwrap();
            let aside = set_aside(&journal).unwrap();
            assert!(aside.ends_with(format!("journal.set-aside-{number}")));
            assert!(aside.join("segment").exists());
            assert_eq!(fs::read_dir(&journal).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_rollback_has_a_remedy() {
        let text = explained(OpenError::RolledBack { generation: 7 }).to_string();
        assert!(text.contains("generation 7"), "{text}");
        assert!(text.contains("--accept-rollback"), "{text}");
    }
}
