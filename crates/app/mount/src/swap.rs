//! The change of places of two journals. A kill at any step leaves the present journal in place, or a state from which a repeated
//! command goes on:
//!
//! ```text
//! 1 mark      GIVEN gets a mark with the folder's own path: the folder with the mark is to be brought in
//! 2 exchange  GIVEN and the present journal change names, in one step of the file system
//! 3 settle    the journal that was present gets a name among those that are set aside
//! 4 end       the volume was opened with the changes, and the mark goes
//! ```
//!
//! A file system without an exchange has the names changed in turn. A kill between leaves no journal at the name of the present
//! journal, of which the servers have everything; the command goes on when repeated, with a new number of a writer.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf, absolute};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use vere_process::failure::Failure;

use crate::folders;
use crate::rollback::free_name;

/// The mark.
const MARK: &str = "bring-in";

/// Puts a journal in the place of the present journal. The servers have the present journal whole. Returns the new place of the
/// present journal.
pub(crate) fn swap(journal: &Path, given: &Path) -> Result<PathBuf, Failure> {
    mark(given)?;
    if let Err(error) = exchange(journal, given) {
        end(given)?;
        return Err(Failure::new(format!(
            "{}: expected a folder that can take the place of {}; found {error}",
            given.display(),
            journal.display()
        )));
    }
    Ok(settle(journal, given)?.unwrap_or_else(|| given.to_owned()))
}

/// Whether a run before has put the given journal in place of the present journal, and was broken off. Returns where the given
/// journal was.
pub(crate) fn begun(journal: &Path, state: &Path, given: &Path) -> io::Result<Option<PathBuf>> {
    let marked = match fs::read(journal.join(MARK)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => PathBuf::from(OsStr::from_bytes(&read?)),
    };
    let is_given = [absolute(given)?, absolute(state.join(given))?].contains(&marked);
    Ok(is_given.then_some(marked))
}

fn mark(given: &Path) -> Result<(), Failure> {
    let path = absolute(given)?;
    folders::replace_private(&given.join(MARK), path.as_os_str().as_bytes())
}

fn exchange(journal: &Path, given: &Path) -> io::Result<()> {
    match renameat2(
        AT_FDCWD,
        journal,
        AT_FDCWD,
        given,
        RenameFlags::RENAME_EXCHANGE,
    ) {
        Err(Errno::EINVAL | Errno::ENOSYS) => one_by_one(journal, given)?,
        exchanged => exchanged?,
    }
    sync_names(journal)?;
    sync_names(given)
}

/// As an exchange, on a file system without exchanges.
fn one_by_one(journal: &Path, given: &Path) -> io::Result<()> {
    let aside = free_name(journal).map_err(|failure| io::Error::other(failure.to_string()))?;
    fs::rename(journal, &aside)?;
    if let Err(error) = fs::rename(given, journal) {
        fs::rename(&aside, journal)?;
        return Err(error);
    }
    fs::rename(&aside, given)
}

/// Gives the formerly present journal a separate name, and returns the name. `None` after an earlier run to here.
pub(crate) fn settle(journal: &Path, given: &Path) -> Result<Option<PathBuf>, Failure> {
    if !given.exists() {
        return Ok(None);
    }
    let aside = free_name(journal)?;
    fs::rename(given, &aside)?;
    sync_names(given)?;
    sync_names(&aside)?;
    Ok(Some(aside))
}

/// The changes of a journal are brought in.
pub(crate) fn end(journal: &Path) -> Result<(), Failure> {
    match fs::remove_file(journal.join(MARK)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Names of the folder above survive a loss of power.
fn sync_names(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    File::open(above.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollback::find_aside;

    const GIVEN: &str = "journal.set-aside-1";

    /// The steps before a kill, on the present and the given journal.
    type Steps = Box<dyn Fn(&Path, &Path)>;

    /// A state folder with a present journal and a journal set aside.
    fn state() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (journal, given) = (folder.path().join("journal"), folder.path().join(GIVEN));
        for (path, name) in [(&journal, "journal-new"), (&given, "journal-old")] {
            fs::create_dir(path).unwrap();
            fs::write(path.join(name), "x").unwrap();
        }
        (folder, journal, given)
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The command after a kill, up to the end of the change.
    fn again(state: &Path, journal: &Path) -> Option<PathBuf> {
        match begun(journal, state, Path::new(GIVEN)).unwrap() {
            Some(given) => settle(journal, &given).unwrap(),
            None => {
                let given = find_aside(state, Path::new(GIVEN)).unwrap();
                Some(swap(journal, &given).unwrap())
            }
        }
    }

    #[test]
    fn journals_change_places() {
        let (folder, journal, given) = state();
        let found = find_aside(folder.path(), Path::new(GIVEN)).unwrap();
        let aside = swap(&journal, &found).unwrap();
        assert!(journal.join("journal-old").exists() && aside.join("journal-new").exists());
        assert!(aside.ends_with("journal.set-aside-2") && !given.exists());
        // A journal without a way to move leaves the present journal in place.
        assert!(swap(&journal, &folder.path().join("absent")).is_err());
        assert!(journal.join("journal-old").exists());
        assert_eq!(
            begun(&journal, folder.path(), Path::new(GIVEN)).unwrap(),
            Some(given)
        );
        end(&journal).unwrap();
        assert_eq!(
            begun(&journal, folder.path(), Path::new(GIVEN)).unwrap(),
            None
        );
        assert_eq!(names(&journal), ["journal-old"]);
        assert_eq!(names(folder.path()), ["journal", "journal.set-aside-2"]);
    }

    /// Each step is the last before a kill.
    #[test]
    fn a_kill_at_any_step_leaves_a_state_that_goes_on() {
        let one_by_one = |to: usize| {
            move |journal: &Path, given: &Path| {
                mark(given).unwrap();
                let aside = free_name(journal).unwrap();
                let moves = [(journal, &*aside), (given, journal), (&*aside, given)];
                for (from, to) in moves.into_iter().take(to) {
                    fs::rename(from, to).unwrap();
                }
            }
        };
        let kills: [(&str, Steps); 8] = [
            ("nothing", Box::new(|_, _| {})),
            ("mark", Box::new(|_, given| mark(given).unwrap())),
            (
                "exchange",
                Box::new(|journal, given| {
                    mark(given).unwrap();
                    exchange(journal, given).unwrap();
                }),
            ),
            (
                "settle",
                Box::new(|journal, given| {
                    swap(journal, given).unwrap();
                }),
            ),
            ("first name", Box::new(one_by_one(1))),
            ("second name", Box::new(one_by_one(2))),
            ("third name", Box::new(one_by_one(3))),
            (
                "third name by itself",
                Box::new(|journal, given| {
                    mark(given).unwrap();
                    super::one_by_one(journal, given).unwrap();
                }),
            ),
        ];
        for (step, kill) in kills {
            let (folder, journal, given) = state();
            kill(&journal, &given);
            if !journal.exists() {
                // As an opening of the volume does.
                folders::make_private(&journal).unwrap();
            }
            let has_given = begun(&journal, folder.path(), Path::new(GIVEN)).unwrap();
            assert_eq!(
                has_given.is_some(),
                journal.join("journal-old").exists(),
                "{step}"
            );
            again(folder.path(), &journal);
            assert_eq!(names(&journal), [MARK, "journal-old"], "{step}");
            assert!(!given.exists(), "{step}");
            // The journal that was present is there, once.
            let all = names(folder.path()).into_iter();
            let aside = all.filter(|name| folder.path().join(name).join("journal-new").exists());
            assert_eq!(aside.count(), 1, "{step}");
            // Once more, after a kill during the opening.
            again(folder.path(), &journal);
            assert_eq!(names(&journal), [MARK, "journal-old"], "{step}");
        }
    }

    /// A mark of another run is no reason to leave the given journal out.
    #[test]
    fn a_mark_is_of_one_given_folder() {
        let (folder, journal, given) = state();
        swap(&journal, &given).unwrap();
        let of = |given: &Path| begun(&journal, folder.path(), given).unwrap();
        assert_eq!(of(Path::new("journal.set-aside-2")), None);
        assert_eq!(of(Path::new(GIVEN)), Some(given.clone()));
        assert_eq!(of(&given), Some(given));
    }
}
