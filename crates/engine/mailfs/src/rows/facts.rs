//! Rows about the volume: where packs are, who writes, how mailboxes are numbered.
//!
//! ```text
//! pack     mail id (16) | kind u8 | group u16 | decoded octets u32 | copies: u8 x copy (8)
//! writer   generation of the registration u64 | last seen i64 (ms) | machine: the rest
//! mailbox  UIDVALIDITY u32
//! ```

use super::octets::{Reader, RowError};
use crate::format::{Kind, MailCopy, MailId};

/// Copies of a pack.
pub const COPIES_MAX: usize = 64;

/// A pack, and where its copies are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackRow {
    /// The mail.
    pub mail: MailId,
    /// The kind of the mail: data, or a commit with content.
    pub kind: Kind,
    /// The group.
    pub group: u16,
    /// Octets of the decoded body.
    pub octets: u32,
    /// The copies.
    pub copies: Vec<MailCopy>,
}

impl PackRow {
    /// The octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        out.extend_from_slice(&self.mail.0);
        out.push(self.kind as u8);
        out.extend_from_slice(&self.group.to_le_bytes());
        out.extend_from_slice(&self.octets.to_le_bytes());
        let copies = self.copies.iter().take(COPIES_MAX);
        out.push(u8::try_from(copies.len()).unwrap_or(u8::MAX));
        for copy in copies {
            copy.encode(&mut out);
        }
        out
    }

    /// Reads the octets.
    ///
    /// # Errors
    ///
    /// The first field that no pack has.
    pub fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        let mail = MailId(reader.array("a mail id")?);
        let kind = reader.u8("a kind of mail")?;
        let kind = Kind::ALL.into_iter().find(|of| *of as u8 == kind);
        let kind = kind.ok_or_else(|| RowError::new("a kind of mail, 1 to 6", "another number"))?;
        let group = u16::from_le_bytes(reader.array("a group")?);
        let decoded = u32::from_le_bytes(reader.array("a count of octets")?);
        let count = usize::from(reader.u8("a count of copies")?);
        if count > COPIES_MAX {
            return Err(RowError::new("at most 64 copies", count.to_string()));
        }
        let mut copies = Vec::with_capacity(count);
        for _ in 0..count {
            let copy: [u8; MailCopy::OCTETS] = reader.array("a copy")?;
            let copy = MailCopy::decode(&copy);
            copies.push(copy.map_err(|error| RowError::new("a copy", error.to_string()))?);
        }
        reader.end()?;
        Ok(Self {
            mail,
            kind,
            group,
            octets: decoded,
            copies,
        })
    }
}

/// An installation that writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterRow {
    /// The name of the machine.
    pub machine: String,
    /// The generation of the registration.
    pub generation: u64,
    /// When the writer was there last: milliseconds since 1970.
    pub last_seen: i64,
}

impl WriterRow {
    /// The octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16_usize.saturating_add(self.machine.len()));
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.last_seen.to_le_bytes());
        out.extend_from_slice(self.machine.as_bytes());
        out
    }

    /// Reads the octets.
    ///
    /// # Errors
    ///
    /// The first field that no writer has.
    pub fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        let generation = reader.u64("a generation")?;
        let last_seen = i64::from_le_bytes(reader.array("a time")?);
        let machine = String::from_utf8_lossy(reader.rest()).into_owned();
        Ok(Self {
            machine,
            generation,
            last_seen,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_have_these_octets() {
        let copy = MailCopy {
            account: 2,
            mailbox: 16,
            uid: 9,
        };
        let row = PackRow {
            mail: MailId([7; 16]),
            kind: Kind::Data,
            group: 3,
            octets: 1_000,
            copies: vec![copy],
        };
        let octets = row.encode();
        let expected = [
            &[7; 16][..],
            &[5, 3, 0, 0xE8, 3, 0, 0, 1, 2, 0, 16, 0, 9, 0, 0, 0],
        ];
        assert_eq!(octets, expected.concat());
        assert_eq!(PackRow::decode(&octets), Ok(row));
        for length in 0..octets.len() {
            assert!(PackRow::decode(&octets[..length]).is_err());
        }
    }

    #[test]
    fn writers_come_back() {
        let row = WriterRow {
            machine: "laptop".to_owned(),
            generation: 5,
            last_seen: -1,
        };
        assert_eq!(WriterRow::decode(&row.encode()), Ok(row));
        assert!(WriterRow::decode(&[0; 15]).is_err());
    }
}
