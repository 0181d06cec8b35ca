//! Segments and indexes that are cut or changed anywhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{at, content, files, folder, found, numbers, octets, written};
use crate::writer::repair::repair;
use crate::{Issue, Page, Query, ReadError, verify};

const DAY: &str = "2026-11-29";
const COUNT: u64 = 7;

/// A segment with seven entries and its index, as octets.
struct Sample {
    segment: Vec<u8>,
    index: Vec<u8>,
    /// The places behind the entries.
    ends: Vec<usize>,
}

impl Sample {
    fn new() -> Self {
        let folder = folder();
        written(folder.path(), 0..COUNT);
        let all = found(folder.path(), &Query::default(), &Page::default());
        let read = |extension: &str| {
            fs::read(folder.path().join(DAY).join(format!("1305.{extension}"))).unwrap()
        };
        let segment = read("seg");
        let begins = all.iter().skip(1).map(|(_, id)| id.offset as usize);
        let ends = begins.chain([segment.len()]).collect();
        Self {
            index: read("idx"),
            segment,
            ends,
        }
    }

    /// Entries that are whole in the first octets of the segment.
    fn whole(&self, length: usize) -> u64 {
        self.ends.iter().filter(|end| **end <= length).count() as u64
    }
}

/// An archive of one segment.
fn archive_of(folder: &Path, segment: &[u8], index: Option<&[u8]>) {
    let day = folder.join(DAY);
    let _ = fs::remove_dir_all(&day);
    fs::create_dir(&day).unwrap();
    fs::write(path(folder, "seg"), segment).unwrap();
    if let Some(index) = index {
        fs::write(path(folder, "idx"), index).unwrap();
    }
}

fn path(folder: &Path, extension: &str) -> PathBuf {
    folder.join(DAY).join(format!("1305.{extension}"))
}

/// What an opening does with the segments, without its threads: thousands of openings on a busy machine took a minute.
fn reopened(folder: &Path) {
    repair(folder, at(0), || {}).unwrap();
}

fn issues(folder: &Path) -> Vec<Issue> {
    let verified = verify(folder, |_, _| {}).unwrap();
    verified
        .issues
        .list
        .into_iter()
        .map(|(_, issue)| issue)
        .collect()
}

/// With the index of all entries, with that of the entries before the last whole one, and without.
#[test]
fn a_segment_cut_anywhere_opens_with_its_whole_entries() {
    let sample = Sample::new();
    let folder = folder();
    let folder = folder.path();
    for length in 0..=sample.segment.len() {
        let whole = sample.whole(length);
        let expected: Vec<u64> = (0..whole).collect();
        let some = &sample.index[..64 + (sample.index.len() - 64) / 3];
        for index in [Some(&sample.index[..]), Some(some), None] {
            archive_of(folder, &sample.segment[..length], index);
            assert_eq!(numbers(folder), expected, "{length} before");
            reopened(folder);
            assert_eq!(numbers(folder), expected, "{length} after");
            if !issues(folder).is_empty() {
                panic!("{length}: {:?}", issues(folder));
            }
            let kept = sample.ends[..whole as usize].last().copied().unwrap_or(0);
            let is_cut = kept < length && length > 64;
            assert_eq!(path(folder, "cut").exists(), is_cut, "{length}");
            if is_cut {
                let cut = fs::read(path(folder, "cut")).unwrap();
                assert_eq!(cut, sample.segment[kept..length], "{length}");
            }
            assert_eq!(path(folder, "seg").exists(), whole > 0, "{length}");
        }
    }
}

#[test]
fn an_index_cut_anywhere_is_completed() {
    let sample = Sample::new();
    let folder = folder();
    let folder = folder.path();
    let all: Vec<u64> = (0..COUNT).collect();
    for length in 0..sample.index.len() {
        archive_of(folder, &sample.segment, Some(&sample.index[..length]));
        assert_eq!(numbers(folder), all, "{length}");
        reopened(folder);
        assert_eq!(
            fs::read(path(folder, "idx")).unwrap(),
            sample.index,
            "{length}"
        );
        assert_eq!(
            fs::read(path(folder, "seg")).unwrap(),
            sample.segment,
            "{length}"
        );
    }
}

/// Every octet of the index in turn has another bit changed: no search notices, a verification does. An opening reads
/// trailers only, and so rebuilds the index if the trailer is hit.
#[test]
fn a_changed_index_costs_no_entry() {
    let sample = Sample::new();
    let folder = folder();
    let folder = folder.path();
    let all: Vec<u64> = (0..COUNT).collect();
    for place in 0..sample.index.len() {
        let mut index = sample.index.clone();
        index[place] ^= 1 << (place % 8);
        archive_of(folder, &sample.segment, Some(&index));
        assert_eq!(numbers(folder), all, "{place}");
        assert!(
            issues(folder).iter().any(|issue| issue.is_damage()),
            "{place}"
        );
        reopened(folder);
        assert_eq!(numbers(folder), all, "{place}");
        if place >= sample.index.len() - 64 {
            assert_eq!(
                fs::read(path(folder, "idx")).unwrap(),
                sample.index,
                "{place}"
            );
            assert_eq!(issues(folder), [], "{place}");
        }
    }
}

/// Every octet of the segment in turn: all other entries are found, no content is wrong, and a verification tells.
#[test]
fn a_changed_segment_costs_one_entry() {
    let sample = Sample::new();
    let folder = folder();
    let folder = folder.path();
    for place in 0..sample.segment.len() {
        let mut segment = sample.segment.clone();
        segment[place] ^= 1 << (place % 8);
        let hit = (place >= 64).then(|| sample.whole(place));
        for index in [Some(&sample.index[..]), None] {
            archive_of(folder, &segment, index);
            let all = found(folder, &Query::default(), &Page::default());
            let mut lost = 0;
            for number in 0..COUNT {
                let known = all.iter().find(|(known, _)| *known == number);
                match known.map(|(_, id)| content(folder, *id)) {
                    Some(Ok(octets_found)) => assert_eq!(octets_found, octets(number), "{place}"),
                    Some(Err(ReadError::Damaged(_) | ReadError::Missing(_))) | None => {
                        assert_eq!(Some(number), hit, "{place}");
                        lost += 1;
                    }
                    Some(Err(other)) => panic!("{place}: {other}"),
                }
            }
            // The index still has the fields of an entry whose own fields are damaged.
            let certain = u64::from(hit.is_some());
            assert!(
                lost == certain || lost < certain && index.is_some(),
                "{place}"
            );
            let told = issues(folder);
            // Nothing but an index says that the damaged end was once whole.
            let is_end = hit == Some(COUNT - 1) && index.is_none();
            let loss = told.iter().any(|issue| {
                issue.is_loss() || is_end && matches!(issue, Issue::Unfinished { .. })
            });
            assert_eq!(loss, hit.is_some(), "{place}: {told:?}");
            assert!(
                index.is_none() || told.iter().any(|issue| issue.is_damage()),
                "{place}: {told:?}"
            );
        }
    }
}

/// Behind damage in the middle of an unfinished segment the entries stay, and so do the damaged octets.
#[test]
fn damage_in_the_middle_survives_a_repair() {
    let sample = Sample::new();
    let folder = folder();
    let folder = folder.path();
    for place in 64..sample.ends[COUNT as usize - 2] {
        let mut segment = sample.segment.clone();
        segment[place] ^= 0x10;
        segment.extend_from_slice(b"the beginning of an entry");
        archive_of(folder, &segment, None);
        reopened(folder);
        let hit = sample.whole(place);
        let expected: Vec<u64> = (0..COUNT).filter(|number| *number != hit).collect();
        assert_eq!(numbers(folder), expected, "{place}");
        assert_eq!(
            fs::read(path(folder, "seg")).unwrap(),
            segment[..sample.segment.len()],
            "{place}"
        );
        assert_eq!(
            issues(folder)
                .iter()
                .filter(|issue| issue.is_loss())
                .count(),
            1,
            "{place}"
        );
    }
}

/// An end of zeros, as file systems leave it after a cut of power.
#[test]
fn zeros_behind_the_entries_are_cut() {
    let sample = Sample::new();
    let folder = folder();
    let folder = folder.path();
    let cut = sample.ends[4];
    let mut segment = sample.segment.clone();
    segment[cut - 3..].fill(0);
    segment.resize(segment.len() + 300_000, 0);
    archive_of(folder, &segment, None);
    reopened(folder);
    assert_eq!(numbers(folder), [0, 1, 2, 3]);
    assert_eq!(
        fs::metadata(path(folder, "seg")).unwrap().len(),
        sample.ends[3] as u64
    );
    assert_eq!(issues(folder), []);
}

/// Who started the process hears of a long repair.
#[test]
fn a_repair_gives_signs_of_life() {
    static SIGNS: AtomicU64 = AtomicU64::new(0);
    let sample = Sample::new();
    let folder = folder();
    archive_of(folder.path(), &sample.segment, None);
    repair(folder.path(), at(0), || {
        SIGNS.fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();
    assert!(SIGNS.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_repair_that_was_cut_off_is_repeated() {
    let sample = Sample::new();
    let folder = folder();
    let folder = folder.path();
    let length = sample.ends[2] + 20;
    archive_of(folder, &sample.segment[..length], None);
    fs::write(path(folder, "new"), b"half an index").unwrap();
    fs::write(path(folder, "cut"), b"half a copy, longer than what is cut").unwrap();
    reopened(folder);
    assert_eq!(numbers(folder), [0, 1, 2]);
    assert_eq!(files(folder, DAY), "1305.cut 1305.idx 1305.seg");
    assert_eq!(
        fs::read(path(folder, "cut")).unwrap(),
        sample.segment[sample.ends[2]..length]
    );
}

/// What is not repaired costs nothing but time, and new entries go on in a new part.
#[test]
fn writing_goes_on_beside_a_segment_that_cannot_be_repaired() {
    let sample = Sample::new();
    let folder = folder();
    let folder = folder.path();
    archive_of(folder, &sample.segment[..sample.ends[1] + 5], None);
    // The place of the new index is taken by a directory.
    fs::create_dir(path(folder, "new")).unwrap();
    written(folder, 2..4);
    assert_eq!(numbers(folder), [0, 1, 2, 3]);
    let told = issues(folder);
    assert!(
        told.contains(&Issue::IndexMissing) && told.len() == 2,
        "{told:?}"
    );
    assert_eq!(
        files(folder, DAY),
        "1305-1.idx 1305-1.seg 1305.new 1305.seg"
    );
}

#[test]
fn an_index_without_a_segment_is_told() {
    let sample = Sample::new();
    let folder = folder();
    let folder = folder.path();
    archive_of(folder, &sample.segment, Some(&sample.index));
    fs::remove_file(path(folder, "seg")).unwrap();
    reopened(folder);
    assert_eq!(issues(folder), [Issue::SegmentMissing]);
}

/// The entries of the index of another segment are not those of the segment.
#[test]
fn a_foreign_index_is_passed_over() {
    let sample = Sample::new();
    let other = folder();
    written(other.path(), [3, 4]);
    let foreign = fs::read(path(other.path(), "idx")).unwrap();
    let folder = folder();
    archive_of(folder.path(), &sample.segment, Some(&foreign));
    assert_eq!(numbers(folder.path()), (0..COUNT).collect::<Vec<_>>());
    let told = issues(folder.path());
    assert!(told.contains(&Issue::IndexDamaged { at: 0 }), "{told:?}");
}
