//! The pace of a backup on a disk shared with deliveries: short steps with rests, and a rate.
//!
//! A delivery waits for the sync of the mail store, and a sync waits for octets written to the same disk before. A step
//! bounds the octets before a sync; the rest after a step, as long as the step, leaves half of the disk's time to others.

use std::io::{self, Read};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use vere_units::ByteSize;

/// Octets read, or written and synced, between two rests. Beside steps of 4 MiB the 99th percentile of deliveries was six
/// times as long as alone.
pub(crate) const STEP_OCTETS: usize = 128 * 1024;
/// Longest rest after a step: after a stall of the disk, a backup goes on.
const REST_MAX: Duration = Duration::from_millis(250);

/// Keeps work at a pace.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Option<ByteSize>,
    is_fast: bool,
    began: Instant,
    done: u64,
}

impl Pace {
    /// A pace of at most `rate` per second; a fast pace has no rests.
    pub(crate) fn new(rate: Option<ByteSize>, is_fast: bool) -> Self {
        Self {
            rate: rate.filter(|rate| rate.as_u64() > 0),
            is_fast,
            began: Instant::now(),
            done: 0,
        }
    }

    /// Notes moved octets, and waits until the rate allows the number.
    pub(crate) fn moved(&mut self, octets: u64, bar: &ProgressBar) {
        bar.inc(octets);
        self.done += octets;
        if let Some(rate) = self.rate {
            let due = Duration::from_secs_f64(self.done as f64 / rate.as_u64() as f64);
            thread::sleep(due.saturating_sub(self.began.elapsed()));
        }
    }

    /// The most octets of a step.
    pub(crate) const fn step_octets(&self) -> usize {
        if self.is_fast {
            usize::MAX
        } else {
            STEP_OCTETS
        }
    }

    /// Does a step of work on a disk, then rests.
    ///
    /// # Errors
    /// The errors of the work.
    pub(crate) fn step<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let began = Instant::now();
        let done = work()?;
        if !self.is_fast {
            thread::sleep(began.elapsed().min(REST_MAX));
        }
        Ok(done)
    }

    /// Reads at most `max` octets, fewer only at the end of the input.
    ///
    /// # Errors
    /// The errors of the input.
    pub(crate) fn read(&self, input: &mut impl Read, max: usize) -> io::Result<Vec<u8>> {
        let mut octets = Vec::new();
        while octets.len() < max {
            let step = self.step_octets().min(max - octets.len()) as u64;
            let read = self.step(|| input.take(step).read_to_end(&mut octets))?;
            if read == 0 {
                break;
            }
        }
        Ok(octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_followed_by_a_rest_as_long() {
        let work = || {
            thread::sleep(Duration::from_millis(20));
            Ok(())
        };
        for (is_fast, least) in [(false, 40), (true, 20)] {
            let began = Instant::now();
            Pace::new(None, is_fast).step(work).unwrap();
            let took = began.elapsed();
            assert!(took >= Duration::from_millis(least), "{took:?}");
        }
        let began = Instant::now();
        let failed = Pace::new(None, false).step(|| Err::<(), _>(io::ErrorKind::Other.into()));
        assert!(failed.is_err() && began.elapsed() < Duration::from_millis(20));
    }

    #[test]
    fn octets_are_read_in_steps_to_the_end() {
        let octets: Vec<u8> = (0..300_000_u32).map(|at| at as u8).collect();
        for is_fast in [false, true] {
            let pace = Pace::new(None, is_fast);
            let mut input = &octets[..];
            let first = pace.read(&mut input, 200_000).unwrap();
            assert_eq!(first, octets[..200_000]);
            assert_eq!(pace.read(&mut input, 200_000).unwrap(), octets[200_000..]);
            assert!(pace.read(&mut input, 200_000).unwrap().is_empty());
        }
    }
}
