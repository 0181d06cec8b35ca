//! The spool's log on disk: segments of checksummed entries, synced in groups beside the writer.
//!
//! [`NodeDirectory`] is the directory of a node, [`RedoLog`] the log of one group over any
//! [`vere_ports::storage::Storage`]. What is promised: an entry is given back whole or not at all; what
//! was reported as synced is given back, or the log does not open and names the file and the place;
//! after a failed sync nothing is reported as synced any more. The formats are in `format`, and drawn in
//! `docs/internals/spool-log.md`.
//!
//! Not covered: compression, encryption, several disks.

mod aside;
mod directory;
mod format;
mod index;
mod indexer;
mod node_store;
mod octets;
mod origin;
mod pace;
mod reading;
mod recover;
mod redo;
mod reserve;
mod spares;
mod sync;
mod threads;
mod unread;

#[cfg(test)]
mod tests;

pub use aside::is_damage;
pub use directory::{Directory, DirectoryFile, octets_read};
pub use node_store::{DiskLog, LogOptions, NodeDirectory};
pub use redo::RedoLog;
pub use sync::Wake;

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use vere_ports::spool_log::{LogPosition, LogReader, OpenLogError};
use vere_ports::storage::Storage;

/// Opens and reads the log in a directory of any kind, as a starting node does: octets never synced are
/// cut off. Returns the log with the position of its end. The log has no reserve.
///
/// # Errors
///
/// [`OpenLogError`], with `path` before the names of files.
pub fn recover_log<S: Storage>(
    storage: S,
    path: &Path,
    reader: &mut dyn LogReader,
) -> Result<LogPosition, OpenLogError> {
    let ((jobs, _), (reads, _)) = (mpsc::channel(), mpsc::channel());
    let reserve = reserve::Reserve::new(&storage, 0).map_err(|error| OpenLogError::Io {
        file: path.to_owned(),
        error,
    })?;
    let common = recover::Common {
        segment_len: u64::MAX,
        in_place_max: Duration::ZERO,
        jobs,
        reserve,
        reads,
        indexing: None,
    };
    let log = recover::open(storage, path, &common, reader)?;
    Ok(LogPosition(log.position))
}
