//! SCRAM-SHA-256 (RFC 5802, RFC 7677): keys, proofs and the pieces of messages both sides share.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use super::{PrepareError, encode, prepare};

/// A SHA-256 output.
pub(super) type Hash = [u8; 32];

/// The keys that a server keeps for a password with SCRAM-SHA-256 (RFC 5802 section 3).
///
/// The password cannot be computed from the keys, but with `server_key` an attacker can pose as the
/// server, and with `stored_key` plus one overheard exchange as the user: the keys print as
/// redacted.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramKeys {
    /// The salt, not base64.
    pub salt: Vec<u8>,
    /// How often the hash is iterated.
    pub iterations: u32,
    /// `H(HMAC(SaltedPassword, "Client Key"))`.
    pub stored_key: [u8; 32],
    /// `HMAC(SaltedPassword, "Server Key")`.
    pub server_key: [u8; 32],
}

/// Why there are no [`ScramKeys`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// Caller: the iteration count is outside
    /// [`ScramKeys::ITERATIONS_MIN`]..=[`ScramKeys::ITERATIONS_MAX`].
    Iterations(u32),
    /// Caller: the salt is empty or over [`ScramKeys::SALT_LENGTH_MAX`].
    SaltLength(usize),
    /// User: the password is empty.
    EmptyPassword,
    /// User: the password is not allowed by SASLprep.
    Unprepared(PrepareError),
    /// Store: the text is not of the form of [`ScramKeys::encode`].
    Syntax,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations(count) => write!(
                f,
                "{count} iterations are outside {} to {}",
                ScramKeys::ITERATIONS_MIN,
                ScramKeys::ITERATIONS_MAX
            ),
            Self::SaltLength(length) => write!(f, "salt of {length} octets"),
            Self::EmptyPassword => f.write_str("empty password"),
            Self::Unprepared(error) => error.fmt(f),
            Self::Syntax => f.write_str("text holds no SCRAM-SHA-256 keys"),
        }
    }
}

impl std::error::Error for KeyError {}

impl ScramKeys {
    /// Fewest iterations, RFC 7677 section 4.
    pub const ITERATIONS_MIN: u32 = 4096;
    /// Most iterations: half a second of one core. Without a bound a hostile server could keep a
    /// client computing for hours.
    pub const ITERATIONS_MAX: u32 = 600_000;
    /// Octets of salt taken.
    pub const SALT_LENGTH_MAX: usize = 256;

    /// Derives the keys of a password, which is prepared with SASLprep first.
    ///
    /// The salt should be 16 octets of a cryptographic generator, new for every password.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for a count or salt out of range and for an invalid password.
    pub fn derive(password: &str, salt: &[u8], iterations: u32) -> Result<Self, KeyError> {
        let salted = salted_password(password, salt, iterations)?;
        Ok(Self {
            salt: salt.to_vec(),
            iterations,
            stored_key: hash(&client_key(&salted)),
            server_key: server_key(&salted),
        })
    }

    /// Returns the keys as text to be stored, the form of RFC 5803 as PostgreSQL writes it:
    /// `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`, binary parts in base64.
    ///
    /// There is no `Display` on purpose: this text belongs in a store only.
    #[must_use]
    pub fn encode(&self) -> String {
        format!(
            "SCRAM-SHA-256${}:{}${}:{}",
            self.iterations,
            encode(&self.salt),
            encode(&self.stored_key),
            encode(&self.server_key)
        )
    }
}

impl FromStr for ScramKeys {
    type Err = KeyError;

    /// Reads the form of [`ScramKeys::encode`].
    fn from_str(text: &str) -> Result<Self, KeyError> {
        fn pair(text: &str) -> Result<(&str, &str), KeyError> {
            text.split_once(':').ok_or(KeyError::Syntax)
        }
        let mut parts = text.split('$');
        let (Some("SCRAM-SHA-256"), Some(derivation), Some(keys), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(KeyError::Syntax);
        };
        let ((iterations, salt), (stored_key, server_key)) = (pair(derivation)?, pair(keys)?);
        let keys = Self {
            salt: STANDARD.decode(salt).map_err(|_| KeyError::Syntax)?,
            iterations: iterations.parse().map_err(|_| KeyError::Syntax)?,
            stored_key: decode_hash(stored_key).ok_or(KeyError::Syntax)?,
            server_key: decode_hash(server_key).ok_or(KeyError::Syntax)?,
        };
        check_derivation(&keys.salt, keys.iterations)?;
        Ok(keys)
    }
}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramKeys")
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

/// Makes keys for unknown users, so that a client cannot distinguish unknown users from known
/// users.
///
/// The same name gets the same salt each time (RFC 5802 section 9 describes the leak otherwise),
/// and the count is the count of real keys.
#[derive(Clone)]
pub struct FakeKeys {
    secret: [u8; 32],
    iterations: u32,
}

impl FakeKeys {
    /// Octets of salt in fake keys; real keys should have the same number.
    pub const SALT_LENGTH: usize = 16;

    /// Takes 32 random octets, best kept over restarts, and the count that real keys have.
    #[must_use]
    pub fn new(secret: [u8; 32], iterations: u32) -> Self {
        Self { secret, iterations }
    }

    /// Returns the keys for a name; no password fits them.
    #[must_use]
    pub fn for_user(&self, username: &str) -> ScramKeys {
        let part = |label: &[u8]| hmac(&self.secret, &[label, username.as_bytes()]);
        ScramKeys {
            salt: part(b"salt").into_iter().take(Self::SALT_LENGTH).collect(),
            iterations: self.iterations,
            stored_key: part(b"stored"),
            server_key: part(b"server"),
        }
    }
}

impl fmt::Debug for FakeKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeKeys")
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

fn check_derivation(salt: &[u8], iterations: u32) -> Result<(), KeyError> {
    if !(ScramKeys::ITERATIONS_MIN..=ScramKeys::ITERATIONS_MAX).contains(&iterations) {
        return Err(KeyError::Iterations(iterations));
    }
    if salt.is_empty() || salt.len() > ScramKeys::SALT_LENGTH_MAX {
        return Err(KeyError::SaltLength(salt.len()));
    }
    Ok(())
}

/// `SaltedPassword := Hi(Normalize(password), salt, i)`, which is one block of PBKDF2.
pub(super) fn salted_password(
    password: &str,
    salt: &[u8],
    iterations: u32,
) -> Result<Hash, KeyError> {
    check_derivation(salt, iterations)?;
    let password = prepare(password).map_err(KeyError::Unprepared)?;
    if password.is_empty() {
        return Err(KeyError::EmptyPassword);
    }
    let keyed = keyed(password.as_bytes());
    let mut block = keyed.clone();
    block.update(salt);
    block.update(&1_u32.to_be_bytes());
    let mut last: Hash = block.finalize().into_bytes().into();
    let mut sum = last;
    for _ in 1..iterations {
        let mut block = keyed.clone();
        block.update(&last);
        last = block.finalize().into_bytes().into();
        sum = xor(&sum, &last);
    }
    Ok(sum)
}

pub(super) fn client_key(salted_password: &Hash) -> Hash {
    hmac(salted_password, &[b"Client Key"])
}

pub(super) fn server_key(salted_password: &Hash) -> Hash {
    hmac(salted_password, &[b"Server Key"])
}

/// `AuthMessage := client-first-message-bare + "," + server-first-message + "," +
/// client-final-message-without-proof`, signed with a key.
pub(super) fn signature(key: &Hash, bare: &str, first: &str, without_proof: &str) -> Hash {
    let comma = b",";
    hmac(
        key,
        &[
            bare.as_bytes(),
            comma,
            first.as_bytes(),
            comma,
            without_proof.as_bytes(),
        ],
    )
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    #[allow(clippy::expect_used, reason = "HMAC takes keys of every length")]
    Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length")
}

pub(super) fn hmac(key: &[u8], parts: &[&[u8]]) -> Hash {
    let mut mac = keyed(key);
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

pub(super) fn hash(data: &[u8]) -> Hash {
    Sha256::digest(data).into()
}

pub(super) fn xor(a: &Hash, b: &Hash) -> Hash {
    let mut sum = *a;
    for (octet, other) in sum.iter_mut().zip(b) {
        *octet ^= other;
    }
    sum
}

/// Decodes a base64 value that must be exactly one hash long.
pub(super) fn decode_hash(text: &str) -> Option<Hash> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Takes the value of one attribute, `r=abc` with the name `r`.
pub(super) fn attribute(part: Option<&str>, name: char) -> Option<&str> {
    part?.strip_prefix(name)?.strip_prefix('=')
}

/// Escapes `,` and `=` in a name.
pub(super) fn escape_name(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

/// Reads a name, of which every `=` must begin `=2C` or `=3D`.
///
/// ```text
/// saslname = 1*(value-safe-char / "=2C" / "=3D")
/// ```
pub(super) fn unescape_name(name: &str) -> Option<String> {
    let mut pieces = name.split('=');
    let mut plain = pieces.next()?.to_owned();
    for piece in pieces {
        if let Some(rest) = piece.strip_prefix("2C") {
            plain.push(',');
            plain.push_str(rest);
        } else {
            plain.push('=');
            plain.push_str(piece.strip_prefix("3D")?);
        }
    }
    (!plain.is_empty() && !plain.contains('\0')).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_their_text() {
        let keys = ScramKeys::derive("pencil", b"0123456789abcdef", 4096).unwrap();
        assert_eq!(keys.encode().parse(), Ok(keys.clone()));
        for bad in [
            "",
            "SCRAM-SHA-256$1:YQ==$YQ==:YQ==",
            "SCRAM-SHA-1$4096:YQ==$a:b",
            "x$y$z$w",
        ] {
            assert!(bad.parse::<ScramKeys>().is_err(), "{bad}");
        }
        let weak = keys.encode().replace("$4096:", "$10:");
        assert_eq!(weak.parse::<ScramKeys>(), Err(KeyError::Iterations(10)));
    }

    #[test]
    fn keys_are_not_printed() {
        let keys = ScramKeys::derive("pencil", b"0123456789abcdef", 4096).unwrap();
        assert_eq!(format!("{keys:?}"), "ScramKeys { iterations: 4096, .. }");
        let fake = FakeKeys::new([1; 32], 4096);
        assert_eq!(format!("{fake:?}"), "FakeKeys { iterations: 4096, .. }");
    }

    #[test]
    fn derivation_is_bounded() {
        let derive = |password, salt: &[u8], count| ScramKeys::derive(password, salt, count).err();
        assert_eq!(derive("p", b"s", 4095), Some(KeyError::Iterations(4095)));
        assert_eq!(
            derive("p", b"s", u32::MAX),
            Some(KeyError::Iterations(u32::MAX))
        );
        assert_eq!(derive("p", b"", 4096), Some(KeyError::SaltLength(0)));
        assert_eq!(derive("", b"s", 4096), Some(KeyError::EmptyPassword));
        assert_eq!(derive("\u{ad}", b"s", 4096), Some(KeyError::EmptyPassword));
        assert_eq!(
            derive("\u{7}", b"s", 4096),
            Some(KeyError::Unprepared(PrepareError))
        );
    }

    /// Different spellings with the same prepared form give the same keys.
    #[test]
    fn password_is_prepared() {
        let typed = ScramKeys::derive("I\u{ad}X", b"salt", 4096).unwrap();
        assert_eq!(typed, ScramKeys::derive("\u{2168}", b"salt", 4096).unwrap());
    }

    #[test]
    fn fake_keys_look_real_and_stay() {
        let fake = FakeKeys::new([1; 32], 4096);
        assert_eq!(fake.for_user("a"), fake.for_user("a"));
        assert_ne!(fake.for_user("a").salt, fake.for_user("b").salt);
        assert_eq!(fake.for_user("a").salt.len(), FakeKeys::SALT_LENGTH);
    }

    #[test]
    fn names_are_escaped() {
        for name in ["a,b=c", "=2C", "user", ",,==", "é"] {
            assert_eq!(unescape_name(&escape_name(name)).as_deref(), Some(name));
        }
        for bad in ["", "a=", "a=2", "a=2c", "=4F", "a\0b", "=="] {
            assert_eq!(unescape_name(bad), None, "{bad}");
        }
    }
}
