//! Values of extents: pieces of a file in the order of their offsets.

use crate::format::PackNumber;

use super::inode::{FILE_SIZE_MAX, version};
use super::octets::{Reader, RowError, put_variable};

/// Pieces in a row.
pub const EXTENTS_PER_ROW: usize = 64;

/// A frame of a pack: the place of a chunk on the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The pack's number; never 0.
    pub pack: PackNumber,
    /// Where the frame begins in the decoded mail.
    pub at: u32,
    /// Octets of the sealed frame.
    pub sealed_len: u32,
}

/// A piece of a file: part of a chunk, or a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Octets of the file; never 0.
    pub length: u64,
    /// Octets of the chunk before the piece.
    pub skip: u32,
    /// The chunk; a hole without.
    pub extent: Option<Extent>,
}

/// The octets of a row of at most [`EXTENTS_PER_ROW`] pieces; further pieces are left out.
#[must_use]
pub fn encode_extents(runs: &[Run]) -> Vec<u8> {
    let runs = runs.get(..EXTENTS_PER_ROW).unwrap_or(runs);
    let count = u8::try_from(runs.len()).unwrap_or(0);
    let mut row = Vec::with_capacity(runs.len().saturating_mul(24).saturating_add(2));
    row.extend_from_slice(&[1, count]);
    for run in runs {
        put_variable(&mut row, run.length);
        put_variable(&mut row, u64::from(run.skip));
        let (pack, at, sealed) = run.extent.map_or((0, 0, 0), |extent| {
            (extent.pack.0, extent.at, extent.sealed_len)
        });
        row.extend_from_slice(&pack.to_le_bytes());
        row.extend_from_slice(&at.to_le_bytes());
        row.extend_from_slice(&sealed.to_le_bytes());
    }
    row
}

/// Reads a row of extents that begins at an offset of the file.
///
/// # Errors
///
/// The first field that no row of extents has.
pub fn decode_extents(offset: u64, octets: &[u8]) -> Result<Vec<Run>, RowError> {
    let mut reader = Reader::new(octets);
    version(&mut reader)?;
    let count = usize::from(reader.u8("a number of extents")?);
    if count == 0 || count > EXTENTS_PER_ROW {
        return Err(RowError::new("1 to 64 extents", count.to_string()));
    }
    let mut runs = Vec::with_capacity(count);
    let mut end = offset;
    for _ in 0..count {
        let run = run(&mut reader)?;
        end = end.saturating_add(run.length);
        if end > FILE_SIZE_MAX {
            return Err(RowError::new("an end below 2^63", end.to_string()));
        }
        runs.push(run);
    }
    reader.end()?;
    Ok(runs)
}

fn run(reader: &mut Reader<'_>) -> Result<Run, RowError> {
    let length = reader.variable("a length")?;
    if length == 0 {
        return Err(RowError::new("a length above 0", "0"));
    }
    let skip = reader.variable("octets to skip")?;
    let (pack, at, sealed) = (
        reader.u64("a pack")?,
        reader.u32("a place in the pack")?,
        reader.u32("a sealed length")?,
    );
    if pack == 0 {
        if (skip, at, sealed) != (0, 0, 0) {
            let found = format!("skip {skip}, place {at}, sealed length {sealed}");
            return Err(RowError::new("zeros for a hole", found));
        }
        let (skip, extent) = (0, None);
        return Ok(Run {
            length,
            skip,
            extent,
        });
    }
    // A chunk is sealed without shrinking by more than compression: its own bound is checked when the frame is opened.
    let end = skip.checked_add(length);
    let fits = end.is_some_and(|end| u32::try_from(end).is_ok());
    let (true, Ok(skip)) = (fits, u32::try_from(skip)) else {
        let found = format!("{skip} octets and {length} more");
        return Err(RowError::new("a part of a chunk below 4 GiB", found));
    };
    let extent = Some(Extent {
        pack: PackNumber(pack),
        at,
        sealed_len: sealed,
    });
    Ok(Run {
        length,
        skip,
        extent,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(length: u64, skip: u32, pack: u64) -> Run {
        let (at, sealed) = (68, 1000);
        let extent = Some(Extent {
            pack: PackNumber(pack),
            at,
            sealed_len: sealed,
        });
        Run {
            length,
            skip,
            extent,
        }
    }

    #[test]
    fn extents_have_these_octets() {
        let hole = Run {
            length: 200,
            skip: 0,
            extent: None,
        };
        let runs = [chunk(5, 1, 7), hole];
        let row = encode_extents(&runs);
        let expected = [
            &[
                1, 2, 5, 1, 7, 0, 0, 0, 0, 0, 0, 0, 68, 0, 0, 0, 0xe8, 3, 0, 0,
            ][..],
            &[0xc8, 1, 0][..],
            &[0; 16][..],
        ]
        .concat();
        assert_eq!(row, expected);
        assert_eq!(decode_extents(0, &row).unwrap(), runs);
    }

    #[test]
    fn wrong_extents_are_named() {
        let found = |offset, row: &[u8]| decode_extents(offset, row).unwrap_err().to_string();
        assert_eq!(found(0, &[1, 0]), "expected 1 to 64 extents; found 0");
        assert_eq!(found(0, &[1, 65]), "expected 1 to 64 extents; found 65");
        let row = encode_extents(&[chunk(5, 1, 7)]);
        assert_eq!(
            found(FILE_SIZE_MAX, &row),
            "expected an end below 2^63; found 9223372036854775812"
        );
        let row = encode_extents(&[chunk(u64::from(u32::MAX), 1, 7)]);
        assert_eq!(
            found(0, &row),
            "expected a part of a chunk below 4 GiB; found 1 octets and 4294967295 more"
        );
        let mut row = encode_extents(&[chunk(5, 1, 7)]);
        row[4] = 0;
        assert!(found(0, &row).starts_with("expected zeros for a hole"));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(
            offset: u64,
            octets in proptest::collection::vec(any::<u8>(), 0..200),
            count in 1u8..4,
        ) {
            for form in [octets.clone(), [&[1, count][..], &octets].concat()] {
                if let Ok(runs) = decode_extents(offset, &form) {
                    prop_assert_eq!(encode_extents(&runs), form);
                }
            }
        }

        #[test]
        fn runs_come_back(
            runs in proptest::collection::vec((1u64..1 << 30, 0u32..1 << 30, any::<u64>()), 1..64)
        ) {
            let runs: Vec<Run> = runs
                .into_iter()
                .map(|(length, skip, pack)| match pack {
                    0 => Run { length, skip: 0, extent: None },
                    _ => chunk(length, skip, pack),
                })
                .collect();
            prop_assert_eq!(decode_extents(0, &encode_extents(&runs)).unwrap(), runs);
        }
    }
}
