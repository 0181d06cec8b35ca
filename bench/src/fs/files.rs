//! Files of 32 KB and 32 MB, written durably and read cold, and a large file.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::content;
use super::distance::Traffic;
use super::plan::Plan;
use super::results::{Results, at};
use super::system::System;
use crate::error::BenchError;

pub(super) const WRITE_SMALL: &str = "32 KB write+fsync+close";
pub(super) const READ_SMALL: &str = "32 KB cold read";
pub(super) const ARRIVED_SMALL: &str = "32 KB arrived";
pub(super) const WRITE_MEDIUM: &str = "32 MB write+fsync+close";
pub(super) const READ_MEDIUM: &str = "32 MB cold read";
pub(super) const ARRIVED_MEDIUM: &str = "32 MB arrived";
pub(super) const WIRE_UP: &str = "32 MB write: octets on the wire";
pub(super) const WIRE_DOWN: &str = "32 MB cold read: octets on the wire";
pub(super) const WRITE_AGAIN: &str = "32 MB second copy: write+fsync+close";
pub(super) const WIRE_AGAIN: &str = "32 MB second copy: octets on the wire";
pub(super) const READ_AGAIN: &str = "32 MB read again after a remount";
pub(super) const WRITE_LARGE: &str = "large write+fsync";
pub(super) const ARRIVED_LARGE: &str = "large write, arrived";
pub(super) const READ_LARGE: &str = "large cold read";

const SMALL: usize = 32 * 1024;
const MEDIUM: usize = 32 * 1024 * 1024;

/// Octets of a call of write or read of large files.
const CALL: usize = 1024 * 1024;

/// The names of the figures for a size.
struct Names {
    write: &'static str,
    arrived: &'static str,
    read: &'static str,
}

const SMALL_NAMES: Names = Names {
    write: WRITE_SMALL,
    arrived: ARRIVED_SMALL,
    read: READ_SMALL,
};

const MEDIUM_NAMES: Names = Names {
    write: WRITE_MEDIUM,
    arrived: ARRIVED_MEDIUM,
    read: READ_MEDIUM,
};

const AGAIN_NAMES: Names = Names {
    write: WRITE_AGAIN,
    arrived: WRITE_AGAIN,
    read: READ_AGAIN,
};

/// Writes and reads the files of a round.
pub(super) fn measure(
    plan: &Plan,
    round_trip: u64,
    root: &Path,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    let mut small = Vec::new();
    for number in 0..plan.small {
        let path = root.join(format!("d{number}"));
        small.push(write(
            system,
            &path,
            SMALL,
            &SMALL_NAMES,
            round_trip,
            results,
        )?);
    }
    let before = system.traffic();
    let large = root.join("large");
    let medium = write(system, &large, MEDIUM, &MEDIUM_NAMES, round_trip, results)?;
    per_octet(system, before, true, at(round_trip, WIRE_UP), results);
    system.remount_cold()?;
    // The connection is warm, and the root is known.
    fs::metadata(system.root()).map_err(BenchError::io("look at the root"))?;
    for (number, content) in small.iter().enumerate() {
        let path = root.join(format!("d{number}/f"));
        read(system, &path, content, &SMALL_NAMES, round_trip, results)?;
    }
    let before = system.traffic();
    let path = large.join("f");
    read(system, &path, &medium, &MEDIUM_NAMES, round_trip, results)?;
    per_octet(system, before, false, at(round_trip, WIRE_DOWN), results);
    again(&large, &medium, round_trip, system, results)
}

/// Writes a file's content once more, and reads the file on a new mount with all caches.
fn again(
    folder: &Path,
    content: &[u8],
    round_trip: u64,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    let copy = folder.join("copy");
    let before = system.traffic();
    let begun = Instant::now();
    store(&copy, content).map_err(BenchError::io("write a copy"))?;
    let took = begun.elapsed();
    results.time(system.name(), at(round_trip, WRITE_AGAIN), took);
    system.arrive(&copy, content.len() as u64)?;
    per_octet(system, before, true, at(round_trip, WIRE_AGAIN), results);
    system.unmount()?;
    system.mount()?;
    fs::metadata(system.root()).map_err(BenchError::io("look at the root"))?;
    let path = folder.join("f");
    read(system, &path, content, &AGAIN_NAMES, round_trip, results)
}

/// Writes and reads a large file.
pub(super) fn large(
    plan: &Plan,
    round_trip: u64,
    root: &Path,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    let (name, path) = (system.name(), root.join("large"));
    let content = content::octets(usize::try_from(plan.large).unwrap_or(usize::MAX));
    let begun = Instant::now();
    store(&path, &content).map_err(BenchError::io("write a large file"))?;
    results.rate(
        name,
        at(round_trip, WRITE_LARGE),
        plan.large,
        begun.elapsed(),
    );
    system.arrive(&path, plan.large)?;
    if system.is_late() {
        let took = begun.elapsed();
        results.rate(name, at(round_trip, ARRIVED_LARGE), plan.large, took);
    }
    system.remount_cold()?;
    let begun = Instant::now();
    let differs = compare(&path, &content).map_err(BenchError::io("read a large file"))?;
    results.rate(
        name,
        at(round_trip, READ_LARGE),
        plan.large,
        begun.elapsed(),
    );
    if let Some(place) = differs {
        results.trouble(format!(
            "{name}: large file: expected the octets that were written; found others, or an end, from octet {place} on"
        ));
    }
    Ok(())
}

/// A new folder.
pub(super) fn made(path: &Path) -> Result<(), BenchError> {
    fs::create_dir(path).map_err(BenchError::io("make a folder on a mount"))
}

/// Writes a file of its own folder and waits for its arrival; returns the content.
fn write(
    system: &mut dyn System,
    folder: &Path,
    octets: usize,
    names: &Names,
    round_trip: u64,
    results: &mut Results,
) -> Result<Vec<u8>, BenchError> {
    made(folder)?;
    let content = content::octets(octets);
    let path = folder.join("f");
    let begun = Instant::now();
    store(&path, &content).map_err(BenchError::io("write a file"))?;
    let took = begun.elapsed();
    results.time(system.name(), at(round_trip, names.write), took);
    system.arrive(&path, octets as u64)?;
    if system.is_late() {
        let took = begun.elapsed();
        results.time(system.name(), at(round_trip, names.arrived), took);
    }
    Ok(content)
}

fn read(
    system: &dyn System,
    path: &Path,
    content: &[u8],
    names: &Names,
    round_trip: u64,
    results: &mut Results,
) -> Result<(), BenchError> {
    let begun = Instant::now();
    let found = load(path).map_err(BenchError::io("read a file"))?;
    let took: Duration = begun.elapsed();
    results.time(system.name(), at(round_trip, names.read), took);
    check(system.name(), names.read, content, &found, results);
    Ok(())
}

fn check(name: &str, what: &str, written: &[u8], found: &[u8], results: &mut Results) {
    if written != found {
        let (written, found) = (written.len(), found.len());
        results.trouble(format!(
            "{name}: {what}: expected the {written} octets that were written; found {found} others"
        ));
    }
}

/// Adds the octets of a direction as a share of a file of 32 MB.
fn per_octet(system: &dyn System, before: Traffic, up: bool, name: String, results: &mut Results) {
    let passed = system.traffic().since(before);
    let octets = if up { passed.up } else { passed.down };
    if octets > 0 {
        let share = 100.0 * octets as f64 / MEDIUM as f64;
        results.figures.add(system.name(), name, share, "% of file");
    }
}

/// Writes a file, syncs and closes.
pub(super) fn store(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    for part in content.chunks(CALL) {
        file.write_all(part)?;
    }
    file.sync_all()
}

/// Reads a file by large calls, and compares each with the expected octets; returns where the file begins to differ. Octets
/// are looked at while they are in the processor's cache: memory for a whole file would cost more time than a local disk.
fn compare(path: &Path, expected: &[u8]) -> io::Result<Option<usize>> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; CALL];
    let mut place = 0;
    loop {
        let octets = file.read(&mut buffer)?;
        let wanted = expected.get(place..place + octets);
        if octets == 0 {
            return Ok((place != expected.len()).then_some(place));
        }
        if wanted != buffer.get(..octets) {
            return Ok(Some(place));
        }
        place += octets;
    }
}

/// Reads a file by large calls.
pub(super) fn load(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut content = Vec::new();
    let mut buffer = vec![0; CALL];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(content),
            octets => content.extend_from_slice(buffer.get(..octets).unwrap_or_default()),
        }
    }
}
