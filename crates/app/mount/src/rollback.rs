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

/// When a journal may be set aside.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leave {
    /// Where the log lacks commits that this machine has seen, the older state counts.
    pub(crate) accept_rollback: bool,
    /// Where no account has the state any more on which changes of the journal lie, the newest state counts.
    pub(crate) journal_aside: bool,
}

/// What people hear of a journal that is set aside. None for an opening that needs no journal set aside, or has no leave to.
pub(crate) fn line_of(leave: Leave, error: Option<&OpenError>) -> Option<&'static str> {
    match error? {
        OpenError::RolledBack { .. } if leave.accept_rollback => {
            Some("the older state of the accounts counts from now on")
        }
        OpenError::Overtaken if leave.journal_aside => {
            Some("this machine goes on with the newest state of the volume")
        }
        _ => None,
    }
}

/// The reason with the remedy.
pub(crate) fn explained(error: OpenError) -> Failure {
    let remedy = match error {
        OpenError::RolledBack { .. } => {
            ". If the older state is to count, `vere fs check VOLUME --accept-rollback` accepts it and sets the journal of this machine aside"
        }
        OpenError::Overtaken => {
            ". This machine was away for longer than the volume keeps versions, with changes that no server had. `vere fs check VOLUME --set-journal-aside` sets the journal with these changes aside, and the volume mounts again"
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
    use super::{Leave, explained, line_of, set_aside};
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
    fn a_journal_stays_without_leave() {
        let (gone, away) = (
            OpenError::RolledBack { generation: 7 },
            OpenError::Overtaken,
        );
        let accepts = Leave {
            accept_rollback: true,
            ..Leave::default()
        };
        let sets_aside = Leave {
            journal_aside: true,
            ..Leave::default()
        };
        let has_line = |leave, error| line_of(leave, error).is_some();
        assert!(has_line(accepts, Some(&gone)) && has_line(sets_aside, Some(&away)));
        assert!(!has_line(accepts, Some(&away)) && !has_line(sets_aside, Some(&gone)));
        assert!(!has_line(Leave::default(), Some(&away)) && !has_line(sets_aside, None));
        let text = explained(away).to_string();
        assert!(text.contains("--set-journal-aside"), "{text}");
    }

    #[test]
    fn a_rollback_has_a_remedy() {
        let text = explained(OpenError::RolledBack { generation: 7 }).to_string();
        assert!(text.contains("generation 7"), "{text}");
        assert!(text.contains("--accept-rollback"), "{text}");
    }
}
