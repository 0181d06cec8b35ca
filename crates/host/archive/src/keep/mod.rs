//! The removal of old days, in a thread of its own.
//!
//! A wrong clock must not erase an archive, at however many starts. So the clock alone removes nothing: a day goes when it
//! ended `keep` ago by the clock, and when `keep` has passed since its last change by what is certain ([`ages`]). Certain is
//! the time that processes ran, and between two processes a time of up to a day.
//!
//! A day leaves the sight of readers in one step ([`kept`]): a kill must not leave what looks like a damaged day.

mod ages;
mod kept;
#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use vere_units::Timestamp;

use self::ages::Ages;
pub(crate) use self::kept::Kept;

/// Time between two looks at the days.
const LOOK: Duration = Duration::from_secs(3_600);

/// The thread. A drop waits until a removal under way has ended the present file.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Removes now, and then once an hour, what is older than `keep`; no day for zero. Ages are counted also for zero, so
    /// that another `keep` applies at the next start.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(crate) fn start(kept: Kept, keep: Duration, clock: fn() -> Timestamp) -> io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let seen = Arc::clone(&stop);
        let run = move || run(&mut Keeping::new(kept, keep), clock, &seen);
        let thread = Builder::new().name("archive-keep".to_owned()).spawn(run)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
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

fn run(keeping: &mut Keeping, clock: fn() -> Timestamp, stop: &(Mutex<bool>, Condvar)) {
    loop {
        keeping.pass((clock(), Instant::now()), &|| *locked(&stop.0));
        let due = Instant::now() + LOOK;
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

/// Knowledge of a process from look to look.
#[derive(Debug)]
struct Keeping {
    kept: Kept,
    keep: Duration,
    ages: Ages,
    last: Option<Instant>,
    /// Days with a removal put off at the last look. Only more days are worth a warning.
    put_off: usize,
}

impl Keeping {
    fn new(kept: Kept, keep: Duration) -> Self {
        Self {
            ages: Ages::load(kept.folder()),
            kept,
            keep,
            last: None,
            put_off: 0,
        }
    }

    /// Ends removals cut off by a kill, looks at the days, and removes old days.
    fn pass(&mut self, now: (Timestamp, Instant), stop: &dyn Fn() -> bool) {
        self.clear(stop);
        if let Err(error) = self.remove_old(now) {
            let folder = self.kept.folder().display();
            tracing::warn!(%folder, %error, "old days cannot be listed");
        }
        self.clear(stop);
    }

    fn clear(&self, stop: &dyn Fn() -> bool) {
        let folder = self.kept.folder().display();
        let cleared = self.kept.clear(stop, |name, error| {
            tracing::warn!(%folder, name, %error, "directory of a removed day cannot be removed");
        });
        if let Err(error) = cleared {
            tracing::warn!(%folder, %error, "directories of removed days cannot be removed");
        }
    }

    fn remove_old(&mut self, (clock, time): (Timestamp, Instant)) -> io::Result<()> {
        let seen = self.kept.days()?;
        let ran = self.last.replace(time);
        let ran = ran.map(|last| time.saturating_duration_since(last));
        self.ages.look(&seen, clock, ran);
        let folder = self.kept.folder().display();
        if let Err(error) = self.ages.save(self.kept.folder()) {
            tracing::warn!(%folder, %error, "ages of days cannot be written");
        }
        if self.keep.is_zero() {
            return Ok(());
        }
        let put_off = self.ages.put_off(&seen, clock, self.keep);
        if put_off > std::mem::replace(&mut self.put_off, put_off) {
            tracing::warn!(%folder, days = put_off, %clock, "removal of old days put off: clock ahead of the time that has passed for certain");
        }
        for day in self.ages.expired(&seen, clock, self.keep) {
            // A clock that was wrong a moment ago may have sent entries there meanwhile.
            if self.kept.changed(day).ok().as_ref() != seen.get(&day) {
                continue;
            }
            match self.kept.set_aside(day) {
                Ok(()) => tracing::info!(%folder, %day, "old day removed"),
                Err(error) => tracing::warn!(%folder, %day, %error, "old day cannot be removed"),
            }
        }
        Ok(())
    }
}
