//! Octets as hexadecimal digits, for lines of JSON.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

/// Octets that no log shows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hex(String);

impl fmt::Debug for Hex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Hex([redacted])")
    }
}

impl Hex {
    pub(crate) fn of(octets: &[u8]) -> Self {
        let mut text = String::with_capacity(octets.len().saturating_mul(2));
        for octet in octets {
            // Writing into a text does not fail.
            let _written = write!(text, "{octet:02x}");
        }
        Self(text)
    }

    /// The octets; absent for a text that is no digits.
    pub(crate) fn octets(&self) -> Option<Vec<u8>> {
        let digits: Option<Vec<u32>> = self.0.chars().map(|digit| digit.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
        let octet = |pair: &[u32]| match pair {
            [high, low] => u8::try_from(high.checked_mul(16)?.checked_add(*low)?).ok(),
            _ => None,
        };
        digits.chunks(2).map(octet).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Hex;

    #[test]
    fn octets_come_back_and_are_not_shown() {
        let octets: Vec<u8> = (0..=255).collect();
        let hex = Hex::of(&octets);
        assert_eq!(hex.octets(), Some(octets));
        assert_eq!(format!("{hex:?}"), "Hex([redacted])");
        for wrong in ["0", "0g", "äö"] {
            assert_eq!(Hex(wrong.to_owned()).octets(), None);
        }
    }
}
