//! The records of a segment.

use bytes::Bytes;
use vere_checksum::crc32c;
use vere_ports::storage::StorageFile;

use super::error::JournalError;
use super::head::{HEAD, RECORD_HEAD, SEALED_MAX, nonce};
use crate::format::seal::unseal;
use crate::record::{self, Part};

/// Octets in which a record is looked for at once.
const WINDOW: u64 = 1 << 20;

/// The content of a place of a segment.
pub(super) enum Read {
    Record(Vec<Part>, u64),
    /// A whole record, sealed with another key.
    Unsealed,
    /// No whole record.
    End,
}

/// Hands the records of a segment to `see`, up to the first place without a whole record. Returns the position of the place.
pub(super) fn read_records<F: StorageFile>(
    key: &[u8; 32],
    (file, name): (&F, &str),
    (random, first, length): (&[u8; 16], u64, u64),
    see: &mut impl FnMut(u64, Vec<Part>),
) -> Result<u64, JournalError> {
    let mut position = first;
    loop {
        let at = HEAD.saturating_add(position.saturating_sub(first));
        match read_record(key, file, random, (at, length), position)? {
            Read::Record(parts, octets) => {
                see(position, parts);
                position = position.saturating_add(octets);
            }
            Read::Unsealed => {
                let file = name.to_owned();
                return Err(JournalError::Key { file });
            }
            Read::End => return Ok(position),
        }
    }
}

/// The record of a position, at a place of a segment with a length.
pub(super) fn read_record<F: StorageFile>(
    key: &[u8; 32],
    file: &F,
    random: &[u8; 16],
    (at, length): (u64, u64),
    position: u64,
) -> Result<Read, JournalError> {
    let behind = at.saturating_add(RECORD_HEAD);
    if behind > length {
        return Ok(Read::End);
    }
    let mut head = [0; RECORD_HEAD as usize];
    file.read_at(&mut head, at)?;
    let Some(head) = RecordHead::decode(&head).filter(|head| head.position == position) else {
        return Ok(Read::End);
    };
    if behind.saturating_add(head.sealed_len.into()) > length {
        return Ok(Read::End);
    }
    let mut sealed = vec![0; usize::try_from(head.sealed_len).unwrap_or(0)];
    file.read_at(&mut sealed, behind)?;
    if crc32c(&sealed) != head.sum {
        return Ok(Read::End);
    }
    let nonce = nonce(random, position);
    let plain = unseal(key, &nonce, &[], &mut sealed).map(|plain| plain.len());
    let parts = plain.and_then(|length| {
        sealed.truncate(length);
        record::decode(&Bytes::from(sealed))
    });
    Ok(parts.map_or(Read::Unsealed, |parts| {
        Read::Record(parts, RECORD_HEAD.saturating_add(head.sealed_len.into()))
    }))
}

/// Whether a whole record stands anywhere from a place on.
pub(super) fn has_record<F: StorageFile>(
    key: &[u8; 32],
    file: &F,
    (random, first, length): (&[u8; 16], u64, u64),
    from: u64,
) -> Result<bool, JournalError> {
    let mut at = from;
    while at.saturating_add(RECORD_HEAD) <= length {
        let octets = WINDOW.min(length.saturating_sub(at));
        let mut window = vec![0; usize::try_from(octets).unwrap_or(0)];
        file.read_at(&mut window, at)?;
        for (place, head) in (at..).zip(window.windows(RECORD_HEAD as usize)) {
            let position = first.saturating_add(place.saturating_sub(HEAD));
            if head.first_chunk() == Some(&position.to_le_bytes())
                && RecordHead::decode(head).is_some()
                && !matches!(
                    read_record(key, file, random, (place, length), position)?,
                    Read::End
                )
            {
                return Ok(true);
            }
        }
        // The next window begins with heads of which this window has a part.
        let step = octets.saturating_sub(RECORD_HEAD.saturating_sub(1));
        at = at.saturating_add(step.max(1));
    }
    Ok(false)
}

/// The head of a record.
pub(super) struct RecordHead {
    pub(super) position: u64,
    sealed_len: u32,
    /// The checksum of the sealed octets.
    sum: u32,
}

impl RecordHead {
    /// Reads a head; `None` for octets without a head.
    pub(super) fn decode(octets: &[u8]) -> Option<Self> {
        let (body, rest) = octets.split_first_chunk::<16>()?;
        let sum = u32::from_le_bytes(*rest.first_chunk()?);
        let (position, rest) = body.split_first_chunk()?;
        let (sealed_len, sealed_sum) = rest.split_first_chunk()?;
        let head = Self {
            position: u64::from_le_bytes(*position),
            sealed_len: u32::from_le_bytes(*sealed_len),
            sum: u32::from_le_bytes(*sealed_sum.first_chunk()?),
        };
        (crc32c(body) == sum && head.sealed_len <= SEALED_MAX).then_some(head)
    }
}
