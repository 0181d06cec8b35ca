//! The origin of a group's log: a separate copy of the log's first head, which identifies the group
//! when no segment's head does.
//!
//! ```text
//! origin   0  "VEREORIG" (8) | format version u32 = 1 | payload length u32
//!         16  crc32 of the payload u32 | crc32 of octets 0..20 u32
//!         24  payload: as that of a segment's head
//! ```

use std::io;

use vere_ports::storage::{Storage, StorageFile};

use super::directory::Directory;
use super::node_store::write_whole;

pub(super) const ORIGIN: &str = "origin";
const MAGIC: &[u8; 8] = b"VEREORIG";
const VERSION: u32 = 1;
const HEAD_LEN: usize = 24;

/// Writes the origin atomically.
pub(super) fn write(directory: &Directory, payload: &[u8]) -> io::Result<()> {
    let len = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let mut octets = Vec::with_capacity(HEAD_LEN + payload.len());
    octets.extend_from_slice(MAGIC);
    for number in [VERSION, len, vere_checksum::crc32(payload)] {
        octets.extend_from_slice(&number.to_le_bytes());
    }
    octets.extend_from_slice(&vere_checksum::crc32(&octets).to_le_bytes());
    octets.extend_from_slice(payload);
    write_whole(directory, ORIGIN, &octets)
}

/// The payload of the origin, if present and undamaged.
pub(super) fn read<S: Storage>(storage: &S) -> Option<Vec<u8>> {
    let file = storage.open(ORIGIN).ok()?;
    let mut head = [0; HEAD_LEN];
    file.read_at(&mut head, 0).ok()?;
    let field = |at: usize| {
        let octets = head.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*octets))
    };
    let sound = head.starts_with(MAGIC) && field(20)? == vere_checksum::crc32(head.get(..20)?);
    if !sound || field(8)? != VERSION {
        return None;
    }
    let len = u64::from(field(12)?);
    if file.len().ok()? < HEAD_LEN as u64 + len {
        return None;
    }
    let mut payload = vec![0; usize::try_from(len).ok()?];
    file.read_at(&mut payload, HEAD_LEN as u64).ok()?;
    (vere_checksum::crc32(&payload) == field(16)?).then_some(payload)
}
