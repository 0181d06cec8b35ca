//! Encryption of a place for backups.
//!
//! A random key of the place is sealed by a key that argon2id (RFC 9106) derives from a passphrase or from the content
//! of a key file. Three keys are derived from the key of the place by BLAKE3: for the names of objects (a keyed hash of the
//! content), for objects, and for manifests. Each object and each manifest is sealed by XChaCha20-Poly1305 with a random
//! nonce in front; the name is authenticated with the content, so that no object passes for a different object.

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use vere_process::failure::Failure;
use vere_units::Secret;

/// Octets of a nonce.
const NONCE: usize = 24;
/// Octets added to a text by a seal.
pub(crate) const SEAL_OCTETS: usize = NONCE + 16;
/// The cost of a guess: 64 MiB and three passes (RFC 9106 section 4, second choice).
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
const LANES: u32 = 4;
/// Limits of memory and passes for the key derivation of a place.
const MEMORY_KIB_MAX: u32 = 1024 * 1024;
const PASSES_MAX: u32 = 16;

/// How the key of a place is derived and sealed, as in the file of the place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sealing {
    /// `argon2id`.
    kdf: String,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    /// In hexadecimal digits, as all octets here.
    salt: String,
    /// The key of the place, sealed.
    key: String,
}

/// The keys of an encrypted place.
pub(crate) struct Keys {
    names: [u8; 32],
    objects: XChaCha20Poly1305,
    manifests: XChaCha20Poly1305,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// The kind of a sealed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// A piece of a file.
    Object,
    /// The list of a backup.
    Manifest,
}

impl Sealing {
    /// Makes a key for a new place.
    ///
    /// # Errors
    /// When there are no random numbers.
    pub(crate) fn make(secret: &Secret<Vec<u8>>) -> Result<(Self, Keys), Failure> {
        let (mut salt, mut key) = ([0; 16], [0; 32]);
        getrandom::fill(&mut salt)?;
        getrandom::fill(&mut key)?;
        let mut sealing = Self {
            kdf: "argon2id".to_owned(),
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: hex(&salt),
            key: String::new(),
        };
        let outer = sealing.derive(secret)?;
        sealing.key = hex(&seal(&outer, b"key", &key)?);
        Ok((sealing, Keys::of(&key)))
    }

    /// Opens the key of a place.
    ///
    /// # Errors
    /// When the secret is wrong, or the file of the place asks for too much memory or too many passes.
    pub(crate) fn open(&self, secret: &Secret<Vec<u8>>) -> Result<Keys, Failure> {
        let sealed = unhex(&self.key).ok_or_else(damaged)?;
        let outer = self.derive(secret)?;
        let key = unseal(&outer, b"key", &sealed)
            .ok_or_else(|| Failure::new("the passphrase or key file is not that of this backup"))?;
        let key: [u8; 32] = key.try_into().map_err(|_| damaged())?;
        Ok(Keys::of(&key))
    }

    fn derive(&self, secret: &Secret<Vec<u8>>) -> Result<XChaCha20Poly1305, Failure> {
        let known = self.kdf == "argon2id"
            && self.memory_kib <= MEMORY_KIB_MAX
            && self.passes <= PASSES_MAX;
        if !known {
            return Err(damaged());
        }
        let wrong = |error: argon2::Error| Failure::new(format!("argon2: {error}"));
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(32));
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.map_err(wrong)?);
        let salt = unhex(&self.salt).ok_or_else(damaged)?;
        let mut key = [0; 32];
        argon
            .hash_password_into(secret.expose(), &salt, &mut key)
            .map_err(wrong)?;
        Ok(XChaCha20Poly1305::new(&key.into()))
    }
}

fn damaged() -> Failure {
    Failure::new("the description of the encryption is damaged, or of another version")
}

impl Keys {
    fn of(key: &[u8; 32]) -> Self {
        let derive = |context: &str| blake3::derive_key(context, key);
        let cipher = |context: &str| XChaCha20Poly1305::new(&derive(context).into());
        Self {
            names: derive("vere-backup 1 names of objects"),
            objects: cipher("vere-backup 1 objects"),
            manifests: cipher("vere-backup 1 manifests"),
        }
    }

    /// The name of an object with the given content.
    pub(crate) fn name(&self, content: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.names, content)
    }

    const fn cipher(&self, what: Sealed) -> &XChaCha20Poly1305 {
        match what {
            Sealed::Object => &self.objects,
            Sealed::Manifest => &self.manifests,
        }
    }

    /// Seals a text under a name.
    ///
    /// # Errors
    /// When there are no random numbers.
    pub(crate) fn seal(&self, what: Sealed, name: &str, text: &[u8]) -> Result<Vec<u8>, Failure> {
        seal(self.cipher(what), name.as_bytes(), text)
    }

    /// Opens a sealed text; `None` if the text was changed, or sealed under a different name or key.
    pub(crate) fn unseal(&self, what: Sealed, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        unseal(self.cipher(what), name.as_bytes(), sealed)
    }
}

fn seal(cipher: &XChaCha20Poly1305, aad: &[u8], msg: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce)?;
    let sealed = cipher.encrypt(&XNonce::from(nonce), Payload { msg, aad });
    let sealed = sealed.map_err(|_| Failure::new("cannot encrypt"))?;
    Ok([&nonce, sealed.as_slice()].concat())
}

fn unseal(cipher: &XChaCha20Poly1305, aad: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, msg) = sealed.split_first_chunk::<NONCE>()?;
    cipher
        .decrypt(&XNonce::from(*nonce), Payload { msg, aad })
        .ok()
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| {
            let pair = std::str::from_utf8(pair)
                .ok()
                .filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret<Vec<u8>> {
        Secret::new(text.as_bytes().to_vec())
    }

    #[test]
    fn a_key_opens_with_its_passphrase_alone() {
        let (sealing, keys) = Sealing::make(&secret("correct horse")).unwrap();
        let text = serde_json::to_string(&sealing).unwrap();
        let read: Sealing = serde_json::from_str(&text).unwrap();
        let again = read.open(&secret("correct horse")).unwrap();
        assert_eq!(keys.name(b"x"), again.name(b"x"));
        assert_ne!(keys.name(b"x"), blake3::hash(b"x"));
        let wrong = read.open(&secret("wrong horse")).unwrap_err();
        assert!(wrong.to_string().contains("not that of this backup"));
        let costly = Sealing {
            memory_kib: u32::MAX,
            ..sealing
        };
        assert!(costly.open(&secret("correct horse")).is_err());
    }

    #[test]
    fn a_sealed_text_opens_unchanged_under_its_name_alone() {
        let keys = Keys::of(&[7; 32]);
        let sealed = keys.seal(Sealed::Object, "a", b"text").unwrap();
        assert_eq!(sealed.len(), 4 + SEAL_OCTETS);
        let open = |what, name, octets: &[u8]| keys.unseal(what, name, octets);
        assert_eq!(open(Sealed::Object, "a", &sealed).unwrap(), b"text");
        assert!(open(Sealed::Object, "b", &sealed).is_none());
        assert!(open(Sealed::Manifest, "a", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(Sealed::Object, "a", &changed).is_none(), "octet {at}");
            assert!(open(Sealed::Object, "a", &sealed[..at]).is_none());
        }
    }

    #[test]
    fn octets_come_back_from_digits() {
        assert_eq!(unhex(&hex(&[0, 9, 255])).unwrap(), [0, 9, 255]);
        for wrong in ["0", "0g", "é0", "+1"] {
            assert!(unhex(wrong).is_none() || wrong == "+1", "{wrong}");
        }
    }
}
