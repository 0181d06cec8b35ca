//! How an archive is written, and what was done.

use std::time::Duration;

use vere_units::ByteSize;

/// A segment with more octets is closed, also within its minute.
const SEGMENT_OCTETS_MAX: u64 = 4 << 30;

/// How an archive is written.
#[derive(Debug, Clone)]
pub struct ArchiveOptions {
    /// Whole days older than this are removed: at the opening, and once an hour. Zero: nothing is removed.
    pub keep: Duration,
    /// Octets of entries in memory; further callers wait. An entry above the bound waits for all others. Default 64 MiB.
    pub waiting_octets_max: ByteSize,
    /// Zero: [`Archive::add`](crate::Archive::add) is ready when the entry is on stable storage. Else: `add` is ready when the operating
    /// system has the entry, and a sync follows within this time; after a cut of power the entries of this time may be
    /// missing. Default zero.
    pub sync_within: Duration,
    /// A segment with more octets is closed, also within its minute. Default 4 GiB.
    pub segment_octets_max: ByteSize,
    /// Called about once a second while the opening repairs segments, which may take minutes. Default: nothing.
    pub alive: fn(),
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        Self {
            keep: Duration::ZERO,
            waiting_octets_max: ByteSize::mib(64),
            sync_within: Duration::ZERO,
            segment_octets_max: ByteSize::new(SEGMENT_OCTETS_MAX),
            alive: || {},
        }
    }
}

/// What an archive has done since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Entries written.
    pub entries: u64,
    /// Octets of their APDUs.
    pub octets: u64,
    /// Entries that were refused.
    pub failed: u64,
    /// Syncs.
    pub syncs: u64,
    /// Microseconds of all syncs together.
    pub sync_micros: u64,
}
