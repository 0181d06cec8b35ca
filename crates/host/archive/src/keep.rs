//! The removal of old days, in a thread of its own.
//!
//! A wrong clock must not erase an archive. So the first pass of a process counts from the newest day, at most a day
//! behind it; a later pass is left out if the clock has jumped since the pass before; and the newest day is never removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use vere_units::Timestamp;

use crate::name::{DAY_MILLIS, Day};

/// Time between two passes.
const PASS: Duration = Duration::from_millis(DAY_MILLIS);
/// How far the clock may differ from the time that has passed.
const JUMP_MAX: Duration = Duration::from_secs(3_600);

/// What has the name of a day.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    /// Directories of this directory.
    Days(PathBuf),
    /// Files `DAY.log` of this directory.
    Files(PathBuf),
}

impl Kept {
    fn folder(&self) -> &Path {
        match self {
            Self::Days(folder) | Self::Files(folder) => folder,
        }
    }

    fn day_of(&self, name: &str) -> Option<Day> {
        match self {
            Self::Days(_) => name.parse().ok(),
            Self::Files(_) => name.strip_suffix(".log")?.parse().ok(),
        }
    }

    fn path(&self, day: Day) -> PathBuf {
        match self {
            Self::Days(folder) => folder.join(day.to_string()),
            Self::Files(folder) => folder.join(format!("{day}.log")),
        }
    }

    fn days(&self) -> io::Result<Vec<Day>> {
        let mut days = Vec::new();
        for entry in fs::read_dir(self.folder())? {
            let name = entry?.file_name().into_string();
            days.extend(name.ok().and_then(|name| self.day_of(&name)));
        }
        days.sort_unstable();
        Ok(days)
    }

    fn remove(&self, day: Day, stop: impl Fn() -> bool) -> io::Result<()> {
        let path = self.path(day);
        if let Self::Files(_) = self {
            return fs::remove_file(path);
        }
        for entry in fs::read_dir(&path)? {
            if stop() {
                return Ok(());
            }
            fs::remove_file(entry?.path())?;
        }
        fs::remove_dir(path)
    }
}

/// Decides which days a pass removes.
#[derive(Debug, Default)]
struct Passes {
    /// Clock and time of the pass before.
    last: Option<(Timestamp, Instant)>,
}

impl Passes {
    /// The days to be removed, of days in order. Nothing if the clock has jumped.
    fn expired<'a>(
        &mut self,
        days: &'a [Day],
        keep: Duration,
        now: (Timestamp, Instant),
    ) -> &'a [Day] {
        let (clock, time) = now;
        let Some((newest, older)) = days.split_last() else {
            self.last = Some(now);
            return &[];
        };
        let counted = match self.last.replace(now) {
            None => clock.min(newest.end() + PASS),
            Some((clock_before, before)) => {
                let by_clock = clock.saturating_since(clock_before);
                if by_clock.abs_diff(time.saturating_duration_since(before)) > JUMP_MAX {
                    tracing::warn!(%clock, %clock_before, "clock has jumped; old days are kept until the next pass");
                    return &[];
                }
                clock
            }
        };
        let is_old = |day: &Day| day.end() + keep <= counted;
        older
            .get(..older.partition_point(is_old))
            .unwrap_or_default()
    }
}

/// The thread. Dropping it waits until a removal that is under way has ended its file.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Removes now, and then once a day, what is older than `keep`; nothing for zero.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(crate) fn start(kept: Kept, keep: Duration, clock: fn() -> Timestamp) -> io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let mut thread = None;
        if !keep.is_zero() {
            let stop = Arc::clone(&stop);
            let run = move || run(&kept, keep, clock, &stop);
            thread = Some(Builder::new().name("archive-keep".to_owned()).spawn(run)?);
        }
        Ok(Self { stop, thread })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *locked(&self.stop.0) = true;
        self.stop.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn locked(stop: &Mutex<bool>) -> MutexGuard<'_, bool> {
    stop.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(kept: &Kept, keep: Duration, clock: fn() -> Timestamp, stop: &(Mutex<bool>, Condvar)) {
    let mut passes = Passes::default();
    loop {
        pass(kept, keep, &mut passes, (clock(), Instant::now()), || {
            *locked(&stop.0)
        });
        let due = Instant::now() + PASS;
        let mut stopped = locked(&stop.0);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if *stopped {
                return;
            }
            if left.is_zero() {
                break;
            }
            let waited = stop.1.wait_timeout(stopped, left);
            stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn pass(
    kept: &Kept,
    keep: Duration,
    passes: &mut Passes,
    now: (Timestamp, Instant),
    stop: impl Fn() -> bool,
) {
    let folder = kept.folder().display();
    let days = match kept.days() {
        Ok(days) => days,
        Err(error) => {
            tracing::warn!(%folder, %error, "old days cannot be listed");
            return;
        }
    };
    for day in passes.expired(&days, keep, now) {
        if stop() {
            return;
        }
        match kept.remove(*day, &stop) {
            Ok(()) => tracing::info!(%folder, %day, "old day removed"),
            Err(error) => tracing::warn!(%folder, %day, %error, "old day cannot be removed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = PASS;

    fn days(texts: &[&str]) -> Vec<Day> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn noon(day: &str) -> Timestamp {
        day.parse::<Day>().unwrap().start() + DAY / 2
    }

    /// With two days kept, the 26th is old when the 29th begins.
    #[test]
    fn whole_days_older_than_the_span_expire() {
        let all = days(&["2026-11-25", "2026-11-26", "2026-11-27", "2026-11-28"]);
        for (clock, expected) in [
            (noon("2026-11-28"), 1),
            (noon("2026-11-29"), 2),
            (
                Timestamp::from_millis(noon("2026-11-29").as_millis() - 43_200_001),
                1,
            ),
            (noon("2026-11-01"), 0),
        ] {
            let now = (clock, Instant::now());
            assert_eq!(
                Passes::default().expired(&all, 2 * DAY, now).len(),
                expected,
                "{clock}"
            );
        }
        assert!(
            Passes::default()
                .expired(&[], DAY, (noon("2026-11-28"), Instant::now()))
                .is_empty()
        );
    }

    #[test]
    fn a_clock_far_ahead_erases_nothing_at_the_start() {
        let all = days(&["2026-11-25", "2026-11-26", "2026-11-27"]);
        let ahead = (noon("2027-11-27"), Instant::now());
        // Counted from the end of the 28th.
        assert_eq!(Passes::default().expired(&all, 2 * DAY, ahead), &all[..2]);
        assert_eq!(Passes::default().expired(&all, 30 * DAY, ahead), &[]);
    }

    #[test]
    fn a_jump_of_the_clock_puts_a_pass_off() {
        let all = days(&["2026-11-25", "2026-11-26", "2026-11-27"]);
        let (begun, keep) = (Instant::now(), 2 * DAY);
        let mut passes = Passes::default();
        assert_eq!(passes.expired(&all, keep, (noon("2026-11-27"), begun)), &[]);
        let jumped = (noon("2027-11-28"), begun + DAY);
        assert_eq!(passes.expired(&all, keep, jumped), &[]);
        // A day later the clock has gone on as the time has: it counts, and the newest day stays.
        let later = (noon("2027-11-29"), begun + 2 * DAY);
        assert_eq!(passes.expired(&all, keep, later), &all[..2]);
        // Back to the right time: a jump again.
        let back = (noon("2026-11-30"), begun + 3 * DAY);
        assert_eq!(passes.expired(&all, keep, back), &[]);
        let right = (noon("2026-12-01"), begun + 4 * DAY);
        assert_eq!(passes.expired(&all, 4 * DAY, right), &all[..2]);
    }

    #[test]
    fn a_pass_removes_directories_and_files_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["2026-11-01", "2026-11-02", "2026-11-20", "other"] {
            let day = folder.path().join(name);
            fs::create_dir(&day).unwrap();
            fs::write(day.join("1305.seg"), b"x").unwrap();
            fs::write(folder.path().join(format!("{name}.log")), b"x").unwrap();
        }
        let now = (noon("2026-11-20"), Instant::now());
        let left = |kept: &Kept| {
            pass(kept, 5 * DAY, &mut Passes::default(), now, || false);
            let mut names: Vec<String> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort_unstable();
            names.join(" ")
        };
        let kept = Kept::Days(folder.path().to_owned());
        assert_eq!(
            left(&kept),
            "2026-11-01.log 2026-11-02.log 2026-11-20 2026-11-20.log other other.log"
        );
        let kept = Kept::Files(folder.path().to_owned());
        assert_eq!(left(&kept), "2026-11-20 2026-11-20.log other other.log");
    }

    #[test]
    fn the_thread_removes_at_its_start_and_ends_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["2026-11-01", "2026-11-20"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let kept = Kept::Days(folder.path().to_owned());
        drop(Keeper::start(kept.clone(), Duration::ZERO, || Timestamp::MAX).unwrap());
        assert_eq!(kept.days().unwrap().len(), 2);
        let keeper = Keeper::start(kept.clone(), DAY, || Timestamp::MAX).unwrap();
        while kept.days().unwrap().len() > 1 {
            std::thread::yield_now();
        }
        drop(keeper);
        assert_eq!(kept.days().unwrap(), days(&["2026-11-20"]));
    }
}
