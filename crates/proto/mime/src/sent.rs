//! The only parser of `Date` fields.

use mail_parser::DateTime;

use crate::SentDate;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Octets of a field that are looked at: comments included, no date needs more.
const OCTETS_MAX: usize = 256;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// Reads the value of a `Date` field (RFC 5322 section 3.3, obsolete forms of section 4.3 included).
///
/// Order and punctuation do not matter: the forms of `asctime`, of ISO 8601 and of HTTP are understood, a
/// missing zone is UTC, a missing time is midnight. `None` without day, month and year, and for values outside
/// the valid range (years 1900 to 3000).
#[must_use]
pub fn sent(value: &[u8]) -> Option<SentDate> {
    let kept = value.get(..OCTETS_MAX).unwrap_or(value);
    let text = without_comments(&String::from_utf8_lossy(kept)).to_ascii_lowercase();
    let around_colons: Vec<&str> = text.split(':').map(str::trim).collect();
    let text = around_colons.join(":");
    let mut found = Found::default();
    for word in text.split(|c: char| c.is_whitespace() || c == ',' || c == ';') {
        found.word(word)?;
    }
    found.date()
}

/// The text with a blank for each comment (RFC 5322 section 3.2.2); comments may nest.
fn without_comments(text: &str) -> String {
    let mut depth = 0_u32;
    let mut quoted = false;
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if quoted => quoted = false,
            '\\' if depth > 0 => quoted = true,
            '(' => depth = depth.saturating_add(1),
            ')' if depth > 0 => {
                depth = depth.saturating_sub(1);
                kept.push(' ');
            }
            c if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

/// The date components found so far.
#[derive(Debug, Default)]
struct Found {
    day: Option<u8>,
    month: Option<u8>,
    year: Option<u16>,
    /// Hour, minute and second.
    time: Option<(u8, u8, u8)>,
    /// Minutes east of Greenwich.
    zone: Option<i32>,
}

impl Found {
    /// Takes a word, in lower case. `None` for a number that fits no component.
    fn word(&mut self, word: &str) -> Option<()> {
        if let Some(zone) = self.time.and_then(|_| offset(word)) {
            self.zone = Some(zone);
        } else if word.contains(':') {
            self.clock(word)?;
        } else if word.contains('-') || word.contains('/') {
            self.parts(word)?;
        } else if word.bytes().all(|octet| octet.is_ascii_digit()) {
            self.number(word)?;
        } else {
            self.name(word);
        }
        Some(())
    }

    /// Takes `13:36:40`, with a date directly before (`2002-09-14T`) or a zone or meridiem directly behind
    /// (`+0200`, `pm`).
    fn clock(&mut self, word: &str) -> Option<()> {
        let word = match word.split_once('t') {
            Some((date, time)) if date.len() == 10 => {
                self.parts(date)?;
                time
            }
            _ => word,
        };
        let end = word.find(|c: char| !c.is_ascii_digit() && c != ':');
        let (time, rest) = word.split_at_checked(end.unwrap_or(word.len()))?;
        let mut numbers = time.split(':');
        let mut number = || numbers.next().map(str::parse::<u8>);
        let (hour, minute) = (number()?.ok()?, number()?.ok()?);
        let second = number().and_then(Result::ok).unwrap_or(0);
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        // No time has a second :60 here.
        self.time.get_or_insert((hour, minute, second.min(59)));
        let rest = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
        if !rest.is_empty() {
            match offset(rest) {
                Some(zone) => self.zone = Some(zone),
                None => self.name(rest),
            }
        }
        Some(())
    }

    /// Takes `14-sep-2002`, `2002-09-14` and `2002/09/14`.
    fn parts(&mut self, word: &str) -> Option<()> {
        let mut parts = word.split(['-', '/']).filter(|part| !part.is_empty());
        let (first, second, third) = (parts.next(), parts.next(), parts.next());
        let (Some(first), Some(second), Some(third)) = (first, second, third) else {
            return Some(());
        };
        match second.parse() {
            Ok(month) if first.len() == 4 => {
                self.number(third)?;
                self.month.get_or_insert(month);
                self.number(first)
            }
            // Two short numbers leave open which number is the month.
            Ok(_) => None,
            Err(_) => {
                self.name(second);
                self.number(first)?;
                self.number(third)
            }
        }
    }

    /// Takes the day or the year: a number of two digits is the day before it is the year.
    fn number(&mut self, digits: &str) -> Option<()> {
        if digits.is_empty() {
            return Some(());
        }
        let number: u16 = digits.parse().ok()?;
        if self.day.is_none() && digits.len() <= 2 {
            self.day = u8::try_from(number).ok();
        } else if self.year.is_none() {
            // RFC 5322 section 4.3; some programs write 0102 for 2002.
            self.year = Some(match (digits.len(), number) {
                (1 | 2, 0..=49) => number.saturating_add(2000),
                (1..=3, _) | (4, 100..=199) => number.saturating_add(1900),
                _ => number,
            });
        } else if self.time.is_some() && self.zone.is_none() && digits.len() == 4 {
            // A zone without a sign.
            self.zone = offset(&format!("+{digits}"));
        }
        Some(())
    }

    /// Takes a month, a zone, or `am` and `pm`; a day of the week and anything else says nothing.
    fn name(&mut self, word: &str) {
        let month = MONTHS
            .iter()
            .position(|month| word.get(..3) == Some(*month))
            .and_then(|at| u8::try_from(at).ok());
        if let (Some(month), None) = (month, self.month) {
            self.month = Some(month.saturating_add(1));
        } else if let (Some(time), "am" | "pm") = (&mut self.time, word) {
            time.0 = match (time.0, word) {
                (12, "am") => 0,
                (hour @ 1..=11, "pm") => hour.saturating_add(12),
                (hour, _) => hour,
            };
        } else if self.time.is_some() && self.zone.is_none() {
            self.zone = named_zone(word);
        }
    }

    fn date(&self) -> Option<SentDate> {
        let (hour, minute, second) = self.time.unwrap_or_default();
        let zone = self.zone.unwrap_or_default();
        let minutes = zone.unsigned_abs();
        let date = DateTime {
            year: self.year?,
            month: self.month?,
            day: self.day?,
            hour,
            minute,
            second,
            tz_before_gmt: zone < 0,
            tz_hour: u8::try_from(minutes.checked_div(60)?).ok()?,
            tz_minute: u8::try_from(minutes.checked_rem(60)?).ok()?,
        };
        date.is_valid().then(|| SentDate {
            seconds: date.to_timestamp(),
            day: date.to_timestamp_local().div_euclid(DAY),
        })
    }
}

/// Minutes of `+0200`, `-07:00` or `+1`, with any text behind.
fn offset(word: &str) -> Option<i32> {
    let sign = match word.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    // Of `+-0500` the last sign counts, as with most readers.
    let sign = if word.starts_with("+-") { -1 } else { sign };
    let digits = word.trim_start_matches(['+', '-']);
    let digits: String = digits.chars().filter(|c| *c != ':').collect();
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let digits = digits.get(..end.unwrap_or(digits.len()))?;
    let number: i32 = digits.parse().ok()?;
    let (hours, minutes) = match digits.len() {
        1 | 2 => (number, 0),
        _ => (number.checked_div(100)?, number.checked_rem(100)?),
    };
    // A zone out of range is ignored.
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    Some(if hours > 23 {
        0
    } else {
        minutes.checked_mul(sign)?
    })
}

/// Minutes of a named zone (RFC 5322 section 4.3); `None` for an unknown name.
fn named_zone(name: &str) -> Option<i32> {
    let hours = match name {
        "edt" => -4,
        "est" | "cdt" => -5,
        "cst" | "mdt" => -6,
        "mst" | "pdt" => -7,
        "pst" => -8,
        "z" | "ut" | "utc" | "gmt" => 0,
        _ => return None,
    };
    i32::checked_mul(hours, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the parsed date of `text` with the expected date in RFC 3339.
    fn check(text: &str, expected: Option<&str>) {
        let read = sent(text.as_bytes());
        let wanted = expected.and_then(DateTime::parse_rfc3339);
        assert_eq!(
            read.map(|date| date.seconds),
            wanted.as_ref().map(DateTime::to_timestamp),
            "{text}"
        );
        assert_eq!(
            read.map(|date| date.day),
            wanted.map(|date| date.to_timestamp_local().div_euclid(DAY)),
            "{text}"
        );
    }

    #[test]
    fn dates_are_read_as_they_are_written() {
        for (text, expected) in [
            (
                "Fri, 21 Nov 1997 09:55:06 -0600",
                "1997-11-21T09:55:06-06:00",
            ),
            ("21 Nov 97 09:55:06 GMT", "1997-11-21T09:55:06Z"),
            (
                "Fri, 21 Nov 1997 09(comment):   55  :  06 -0600",
                "1997-11-21T09:55:06-06:00",
            ),
            (
                "Thu,\t13\tFeb\t1969\t23:32\t-0330 (Newfoundland (\\) Time))",
                "1969-02-13T23:32:00-03:30",
            ),
            ("Sat, 14 Sep 2002 13:36:40", "2002-09-14T13:36:40Z"),
            ("Sat, 14 Sep 2002 13:36:40 CEST", "2002-09-14T13:36:40Z"),
            ("Sat, 14 Sep 2002 13:36:40 PDT", "2002-09-14T13:36:40-07:00"),
            (
                "Sat, 14 Sep 102 13:36:40 +0200",
                "2002-09-14T13:36:40+02:00",
            ),
            ("Sat Sep 14 10:36:40 2002", "2002-09-14T10:36:40Z"),
            ("Sat Sep 14 10:36:40 EDT 2002", "2002-09-14T10:36:40-04:00"),
            (
                "Sat Sep 14 10:36:40 2002 +0200",
                "2002-09-14T10:36:40+02:00",
            ),
            ("September 14, 2002 10:36:40 PM", "2002-09-14T22:36:40Z"),
            ("Sat, 14-Sep-2002 10:36:40 GMT", "2002-09-14T10:36:40Z"),
            ("Saturday, 14-Sep-02 10:36:40 GMT", "2002-09-14T10:36:40Z"),
            ("2002-09-14T10:36:40.123+02:00", "2002-09-14T10:36:40+02:00"),
            ("2002-09-14 10:36:40 +0200", "2002-09-14T10:36:40+02:00"),
            ("2002/09/14 12:36:40am", "2002-09-14T00:36:40Z"),
            ("Sat, 14 Sep 2002", "2002-09-14T00:00:00Z"),
            ("Sat, 31 Dec 2016 23:59:60 +0000", "2016-12-31T23:59:59Z"),
            (
                "Sat, 14 Sep 2002 23:36:40 -0800 (PST)",
                "2002-09-14T23:36:40-08:00",
            ),
            (
                "Sat, 14 Sep 2002 23:36:40+0100",
                "2002-09-14T23:36:40+01:00",
            ),
            ("Sat, 14 Sep 2002 23:36:40 +9900", "2002-09-14T23:36:40Z"),
            ("Sat, 14 Sep 2002 12:36:40 pm", "2002-09-14T12:36:40Z"),
            (
                "Sat, 14 Sep 0102 13:36:40 +0200",
                "2002-09-14T13:36:40+02:00",
            ),
            (
                "Sat, 14 Sep 2002 13:36:40 +-0500",
                "2002-09-14T13:36:40-05:00",
            ),
            (
                "Sat, 14 Sep 2002 13:36:40 0530",
                "2002-09-14T13:36:40+05:30",
            ),
            ("2002/09/14 Sat 02:29:32 CDT", "2002-09-14T02:29:32-05:00"),
            ("Sat, 14 Sep 49 01:02:03", "2049-09-14T01:02:03Z"),
            ("Sat, 14 Sep 50 01:02:03", "1950-09-14T01:02:03Z"),
        ] {
            check(text, Some(expected));
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "yesterday",
            "Sat, 14 2002 13:36:40",
            "Sat, Sep 2002 13:36:40",
            "14 Sep 13:36:40",
            "14 Sep 2002 24:00:00",
            "14 Sep 2002 13:60:40",
            "32 Sep 2002 13:36:40",
            "0 Sep 2002 13:36:40",
            "14 Sep 1899 13:36:40",
            "14 Sep 3001 13:36:40",
            "2002-13-14 13:36:40",
            "09/14/02 13:36:40",
            "14 Sep 99999999999999 13:36:40",
            "(14 Sep 2002 13:36:40",
            "14 Sep 2002 \u{1f600}:36",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn no_more_than_the_beginning_is_looked_at() {
        let late = format!("{}14 Sep 2002", " ".repeat(OCTETS_MAX));
        check(&late, None);
        check(late.trim_start(), Some("2002-09-14T00:00:00Z"));
    }
}
