//! Names and heads of segments, and the bounds of records.

use std::io;

use vere_checksum::crc32c;
use vere_ports::storage::{Storage, StorageFile};

use super::error::{JournalError, VERSION};
use crate::numbered::{self, number_of};

/// The beginning of the names of segments.
const PREFIX: &str = "journal-";

const MAGIC: &[u8; 8] = b"VEREJRNL";
/// Octets of a head.
pub(super) const HEAD: u64 = 44;
/// Octets of the head of a record.
pub(super) const RECORD_HEAD: u64 = 20;
/// Sealed octets of a record: the longest write, and rows.
pub(super) const SEALED_MAX: u32 = 4 << 20;

/// The position of a segment by the segment's name.
pub(super) fn first_of(name: &str) -> Option<u64> {
    number_of(PREFIX, name)
}

/// The name of the segment that begins at a position.
pub(super) fn name_of(first: u64) -> String {
    numbered::name_of(PREFIX, first)
}

/// The segments of a folder in order, each with its first position.
pub(super) fn segments_of<S: Storage>(storage: &S) -> io::Result<Vec<(u64, String)>> {
    let names = storage.list()?.into_iter();
    let mut names: Vec<(u64, String)> = names
        .filter_map(|name| Some((first_of(&name)?, name)))
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// The random of a head; `None` if the head is torn.
pub(super) fn read_head<F: StorageFile>(
    file: &F,
    length: u64,
    first: u64,
    name: &str,
) -> Result<Option<[u8; 16]>, JournalError> {
    let mut head = [0; HEAD as usize];
    if length < HEAD {
        return Ok(None);
    }
    file.read_at(&mut head, 0)?;
    let (body, sum) = head.split_at(40);
    let is_whole = sum == crc32c(body).to_le_bytes()
        && body.starts_with(MAGIC)
        && body.get(32..40) == Some(&first.to_le_bytes());
    if !is_whole {
        return Ok(None);
    }
    let version = body.get(8..12).and_then(|octets| octets.try_into().ok());
    match version.map(u32::from_le_bytes) {
        Some(VERSION) => Ok(body.get(16..32).and_then(|octets| octets.try_into().ok())),
        found => Err(JournalError::Version {
            file: name.to_owned(),
            found: found.unwrap_or(0),
        }),
    }
}

/// The head of a segment.
pub(super) fn encode_head(random: &[u8; 16], first: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD as usize);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&0_u32.to_le_bytes());
    head.extend_from_slice(random);
    head.extend_from_slice(&first.to_le_bytes());
    let sum = crc32c(&head);
    head.extend_from_slice(&sum.to_le_bytes());
    head
}

/// The nonce of a record.
pub(super) fn nonce(random: &[u8; 16], position: u64) -> [u8; 24] {
    let mut nonce = [0; 24];
    for (to, from) in nonce
        .iter_mut()
        .zip(random.iter().chain(&position.to_le_bytes()))
    {
        *to = *from;
    }
    nonce
}
