//! The octets that a server signs in a handshake.

/// RFC 8446 section 4.4.3: 64 spaces, the context, a zero, and the hash of the handshake.
const CONTEXT: &[u8] = b"TLS 1.3, server CertificateVerify\0";
const SPACES: usize = 64;
/// SHA-256 and SHA-384.
const HASHES: [usize; 2] = [32, 48];

/// RFC 5246 section 7.4.3: both random values stand before the parameters.
const RANDOMS: usize = 64;
/// RFC 8422 section 5.4: `named_curve`.
const NAMED_CURVE: u8 = 3;
/// The groups of the library, with the length of a point and its first octet, if that is fixed: X25519, P-256, P-384.
const GROUPS: [(u8, u8, Option<u8>); 3] = [(29, 32, None), (23, 65, Some(4)), (24, 97, Some(4))];

/// Whether the octets belong to a handshake of TLS 1.3 or 1.2. The key of a certificate signs handshakes only.
pub(super) fn is_of_a_server(octets: &[u8]) -> bool {
    is_certificate_verify(octets) || is_server_key_exchange(octets)
}

fn is_certificate_verify(octets: &[u8]) -> bool {
    let Some((spaces, rest)) = octets.split_at_checked(SPACES) else {
        return false;
    };
    let hash = rest.strip_prefix(CONTEXT);
    spaces.iter().all(|octet| *octet == b' ')
        && hash.is_some_and(|hash| HASHES.contains(&hash.len()))
}

fn is_server_key_exchange(octets: &[u8]) -> bool {
    let parameters = octets.get(RANDOMS..).unwrap_or_default();
    let [NAMED_CURVE, 0, group, length, point @ ..] = parameters else {
        return false;
    };
    GROUPS.iter().any(|(known, octets, first)| {
        group == known
            && length == octets
            && point.len() == usize::from(*octets)
            && first.is_none_or(|first| point.first() == Some(&first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verify(hash: usize) -> Vec<u8> {
        [&[b' '; SPACES][..], CONTEXT, &vec![7; hash]].concat()
    }

    fn exchange(group: u8, point: usize) -> Vec<u8> {
        let length = u8::try_from(point).unwrap();
        [
            &[9; RANDOMS][..],
            &[NAMED_CURVE, 0, group, length],
            &vec![4; point],
        ]
        .concat()
    }

    #[test]
    fn octets_of_both_versions_are_known() {
        for octets in [
            verify(32),
            verify(48),
            exchange(29, 32),
            exchange(23, 65),
            exchange(24, 97),
        ] {
            assert!(is_of_a_server(&octets), "{}", octets.len());
        }
    }

    #[test]
    fn other_octets_are_refused() {
        let mut client = verify(32);
        client[SPACES + 9..SPACES + 15].copy_from_slice(b"client");
        let mut unspaced = verify(32);
        unspaced[SPACES - 1] = b'x';
        let mut other_curve = exchange(29, 32);
        other_curve[RANDOMS] = 1;
        let mut compressed = exchange(23, 65);
        compressed[RANDOMS + 4] = 2;
        let long = [exchange(29, 32), vec![0]].concat();
        let cut = exchange(29, 32)[..RANDOMS + 35].to_vec();
        for octets in [
            client,
            unspaced,
            compressed,
            exchange(29, 65),
            exchange(25, 133),
            other_curve,
            long,
            cut,
            verify(0),
            verify(31),
            exchange(29, 0),
            exchange(29, 32)[..RANDOMS + 3].to_vec(),
            b"From: a@example.org".to_vec(),
            Vec::new(),
        ] {
            assert!(!is_of_a_server(&octets), "{octets:?}");
        }
    }
}
