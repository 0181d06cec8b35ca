//! Postmark: many files of random sizes, transactions on them, and their removal (Figures 4.6 and 4.7).
//!
//! A code of the benchmark's own with the workload of Postmark 1.51: a transaction reads or appends, and then creates or
//! deletes, by the given biases; calls are as small as those of stdio on a mount. A seed makes the work of each run and
//! each system the same.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::content;
use super::files::made;
use super::plan::{MARK, Mark, Plan};
use super::results::{Results, at};
use super::system::System;
use crate::error::BenchError;
use crate::random::Random;

/// The distance of the runs besides [`MARK`], which runs at each.
const ROUND_TRIP: u64 = 20;

/// Least octets of a file.
const LEAST: usize = 4 * 1024;

/// Octets of a call of read or write, as stdio makes calls.
const CALL: usize = 4 * 1024;

/// Octets of the number in a call.
const NUMBER: usize = 8;

/// The name of a figure.
pub(super) fn figure(mark: &str) -> String {
    format!("Postmark: {mark}")
}

/// The figure with a bar.
pub(super) fn barred() -> String {
    figure(MARK)
}

/// Runs all settings of a distance.
pub(super) fn measure(
    plan: &Plan,
    round_trip: u64,
    root: &Path,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    for mark in plan.marks {
        if mark.name != MARK && round_trip != ROUND_TRIP {
            continue;
        }
        let root = root.join(mark.name);
        made(&root)?;
        let took = run(mark, plan, &root).map_err(BenchError::of("Postmark"))?;
        results.time(system.name(), at(round_trip, figure(mark.name)), took);
    }
    Ok(())
}

/// The files of a run.
struct Pool<'a> {
    root: &'a Path,
    random: Random,
    /// A pool of octets, from which each file takes a part.
    octets: &'a [u8],
    max: usize,
    files: Vec<PathBuf>,
    created: usize,
    calls: u64,
}

/// Runs a setting to its end; returns the time.
fn run(mark: &Mark, plan: &Plan, root: &Path) -> io::Result<Duration> {
    let octets = content::octets(plan.mark_max);
    let mut pool = Pool {
        root,
        random: Random::new(42),
        octets: &octets,
        max: plan.mark_max,
        files: Vec::new(),
        created: 0,
        calls: 0,
    };
    let begun = Instant::now();
    for _ in 0..mark.files {
        pool.create()?;
    }
    for _ in 0..plan.mark_transactions {
        if pool.random.below(10) < mark.read {
            pool.read()?;
        } else {
            pool.append()?;
        }
        if pool.random.below(10) < mark.create {
            pool.create()?;
        } else {
            pool.delete()?;
        }
    }
    while !pool.files.is_empty() {
        pool.delete()?;
    }
    Ok(begun.elapsed())
}

impl Pool<'_> {
    fn any(&mut self) -> Option<(usize, PathBuf)> {
        if self.files.is_empty() {
            return None;
        }
        let place = self.random.below(self.files.len());
        Some((place, self.files.get(place)?.clone()))
    }

    fn create(&mut self) -> io::Result<()> {
        let path = self.root.join(self.created.to_string());
        self.created += 1;
        let octets = LEAST + self.random.below(self.max - LEAST + 1);
        self.write(File::create_new(&path)?, octets)?;
        self.files.push(path);
        Ok(())
    }

    fn append(&mut self) -> io::Result<()> {
        let Some((_, path)) = self.any() else {
            return Ok(());
        };
        let file = OpenOptions::new().append(true).open(&path)?;
        let long = usize::try_from(file.metadata()?.len()).unwrap_or(self.max);
        let octets = self.random.below(self.max.saturating_sub(long) + 1);
        self.write(file, octets)
    }

    /// Writes octets of the pool with a number in each call, so no system finds known content.
    fn write(&mut self, mut file: File, octets: usize) -> io::Result<()> {
        let content = self.octets.get(..octets).unwrap_or_default();
        let mut call = [0; CALL + NUMBER];
        for part in content.chunks(CALL) {
            self.calls += 1;
            let (number, rest) = call.split_at_mut(NUMBER);
            number.copy_from_slice(&self.calls.to_le_bytes());
            if let Some(rest) = rest.get_mut(..part.len()) {
                rest.copy_from_slice(part);
            }
            file.write_all(call.get(..part.len()).unwrap_or_default())?;
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        let Some((_, path)) = self.any() else {
            return Ok(());
        };
        let mut file = File::open(path)?;
        let mut buffer = [0; CALL];
        while file.read(&mut buffer)? > 0 {}
        Ok(())
    }

    fn delete(&mut self) -> io::Result<()> {
        let Some((place, path)) = self.any() else {
            return Ok(());
        };
        self.files.swap_remove(place);
        fs::remove_file(path)
    }
}
