//! Random octets, and the key that the gateway and the spool nodes share.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use vere_directory::password::SCRAM_ITERATIONS;
use vere_net::aside::write_private;
use vere_sasl::FakeKeys;
use vere_units::Secret;

/// Octets of the key.
const KEY_OCTETS: usize = 32;

/// Why a key cannot be had.
#[derive(Debug)]
pub enum SecretError {
    /// Its file cannot be read or made.
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds something else.
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable { path, source } => {
                write!(f, "cannot use the secret {}: {source}", path.display())
            }
            Self::Malformed { path } => write!(
                f,
                "{} does not hold a key of 64 hexadecimal digits",
                path.display()
            ),
        }
    }
}

impl Error for SecretError {
    /// The display holds the text of the direct cause already; what is behind that follows here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unusable { source, .. } => source.source(),
            Self::Malformed { .. } => None,
        }
    }
}

/// 32 octets that nobody can guess.
///
/// # Panics
/// When the kernel gives no random octets, which happens before its generator is seeded at boot only.
pub fn random() -> [u8; KEY_OCTETS] {
    let mut octets = [0; KEY_OCTETS];
    // The kernel's generator fails only before it is seeded at boot; mail must not run on anything less.
    #[allow(
        clippy::expect_used,
        reason = "without randomness no authentication is safe"
    )]
    getrandom::fill(&mut octets).expect("the kernel gives random octets");
    octets
}

/// A random number of 64 bits: unpredictable, and unique in practice.
pub fn random_number() -> u64 {
    let octets = random();
    octets
        .first_chunk()
        .map_or(0, |octets| u64::from_le_bytes(*octets))
}

/// Reads the key; makes the file, readable by its owner only, when there is none. Several processes may
/// do so at once.
///
/// # Errors
/// When the file cannot be read or made, or is not 64 hexadecimal digits.
pub fn load_or_make(path: &Path) -> Result<Secret<[u8; KEY_OCTETS]>, SecretError> {
    let failed = |source| SecretError::Unusable {
        path: path.to_owned(),
        source,
    };
    if !path.exists() {
        make(path).map_err(failed)?;
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let key = parse(text.trim()).map(Secret::new);
    key.ok_or_else(|| SecretError::Malformed {
        path: path.to_owned(),
    })
}

/// The file, below the data directory, of the secret that makes SCRAM keys for unknown users.
const LOGIN_KEY: &str = "login.key";

/// SCRAM keys of users that do not exist. The secret is one for all ports and outlives restarts: a salt that
/// changed would tell an unknown user from a known one (RFC 5802 section 9).
///
/// # Errors
/// As [`load_or_make`].
pub fn fake_keys(data: &Path) -> Result<FakeKeys, SecretError> {
    let secret = load_or_make(&data.join(LOGIN_KEY))?;
    Ok(FakeKeys::new(*secret.expose(), SCRAM_ITERATIONS))
}

/// The file, below the data directory, of the key for reverse-paths of forwarded mail.
const SRS_KEY: &str = "srs.key";

/// The key for reverse-paths of forwarded mail, which gateway and broker share.
///
/// # Errors
/// As [`load_or_make`].
pub fn srs(data: &Path) -> Result<Secret<[u8; KEY_OCTETS]>, SecretError> {
    load_or_make(&data.join(SRS_KEY))
}

/// Written aside and linked into place: whoever comes second finds a whole file.
fn make(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let text: String = random()
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    let aside = write_private(path, format!("{text}\n").as_bytes())?;
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn parse(text: &str) -> Option<[u8; KEY_OCTETS]> {
    let mut key = [0; KEY_OCTETS];
    if text.len() != 2 * KEY_OCTETS || !text.is_ascii() {
        return None;
    }
    for (index, octet) in key.iter_mut().enumerate() {
        *octet = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_read_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("deep/secret");
        let first = load_or_make(&path).expect("made");
        let second = load_or_make(&path).expect("read");
        assert_eq!(first.expose(), second.expose());
        fs::write(&path, "short").expect("written");
        assert!(load_or_make(&path).is_err());
    }

    /// The gateway and the store each made a secret at every start: the salt of an unknown user changed with
    /// port and restart, that of an account did not.
    #[test]
    fn unknown_users_have_one_salt_in_every_process() {
        let data = tempfile::tempdir().expect("a directory");
        let salt = |name| {
            let keys = fake_keys(data.path()).expect("keys");
            keys.for_user(name).salt
        };
        assert_eq!(salt("nobody@example.org"), salt("nobody@example.org"));
        assert_ne!(salt("nobody@example.org"), salt("noone@example.org"));
    }
}
