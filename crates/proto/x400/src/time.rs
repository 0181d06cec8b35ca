//! Times (X.411 `Time`, a UTCTime).
//!
//! UTCTime has two digits for the year: 70 to 99 are 1970 to 1999, 00 to 69 are 2000 to 2069. X.400 began in
//! 1984, so earlier times do not occur. Seconds may be absent and a zone may stand in place of `Z`; this crate
//! writes seconds and `Z`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use vere_ber::{BerError, Element, Tag, Value, Writer};
use vere_units::Timestamp;

const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time, in whole seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The time `seconds` after 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_unix(seconds: u64) -> Self {
        Self(seconds)
    }

    /// The time as a timestamp.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs(self.0)
    }

    /// Reads a UTCTime: `YYMMDDhhmm`, then `ss` or nothing, then `Z`, `+hhmm` or `-hhmm`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (digits, zone) = text.split_at_checked(
            text.iter()
                .take_while(|octet| octet.is_ascii_digit())
                .count(),
        )?;
        let (pairs, []) = digits.as_chunks::<2>() else {
            return None;
        };
        let pairs: Vec<i64> = pairs.iter().map(pair).collect();
        let [year, month, day, hour, minute, rest @ ..] = pairs.as_slice() else {
            return None;
        };
        let second = match rest {
            [] => 0,
            [second] => *second,
            _ => return None,
        };
        let year = year.checked_add(if *year < 70 { 2000 } else { 1900 })?;
        if !is_date(year, *month, *day) || *hour > 23 || *minute > 59 || second > 59 {
            return None;
        }
        let days = days_from_civil(year, *month, *day)?;
        let seconds = days
            .checked_mul(SECONDS_PER_DAY)?
            .checked_add(clock(*hour, *minute, second)?)?;
        u64::try_from(seconds.checked_sub(offset(zone)?)?)
            .ok()
            .map(Self)
    }

    /// The text of the UTCTime: `YYMMDDhhmmssZ`.
    #[must_use]
    pub fn utc_time(self) -> String {
        let (year, month, day) = self.timestamp().date();
        let second = self.0 % 86_400;
        format!(
            "{:02}{month:02}{day:02}{:02}{:02}{:02}Z",
            year % 100,
            second / 3_600,
            second / 60 % 60,
            second % 60
        )
    }
}

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp.as_millis() / 1_000)
    }
}

impl fmt::Display for Time {
    /// Writes `2026-05-04T03:02:01Z`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.timestamp().to_string();
        let (date, _) = text.split_once('.').unwrap_or((&text, ""));
        write!(out, "{date}Z")
    }
}

/// A fault of text as a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 2026-05-04T03:02:01Z; found {0:?}")]
pub struct TimeError(pub String);

impl FromStr for Time {
    type Err = TimeError;

    /// Reads `YYYY-MM-DDThh:mm`, then `:ss` or nothing, then `Z`, `+hh:mm` or `-hh:mm` (RFC 3339 without fractions), from
    /// 1970 to 2069, the years of UTCTime.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = || TimeError(text.chars().take(40).collect());
        let read = || {
            let (date, clock) = text.split_once('T')?;
            let [year, month, day] = parts(date, '-')?;
            let year: u32 = year
                .parse()
                .ok()
                .filter(|year| (1970..2070).contains(year))?;
            let zone = clock.find(['Z', '+', '-'])?;
            let (clock, zone) = clock.split_at_checked(zone)?;
            let clock = match clock.matches(':').count() {
                1 => parts::<2>(clock, ':')?.concat(),
                _ => parts::<3>(clock, ':')?.concat(),
            };
            let zone = match zone.split_at_checked(1)? {
                ("Z", "") => zone.to_owned(),
                (sign, rest) => sign.to_owned() + &parts::<2>(rest, ':')?.concat(),
            };
            Self::parse(format!("{:02}{month}{day}{clock}{zone}", year % 100).as_bytes())
        };
        read().ok_or_else(found)
    }
}

/// Parts of digits between separators; all but the first have two digits.
fn parts<const N: usize>(text: &str, separator: char) -> Option<[&str; N]> {
    let parts: Vec<&str> = text.split(separator).collect();
    let is_part = |(place, part): (usize, &&str)| {
        let digits = if place == 0 && separator == '-' { 4 } else { 2 };
        part.len() == digits && part.bytes().all(|octet| octet.is_ascii_digit())
    };
    let sound = parts.iter().enumerate().all(is_part);
    <[&str; N]>::try_from(parts).ok().filter(|_| sound)
}

impl Value for Time {
    const NAME: &'static str = "UTCTime";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::UTC_TIME
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Self::parse(&element.string()?).ok_or(BerError::invalid("a UTCTime such as 260504030201Z"))
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::UTC_TIME, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.primitive(tag, self.utc_time().as_bytes());
    }
}

fn pair(digits: &[u8; 2]) -> i64 {
    let [tens, ones] = digits.map(|digit| i64::from(digit.saturating_sub(b'0')));
    tens.saturating_mul(10).saturating_add(ones)
}

fn clock(hour: i64, minute: i64, second: i64) -> Option<i64> {
    hour.checked_mul(60)?
        .checked_add(minute)?
        .checked_mul(60)?
        .checked_add(second)
}

/// The seconds that a zone is ahead of UTC.
fn offset(zone: &[u8]) -> Option<i64> {
    let (sign, digits) = match zone {
        b"Z" => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let ([hour, minute], []) = digits.as_chunks::<2>() else {
        return None;
    };
    let (hour, minute) = (pair(hour), pair(minute));
    if !digits.iter().all(u8::is_ascii_digit) || hour > 23 || minute > 59 {
        return None;
    }
    clock(hour, minute, 0)?.checked_mul(sign)
}

const fn is_date(year: i64, month: i64, day: i64) -> bool {
    let days = match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    day >= 1 && day <= days
}

/// Days since 1970-01-01. Years begin in March here, so that the leap day is the last day of a year.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let (year, month) = if month < 3 {
        (year.checked_sub(1)?, month.checked_add(9)?)
    } else {
        (year, month.checked_sub(3)?)
    };
    let leap_days = (year / 4)
        .checked_sub(year / 100)?
        .checked_add(year / 400)?;
    let day_of_year = month
        .checked_mul(153)?
        .checked_add(2)?
        .checked_div(5)?
        .checked_add(day)?;
    year.checked_mul(365)?
        .checked_add(leap_days)?
        .checked_add(day_of_year)?
        .checked_sub(719_469)
}
