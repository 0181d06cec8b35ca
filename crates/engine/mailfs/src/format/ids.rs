//! Ids and places: mails, volumes, chunks, packs, copies, locators.

use std::fmt;

use super::error::FormatError;
use super::wire::Reader;

macro_rules! id {
    ($(#[$text:meta])* $name:ident) => {
        $(#[$text])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub [u8; 16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id! {
    /// The id of a mail, bound to its content.
    MailId
}
id! {
    /// The id of a volume, drawn at random once.
    VolumeId
}
id! {
    /// The id of a chunk, bound to its content by a key of the volume.
    ChunkId
}

impl MailId {
    /// No mail.
    pub const NONE: Self = Self([0; 16]);
}

impl VolumeId {
    /// The number in the names of mailboxes and in subjects, in 8 hexadecimal digits.
    #[must_use]
    pub const fn tag(self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_be_bytes([a, b, c, d])
    }
}

/// The number of a mail among all mails of a volume: the writer, and the writer's sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PackNumber(pub u64);

impl PackNumber {
    /// The last sequence number of a writer.
    pub const SEQUENCE_MAX: u64 = (1 << 48) - 1;

    /// The number of a writer's mail; none for a sequence above [`Self::SEQUENCE_MAX`].
    #[must_use]
    pub const fn new(writer: u16, sequence: u64) -> Option<Self> {
        if sequence > Self::SEQUENCE_MAX {
            return None;
        }
        Some(Self((writer as u64) << 48 | sequence))
    }

    /// The writer.
    #[must_use]
    pub const fn writer(self) -> u16 {
        let [a, b, ..] = self.0.to_be_bytes();
        u16::from_be_bytes([a, b])
    }

    /// The sequence of the writer.
    #[must_use]
    pub const fn sequence(self) -> u64 {
        self.0 & Self::SEQUENCE_MAX
    }
}

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
    fn pack_numbers_have_a_writer_and_a_sequence() {
        let pack = PackNumber::new(0x0102, 0x0304_0506_0708).unwrap();
        assert_eq!(pack.0, 0x0102_0304_0506_0708);
        assert_eq!((pack.writer(), pack.sequence()), (0x0102, 0x0304_0506_0708));
        let last = PackNumber::new(u16::MAX, PackNumber::SEQUENCE_MAX);
        assert_eq!(last, Some(PackNumber(u64::MAX)));
        assert_eq!(PackNumber::new(1, PackNumber::SEQUENCE_MAX + 1), None);
    }

    #[test]
    fn ids_print_as_hexadecimal_digits() {
        let volume = VolumeId(*b"\x3f\x9c\x0a\x110123456789ab");
        assert_eq!(volume.to_string(), "3f9c0a11303132333435363738396162");
        assert_eq!(format!("{volume:?}"), volume.to_string());
        assert_eq!(volume.tag(), 0x3f9c_0a11);
    }

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
