//! Many files of 4 KB, each synced, and none synced.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

use super::content;
use super::plan::Plan;
use super::results::{Results, at};
use super::system::System;
use crate::error::BenchError;

pub(super) const DURABLE: &str = "files of 4 KB, each synced";
pub(super) const LAZY: &str = "files of 4 KB, closed only";
pub(super) const ARRIVED: &str = "files of 4 KB, arrived";

const OCTETS: usize = 4 * 1024;

/// Creates the files of a round in both ways.
pub(super) fn measure(
    plan: &Plan,
    round_trip: u64,
    root: &Path,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    let name = system.name();
    let contents: Vec<Vec<u8>> = (0..2 * plan.created)
        .map(|_| content::octets(OCTETS))
        .collect();
    let (synced, closed) = contents.split_at(plan.created);
    for (what, contents, is_synced) in [(DURABLE, synced, true), (LAZY, closed, false)] {
        let begun = Instant::now();
        for (number, content) in contents.iter().enumerate() {
            let path = root.join(format!("{is_synced}-{number}"));
            create(&path, content, is_synced).map_err(BenchError::io("create a file"))?;
        }
        let rate = |begun: Instant| contents.len() as f64 / begun.elapsed().as_secs_f64();
        let figure = at(round_trip, what);
        results.figures.add(name, figure, rate(begun), "files/s");
        if system.is_late() && is_synced {
            for number in 0..contents.len() {
                let path = root.join(format!("{is_synced}-{number}"));
                system.arrive(&path, OCTETS as u64)?;
            }
            let figure = at(round_trip, ARRIVED);
            results.figures.add(name, figure, rate(begun), "files/s");
        }
    }
    Ok(())
}

fn create(path: &Path, content: &[u8], is_synced: bool) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    if is_synced {
        file.sync_all()?;
    }
    Ok(())
}
