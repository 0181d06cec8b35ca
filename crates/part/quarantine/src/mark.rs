//! The messages of the quarantine that recipients were told of.
//!
//! A message has a time of acceptance before the message is stored, and may be stored while digests are gathered. So the mark lies [`MARGIN`]
//! behind the digests, and messages accepted behind the mark are kept by id. A line of the file for each entry: the time of the last
//! digests, the mark, then each id with its time of acceptance; times in milliseconds. A file with the first line alone has the mark at that time.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use vere_units::{Timestamp, TraceId};

/// The longest time between the acceptance of a message and its place in the queue: no client waits longer (RFC 5321 section 4.5.3.2.6).
const MARGIN: Duration = Duration::from_secs(600);
/// Ids behind the mark; for more messages the mark moves on.
const TOLD_MAX: usize = 50_000;

/// The messages of which recipients were told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The time of the last digests.
    pub last: Timestamp,
    /// Messages accepted up to this time were told.
    from: Timestamp,
    /// The messages accepted behind the mark and told, with their times of acceptance.
    told: BTreeMap<TraceId, Timestamp>,
}

impl Mark {
    /// The mark before the first digests.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self {
            last: now,
            from: now,
            told: BTreeMap::new(),
        }
    }

    /// Reads the text of a file; `None` for another text.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let last = time(lines.next()?)?;
        let from = lines.next().and_then(time).unwrap_or(last);
        let told = lines.take(TOLD_MAX).filter_map(|line| {
            let (id, accepted) = line.split_once(' ')?;
            Some((id.parse().ok()?, time(accepted)?))
        });
        let told = told.collect();
        Some(Self { last, from, told })
    }

    /// Whether digests of this time tell of a message.
    #[must_use]
    pub fn is_new(&self, id: TraceId, accepted: Timestamp, now: Timestamp) -> bool {
        accepted > self.from && accepted <= now && !self.told.contains_key(&id)
    }

    /// Returns the mark after digests. `unread`: the earliest acceptance of a message that could not be read, which later digests tell.
    #[must_use]
    pub fn after(
        self,
        now: Timestamp,
        told: &[(TraceId, Timestamp)],
        unread: Option<Timestamp>,
    ) -> Self {
        let settled = before(now, MARGIN);
        let from = unread.map_or(settled, |unread| {
            before(unread, Duration::from_millis(1)).min(settled)
        });
        let mut from = from.max(self.from);
        let all = self.told.into_iter().chain(told.iter().copied());
        let mut behind: Vec<_> = all.filter(|(_, accepted)| *accepted > from).collect();
        behind.sort_unstable_by_key(|(id, accepted)| (*accepted, *id));
        let surplus = behind.len().saturating_sub(TOLD_MAX);
        if let Some((_, accepted)) = behind.drain(..surplus).next_back() {
            from = accepted;
        }
        Self {
            last: now,
            from,
            told: behind.into_iter().collect(),
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}\n{}", self.last.as_millis(), self.from.as_millis())?;
        for (id, accepted) in &self.told {
            writeln!(out, "{id} {}", accepted.as_millis())?;
        }
        Ok(())
    }
}

fn time(line: &str) -> Option<Timestamp> {
    line.trim().parse().ok().map(Timestamp::from_millis)
}

fn before(time: Timestamp, span: Duration) -> Timestamp {
    let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(time.as_millis().saturating_sub(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_messages_at_once_move_the_mark_on() {
        let now = Timestamp::from_millis(1_000_000);
        let told = |number: u64| {
            (
                TraceId::new(number),
                Timestamp::from_millis(900_000 + number),
            )
        };
        let all: Vec<_> = (0..50_002).map(told).collect();
        let mark = Mark::at(Timestamp::from_millis(0)).after(now, &all, None);
        let text = mark.to_string();
        assert_eq!(text.lines().count(), 50_002);
        assert_eq!(Mark::read(&text), Some(mark.clone()));
        let at = |millis| Timestamp::from_millis(millis);
        assert!(!mark.is_new(TraceId::new(0), at(900_000), now));
        assert!(!mark.is_new(TraceId::new(60_000), at(900_001), now));
        assert!(mark.is_new(TraceId::new(60_000), at(900_002), now));
    }
}
