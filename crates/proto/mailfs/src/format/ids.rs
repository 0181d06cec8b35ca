//! Ids: mails, volumes, chunks, packs.

use std::fmt;

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

    /// The number of a writer's mail; absent for a sequence above [`Self::SEQUENCE_MAX`].
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
}
