//! Records that wait until the local disk has room.

use std::collections::VecDeque;
use std::io;

/// Octets of records that wait for room on the disk. Programs are refused while any waits, so that only what is under way adds.
const BACKLOG_MAX: usize = 64 << 20;

/// Records that wait for room on the disk.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub(super) records: VecDeque<(u64, Vec<u8>)>,
    pub(super) octets: usize,
}

impl Backlog {
    pub(super) fn push(&mut self, position: u64, record: Vec<u8>) -> io::Result<()> {
        let octets = self.octets.saturating_add(record.len());
        if octets > BACKLOG_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.octets = octets;
        self.records.push_back((position, record));
        Ok(())
    }
}

/// Whether an error tells of a full disk, or of a full quota of the user.
pub(super) fn lacks_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
