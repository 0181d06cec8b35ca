//! IPv6 addresses and networks as rbldnsd's files write them (RFC 4291 section 2.2).

use std::net::Ipv6Addr;

use super::error::Reason;

/// Addresses that a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range6 {
    /// The first address.
    pub(super) start: u128,
    /// The last address.
    pub(super) end: u128,
    /// The length of the prefix, or 0 for a range.
    pub(super) prefix: u8,
}

/// Splits a line behind its first word.
pub(super) fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let ends = |octet: &u8| matches!(octet, b' ' | b'\t' | b'#' | b';');
    line.split_at(line.iter().position(ends).unwrap_or(line.len()))
}

/// Reads the network at the start of a line, and gives what follows. Zeros at the end may be left out: without a length
/// of the prefix, the given words are the prefix.
pub(super) fn network(line: &[u8]) -> Result<(Range6, &[u8]), Reason> {
    let (word, rest) = word(line);
    let refused = || Reason::syntax("an IPv6 address or network", line);
    let text = std::str::from_utf8(word).map_err(|_| refused())?;
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let (start, bits) = begun(address).ok_or_else(refused)?;
    let prefix = match length {
        None => bits,
        Some(length) => {
            let digits = length.bytes().all(|octet| octet.is_ascii_digit());
            let length = length.parse().ok().filter(|_| digits);
            length.filter(|length| *length <= 128).ok_or_else(refused)?
        }
    };
    let hosts = u128::MAX.checked_shr(prefix).unwrap_or(0);
    if start & hosts != 0 {
        let expected = format!("a network without bits after the first {prefix}");
        return Err(Reason::syntax(expected, line));
    }
    let range = Range6 {
        start,
        end: start | hosts,
        prefix: prefix as u8,
    };
    Ok((range, rest))
}

/// Reads a whole line: an address, a network, or a range of addresses.
pub(super) fn whole(line: &[u8]) -> Result<Range6, Reason> {
    let refused = || Reason::syntax("an IPv6 address, network or range", line);
    let full = |text: &[u8]| -> Option<u128> {
        let text = std::str::from_utf8(text.trim_ascii()).ok()?;
        text.parse().ok().map(Ipv6Addr::to_bits)
    };
    if let Some(hyphen) = memchr::memchr(b'-', line) {
        let bounds = (full(&line[..hyphen]), full(&line[hyphen + 1..]));
        let (Some(start), Some(end)) = bounds else {
            return Err(refused());
        };
        return match start <= end {
            true => Ok(Range6 {
                start,
                end,
                prefix: 0,
            }),
            false => Err(refused()),
        };
    }
    let address = line.split(|octet| *octet == b'/').next();
    if address.and_then(full).is_none() {
        return Err(refused());
    }
    match network(line)? {
        (range, []) => Ok(range),
        _ => Err(refused()),
    }
}

/// An address whose last words may be missing, and the number of bits that are there.
fn begun(text: &str) -> Option<(u128, u32)> {
    if text.contains("::") {
        let address: Ipv6Addr = text.parse().ok()?;
        return Some((address.to_bits(), 128));
    }
    let (mut address, mut bits) = (0, 0);
    for word in text.split(':') {
        let hex = word.bytes().all(|octet| octet.is_ascii_hexdigit());
        if bits == 128 || word.is_empty() || word.len() > 4 || !hex {
            return None;
        }
        bits += 16;
        address |= u128::from_str_radix(word, 16).ok()? << (128 - bits);
    }
    Some((address, bits))
}
