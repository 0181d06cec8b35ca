//! The stored form of a password, and the check of a password.
//!
//! The stored form has two parts: an Argon2id hash (RFC 9106) for mechanisms that send the password, and
//! SCRAM-SHA-256 keys (RFC 7677) for mechanisms that do not. A thief of the store can guess passwords by
//! the keys, which are cheaper to compute; [`SCRAM_ITERATIONS`] sets the cost of a guess.

use std::fmt;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use vere_ports::directory::Credentials;
use vere_sasl::{FakeKeys, KeyError, PASSWORD_LENGTH_MAX, ScramKeys, prepare};
use vere_units::Secret;

/// Rounds of PBKDF2 in SCRAM keys: 24 ms of a client's core, 15 times the least of RFC 7677. Cyrus SASL
/// (mbsync, mutt, Postfix as client) refuses to log in with more than 65,536. False keys of unknown users
/// must have as many.
pub const SCRAM_ITERATIONS: u32 = 60_000;

/// Memory of an Argon2id computation in KiB; with [`TIME_COST`] and one lane, the second of the equal
/// choices in OWASP's password storage cheat sheet.
const MEMORY_KIB: u32 = 19_456;
/// Passes over the memory.
const TIME_COST: u32 = 2;
/// The most memory of a stored hash, so that an edited store cannot exhaust the machine.
const MEMORY_KIB_MAX: u32 = 1 << 20;
const TIME_COST_MAX: u32 = 64;
const LANES_MAX: u32 = 16;

/// A hash without a known password, with the costs of new hashes: its 32 octets are digits of pi, not an
/// output of Argon2.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA\
                      $JD9qiIWjCNMTGYouA3BzRKQJOCIpnzHQCC76mOxObIk";

/// Random octets for new credentials, from a cryptographic generator, new for every password.
#[derive(Clone)]
pub struct Salts {
    /// For Argon2id.
    pub argon2: [u8; 16],
    /// For SCRAM.
    pub scram: [u8; FakeKeys::SALT_LENGTH],
}

impl fmt::Debug for Salts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salts").finish_non_exhaustive()
    }
}

/// Says why a text cannot be a password. The fault is the user's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// It is empty.
    #[error("the password is empty")]
    Empty,
    /// The password has this many octets, more than any mechanism accepts.
    #[error("the password has {0} octets, at most {PASSWORD_LENGTH_MAX} are allowed")]
    TooLong(usize),
    /// The password has control or unassigned characters, or mixes writing directions (RFC 4013).
    #[error("the password holds characters that cannot be typed alike everywhere (RFC 4013)")]
    Characters,
}

/// Makes the stored form of a password.
///
/// # Errors
///
/// [`PasswordError`], when the text cannot be a password.
pub fn credentials(password: &Secret<String>, salts: &Salts) -> Result<Credentials, PasswordError> {
    let text = password.expose();
    if text.is_empty() {
        return Err(PasswordError::Empty);
    }
    if text.len() > PASSWORD_LENGTH_MAX {
        return Err(PasswordError::TooLong(text.len()));
    }
    let prepared = prepare(text).map_err(|_| PasswordError::Characters)?;
    if prepared.is_empty() {
        return Err(PasswordError::Empty);
    }
    let keys = ScramKeys::derive(text, &salts.scram, SCRAM_ITERATIONS).map_err(|e| match e {
        KeyError::EmptyPassword => PasswordError::Empty,
        _ => PasswordError::Characters,
    })?;
    Ok(Credentials {
        password_hash: Secret::new(argon2id(prepared.as_bytes(), salts.argon2)),
        scram_sha_256: Secret::new(keys.encode()),
    })
}

#[allow(
    clippy::expect_used,
    reason = "constants in the ranges of Argon2, checked by a test"
)]
fn argon2id(password: &[u8], salt: [u8; 16]) -> String {
    let params = Params::new(MEMORY_KIB, TIME_COST, 1, None).expect("costs are in range");
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hash = argon2.hash_password_with_salt(password, &salt);
    hash.expect("a password of at most 1024 octets is hashed")
        .to_string()
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fits,
    DoesNotFit,
    /// The hash is not Argon2id with sensible costs.
    Unreadable,
}

/// Checks a password against a hash, or computes as much without one.
pub(crate) fn verify(hash: Option<&Secret<String>>, password: &Secret<String>) -> Verdict {
    let text = password.expose();
    // No account has such a password: the shorter time reveals no account.
    let Some(prepared) = prepare(text).ok().filter(|text| !text.is_empty()) else {
        return Verdict::DoesNotFit;
    };
    if text.len() > PASSWORD_LENGTH_MAX {
        return Verdict::DoesNotFit;
    }
    let stored = hash.map_or(NOBODY, |hash| hash.expose());
    let Ok(parsed) = PasswordHash::new(stored) else {
        return Verdict::Unreadable;
    };
    let Ok(params) = Params::try_from(&parsed) else {
        return Verdict::Unreadable;
    };
    let sensible = parsed.algorithm == Algorithm::Argon2id.ident()
        && params.m_cost() <= MEMORY_KIB_MAX
        && params.t_cost() <= TIME_COST_MAX
        && params.p_cost() <= LANES_MAX;
    if !sensible || parsed.hash.is_none() {
        return Verdict::Unreadable;
    }
    let fits = Argon2::default()
        .verify_password(prepared.as_bytes(), &parsed)
        .is_ok();
    if fits && hash.is_some() {
        Verdict::Fits
    } else {
        Verdict::DoesNotFit
    }
}
