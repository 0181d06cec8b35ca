//! What an operator has ordered for a destination, for a time or until it is taken back, and its record
//! in the spool: so that it holds after a restart and for whoever takes the group over.
//!
//! Format version 1, little endian; times are ms since the Unix epoch, 0: not ordered,
//! 2^64 - 1: without an end:
//!
//! ```text
//! 0   u8   version = 1
//! 1   u8   0
//! 2   u64  held until
//! 10  u64  refused until
//! 18  u16  length of the destination, then its text in UTF-8; octets behind it are an error
//! ```

use std::fmt;

use vere_units::Timestamp;

use crate::destination::Destination;

/// The version this code writes, and the newest it reads.
pub const ORDER_VERSION: u8 = 1;
/// The queue in which orders lie: no destination is named like that.
pub const ORDERS_QUEUE: &str = "@orders";
/// The end of what has none.
pub const FOREVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// What is ordered for one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// For which.
    pub destination: Destination,
    /// Nothing is delivered before; mail is taken meanwhile, and its retries are not used up.
    pub held_until: Option<Timestamp>,
    /// No mail is taken before; what is queued is delivered.
    pub refused_until: Option<Timestamp>,
}

/// Why an order's record cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderError {
    /// Written by a newer version than this one reads.
    Version(u8),
    /// It is cut short, too long, or names no destination.
    Malformed,
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(found) => write!(
                f,
                "order has format version {found}, this program reads up to {ORDER_VERSION}"
            ),
            Self::Malformed => f.write_str("order is damaged"),
        }
    }
}

impl std::error::Error for OrderError {}

impl Order {
    /// Nothing ordered.
    #[must_use]
    pub const fn none(destination: Destination) -> Self {
        Self {
            destination,
            held_until: None,
            refused_until: None,
        }
    }

    /// Without what has ended.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        let in_force = |until: &Timestamp| *until > now;
        Self {
            held_until: self.held_until.filter(in_force),
            refused_until: self.refused_until.filter(in_force),
            ..self
        }
    }

    /// Whether nothing is ordered.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.held_until.is_none() && self.refused_until.is_none()
    }

    /// Encodes it as the metadata of a record.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let name = self.destination.to_string();
        let mut out = vec![ORDER_VERSION, 0];
        for time in [self.held_until, self.refused_until] {
            let millis = time.map_or(0, Timestamp::as_millis);
            out.extend_from_slice(&millis.to_le_bytes());
        }
        // A destination is a domain or a host with its port: its length was checked when it came in.
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&name.as_bytes()[..usize::from(length)]);
        out
    }

    /// Decodes a record's metadata.
    ///
    /// # Errors
    /// [`OrderError::Version`] when a newer program wrote it, [`OrderError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, OrderError> {
        let (&version, rest) = bytes.split_first().ok_or(OrderError::Malformed)?;
        if version != ORDER_VERSION {
            return Err(OrderError::Version(version));
        }
        let (head, name) = rest.split_at_checked(19).ok_or(OrderError::Malformed)?;
        let number = |at: usize| {
            let mut octets = [0; 8];
            octets.copy_from_slice(&head[at..at + 8]);
            let millis = u64::from_le_bytes(octets);
            (millis != 0).then(|| Timestamp::from_millis(millis))
        };
        let length = u16::from_le_bytes([head[17], head[18]]);
        let name = Some(name)
            .filter(|name| name.len() == usize::from(length))
            .and_then(|name| std::str::from_utf8(name).ok())
            .ok_or(OrderError::Malformed)?;
        Ok(Self {
            destination: name.parse().map_err(|_| OrderError::Malformed)?,
            held_until: number(1),
            refused_until: number(9),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            destination: Destination::Domain("b.c".to_owned()),
            held_until: Some(Timestamp::from_millis(0x0102)),
            refused_until: Some(FOREVER),
        }
    }

    #[test]
    fn golden_bytes_of_version_1() {
        let expected = [
            &[1, 0, 2, 1, 0, 0, 0, 0, 0, 0][..],
            &[0xff; 8],
            &[3, 0, b'b', b'.', b'c'],
        ]
        .concat();
        assert_eq!(order().encode(), expected);
        assert_eq!(Order::decode(&expected), Ok(order()));
    }

    #[test]
    fn damage_and_newer_versions_are_told_apart() {
        let bytes = order().encode();
        for end in 0..bytes.len() {
            assert_eq!(Order::decode(&bytes[..end]), Err(OrderError::Malformed));
        }
        let long = [&bytes[..], b"x"].concat();
        assert_eq!(Order::decode(&long), Err(OrderError::Malformed));
        assert_eq!(Order::decode(&[2, 0]), Err(OrderError::Version(2)));
    }

    #[test]
    fn what_has_ended_is_not_in_force() {
        let later = order().at(Timestamp::from_millis(0x0102));
        assert_eq!(
            (later.held_until, later.refused_until),
            (None, Some(FOREVER))
        );
        assert!(!later.is_none());
        assert!(Order::none(Destination::Local).is_none());
    }
}
