//! Settings of a pool, and what it gives.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::initiate::{OpenError, Peer};

/// Settings of a pool.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The peer.
    pub peer: Peer,
    /// Lanes whose associations are always open.
    pub permanent: usize,
    /// All lanes; at least 1.
    pub most: usize,
    /// Pause of a permanent lane after a failure.
    pub pause: Duration,
    /// The longest APDU of the peer that is received.
    pub apdu_max: u64,
}

impl PoolSettings {
    /// One lane on demand.
    #[must_use]
    pub const fn new(peer: Peer) -> Self {
        Self {
            peer,
            permanent: 0,
            most: 1,
            pause: Duration::from_secs(10),
            apdu_max: 64 << 20,
        }
    }
}

/// An APDU of the peer, that has come over an association of a pool.
#[derive(Debug)]
pub struct Delivered {
    /// The APDU.
    pub apdu: Vec<Bytes>,
    /// Answer with true when the APDU is safe, within `Bounds::hold`. After an answer that comes too late, which fails, the peer
    /// is still responsible.
    pub safe: oneshot::Sender<bool>,
}

/// No transfer by a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolError {
    /// No association could be opened. The APDU may be sent again.
    NotOpen(OpenError),
    /// The pool has ended. The APDU may have been transferred if it was given before.
    Ended,
}
