//! Work with chunks on the local disk, for any thread.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::format::{ChunkId, HEAD_OCTETS, Keys, MailId, Place, open_frame};

/// Reads the head of a mail and a frame.
pub type Read = Box<dyn FnOnce() -> io::Result<Vec<u8>> + Send>;
/// Writes the head of a mail and a frame.
pub type Write = Box<dyn FnOnce(&[u8], &[u8]) -> io::Result<()> + Send>;

/// A chunk as an account has given it: opened, and as sealed.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The octets of the chunk.
    pub plain: Bytes,
    /// The head of the mail.
    pub head: Bytes,
    /// The frame, sealed.
    pub frame: Bytes,
}

/// A chunk on the local disk.
pub struct CachedJob {
    /// Reads the entry.
    pub read: Read,
    /// The keys of the volume.
    pub keys: Arc<Keys>,
    /// The mail of the chunk.
    pub id: MailId,
    /// The place within the mail.
    pub place: Place,
}

impl CachedJob {
    /// The octets of the chunk; absent if the disk fails or has something else.
    #[must_use]
    pub fn run(self) -> Option<Bytes> {
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
pub struct KeepJob {
    /// Writes the entry; absent if the disk takes no chunks.
    pub write: Option<Write>,
    /// The keys of the volume.
    pub keys: Arc<Keys>,
    /// The chunk.
    pub chunk: Opened,
}

/// A chunk that the local disk has, or has not.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// Whether the disk has the chunk.
    pub is_written: bool,
    /// The id of the chunk.
    pub name: ChunkId,
    /// Octets of the chunk.
    pub octets: usize,
}

impl KeepJob {
    /// Writes the chunk, and gives the chunk an id.
    #[must_use]
    pub fn run(self) -> Kept {
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
