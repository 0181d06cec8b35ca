//! Choices that a fuzzer makes.

/// Takes the first octet as a choice, which the fuzzer learns soon enough.
pub(crate) fn choice(octets: &[u8]) -> (u8, &[u8]) {
    octets
        .split_first()
        .map_or((0, octets), |(first, rest)| (*first, rest))
}
