//! Times of mounts, and the memory of their processes.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::files::made;
use super::plan::Plan;
use super::results::{Results, at};
use super::system::System;
use crate::error::BenchError;
use crate::peer::OURS;

pub(super) const COLD: &str = "mount, nothing cached";
pub(super) const CACHED: &str = "mount, cached";
pub(super) const MEMORY: &str = "memory of the mount at most";

/// Files of a folder where many files are known.
const FOLDER: usize = 1_000;

/// The name of the figure with many files known.
pub(super) fn known_of(files: usize) -> String {
    format!("memory of the mount with {files} files known")
}

/// The name of the figure of a mount that has looked at many files.
pub(super) fn walked_of(files: usize) -> String {
    format!("memory of a new mount that looked at {files} files")
}

/// Measures both mounts: from the start of the program to a listing of the root.
pub(super) fn measure(
    round_trip: u64,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    for (name, is_cold) in [(COLD, true), (CACHED, false)] {
        system.unmount()?;
        if is_cold {
            system.forget()?;
        }
        let mounted = system.mount()?;
        let begun = Instant::now();
        let listed = fs::read_dir(system.root()).map(Iterator::count);
        listed.map_err(BenchError::io("list the root"))?;
        let took = mounted + begun.elapsed();
        results.time(system.name(), at(round_trip, name), took);
    }
    Ok(())
}

/// Creates many empty files, and reads the memory of the mount with all files known; then the memory of a new mount after
/// a look at all files, as by `find -size`.
///
/// Peers and short runs have fewer files: their rows have no bar.
pub(super) fn known(
    plan: &Plan,
    round_trip: u64,
    root: &Path,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    if round_trip > 0 || system.processes().is_empty() {
        return Ok(());
    }
    let files = match system.name() {
        OURS => plan.known,
        _ => plan.known.min(plan.known_by_peers),
    };
    for number in 0..files {
        let folder = root.join(format!("d{}", number / FOLDER));
        if number % FOLDER == 0 {
            made(&folder)?;
        }
        let file = fs::File::create(folder.join(format!("file-{number}")));
        file.map_err(BenchError::io("create a file"))?;
    }
    let mut listed = 0;
    for folder in fs::read_dir(root).map_err(BenchError::io("list folders"))? {
        let folder = folder.map_err(BenchError::io("list folders"))?;
        let names = fs::read_dir(folder.path()).map_err(BenchError::io("list files"))?;
        listed += names.count();
    }
    let name = system.name();
    if listed != files {
        results.trouble(format!("{name}: expected {files} files; found {listed}"));
    }
    memory(at(round_trip, known_of(files)), system, results);
    system.remount_cold()?;
    let looked = walk(root).map_err(BenchError::io("look at files"))?;
    if looked != files {
        results.trouble(format!(
            "{name}: expected facts of {files} files; found {looked}"
        ));
    }
    memory(at(round_trip, walked_of(files)), system, results);
    Ok(())
}

/// Reads the facts of all files in the folders of a folder.
fn walk(root: &Path) -> std::io::Result<usize> {
    let mut looked = 0;
    for folder in fs::read_dir(root)? {
        for file in fs::read_dir(folder?.path())? {
            looked += usize::from(file?.metadata()?.is_file());
        }
    }
    Ok(looked)
}

/// Adds the highest resident memory of the processes of a mount so far.
pub(super) fn memory(name: String, system: &dyn System, results: &mut Results) {
    let kib: u64 = system.processes().into_iter().filter_map(peak_kib).sum();
    if kib > 0 {
        let megabytes = kib as f64 * 1024.0 / 1e6;
        results.figures.add(system.name(), name, megabytes, "MB");
    }
}

/// The highest resident memory of a process so far, in KiB.
fn peak_kib(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
