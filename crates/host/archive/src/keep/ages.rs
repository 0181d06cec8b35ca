//! How long each day has been without a change, as far as that is certain.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vere_units::Timestamp;

use crate::name::{DAY_MILLIS, Day};

/// The file beside the days, and the name during a write.
const NAME: &str = "ages";
const NEW_NAME: &str = "ages.new";
const DAY: Duration = Duration::from_millis(DAY_MILLIS);
/// The longest time between two processes that counts. A clock that shows more may be wrong.
const OFF_MAX: Duration = DAY;
/// Delay of a removal without a warning. The looks, and uncounted time, delay a removal.
const LATE: Duration = DAY;

/// The ages of all days, at the last look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ages {
    /// The clock at the last look, or at an earlier look if it has gone back since by at most a day.
    #[serde(rename = "clock_ms")]
    clock: Timestamp,
    /// By the texts of days.
    days: BTreeMap<String, Age>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Age {
    /// The last change by the file system.
    changed: i64,
    /// Counted time since the first look with this change.
    age_ms: u64,
}

impl Ages {
    /// Reads the file. Without a sound file every day is as if changed now.
    pub(super) fn load(folder: &Path) -> Self {
        let path = folder.join(NAME);
        let read = fs::read(&path)
            .and_then(|octets| serde_json::from_slice(&octets).map_err(io::Error::from));
        read.unwrap_or_else(|error| {
            if error.kind() != ErrorKind::NotFound {
                let path = path.display();
                tracing::warn!(%path, %error, "ages of days cannot be read, count from now");
            }
            Self::default()
        })
    }

    /// Writes the file. A cut of power may leave the file of the look before, by which days are younger.
    pub(super) fn save(&self, folder: &Path) -> io::Result<()> {
        let new = folder.join(NEW_NAME);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o640)
            .open(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_data()?;
        fs::rename(new, folder.join(NAME))
    }

    /// Takes a look at the days and their changes. `ran` is the time since the last look of this process, if there was one.
    pub(super) fn look(
        &mut self,
        seen: &BTreeMap<Day, i64>,
        clock: Timestamp,
        ran: Option<Duration>,
    ) {
        let counted = u64::try_from(self.counted(clock, ran).as_millis()).unwrap_or(u64::MAX);
        let of = |(day, changed): (&Day, &i64)| {
            let day = day.to_string();
            let same = self.days.get(&day).filter(|age| age.changed == *changed);
            let age = Age {
                changed: *changed,
                age_ms: same.map_or(0, |age| age.age_ms.saturating_add(counted)),
            };
            (day, age)
        };
        self.days = seen.iter().map(of).collect();
        if clock > self.clock || self.is_far_behind(clock) {
            self.clock = clock;
        }
    }

    /// The time since the last look that counts: the time that the process ran, or else what the clock shows if that is at
    /// most a day. A clock that goes back by up to a day has shown time that did not pass, so as much does not count behind.
    fn counted(&self, clock: Timestamp, ran: Option<Duration>) -> Duration {
        if self.is_far_behind(clock) {
            return ran.unwrap_or_default();
        }
        let shown = clock.saturating_since(self.clock);
        match ran {
            Some(ran) => shown.min(ran),
            None if shown <= OFF_MAX => shown,
            None => Duration::ZERO,
        }
    }

    /// Whether the clock has gone back far: the clock was or is wrong.
    fn is_far_behind(&self, clock: Timestamp) -> bool {
        self.clock.saturating_since(clock) > DAY
    }

    /// Those of the days that are older than `keep` by the clock and by their ages. Never the newest day: the audit log may
    /// have its file open.
    pub(super) fn expired(
        &self,
        seen: &BTreeMap<Day, i64>,
        clock: Timestamp,
        keep: Duration,
    ) -> Vec<Day> {
        let old = ended(seen, clock, keep);
        old.filter(|day| self.age(*day) >= keep).collect()
    }

    /// The number of days that would have been removed a day ago and more if the clock were believed.
    pub(super) fn put_off(
        &self,
        seen: &BTreeMap<Day, i64>,
        clock: Timestamp,
        keep: Duration,
    ) -> usize {
        let old = ended(seen, clock, keep.saturating_add(LATE));
        old.filter(|day| self.age(*day) < keep).count()
    }

    fn age(&self, day: Day) -> Duration {
        let age = self.days.get(&day.to_string());
        Duration::from_millis(age.map_or(0, |age| age.age_ms))
    }
}

/// The days that ended this long ago by the clock, without the newest.
fn ended(seen: &BTreeMap<Day, i64>, clock: Timestamp, ago: Duration) -> impl Iterator<Item = Day> {
    let older = seen.keys().rev().skip(1).copied();
    older.filter(move |day| day.end() + ago <= clock)
}
