//! Owners and permissions of settings, keys, passwords and data.

use std::collections::VecDeque;
use std::ffi::CString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Uid, User, getgrouplist};
use vere_settings::{DirectoryStore, Settings};

use crate::figures::counted;
use crate::row::Row;

const CHECK: &str = "permissions";
/// The most files with keys.
const KEYS_MAX: usize = 10_000;
/// The most entries below the data directory whose owners are compared, those near the top first.
const ENTRIES_MAX: usize = 20_000;
/// The directory of file systems for rescued files, which belongs to root.
const RESCUED: &str = "lost+found";

/// A user with groups.
struct Reader {
    name: String,
    uid: u32,
    groups: Vec<u32>,
}

impl Reader {
    /// The user of the system. `None`: the user of the command.
    fn find(name: &str) -> Option<Self> {
        Self::of(User::from_name(name).ok()??)
    }

    fn of(user: User) -> Option<Self> {
        let name = CString::new(user.name.as_str()).ok()?;
        let groups = getgrouplist(&name, user.gid).unwrap_or_else(|_| vec![user.gid]);
        Some(Self {
            uid: user.uid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            name: user.name,
        })
    }

    fn may_read(&self, about: &Metadata) -> bool {
        let bit = match about {
            _ if self.uid == 0 => return true,
            about if about.uid() == self.uid => 0o400,
            about if self.groups.contains(&about.gid()) => 0o040,
            _ => 0o004,
        };
        about.mode() & bit != 0
    }
}

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Settings without secrets: anybody may read them.
    Settings,
    /// Secrets of the system.
    Secrets,
}

/// Looks at every file and directory with secrets. `secrets`: whether the settings contain secrets.
pub(super) fn rows(
    file: &Path,
    secrets: bool,
    settings: &Settings,
    user: Option<&str>,
) -> Vec<Row> {
    let reader = user.and_then(Reader::find);
    let reader = reader.as_ref();
    let holds = match secrets {
        true => Holds::Secrets,
        false => Holds::Settings,
    };
    let mut rows: Vec<Row> = Vec::new();
    rows.extend(row(file, holds, reader));
    let mut seen: Vec<PathBuf> = Vec::new();
    for (_, path) in &settings.secret_files {
        seen.push(path.clone());
    }
    seen.extend(keys(settings));
    let (DirectoryStore::File(path) | DirectoryStore::Sqlite(path)) = &settings.directory.store;
    seen.push(path.clone());
    seen.sort();
    seen.dedup();
    rows.extend(
        seen.iter()
            .filter_map(|path| row(path, Holds::Secrets, reader)),
    );
    rows.extend(data(&settings.data, reader));
    rows.extend(foreign(&settings.data, reader));
    if rows.is_empty() {
        let count = seen.iter().filter(|path| path.exists()).count() + 1;
        rows.push(Row::ok(
            CHECK,
            format!(
                "{} and the data directory are private",
                counted(count as u64, "file")
            ),
        ));
    }
    rows
}

/// The keys for signatures: files in a directory for each domain.
fn keys(settings: &Settings) -> Vec<PathBuf> {
    let directory = settings.dkim.as_ref().map(|dkim| dkim.keys.as_path());
    let entries = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let domains = directory.into_iter().flat_map(entries);
    let files = domains.flat_map(|domain| entries(&domain).collect::<Vec<_>>());
    files.take(KEYS_MAX).filter(|path| path.is_file()).collect()
}

/// The fault of a file, if any. Other checks tell about missing files.
fn row(path: &Path, holds: Holds, reader: Option<&Reader>) -> Option<Row> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            return Some(Row::ok(
                CHECK,
                format!("{} is not looked at: {error}", path.display()),
            ));
        }
    };
    let name = path.display();
    let mode = about.mode();
    if mode & 0o002 != 0 {
        return Some(Row::critical(
            CHECK,
            format!("{name} can be changed by every user"),
            format!("chmod o-w {name}"),
        ));
    }
    if let Some(reader) = reader.filter(|reader| !reader.may_read(&about)) {
        let user = &reader.name;
        return Some(Row::critical(
            CHECK,
            format!("{user} cannot read {name}"),
            format!("chgrp {user} {name} && chmod 640 {name}, then: vere reload"),
        ));
    }
    if holds == Holds::Secrets && mode & 0o004 != 0 {
        return Some(Row::critical(
            CHECK,
            format!("{name} has secrets and can be read by every user"),
            format!("chmod o-r {name}"),
        ));
    }
    None
}

fn data(directory: &Path, reader: Option<&Reader>) -> Option<Row> {
    let about = fs::metadata(directory).ok()?;
    let name = directory.display();
    let stranger = reader.filter(|reader| reader.uid != about.uid());
    if let Some(reader) = stranger {
        let user = &reader.name;
        return Some(Row::critical(
            CHECK,
            format!("{name} does not belong to {user}"),
            format!("while the system is stopped: chown -R {user}: {name}"),
        ));
    }
    (about.mode() & 0o007 != 0).then(|| {
        Row::warning(
            CHECK,
            format!("{name} is open to every user of this machine"),
            format!("chmod o-rwx {name}"),
        )
    })
}

/// Files below the data directory of another user than the directory's: a start or a command as root has left them.
fn foreign(directory: &Path, reader: Option<&Reader>) -> Option<Row> {
    let owner = fs::metadata(directory).ok()?.uid();
    // Root can use every file; a directory of the wrong user has a row already.
    if owner == 0 || reader.is_some_and(|reader| reader.uid != owner) {
        return None;
    }
    let found = of_others(directory, owner);
    let (path, about) = found.first()?;
    let user = User::from_uid(Uid::from_raw(owner)).ok().flatten();
    let name = user.as_ref().map(|user| user.name.clone());
    let name = name.unwrap_or_else(|| owner.to_string());
    let text = format!(
        "{} below {} not owned by {name}, such as {} (user {})",
        counted(found.len() as u64, "file"),
        directory.display(),
        path.display(),
        about.uid()
    );
    let remedy = format!(
        "while the system is stopped: chown -R {name}: {}",
        directory.display()
    );
    let reader = user.and_then(Reader::of).unwrap_or(Reader {
        name,
        uid: owner,
        groups: Vec::new(),
    });
    let is_readable = found.iter().all(|(_, about)| reader.may_read(about));
    Some(match is_readable {
        true => Row::warning(CHECK, text, remedy),
        false => Row::critical(CHECK, text, remedy),
    })
}

/// The entries of other users than `owner`, among the first [`ENTRIES_MAX`]. Links are an administrator's.
fn of_others(directory: &Path, owner: u32) -> Vec<(PathBuf, Metadata)> {
    let mut found = Vec::new();
    let mut waiting = VecDeque::from([directory.to_owned()]);
    let mut left = ENTRIES_MAX;
    while let Some(folder) = waiting.pop_front().filter(|_| left > 0) {
        // Not every user may look into every directory.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if left == 0 {
                break;
            }
            left -= 1;
            let about = entry.metadata().ok();
            let is_meant = |about: &Metadata| !about.is_symlink() && entry.file_name() != RESCUED;
            let Some(about) = about.filter(is_meant) else {
                continue;
            };
            if about.is_dir() {
                waiting.push_back(entry.path());
            }
            if about.uid() != owner {
                found.push((entry.path(), about));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::finding::Level;

    fn file(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn open_files_and_unreadable_files_have_remedies() {
        let own = nix::unistd::geteuid().as_raw();
        let stranger = Reader {
            name: "vere".to_owned(),
            uid: own + 12_345,
            groups: vec![],
        };
        let text = |mode, holds, reader| {
            let (_folder, path) = file(mode);
            row(&path, holds, reader).map(|row| (row.level, row.text))
        };
        assert_eq!(text(0o600, Holds::Secrets, None), None);
        assert_eq!(text(0o644, Holds::Settings, None), None);
        let (level, said) = text(0o644, Holds::Secrets, None).unwrap();
        assert_eq!(level, Level::Critical);
        assert!(said.contains("read by every user"), "{said}");
        let (_, said) = text(0o666, Holds::Settings, None).unwrap();
        assert!(said.contains("changed by every user"), "{said}");
        let (_, said) = text(0o600, Holds::Secrets, Some(&stranger)).unwrap();
        assert!(said.starts_with("vere cannot read"), "{said}");
        assert_eq!(row(Path::new("/nowhere/file"), Holds::Secrets, None), None);
    }

    #[test]
    fn groups_of_the_user_count() {
        let (_folder, path) = file(0o640);
        let about = fs::metadata(&path).unwrap();
        let reader = |groups| Reader {
            name: "vere".to_owned(),
            uid: about.uid() + 12_345,
            groups,
        };
        assert!(reader(vec![about.gid()]).may_read(&about));
        assert!(!reader(vec![]).may_read(&about));
    }

    #[test]
    fn a_whole_system_is_private_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vere.toml");
        let text = "version = 1\nhostname = \"a.b\"\ndata = \"data\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n";
        fs::write(&file, text).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        let private = |name: &str, mode| {
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(mode))
                .unwrap();
        };
        private("data", 0o700);
        fs::write(folder.path().join("k"), "key").unwrap();
        private("k", 0o600);
        let settings = Settings::parse(text, &file.to_string_lossy()).unwrap();
        let found = |secrets| rows(&file, secrets, &settings, None);
        private("vere.toml", 0o644);
        assert_eq!(found(false)[0].level, Level::Ok, "{:?}", found(false));
        assert_eq!(found(true)[0].level, Level::Critical);
        private("k", 0o644);
        private("data", 0o755);
        let levels: Vec<Level> = found(false).iter().map(|row| row.level).collect();
        assert_eq!(levels, [Level::Critical, Level::Warning]);
    }

    /// After one start as root, the system of the directory's user did not start.
    #[test]
    fn files_of_root_in_the_data_of_a_user_are_found() {
        use std::os::unix::fs::{lchown, symlink};
        if !nix::unistd::geteuid().is_root() {
            return; // Only root may give files away.
        }
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir_all(data.join("spool/a")).unwrap();
        fs::write(data.join("own"), "x").unwrap();
        for path in ["", "spool", "spool/a", "own"] {
            lchown(data.join(path), Some(4_000_000), Some(4_000_000)).unwrap();
        }
        symlink("/", data.join("link")).unwrap();
        fs::create_dir(data.join(RESCUED)).unwrap();
        assert_eq!(foreign(&data, None), None);
        let path = data.join("spool/a/log");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let row = foreign(&data, None).unwrap();
        assert_eq!(row.level, Level::Warning);
        let end = format!("not owned by 4000000, such as {} (user 0)", path.display());
        assert!(row.text.starts_with("1 file below "), "{row:?}");
        assert!(row.text.ends_with(&end), "{row:?}");
        assert!(row.remedy.unwrap().contains("chown -R 4000000: "));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(foreign(&data, None).unwrap().level, Level::Critical);
        lchown(&data, Some(0), Some(0)).unwrap();
        assert_eq!(foreign(&data, None), None, "root can use every file");
    }

    #[test]
    fn keys_of_signatures_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vere.toml");
        let text = "version = 1\nhostname = \"a.b\"\ndata = \"data\"\n[dkim]\n";
        fs::write(&file, text).unwrap();
        let settings = Settings::parse(text, &file.to_string_lossy()).unwrap();
        let key = settings.data.join("dkim/example.org/s1.toml");
        fs::create_dir_all(key.parent().unwrap()).unwrap();
        fs::write(&key, "a key").unwrap();
        fs::set_permissions(&settings.data, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        let found = rows(&file, false, &settings, None);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].text.contains("s1.toml has secrets"), "{found:?}");
    }
}
