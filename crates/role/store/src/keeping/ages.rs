//! Ages of the log, as far as they are certain: marks say how long ago the log ended at a position. A clock that is
//! wrong makes nothing older: the time that processes ran counts, and between two processes the clock for a day at
//! most, as for the days of the archive (`crates/host/archive`).

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vere_store::Position;
use vere_units::{LogId, Timestamp};

/// Into how many marks the time is divided that messages are kept.
pub(super) const MARKS: u32 = 64;
/// The most marks, whatever the settings were.
const MARKS_MAX: usize = 1_000;
/// The longest time between two processes that counts. A clock that shows more may be wrong.
const OFF_MAX: Duration = Duration::from_secs(86_400);
const VERSION: u32 = 1;

/// The ages of the log at the last look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ages {
    version: u32,
    /// The number of the log, in hexadecimal.
    log: String,
    /// The clock at the last look, or at an earlier look if it has gone back since by at most a day.
    clock_ms: u64,
    /// The oldest first.
    marks: Vec<Mark>,
}

/// The log ended at `position` at least `age_ms` ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    position: u64,
    age_ms: u64,
}

impl Ages {
    fn none(log: LogId) -> Self {
        Self {
            version: VERSION,
            log: format!("{:016x}", log.0),
            clock_ms: 0,
            marks: Vec::new(),
        }
    }

    /// Reads the file. Without a sound file of this log, everything counts as expunged now. Marks behind the end of the
    /// log are of a log that was longer: what it had there is gone.
    pub(super) fn read(file: &Path, log: LogId, end: Position) -> Self {
        let none = Self::none(log);
        let read = fs::read(file).ok();
        let read = read.and_then(|octets| serde_json::from_slice::<Self>(&octets).ok());
        let known = read.filter(|known| known.version == VERSION && known.log == none.log);
        let mut known = known.unwrap_or(none);
        known.marks.retain(|mark| mark.position <= end.0);
        known.marks.sort_unstable_by_key(|mark| mark.position);
        known
    }

    /// Writes the file. A cut of power may leave the file of the look before, or none: messages are kept longer then.
    pub(super) fn write(&self, file: &Path) {
        let new = file.with_extension("new");
        let octets = serde_json::to_vec(self).unwrap_or_default();
        let written = fs::write(&new, octets).and_then(|()| fs::rename(&new, file));
        if let Err(error) = written {
            tracing::warn!(%error, "ages of expunged messages cannot be noted");
        }
    }

    /// Takes a look. `ran` is the time since the last look of this process, if there was one.
    pub(super) fn look(
        &mut self,
        end: Position,
        clock: Timestamp,
        ran: Option<Duration>,
        keep: Duration,
    ) {
        let counted = millis(self.counted(clock, ran));
        for mark in &mut self.marks {
            mark.age_ms = mark.age_ms.saturating_add(counted);
        }
        if clock.as_millis() > self.clock_ms || self.is_far_behind(clock) {
            self.clock_ms = clock.as_millis();
        }
        let interval = millis(keep / MARKS);
        let newest = self.marks.last();
        if newest.is_none_or(|mark| mark.age_ms >= interval && mark.position < end.0) {
            self.marks.push(Mark {
                position: end.0,
                age_ms: 0,
            });
        }
        // Of the marks that are old enough the newest says all.
        let old = self
            .marks
            .iter()
            .rposition(|mark| mark.age_ms >= millis(keep));
        let surplus = self.marks.len().saturating_sub(MARKS_MAX);
        self.marks.drain(..old.unwrap_or(0).max(surplus));
    }

    /// The time since the last look that is certain. A clock that goes back by up to a day has shown time that did not
    /// pass, so as much does not count behind.
    fn counted(&self, clock: Timestamp, ran: Option<Duration>) -> Duration {
        if self.is_far_behind(clock) {
            return ran.unwrap_or_default();
        }
        let shown = clock.saturating_since(Timestamp::from_millis(self.clock_ms));
        match ran {
            Some(ran) => shown.min(ran),
            None if shown <= OFF_MAX => shown,
            None => Duration::ZERO,
        }
    }

    /// Whether the clock has gone back far: it was or is wrong.
    fn is_far_behind(&self, clock: Timestamp) -> bool {
        Timestamp::from_millis(self.clock_ms).saturating_since(clock) > OFF_MAX
    }

    /// Everything before this position is at least this old for certain.
    pub(super) fn expired(&self, keep: Duration) -> Position {
        let old = self.marks.iter().rev();
        let mut old = old.filter(|mark| mark.age_ms >= millis(keep));
        Position(old.next().map_or(0, |mark| mark.position))
    }

    /// The position of a mark, counted from the oldest one that lies after `reached`.
    pub(super) fn after(&self, reached: Position, number: usize) -> Option<Position> {
        let mark = self.marks_after(reached).nth(number);
        mark.map(|mark| Position(mark.position))
    }

    /// How many marks lie after `reached`.
    pub(super) fn count_after(&self, reached: Position) -> usize {
        self.marks_after(reached).count()
    }

    fn marks_after(&self, reached: Position) -> impl Iterator<Item = &Mark> {
        let marks = self.marks.iter();
        marks.filter(move |mark| mark.position > reached.0)
    }

    /// The position of the newest mark.
    pub(super) fn newest(&self) -> Option<Position> {
        self.marks.last().map(|mark| Position(mark.position))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
