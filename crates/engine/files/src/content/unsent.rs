//! Octets that programs wrote and no server has yet.

use std::collections::HashMap;

use bytes::Bytes;

use super::piece::{UnsentId, narrow};

/// Writes that continue each other share a buffer up to this length. 64 KiB is the length of a small file's single chunk, and
/// keeps the pieces of a gigabyte written in sequence at 16,384.
pub const JOINED_OCTETS_MAX: usize = 64 * 1024;
/// Octets of a buffer before a part of it: above the longest write.
const BUFFER_OCTETS_MAX: u32 = 4 << 20;

/// The buffers.
#[derive(Debug, Default)]
pub struct Unsent {
    buffers: HashMap<UnsentId, Buffer>,
    next: u64,
    octets: u64,
    in_memory: u64,
}

#[derive(Debug)]
struct Buffer {
    data: Data,
    length: u32,
    /// Pieces of files that lie in the buffer.
    uses: u32,
}

#[derive(Debug)]
enum Data {
    Whole(Bytes),
    /// Short writes, with room for the writes that follow.
    Growing(Vec<u8>),
    /// The journal alone has the octets.
    Elsewhere,
}

impl Unsent {
    /// Octets of all buffers, in memory or not.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Octets of all buffers in memory.
    #[must_use]
    pub fn octets_in_memory(&self) -> u64 {
        self.in_memory
    }

    /// Octets of a buffer; absent if the journal alone has the octets, or the buffer is no longer used.
    #[must_use]
    pub fn get(&self, id: UnsentId, skip: u32, length: u32) -> Option<Bytes> {
        let from = usize::try_from(skip).ok()?;
        let to = from.checked_add(usize::try_from(length).ok()?)?;
        match &self.buffers.get(&id)?.data {
            Data::Whole(data) if to <= data.len() => Some(data.slice(from..to)),
            Data::Growing(data) => data.get(from..to).map(Bytes::copy_from_slice),
            Data::Whole(_) | Data::Elsewhere => None,
        }
    }

    /// Whether a buffer is in use.
    #[must_use]
    pub fn contains(&self, id: UnsentId) -> bool {
        self.buffers.contains_key(&id)
    }

    /// Takes the octets of a buffer out of memory; reads name the buffer all the same.
    pub fn spill(&mut self, id: UnsentId) {
        if let Some(buffer) = self.buffers.get_mut(&id)
            && !matches!(buffer.data, Data::Elsewhere)
        {
            buffer.data = Data::Elsewhere;
            self.in_memory = self.in_memory.saturating_sub(u64::from(buffer.length));
        }
    }

    /// A new buffer without uses.
    pub(super) fn add(&mut self, data: Bytes) -> UnsentId {
        let id = UnsentId(self.next);
        self.insert(id, data);
        id
    }

    fn insert(&mut self, id: UnsentId, data: Bytes) {
        self.next = self.next.max(id.0.saturating_add(1));
        let length = data.len() as u64;
        self.octets = self.octets.saturating_add(length);
        self.in_memory = self.in_memory.saturating_add(length);
        let data = if data.len() < JOINED_OCTETS_MAX {
            Data::Growing(data.to_vec())
        } else {
            Data::Whole(data)
        };
        let buffer = Buffer {
            data,
            length: narrow(length),
            uses: 0,
        };
        self.buffers.insert(id, buffer);
    }

    /// Appends to a buffer that ends at `end`; false if the buffer goes on there or has no room.
    pub(super) fn extend(&mut self, id: UnsentId, end: u32, more: &[u8]) -> bool {
        let Some(buffer) = self.buffers.get_mut(&id) else {
            return false;
        };
        let Data::Growing(data) = &mut buffer.data else {
            return false;
        };
        let joined = data.len().saturating_add(more.len());
        if buffer.length != end || joined > JOINED_OCTETS_MAX {
            return false;
        }
        data.extend_from_slice(more);
        buffer.length = narrow(data.len() as u64);
        let more = more.len() as u64;
        self.octets = self.octets.saturating_add(more);
        self.in_memory = self.in_memory.saturating_add(more);
        true
    }

    /// Puts octets of the journal into a buffer, at their old place. A buffer may come back in parts and out of order, since a
    /// copy is told with the octets of the copied part alone; octets between the parts are zeros that no piece has.
    pub(super) fn restore(&mut self, id: UnsentId, skip: u32, data: Bytes) {
        if skip == 0 && !self.buffers.contains_key(&id) {
            self.insert(id, data);
            return;
        }
        if self.extend(id, skip, &data) {
            return;
        }
        let begin = usize::try_from(skip.min(BUFFER_OCTETS_MAX)).unwrap_or(0);
        let end = begin.saturating_add(data.len());
        let uses = self.buffers.get(&id).map_or(0, |buffer| buffer.uses);
        let mut whole = self.take(id);
        if whole.len() < end {
            whole.resize(end, 0);
        }
        if let Some(part) = whole.get_mut(begin..end) {
            part.copy_from_slice(&data);
        }
        self.insert(id, whole.into());
        if let Some(buffer) = self.buffers.get_mut(&id) {
            buffer.uses = uses;
        }
    }

    /// Takes a buffer out; no octets if absent.
    fn take(&mut self, id: UnsentId) -> Vec<u8> {
        let Some(buffer) = self.buffers.remove(&id) else {
            return Vec::new();
        };
        let length = u64::from(buffer.length);
        self.octets = self.octets.saturating_sub(length);
        if !matches!(buffer.data, Data::Elsewhere) {
            self.in_memory = self.in_memory.saturating_sub(length);
        }
        match buffer.data {
            Data::Whole(data) => data.into(),
            Data::Growing(data) => data,
            Data::Elsewhere => Vec::new(),
        }
    }

    /// A piece more lies in a buffer.
    pub(super) fn hold(&mut self, id: UnsentId) {
        if let Some(buffer) = self.buffers.get_mut(&id) {
            buffer.uses = buffer.uses.saturating_add(1);
        }
    }

    /// A piece less lies in a buffer; the last piece ends the buffer.
    pub(super) fn release(&mut self, id: UnsentId) {
        let Some(buffer) = self.buffers.get_mut(&id) else {
            return;
        };
        buffer.uses = buffer.uses.saturating_sub(1);
        if buffer.uses > 0 {
            return;
        }
        let length = u64::from(buffer.length);
        if !matches!(buffer.data, Data::Elsewhere) {
            self.in_memory = self.in_memory.saturating_sub(length);
        }
        self.octets = self.octets.saturating_sub(length);
        self.buffers.remove(&id);
    }
}
