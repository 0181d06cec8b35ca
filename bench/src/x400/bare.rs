//! The limits of the machine: a raw stream of packets, associations from the sources to a sink without an MTA between
//! them, and a sync of the disk.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::load::{FULL, THROUGHPUT, figure};
use super::names;
use super::plan::{Case, LONG, MIDDLE, Plan, SHORT};
use super::results::Results;
use super::system::Child;
use crate::error::BenchError;
use crate::peer::{self, free_address};
use crate::process::guard;
use crate::row::median;

/// The columns of the results.
pub(super) const RAW: &str = "raw stream";
pub(super) const DIRECT: &str = "without an MTA";
pub(super) const DISK: &str = "disk";

/// The time of a sync of the disk.
pub(super) const SYNC: &str = "write and sync of 4 KB";

/// Syncs whose median counts.
const SYNCS: usize = 200;

/// Measures all limits.
pub(super) fn measure(plan: &Plan, base: &Path, results: &mut Results) -> Result<(), BenchError> {
    let failed = BenchError::io("sync a file");
    let took = sync(base).map_err(failed)?;
    results.add(DISK, SYNC.to_owned(), took.as_secs_f64() * 1e3, "ms");
    for size in SHORT.into_iter().chain([MIDDLE]).chain(LONG) {
        for _ in 0..plan.rounds {
            let case = Case::of(size);
            pair(plan, base, &case, false, results)?;
            if LONG.contains(&size) {
                pair(plan, base, &case, true, results)?;
            }
        }
    }
    Ok(())
}

/// Sends from a source to a sink.
fn pair(
    plan: &Plan,
    base: &Path,
    case: &Case,
    raw: bool,
    results: &mut Results,
) -> Result<(), BenchError> {
    let address: SocketAddr = free_address().map_err(BenchError::io("find a port"))?;
    let raw_word = raw.then(|| "--raw".to_owned());
    let mut listening = vec![format!("--listen={address}")];
    listening.push(format!("--name={}", names::MTA));
    listening.extend(raw_word.clone());
    let sink = Child::start("x400-sink", &listening, base)?;
    let mut sending = vec![
        format!("--to={address}"),
        format!("--sources={}", case.sources),
        format!("--associations={}", case.associations),
        format!("--size={}", case.size),
    ];
    sending.extend(raw_word);
    let mut source = Child::start("x400-source", &sending, base)?;
    source.remote.set_going(true);
    wait(plan.warm)?;
    let first = sink.remote.counts();
    wait(plan.time)?;
    let last = sink.remote.counts();
    let column = if raw { RAW } else { DIRECT };
    if sink.remote.is_gone() || source.remote.is_gone() {
        results.trouble(format!("{column}: {}: a process has ended", case.name()));
    }
    let rate = last.rate_since(first);
    results.add(column, figure(case, FULL), rate, "messages/s");
    let speed = last.megabytes_since(first);
    results.add(column, figure(case, THROUGHPUT), speed, "MB/s");
    Ok(())
}

/// Waits, unless the benchmark is asked to end.
pub(super) fn wait(time: Duration) -> Result<(), BenchError> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if guard::is_stopped() {
            return Err(BenchError::Stopped);
        }
        let left = until.saturating_duration_since(Instant::now());
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
    Ok(())
}

/// The median time of a write of 4 KB and its sync.
fn sync(base: &Path) -> std::io::Result<Duration> {
    let folder = peer::folder(base, "vere-bench-sync-")?;
    let mut file = std::fs::File::create(folder.path().join("file"))?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&[7; 4_096])?;
        file.sync_data()?;
        times.push(begun.elapsed().as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(times).unwrap_or_default()))
}
