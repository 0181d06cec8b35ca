//! What is written of the values of fields.

use std::time::{SystemTime, UNIX_EPOCH};

use vere_units::Timestamp;

/// Octets kept of a value.
pub const VALUE_OCTETS_MAX: usize = 2048;
/// Takes the place of a secret.
pub(super) const REDACTED: &str = "[redacted]";
/// Parts of names of secret fields.
const SECRET_NAMES: [&str; 6] = [
    "password",
    "passwd",
    "secret",
    "credential",
    "private_key",
    "authorization",
];

pub(super) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Asked for each field of each line, and a search for a text takes some time to begin.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.as_bytes();
    let begins = |at: usize| {
        let rest = &name[at..];
        let may = matches!(rest.first(), Some(b'p' | b's' | b'c' | b'a'));
        may && SECRET_NAMES
            .iter()
            .any(|secret| rest.starts_with(secret.as_bytes()))
    };
    (0..name.len()).any(begins)
}
