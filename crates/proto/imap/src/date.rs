//! Dates and times in the formats of IMAP.

use std::time::Duration;

use vere_units::Timestamp;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Milliseconds of a day.
const DAY_MILLIS: u64 = 86_400_000;

/// Days of a full cycle of the calendar, weekdays included: 400 years.
const CYCLE: i64 = 146_097;

/// Five times as many years: whatever the year, it is after 1970 then.
const LATER_YEARS: u64 = 2_000;

/// The first second of the year 0 and the last of the year 9999, in UTC: a year has four digits.
const FIRST: i64 = -719_528 * DAY;
const LAST: i64 = 2_932_897 * DAY - 1;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The internal date of a message: seconds since 1970-01-01T00:00:00Z, negative for earlier dates, within the
/// years 0 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// So many seconds after 1970-01-01T00:00:00Z, or the nearest that can be written.
    #[must_use]
    pub fn from_seconds(seconds: i64) -> Self {
        Self(seconds.clamp(FIRST, LAST))
    }

    /// The seconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// The age at `now`; zero for a moment in the future.
    #[must_use]
    pub fn age(self, now: Timestamp) -> Duration {
        let seconds = Self::from(now).0.saturating_sub(self.0);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    /// Writes a date-time of RFC 5322 section 3.3 in UTC: `Mon, 04 May 2026 03:02:01 +0000`.
    #[must_use]
    pub fn rfc5322(self) -> String {
        let text = self.later().rfc5322();
        // The year is the fourth word, and may have five digits now.
        let mut words = text.splitn(5, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (weekday, day, month, year) = (next(), next(), next(), next());
        let year = year.parse::<u64>().unwrap_or(0).saturating_sub(LATER_YEARS);
        format!("{weekday} {day} {month} {year:04} {}", next())
    }

    /// The moment shifted by [`LATER_YEARS`], so that the result is not before 1970.
    fn later(self) -> Timestamp {
        const LATER: i64 = CYCLE * DAY * 5;
        let seconds = u64::try_from(self.0.saturating_add(LATER)).unwrap_or(0);
        Timestamp::from_millis(seconds.saturating_mul(1_000))
    }
}

impl From<Timestamp> for Moment {
    fn from(time: Timestamp) -> Self {
        Self::from_seconds(i64::try_from(time.as_millis() / 1_000).unwrap_or(i64::MAX))
    }
}

/// The farthest zones that can be written, in minutes ahead of UTC.
const ZONE_MINUTES_MAX: i16 = 23 * 60 + 59;

/// A `date-time` (RFC 9051 section 9): a moment with a time zone. Searches compare the local date in the zone (RFC
/// 9051 section 6.4.4: "disregarding time and timezone").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DateTime {
    moment: Moment,
    /// Offset of the zone from UTC in minutes.
    zone_minutes: i16,
}

impl DateTime {
    /// A moment in a zone so many minutes ahead of UTC; in UTC, where the date there could not be written.
    #[must_use]
    pub fn new(moment: Moment, zone_minutes: i16) -> Self {
        let is_zone = (-ZONE_MINUTES_MAX..=ZONE_MINUTES_MAX).contains(&zone_minutes);
        let own = Self {
            moment,
            zone_minutes,
        };
        let can_be_written = is_zone && (FIRST..=LAST).contains(&own.local_seconds());
        Self {
            zone_minutes: if can_be_written { zone_minutes } else { 0 },
            ..own
        }
    }

    /// When it is.
    #[must_use]
    pub const fn moment(self) -> Moment {
        self.moment
    }

    /// The offset of the zone from UTC in minutes: -1439 to 1439.
    #[must_use]
    pub const fn zone_minutes(self) -> i16 {
        self.zone_minutes
    }

    /// The local day in the zone.
    #[must_use]
    pub fn day(self) -> Day {
        Day::of(self.local())
    }

    fn local(self) -> Moment {
        Moment(self.local_seconds())
    }

    fn local_seconds(self) -> i64 {
        let ahead = i64::from(self.zone_minutes).saturating_mul(60);
        self.moment.0.saturating_add(ahead)
    }
}

impl From<Moment> for DateTime {
    /// In UTC.
    fn from(moment: Moment) -> Self {
        Self::new(moment, 0)
    }
}

impl From<Timestamp> for DateTime {
    /// In UTC.
    fn from(time: Timestamp) -> Self {
        Moment::from(time).into()
    }
}

/// A day, counted from 1970-01-01; negative for earlier days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

impl Day {
    /// The day in UTC of a moment.
    fn of(moment: Moment) -> Self {
        Self(i32::try_from(moment.0.div_euclid(DAY)).unwrap_or(0))
    }

    /// The day of a date of the Gregorian calendar; `None` for an invalid date.
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
        Some(Self(i32::try_from(days).ok()?))
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

/// Parses `date-time` without the quotes: `17-Jul-1996 02:44:25 -0700` (RFC 9051 section 9).
#[must_use]
pub fn parse_date_time(text: &[u8]) -> Option<DateTime> {
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
    let local = i64::from(day.0)
        .checked_mul(DAY)?
        .checked_add(i64::from(seconds(hour, minute)))?
        .checked_add(i64::from(second))?;
    let ahead = zone_hours.saturating_mul(60).saturating_add(zone_minutes);
    let ahead = i16::try_from(ahead).ok()?;
    let zone_minutes = match text.get(20..22)? {
        " +" => ahead,
        " -" => ahead.checked_neg()?,
        _ => return None,
    };
    let utc = local.checked_sub(i64::from(zone_minutes).checked_mul(60)?)?;
    // At either end of the calendar the zone may lead out of it.
    let is_there = (FIRST..=LAST).contains(&utc);
    is_there.then(|| DateTime::new(Moment(utc), zone_minutes))
}

fn seconds(hours: u32, minutes: u32) -> u32 {
    hours
        .saturating_mul(3_600)
        .saturating_add(minutes.saturating_mul(60))
}

/// Writes `date-time` in quotes, such as `"04-May-2026 03:02:01 +0000"`.
pub fn put_date_time(date: DateTime, out: &mut Vec<u8>) {
    let time = date.local().later();
    let (year, month, day) = time.date();
    let year = year.saturating_sub(LATER_YEARS);
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
    let is_behind = date.zone_minutes.is_negative();
    out.extend_from_slice(if is_behind { b" -" } else { b" +" });
    let minutes = u64::from(date.zone_minutes.unsigned_abs());
    two_digits(minutes / 60, out);
    two_digits(minutes % 60, out);
    out.push(b'"');
}

/// The last two digits of a number.
fn two_digits(number: u64, out: &mut Vec<u8>) {
    for digit in [number / 10 % 10, number % 10] {
        let [digit, ..] = digit.to_le_bytes();
        out.push(b'0' | digit);
    }
}

/// The quoted `date-time` as a string.
#[must_use]
pub fn date_time(date: DateTime) -> String {
    let mut text = Vec::with_capacity("\"04-May-2026 03:02:01 +0000\"".len());
    put_date_time(date, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        for seconds in [
            0,
            951_782_400,
            1_750_000_000,
            4_102_444_799,
            -1,
            -315_586_800,
            FIRST,
            LAST,
        ] {
            let time = DateTime::from(Moment(seconds));
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
            assert_eq!(date_time(Timestamp::from_millis(millis).into()), text);
        }
        // Moments beyond the calendar are still written in full length.
        assert_eq!(date_time(Timestamp::MAX.into()).len(), 28);
        let zoned = parse_date_time(b"17-Jul-1996 02:44:25 -0700").unwrap();
        assert_eq!(date_time(zoned), "\"17-Jul-1996 02:44:25 -0700\"");
        assert_eq!(
            date_time(zoned.moment().into()),
            "\"17-Jul-1996 09:44:25 +0000\""
        );
        assert_eq!(
            parse_date_time(b" 7-Jul-1996 02:44:25 -0700").map(DateTime::day),
            Day::from_date(1996, 7, 7)
        );
    }

    #[test]
    fn times_before_1970_are_kept() {
        for (text, shown, seconds) in [
            (
                "01-Jan-1960 10:00:00 +0100",
                "01-Jan-1960 09:00:00",
                -315_586_800,
            ),
            ("31-Dec-1969 23:59:59 +0000", "31-Dec-1969 23:59:59", -1),
            ("01-Jan-1970 00:30:00 +0100", "31-Dec-1969 23:30:00", -1_800),
            (
                "29-Feb-0000 00:00:00 +0000",
                "29-Feb-0000 00:00:00",
                FIRST + 59 * DAY,
            ),
        ] {
            let date = parse_date_time(text.as_bytes()).unwrap();
            assert_eq!(date.moment().seconds(), seconds, "{text}");
            assert_eq!(date_time(date), format!("\"{text}\""));
            let in_utc = date_time(date.moment().into());
            assert_eq!(in_utc, format!("\"{shown} +0000\""));
        }
        // 1 January 1960 was a Friday.
        assert!(
            Moment(-315_586_800)
                .rfc5322()
                .starts_with("Fri, 01 Jan 1960 ")
        );
        assert_eq!(Moment::from_seconds(i64::MAX), Moment(LAST));
        assert_eq!(Moment::from_seconds(i64::MIN), Moment(FIRST));
        let now = Timestamp::from_millis(5_000);
        assert_eq!(Moment(-5).age(now), Duration::from_secs(10));
        assert_eq!(Moment(6).age(now), Duration::ZERO);
    }

    #[test]
    fn a_date_keeps_its_zone() {
        let first = Day::from_date(2007, 3, 25).unwrap();
        for (text, days_after) in [
            ("25-Mar-2007 00:30:00 +0200", 0),
            ("24-Mar-2007 23:30:00 -0930", -1),
            ("31-Mar-2007 12:00:00 +2359", 6),
            ("31-Mar-2007 12:00:00 -2359", 6),
        ] {
            let date = parse_date_time(text.as_bytes()).unwrap();
            assert_eq!(date_time(date), format!("\"{text}\""));
            assert_eq!(date.day(), Day(first.0 + days_after), "{text}");
            assert_eq!(DateTime::new(date.moment(), date.zone_minutes()), date);
        }
        // Where the date in the zone cannot be written, the date in UTC is used.
        for (moment, zone) in [
            (Moment(0), 1_440),
            (Moment(0), i16::MIN),
            (Moment(LAST), 1),
            (Moment(FIRST), -1),
        ] {
            assert_eq!(DateTime::new(moment, zone), DateTime::from(moment));
        }
        assert_eq!(DateTime::new(Moment(LAST), -1).zone_minutes(), -1);
        assert_eq!(DateTime::new(Moment(FIRST), 1).zone_minutes(), 1);
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
            "01-Jan-0000 00:00:00 +0100",
            "31-Dec-9999 23:59:59 -0100",
        ] {
            assert_eq!(parse_date_time(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(Day::from_date(1970, 1, 1), Some(Day(0)));
        assert_eq!(Day::from_date(2000, 2, 29), Some(Day(11_016)));
        assert_eq!(Day::from_date(1900, 2, 29), None);
        assert_eq!(Day::from_date(1969, 12, 31), Some(Day(-1)));
        assert_eq!(Day::from_date(1960, 1, 1), Some(Day(-3_653)));
        assert_eq!(Day::of(Moment(-1)), Day(-1));
        assert_eq!(Day::of(Moment(DAY)), Day(1));
    }
}
