//! A file of 16 MB by the size of records, as the thesis ran IOZone (Figures 4.8 and 4.9): each write is synced (O_SYNC),
//! the time of close counts, and reads come right behind the writes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Instant;

use super::content;
use super::plan::Plan;
use super::results::{Results, at};
use super::system::System;
use crate::error::BenchError;
use crate::random::Random;

const KB: usize = 1024;

/// Octets of the file.
const FILE: usize = 16 * 1024 * KB;

/// What IOZone does, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Write,
    Rewrite,
    Read,
    Reread,
    RandomRead,
    RandomWrite,
}

const PASSES: [(Pass, &str); 6] = [
    (Pass::Write, "Figure 4.9: write"),
    (Pass::Rewrite, "Figure 4.9: re-write"),
    (Pass::Read, "Figure 4.8: read"),
    (Pass::Reread, "Figure 4.8: re-read"),
    (Pass::RandomRead, "Figure 4.8: random read"),
    (Pass::RandomWrite, "Figure 4.9: random write"),
];

/// Writes and reads the file in each size of records.
pub(super) fn measure(
    plan: &Plan,
    round_trip: u64,
    root: &Path,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    let sizes: &[usize] = match plan.is_quick {
        true => &[512, 4_096],
        false => &[128, 256, 512, 1_024, 2_048, 4_096],
    };
    let content = content::octets(FILE);
    for kilobytes in sizes {
        let path = root.join(kilobytes.to_string());
        for (pass, what) in PASSES {
            let begun = Instant::now();
            run(pass, &path, &content, kilobytes * KB).map_err(BenchError::of(what))?;
            let name = at(round_trip, format!("{what}, records of {kilobytes} KB"));
            results.rate(system.name(), name, FILE as u64, begun.elapsed());
        }
        fs::remove_file(&path).map_err(BenchError::io("remove a file"))?;
    }
    Ok(())
}

fn run(pass: Pass, path: &Path, content: &[u8], record: usize) -> io::Result<()> {
    let mut places: Vec<usize> = (0..FILE / record).collect();
    if matches!(pass, Pass::RandomRead | Pass::RandomWrite) {
        let count = places.len();
        Random::new(7).choose(&mut places, count);
    }
    let at = |place: &usize| (place * record) as u64;
    let is_read = matches!(pass, Pass::Read | Pass::Reread | Pass::RandomRead);
    if is_read {
        let file = File::open(path)?;
        let mut buffer = vec![0; record];
        return places
            .iter()
            .try_for_each(|place| file.read_exact_at(&mut buffer, at(place)));
    }
    let mut options = OpenOptions::new();
    options.write(true).create(pass == Pass::Write);
    let file = options.custom_flags(nix::libc::O_SYNC).open(path)?;
    places.iter().try_for_each(|place| {
        let from = place * record;
        let part = content.get(from..from + record).unwrap_or_default();
        file.write_all_at(part, at(place))
    })
}
