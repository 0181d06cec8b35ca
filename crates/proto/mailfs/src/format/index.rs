//! The index of a mail: what each frame before the last one has.
//!
//! ```text
//! index    0  version u8 = 1 | 0 u8 | entries u16
//!          4  entries x { at u32 | sealed length u32 | chunk id (16) | inode u64 | file offset u64 }
//!                                                     pages: chunk id and inode 0, file offset = covered generation
//! ```

use super::bounds::FRAMES_MAX;
use super::error::FormatError;
use super::frames::Place;
use super::ids::ChunkId;
use super::wire::{Reader, within};

/// An entry for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// The frame.
    pub place: Place,
    /// The chunk; zeros for a page.
    pub chunk: ChunkId,
    /// The inode at writing; 0 for a page.
    pub inode: u64,
    /// The offset in the file at writing; the covered generation for a page.
    pub offset: u64,
}

/// The index of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    /// The entries, in order of frames.
    pub entries: Vec<IndexEntry>,
}

impl Index {
    /// The octets.
    ///
    /// # Errors
    ///
    /// For more entries than a mail may have frames.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        let mut out = Vec::new();
        self.put(&mut out)?;
        Ok(out)
    }

    /// Reads an index.
    ///
    /// # Errors
    ///
    /// If the octets are not exactly an index of a known version.
    pub fn decode(octets: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new("index", octets);
        let index = Self::read(&mut reader)?;
        reader.end()?;
        Ok(index)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        within("entries of an index", self.entries.len(), FRAMES_MAX)?;
        let count = u16::try_from(self.entries.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&[1, 0]);
        out.extend_from_slice(&count.to_le_bytes());
        for entry in &self.entries {
            out.extend_from_slice(&entry.place.at.to_le_bytes());
            out.extend_from_slice(&entry.place.sealed_len.to_le_bytes());
            out.extend_from_slice(&entry.chunk.0);
            out.extend_from_slice(&entry.inode.to_le_bytes());
            out.extend_from_slice(&entry.offset.to_le_bytes());
        }
        Ok(())
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        reader.version("format of an index")?;
        reader.zeros(1)?;
        let count = reader.u16()?;
        within("entries of an index", count.into(), FRAMES_MAX)?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let (at, sealed_len) = (reader.u32()?, reader.u32()?);
            entries.push(IndexEntry {
                place: Place { at, sealed_len },
                chunk: ChunkId(reader.array()?),
                inode: reader.u64()?,
                offset: reader.u64()?,
            });
        }
        Ok(Self { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: u32) -> IndexEntry {
        IndexEntry {
            place: Place {
                at,
                sealed_len: 0x0102,
            },
            chunk: ChunkId(*b"chunk chunk chun"),
            inode: 0x0304,
            offset: 0x0506,
        }
    }

    #[test]
    fn octets_of_an_index() {
        let index = Index {
            entries: vec![entry(68), entry(0x0a0b_0c0d)],
        };
        let octets = index.encode().unwrap();
        let tail = b"\x02\x01\0\0chunk chunk chun\x04\x03\0\0\0\0\0\0\x06\x05\0\0\0\0\0\0";
        let expected = [
            &b"\x01\0\x02\0\x44\0\0\0"[..],
            tail,
            b"\x0d\x0c\x0b\x0a",
            tail,
        ];
        assert_eq!(octets, expected.concat());
        assert_eq!(Index::decode(&octets), Ok(index));
        assert_eq!(Index::default().encode().unwrap(), b"\x01\0\0\0");
        for cut in 0..octets.len() {
            assert!(Index::decode(&octets[..cut]).is_err(), "{cut} octets");
        }
    }

    #[test]
    fn indexes_have_bounds() {
        let most = Index {
            entries: vec![entry(1); FRAMES_MAX],
        };
        assert_eq!(Index::decode(&most.encode().unwrap()), Ok(most.clone()));
        let mut more = most;
        more.entries.push(entry(2));
        assert!(more.encode().is_err());
        let text = |octets: &[u8]| Index::decode(octets).unwrap_err().to_string();
        assert_eq!(
            text(b"\x01\0\x01\x10"),
            "entries of an index: expected at most 4096; found 4097"
        );
        assert_eq!(
            text(b"\x02\0\0\0"),
            "format of an index: expected version 1; found 2"
        );
        assert_eq!(
            text(b"\x01\x01\0\0"),
            "index: expected zeros in reserved octets; found other octets"
        );
        assert_eq!(
            text(b"\x01\0\0\0\0"),
            "index: expected the end; found 1 more octets"
        );
    }
}
