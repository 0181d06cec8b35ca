//! An operator's order for a destination, for a time or until withdrawn, and its record in the spool:
//! an order also applies after a restart and after a takeover of the group.
//!
//! Format versions 1 and 2, little endian; times are ms since the Unix epoch, 0: not ordered,
//! 2^64 - 1: without an end:
//!
//! ```text
//! 0   u8   version: 2 with another way, which a reader must know, else 1
//! 1   u8   0
//! 2   u64  held until
//! 10  u64  refused until
//! 18  u16  length of the destination, then its text in UTF-8
//!     from version 2:
//!     u64  goes another way until
//!     u16  length of where it goes, then its text in UTF-8
//! ```
//!
//! Surplus octets are an error.

use std::fmt;
use std::str::FromStr;

use vere_units::Timestamp;

use crate::destination::{Destination, Place};

/// The version written by this code, and the newest version that can be read.
pub const ORDER_VERSION: u8 = 2;
/// The queue of orders: no destination has this name.
pub const ORDERS_QUEUE: &str = "@orders";
/// The end of an order without an end.
pub const FOREVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// The order for a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// For which.
    pub destination: Destination,
    /// Deliveries are held until this time; new mail is still accepted, and retries are not consumed.
    pub held_until: Option<Timestamp>,
    /// New mail is refused until this time; queued mail is delivered.
    pub refused_until: Option<Timestamp>,
    /// Queued mail is sent elsewhere.
    pub detour: Option<Detour>,
}

/// Another way for the mail of a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detour {
    /// Where it goes; the wishes of the senders stay.
    pub to: Place,
    /// Before this time.
    pub until: Timestamp,
}

/// Why an order's record cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The record has a newer version than this program can read.
    #[error("order has format version {0}, this program reads up to {ORDER_VERSION}")]
    Version(u8),
    /// The record is cut short, too long, or names no destination.
    #[error("order is damaged")]
    Malformed,
}

impl Order {
    /// Nothing ordered.
    #[must_use]
    pub const fn none(destination: Destination) -> Self {
        Self {
            destination,
            held_until: None,
            refused_until: None,
            detour: None,
        }
    }

    /// The order without its expired parts.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        let in_force = |until: &Timestamp| *until > now;
        Self {
            held_until: self.held_until.filter(in_force),
            refused_until: self.refused_until.filter(in_force),
            detour: self.detour.filter(|detour| in_force(&detour.until)),
            ..self
        }
    }

    /// Whether the order is empty.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.held_until.is_none() && self.refused_until.is_none() && self.detour.is_none()
    }

    /// Encodes the order as the metadata of a record.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // A program that knows version 1 only would deliver to the wrong hosts.
        let version = if self.detour.is_some() { 2 } else { 1 };
        let mut out = vec![version, 0];
        for time in [self.held_until, self.refused_until] {
            let millis = time.map_or(0, Timestamp::as_millis);
            out.extend_from_slice(&millis.to_le_bytes());
        }
        push_name(&mut out, &self.destination);
        if let Some(detour) = &self.detour {
            out.extend_from_slice(&detour.until.as_millis().to_le_bytes());
            push_name(&mut out, &detour.to);
        }
        out
    }

    /// Decodes a record's metadata.
    ///
    /// # Errors
    /// [`OrderError::Version`] for a record of a newer program, [`OrderError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, OrderError> {
        let (&version, rest) = bytes.split_first().ok_or(OrderError::Malformed)?;
        if version == 0 || version > ORDER_VERSION {
            return Err(OrderError::Version(version));
        }
        let (_, rest) = rest.split_first().ok_or(OrderError::Malformed)?;
        let (held_until, rest) = read_time(rest)?;
        let (refused_until, rest) = read_time(rest)?;
        let (destination, mut rest) = read_name(rest)?;
        let mut detour = None;
        if version >= 2 {
            let (until, behind) = read_time(rest)?;
            let (to, behind) = read_name(behind)?;
            detour = until.map(|until| Detour { to, until });
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(OrderError::Malformed);
        }
        Ok(Self {
            destination,
            held_until,
            refused_until,
            detour,
        })
    }
}

fn push_name(out: &mut Vec<u8>, name: &impl fmt::Display) {
    let name = name.to_string();
    // A destination is a domain or a host with its port: its length was checked when it came in.
    let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&name.as_bytes()[..usize::from(length)]);
}

fn read_time(bytes: &[u8]) -> Result<(Option<Timestamp>, &[u8]), OrderError> {
    let (octets, rest) = bytes.split_first_chunk().ok_or(OrderError::Malformed)?;
    let millis = u64::from_le_bytes(*octets);
    Ok(((millis != 0).then(|| Timestamp::from_millis(millis)), rest))
}

fn read_name<N: FromStr>(bytes: &[u8]) -> Result<(N, &[u8]), OrderError> {
    let (octets, rest) = bytes.split_first_chunk().ok_or(OrderError::Malformed)?;
    let length = usize::from(u16::from_le_bytes(*octets));
    let (name, rest) = rest.split_at_checked(length).ok_or(OrderError::Malformed)?;
    let name = std::str::from_utf8(name).ok();
    let destination = name.and_then(|name| name.parse().ok());
    Ok((destination.ok_or(OrderError::Malformed)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            destination: Destination::domain("b.c".to_owned()),
            held_until: Some(Timestamp::from_millis(0x0102)),
            refused_until: Some(FOREVER),
            detour: None,
        }
    }

    fn with_detour() -> Order {
        Order {
            detour: Some(Detour {
                to: Place::Relay("h:25".to_owned()),
                until: Timestamp::from_millis(0x0304),
            }),
            ..order()
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
    fn golden_bytes_of_version_2() {
        let mut expected = order().encode();
        expected[0] = 2;
        expected.extend_from_slice(&[4, 3, 0, 0, 0, 0, 0, 0, 10, 0]);
        expected.extend_from_slice(b"relay:h:25");
        assert_eq!(with_detour().encode(), expected);
        assert_eq!(Order::decode(&expected), Ok(with_detour()));
    }

    #[test]
    fn damage_and_newer_versions_are_told_apart() {
        for bytes in [order().encode(), with_detour().encode()] {
            for end in 0..bytes.len() {
                assert_eq!(Order::decode(&bytes[..end]), Err(OrderError::Malformed));
            }
            let long = [&bytes[..], b"x"].concat();
            assert_eq!(Order::decode(&long), Err(OrderError::Malformed));
        }
        assert_eq!(Order::decode(&[3, 0]), Err(OrderError::Version(3)));
    }

    #[test]
    fn what_has_ended_is_not_in_force() {
        let later = order().at(Timestamp::from_millis(0x0102));
        assert_eq!(
            (later.held_until, later.refused_until),
            (None, Some(FOREVER))
        );
        assert!(!later.is_none());
        let detour = |at| with_detour().at(Timestamp::from_millis(at)).detour;
        assert!(detour(0x0303).is_some() && detour(0x0304).is_none());
        assert!(Order::none(Destination::LOCAL).is_none());
    }
}
