//! Reads the fields of packets and frames.

use std::net::{IpAddr, Ipv6Addr};

/// Octets that are no packet or frame: the fault of the other process, after which the connection is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandoffError {
    /// The octets have this unknown version.
    #[error("expected version {expected}; found version {found}")]
    Version {
        /// The version of this program.
        expected: u8,
        /// That of the octets.
        found: u8,
    },
    /// The octets have this kind, which is not meant here.
    #[error("expected a kind for this side; found kind {0}")]
    Kind(u8),
    /// A length or number is above its limit.
    #[error("expected at most {max} in {field}; found {found}")]
    TooMuch {
        /// The field.
        field: &'static str,
        /// The limit.
        max: usize,
        /// The length or number.
        found: usize,
    },
    /// The octets end within a field.
    #[error("expected {wanted} octets in {field}; found {found}")]
    Short {
        /// The field.
        field: &'static str,
        /// The octets that the field needs.
        wanted: usize,
        /// The octets that are left.
        found: usize,
    },
    /// This many octets follow the last field.
    #[error("expected the end; found {0} more octets")]
    Trailing(usize),
    /// A field has a value without meaning.
    #[error("expected {expected} in {field}; found {found}")]
    Value {
        /// The field.
        field: &'static str,
        /// The values with a meaning.
        expected: &'static str,
        /// The value.
        found: u8,
    },
    /// A text is not UTF-8.
    #[error("expected UTF-8 in {0}; found other octets")]
    Utf8(&'static str),
}

/// The octets not read yet.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(
        &mut self,
        field: &'static str,
        wanted: usize,
    ) -> Result<&'a [u8], HandoffError> {
        let found = self.0.len();
        let short = HandoffError::Short {
            field,
            wanted,
            found,
        };
        let (taken, rest) = self.0.split_at_checked(wanted).ok_or(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], HandoffError> {
        let found = self.0.len();
        let short = HandoffError::Short {
            field,
            wanted: N,
            found,
        };
        let (taken, rest) = self.0.split_first_chunk().ok_or(short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn octet(&mut self, field: &'static str) -> Result<u8, HandoffError> {
        self.array(field).map(u8::from_le_bytes)
    }

    pub(super) fn long(&mut self, field: &'static str) -> Result<u64, HandoffError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// An address of 16 octets, of which an IPv4 address is mapped.
    pub(super) fn address(&mut self, field: &'static str) -> Result<IpAddr, HandoffError> {
        let address = Ipv6Addr::from(self.array::<16>(field)?);
        Ok(IpAddr::V6(address).to_canonical())
    }

    pub(super) fn count(&mut self, field: &'static str) -> Result<u32, HandoffError> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// A length or number of at most `max`.
    pub(super) fn length(
        &mut self,
        field: &'static str,
        max: usize,
    ) -> Result<usize, HandoffError> {
        let found = self.count(field)?;
        let found = usize::try_from(found).unwrap_or(usize::MAX);
        match found <= max {
            true => Ok(found),
            false => Err(HandoffError::TooMuch { field, max, found }),
        }
    }

    /// 0 or 1.
    pub(super) fn flag(&mut self, field: &'static str) -> Result<bool, HandoffError> {
        match self.octet(field)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(HandoffError::Value {
                field,
                expected: "0 or 1",
                found,
            }),
        }
    }

    /// The rest, as a text.
    pub(super) fn text(&mut self, field: &'static str) -> Result<&'a str, HandoffError> {
        let octets = std::mem::take(&mut self.0);
        std::str::from_utf8(octets).map_err(|_| HandoffError::Utf8(field))
    }

    pub(super) const fn end(&self) -> Result<(), HandoffError> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(HandoffError::Trailing(more)),
        }
    }
}

/// Appends a length or number.
pub(super) fn put_length(to: &mut Vec<u8>, length: usize) {
    // The other side refuses an impossible length.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    to.extend_from_slice(&length.to_le_bytes());
}
