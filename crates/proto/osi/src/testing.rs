//! Helpers of the tests.

use bytes::Bytes;

/// Octets written as digits of base 16, with spaces where they help.
pub(crate) fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|octet| !octet.is_ascii_whitespace())
        .collect();
    assert!(digits.len().is_multiple_of(2), "{text}");
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}
