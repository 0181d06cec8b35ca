//! Times of TLS reports (RFC 8460 section 4.4): date-times of RFC 3339, to the second.

use vere_units::Timestamp;

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;
/// 9999-12-31T23:59:59Z, the last time with four digits of a year.
const LAST_SECOND: u64 = 253_402_300_799;

/// Reads a date-time of RFC 3339, `2026-05-04T03:02:01Z`: a fraction is left out, any offset is applied, and without an offset the time is
/// in UTC. `None` for other texts, and outside the years 1970 to 9999.
#[must_use]
pub fn read(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, rest) = rest.split_at_checked(8)?;
    let (year, month, day) = three(date, '-')?;
    let (hour, minute, second) = three(clock, ':')?;
    let fits = (1970..=9_999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !fits {
        return None;
    }
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|character: char| character.is_ascii_digit()),
        None => rest,
    };
    let in_day = hour
        .checked_mul(3_600)?
        .checked_add(minute.checked_mul(60)?)?
        .checked_add(second)?;
    let seconds = days(year, month, day)?
        .checked_mul(86_400)?
        .checked_add(in_day)?;
    let seconds = match rest {
        "" | "Z" | "z" => seconds,
        offset => at_offset(seconds, offset)?,
    };
    let seconds = Some(seconds).filter(|seconds| *seconds <= LAST_SECOND)?;
    Some(Timestamp::from_millis(seconds.checked_mul(1_000)?))
}

/// Writes `2026-05-04T03:02:01Z`.
pub(crate) fn write(at: Timestamp) -> String {
    let text = at.to_string();
    let whole = text.split('.').next().unwrap_or_default();
    format!("{whole}Z")
}

fn at_offset(seconds: u64, offset: &str) -> Option<u64> {
    let (behind, clock) = match offset.strip_prefix('+') {
        Some(clock) => (false, clock),
        None => (true, offset.strip_prefix('-')?),
    };
    let (hours, minutes) = clock.split_once(':')?;
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    let span = hours
        .checked_mul(3_600)?
        .checked_add(minutes.checked_mul(60)?)?;
    if behind {
        seconds.checked_add(span)
    } else {
        seconds.checked_sub(span)
    }
}

fn three(text: &str, separator: char) -> Option<(u64, u64, u64)> {
    let mut parts = text.split(separator);
    let mut next = || {
        let part = parts.next()?;
        let digits = part.bytes().all(|octet| octet.is_ascii_digit());
        digits.then(|| part.parse().ok())?
    };
    let three = (next()?, next()?, next()?);
    next().is_none().then_some(three)
}

fn two(text: &str) -> Option<u64> {
    let is_two = text.len() == 2 && text.bytes().all(|octet| octet.is_ascii_digit());
    is_two.then(|| text.parse().ok())?
}

/// Days since the epoch. Years are counted from March, so that the leap day is the last of its year.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) = match month {
        1 | 2 => (year.checked_sub(1)?, month.checked_add(9)?),
        _ => (year, month.checked_sub(3)?),
    };
    let in_year = month
        .checked_mul(153)?
        .checked_add(2)?
        .checked_div(5)?
        .checked_add(day)?
        .checked_sub(1)?;
    let leaps = (year / 4)
        .checked_sub(year / 100)?
        .checked_add(year / 400)?;
    year.checked_mul(365)?
        .checked_add(leaps)?
        .checked_add(in_year)?
        .checked_sub(EPOCH_DAYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        for seconds in (0..4_102_444_800_u64).step_by(86_399 * 7) {
            let at = Timestamp::from_millis(seconds * 1_000);
            assert_eq!(read(&write(at)), Some(at), "{}", write(at));
        }
    }

    #[test]
    fn forms_of_times() {
        let at = |seconds: u64| Some(Timestamp::from_millis(seconds * 1_000));
        for (text, wanted) in [
            ("2016-04-01T00:00:00Z", at(1_459_468_800)),
            ("2016-04-01T02:00:00+02:00", at(1_459_468_800)),
            ("2016-03-31T23:30:00.123456-00:30", at(1_459_468_800)),
            ("2016-04-01t00:00:00", at(1_459_468_800)),
            ("2016-04-01", None),
            ("2016-13-01T00:00:00Z", None),
            ("2016-04-01T24:00:00Z", None),
            ("1969-04-01T00:00:00Z", None),
            ("2016-04-01T00:00:00+2:00", None),
            ("1970-01-01T00:00:00+01:00", None),
            ("9999-12-31T23:59:59Z", at(253_402_300_799)),
            ("9999-12-31T23:59:59-01:00", None),
            ("äääääääääääää", None),
            ("", None),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }
}
