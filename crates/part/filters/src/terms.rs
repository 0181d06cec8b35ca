//! Which filter is asked, where, and within which bounds.

use std::time::Duration;

use crate::address::Address;
use crate::bounds::Bounds;
use crate::clamd::Clamd;
use crate::rspamd::Rspamd;

/// The terms of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The protocol.
    pub kind: Kind,
    /// Where the filter listens.
    pub address: Address,
    /// The longest time for place, connection and talk together.
    pub timeout: Duration,
    /// The longest message that the filter is shown, in octets; also the longest replaced body.
    pub size_max: usize,
    /// The most connections at once; a further question waits for a place.
    pub connections_max: usize,
    /// Bounds of answers.
    pub bounds: Bounds,
}

/// The protocol of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// rspamd, by HTTP.
    Rspamd(Rspamd),
    /// ClamAV.
    Clamd(Clamd),
    /// Any filter with libmilter's protocol.
    Milter,
}
