//! The line before each message: `From sender Thu Jan  1 00:00:00 1970` (RFC 4155).

use vere_imap::date::{Day, Moment, month};

/// Octets of a line that are inspected.
pub(super) const LINE_MAX: usize = 512;

/// Whether a line begins a message: what stands in old mail is not always a whole date, but has a time of day.
pub(super) fn is_one(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ") else {
        return false;
    };
    words(rest).any(|word| time_of_day(word).is_some())
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// Seconds since midnight.
fn time_of_day(word: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(word).ok()?;
    let mut parts = text.split(':').map(|part| {
        let digits = part.len() <= 2 && part.bytes().all(|octet| octet.is_ascii_digit());
        digits.then(|| part.parse::<i64>().ok()).flatten()
    });
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().map_or(Some(0), |second| second)?;
    let fits = parts.next().is_none() && hour < 24 && minute < 60 && second <= 60;
    fits.then_some((hour * 60 + minute) * 60 + second)
}

/// When the message was received; in UTC, as RFC 4155 requires, because the names of zones are ambiguous.
pub(super) fn date(line: &[u8]) -> Option<Moment> {
    let all: Vec<&[u8]> = words(line).collect();
    // The sender may look like anything: a date is looked for from the end.
    let at = all
        .iter()
        .rposition(|word| word.len() == 3 && month(word).is_some())?;
    let day: u8 = std::str::from_utf8(all.get(at + 1)?).ok()?.parse().ok()?;
    let time = time_of_day(all.get(at + 2)?)?;
    let year = all[at + 3..].iter().find_map(|word| {
        let text = std::str::from_utf8(word).ok()?;
        let is_year = text.len() == 4 && text.bytes().all(|octet| octet.is_ascii_digit());
        is_year.then(|| text.parse::<u16>().ok()).flatten()
    })?;
    let day = Day::from_date(year, month(all[at])?, day)?;
    Some(Moment::from_seconds(i64::from(day.0) * 86_400 + time))
}

/// The line for a message.
pub(super) fn line(sender: &str, date: Option<Moment>) -> String {
    let sender = match sender.is_empty() || sender.contains(char::is_whitespace) {
        true => "MAILER-DAEMON",
        false => sender,
    };
    // `Mon, 04 May 2026 03:02:01 +0000`
    let text = date.unwrap_or(Moment::from_seconds(0)).rfc5322();
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    let day = part(5..7).trim_start_matches('0');
    format!(
        "From {sender} {} {} {day:>2} {} {}\n",
        part(0..3),
        part(8..11),
        part(17..25),
        part(12..16)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        for (text, seconds) in [
            ("From a@b Wed Jul 17 09:44:25 1996", Some(837_596_665)),
            ("From a@b Wed Jul 17 09:44:25 MET 1996", Some(837_596_665)),
            ("From a@b Wed Jul 17 09:44:25 1996 +0200", Some(837_596_665)),
            ("From a b (Jan) Wed Jul 17 09:44 1996", Some(837_596_640)),
            ("From - Wed Jul 17 09:44:25 1996", Some(837_596_665)),
            ("From a@b Wed Jul 17 1996 09:44:25", None),
            ("From a@b Wed Feb 30 09:44:25 1996", None),
        ] {
            let found = date(text.as_bytes()).map(Moment::seconds);
            assert_eq!(found, seconds, "{text}");
            assert!(is_one(text.as_bytes()), "{text}");
        }
        for text in [
            "From here on it is 12 o'clock",
            "From:",
            ">From a 12:00:00",
            "from a 12:00",
        ] {
            assert!(!is_one(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn lines_are_read_again() {
        for seconds in [0, 837_596_665, 1_700_000_000, -315_586_800] {
            let time = Moment::from_seconds(seconds);
            assert_eq!(date(line("a@b", Some(time)).as_bytes()), Some(time));
        }
        assert_eq!(
            line("", None),
            "From MAILER-DAEMON Thu Jan  1 00:00:00 1970\n"
        );
    }
}
