//! The steps that need root, and the change to an ordinary user.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, lchown};
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{
    AccessFlags, Uid, User, access, fchown, fchownat, geteuid, initgroups, setgid, setuid,
};
use vere_settings::Settings;

use super::error::SupervisorError;
use super::roles::instances;

/// Maximum depth of a walk through a data directory for a change of owner; real data directories are far flatter.
const DEPTH_MAX: usize = 32;

/// Flags to open a directory for a change of owner: the directory itself, never the target of a link.
const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// Raises the soft limit of open files to the hard one. Every connection takes a descriptor, and
/// the usual soft limit of 1024 exists for programs that use `select`.
pub(super) fn raise_descriptor_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// Makes the data directories and becomes the user named in the settings.
///
/// Without root only the directories are made. With root but without a user, root stays, and a
/// warning says so.
pub(super) fn prepare(settings: &Settings, executable: &Path) -> Result<(), SupervisorError> {
    let Some(user) = settings.user.as_ref().filter(|_| geteuid().is_root()) else {
        if geteuid().is_root() {
            tracing::warn!("running as root: set `user` in the settings to give root up");
        }
        return make_all(settings, None);
    };
    let account = account_of(user)?;
    make_all(settings, Some(&account))?;
    become_user(&account)?;
    access(executable, AccessFlags::X_OK).map_err(|_| SupervisorError::ExecutableUnreachable {
        user: user.clone(),
        path: executable.to_owned(),
    })
}

/// Refuses to run as root in the data directory of another user: its system could not use what root writes there. Root
/// with `user` gives all files to the user, even to root.
pub(super) fn refuse_data_of_another(settings: &Settings) -> Result<(), SupervisorError> {
    if settings.user.is_some() || !geteuid().is_root() {
        return Ok(());
    }
    let path = &settings.data;
    // A missing directory is made later, and belongs to root.
    let owner = fs::metadata(path).map_or(0, |about| about.uid());
    match owner {
        0 => Ok(()),
        owner => Err(SupervisorError::DataOfAnother {
            path: path.clone(),
            owner: named(owner),
        }),
    }
}

fn named(uid: u32) -> String {
    let known = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    known.map_or_else(|| format!("user {uid}"), |user| user.name)
}

/// Makes a missing data directory; an existing directory remains unchanged.
pub(super) fn make_data(settings: &Settings) -> Result<(), SupervisorError> {
    let user = settings.user.as_ref().filter(|_| geteuid().is_root());
    let account = user.map(|user| account_of(user)).transpose()?;
    make_missing(&settings.data, &settings.data, account.as_ref()).map_err(|source| {
        SupervisorError::DataDirectory {
            path: settings.data.clone(),
            source,
        }
    })
}

fn account_of(user: &str) -> Result<User, SupervisorError> {
    User::from_name(user)
        .map_err(|errno| refused(user, "look the user up", errno))?
        .ok_or_else(|| SupervisorError::UserUnknown {
            user: user.to_owned(),
        })
}

/// Makes the directories needed by starting roles, and gives the directories to the user.
fn make_all(settings: &Settings, account: Option<&User>) -> Result<(), SupervisorError> {
    let own = instances(settings).filter_map(|(_, instance)| instance.directory);
    for path in std::iter::once(settings.data.clone()).chain(own) {
        make(&path, &settings.data, account)
            .map_err(|source| SupervisorError::DataDirectory { path, source })?;
    }
    Ok(())
}

/// Makes a directory with the parents, and gives the directory with all content to the user.
fn make(path: &Path, data: &Path, account: Option<&User>) -> io::Result<()> {
    make_missing(path, data, account)?;
    account.map_or(Ok(()), |account| give(path, account))
}

/// Makes a directory and the missing parents. Mail is private, hence the mode of directories below
/// `data`; directories above `data` must let the user through.
fn make_missing(path: &Path, data: &Path, account: Option<&User>) -> io::Result<()> {
    let named = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(named).collect();
    for folder in missing.into_iter().rev() {
        let private = folder.starts_with(data) || folder == path;
        fs::DirBuilder::new()
            .mode(if private { 0o700 } else { 0o755 })
            .create(folder)?;
        if let Some(account) = account.filter(|_| private) {
            lchown(
                folder,
                Some(account.uid.as_raw()),
                Some(account.gid.as_raw()),
            )?;
        }
    }
    Ok(())
}

/// Gives a directory with all content to the user, unless the user already owns the directory.
///
/// No entry of a directory that the user already owns is followed or changed: the user could have
/// planted links to files of other users.
fn give(path: &Path, account: &User) -> io::Result<()> {
    let directory = match Dir::open(path, DIRECTORY, Mode::empty()) {
        Ok(directory) => directory,
        // A link made by an administrator; the link's target is not touched.
        Err(Errno::ELOOP | Errno::ENOTDIR) => {
            return lchown(path, Some(account.uid.as_raw()), Some(account.gid.as_raw()));
        }
        Err(errno) => return Err(errno.into()),
    };
    if fstat(&directory)?.st_uid == account.uid.as_raw() {
        return Ok(());
    }
    give_tree(directory, account, DEPTH_MAX)
}

/// Gives the content of an open directory, then the directory. All entries are reached from descriptors, so that a
/// name replaced by a link meanwhile leads nowhere else.
fn give_tree(mut directory: Dir, account: &User, depth: usize) -> io::Result<()> {
    let (uid, gid) = (Some(account.uid), Some(account.gid));
    let mut names = Vec::new();
    for entry in directory.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    for name in names {
        match Dir::openat(&directory, name.as_c_str(), DIRECTORY, Mode::empty()) {
            Ok(below) if depth > 0 => give_tree(below, account, depth - 1)?,
            Ok(_) | Err(Errno::ENOTDIR | Errno::ELOOP) => {
                let name = name.as_c_str();
                fchownat(&directory, name, uid, gid, AtFlags::AT_SYMLINK_NOFOLLOW)?;
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(fchown(&directory, uid, gid)?)
}

/// Gives root up for good, with the user's own supplementary groups (a key readable by a group such
/// as `ssl-cert` stays readable).
fn become_user(account: &User) -> Result<(), SupervisorError> {
    let user = &account.name;
    let name = CString::new(user.as_str())
        .map_err(|_| SupervisorError::UserUnknown { user: user.clone() })?;
    initgroups(&name, account.gid).map_err(|errno| refused(user, "set its groups", errno))?;
    setgid(account.gid).map_err(|errno| refused(user, "set its group", errno))?;
    setuid(account.uid).map_err(|errno| refused(user, "set its user id", errno))?;
    tracing::info!(%user, "root given up");
    Ok(())
}

fn refused(user: &str, step: &'static str, errno: nix::errno::Errno) -> SupervisorError {
    SupervisorError::Privileges {
        user: user.to_owned(),
        step,
        source: errno.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        raise_descriptor_limit();
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!(soft, hard);
    }

    #[test]
    fn folders_below_data_are_private_and_those_above_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("above/data");
        make(&data.join("spool/a"), &data, None).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("above")), 0o755);
        for path in [&data, &data.join("spool"), &data.join("spool/a")] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
    }

    #[test]
    fn every_made_folder_below_data_belongs_to_the_user() {
        if !geteuid().is_root() {
            return; // Only root may give files away.
        }
        let Some(nobody) = User::from_name("nobody").unwrap() else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("above/data");
        make(&data, &data, Some(&nobody)).unwrap();
        make(&data.join("spool/a"), &data, Some(&nobody)).unwrap();
        let owner = |path: &Path| fs::metadata(path).unwrap().uid();
        assert_eq!(owner(&data.join("spool")), nobody.uid.as_raw());
        assert_eq!(owner(&folder.path().join("above")), 0);
    }

    /// One start as root left files with which the user's system did not start any more.
    #[test]
    fn root_without_a_user_leaves_the_data_of_others_alone() {
        if !geteuid().is_root() {
            return; // Only root may give files away.
        }
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let settings = |user: &str| {
            let text =
                format!("version = 1\nhostname = \"mx.example.org\"\ndata = {data:?}\n{user}");
            Settings::parse(&text, "vere.toml").unwrap()
        };
        let refused = |user: &str| refuse_data_of_another(&settings(user)).err();
        assert!(refused("").is_none(), "a missing directory is made");
        fs::create_dir(&data).unwrap();
        assert!(refused("").is_none(), "root's own");
        lchown(&data, Some(4_000_000), Some(4_000_000)).unwrap();
        let text = refused("").unwrap().to_string();
        let end = "start the system as user 4000000, or set `user` in the settings";
        assert!(text.ends_with(end), "{text}");
        assert!(refused("user = \"nobody\"\n").is_none());
    }

    #[test]
    fn a_tree_changes_hands_only_as_a_whole() {
        if !geteuid().is_root() {
            return; // Only root may give files away.
        }
        let Some(nobody) = User::from_name("nobody").unwrap() else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir_all(data.join("sub")).unwrap();
        fs::write(data.join("sub/file"), "x").unwrap();
        fs::create_dir(folder.path().join("foreign")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("foreign"), data.join("sub/link")).unwrap();
        give(&data, &nobody).unwrap();
        let owner = |path: &Path| fs::symlink_metadata(path).unwrap().uid();
        assert_eq!(owner(&data), nobody.uid.as_raw());
        assert_eq!(owner(&data.join("sub/file")), nobody.uid.as_raw());

        assert_eq!(owner(&folder.path().join("foreign")), 0);
        assert_eq!(owner(&data.join("sub/link")), nobody.uid.as_raw());

        fs::write(data.join("later"), "x").unwrap();
        give(&data, &nobody).unwrap();
        assert_eq!(
            owner(&data.join("later")),
            0,
            "a directory of the user is not walked"
        );
    }
}
