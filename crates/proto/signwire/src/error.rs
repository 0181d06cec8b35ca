//! What is wrong with a frame.

/// The protocol version of this code.
pub const VERSION: u8 = 1;

/// A malformed frame: the other side's fault, after which the connection is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The frame announces this many octets.
    #[error("frame of {0} octets")]
    Length(usize),
    /// The frame has this unknown version.
    #[error("frame of version {0}, this program speaks {VERSION}")]
    Version(u8),
    /// The frame has this unknown kind.
    #[error("frame of unknown kind {0}")]
    Kind(u8),
    /// Its content ends early, goes on too long, or is no text where text must be.
    #[error("malformed content of a frame")]
    Content,
}
