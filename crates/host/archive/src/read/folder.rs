//! Days and segments in the directory of an archive.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::error::ReadError;
use crate::name::{Day, SegmentName};

/// The days with directories, in order; nothing for a missing archive.
pub(crate) fn days(folder: &Path) -> Result<Vec<Day>, ReadError> {
    let mut days = names(folder)?;
    days.sort_unstable();
    let days = days.iter().filter_map(|name| name.parse().ok());
    Ok(days.collect())
}

/// The segments of a day, in order, also those that have only an index. Nothing for a day that was removed meanwhile.
pub(crate) fn segments(folder: &Path, day: Day) -> Result<Vec<SegmentName>, ReadError> {
    let names = names(&folder.join(day.to_string()))?;
    let of = |name: &String| {
        let segment = SegmentName::of_file(day, name, "seg");
        segment.or_else(|| SegmentName::of_file(day, name, "idx"))
    };
    let segments: BTreeSet<SegmentName> = names.iter().filter_map(of).collect();
    Ok(segments.into_iter().collect())
}

fn names(folder: &Path) -> Result<Vec<String>, ReadError> {
    let failed = ReadError::at(folder);
    let read = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(failed),
    }
}
