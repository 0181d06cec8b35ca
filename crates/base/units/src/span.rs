//! Lengths of time, in the notation of operators.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::error::{ParseUnitError, number_and_unit};

const KNOWN: &str = "ms, s, m, h, d";

/// The units, largest first, in milliseconds.
const UNITS: [(u64, &str); 5] = [
    (86_400_000, "d"),
    (3_600_000, "h"),
    (60_000, "m"),
    (1_000, "s"),
    (1, "ms"),
];

/// A length of time, written `"250ms"`, `"30s"`, `"5m"`, `"4h"` or `"5d"`.
///
/// A number with a mandatory unit: a bare `5` has no meaning. The resolution is one millisecond;
/// [`Display`](fmt::Display) cuts finer fractions and writes the largest unit that divides the
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(Duration);

impl Span {
    /// Makes a span from a duration.
    #[must_use]
    pub const fn new(duration: Duration) -> Self {
        Self(duration)
    }

    /// Makes a span of `n` milliseconds.
    #[must_use]
    pub const fn from_millis(n: u64) -> Self {
        Self(Duration::from_millis(n))
    }

    /// Makes a span of `n` seconds.
    #[must_use]
    pub const fn from_secs(n: u64) -> Self {
        Self(Duration::from_secs(n))
    }

    /// Gives the duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Counts whole milliseconds, at most `u64::MAX`.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl FromStr for Span {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = number_and_unit(text)?;
        if unit.is_empty() {
            return Err(ParseUnitError::UnitMissing(text.to_owned()));
        }
        let factor = UNITS
            .iter()
            .find(|(_, name)| *name == unit)
            .map(|(factor, _)| *factor);
        let factor = factor.ok_or_else(|| ParseUnitError::UnknownUnit(unit.to_owned(), KNOWN))?;
        let millis = number.checked_mul(factor);
        millis
            .map(Self::from_millis)
            .ok_or_else(|| ParseUnitError::TooLarge(text.to_owned()))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.as_millis();
        let exact = UNITS
            .iter()
            .find(|(factor, _)| millis > 0 && millis.is_multiple_of(*factor));
        let (factor, unit) = exact.unwrap_or(&(1_000, "s"));
        f.pad(&format!("{}{unit}", millis / factor))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a span such as \"30s\" or \"5m\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit() {
        for (text, millis) in [
            ("250ms", 250),
            ("0s", 0),
            ("30s", 30_000),
            ("5m", 300_000),
            ("5 m", 300_000),
            ("4h", 14_400_000),
            ("5d", 432_000_000),
        ] {
            assert_eq!(
                text.parse::<Span>(),
                Ok(Span::from_millis(millis)),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_span() {
        assert_eq!("".parse::<Span>(), Err(ParseUnitError::Empty));
        assert!(matches!(
            "5".parse::<Span>(),
            Err(ParseUnitError::UnitMissing(_))
        ));
        assert!(matches!(
            "s".parse::<Span>(),
            Err(ParseUnitError::NotANumber(_))
        ));
        assert!(matches!(
            "5 weeks".parse::<Span>(),
            Err(ParseUnitError::UnknownUnit(..))
        ));
        assert!(matches!(
            "5M".parse::<Span>(),
            Err(ParseUnitError::UnknownUnit(..))
        ));
        assert!(matches!(
            "18446744073709551615d".parse::<Span>(),
            Err(ParseUnitError::TooLarge(_))
        ));
    }

    #[test]
    fn text_is_read_back_as_the_same_value() {
        for millis in [
            0,
            1,
            250,
            1_000,
            1_500,
            60_000,
            90_000,
            14_400_000,
            432_000_000,
        ] {
            let span = Span::from_millis(millis);
            assert_eq!(span.to_string().parse(), Ok(span), "{span}");
        }
        assert_eq!(Span::from_secs(90).to_string(), "90s");
        assert_eq!(Span::from_secs(0).to_string(), "0s");
    }
}
