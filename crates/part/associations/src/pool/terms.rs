//! Settings of a pool, and what it gives.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::initiate::{OpenError, Peer};
use crate::open::{Activity, OpenAssociation, Resumption};

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
        }
    }
}

/// An association of a pool over which the peer sends. The host receives the transfer and gives the association back; an association that is dropped is closed,
/// and the pool opens another.
#[derive(Debug)]
pub struct Lent {
    /// The association.
    pub open: OpenAssociation,
    /// The transfer that the host has to receive or refuse.
    pub begun: Begun,
    /// The way back. An error: the pool has ended, and the association is the host's.
    pub back: oneshot::Sender<OpenAssociation>,
}

/// A transfer that the peer begins or continues.
#[derive(Debug)]
pub enum Begun {
    /// A new one: as [`Next::Incoming`](crate::Next::Incoming).
    Transfer(Activity),
    /// One that broke off: as [`Next::Resume`](crate::Next::Resume).
    Rest(Resumption),
}

/// No transfer by a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolError {
    /// No association could be opened. The APDU may be sent again.
    NotOpen(OpenError),
    /// The pool has ended. The APDU may have been transferred if it was given before.
    Ended,
}
