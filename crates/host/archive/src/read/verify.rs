//! Reads everything and compares all checksums.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use vere_checksum::{Crc32, crc32};

use super::ReadAt;
use super::folder::{days, segments};
use super::issue::{Issue, Issues};
use super::row::{Row, Tell};
use super::segment::Segment;
use crate::error::ReadError;
use crate::name::SegmentName;

/// What a verification read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Days with directories.
    pub days: u64,
    /// Segments.
    pub segments: u64,
    /// Sound entries.
    pub entries: u64,
    /// Octets of their APDUs.
    pub octets: u64,
    /// What is wrong.
    pub issues: Issues,
}

/// Reads the whole archive and compares all checksums, and each index with its segment. `progress` is called after
/// each segment.
///
/// # Errors
///
/// The directory or a file cannot be read.
pub fn verify(
    folder: &Path,
    mut progress: impl FnMut(SegmentName, &Verified),
) -> Result<Verified, ReadError> {
    let mut verified = Verified::default();
    for day in days(folder)? {
        verified.days += 1;
        for name in segments(folder, day)? {
            let segment = match Segment::open(folder, name)? {
                Ok(segment) => segment,
                Err(issue) => {
                    if let Some(issue) = issue {
                        verified.issues.add(name, issue);
                    }
                    continue;
                }
            };
            let issues = &mut verified.issues;
            let checked = check(&segment, &mut |issue| issues.add(name, issue));
            let counts = checked.map_err(ReadError::at(&name.path(folder, "seg")))?;
            verified.segments += 1;
            verified.entries += counts.entries;
            verified.octets += counts.octets;
            progress(name, &verified);
        }
    }
    Ok(verified)
}

/// Reads a segment and, if there is one, its index from memory, as [`verify`] and the searches do. Returns the number of
/// entries that a search gives, and of entries with sound octets.
///
/// For tests with arbitrary octets.
///
/// # Errors
///
/// None: memory can be read.
pub fn check_segment(
    segment: &[u8],
    index: Option<&[u8]>,
    mut tell: impl FnMut(Issue),
) -> io::Result<(u64, u64)> {
    let segment = Segment {
        file: segment,
        length: segment.len() as u64,
        index: index.map(|index| (index, index.len() as u64)),
    };
    let mut given = 0;
    let _ = segment.walk(&mut tell, &mut |_| {
        given += 1;
        ControlFlow::Continue(())
    })?;
    segment.summary()?;
    Ok((given, check(&segment, &mut tell)?.entries))
}

/// Entries, and a checksum of their places, lengths and fields.
#[derive(Debug, Default)]
struct Counts {
    entries: u64,
    octets: u64,
    sum: Crc32,
}

impl Counts {
    fn add(&mut self, row: &Row<'_>) -> ControlFlow<()> {
        self.entries += 1;
        self.octets = self.octets.saturating_add(row.octets);
        self.sum.update(&row.offset.to_le_bytes());
        self.sum.update(&row.octets.to_le_bytes());
        self.sum.update(&crc32(row.meta).to_le_bytes());
        ControlFlow::Continue(())
    }
}

fn check<F: ReadAt>(segment: &Segment<F>, tell: &mut Tell<'_>) -> io::Result<Counts> {
    let (mut indexed, mut there) = (Counts::default(), Counts::default());
    let ends = segment.walk_index(tell, &mut |row| indexed.add(row))?;
    // The index does not know of damaged content.
    let mut within = Counts::default();
    // A complete segment has no end that a write has left.
    let mut tell_end = |issue| match issue {
        Issue::Unfinished { at, octets } if ends.is_complete => tell(Issue::Gap { at, octets }),
        other => tell(other),
    };
    let scan = segment.scan_all(&mut tell_end)?.with_sums();
    let _ = scan.walk(&mut tell_end, &mut |row| {
        if row.offset < ends.segment {
            let _ = within.add(row);
        }
        match row.is_sound {
            true => there.add(row),
            false => ControlFlow::Continue(()),
        }
    })?;
    if (indexed.entries, indexed.sum.finish()) != (within.entries, within.sum.finish()) {
        tell(Issue::IndexDiffers);
    }
    if ends.is_complete {
        let summary = segment.summary()?.unwrap_or_default();
        if summary.entries != indexed.entries {
            tell(Issue::IndexDiffers);
        }
    }
    Ok(there)
}
