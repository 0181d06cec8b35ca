//! Counts of handshakes, for all threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Handshakes since the start of the proxy, by their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// Done with a certificate and a signature.
    pub full: u64,
    /// Done by a ticket of an earlier connection (RFC 8446 section 2.2).
    pub resumed: u64,
    /// Ended before they were done: by an error, the client, its owner or the time limit.
    pub failed: u64,
}

/// The counters.
#[derive(Debug, Default)]
pub(super) struct Counts {
    full: AtomicU64,
    resumed: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    pub(super) fn done(&self, is_resumed: bool) {
        let counter = match is_resumed {
            true => &self.resumed,
            false => &self.full,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Handshakes {
        Handshakes {
            full: self.full.load(Ordering::Relaxed),
            resumed: self.resumed.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}
