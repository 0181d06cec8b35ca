//! XChaCha20-Poly1305 over octets in place.

use chacha20poly1305::aead::inout::InOutBuf;
use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};

/// Octets of a tag.
pub(super) const TAG: usize = 16;

/// Encrypts `octets` and returns the tag; none only for more octets than the cipher takes, 256 GiB.
pub(super) fn seal(
    key: &[u8; 32],
    nonce: &[u8; 24],
    associated: &[u8],
    octets: &mut [u8],
) -> Option<[u8; TAG]> {
    let cipher = XChaCha20Poly1305::new(key.into());
    let tag = cipher.encrypt_inout_detached(nonce.into(), associated, InOutBuf::from(octets));
    tag.ok().map(Into::into)
}

/// Decrypts `octets`; none, with the octets as before, if the tag does not fit.
pub(super) fn unseal(
    key: &[u8; 32],
    nonce: &[u8; 24],
    associated: &[u8],
    octets: &mut [u8],
    tag: &[u8; TAG],
) -> Option<()> {
    let cipher = XChaCha20Poly1305::new(key.into());
    cipher
        .decrypt_inout_detached(nonce.into(), associated, InOutBuf::from(octets), tag.into())
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-irtf-cfrg-xchacha-03, appendix A.3.1.
    #[test]
    fn the_example_of_the_draft() {
        let mut key = [0; 32];
        (0x80..).zip(&mut key).for_each(|(from, to)| *to = from);
        let mut nonce = [0; 24];
        (0x40..).zip(&mut nonce).for_each(|(from, to)| *to = from);
        let associated = b"\x50\x51\x52\x53\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7";
        let plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.";
        let mut octets = plain.to_vec();
        let mut tag = seal(&key, &nonce, associated, &mut octets).unwrap();
        assert_eq!(
            tag,
            *b"\xc0\x87\x59\x24\xc1\xc7\x98\x79\x47\xde\xaf\xd8\x78\x0a\xcf\x49"
        );
        assert_eq!(
            octets[..16],
            *b"\xbd\x6d\x17\x9d\x3e\x83\xd4\x3b\x95\x76\x57\x94\x93\xc0\xe9\x39"
        );
        tag[0] ^= 1;
        assert_eq!(unseal(&key, &nonce, associated, &mut octets, &tag), None);
        tag[0] ^= 1;
        assert_eq!(
            unseal(&key, &nonce, associated, &mut octets, &tag),
            Some(())
        );
        assert_eq!(octets, plain);
    }
}
