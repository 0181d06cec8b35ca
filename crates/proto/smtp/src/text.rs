//! What lines of text look like, told for many octets at once.

/// Whether every CR and LF of these octets is part of a CRLF that lies within them.
///
/// Each message is asked that on its way in and on its way out. The loop has no way out before its end, so that
/// it looks at many octets in one step; from line end to line end takes thrice as long.
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

/// Whether no line of these is longer than `max`, its CRLF counted.
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
