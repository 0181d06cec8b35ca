//! The rate of a backup, for a disk shared with deliveries.

use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use vere_units::ByteSize;

/// Keeps work at a rate.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Option<ByteSize>,
    began: Instant,
    done: u64,
}

impl Pace {
    pub(crate) fn new(rate: Option<ByteSize>) -> Self {
        Self {
            rate: rate.filter(|rate| rate.as_u64() > 0),
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
}
