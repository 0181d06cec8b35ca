//! Reads from the local disk, and chunks from accounts that the local disk keeps.

use super::job::{Job, Task};
use super::keep_job::{CachedJob, KeepJob, Kept, Opened, Write};
use super::local::Keeping;
use super::state::{Volume, Working};
use crate::format::{MailId, Place};
use crate::rows::Extent;
use bytes::Bytes;
use vere_ports::storage::Storage;

/// Octets of chunks on the way to the local disk. Beyond, chunks are not kept: a slow disk must not hold back reads.
const KEEPING_MAX: usize = 32 << 20;

impl<S: Storage> Volume<S> {
    /// Reads a chunk from the local disk. Returns whether the disk may have the chunk: [`Self::cached`] tells.
    pub(super) fn read_cached(&mut self, chunk: Extent) -> bool {
        let Some(id) = self.located(chunk.pack.0).map(|located| located.id) else {
            return false;
        };
        let place = place_of(chunk);
        let store = self.local.chunks.as_mut();
        let Some(span) = store.and_then(|store| store.find(&self.seals.keys, id, place)) else {
            return false;
        };
        let job = CachedJob {
            read: Box::new(move || span.read()),
            keys: self.seals.keys.clone(),
            id,
            place,
        };
        self.work(Job(Task::Cached(job)), Working::Cached(chunk, id));
        true
    }

    /// The local disk has a chunk, or has not: then an account is asked.
    pub(super) fn cached(&mut self, chunk: Extent, id: MailId, plain: Option<Bytes>) {
        if let Some(plain) = plain {
            self.chunk_is_here(chunk, plain);
            return;
        }
        if let Some(store) = &mut self.local.chunks {
            store.is_damaged(id, chunk.at);
        }
        self.fetch_next(chunk);
    }

    /// Has the local disk keep a chunk that an account has given, and the chunk's id noted.
    pub(super) fn keep_chunk(&mut self, chunk: Extent, id: MailId, opened: Opened) {
        let octets = opened.plain.len();
        if !self.local.begin_keeping(octets, KEEPING_MAX) {
            return;
        }
        let now = self.now.steady;
        let store = self.local.chunks.as_mut();
        let span = store.and_then(|store| store.reserve(place_of(chunk), now));
        let write = span
            .clone()
            .map(|span| -> Write { Box::new(move |head, frame| span.write(head, frame)) });
        let job = KeepJob {
            write,
            keys: self.seals.keys.clone(),
            chunk: opened,
        };
        self.local.keeping.insert(chunk, Keeping { id, span });
        self.work(Job(Task::Keep(job)), Working::Keep(chunk));
    }

    /// A chunk is on the local disk, or is not.
    pub(super) fn kept(&mut self, chunk: Extent, kept: Kept) {
        self.local.end_keeping(kept.octets);
        self.note_chunk(kept.name, kept.octets, chunk);
        let Some(Keeping {
            id,
            span: Some(span),
        }) = self.local.keeping.remove(&chunk)
        else {
            return;
        };
        if let Some(store) = &mut self.local.chunks {
            let entry = (id, chunk.at);
            let keys = &self.seals.keys;
            store.written(keys, entry, &span, kept.is_written, self.now.steady);
        }
    }
}

/// The place of a chunk in its mail.
pub(super) fn place_of(chunk: Extent) -> Place {
    Place {
        at: chunk.at,
        sealed_len: chunk.sealed_len,
    }
}
