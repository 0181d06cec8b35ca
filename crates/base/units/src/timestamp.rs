//! Points in time.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const MILLIS_PER_DAY: u64 = 86_400_000;
/// Room for either text of a time.
const TEXT_OCTETS: usize = 32;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
///
/// Hosts read the clock and pass the value in; engines and protocol machines only compare and add.
/// Sums stop at the end of the range instead of wrapping. Serialised as the number of milliseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const ZERO: Self = Self(0);
    /// The end of the range: a deadline that never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes the point `millis` milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Counts the milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time since `earlier`, zero if `earlier` is later: clocks can be set back.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Gives its year, month and day of the Gregorian calendar in UTC.
    #[must_use]
    pub const fn date(self) -> (u64, u64, u64) {
        civil(self.0 / MILLIS_PER_DAY)
    }

    /// Writes a date-time of RFC 5322 section 3.3 in UTC: `Mon, 04 May 2026 03:02:01 +0000`.
    #[must_use]
    pub fn rfc5322(self) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let (days, second) = (self.0 / MILLIS_PER_DAY, self.0 % MILLIS_PER_DAY / 1_000);
        let (year, month, day) = civil(days);
        let mut text = String::with_capacity(TEXT_OCTETS);
        text.push_str(DAYS[(days % 7) as usize]);
        text.push_str(", ");
        push_two(&mut text, day);
        text.push(' ');
        text.push_str(MONTHS[(month - 1) as usize]);
        text.push(' ');
        push_year(&mut text, year);
        text.push(' ');
        push_clock(&mut text, second);
        text.push_str(" +0000");
        text
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        )
    }
}

impl fmt::Display for Timestamp {
    /// Writes RFC 3339 in UTC with milliseconds: `2026-05-04T03:02:01.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, in_day) = (self.0 / MILLIS_PER_DAY, self.0 % MILLIS_PER_DAY);
        let (year, month, day) = civil(days);
        let milli = in_day % 1_000;
        let mut text = String::with_capacity(TEXT_OCTETS);
        push_year(&mut text, year);
        text.push('-');
        push_two(&mut text, month);
        text.push('-');
        push_two(&mut text, day);
        text.push('T');
        push_clock(&mut text, in_day / 1_000);
        text.push('.');
        text.push(char::from(b'0' + (milli / 100) as u8));
        push_two(&mut text, milli % 100);
        text.push('Z');
        f.write_str(&text)
    }
}

/// Appends two digits. Three times are written about each message: by the standard formatter these times took a
/// twenty-fifth of the gateway's own instructions.
fn push_two(out: &mut String, number: u64) {
    for digit in [number / 10 % 10, number % 10] {
        out.push(char::from(b'0' + digit as u8));
    }
}

fn push_year(out: &mut String, year: u64) {
    if year > 9_999 {
        out.push_str(&year.to_string());
    } else {
        push_two(out, year / 100);
        push_two(out, year % 100);
    }
}

/// Hour, minute and second of a day.
fn push_clock(out: &mut String, second: u64) {
    push_two(out, second / 3_600);
    out.push(':');
    push_two(out, second / 60 % 60);
    out.push(':');
    push_two(out, second % 60);
}

/// Turns days since the epoch into year, month and day of the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year; 400 years are 146,097 days, and
/// 719,468 days lie between 0000-03-01 and 1970-01-01.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_777_863_721_007, "2026-05-04T03:02:01.007Z"),
            (1_777_863_721_980, "2026-05-04T03:02:01.980Z"),
            (253_402_300_800_000, "10000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_string(), text);
        }
        assert!(!Timestamp::MAX.to_string().is_empty());
    }

    #[test]
    fn writes_rfc_5322() {
        for (millis, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 +0000"),
            (1_709_251_199_999, "Thu, 29 Feb 2024 23:59:59 +0000"),
            (1_777_863_721_007, "Mon, 04 May 2026 03:02:01 +0000"),
            (1_796_000_399_999, "Mon, 30 Nov 2026 00:59:59 +0000"),
            (253_402_300_800_000, "Sat, 01 Jan 10000 00:00:00 +0000"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).rfc5322(), text);
        }
    }

    #[test]
    fn sums_and_differences_stay_in_range() {
        let second = Duration::from_secs(1);
        assert_eq!(Timestamp::MAX + second, Timestamp::MAX);
        assert_eq!(Timestamp::ZERO + Duration::MAX, Timestamp::MAX);
        assert_eq!(
            Timestamp::ZERO.saturating_since(Timestamp::MAX),
            Duration::ZERO
        );
        assert_eq!(
            (Timestamp::ZERO + second).saturating_since(Timestamp::ZERO),
            second
        );
    }
}
