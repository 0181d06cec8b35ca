//! The fields of frames, and what may be wrong with them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The protocol version of this code.
pub const VERSION: u8 = 3;
/// Maximum octets of an address.
pub const ADDRESS_OCTETS_MAX: usize = 1_024;

const V4: u8 = 4;
const V6: u8 = 6;

/// A malformed frame: the other side's fault, after which the connection is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The frame announces this many octets.
    #[error("frame of {0} octets")]
    Length(usize),
    /// The frame has this unknown version.
    #[error("expected version {VERSION}; found version {0}")]
    Version(u8),
    /// The frame has this unknown kind. A question of such a kind is answered [`Answer::Unknown`](super::Answer::Unknown); the connection is
    /// usable still.
    #[error("frame of unknown kind {0}")]
    Kind(u8),
    /// The content ends early, goes on too long, or has a value that is not allowed.
    #[error("malformed content of a frame")]
    Content,
    /// The address or name has this many octets.
    #[error("address or name of {0} octets")]
    Address(usize),
}

/// The unread content of a frame.
pub(super) struct Content<'a>(pub(super) &'a [u8]);

impl<'a> Content<'a> {
    pub(super) fn take(&mut self, octets: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(octets).ok_or(WireError::Content)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(WireError::Content)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn text(&mut self, octets: usize) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.take(octets)?).map_err(|_| WireError::Content)
    }

    pub(super) const fn end(&self) -> Result<(), WireError> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(WireError::Content),
        }
    }
}

/// Appends the address of a client.
pub(super) fn encode_client(client: IpAddr, out: &mut Vec<u8>) {
    match client {
        IpAddr::V4(address) => {
            out.push(V4);
            out.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            out.push(V6);
            out.extend_from_slice(&address.octets());
        }
    }
}

/// Reads the address of a client.
pub(super) fn decode_client(content: &mut Content<'_>) -> Result<IpAddr, WireError> {
    match content.array()? {
        [V4] => Ok(Ipv4Addr::from(content.array::<4>()?).into()),
        [V6] => Ok(Ipv6Addr::from(content.array::<16>()?).into()),
        _ => Err(WireError::Content),
    }
}
