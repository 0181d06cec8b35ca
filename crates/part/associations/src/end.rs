//! Ends of associations.

use std::io;

use vere_osi::association::{AbortCause, AssociationError};

use crate::bounds::Wait;

/// Why an association is no longer there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// Either side has released it.
    #[error("the association was released")]
    Released,
    /// The peer has aborted it, or this side because of the peer.
    #[error("the association was aborted: {0:?}")]
    Aborted(AbortCause),
    /// The connection has failed.
    #[error("the connection failed: {0}")]
    Network(io::ErrorKind),
    /// A bound has passed.
    #[error(transparent)]
    Late(#[from] Wait),
    /// The peer's bind has wrong octets.
    #[error("expected an MTABind; found other octets")]
    Bind,
    /// A request of this side has no place: the fault of the host.
    #[error(transparent)]
    Host(#[from] AssociationError),
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}
