//! Counts of octets.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::error::{ParseUnitError, number_and_unit};

const KNOWN: &str = "B, KB, MB, GB, TB, KiB, MiB, GiB, TiB";

/// A count of octets, written `"64 KiB"`, `"10MB"` or `"512 B"`.
///
/// `K`, `M`, `G` and `T` with `iB` are powers of 1024, with `B` powers of 1000; case does not matter, nor does space
/// between number and unit. A bare number counts octets. [`Display`](fmt::Display) writes the largest unit that
/// divides the value, so that the text parses to the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(u64);

impl ByteSize {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Makes a size of `octets` octets.
    #[must_use]
    pub const fn new(octets: u64) -> Self {
        Self(octets)
    }

    /// Makes a size of `n` times 1024 octets, at most `u64::MAX`.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 10))
    }

    /// Makes a size of `n` times 1024^2 octets, at most `u64::MAX`.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 20))
    }

    /// Makes a size of `n` times 1024^3 octets, at most `u64::MAX`.
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 30))
    }

    /// Counts the octets.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Counts the octets as a length in memory, at most `usize::MAX`.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl From<u64> for ByteSize {
    fn from(octets: u64) -> Self {
        Self(octets)
    }
}

impl FromStr for ByteSize {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = number_and_unit(text)?;
        let factor: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            "tib" => 1 << 40,
            _ => return Err(ParseUnitError::UnknownUnit(unit.to_owned(), KNOWN)),
        };
        let octets = number.checked_mul(factor);
        octets
            .map(Self)
            .ok_or_else(|| ParseUnitError::TooLarge(text.to_owned()))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 8] = [
            (1 << 40, "TiB"),
            (1_000_000_000_000, "TB"),
            (1 << 30, "GiB"),
            (1_000_000_000, "GB"),
            (1 << 20, "MiB"),
            (1_000_000, "MB"),
            (1 << 10, "KiB"),
            (1_000, "KB"),
        ];
        for (factor, unit) in UNITS {
            if self.0 >= factor && self.0.is_multiple_of(factor) {
                return f.pad(&format!("{} {unit}", self.0 / factor));
            }
        }
        f.pad(&format!("{} B", self.0))
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"64 KiB\" or a count of octets")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, octets: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(octets))
            }

            fn visit_i64<E: de::Error>(self, octets: i64) -> Result<ByteSize, E> {
                u64::try_from(octets).map(ByteSize).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit() {
        for (text, octets) in [
            ("0", 0),
            ("512", 512),
            ("512 B", 512),
            ("64 KiB", 65_536),
            ("64kib", 65_536),
            ("10MB", 10_000_000),
            ("1 GiB", 1 << 30),
            (" 2 TiB ", 2 << 40),
        ] {
            assert_eq!(text.parse::<ByteSize>(), Ok(ByteSize(octets)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_size() {
        assert_eq!("".parse::<ByteSize>(), Err(ParseUnitError::Empty));
        assert!(matches!(
            "-1 MB".parse::<ByteSize>(),
            Err(ParseUnitError::NotANumber(_))
        ));
        assert!(matches!(
            "1.5 MB".parse::<ByteSize>(),
            Err(ParseUnitError::UnknownUnit(..))
        ));
        assert!(matches!(
            "5 m".parse::<ByteSize>(),
            Err(ParseUnitError::UnknownUnit(..))
        ));
        assert!(matches!(
            "18446744073709551616".parse::<ByteSize>(),
            Err(ParseUnitError::TooLarge(_))
        ));
        assert!(matches!(
            "99999999 TiB".parse::<ByteSize>(),
            Err(ParseUnitError::TooLarge(_))
        ));
    }

    #[test]
    fn text_is_read_back_as_the_same_value() {
        for octets in [
            0,
            1,
            999,
            1_000,
            1_024,
            10_000_000,
            52_428_800,
            1 << 40,
            u64::MAX,
        ] {
            let size = ByteSize(octets);
            assert_eq!(size.to_string().parse(), Ok(size), "{size}");
        }
        assert_eq!(ByteSize::mib(50).to_string(), "50 MiB");
        assert_eq!(ByteSize::new(10_000_000).to_string(), "10 MB");
    }
}
