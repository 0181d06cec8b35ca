//! The octets of a segment file.
//!
//! ```text
//! head     0  magic "VERELOG" 0 (8) | format version u32 = 3 | payload length u32
//!         16  log id u64 | segment number u64 | position u64 | synced u64
//!         48  crc32 of the payload u32 | crc32 of octets 0..52 u32
//!         56  payload, the engine's
//! entry    0  log id u64 | position u64 | synced u64
//!         24  payload length u32 | crc32 of the payload u32 | crc32 of octets 0..32 u32
//!         36  payload, the engine's
//! mark     0  log id u64 | synced u64 | serial u64 | oldest segment u64
//!         32  crc32 of octets 0..32 u32
//! ```
//! All numbers are little-endian. A *position* counts the octets of entries, headers included, since the
//! beginning of the log; the position of an entry or a segment is the position of its beginning. *synced*
//! is the position up to which all octets were on stable storage at the time of writing: damage before
//! *synced* is therefore not the tail of an interrupted write. The log id is random, so that no message can
//! contain octets that look like an entry.
//!
//! The checksums are CRC-32 instead of the CRC-32C of the frames within, on purpose: the CRC of a whole
//! frame, checksum included, is the same for all frames, so the CRC-32C of an entry would depend on the
//! lengths of its frames only. Files are reused, so where a write did not reach the disk there may well be
//! older frames of the same lengths.

/// The version written and read. In version 2 the frames within entries had other checksums.
pub(super) const VERSION: u32 = 3;
/// Octets of a segment's head without the payload.
pub(super) const HEAD_LEN: usize = 56;
/// Octets of an entry without the payload.
pub(super) const ENTRY_LEN: usize = 36;
/// Octets of a mark.
pub(super) const MARK_LEN: usize = 36;

const MAGIC: &[u8; 8] = b"VERELOG\0";

/// A segment's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) payload_len: u32,
    pub(super) payload_crc: u32,
    pub(super) log_id: u64,
    pub(super) number: u64,
    pub(super) position: u64,
    pub(super) synced: u64,
}

/// The error in the octets of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadError {
    /// The octets are not a head.
    Damaged,
    /// The head has this unsupported version.
    Version(u32),
}

impl Head {
    pub(super) fn encode(&self) -> [u8; HEAD_LEN] {
        let mut out = [0; HEAD_LEN];
        out[0..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&self.payload_len.to_le_bytes());
        out[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        out[24..32].copy_from_slice(&self.number.to_le_bytes());
        out[32..40].copy_from_slice(&self.position.to_le_bytes());
        out[40..48].copy_from_slice(&self.synced.to_le_bytes());
        out[48..52].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = vere_checksum::crc32(&out[..52]);
        out[52..56].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(super) fn decode(octets: &[u8; HEAD_LEN]) -> Result<Self, HeadError> {
        if !octets.starts_with(MAGIC) || u32_at(octets, 52) != vere_checksum::crc32(&octets[..52]) {
            return Err(HeadError::Damaged);
        }
        let version = u32_at(octets, 8);
        if version != VERSION {
            return Err(HeadError::Version(version));
        }
        Ok(Self {
            payload_len: u32_at(octets, 12),
            payload_crc: u32_at(octets, 48),
            log_id: u64_at(octets, 16),
            number: u64_at(octets, 24),
            position: u64_at(octets, 32),
            synced: u64_at(octets, 40),
        })
    }

    /// Where the first entry begins in the file.
    pub(super) const fn entries_at(&self) -> u64 {
        HEAD_LEN as u64 + self.payload_len as u64
    }
}

/// An entry's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) log_id: u64,
    pub(super) position: u64,
    pub(super) synced: u64,
    pub(super) payload_len: u32,
    pub(super) payload_crc: u32,
}

impl Entry {
    pub(super) fn encode(&self) -> [u8; ENTRY_LEN] {
        let mut out = [0; ENTRY_LEN];
        out[0..8].copy_from_slice(&self.log_id.to_le_bytes());
        out[8..16].copy_from_slice(&self.position.to_le_bytes());
        out[16..24].copy_from_slice(&self.synced.to_le_bytes());
        out[24..28].copy_from_slice(&self.payload_len.to_le_bytes());
        out[28..32].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = vere_checksum::crc32(&out[..32]);
        out[32..36].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// `None` when the octets are not an entry of this log.
    pub(super) fn decode(octets: &[u8; ENTRY_LEN], log_id: u64) -> Option<Self> {
        if u64_at(octets, 0) != log_id || u32_at(octets, 32) != vere_checksum::crc32(&octets[..32])
        {
            return None;
        }
        Some(Self {
            log_id,
            position: u64_at(octets, 8),
            synced: u64_at(octets, 16),
            payload_len: u32_at(octets, 24),
            payload_crc: u32_at(octets, 28),
        })
    }

    /// Octets with the payload.
    pub(super) const fn len(&self) -> u64 {
        ENTRY_LEN as u64 + self.payload_len as u64
    }
}

/// How far a log is synced, noted beside it from time to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) log_id: u64,
    pub(super) synced: u64,
    /// The mark with the higher serial is newer.
    pub(super) serial: u64,
    /// The first segment still needed.
    pub(super) oldest: u64,
}

impl Mark {
    pub(super) fn encode(&self) -> [u8; MARK_LEN] {
        let mut out = [0; MARK_LEN];
        out[0..8].copy_from_slice(&self.log_id.to_le_bytes());
        out[8..16].copy_from_slice(&self.synced.to_le_bytes());
        out[16..24].copy_from_slice(&self.serial.to_le_bytes());
        out[24..32].copy_from_slice(&self.oldest.to_le_bytes());
        let crc = vere_checksum::crc32(&out[..32]);
        out[32..36].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(super) fn decode(octets: &[u8; MARK_LEN]) -> Option<Self> {
        (u32_at(octets, 32) == vere_checksum::crc32(&octets[..32])).then(|| Self {
            log_id: u64_at(octets, 0),
            synced: u64_at(octets, 8),
            serial: u64_at(octets, 16),
            oldest: u64_at(octets, 24),
        })
    }
}

/// The file of a segment.
pub(super) fn segment_name(number: u64) -> String {
    format!("{number:016x}.log")
}

/// The segment number of a file name, if the file is a segment.
pub(super) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (segment_name(number) == name).then_some(number)
}

fn u32_at(octets: &[u8], at: usize) -> u32 {
    octets[at..]
        .first_chunk()
        .map_or(0, |field| u32::from_le_bytes(*field))
}

fn u64_at(octets: &[u8], at: usize) -> u64 {
    octets[at..]
        .first_chunk()
        .map_or(0, |field| u64::from_le_bytes(*field))
}
