//! The octets of segments and records; `docs/internals/store-log.md` draws them.

/// The version of the format.
pub(crate) const VERSION: u32 = 1;
/// Octets of the head of a segment.
pub(crate) const SEGMENT_HEAD: usize = 64;
/// Octets of the head of a record.
pub(crate) const RECORD_HEAD: usize = 40;
/// The position of the first record of a store.
pub(crate) const FIRST_POSITION: u64 = 64;
/// The longest payload of a record.
pub(crate) const PAYLOAD_MAX: usize = 512 * 1024 * 1024;

const MAGIC: &[u8; 8] = b"VERESTOR";

/// The head of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    /// Random, made with the store.
    pub(crate) log: u64,
    /// The position of the segment's first record.
    pub(crate) first: u64,
    /// The position after the segment's last record if reclaiming wrote the segment again; 0 otherwise.
    pub(crate) end: u64,
}

/// The reason why octets are no segment head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// Damaged, or written only in part.
    Damaged,
    /// The head of another format version.
    Version(u32),
}

impl SegmentHead {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEAD] {
        let mut octets = [0; SEGMENT_HEAD];
        octets[..8].copy_from_slice(MAGIC);
        octets[8..12].copy_from_slice(&VERSION.to_le_bytes());
        octets[16..24].copy_from_slice(&self.log.to_le_bytes());
        octets[24..32].copy_from_slice(&self.first.to_le_bytes());
        octets[32..40].copy_from_slice(&self.end.to_le_bytes());
        let crc = vere_checksum::crc32(&octets[..60]);
        octets[60..].copy_from_slice(&crc.to_le_bytes());
        octets
    }

    pub(crate) fn decode(octets: &[u8; SEGMENT_HEAD]) -> Result<Self, HeadError> {
        if &octets[..8] != MAGIC || vere_checksum::crc32(&octets[..60]) != u32_at(octets, 60) {
            return Err(HeadError::Damaged);
        }
        match u32_at(octets, 8) {
            VERSION => Ok(Self {
                log: u64_at(octets, 16),
                first: u64_at(octets, 24),
                end: u64_at(octets, 32),
            }),
            version => Err(HeadError::Version(version)),
        }
    }
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// The single copy of a message.
    Body,
    /// A change of a partition.
    Batch,
    /// A kind known only to another version. The record is intact, so it is not reported as damage; its effect is
    /// unknown, so replay cannot skip it.
    Other(u8),
}

impl RecordKind {
    const fn octet(self) -> u8 {
        match self {
            Self::Body => 1,
            Self::Batch => 2,
            Self::Other(octet) => octet,
        }
    }

    const fn from_octet(octet: u8) -> Self {
        match octet {
            1 => Self::Body,
            2 => Self::Batch,
            other => Self::Other(other),
        }
    }
}

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub(crate) log: u64,
    pub(crate) position: u64,
    pub(crate) synced: u64,
    pub(crate) kind: RecordKind,
    pub(crate) length: u32,
    pub(crate) payload_crc: u32,
}

impl RecordHead {
    pub(crate) fn encode(&self) -> [u8; RECORD_HEAD] {
        let mut octets = [0; RECORD_HEAD];
        octets[..8].copy_from_slice(&self.log.to_le_bytes());
        octets[8..16].copy_from_slice(&self.position.to_le_bytes());
        octets[16..24].copy_from_slice(&self.synced.to_le_bytes());
        octets[24] = self.kind.octet();
        octets[28..32].copy_from_slice(&self.length.to_le_bytes());
        octets[32..36].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = vere_checksum::crc32(&octets[..36]);
        octets[36..].copy_from_slice(&crc.to_le_bytes());
        octets
    }

    /// Returns `None` if the octets are no record head of this log.
    pub(crate) fn decode(octets: &[u8; RECORD_HEAD], log: u64) -> Option<Self> {
        if u64_at(octets, 0) != log || vere_checksum::crc32(&octets[..36]) != u32_at(octets, 36) {
            return None;
        }
        Some(Self {
            log,
            position: u64_at(octets, 8),
            synced: u64_at(octets, 16),
            kind: RecordKind::from_octet(octets[24]),
            length: u32_at(octets, 28),
            payload_crc: u32_at(octets, 32),
        })
    }

    /// The position after the record.
    pub(crate) fn end(&self) -> u64 {
        self.position + RECORD_HEAD as u64 + u64::from(self.length)
    }
}

/// The file of a segment by the position of its first record.
pub(crate) fn segment_name(first: u64) -> String {
    format!("{first:016x}.log")
}

/// The position in the name of a segment's file.
pub(crate) fn segment_position(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    (digits.len() == 16)
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

pub(crate) fn u32_at(octets: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&octets[at..at + 4]);
    u32::from_le_bytes(number)
}

pub(crate) fn u64_at(octets: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&octets[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_and_damage_shows() {
        let head = SegmentHead {
            log: 7,
            first: 64,
            end: 0,
        };
        let octets = head.encode();
        assert_eq!(SegmentHead::decode(&octets), Ok(head));
        for at in 0..SEGMENT_HEAD {
            let mut damaged = octets;
            damaged[at] ^= 1;
            assert!(SegmentHead::decode(&damaged).is_err(), "octet {at}");
        }
        let mut record = RecordHead {
            log: 7,
            position: 64,
            synced: 0,
            kind: RecordKind::Other(3),
            length: 3,
            payload_crc: 9,
        };
        assert_eq!(RecordHead::decode(&record.encode(), 7), Some(record));
        record.kind = RecordKind::Batch;
        let octets = record.encode();
        assert_eq!(RecordHead::decode(&octets, 7), Some(record));
        assert_eq!(RecordHead::decode(&octets, 8), None);
        for at in 0..RECORD_HEAD {
            let mut damaged = octets;
            damaged[at] ^= 1;
            assert_eq!(RecordHead::decode(&damaged, 7), None, "octet {at}");
        }
    }

    #[test]
    fn names_of_segments_sort_by_position() {
        assert_eq!(segment_position(&segment_name(0xabc)), Some(0xabc));
        assert_eq!(segment_position("lock"), None);
        assert!(segment_name(255) < segment_name(256));
    }
}
