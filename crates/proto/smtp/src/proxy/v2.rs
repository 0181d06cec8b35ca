//! Version 2, binary.
//!
//! ```text
//!  0            12     13      14        16               16 + length
//!  +-------------+------+-------+---------+-----------+--------+
//!  | signature   | 2/cmd| fam/tr| length  | addresses | records|
//!  +-------------+------+-------+---------+-----------+--------+
//!  record: type u8, length u16, value      all numbers big-endian
//! ```

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{HEADER_LENGTH_MAX, Header, ProxyError};

pub(super) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Octets before the addresses.
const FIXED_LENGTH: usize = 16;
/// `PP2_TYPE_CRC32C`.
const TYPE_CRC32C: u8 = 0x03;

/// Reads the header, as soon as all of it is there.
pub(super) fn decode(octets: &[u8]) -> Result<Option<(Header, usize)>, ProxyError> {
    let Some(fixed) = octets.first_chunk::<FIXED_LENGTH>() else {
        return Ok(None);
    };
    let [.., version_command, transport, length_high, length_low] = *fixed;
    if version_command >> 4 != 2 {
        return Err(ProxyError::Version(version_command >> 4));
    }
    let length = usize::from(u16::from_be_bytes([length_high, length_low]));
    let total = FIXED_LENGTH.saturating_add(length);
    if total > HEADER_LENGTH_MAX {
        return Err(ProxyError::TooLong(HEADER_LENGTH_MAX));
    }
    let local = match version_command & 0x0F {
        0 => true,
        1 => false,
        command => return Err(ProxyError::Command(command)),
    };
    let Some(header) = octets.get(..total) else {
        return Ok(None);
    };
    let body = header.get(FIXED_LENGTH..).unwrap_or_default();
    if local {
        // The rest must be skipped, whatever the content.
        return Ok(Some((Header::Local, total)));
    }
    let (says, records) = addresses(transport, body)?;
    check_records(header, records)?;
    Ok(Some((says, total)))
}

/// Splits the addresses from the records behind the addresses.
fn addresses(transport: u8, body: &[u8]) -> Result<(Header, &[u8]), ProxyError> {
    match transport {
        // UNSPEC, of any known transport.
        0x00..=0x02 => Ok((Header::Unknown, body)),
        0x11 => inet(body).ok_or(ProxyError::Length),
        0x21 => inet6(body).ok_or(ProxyError::Length),
        // UNIX stream: two paths of 108 octets, of no use to SMTP.
        0x31 => body
            .split_at_checked(216)
            .map(|(_, records)| (Header::Unknown, records))
            .ok_or(ProxyError::Length),
        // A TCP connection never comes from a datagram transport.
        other => Err(ProxyError::Transport(other)),
    }
}

fn inet(body: &[u8]) -> Option<(Header, &[u8])> {
    let (source, rest) = body.split_first_chunk::<4>()?;
    let (destination, rest) = rest.split_first_chunk::<4>()?;
    let (source_port, destination_port, records) = ports(rest)?;
    let header = Header::Proxied {
        source: SocketAddr::new(Ipv4Addr::from(*source).into(), source_port),
        destination: SocketAddr::new(Ipv4Addr::from(*destination).into(), destination_port),
    };
    Some((header, records))
}

fn inet6(body: &[u8]) -> Option<(Header, &[u8])> {
    let (source, rest) = body.split_first_chunk::<16>()?;
    let (destination, rest) = rest.split_first_chunk::<16>()?;
    let (source_port, destination_port, records) = ports(rest)?;
    let header = Header::Proxied {
        source: SocketAddr::new(Ipv6Addr::from(*source).into(), source_port),
        destination: SocketAddr::new(Ipv6Addr::from(*destination).into(), destination_port),
    };
    Some((header, records))
}

fn ports(rest: &[u8]) -> Option<(u16, u16, &[u8])> {
    let (source, rest) = rest.split_first_chunk::<2>()?;
    let (destination, rest) = rest.split_first_chunk::<2>()?;
    Some((
        u16::from_be_bytes(*source),
        u16::from_be_bytes(*destination),
        rest,
    ))
}

/// Walks the records: each must fit, and the checksum must be right if there is one.
fn check_records(header: &[u8], mut records: &[u8]) -> Result<(), ProxyError> {
    let mut checked = false;
    while let Some((kind, rest)) = records.split_first() {
        let (length, rest) = rest.split_first_chunk::<2>().ok_or(ProxyError::Length)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (value, rest) = rest.split_at_checked(length).ok_or(ProxyError::Length)?;
        if *kind == TYPE_CRC32C {
            if checked || !checksum_fits(header, value, rest.len()) {
                return Err(ProxyError::Checksum);
            }
            checked = true;
        }
        records = rest;
    }
    Ok(())
}

/// The checksum covers the whole header with its own value as zeros (section 2.2.3).
fn checksum_fits(header: &[u8], value: &[u8], octets_behind: usize) -> bool {
    let end = header.len().saturating_sub(octets_behind);
    let (before, behind) = header.split_at_checked(end).unwrap_or((header, &[]));
    let before = before.strip_suffix(value).unwrap_or(before);
    let Ok(value) = <[u8; 4]>::try_from(value) else {
        return false;
    };
    let covered = before.iter().chain(&[0; 4]).chain(behind);
    crc32c(covered) == u32::from_be_bytes(value)
}

/// CRC32c (RFC 3720 appendix B.4) bit by bit: the header is short and comes once a connection.
pub(super) fn crc32c<'a>(octets: impl Iterator<Item = &'a u8>) -> u32 {
    let sum = octets.fold(u32::MAX, |sum, octet| {
        (0..8).fold(sum ^ u32::from(*octet), |sum, _| {
            let mask = if sum & 1 == 1 { 0x82F6_3B78 } else { 0 };
            (sum >> 1) ^ mask
        })
    });
    !sum
}
