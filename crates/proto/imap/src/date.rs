//! Dates and times as IMAP writes them.

use vere_units::Timestamp;

/// Milliseconds of a day.
const DAY_MILLIS: u64 = 86_400_000;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A day, counted from 1970-01-01, before which nothing is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub u32);

impl Day {
    /// The day in UTC on which a time lies.
    #[must_use]
    pub fn of(time: Timestamp) -> Self {
        Self(u32::try_from(time.as_millis() / DAY_MILLIS).unwrap_or(u32::MAX))
    }

    /// The day of a date of the Gregorian calendar; `None` when there is no such date.
    #[must_use]
    pub fn from_date(year: u16, month: u8, day: u8) -> Option<Self> {
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let length = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            _ => return None,
        };
        if day == 0 || day > length {
            return None;
        }
        // Years are counted from March, so that the leap day is the last of its year.
        let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
        let year = if month <= 2 {
            year.checked_sub(1)?
        } else {
            year
        };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (month.checked_add(9)? % 12)
            .checked_mul(153)?
            .checked_add(2)?
            .checked_div(5)?
            .checked_add(day)?
            .checked_sub(1)?;
        let leaps = of_era
            .checked_div(4)?
            .checked_sub(of_era.checked_div(100)?)?;
        let of_era = of_era
            .checked_mul(365)?
            .checked_add(leaps)?
            .checked_add(of_year)?;
        let days = era
            .checked_mul(146_097)?
            .checked_add(of_era)?
            .checked_sub(719_468)?;
        Some(Self(u32::try_from(days.max(0)).ok()?))
    }
}

/// The number of a month by its English name of three letters, in any case.
#[must_use]
pub fn month(name: &[u8]) -> Option<u8> {
    let index = MONTHS
        .iter()
        .position(|month| month.as_bytes().eq_ignore_ascii_case(name))?;
    u8::try_from(index).ok()?.checked_add(1)
}

/// Reads `date-time` without its quotes: `17-Jul-1996 02:44:25 -0700` (RFC 9051 section 9).
#[must_use]
pub fn parse_date_time(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    if text.len() != 26 || !text.is_ascii() {
        return None;
    }
    let number = |range: std::ops::Range<usize>| -> Option<u32> {
        let digits = text.get(range)?.trim_start_matches(' ');
        digits
            .bytes()
            .all(|octet| octet.is_ascii_digit())
            .then(|| digits.parse().ok())?
    };
    let marks = [
        (2, '-'),
        (6, '-'),
        (11, ' '),
        (14, ':'),
        (17, ':'),
        (20, ' '),
    ];
    for (index, mark) in marks {
        if !text.get(index..)?.starts_with(mark) {
            return None;
        }
    }
    let day = Day::from_date(
        u16::try_from(number(7..11)?).ok()?,
        month(text.get(3..6)?.as_bytes())?,
        u8::try_from(number(0..2)?).ok()?,
    )?;
    let (hour, minute, second) = (number(12..14)?, number(15..17)?, number(18..20)?);
    let (zone_hours, zone_minutes) = (number(22..24)?, number(24..26)?);
    if hour > 23 || minute > 59 || second > 60 || zone_hours > 23 || zone_minutes > 59 {
        return None;
    }
    let local = u64::from(day.0)
        .checked_mul(86_400)?
        .checked_add(u64::from(seconds(hour, minute)))?
        .checked_add(u64::from(second))?;
    let zone = u64::from(seconds(zone_hours, zone_minutes));
    let utc = match text.get(21..22)? {
        "+" => local.saturating_sub(zone),
        "-" => local.checked_add(zone)?,
        _ => return None,
    };
    Some(Timestamp::from_millis(utc.checked_mul(1_000)?))
}

fn seconds(hours: u32, minutes: u32) -> u32 {
    hours
        .saturating_mul(3_600)
        .saturating_add(minutes.saturating_mul(60))
}

/// Writes `date-time` with its quotes, in UTC, such as `"04-May-2026 03:02:01 +0000"`.
pub fn put_date_time(time: Timestamp, out: &mut Vec<u8>) {
    let (year, month, day) = time.date();
    let of_day = time.as_millis() % DAY_MILLIS / 1_000;
    let name = usize::try_from(month)
        .ok()
        .and_then(|month| MONTHS.get(month.checked_sub(1)?));
    out.push(b'"');
    two_digits(day, out);
    out.push(b'-');
    out.extend_from_slice(name.copied().unwrap_or_default().as_bytes());
    out.push(b'-');
    two_digits(year / 100, out);
    two_digits(year % 100, out);
    for (before, part) in [
        (b' ', of_day / 3_600),
        (b':', of_day / 60 % 60),
        (b':', of_day % 60),
    ] {
        out.push(before);
        two_digits(part, out);
    }
    out.extend_from_slice(b" +0000\"");
}

/// The last two digits of a number.
fn two_digits(number: u64, out: &mut Vec<u8>) {
    for digit in [number / 10 % 10, number % 10] {
        let [digit, ..] = digit.to_le_bytes();
        out.push(b'0' | digit);
    }
}

/// The same as a text.
#[must_use]
pub fn date_time(time: Timestamp) -> String {
    let mut text = Vec::with_capacity("\"04-May-2026 03:02:01 +0000\"".len());
    put_date_time(time, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        for millis in [0, 951_782_400_000, 1_750_000_000_000, 4_102_444_799_000] {
            let time = Timestamp::from_millis(millis);
            let text = date_time(time);
            assert_eq!(
                parse_date_time(text.trim_matches('"').as_bytes()),
                Some(time),
                "{text}"
            );
        }
        for (millis, text) in [
            (0, "\"01-Jan-1970 00:00:00 +0000\""),
            (951_868_799_999, "\"29-Feb-2000 23:59:59 +0000\""),
            (1_777_863_721_007, "\"04-May-2026 03:02:01 +0000\""),
        ] {
            assert_eq!(date_time(Timestamp::from_millis(millis)), text);
        }
        // What no calendar has is written all the same.
        assert_eq!(date_time(Timestamp::MAX).len(), 28);
        let zoned = parse_date_time(b"17-Jul-1996 02:44:25 -0700").unwrap();
        assert_eq!(date_time(zoned), "\"17-Jul-1996 09:44:25 +0000\"");
        assert_eq!(
            parse_date_time(b" 7-Jul-1996 02:44:25 -0700").map(Day::of),
            Day::from_date(1996, 7, 7)
        );
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "17-Jul-1996 02:44:25",
            "31-Feb-1996 02:44:25 -0700",
            "17-Jul-1996 24:44:25 -0700",
            "17-Jul-1996 02:44:25 *0700",
            "17-Xxx-1996 02:44:25 -0700",
            "+7-Jul-1996 02:44:25 -0700",
        ] {
            assert_eq!(parse_date_time(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(Day::from_date(1970, 1, 1), Some(Day(0)));
        assert_eq!(Day::from_date(2000, 2, 29), Some(Day(11_016)));
        assert_eq!(Day::from_date(1900, 2, 29), None);
        assert_eq!(Day::from_date(1960, 5, 1), Some(Day(0)));
    }
}
