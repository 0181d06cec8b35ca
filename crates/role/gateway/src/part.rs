//! What becomes a record of the spool.

use bytes::Bytes;
use vere_queue::{Destination, Envelope};

/// One record to be: a destination, the envelope for it and the message.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) destination: Destination,
    pub(super) envelope: Envelope,
    pub(super) body: Bytes,
}
