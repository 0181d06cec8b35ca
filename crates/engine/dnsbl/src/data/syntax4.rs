//! IPv4 addresses, prefixes, networks and ranges as rbldnsd's files write them.

use super::error::Reason;

/// Addresses that a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range4 {
    /// The first address.
    pub(super) start: u32,
    /// The last address.
    pub(super) end: u32,
    /// The length of the prefix, unless the line has a range.
    pub(super) prefix: Option<u8>,
}

/// Reads the addresses at the start of a line, and gives what follows.
///
/// ```text
/// addresses = prefix [ "/" length / "-" prefix ]
/// prefix    = octet *3("." octet)
/// ```
///
/// A prefix of fewer than four octets stands for all addresses that begin so. A last boundary of one octet replaces the
/// last octet of the first boundary.
pub(super) fn range(line: &[u8]) -> Result<(Range4, &[u8]), Reason> {
    let refused = || Reason::syntax("an IPv4 address, network or range", line);
    let (first, octets, rest) = prefix(line).ok_or_else(refused)?;
    let (range, rest) = match rest.first() {
        Some(b'/') => {
            let (length, rest) = number(&rest[1..], 32).ok_or_else(refused)?;
            (network(first, length, line)?, rest)
        }
        Some(b'-') => {
            let (last, last_octets, rest) = prefix(&rest[1..]).ok_or_else(refused)?;
            let end = match last_octets {
                1 => {
                    let below = 32 - 8 * octets;
                    first & !(0xff << below) | last >> 24 << below | host_mask(octets)
                }
                _ => last | host_mask(last_octets),
            };
            if end < first {
                return Err(Reason::syntax("a range that ends after its start", line));
            }
            let range = Range4 {
                start: first,
                end,
                prefix: None,
            };
            (range, rest)
        }
        _ => (network(first, 8 * octets, line)?, rest),
    };
    match rest.first() {
        None | Some(b' ' | b'\t' | b':' | b'#' | b';') => Ok((range, rest)),
        Some(_) => Err(refused()),
    }
}

fn network(start: u32, length: u32, line: &[u8]) -> Result<Range4, Reason> {
    let hosts = u32::MAX.checked_shr(length).unwrap_or(0);
    if start & hosts != 0 {
        let expected = format!("a network without bits after the first {length}");
        return Err(Reason::syntax(expected, line));
    }
    Ok(Range4 {
        start,
        end: start | hosts,
        prefix: Some(length as u8),
    })
}

/// The bits of an address behind its first octets.
fn host_mask(octets: u32) -> u32 {
    u32::MAX.checked_shr(8 * octets).unwrap_or(0)
}

/// One to four octets: the address they begin, and their number.
fn prefix(line: &[u8]) -> Option<(u32, u32, &[u8])> {
    let (mut address, mut rest) = number(line, 255)?;
    let mut octets = 1;
    while octets < 4 && rest.first() == Some(&b'.') {
        let (octet, after) = number(&rest[1..], 255)?;
        address = address << 8 | octet;
        octets += 1;
        rest = after;
    }
    Some((address << (32 - 8 * octets), octets, rest))
}

/// A decimal number of one to three digits, not above `max`.
pub(super) fn number(line: &[u8], max: u32) -> Option<(u32, &[u8])> {
    let mut value = 0;
    let mut rest = line;
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        if line.len() - rest.len() == 3 {
            return None;
        }
        value = value * 10 + u32::from(digit - b'0');
        rest = after;
    }
    (rest.len() < line.len() && value <= max).then_some((value, rest))
}

/// Reads a whole line: an address of four octets, a network, or a range of addresses.
pub(super) fn whole(line: &[u8]) -> Result<Range4, Reason> {
    let refused = || Reason::syntax("an IPv4 address, network or range", line);
    let full = |text| match prefix(text) {
        Some((address, 4, rest)) => Ok((address, rest.trim_ascii_start())),
        _ => Err(refused()),
    };
    let (start, rest) = full(line)?;
    match rest {
        [] => network(start, 32, line),
        [b'/', length @ ..] => match number(length, 32) {
            Some((length, [])) => network(start, length, line),
            _ => Err(refused()),
        },
        [b'-', last @ ..] => match full(last.trim_ascii_start())? {
            (end, []) if start <= end => Ok(Range4 {
                start,
                end,
                prefix: None,
            }),
            _ => Err(refused()),
        },
        _ => Err(refused()),
    }
}

/// Cuts a range into blocks of whole octets (/8, /16, /24) and single addresses, the largest first: sets give the entry
/// of the smallest block the last word.
pub(super) fn blocks(range: Range4, mut each: impl FnMut(u32, u32, u8)) {
    let mut start = range.start;
    loop {
        let fits = |level: &&u8| {
            let size = u32::MAX >> **level;
            start & size == 0 && range.end - start >= size
        };
        let level = [8, 16, 24].iter().find(fits).copied().unwrap_or(32);
        let size = u32::MAX.checked_shr(level.into()).unwrap_or(0);
        let parent = start | u32::MAX >> (level - 8);
        let last = parent.min(range.end);
        // Neighbouring blocks of one size are one entry.
        let end = match last & size == size {
            true => last,
            false => (last & !size) - 1,
        };
        each(start, end, level);
        match end.checked_add(1) {
            Some(next) if next <= range.end => start = next,
            _ => return,
        }
    }
}
