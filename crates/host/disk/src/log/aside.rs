//! Groups whose logs were damaged. What there was of one is kept under another name until the group is
//! whole again: when that never happens, it may be all that is left.
//!
//! ```text
//! damaged-0001/ what was group-0001/, or another number
//! gone-0001/    the same, not needed any more, or the leftover of one: removed
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use vere_ports::spool_log::OpenLogError;
use vere_ports::storage::{Storage, StorageFile};

use super::directory::Directory;
use super::format::{HEAD_LEN, Head, segment_name, segment_number};
use super::node_store::{group_name, io_error, remove_leftover};
use super::octets::Octets;

const ASIDE: &str = "damaged";
const GONE: &str = "gone";

/// What is set aside, and how that is done.
#[derive(Debug)]
pub(super) struct Aside {
    path: PathBuf,
    directory: Directory,
    /// The directory of each group of which there is something.
    groups: BTreeMap<String, String>,
}

impl Aside {
    /// Looks for what was set aside before.
    pub(super) fn find(path: &Path, directory: &Directory) -> Result<Self, OpenLogError> {
        let mut groups = BTreeMap::new();
        for name in directory.list().map_err(io_error(path))? {
            let at = path.join(&name);
            if is_numbered(&name, ASIDE) {
                groups.insert(group_name(&at)?, name);
            } else if is_numbered(&name, GONE) {
                remove_leftover(&at).map_err(io_error(&at))?;
            }
        }
        Ok(Self {
            path: path.to_owned(),
            directory: directory.clone(),
            groups,
        })
    }

    /// The groups of which there is something, and where it lies.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        let groups = self.groups.iter();
        groups.map(|(group, name)| (group.as_str(), self.path.join(name)))
    }

    pub(super) fn holds(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// Sets the directory of this name aside. When there is something of its group already, that was
    /// whole once, and what came after it was not: the latter goes.
    pub(super) fn put(&mut self, group: &str, name: &str) -> io::Result<()> {
        if self.holds(group) {
            return self.throw_away(name);
        }
        let aside = self.free_name(ASIDE)?;
        self.directory.rename(name, &aside)?;
        self.directory.sync()?;
        self.groups.insert(group.to_owned(), aside);
        Ok(())
    }

    /// What there is of a group goes.
    pub(super) fn discard(&mut self, group: &str) -> io::Result<()> {
        match self.groups.remove(group) {
            Some(name) => self.throw_away(&name),
            None => Ok(()),
        }
    }

    /// Removes a directory, on a thread of its own: it may hold much.
    fn throw_away(&self, name: &str) -> io::Result<()> {
        let gone = self.free_name(GONE)?;
        self.directory.rename(name, &gone)?;
        self.directory.sync()?;
        let at = self.path.join(gone);
        let remove = move || {
            if let Err(error) = remove_leftover(&at) {
                // The next start removes it.
                tracing::warn!(directory = %at.display(), %error, "cannot remove a damaged log");
            }
        };
        let thread = std::thread::Builder::new().name("log-remove".to_owned());
        thread.spawn(remove).map(drop)
    }

    fn free_name(&self, prefix: &str) -> io::Result<String> {
        let taken = self.directory.list()?;
        let mut names = (1_u32..).map(|number| format!("{prefix}-{number:04}"));
        let free = names.find(|name| !taken.contains(name));
        free.ok_or_else(|| io::ErrorKind::AlreadyExists.into())
    }
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    let rest = name.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.starts_with('-'))
}

/// Whether a log was not opened because its disk does not hold what was written: nothing else would read
/// it either.
#[must_use]
pub fn is_damage(error: &OpenLogError) -> bool {
    match error {
        OpenLogError::Damaged { .. } => true,
        OpenLogError::Io { error, .. } => is_unreadable(error),
        _ => false,
    }
}

/// Whether the disk does not give back what lies on it, or the file system found that out.
pub(super) fn is_unreadable(error: &io::Error) -> bool {
    let damage = [Errno::EIO, Errno::EBADMSG, Errno::EUCLEAN];
    error
        .raw_os_error()
        .is_some_and(|number| damage.contains(&Errno::from_raw(number)))
}

/// The payload of the newest head in a directory with segments, damaged as it may be otherwise.
pub(super) fn newest_head<S: Storage>(storage: &S) -> Option<Vec<u8>> {
    let names = storage.list().ok()?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|n| segment_number(n)).collect();
    numbers.sort_unstable();
    numbers
        .into_iter()
        .rev()
        .find_map(|number| head_of(storage, number))
}

/// The payload of a segment's head. What a file held when it was another segment has another number.
fn head_of<S: Storage>(storage: &S, number: u64) -> Option<Vec<u8>> {
    let file = storage.open(&segment_name(number)).ok()?;
    let mut octets = Octets::new(&file, file.len().ok()?);
    let head = octets.at(0, HEAD_LEN as u64).ok()??.first_chunk()?;
    let head = Head::decode(head).ok().filter(|h| h.number == number)?;
    let payload = octets
        .at(HEAD_LEN as u64, u64::from(head.payload_len))
        .ok()??;
    (crc32fast::hash(payload) == head.payload_crc).then(|| payload.to_vec())
}
