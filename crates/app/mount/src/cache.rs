//! The cache of a volume on the local disk, for speed alone: a mount without one works as well.

use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use vere_disk::log::Directory;
use vere_mailfs::format::VolumeId;
use vere_mailfs::volume::CacheTerms;
use vere_process::failure::Failure;

use crate::folders::{self, Lock};
use crate::lines::{self, Level};
use crate::volume::Live;

/// The longest time from the lock of the state to that of the cache: a killed process closes all its files in one go.
const CLOSING_MAX: Duration = Duration::from_millis(100);

/// Has a mount use the cache folder of its volume; the lock is the mount's while it runs.
pub(crate) fn attach(live: &mut Live, volume: VolumeId, octets_max: u64) -> Option<Lock> {
    match try_attach(live, volume, octets_max) {
        Ok(lock) => Some(lock),
        Err(failure) => {
            lines::log(Level::Warn, &format!("no cache on disk: {failure}"));
            None
        }
    }
}

fn try_attach(live: &mut Live, volume: VolumeId, octets_max: u64) -> Result<Lock, Failure> {
    let folder = folders::cache(volume)?;
    folders::make_private(&folder)?;
    // Two state folders of one machine may have one cache folder.
    let lock = Lock::take_within(&folder, CLOSING_MAX)?;
    let wrong = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    let storage = Directory::open(&folder).map_err(wrong)?;
    let terms = CacheTerms::of(octets_max.min(room(&folder)?));
    live.use_cache(&storage, terms);
    Ok(lock)
}

/// Half of the disk's free octets, those of the cache counted as free: the disk has other users.
fn room(folder: &Path) -> Result<u64, Failure> {
    let wrong = |error: String| Failure::new(format!("{}: {error}", folder.display()));
    let facts = statvfs(folder).map_err(|error| wrong(error.to_string()))?;
    let free = facts
        .blocks_available()
        .saturating_mul(facts.fragment_size());
    let mut own = 0_u64;
    for entry in std::fs::read_dir(folder).map_err(|error| wrong(error.to_string()))? {
        // A file that goes meanwhile has no octets.
        let octets = entry.and_then(|entry| entry.metadata());
        own = own.saturating_add(octets.map_or(0, |facts| facts.len()));
    }
    Ok(free.saturating_add(own) / 2)
}
