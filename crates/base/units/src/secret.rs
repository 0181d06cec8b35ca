//! Values that must not be printed.

use std::fmt;

use serde::de::{Deserialize, Deserializer};

/// A value that prints as `[redacted]`: a password, a key.
///
/// The type has no `Serialize` on purpose. Comparison by `==` is for tests and change detection;
/// compare against what a peer sent with [`constant_time_eq`].
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Exposes the value to the code that needs the secret.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Gives the value up.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

/// Compares octets in time that depends on the lengths only.
#[must_use]
pub fn constant_time_eq(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut difference = 0_u8;
    for (l, r) in left.iter().zip(right) {
        // The optimiser must not see that a set bit decides the result and leave early.
        difference = std::hint::black_box(difference | (l ^ r));
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_redacted_everywhere() {
        #[derive(Debug)]
        struct Holder {
            #[allow(dead_code, reason = "read by Debug only, which is what is tested")]
            password: Secret<String>,
        }
        let secret = Secret::new("hunter2".to_owned());
        let holder = Holder {
            password: secret.clone(),
        };
        for text in [
            format!("{secret}"),
            format!("{secret:?}"),
            format!("{holder:#?}"),
        ] {
            assert!(
                !text.contains("hunter2") && text.contains("[redacted]"),
                "{text}"
            );
        }
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn compares_whole_values() {
        assert!(constant_time_eq(b"", b""));
        assert!(constant_time_eq(b"abc", b"abc"));
        assert!(!constant_time_eq(b"abc", b"abd"));
        assert!(!constant_time_eq(b"abc", b"ab"));
    }
}
