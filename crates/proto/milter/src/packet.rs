//! Packets: a length, a code, data.

use crate::error::MilterError;

/// The longest packet, code and data: libmilter takes 65,535 octets of data, and sends pieces of bodies of that size.
pub const PACKET_OCTETS_MAX: usize = 65_536;

/// The most octets of data.
pub(crate) const DATA_OCTETS_MAX: usize = PACKET_OCTETS_MAX - 1;

/// A packet as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The kind.
    pub code: u8,
    /// The rest.
    pub data: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Takes a packet from the beginning of octets; returns the octets behind the packet too, or `None` if the packet is not
    /// there as a whole.
    ///
    /// # Errors
    /// The packet is empty or announces more than [`PACKET_OCTETS_MAX`] octets.
    pub fn read(octets: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, MilterError> {
        let Some((length, rest)) = octets.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length == 0 || length > PACKET_OCTETS_MAX {
            return Err(MilterError::Length(length));
        }
        let Some((packet, behind)) = rest.split_at_checked(length) else {
            return Ok(None);
        };
        let Some((code, data)) = packet.split_first() else {
            return Err(MilterError::Length(length));
        };
        Ok(Some((Self { code: *code, data }, behind)))
    }
}

/// Appends a packet; data above the bound is cut.
pub(crate) fn put(out: &mut Vec<u8>, code: u8, data: &[u8]) {
    let data = data.get(..DATA_OCTETS_MAX).unwrap_or(data);
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.saturating_add(1).to_be_bytes());
    out.push(code);
    out.extend_from_slice(data);
}

/// Appends a text and NUL; a NUL within would end the text early and is left out.
pub(crate) fn put_text(data: &mut Vec<u8>, text: &[u8]) {
    data.extend(text.iter().copied().filter(|octet| *octet != 0));
    data.push(0);
}

/// Takes a text that ends with NUL.
pub(crate) fn text<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = data.iter().position(|octet| *octet == 0)?;
    let (text, rest) = data.split_at_checked(end)?;
    *data = rest.get(1..)?;
    Some(text)
}

/// Takes a number.
pub(crate) fn number(data: &mut &[u8]) -> Option<u32> {
    let (number, rest) = data.split_first_chunk::<4>()?;
    *data = rest;
    Some(u32::from_be_bytes(*number))
}
