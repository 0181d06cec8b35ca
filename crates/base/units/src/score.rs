//! Scores of messages.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;

use crate::error::ParseUnitError;

/// Hundredths of a point.
const POINT: i64 = 100;
/// Digits before the decimal point, so that no sum or product of scores comes near the bounds of the type.
const DIGITS_MAX: usize = 9;

/// A score with two decimals, such as `7.1` or `-0.25`.
///
/// The value is a whole number of hundredths: a sum is the same in any order and on any machine, which a binary fraction is not.
/// [`Display`](fmt::Display) writes a second decimal only where it is not zero, so that the text parses to the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Score(i64);

impl Score {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Makes a score of hundredths.
    #[must_use]
    pub const fn from_hundredths(hundredths: i64) -> Self {
        Self(hundredths)
    }

    /// Makes a score of whole points.
    #[must_use]
    pub const fn from_points(points: i64) -> Self {
        Self(points.saturating_mul(POINT))
    }

    /// Counts the hundredths.
    #[must_use]
    pub const fn as_hundredths(self) -> i64 {
        self.0
    }

    /// Counts the whole points, rounded towards zero.
    #[must_use]
    pub const fn points(self) -> i64 {
        self.0 / POINT
    }

    /// Whether the score is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Multiplies by a factor; half a hundredth is rounded away from zero.
    #[must_use]
    pub const fn times(self, factor: Self) -> Self {
        let product = self.0.saturating_mul(factor.0);
        let half = match product < 0 {
            true => -POINT / 2,
            false => POINT / 2,
        };
        Self(product.saturating_add(half) / POINT)
    }
}

impl Add for Score {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Score {
    fn sum<I: Iterator<Item = Self>>(scores: I) -> Self {
        scores.fold(Self::ZERO, Self::add)
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let hundredths = self.0.unsigned_abs();
        let (points, rest) = (hundredths / 100, hundredths % 100);
        if rest % 10 == 0 {
            write!(f, "{sign}{points}.{}", rest / 10)
        } else {
            write!(f, "{sign}{points}.{rest:02}")
        }
    }
}

impl FromStr for Score {
    type Err = ParseUnitError;

    /// ```text
    /// score = ["+" / "-"] 1*9DIGIT ["." 1*2DIGIT]
    /// ```
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let not_a_score = || ParseUnitError::NotAScore(text.to_owned());
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (points, decimals) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
        if !digits(points) || !digits(decimals) || decimals.len() > 2 {
            return Err(not_a_score());
        }
        if points.len() > DIGITS_MAX {
            return Err(ParseUnitError::TooLarge(text.to_owned()));
        }
        let points: i64 = points.parse().map_err(|_| not_a_score())?;
        let scale = if decimals.len() == 1 { 10 } else { 1 };
        let rest: i64 = decimals.parse().map_err(|_| not_a_score())?;
        let hundredths = points * POINT + rest * scale;
        Ok(Self(match text.starts_with('-') {
            true => -hundredths,
            false => hundredths,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(text: &str) -> Score {
        text.parse().expect(text)
    }

    #[test]
    fn texts_are_read_exactly() {
        for (text, hundredths, shown) in [
            ("3", 300, "3.0"),
            ("3.0", 300, "3.0"),
            ("0.1", 10, "0.1"),
            ("-0.05", -5, "-0.05"),
            ("-0", 0, "0.0"),
            ("+7.10", 710, "7.1"),
            ("12.34", 1_234, "12.34"),
            ("999999999.99", 99_999_999_999, "999999999.99"),
        ] {
            assert_eq!(score(text).as_hundredths(), hundredths, "{text}");
            assert_eq!(score(text).to_string(), shown);
            assert_eq!(score(shown), score(text));
        }
        for text in [
            "", "-", ".5", "1.", "1.234", "1e3", "inf", "nan", "1_0", "--1", "0x1", "1,5",
        ] {
            let found = text.parse::<Score>();
            assert_eq!(found, Err(ParseUnitError::NotAScore(text.to_owned())));
        }
        let large = "1000000000".to_owned();
        assert_eq!(large.parse::<Score>(), Err(ParseUnitError::TooLarge(large)));
    }

    #[test]
    fn sums_and_products_are_rounded_alike_on_both_sides_of_zero() {
        let sum: Score = ["0.1", "0.2", "-0.05"].map(score).into_iter().sum();
        assert_eq!(sum, score("0.25"));
        for (one, factor, product) in [
            ("3.0", "0.5", "1.5"),
            ("0.05", "0.1", "0.01"),
            ("-0.05", "0.1", "-0.01"),
            ("0.04", "0.1", "0.0"),
            ("-7.77", "1.0", "-7.77"),
            ("2.5", "0.0", "0.0"),
        ] {
            assert_eq!(score(one).times(score(factor)), score(product), "{one}");
        }
        let most = Score::from_hundredths(i64::MAX);
        assert_eq!((most + most).times(most).as_hundredths(), i64::MAX / 100);
        assert_eq!(Score::from_points(i64::MAX), most);
        assert_eq!((score("-7.9").points(), score("7.9").points()), (-7, 7));
        assert!(score("-0.0").is_zero() && !score("-0.01").is_zero());
    }
}
