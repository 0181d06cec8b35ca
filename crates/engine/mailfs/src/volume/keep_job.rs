//! Work with chunks on the local disk, for any thread.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::format::{ChunkId, HEAD_OCTETS, Keys, MailId, Place, open_frame};

/// Reads the head of a mail and a frame.
pub(crate) type Read = Box<dyn FnOnce() -> io::Result<Vec<u8>> + Send>;
/// Writes the head of a mail and a frame.
pub(crate) type Write = Box<dyn FnOnce(&[u8], &[u8]) -> io::Result<()> + Send>;

/// A chunk as an account has given it: opened, and as sealed.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) plain: Bytes,
    pub(crate) head: Bytes,
    pub(crate) frame: Bytes,
}

/// A chunk on the local disk.
pub(crate) struct CachedJob {
    pub(crate) read: Read,
    pub(crate) keys: Arc<Keys>,
    pub(crate) id: MailId,
    pub(crate) place: Place,
}

impl CachedJob {
    /// The octets; none if the disk fails or has something else.
    pub(crate) fn run(self) -> Option<Bytes> {
        let octets = (self.read)().ok()?;
        let (head, frame) = octets.split_at_checked(HEAD_OCTETS)?;
        open_frame(head, frame, self.place.at, &self.keys, self.id).ok()
    }
}

impl fmt::Debug for CachedJob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CachedJob({:?}, {:?})", self.id, self.place)
    }
}

/// A chunk for the local disk.
pub(crate) struct KeepJob {
    /// None if the disk takes no chunks.
    pub(crate) write: Option<Write>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) chunk: Opened,
}

/// A chunk that the local disk has, or has not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) is_written: bool,
    pub(crate) name: ChunkId,
    /// Octets of the chunk.
    pub(crate) octets: usize,
}

impl KeepJob {
    pub(crate) fn run(self) -> Kept {
        let Opened { plain, head, frame } = self.chunk;
        let written = self.write.map(|write| write(&head, &frame));
        Kept {
            is_written: matches!(written, Some(Ok(()))),
            name: self.keys.chunk_id(&plain),
            octets: plain.len(),
        }
    }
}

impl fmt::Debug for KeepJob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeepJob({} octets)", self.chunk.plain.len())
    }
}
