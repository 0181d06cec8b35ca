//! Places: a copy finds a mail, a locator finds a frame.
//!
//! ```text
//! copy     0  account u16 | mailbox u16 | uid u32
//! locator  0  pack u64 (0: this mail) | mail id (16) | copy (8) | at u32 (offset in the decoded body) | sealed length u32
//! ```

use super::error::FormatError;
use super::ids::{MailId, PackNumber};
use super::wire::Reader;

/// Where an account keeps a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MailCopy {
    /// The account.
    pub account: u16,
    /// The mailbox: 1 `log`, 2 `pages`, 3 `head`, 16 + n `data-n`.
    pub mailbox: u16,
    /// The UID; 0 if not known yet.
    pub uid: u32,
}

impl MailCopy {
    /// Octets of a copy.
    pub const OCTETS: usize = 8;

    /// Appends the octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.account.to_le_bytes());
        out.extend_from_slice(&self.mailbox.to_le_bytes());
        out.extend_from_slice(&self.uid.to_le_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            account: reader.u16()?,
            mailbox: reader.u16()?,
            uid: reader.u32()?,
        })
    }

    /// Reads a copy.
    ///
    /// # Errors
    ///
    /// If the octets are not exactly a copy.
    pub fn decode(octets: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new("copy", octets);
        let copy = Self::read(&mut reader)?;
        reader.end()?;
        Ok(copy)
    }
}

/// Finds a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Locator {
    /// The pack; 0 for the mail that has the locator.
    pub pack: PackNumber,
    /// The mail.
    pub mail: MailId,
    /// A place of the mail.
    pub copy: MailCopy,
    /// The offset of the frame in the decoded body.
    pub at: u32,
    /// The sealed length of the frame.
    pub sealed_len: u32,
}

impl Locator {
    /// Octets of a locator.
    pub const OCTETS: usize = 40;

    /// Appends the octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.pack.0.to_le_bytes());
        out.extend_from_slice(&self.mail.0);
        self.copy.encode(out);
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&self.sealed_len.to_le_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            pack: PackNumber(reader.u64()?),
            mail: MailId(reader.array()?),
            copy: MailCopy::read(reader)?,
            at: reader.u32()?,
            sealed_len: reader.u32()?,
        })
    }

    /// Reads a locator.
    ///
    /// # Errors
    ///
    /// If the octets are not exactly a locator.
    pub fn decode(octets: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new("locator", octets);
        let locator = Self::read(&mut reader)?;
        reader.end()?;
        Ok(locator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_of_a_locator() {
        let locator = Locator {
            pack: PackNumber(0x0102_0304_0506_0708),
            mail: MailId(*b"sixteen octets.."),
            copy: MailCopy {
                account: 2,
                mailbox: 17,
                uid: 0x0a0b_0c0d,
            },
            at: 68,
            sealed_len: 0x0102,
        };
        let mut octets = Vec::new();
        locator.encode(&mut octets);
        assert_eq!(
            octets,
            b"\x08\x07\x06\x05\x04\x03\x02\x01sixteen octets..\x02\0\x11\0\x0d\x0c\x0b\x0a\x44\0\0\0\x02\x01\0\0"
        );
        assert_eq!(octets.len(), Locator::OCTETS);
        assert_eq!(Locator::decode(&octets), Ok(locator));
        assert_eq!(MailCopy::decode(&octets[24..32]), Ok(locator.copy));
        for cut in 0..octets.len() {
            assert!(Locator::decode(&octets[..cut]).is_err(), "{cut} octets");
        }
        octets.push(0);
        assert!(Locator::decode(&octets).is_err());
        assert!(MailCopy::decode(&octets[24..33]).is_err());
    }
}
