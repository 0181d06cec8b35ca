//! Volumes whose accounts were set back.

use std::fs;
use std::path::{Path, PathBuf};

use vere_mailfs::volume::{OpenError, Stranded};
use vere_process::failure::Failure;

use crate::folders;

/// Journals set aside before somebody has to look.
const ASIDE_MAX: usize = 100;

/// Moves a journal away, and makes room for a new one. Returns where the old one is.
pub(crate) fn set_aside(journal: &Path) -> Result<PathBuf, Failure> {
    let aside = free_name(journal)?;
    fs::rename(journal, &aside)?;
    folders::make_private(journal)?;
    Ok(aside)
}

/// A free name for a journal set aside.
pub(crate) fn free_name(journal: &Path) -> Result<PathBuf, Failure> {
    let name = |number: usize| journal.with_extension(format!("set-aside-{number}"));
    let free = (1..=ASIDE_MAX).map(name).find(|path| !path.exists());
    free.ok_or_else(|| {
        Failure::new(format!(
            "{}: expected at most {ASIDE_MAX} journals set aside; found more",
            journal.display()
        ))
    })
}

/// A journal that was set aside: a path, or a name in the state folder.
pub(crate) fn find_aside(state: &Path, given: &Path) -> Result<PathBuf, Failure> {
    let place = [given.to_owned(), state.join(given)];
    let is_segment = |file: fs::DirEntry| {
        let name = file.file_name();
        name.to_string_lossy().starts_with("journal-")
    };
    let has_segment =
        |path: &PathBuf| fs::read_dir(path).is_ok_and(|all| all.flatten().any(is_segment));
    let is_journal = |path: &PathBuf| *path != folders::journal(state) && has_segment(path);
    let found = place.into_iter().find(is_journal);
    found.ok_or_else(|| {
        Failure::new(format!(
            "{}: expected the folder of a journal that was set aside, such as {}; found none",
            given.display(),
            state.join("journal.set-aside-1").display()
        ))
    })
}

/// When a journal may be set aside.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leave {
    /// Where the log lacks commits that this machine has seen, the older state counts.
    pub(crate) accept_rollback: bool,
    /// Commits of the left branch leave the copies on further accounts.
    pub(crate) leaves_branch: bool,
    /// Where no account has the state any more on which changes of the journal lie, the newest state counts.
    pub(crate) journal_aside: bool,
}

/// How the changes of a journal whose base is gone are brought in. None for an opening without need or leave.
pub(crate) fn stranded(leave: Leave, error: Option<&OpenError>) -> Option<Stranded> {
    match error? {
        OpenError::Overtaken if !leave.journal_aside => Some(Stranded::Overtaken),
        OpenError::RolledBack { .. } if leave.accept_rollback && !leave.journal_aside => {
            Some(Stranded::SetBack)
        }
        _ => None,
    }
}

/// The line for people about changes that were brought in.
pub(crate) const fn brought(stranded: Stranded) -> &'static str {
    match stranded {
        Stranded::Overtaken => {
            "this machine was away for longer than the volume keeps versions: its unsent changes were brought onto the newest state; `vere fs status` and the log name the conflicts"
        }
        Stranded::SetBack => {
            "the older state of the accounts counts from now on: the unsent changes of this machine were brought onto it; `vere fs status` and the log name the conflicts"
        }
    }
}

/// What people hear of a journal that is set aside. None for an opening that needs no journal set aside, or has no leave to. `was`
/// is the way of an opening that failed.
pub(crate) fn line_of(
    leave: Leave,
    was: Option<Stranded>,
    error: Option<&OpenError>,
) -> Option<&'static str> {
    match (error?, was) {
        (OpenError::RolledBack { .. } | OpenError::Overtaken, Some(Stranded::SetBack))
        | (OpenError::RolledBack { .. }, None)
            if leave.accept_rollback =>
        {
            Some("the older state of the accounts counts from now on")
        }
        (OpenError::Overtaken, _) if leave.journal_aside => {
            Some("this machine goes on with the newest state of the volume")
        }
        _ => None,
    }
}

/// The reason with the remedy.
pub(crate) fn explained(error: OpenError) -> Failure {
    let remedy = match error {
        OpenError::RolledBack { .. } => {
            ". If the older state is to count, `vere fs check VOLUME --accept-rollback` accepts it and brings the unsent changes of this machine in"
        }
        OpenError::Overtaken => {
            ". This machine was away for longer than the volume keeps versions, with changes that no server had, and its state folder is a copy that another one has gone on from. `vere fs check VOLUME --set-journal-aside` sets the journal with these changes aside, and the volume mounts again"
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
    use super::{Leave, explained, find_aside, line_of, set_aside, stranded};
    use std::fs;
    use std::path::Path;
    use vere_mailfs::volume::{OpenError, Stranded};

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
    fn a_folder_with_segments_is_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        fs::create_dir_all(&journal).unwrap();
        fs::write(journal.join("journal-old"), "x").unwrap();
        set_aside(&journal).unwrap();
        fs::write(journal.join("journal-new"), "x").unwrap();
        assert!(find_aside(folder.path(), Path::new("journal")).is_err());
        assert!(find_aside(folder.path(), Path::new("absent")).is_err());
        fs::create_dir(folder.path().join("cache")).unwrap();
        assert!(find_aside(folder.path(), Path::new("cache")).is_err());
        let given = find_aside(folder.path(), Path::new("journal.set-aside-1")).unwrap();
        assert!(given.join("journal-old").exists());
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
        let has_line = |leave, error| line_of(leave, None, error).is_some();
        assert!(has_line(accepts, Some(&gone)) && has_line(sets_aside, Some(&away)));
        assert!(!has_line(accepts, Some(&away)) && !has_line(sets_aside, Some(&gone)));
        assert!(!has_line(Leave::default(), Some(&away)) && !has_line(sets_aside, None));
        let way = |leave, error| stranded(leave, Some(error));
        assert_eq!(way(Leave::default(), &away), Some(Stranded::Overtaken));
        assert_eq!(way(sets_aside, &away), None);
        assert_eq!(way(Leave::default(), &gone), None);
        assert_eq!(way(accepts, &gone), Some(Stranded::SetBack));
        // The newest state cannot take the changes: the older state counts all the same.
        assert!(line_of(accepts, Some(Stranded::SetBack), Some(&away)).is_some());
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
