//! The head of a mail's body.
//!
//! ```text
//! head     0  "VEREFS" (6) | format version u8 = 1 | kind u8: 1 volume, 2 key slot, 3 commit, 4 pages, 5 data pack, 6 probe
//!          8  volume id (16) | mail id (16)
//!         40  key epoch u16 | group u16 | frames u32
//!         48  writer u16 | 0 u16 | sealed length of the last frame u32 | sequence u64 of the writer
//!         64  crc32c of octets 0..64 u32 (tells damage on the way from a forgery)
//! ```

use std::fmt;

use super::bounds::FRAMES_MAX;
use super::error::FormatError;
use super::ids::{MailId, PackNumber, VolumeId};
use super::wire::{Reader, within};

/// Octets of a head.
pub const HEAD_OCTETS: usize = 68;
/// Octets of a head before the checksum: the associated data of frames.
pub(super) const COVERED: usize = 64;
const MAGIC: [u8; 6] = *b"VEREFS";
const VERSION: u8 = 1;

/// What a mail has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Facts of the volume.
    Volume = 1,
    /// A key slot.
    Slot = 2,
    /// Changes of metadata.
    Commit = 3,
    /// Pages of the tree.
    Pages = 4,
    /// Content of files.
    Data = 5,
    /// A trial of an account.
    Probe = 6,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Volume,
        Self::Slot,
        Self::Commit,
        Self::Pages,
        Self::Data,
        Self::Probe,
    ];

    /// The word in subjects and Message-IDs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Slot => "slot",
            Self::Commit => "commit",
            Self::Pages => "pages",
            Self::Data => "data",
            Self::Probe => "probe",
        }
    }

    fn of(number: u8) -> Result<Self, FormatError> {
        let known = Self::ALL.into_iter().find(|kind| *kind as u8 == number);
        known.ok_or(FormatError::Unknown {
            what: "kind of mail",
            expected: "1 to 6",
            found: number.into(),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The head of a mail's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The kind.
    pub kind: Kind,
    /// The volume.
    pub volume: VolumeId,
    /// The mail.
    pub mail: MailId,
    /// The key epoch.
    pub epoch: u16,
    /// The group of accounts.
    pub group: u16,
    /// Frames behind the head.
    pub frames: u32,
    /// The sealed length of the last frame.
    pub last_sealed_len: u32,
    /// Writer and sequence.
    pub pack: PackNumber,
}

impl Head {
    /// The octets, with the checksum.
    #[must_use]
    pub fn encode(&self) -> [u8; HEAD_OCTETS] {
        let covered = self.covered();
        let mut octets = [0; HEAD_OCTETS];
        let sum = vere_checksum::crc32c(&covered).to_le_bytes();
        let source = covered.iter().chain(&sum);
        octets
            .iter_mut()
            .zip(source)
            .for_each(|(to, from)| *to = *from);
        octets
    }

    /// The octets without the checksum.
    pub(super) fn covered(&self) -> [u8; COVERED] {
        let mut out = Vec::with_capacity(COVERED);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, self.kind as u8]);
        out.extend_from_slice(&self.volume.0);
        out.extend_from_slice(&self.mail.0);
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&self.group.to_le_bytes());
        out.extend_from_slice(&self.frames.to_le_bytes());
        out.extend_from_slice(&self.pack.writer().to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.last_sealed_len.to_le_bytes());
        out.extend_from_slice(&self.pack.sequence().to_le_bytes());
        out.first_chunk().copied().unwrap_or([0; COVERED])
    }

    /// Reads the head at the front of a body. Nothing of the head is authenticated by that.
    ///
    /// # Errors
    ///
    /// If the octets are no head of a known version, or were damaged.
    pub fn decode(body: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new("head of a mail", body);
        if reader.array()? != MAGIC {
            return Err(FormatError::Form {
                what: "head of a mail",
                expected: "the octets VEREFS",
            });
        }
        reader.version("format of a mail")?;
        let kind = reader.u8()?;
        let (volume, mail) = (VolumeId(reader.array()?), MailId(reader.array()?));
        let (epoch, group, frames) = (reader.u16()?, reader.u16()?, reader.u32()?);
        let writer = reader.u16()?;
        let reserved = reader.u16()?;
        let (last_sealed_len, sequence) = (reader.u32()?, reader.u64()?);
        let found = reader.u32()?;
        let expected = vere_checksum::crc32c(body.get(..COVERED).unwrap_or_default());
        if expected != found {
            return Err(FormatError::Checksum { expected, found });
        }
        if reserved != 0 {
            return Err(FormatError::Form {
                what: "head of a mail",
                expected: "zeros in reserved octets",
            });
        }
        within(
            "frames of a mail",
            usize::try_from(frames).unwrap_or(usize::MAX),
            FRAMES_MAX,
        )?;
        let pack = PackNumber::new(writer, sequence).ok_or(FormatError::Above {
            what: "sequence of a writer",
            max: PackNumber::SEQUENCE_MAX,
            found: sequence,
        })?;
        Ok(Self {
            kind: Kind::of(kind)?,
            volume,
            mail,
            epoch,
            group,
            frames,
            last_sealed_len,
            pack,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head {
            kind: Kind::Data,
            volume: VolumeId(*b"volume volume vo"),
            mail: MailId(*b"mail mail mail m"),
            epoch: 0x0102,
            group: 0x0304,
            frames: 0x0506,
            last_sealed_len: 0x0708_090a,
            pack: PackNumber::new(0x0b0c, 0x0d0e_0f10_1112).unwrap(),
        }
    }

    #[test]
    fn octets_of_a_head() {
        let octets = head().encode();
        assert_eq!(
            octets[..64],
            *b"VEREFS\x01\x05volume volume vomail mail mail m\x02\x01\x04\x03\x06\x05\0\0\x0c\x0b\0\0\x0a\x09\x08\x07\x12\x11\x10\x0f\x0e\x0d\0\0"
        );
        assert_eq!(
            octets[64..],
            vere_checksum::crc32c(&octets[..64]).to_le_bytes()
        );
        assert_eq!(Head::decode(&octets), Ok(head()));
        assert_eq!(octets[..64], head().covered());
    }

    #[test]
    fn short_and_damaged_heads_are_refused() {
        let octets = head().encode();
        for cut in 0..octets.len() {
            assert!(Head::decode(&octets[..cut]).is_err(), "{cut} octets");
        }
        for at in 0..octets.len() {
            for bit in 0..8 {
                let mut changed = octets;
                changed[at] ^= 1 << bit;
                assert!(Head::decode(&changed).is_err(), "bit {bit} of octet {at}");
            }
        }
    }

    /// Heads with a right checksum and a wrong field.
    #[test]
    fn fields_have_bounds() {
        let refused = |at: usize, octets: &[u8]| {
            let mut changed = head().encode();
            changed[at..at + octets.len()].copy_from_slice(octets);
            let sum = vere_checksum::crc32c(&changed[..64]);
            changed[64..].copy_from_slice(&sum.to_le_bytes());
            Head::decode(&changed).unwrap_err().to_string()
        };
        assert_eq!(
            refused(6, &[2]),
            "format of a mail: expected version 1; found 2"
        );
        assert_eq!(refused(7, &[0]), "kind of mail: expected 1 to 6; found 0");
        assert_eq!(refused(7, &[7]), "kind of mail: expected 1 to 6; found 7");
        assert_eq!(
            refused(44, &4_097_u32.to_le_bytes()),
            "frames of a mail: expected at most 4096; found 4097"
        );
        assert_eq!(
            refused(50, &[1]),
            "head of a mail: expected zeros in reserved octets; found other octets"
        );
        assert_eq!(
            refused(62, &[1]),
            "sequence of a writer: expected at most 281474976710655; found 295829010125074"
        );
        let most = Head {
            frames: 4_096,
            ..head()
        };
        assert_eq!(Head::decode(&most.encode()), Ok(most));
    }

    #[test]
    fn words_of_kinds() {
        let words = Kind::ALL.map(|kind| kind.to_string()).join(" ");
        assert_eq!(words, "volume slot commit pages data probe");
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind as u8), Ok(kind));
        }
    }
}
