//! Why a courier cannot begin.

use std::error::Error;
use std::fmt;
use std::io;

use vere_net::resolver::ResolverError;
use vere_outbound::OutboundError;

/// Why a courier cannot begin.
#[derive(Debug)]
pub(crate) enum CourierError {
    /// Names cannot be looked up.
    Resolver(ResolverError),
    /// Connections to next hops cannot be made ready.
    Outbound(OutboundError),
    /// The directory of the couriers or a signal cannot be used.
    System(io::Error),
}

impl fmt::Display for CourierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolver(error) => error.fmt(f),
            Self::Outbound(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl Error for CourierError {
    /// The display holds the text of the direct cause already; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Resolver(error) => error.source(),
            Self::Outbound(error) => error.source(),
            Self::System(error) => error.source(),
        }
    }
}

impl From<ResolverError> for CourierError {
    fn from(error: ResolverError) -> Self {
        Self::Resolver(error)
    }
}

impl From<OutboundError> for CourierError {
    fn from(error: OutboundError) -> Self {
        Self::Outbound(error)
    }
}

impl From<io::Error> for CourierError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
