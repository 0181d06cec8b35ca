//! Set-aside logs of groups whose logs were damaged. A damaged log is kept under another name until the
//! group is whole again: in the worst case the damaged log is the last copy.
//!
//! ```text
//! damaged-0001/ what was group-0001/, or another number; the lowest of a group was damaged first
//! gone-0001/    the same, not needed any more, or the leftover of one: removed
//! kept-0001/    the same, of which no head can be read: for people to look at. The newest few stay
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
use super::origin;

const ASIDE: &str = "damaged";
const GONE: &str = "gone";
const KEPT: &str = "kept";

/// The most set-aside logs of a group: the first, which was whole once, and the last, among which a whole
/// log may be.
const ASIDE_MAX: usize = 3;

/// The set-aside logs of a node.
#[derive(Debug)]
pub(super) struct Aside {
    path: PathBuf,
    directory: Directory,
    /// The most directories kept of unknown groups.
    kept_max: usize,
    /// The directories of each group of which there is something, the oldest first.
    groups: BTreeMap<String, Vec<String>>,
}

impl Aside {
    /// Finds the logs set aside earlier.
    pub(super) fn find(
        path: &Path,
        directory: &Directory,
        kept_max: usize,
    ) -> Result<Self, OpenLogError> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut names = directory.list().map_err(io_error(path))?;
        names.sort_by_key(|name| number(name, ASIDE));
        for name in names {
            let at = path.join(&name);
            if number(&name, ASIDE).is_some() {
                groups.entry(group_name(&at)?).or_default().push(name);
            } else if number(&name, GONE).is_some() {
                remove_leftover(&at).map_err(io_error(&at))?;
            }
        }
        let aside = Self {
            path: path.to_owned(),
            directory: directory.clone(),
            kept_max,
            groups,
        };
        aside.thin_out().map_err(io_error(path))?;
        Ok(aside)
    }

    /// The groups with set-aside logs, and the directory of the last log of each group.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        let groups = self.groups.iter();
        groups.filter_map(|(group, names)| Some((group.as_str(), self.path.join(names.last()?))))
    }

    pub(super) fn holds(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// The newest readable head among the set-aside logs of a group.
    pub(super) fn newest_head(&self, group: &str) -> Option<Vec<u8>> {
        let mut names = self.groups.get(group)?.iter().rev();
        names.find_map(|name| self.head_in(name))
    }

    fn head_in(&self, name: &str) -> Option<Vec<u8>> {
        newest_head(&Directory::open(&self.path.join(name)).ok()?)
    }

    /// Sets the directory with this name aside, beside earlier logs of the group.
    pub(super) fn put(&mut self, group: &str, name: &str) -> io::Result<()> {
        let aside = self.next_name(ASIDE)?;
        self.directory.rename(name, &aside)?;
        self.directory.sync()?;
        let names = self.groups.entry(group.to_owned()).or_default();
        names.push(aside);
        if names.len() > ASIDE_MAX {
            let second = names.remove(1);
            self.throw_away(&second)?;
        }
        Ok(())
    }

    /// Removes the set-aside logs of a group that is whole again. Without a readable head the owner of the
    /// logs is unknown, and the new owner of the group may be another account: the logs are then kept.
    pub(super) fn discard(&mut self, group: &str) -> io::Result<()> {
        let known = self.newest_head(group).is_some();
        for name in self.groups.remove(group).unwrap_or_default() {
            if known {
                self.throw_away(&name)?;
            } else {
                self.keep(group, &name)?;
            }
        }
        Ok(())
    }

    /// Keeps a directory for the administrator, and removes the oldest kept directories beyond the limit.
    fn keep(&self, group: &str, name: &str) -> io::Result<()> {
        let kept = self.next_name(KEPT)?;
        self.directory.rename(name, &kept)?;
        self.directory.sync()?;
        let directory = self.path.join(kept);
        let directory = directory.display();
        tracing::warn!(group, %directory, "damaged log of an unknown owner kept for inspection");
        self.thin_out()
    }

    /// Removes the oldest kept directories beyond the limit.
    fn thin_out(&self) -> io::Result<()> {
        let mut kept = self.directory.list()?;
        kept.retain(|name| number(name, KEPT).is_some());
        kept.sort_by_key(|name| std::cmp::Reverse(number(name, KEPT)));
        for name in kept.iter().skip(self.kept_max) {
            let of = group_name(&self.path.join(name)).unwrap_or_default();
            tracing::warn!(
                directory = name,
                group = of,
                "too many damaged logs are kept (spool.kept_max): the oldest is removed"
            );
            self.throw_away(name)?;
        }
        Ok(())
    }

    /// Removes a directory, on a separate thread: the directory may be large.
    pub(super) fn throw_away(&self, name: &str) -> io::Result<()> {
        let gone = self.next_name(GONE)?;
        self.directory.rename(name, &gone)?;
        self.directory.sync()?;
        let at = self.path.join(gone);
        let remove = move || {
            if let Err(error) = remove_leftover(&at) {
                // The next start removes the directory.
                tracing::warn!(directory = %at.display(), %error, "cannot remove a log that is not needed");
            }
        };
        let thread = std::thread::Builder::new().name("log-remove".to_owned());
        thread.spawn(remove).map(drop)
    }

    /// The name with the number above all.
    fn next_name(&self, prefix: &str) -> io::Result<String> {
        let taken = self.directory.list()?;
        let last = taken.iter().filter_map(|name| number(name, prefix)).max();
        let next = last.unwrap_or(0).checked_add(1);
        let next = next.ok_or(io::ErrorKind::AlreadyExists)?;
        Ok(format!("{prefix}-{next:04}"))
    }
}

/// The number in a name with this prefix.
fn number(name: &str, prefix: &str) -> Option<u64> {
    let rest = name.strip_prefix(prefix)?.strip_prefix('-')?;
    rest.parse().ok()
}

/// Whether a log failed to open because its content on disk is damaged: a retry would fail too.
#[must_use]
pub fn is_damage(error: &OpenLogError) -> bool {
    match error {
        OpenLogError::Damaged { .. } => true,
        OpenLogError::Io { error, .. } => is_unreadable(error),
        _ => false,
    }
}

/// Whether the disk cannot read its content, or the file system found corruption.
pub(super) fn is_unreadable(error: &io::Error) -> bool {
    let damage = [Errno::EIO, Errno::EBADMSG, Errno::EUCLEAN];
    error
        .raw_os_error()
        .is_some_and(|number| damage.contains(&Errno::from_raw(number)))
}

/// The payload of the newest readable head in a directory with segments, damaged or not; without a readable
/// segment head, the payload of the origin, the log's first head.
pub(super) fn newest_head<S: Storage>(storage: &S) -> Option<Vec<u8>> {
    newest_of_segments(storage).or_else(|| origin::read(storage))
}

fn newest_of_segments<S: Storage>(storage: &S) -> Option<Vec<u8>> {
    let names = storage.list().ok()?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|n| segment_number(n)).collect();
    numbers.sort_unstable();
    numbers
        .into_iter()
        .rev()
        .find_map(|number| head_of(storage, number))
}

/// The payload of a segment's head. A file reused as another segment still contains heads with other
/// numbers.
fn head_of<S: Storage>(storage: &S, number: u64) -> Option<Vec<u8>> {
    let file = storage.open(&segment_name(number)).ok()?;
    let mut octets = Octets::new(&file, file.len().ok()?);
    let head = octets.at(0, HEAD_LEN as u64).ok()??.first_chunk()?;
    let head = Head::decode(head).ok().filter(|h| h.number == number)?;
    let payload = octets
        .at(HEAD_LEN as u64, u64::from(head.payload_len))
        .ok()??;
    (vere_checksum::crc32(payload) == head.payload_crc).then(|| payload.to_vec())
}
