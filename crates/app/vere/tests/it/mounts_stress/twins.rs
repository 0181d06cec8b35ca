//! Two roots that get equal calls.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Timespec, Timestamps};
use rustix::fs::{CWD, FallocateFlags, RenameFlags, XattrFlags};
use sha2::{Digest as _, Sha256};

use super::calls::{Call, Random};

/// Files held open at once.
const HELD_MAX: usize = 4;
/// Octets of an extended attribute that are read.
const XATTR_MAX: usize = 256;

/// What a call says: octets, a text, or nothing; or the number of its error.
type Said = Result<Vec<u8>, i32>;

/// A folder on a local file system, its twin on the volume, and files held open on both.
pub(super) struct Twins {
    roots: [PathBuf; 2],
    held: Vec<[File; 2]>,
    random: Random,
}

impl Twins {
    pub(super) const fn new(roots: [PathBuf; 2], seed: u64) -> Self {
        Self {
            roots,
            held: Vec::new(),
            random: Random(seed),
        }
    }

    /// Makes calls on both roots and compares what they say.
    pub(super) fn work(mut self, calls: usize) {
        for number in 0..calls {
            let call = self.random.call();
            let [local, volume] = self.both(&call);
            let (local, volume) = (shown(local), shown(volume));
            assert_eq!(local, volume, "call {number} of {:?}: {call:?}", self.roots);
        }
    }

    fn both(&mut self, call: &Call) -> [Said; 2] {
        match call {
            Call::Hold { path } => self.hold(path),
            Call::UseHeld {
                offset,
                length,
                fill,
            } => {
                let Some(held) = self.held.first() else {
                    return [Ok(Vec::new()), Ok(Vec::new())];
                };
                held.each_ref()
                    .map(|file| said(use_held(file, *offset, *length, *fill)))
            }
            Call::Release => {
                let _closed = (!self.held.is_empty()).then(|| self.held.remove(0));
                [Ok(Vec::new()), Ok(Vec::new())]
            }
            other => self.roots.each_ref().map(|root| said(make(root, other))),
        }
    }

    fn hold(&mut self, path: &str) -> [Said; 2] {
        let open = |root: &PathBuf| File::options().read(true).write(true).open(root.join(path));
        let [local, volume] = self.roots.each_ref().map(open);
        match (local, volume) {
            (Ok(local), Ok(volume)) => {
                if self.held.len() >= HELD_MAX {
                    self.held.remove(0);
                }
                self.held.push([local, volume]);
                [Ok(Vec::new()), Ok(Vec::new())]
            }
            (local, volume) => [local, volume].map(|file| said(file.map(|_| Vec::new()))),
        }
    }
}

fn said(result: io::Result<Vec<u8>>) -> Said {
    result.map_err(|error| error.raw_os_error().unwrap_or(-1))
}

/// Long octets by their hash.
fn shown(said: Said) -> Result<String, i32> {
    said.map(|octets| match std::str::from_utf8(&octets) {
        Ok(text) if text.len() < 500 => text.to_owned(),
        _ => format!("{} octets, {}", octets.len(), hash(&octets)),
    })
}

fn hash(octets: &[u8]) -> String {
    let digest = Sha256::digest(octets);
    digest
        .iter()
        .take(8)
        .map(|octet| format!("{octet:02x}"))
        .collect()
}

fn use_held(file: &File, offset: u64, length: usize, fill: u8) -> io::Result<Vec<u8>> {
    file.write_all_at(&vec![fill; length], offset)?;
    read_at(file, offset.saturating_sub(1_000), length + 2_000)
}

fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut octets = vec![0; length];
    let mut read = 0;
    while read < length {
        match file.read_at(&mut octets[read..], offset + read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    octets.truncate(read);
    Ok(octets)
}

/// Makes a call below a root.
fn make(root: &Path, call: &Call) -> io::Result<Vec<u8>> {
    match call {
        Call::Write { .. }
        | Call::Append { .. }
        | Call::Truncate { .. }
        | Call::Punch { .. }
        | Call::Zero { .. }
        | Call::CopyRange { .. }
        | Call::Sync { .. } => change_content(root, call).map(|()| Vec::new()),
        Call::Read {
            path,
            offset,
            length,
        } => read_at(&File::open(root.join(path))?, *offset, *length),
        Call::List { path } => {
            let mut names = Vec::new();
            for entry in fs::read_dir(root.join(path))? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            Ok(names.join("\n").into_bytes())
        }
        Call::Stat { path } => {
            let facts = fs::symlink_metadata(root.join(path))?;
            Ok(facts_of(&facts).into_bytes())
        }
        other => change_names(root, other).map(|()| Vec::new()),
    }
}

fn change_content(root: &Path, call: &Call) -> io::Result<()> {
    let open = |path: &str| File::options().write(true).open(root.join(path));
    match call {
        Call::Write {
            path,
            offset,
            length,
            fill,
        } => {
            let mut options = File::options();
            let file = options
                .write(true)
                .create(true)
                .truncate(false)
                .open(root.join(path))?;
            file.write_all_at(&vec![*fill; *length], *offset)
        }
        Call::Append { path, length, fill } => {
            let file = File::options().append(true).open(root.join(path))?;
            io::Write::write_all(&mut &file, &vec![*fill; *length])
        }
        Call::Truncate { path, length } => open(path)?.set_len(*length),
        Call::Punch {
            path,
            offset,
            length,
        } => {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            Ok(rustix::fs::fallocate(open(path)?, flags, *offset, *length)?)
        }
        Call::Zero {
            path,
            offset,
            length,
        } => {
            let flags = FallocateFlags::ZERO_RANGE;
            Ok(rustix::fs::fallocate(open(path)?, flags, *offset, *length)?)
        }
        Call::CopyRange {
            from,
            to,
            offset,
            length,
        } => {
            let (from, to) = (File::open(root.join(from))?, open(to)?);
            let (mut at, mut behind) = (*offset, offset / 2);
            rustix::fs::copy_file_range(&from, Some(&mut at), &to, Some(&mut behind), *length)?;
            Ok(())
        }
        Call::Sync { path } => File::open(root.join(path))?.sync_all(),
        other => unreachable!("{other:?} changes no content"),
    }
}

fn change_names(root: &Path, call: &Call) -> io::Result<()> {
    match call {
        Call::Rename { from, to, flags } => rename(&root.join(from), &root.join(to), *flags),
        Call::Link { from, to } => fs::hard_link(root.join(from), root.join(to)),
        Call::Symlink { target, path } => symlink(target, root.join(path)),
        Call::Unlink { path } => fs::remove_file(root.join(path)),
        Call::MakeFolder { path } => fs::create_dir(root.join(path)),
        Call::RemoveFolder { path } => fs::remove_dir(root.join(path)),
        Call::Chmod { path, mode } => {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(*mode))
        }
        Call::Touch {
            path,
            seconds,
            nanoseconds,
        } => {
            let time = Timespec {
                tv_sec: *seconds,
                tv_nsec: *nanoseconds,
            };
            let times = Timestamps {
                last_access: time,
                last_modification: time,
            };
            let path = root.join(path);
            rustix::fs::utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            let facts = fs::symlink_metadata(&path)?;
            let read = (facts.mtime(), facts.mtime_nsec());
            assert_eq!(read, (*seconds, *nanoseconds), "{}", path.display());
            Ok(())
        }
        Call::SetXattr { path, name, length } => {
            let value = vec![7; *length];
            Ok(rustix::fs::lsetxattr(
                root.join(path),
                *name,
                &value,
                XattrFlags::empty(),
            )?)
        }
        Call::RemoveXattr { path, name } => Ok(rustix::fs::lremovexattr(root.join(path), *name)?),
        other => unreachable!("{other:?} changes no name"),
    }
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, from, CWD, to, flags)?)
}

/// What both file systems must agree on. Sizes of folders and links of theirs are a file system's own affair.
fn facts_of(facts: &Metadata) -> String {
    let (mode, links) = (facts.mode(), facts.nlink());
    match facts.is_dir() {
        true => format!("mode {mode:o}, links {links}"),
        false => format!("mode {mode:o}, links {links}, size {}", facts.len()),
    }
}

/// Everything below a root that both sides must have.
pub(super) fn tree_of(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut tree = BTreeMap::new();
    walk(root, root, &mut tree);
    tree
}

fn walk(root: &Path, folder: &Path, tree: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let facts = fs::symlink_metadata(&path).expect("facts");
        let mut text = facts_of(&facts);
        if facts.is_symlink() {
            let target = fs::read_link(&path).expect("a target");
            text.push_str(&format!(", to {}", target.display()));
        } else if facts.is_file() {
            let octets = fs::read(&path).expect("a file");
            text.push_str(&format!(", {}", hash(&octets)));
        }
        for name in ["user.one", "user.two"] {
            let mut value = [0; XATTR_MAX];
            if let Ok(length) = rustix::fs::lgetxattr(&path, name, &mut value[..]) {
                text.push_str(&format!(", {name} of {length}"));
            }
        }
        let name = path.strip_prefix(root).expect("below the root");
        tree.insert(name.to_owned(), text);
        if facts.is_dir() {
            walk(root, &path, tree);
        }
    }
}
