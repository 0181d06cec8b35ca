//! Numbers and texts for people.

use std::borrow::Cow;
use std::fmt::Write as _;

use vere_units::Timestamp;

use crate::audit::steers_terminal;

/// A number of octets, with two or three digits: `999 B`, `1.2 KiB`, `34 MiB`.
pub(super) fn size(octets: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if octets < 1_024 {
        return format!("{octets} B");
    }
    let (mut rest, mut unit) = (octets, 0);
    while rest >= 1 << 20 && unit + 1 < UNITS.len() {
        rest >>= 10;
        unit += 1;
    }
    // Tenths, rounded to nearest.
    let tenths = (rest * 10 + 512) >> 10;
    let name = UNITS.get(unit).copied().unwrap_or_default();
    match tenths < 100 {
        true => format!("{}.{} {name}", tenths / 10, tenths % 10),
        false => format!("{} {name}", (rest + 512) >> 10),
    }
}

/// The time since a point: `12 s`, `5 min`, `3 h`, `2 d`; `-` for points in the future.
pub(super) fn age(now: Timestamp, at: Timestamp) -> String {
    if at > now {
        return "-".to_owned();
    }
    let seconds = now.saturating_since(at).as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// `1 entry`, `2 entries`.
pub(super) fn count(number: u64, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) if !noun.ends_with("day") => format!("{number} {stem}ies"),
        _ => format!("{number} {noun}s"),
    }
}

/// A text of a stranger on one line, without characters that steer a terminal. An empty text is `-`.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    if text.is_empty() {
        return "-".into();
    }
    if !text.contains(steers_terminal) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match steers_terminal(character) {
            true => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            false => out.push(character),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn sizes_have_two_or_three_digits() {
        for (octets, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_229, "1.2 KiB"),
            (10_188, "9.9 KiB"),
            (10_240, "10 KiB"),
            (1_047_552, "1023 KiB"),
            (1 << 20, "1.0 MiB"),
            (10 << 20, "10 MiB"),
            (3 << 30, "3.0 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(size(octets), text, "{octets}");
        }
    }

    #[test]
    fn ages_have_one_unit() {
        let at = Timestamp::from_millis(1_000_000);
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3_599, "59 min"),
            (3_600, "1 h"),
            (172_799, "47 h"),
            (172_800, "2 d"),
            (8_640_000, "100 d"),
        ] {
            assert_eq!(age(at + Duration::from_secs(seconds), at), text);
        }
        assert_eq!(age(at, at + Duration::from_millis(1)), "-");
    }

    #[test]
    fn nouns_have_plurals() {
        assert_eq!(
            [0, 1, 2].map(|number| count(number, "entry")).join(" "),
            "0 entries 1 entry 2 entries"
        );
        assert_eq!(
            [1, 2].map(|number| count(number, "segment")).join(" "),
            "1 segment 2 segments"
        );
        assert_eq!(count(2, "day"), "2 days");
    }

    #[test]
    fn texts_of_strangers_steer_nothing() {
        assert_eq!(shown("C=GB;S=Ö"), "C=GB;S=Ö");
        assert_eq!(shown(""), "-");
        assert_eq!(
            shown("a\u{1b}[2Jb\nc\u{202e}"),
            "a\\u{1b}[2Jb\\u{a}c\\u{202e}"
        );
    }
}
