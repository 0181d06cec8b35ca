//! Bodies: the single copy of a message, with the parse result from delivery.
//!
//! A body's record has three parts, so that the most requested part is read alone: the parse result, the header as
//! received, and the rest, compressed where useful. `docs/internals/store-log.md` draws the record.

use std::io;

use vere_mime::header_len;
use vere_ports::storage::{Storage, StorageFile};

use crate::error::StoreError;
use crate::log::format::{RECORD_HEAD, RecordHead, RecordKind, u32_at};
use crate::log::{Place, Segments, locate};
use crate::model::BlobId;

mod pieces;

pub use pieces::{PIECES_MEMORY, Pieces};

/// The version of a body's record.
const VERSION: u8 = 1;
/// Octets before the three parts.
const BODY_HEAD: usize = 56;
/// The rest as received.
const PLAIN: u8 = 0;
/// The rest compressed by zstd.
const ZSTD: u8 = 1;
/// Messages shorter than this are stored uncompressed.
const COMPRESS_FROM: usize = 512;
/// The zstd level: the fastest of the positive levels.
const LEVEL: i32 = 1;
/// Octets of the first read, which usually covers parsed part and header.
const FIRST_READ: usize = 4 * 1024;
/// Octets of the first read when the parsed part alone is needed.
const FIRST_READ_PARSED: usize = 2 * 1024;

/// The fewest bodies worth a read-ahead, and the largest distance in octets between consecutive bodies.
const AHEAD_MIN: usize = 8;
const GAP_MAX: u64 = 32 * 1024;

/// A message made ready to be stored, away from the store: hashed, compressed, cut in parts.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(crate) payload: Vec<u8>,
    pub(crate) hash: [u8; 32],
    pub(crate) octets: u32,
    pub(crate) references: Vec<u64>,
}

impl Prepared {
    /// Prepares a message with lines ended by CRLF or LF, its parse result, and hashes of its message id (0
    /// without a message id) and of the referenced message ids: messages of an account with a common hash are a
    /// thread.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooLarge`].
    pub fn new(message: &[u8], parsed: &[u8], references: &[u64]) -> Result<Self, StoreError> {
        let max = crate::limits::MESSAGE_OCTETS_MAX;
        let octets = u32::try_from(message.len())
            .ok()
            .filter(|octets| *octets <= max);
        let (Some(octets), Ok(parsed_len)) = (octets, u32::try_from(parsed.len())) else {
            return Err(StoreError::TooLarge {
                max: u64::from(max),
            });
        };
        let (header, rest) = message.split_at(header_len(message));
        let compressed = compress(rest);
        let codec = if compressed.is_some() { ZSTD } else { PLAIN };
        let hash = *blake3::hash(message).as_bytes();
        let stored = compressed.as_deref().unwrap_or(rest);
        let mut payload =
            Vec::with_capacity(BODY_HEAD + parsed.len() + header.len() + stored.len());
        payload.extend_from_slice(&[VERSION, codec, 0, 0]);
        payload.extend_from_slice(&parsed_len.to_le_bytes());
        payload.extend_from_slice(&(header.len() as u32).to_le_bytes());
        payload.extend_from_slice(&(rest.len() as u32).to_le_bytes());
        payload.extend_from_slice(&vere_checksum::crc32(parsed).to_le_bytes());
        payload.extend_from_slice(&vere_checksum::crc32(header).to_le_bytes());
        payload.extend_from_slice(&hash);
        payload.extend_from_slice(parsed);
        payload.extend_from_slice(header);
        payload.extend_from_slice(stored);
        Ok(Self {
            payload,
            hash,
            octets,
            references: references.to_vec(),
        })
    }

    /// Octets of the message.
    #[must_use]
    pub fn octets(&self) -> u32 {
        self.octets
    }

    /// Returns the identity of the content; messages with equal octets have equal identities.
    #[must_use]
    pub fn content(&self) -> [u8; 16] {
        let mut content = [0; 16];
        content.copy_from_slice(&self.hash[..16]);
        content
    }
}

/// Compresses data that becomes at least an eighth smaller; the inverse is [`Unpacker`].
#[must_use]
pub fn compress(rest: &[u8]) -> Option<Vec<u8>> {
    if rest.len() < COMPRESS_FROM {
        return None;
    }
    let compressed = zstd::bulk::compress(rest, LEVEL).ok()?;
    (compressed.len() <= rest.len() - rest.len() / 8).then_some(compressed)
}

/// Whether a record, possibly followed by other records, is the body of a message with this hash.
pub(crate) fn is_body_of(record: &[u8], log: u64, blob: BlobId, hash: &[u8; 32]) -> bool {
    let head = record.first_chunk();
    let head = head.and_then(|head| RecordHead::decode(head, log));
    let is_it = |head: RecordHead| head.position == blob.0 && head.kind == RecordKind::Body;
    let its = record.get(RECORD_HEAD..RECORD_HEAD + BODY_HEAD);
    head.is_some_and(is_it) && its.is_some_and(|fixed| fixed[24..56] == hash[..])
}

/// Finds bodies without access to the store, through a view of the log's files at one moment. Bodies removed since
/// then can still be read.
#[derive(Debug, Clone)]
pub struct BodyReader<S: Storage> {
    pub(crate) segments: Segments<S::File>,
    pub(crate) written: u64,
    pub(crate) log: u64,
}

impl<S: Storage> BodyReader<S> {
    /// Reads the beginning of a body: at least the parse result.
    ///
    /// # Errors
    ///
    /// [`StoreError::Gone`] for a missing body, [`StoreError::Damaged`], [`StoreError::Failed`].
    pub fn open(&self, blob: BlobId) -> Result<Body<S::File>, StoreError> {
        self.open_with(blob, FIRST_READ, Vec::new())
    }

    /// As `open`, into memory left by an earlier body ([`Body::into_memory`]).
    ///
    /// # Errors
    ///
    /// As [`BodyReader::open`].
    pub fn open_into(&self, blob: BlobId, memory: Vec<u8>) -> Result<Body<S::File>, StoreError> {
        self.open_with(blob, FIRST_READ, memory)
    }

    /// As `open_into`, for callers that need only the parse result: less is read at once.
    ///
    /// # Errors
    ///
    /// As [`BodyReader::open`].
    pub fn open_parsed(&self, blob: BlobId, memory: Vec<u8>) -> Result<Body<S::File>, StoreError> {
        self.open_with(blob, FIRST_READ_PARSED, memory)
    }

    /// Announces the bodies to be read next, in order. For bodies close together the system then reads ahead,
    /// which the system would not do by itself because of the gaps between the parts read.
    pub fn will_need(&self, blobs: impl Iterator<Item = BlobId>) {
        let segment = |blob: u64| self.segments.range(..=blob).next_back().map(|at| *at.0);
        let known = blobs.map(|blob| blob.0).filter(|blob| *blob < self.written);
        let blobs: Vec<u64> = known.collect();
        for run in blobs.chunk_by(|one, next| one <= next && segment(*one) == segment(*next)) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                continue;
            };
            let is_dense = (last - first) / run.len() as u64 <= GAP_MAX;
            if run.len() < AHEAD_MIN || !is_dense {
                continue;
            }
            let place = |blob: &u64| locate(&self.segments, self.log, *blob, self.written);
            if let (Ok(Some(from)), Ok(Some(to))) = (place(first), place(last)) {
                let octets = to.offset.saturating_sub(from.offset) + FIRST_READ as u64;
                from.file.will_need(from.offset, octets);
            }
        }
    }

    fn open_with(
        &self,
        blob: BlobId,
        first: usize,
        mut octets: Vec<u8>,
    ) -> Result<Body<S::File>, StoreError> {
        if blob.0 >= self.written {
            return Err(StoreError::Gone);
        }
        let place = locate(&self.segments, self.log, blob.0, self.written)?;
        let Some(Place {
            file,
            offset,
            available,
        }) = place
        else {
            return Err(StoreError::Gone);
        };
        let first = (first as u64).min(available) as usize;
        octets.resize(first, 0);
        file.read_at(&mut octets, offset)
            .map_err(|error| failed(error, blob))?;
        let head = octets
            .first_chunk()
            .and_then(|head| RecordHead::decode(head, self.log));
        let fits = |head: &RecordHead| head.end() - head.position <= available;
        let head = head.filter(|head| head.position == blob.0 && head.kind == RecordKind::Body);
        let head = head.filter(fits);
        let head = head.ok_or(StoreError::Gone)?;
        let fixed = octets.get(RECORD_HEAD..RECORD_HEAD + BODY_HEAD);
        let fixed = fixed.filter(|fixed| fixed[0] == VERSION && fixed[1] <= ZSTD);
        let fixed = fixed.ok_or_else(|| damaged(blob))?;
        let mut hash = [0; 32];
        hash.copy_from_slice(&fixed[24..56]);
        let body = Body {
            codec: fixed[1],
            parsed: u32_at(fixed, 4) as usize,
            header: u32_at(fixed, 8) as usize,
            rest: u32_at(fixed, 12) as usize,
            parsed_crc: u32_at(fixed, 16),
            header_crc: u32_at(fixed, 20),
            hash,
            blob,
            head,
            file,
            offset,
            octets,
        };
        if body.sizes_fit() {
            Ok(body)
        } else {
            Err(damaged(blob))
        }
    }
}

/// A file that ends before its records is damaged; any other error may pass.
fn failed(error: io::Error, blob: BlobId) -> StoreError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(blob),
        _ => StoreError::Failed(error.to_string()),
    }
}

fn damaged(blob: BlobId) -> StoreError {
    StoreError::Damaged(format!("body at position {}", blob.0))
}

/// Decompresses, repeatedly with the same memory: allocating the decompressor's memory costs more than
/// decompressing most messages.
#[derive(Default)]
pub struct Unpacker(Option<zstd::bulk::Decompressor<'static>>);

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

impl Unpacker {
    /// Decompresses `stored` into `out`. Returns `None` if the result does not fill `out` exactly.
    pub fn unpack(&mut self, stored: &[u8], out: &mut [u8]) -> Option<()> {
        let decompressor = match &mut self.0 {
            Some(decompressor) => decompressor,
            none => none.insert(zstd::bulk::Decompressor::new().ok()?),
        };
        let len = decompressor.decompress_to_buffer(stored, out).ok()?;
        (len == out.len()).then_some(())
    }
}

/// An open body.
#[derive(Debug)]
pub struct Body<F> {
    codec: u8,
    parsed: usize,
    header: usize,
    rest: usize,
    parsed_crc: u32,
    header_crc: u32,
    hash: [u8; 32],
    blob: BlobId,
    head: RecordHead,
    file: F,
    offset: u64,
    /// The beginning of the record.
    octets: Vec<u8>,
}

impl<F: StorageFile> Body<F> {
    /// Whether the sizes of the parts match the record; wrong sizes of compressed data are detected later, and no
    /// message exceeds the store's limit.
    fn sizes_fit(&self) -> bool {
        let stored = (self.head.length as usize).checked_sub(BODY_HEAD);
        let parts = self.parsed.checked_add(self.header);
        let rest = stored.zip(parts);
        let rest = rest.and_then(|(stored, parts)| stored.checked_sub(parts));
        rest.is_some_and(|rest| match self.codec {
            PLAIN => rest == self.rest,
            _ => self.octets() <= crate::limits::MESSAGE_OCTETS_MAX as usize,
        })
    }

    /// Octets of the header, the empty line included.
    #[must_use]
    pub fn header_octets(&self) -> usize {
        self.header
    }

    /// Octets of the message.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.header + self.rest
    }

    /// Octets of the body in the log.
    pub(crate) fn stored_octets(&self) -> u64 {
        self.head.end() - self.head.position
    }

    /// The hash of the message.
    pub(crate) fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// The parse result.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`], [`StoreError::Failed`].
    pub fn parsed(&mut self) -> Result<&[u8], StoreError> {
        let start = RECORD_HEAD + BODY_HEAD;
        let (crc, end) = (self.parsed_crc, start + self.parsed);
        self.checked(start, end, crc)
    }

    /// The header as received, with the empty line.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`], [`StoreError::Failed`].
    pub fn header(&mut self) -> Result<&[u8], StoreError> {
        let start = RECORD_HEAD + BODY_HEAD + self.parsed;
        let (crc, end) = (self.header_crc, start + self.header);
        self.checked(start, end, crc)
    }

    /// The memory of the body, for reuse.
    #[must_use]
    pub fn into_memory(self) -> Vec<u8> {
        self.octets
    }

    /// The whole message as received.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`], [`StoreError::Failed`].
    pub fn message(&mut self) -> Result<Vec<u8>, StoreError> {
        self.message_with(&mut Unpacker::default())
    }

    /// Like [`Body::message`], with an unpacker reused across many messages.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`], [`StoreError::Failed`].
    pub fn message_with(&mut self, unpacker: &mut Unpacker) -> Result<Vec<u8>, StoreError> {
        let end = RECORD_HEAD + self.head.length as usize;
        let crc = self.head.payload_crc;
        self.checked(RECORD_HEAD, end, crc)?;
        let header = RECORD_HEAD + BODY_HEAD + self.parsed;
        let stored = &self.octets[header + self.header..end];
        let mut message = Vec::with_capacity(self.octets());
        message.extend_from_slice(&self.octets[header..header + self.header]);
        if self.codec == PLAIN {
            message.extend_from_slice(stored);
        } else {
            message.resize(self.octets(), 0);
            let unpacked = unpacker.unpack(stored, &mut message[self.header..]);
            unpacked.ok_or_else(|| damaged(self.blob))?;
        }
        if message.len() == self.octets() {
            Ok(message)
        } else {
            Err(damaged(self.blob))
        }
    }

    /// Octets of the record with a verified checksum, read if not read before.
    fn checked(&mut self, start: usize, end: usize, crc: u32) -> Result<&[u8], StoreError> {
        let have = self.octets.len();
        if have < end {
            self.octets.resize(end, 0);
            let at = self.offset + have as u64;
            self.file
                .read_at(&mut self.octets[have..], at)
                .map_err(|error| failed(error, self.blob))?;
        }
        let part = &self.octets[start..end];
        if vere_checksum::crc32(part) == crc {
            Ok(part)
        } else {
            Err(damaged(self.blob))
        }
    }
}
