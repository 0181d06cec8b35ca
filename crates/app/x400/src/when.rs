//! Times on the command line.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use vere_units::{Span, Timestamp};
use vere_x400::Time;

/// A point in time, or a time from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A point in time.
    At(Time),
    /// A time from now.
    In(Span),
}

/// A fault of text as a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhenError(String);

impl std::error::Error for WhenError {}

impl std::fmt::Display for WhenError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let found = &self.0;
        write!(
            out,
            "expected a time such as 2026-11-29T12:00:00Z, or from now such as 2h; found {found:?}"
        )
    }
}

impl FromStr for When {
    type Err = WhenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let span = || text.parse().map(Self::In);
        let read = text.parse().map(Self::At).or_else(|_| span());
        read.map_err(|_| WhenError(text.to_owned()))
    }
}

impl When {
    /// The time as text, for the MTA.
    pub(crate) fn text(self, now: Time) -> String {
        match self {
            Self::At(time) => time.to_string(),
            Self::In(span) => Time::from(now.timestamp() + span.duration()).to_string(),
        }
    }
}

/// A point in time, a day, or a time ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// A point in time.
    At(Time),
    /// A time ago.
    Ago(Span),
}

/// A fault of text as a time in the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastError(String);

impl std::error::Error for PastError {}

impl std::fmt::Display for PastError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let found = &self.0;
        write!(
            out,
            "expected a time such as 2026-11-29, 2026-11-29T12:00:00Z, or ago such as 2h; found {found:?}"
        )
    }
}

impl FromStr for Past {
    type Err = PastError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let day = || format!("{text}T00:00:00Z").parse().map(Self::At);
        let span = || text.parse().map(Self::Ago);
        let read = text.parse().map(Self::At).or_else(|_| day());
        read.or_else(|_| span())
            .map_err(|_| PastError(text.to_owned()))
    }
}

impl Past {
    /// The time, seen from now.
    pub(crate) fn before(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time.timestamp(),
            Self::Ago(span) => {
                Timestamp::from_millis(now.as_millis().saturating_sub(span.as_millis()))
            }
        }
    }
}

/// The time of the system.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Time::from_unix(since.map_or(0, |since| since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_point_or_from_now() {
        let now = Time::from_unix(1_777_777_777);
        for (text, shown) in [
            ("2026-11-29T12:00:00Z", "2026-11-29T12:00:00Z"),
            ("2026-11-29T14:00+02:00", "2026-11-29T12:00:00Z"),
            ("2h", "2026-05-03T05:09:37Z"),
            ("0s", "2026-05-03T03:09:37Z"),
        ] {
            let when: When = text.parse().unwrap();
            assert_eq!(when.text(now), shown);
        }
        for text in ["", "2", "tomorrow", "-2h", "2026-11-29"] {
            let error = text.parse::<When>().unwrap_err().to_string();
            assert!(error.ends_with(&format!("found {text:?}")), "{error}");
        }
    }

    #[test]
    fn a_time_in_the_past_is_a_point_a_day_or_ago() {
        let now = Timestamp::from_millis(1_777_777_777_123);
        for (text, shown) in [
            ("2026-05-01", "2026-05-01T00:00:00.000Z"),
            ("2026-05-01T12:00:00Z", "2026-05-01T12:00:00.000Z"),
            ("2h", "2026-05-03T01:09:37.123Z"),
            ("100000d", "1970-01-01T00:00:00.000Z"),
        ] {
            let past: Past = text.parse().unwrap();
            assert_eq!(past.before(now).to_string(), shown);
        }
        for text in ["", "2", "yesterday", "2026-13-01"] {
            let error = text.parse::<Past>().unwrap_err().to_string();
            assert!(error.ends_with(&format!("found {text:?}")), "{error}");
        }
    }
}
