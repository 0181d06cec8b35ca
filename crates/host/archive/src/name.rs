//! Names: days, segments, entries.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use vere_units::Timestamp;

/// Milliseconds of a day and of a minute.
pub(crate) const DAY_MILLIS: u64 = 86_400_000;
pub(crate) const MINUTE_MILLIS: u64 = 60_000;
/// Minutes of a day.
pub(crate) const DAY_MINUTES: u64 = 1_440;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;
/// 9999-12-31: directories of later days would have longer names.
const LAST_DAY: u64 = 2_932_896;
/// The greatest number of a part.
const PART_MAX: u32 = 9_999_999;

/// A day in UTC. Its text is `2026-11-29`, the name of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(u64);

impl Day {
    /// The day of a point in time; 9999-12-31 for all later times.
    #[must_use]
    pub const fn of(at: Timestamp) -> Self {
        let day = at.as_millis() / DAY_MILLIS;
        Self(if day > LAST_DAY { LAST_DAY } else { day })
    }

    /// The first millisecond.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(DAY_MILLIS))
    }

    /// The first millisecond behind the day.
    #[must_use]
    pub const fn end(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_add(1).saturating_mul(DAY_MILLIS))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.start().date();
        f.pad(&format!("{year:04}-{month:02}-{day:02}"))
    }
}

impl FromStr for Day {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let refused = || NameError::Day(shortened(text));
        let mut parts = text.split('-').map(|part| digits(part, 4));
        let (Some(Some(year)), Some(Some(month)), Some(Some(day)), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refused());
        };
        if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(refused());
        }
        let found = Self(days_of(year, month, day));
        // 31 November and the like, and fields of another length, have another text.
        (found.to_string() == text)
            .then_some(found)
            .ok_or_else(refused)
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, with years counted from March.
const fn days_of(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - EPOCH_DAYS
}

/// A segment: a minute, and a part of the minute. The text form of a segment is `2026-11-29/1305`; further parts of the minute end in `-1`, `-2` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    day: Day,
    minute: u16,
    part: u32,
}

impl SegmentName {
    /// The first part of the minute of a point in time.
    #[must_use]
    pub const fn of(at: Timestamp) -> Self {
        let minute = at.as_millis() % DAY_MILLIS / MINUTE_MILLIS;
        Self {
            day: Day::of(at),
            minute: minute as u16,
            part: 0,
        }
    }

    /// The day.
    #[must_use]
    pub const fn day(self) -> Day {
        self.day
    }

    /// The first millisecond of the minute.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        let start = self.day.start().as_millis();
        Timestamp::from_millis(start.saturating_add(self.minute as u64 * MINUTE_MILLIS))
    }

    /// The part, from 0.
    #[must_use]
    pub const fn part(self) -> u32 {
        self.part
    }

    /// The same minute, another part.
    pub(crate) const fn with_part(self, part: u32) -> Self {
        Self { part, ..self }
    }

    /// The segment of a file `HHMM.EXTENSION` or `HHMM-PART.EXTENSION` in the directory of a day.
    pub(crate) fn of_file(day: Day, name: &str, extension: &str) -> Option<Self> {
        let stem = name.strip_suffix(extension)?.strip_suffix('.')?;
        Self::of_stem(day, stem)
    }

    fn of_stem(day: Day, stem: &str) -> Option<Self> {
        let (clock, part) = match stem.split_once('-') {
            Some((clock, part)) => (clock, u32::try_from(digits(part, 7)?).ok()?),
            None => (stem, 0),
        };
        let clock = digits(clock, 4)?;
        let (hour, minute) = (clock / 100, clock % 100);
        let minute = (hour < 24 && minute < 60).then_some(hour * 60 + minute)?;
        let found = Self {
            day,
            minute: u16::try_from(minute).ok()?,
            part,
        };
        (found.stem() == stem && part <= PART_MAX).then_some(found)
    }

    fn stem(self) -> String {
        let clock = format!("{:02}{:02}", self.minute / 60, self.minute % 60);
        match self.part {
            0 => clock,
            part => format!("{clock}-{part}"),
        }
    }

    /// A file of the segment, below the directory of the archive.
    pub(crate) fn path(self, folder: &Path, extension: &str) -> PathBuf {
        folder
            .join(self.day.to_string())
            .join(format!("{}.{extension}", self.stem()))
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.day, self.stem()))
    }
}

impl FromStr for SegmentName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let refused = || NameError::Segment(shortened(text));
        let (day, stem) = text.split_once('/').ok_or_else(refused)?;
        Self::of_stem(day.parse()?, stem).ok_or_else(refused)
    }
}

/// An entry: its segment and its place there. Its text is `2026-11-29/1305@64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// The segment.
    pub segment: SegmentName,
    /// The place of the head of the entry in the segment, in octets.
    pub offset: u64,
}

impl EntryId {
    /// The name of a file for the octets: `2026-11-29-1305-64`.
    #[must_use]
    pub fn file_stem(self) -> String {
        let text = self.segment.to_string().replace('/', "-");
        format!("{text}-{}", self.offset)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}@{}", self.segment, self.offset))
    }
}

impl FromStr for EntryId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let refused = || NameError::Entry(shortened(text));
        let (segment, offset) = text.split_once('@').ok_or_else(refused)?;
        Ok(Self {
            segment: segment.parse()?,
            offset: digits(offset, 19).ok_or_else(refused)?,
        })
    }
}

/// A text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No day.
    #[error("expected a day such as 2026-11-29; found {0:?}")]
    Day(String),
    /// No segment.
    #[error("expected a segment such as 2026-11-29/1305; found {0:?}")]
    Segment(String),
    /// No entry.
    #[error("expected an entry such as 2026-11-29/1305@64; found {0:?}")]
    Entry(String),
}

/// A number of at most `most` digits, without a sign.
fn digits(text: &str, most: usize) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= most && text.bytes().all(|c| c.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_as_written() {
        for text in [
            "1970-01-01",
            "1999-12-31",
            "2000-02-29",
            "2024-02-29",
            "2026-11-29",
            "2100-03-01",
            "9999-12-31",
        ] {
            assert_eq!(text.parse::<Day>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "2026",
            "2026-11",
            "2026-11-29-",
            "2026-02-29",
            "2026-11-31",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "2026-1-01",
            "1969-12-31",
            "+026-01-01",
            "2026-11-29T",
            "02026-11-29",
            "lost+found",
            "2026-11-29.removed",
            "ages",
            "2026-01-32",
        ] {
            assert_eq!(
                text.parse::<Day>(),
                Err(NameError::Day(text.to_owned())),
                "{text}"
            );
        }
        let day: Day = "2026-11-29".parse().unwrap();
        assert_eq!(day.start().to_string(), "2026-11-29T00:00:00.000Z");
        assert_eq!(day.end().to_string(), "2026-11-30T00:00:00.000Z");
        assert_eq!(Day::of(day.end()), "2026-11-30".parse().unwrap());
        assert_eq!(Day::of(Timestamp::MAX).to_string(), "9999-12-31");
        assert_eq!(Day(LAST_DAY).to_string(), "9999-12-31");
    }

    #[test]
    fn every_day_of_eight_years_is_read_back() {
        for number in 18_000..21_000 {
            let day = Day(number);
            assert_eq!(day.to_string().parse(), Ok(day));
        }
    }

    #[test]
    fn segments_and_entries_are_read_as_written() {
        for text in [
            "2026-11-29/0000",
            "2026-11-29/2359",
            "2026-11-29/1305-1",
            "2026-11-29/1305-9999999",
        ] {
            assert_eq!(text.parse::<SegmentName>().unwrap().to_string(), text);
            let id = format!("{text}@64");
            assert_eq!(id.parse::<EntryId>().unwrap().to_string(), id);
        }
        for text in [
            "2026-11-29",
            "2026-11-29/",
            "2026-11-29/2400",
            "2026-11-29/1260",
            "2026-11-29/130",
            "2026-11-29/1305-0",
            "2026-11-29/1305-",
            "2026-11-29/1305-01",
            "2026-11-29/1305-10000000",
            "2026-11-29/13050",
            "../1305",
        ] {
            assert!(text.parse::<SegmentName>().is_err(), "{text}");
        }
        for text in [
            "2026-11-29/1305",
            "2026-11-29/1305@",
            "2026-11-29/1305@-1",
            "@1",
            "2026-11-29/1305@99999999999999999999",
        ] {
            assert!(text.parse::<EntryId>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_sort_by_time_and_part() {
        let names = [
            "2026-11-28/2359",
            "2026-11-29/0000",
            "2026-11-29/0000-2",
            "2026-11-29/0000-10",
            "2026-11-29/0001",
        ];
        let read: Vec<SegmentName> = names.iter().map(|name| name.parse().unwrap()).collect();
        assert!(read.is_sorted());
        assert_eq!(read[3].start(), read[1].start());
        assert_eq!(
            read[4].start().as_millis() - read[1].start().as_millis(),
            MINUTE_MILLIS
        );
    }

    #[test]
    fn files_are_told_from_others() {
        let day = "2026-11-29".parse().unwrap();
        let of = |name| SegmentName::of_file(day, name, "seg").map(|name| name.to_string());
        assert_eq!(of("1305.seg").as_deref(), Some("2026-11-29/1305"));
        assert_eq!(of("1305-7.seg").as_deref(), Some("2026-11-29/1305-7"));
        for other in ["1305.idx", "1305seg", "1305.seg.new", ".seg", "x.seg"] {
            assert_eq!(of(other), None, "{other}");
        }
        let path = SegmentName::of_file(day, "1305-7.seg", "seg")
            .unwrap()
            .path(Path::new("a"), "idx");
        assert_eq!(path, Path::new("a/2026-11-29/1305-7.idx"));
        let id: EntryId = "2026-11-29/1305-7@64".parse().unwrap();
        assert_eq!(id.file_stem(), "2026-11-29-1305-7-64");
    }
}
