//! The id of a message's way.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::error::ParseUnitError;

/// Crockford's base 32: digits and capitals without I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// 64 bits in characters of 5 bits each.
const LENGTH: usize = 13;

/// The id of a message in the trace: 64 bits, unique within a system.
///
/// Users see the id as 13 characters of Crockford's base 32 (`250 2.0.0 queued as 01H...`): no
/// letters easily taken for digits, and equal length, so that the texts sort like the numbers.
/// Reading takes lower case, and `I`, `L` for 1 and `O` for 0, as people copy ids by hand.
/// Serialised as the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TraceId(u64);

impl TraceId {
    /// Makes the id from a number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Gives the number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the characters of the text.
    #[must_use]
    pub fn characters(self) -> [u8; LENGTH] {
        let mut text = [b'0'; LENGTH];
        let mut rest = self.0;
        for place in text.iter_mut().rev() {
            *place = ALPHABET[(rest & 31) as usize];
            rest >>= 5;
        }
        text
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.characters()).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for TraceId {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ParseUnitError::NotAnId(text.chars().take(2 * LENGTH).collect());
        if text.len() != LENGTH {
            return Err(refused());
        }
        let mut number = 0_u64;
        for octet in text.bytes() {
            let digit = digit(octet).ok_or_else(refused)?;
            // 13 characters are 65 bits: the highest bit of the first character must be 0.
            number = number.checked_mul(32).ok_or_else(refused)? | u64::from(digit);
        }
        Ok(Self(number))
    }
}

fn digit(octet: u8) -> Option<u8> {
    let octet = match octet.to_ascii_uppercase() {
        b'I' | b'L' => b'1',
        b'O' => b'0',
        other => other,
    };
    let place = ALPHABET.iter().position(|known| *known == octet)?;
    u8::try_from(place).ok()
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_13_characters_and_read_back() {
        for number in [0, 1, 31, 32, 0x0123_4567_89ab_cdef, u64::MAX] {
            let id = TraceId::new(number);
            let text = id.to_string();
            assert_eq!(text.len(), 13, "{text}");
            assert_eq!(text.parse(), Ok(id));
            assert_eq!(text.to_lowercase().parse(), Ok(id));
        }
        assert_eq!(TraceId::new(u64::MAX).to_string(), "FZZZZZZZZZZZZ");
        assert_eq!("OOOOOOOOOOOIL".parse(), Ok(TraceId::new(33)));
    }

    #[test]
    fn refuses_other_texts() {
        for text in [
            "",
            "0",
            "00000000000000",
            "000000000000U",
            "GZZZZZZZZZZZZ",
            "0000000000é0",
        ] {
            assert!(text.parse::<TraceId>().is_err(), "{text}");
        }
    }

    #[test]
    fn texts_sort_as_numbers() {
        let (low, high) = (
            TraceId::new(12_345).to_string(),
            TraceId::new(1 << 40).to_string(),
        );
        assert!(low < high);
    }
}
