//! Numbers as octets.

/// Appends a number: seven bits an octet, the lowest first, the high bit set on all but the last.
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Octets of an encoded number.
fn put_len(number: u32) -> usize {
    (32 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// Takes a number from the front.
pub(crate) fn take(octets: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = octets.split_first()?;
        *octets = rest;
        number |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Maps a signed number to an unsigned number, small for numbers near zero.
pub(crate) fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// The inverse of [`zigzag`].
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The number at a place.
pub(crate) fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    let octets = octets.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*octets))
}

/// The number at a place.
pub(crate) fn u64_at(octets: &[u8], at: usize) -> Option<u64> {
    let octets = octets.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*octets))
}

/// Appends which messages, rising, a run is in: whatever form is the smallest.
pub(crate) fn put_postings(out: &mut Vec<u8>, ordinals: &[u32]) {
    let [first, rest @ ..] = ordinals else { return };
    let last = *rest.last().unwrap_or(first);
    if rest.is_empty() {
        return put(out, u64::from(*first) << 2 | ONE);
    }
    let each = || ordinals.iter().zip(rest).map(|(one, next)| next - one - 1);
    let gaps: usize = put_len(*first) + each().map(put_len).sum::<usize>();
    let map = last as usize / 8 + 1;
    if gaps <= map {
        put(out, (gaps as u64) << 2 | GAPS);
        put(out, u64::from(*first));
        each().for_each(|gap| put(out, u64::from(gap)));
    } else {
        put(out, (map as u64) << 2 | MAP);
        let at = out.len();
        out.resize(at + map, 0);
        for ordinal in ordinals {
            out[at + *ordinal as usize / 8] |= 1 << (ordinal % 8);
        }
    }
}

const ONE: u64 = 0;
const GAPS: u64 = 1;
const MAP: u64 = 2;

/// Octets that follow the number at the front of a list.
pub(crate) fn postings_len(head: u64) -> usize {
    match head & 3 {
        ONE => 0,
        _ => usize::try_from(head >> 2).unwrap_or(usize::MAX),
    }
}

/// Calls `each` for the messages of a list: the number in `head`, and the numbers in `octets`.
pub(crate) fn each_posting(head: u64, octets: &[u8], mut each: impl FnMut(u32)) -> Option<()> {
    match head & 3 {
        ONE => each(u32::try_from(head >> 2).ok()?),
        GAPS => {
            let mut rest = octets;
            let mut next = 0_u64;
            while !rest.is_empty() {
                let ordinal = next.checked_add(take(&mut rest)?)?;
                each(u32::try_from(ordinal).ok()?);
                next = ordinal + 1;
            }
        }
        MAP => {
            for (at, octet) in octets.iter().enumerate() {
                let mut bits = *octet;
                while bits != 0 {
                    each((at * 8) as u32 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_come_back() {
        let lists: [Vec<u32>; 5] = [
            vec![7],
            vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 30],
            vec![0, 100_000],
            (0..5_000).collect(),
            (0..5_000).map(|n| n * 17).collect(),
        ];
        for list in lists {
            let mut octets = Vec::new();
            put_postings(&mut octets, &list);
            let mut rest = octets.as_slice();
            let head = take(&mut rest).unwrap();
            assert_eq!(postings_len(head), rest.len());
            let mut back = Vec::new();
            each_posting(head, rest, |ordinal| back.push(ordinal)).unwrap();
            assert_eq!(back, list);
        }
    }

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, u64::MAX] {
            let mut octets = Vec::new();
            put(&mut octets, number);
            assert_eq!(take(&mut octets.as_slice()), Some(number));
            assert_eq!(take(&mut &octets[..octets.len() - 1]), None);
        }
        for number in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(number)), number);
        }
    }
}
