//! The writer over a disk that waits, refuses and fails.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use vere_units::{ByteSize, Timestamp};

use super::current::PAGE_OCTETS;
use super::disk::{Disk, Output, RealDisk};
use super::{Archive, ArchiveOptions, OpenError};
use crate::entry::Entry;
use crate::error::ArchiveError;
use crate::format::META_OCTETS_MAX;
use crate::keep::Kept;
use crate::keep::tests::aged;
use crate::tests::{MINUTE, add, at, entry, files, folder, numbers, runtime};
use crate::{Page, Query, find, verify};

const DAY: &str = "2026-11-29";

/// What the disk does; each kind of call asks here.
#[derive(Debug, Default)]
struct Will {
    /// Octets that fit on the disk.
    room: Option<usize>,
    /// Results of the next syncs of segments; `true` fails. After these, all succeed.
    syncs: VecDeque<bool>,
    /// Cuts fail.
    cuts_fail: bool,
    /// Writes of segments and syncs, in order.
    calls: Vec<&'static str>,
    /// Syncs wait.
    is_closed: bool,
    /// Octets of segments that need not stay in the cache, in order.
    set_aside: Vec<Range<u64>>,
}

#[derive(Debug, Clone, Default)]
struct Fake(Arc<(Mutex<Will>, Condvar)>);

impl Fake {
    fn set(&self, change: impl FnOnce(&mut Will)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    fn calls(&self) -> String {
        self.0.0.lock().unwrap().calls.join(" ")
    }

    /// Waits for a number of calls.
    fn wait_for(&self, calls: usize) {
        let mut will = self.0.0.lock().unwrap();
        while will.calls.len() < calls {
            will = self.0.1.wait(will).unwrap();
        }
    }

    fn open(&self, folder: &Path, options: ArchiveOptions) -> Archive {
        Archive::open_on(folder, options, Box::new(self.clone()), || at(0)).unwrap()
    }
}

impl Disk for Fake {
    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        RealDisk.make_folder(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let is_segment = path.extension().is_some_and(|extension| extension == "seg");
        let file = RealDisk.create(path)?;
        Ok(Box::new(FakeFile {
            disk: self.clone(),
            file,
            is_segment,
        }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_folder(path)
    }
}

struct FakeFile {
    disk: Fake,
    file: Box<dyn Output>,
    is_segment: bool,
}

impl Output for FakeFile {
    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        // A piece at a time, and long pieces by halves: the system may do so.
        let Some(piece) = pieces.iter().find(|piece| !piece.is_empty()) else {
            return Ok(0);
        };
        let mut len = piece.len().div_ceil(2);
        let mut will = self.disk.0.0.lock().unwrap();
        if let Some(room) = &mut will.room {
            if *room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            len = len.min(*room);
            *room -= len;
        }
        if self.is_segment && will.calls.last() != Some(&"write") {
            will.calls.push("write");
        }
        drop(will);
        self.disk.0.1.notify_all();
        self.file.write(&[IoSlice::new(&piece[..len])])
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        match self.disk.0.0.lock().unwrap().cuts_fail {
            true => Err(io::Error::other("cannot cut")),
            false => self.file.cut(length),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        if !self.is_segment {
            return self.file.sync();
        }
        let mut will = self.disk.0.0.lock().unwrap();
        will.calls.push("sync");
        self.disk.0.1.notify_all();
        while will.is_closed {
            will = self.disk.0.1.wait(will).unwrap();
        }
        match will.syncs.pop_front() {
            Some(true) => Err(io::Error::other("the disk failed")),
            _ => self.file.sync(),
        }
    }

    fn set_aside(&mut self, octets: Range<u64>) {
        if self.is_segment {
            let mut will = self.disk.0.0.lock().unwrap();
            will.set_aside.push(octets.clone());
        }
        self.file.set_aside(octets);
    }
}

fn is_sound(folder: &Path) -> bool {
    let verified = verify(folder, |_, _| {}).unwrap();
    verified.issues.list.is_empty()
}

/// An entry is not ready before its sync; what comes meanwhile goes into one write and one sync.
#[test]
fn entries_that_wait_share_a_sync() {
    let (folder, disk) = (folder(), Fake::default());
    let archive = disk.open(folder.path(), ArchiveOptions::default());
    disk.set(|will| will.is_closed = true);
    let mut context = Context::from_waker(Waker::noop());
    let mut first = Box::pin(archive.add(entry(0)));
    assert!(first.as_mut().poll(&mut context).is_pending());
    disk.wait_for(2);
    let mut others: Vec<_> = (1..50)
        .map(|number| Box::pin(archive.add(entry(number))))
        .collect();
    for other in &mut others {
        assert!(other.as_mut().poll(&mut context).is_pending());
    }
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert_eq!(disk.calls(), "write sync");
    disk.set(|will| will.is_closed = false);
    runtime().block_on(async {
        first.await.unwrap();
        for other in others {
            other.await.unwrap();
        }
    });
    assert_eq!(disk.calls(), "write sync write sync");
    let figures = archive.figures();
    assert_eq!((figures.entries, figures.syncs, figures.failed), (50, 2, 0));
    drop(archive);
    assert_eq!(numbers(folder.path()), (0..50).collect::<Vec<_>>());
    assert!(is_sound(folder.path()));
}

/// Synced octets leave the cache in parts of some size; whole pages only, and nothing that no sync has reached.
#[test]
fn synced_octets_leave_the_cache() {
    let (folder, disk) = (folder(), Fake::default());
    let archive = disk.open(folder.path(), ArchiveOptions::default());
    let long = |number| {
        let octets = vec![Bytes::from(vec![b'x'; 700_000])];
        Entry {
            octets,
            ..entry(number)
        }
    };
    let mut lengths = Vec::new();
    for number in 0..4 {
        add(&archive, [long(number)]);
        let path = folder.path().join(DAY).join("1305.seg");
        lengths.push(std::fs::metadata(path).unwrap().len());
    }
    let pages = |length: u64| length - length % PAGE_OCTETS;
    let expected = [0..lengths[1], pages(lengths[1])..lengths[3]];
    disk.set(|will| assert_eq!(will.set_aside, expected));
    disk.set(|will| will.syncs.push_back(true));
    add(&archive, [long(4), long(5)]);
    disk.set(|will| assert_eq!(will.set_aside.len(), 2));
}

/// A disk with room for any number of octets: entries before stay, the refused ones leave nothing, and later entries follow.
#[test]
fn a_full_disk_refuses_and_damages_nothing() {
    let sample = folder();
    let (disk, numbers_of) = (Fake::default(), |from: u64| (from..from + 3).map(entry));
    let archive = disk.open(sample.path(), ArchiveOptions::default());
    add(&archive, numbers_of(0));
    drop(archive);
    let length = std::fs::metadata(sample.path().join(DAY).join("1305.seg"))
        .unwrap()
        .len() as usize;
    let longest = length
        + std::fs::metadata(sample.path().join(DAY).join("1305.idx"))
            .unwrap()
            .len() as usize;
    for room in (0..longest + 10).step_by(7) {
        let (folder, disk) = (folder(), Fake::default());
        let archive = disk.open(folder.path(), ArchiveOptions::default());
        disk.set(|will| will.room = Some(room));
        let results = add(&archive, numbers_of(0));
        let is_full =
            |result: &Result<(), ArchiveError>| matches!(result, Err(ArchiveError::Full { .. }));
        assert!(
            results
                .iter()
                .all(|result| result.is_ok() || is_full(result)),
            "{room}: {results:?}"
        );
        // Less than all segments need, or more than all files need.
        assert!(room >= length || results.iter().any(is_full), "{room}");
        assert!(room < longest || !results.iter().any(is_full), "{room}");
        let mut expected: Vec<u64> = (0..)
            .zip(&results)
            .filter(|(_, result)| result.is_ok())
            .map(|(number, _)| number)
            .collect();
        assert_eq!(numbers(folder.path()), expected, "{room}");
        disk.set(|will| will.room = None);
        assert_eq!(
            add(&archive, numbers_of(3)),
            [Ok(()), Ok(()), Ok(())],
            "{room}"
        );
        drop(archive);
        expected.extend([3, 4, 5]);
        assert_eq!(numbers(folder.path()), expected, "{room}");
        drop(Archive::open(folder.path(), ArchiveOptions::default()).unwrap());
        assert_eq!(numbers(folder.path()), expected, "{room}");
        assert!(is_sound(folder.path()), "{room}");
    }
}

/// A full disk where even the cut fails: the segment is given up, and the next opening cuts it.
#[test]
fn a_segment_that_cannot_be_cut_is_given_up() {
    let (folder, disk) = (folder(), Fake::default());
    let archive = disk.open(folder.path(), ArchiveOptions::default());
    assert_eq!(add(&archive, [entry(0)]), [Ok(())]);
    // The index is written behind the answer, and would take the room.
    let index = folder.path().join(DAY).join("1305.idx");
    while std::fs::metadata(&index).unwrap().len() < 96 + super::encoded_len(&entry(0)) {
        std::thread::yield_now();
    }
    disk.set(|will| (will.room, will.cuts_fail) = (Some(100), true));
    assert!(add(&archive, [entry(1)])[0].is_err());
    disk.set(|will| (will.room, will.cuts_fail) = (None, false));
    assert_eq!(add(&archive, [entry(2)]), [Ok(())]);
    drop(archive);
    assert_eq!(numbers(folder.path()), [0, 2]);
    drop(Archive::open(folder.path(), ArchiveOptions::default()).unwrap());
    assert_eq!(numbers(folder.path()), [0, 2]);
    assert!(is_sound(folder.path()));
    assert_eq!(
        files(folder.path(), DAY),
        "1305-1.idx 1305-1.seg 1305.cut 1305.idx 1305.seg"
    );
}

/// After a failed sync nothing of the batch is there, what was synced before is, and new entries go into a new part.
#[test]
fn a_failed_sync_refuses_the_batch_and_begins_a_part() {
    let (folder, disk) = (folder(), Fake::default());
    let archive = disk.open(folder.path(), ArchiveOptions::default());
    disk.set(|will| will.syncs = [false, true, false].into());
    assert_eq!(add(&archive, [entry(0)]), [Ok(())]);
    let refused = add(&archive, [entry(1)]);
    assert!(
        matches!(&refused[0], Err(ArchiveError::Disk { .. })),
        "{refused:?}"
    );
    assert_eq!(add(&archive, [entry(3)]), [Ok(())]);
    let figures = archive.figures();
    assert_eq!((figures.entries, figures.failed, figures.syncs), (2, 1, 3));
    drop(archive);
    assert_eq!(numbers(folder.path()), [0, 3]);
    drop(Archive::open(folder.path(), ArchiveOptions::default()).unwrap());
    assert_eq!(numbers(folder.path()), [0, 3]);
    assert!(is_sound(folder.path()));
    assert_eq!(
        files(folder.path(), DAY),
        "1305-1.idx 1305-1.seg 1305.idx 1305.seg"
    );
}

/// With a time between syncs, entries are ready before a sync, and one sync follows for all.
#[test]
fn syncs_may_follow_later() {
    let (folder, disk) = (folder(), Fake::default());
    let options = ArchiveOptions {
        sync_within: Duration::from_millis(20),
        ..ArchiveOptions::default()
    };
    let archive = disk.open(folder.path(), options);
    disk.set(|will| will.is_closed = true);
    assert_eq!(add(&archive, [entry(0)]), [Ok(())]);
    // The thread reaches the sync without a further entry.
    disk.wait_for(2);
    disk.set(|will| will.is_closed = false);
    while archive.figures().syncs < 1 {
        std::thread::yield_now();
    }
    // The answered entries of a segment whose sync fails stay.
    disk.set(|will| will.syncs = [true].into());
    assert_eq!(add(&archive, [entry(1)]), [Ok(())]);
    disk.wait_for(4);
    drop(archive);
    assert_eq!(disk.calls(), "write sync write sync");
    assert_eq!(numbers(folder.path()), [0, 1]);
}

#[test]
fn callers_wait_for_room_in_memory() {
    let (folder, disk) = (folder(), Fake::default());
    let options = ArchiveOptions {
        waiting_octets_max: ByteSize::kib(16),
        ..ArchiveOptions::default()
    };
    let archive = disk.open(folder.path(), options);
    disk.set(|will| will.is_closed = true);
    let mut context = Context::from_waker(Waker::noop());
    let large = |number, kib: usize| {
        let mut entry = entry(number);
        entry.octets = vec![Bytes::from(vec![b'x'; kib << 10])];
        entry
    };
    // Eight and, with the fields, nine KiB; then seven, of which none is left, and one that is larger than all room.
    let mut adds: Vec<_> = [(0, 8), (1, 6), (2, 8), (3, 100), (4, 1)]
        .map(|(number, kib)| Box::pin(archive.add(large(number, kib))))
        .into();
    for (place, add) in adds.iter_mut().enumerate() {
        assert!(add.as_mut().poll(&mut context).is_pending());
        if place == 0 {
            disk.wait_for(2);
        }
    }
    // One is with the disk, one waits in the queue, and three wait for room.
    assert_eq!(archive.shared.lock().jobs.len(), 1);
    disk.set(|will| will.is_closed = false);
    let results = runtime().block_on(crate::tests::joined(adds));
    assert_eq!(results, [Ok(()), Ok(()), Ok(()), Ok(()), Ok(())]);
    assert_eq!(archive.room.available_permits(), 16);
    let mut sizes = Vec::new();
    find(
        folder.path(),
        &Query::default(),
        &Page::default(),
        |found| {
            sizes.push(found.octets >> 10);
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(sizes, [8, 6, 8, 100, 1]);
}

#[test]
fn texts_are_bounded() {
    let folder = folder();
    let archive = Archive::open(folder.path(), ArchiveOptions::default()).unwrap();
    let mut long = entry(0);
    let rest = META_OCTETS_MAX - super::encoded_len(&long);
    long.recipients.push("x".repeat(rest as usize - 4));
    assert_eq!(add(&archive, [long.clone()]), [Ok(())]);
    long.recipients.push(String::new());
    let found = META_OCTETS_MAX + 4;
    assert_eq!(
        add(&archive, [long]),
        [Err(ArchiveError::TextsTooLong {
            found,
            max: META_OCTETS_MAX
        })]
    );
    drop(archive);
    assert!(is_sound(folder.path()));
    assert_eq!(numbers_of_any(folder.path()), 1);
}

fn numbers_of_any(folder: &Path) -> u64 {
    find(folder, &Query::default(), &Page::default(), |_| Ok(()))
        .unwrap()
        .found
}

/// The segments of entries that are added one after the other at these times, in milliseconds.
fn segments_of(options: &ArchiveOptions, times: &[u64]) -> String {
    let folder = folder();
    let archive = Archive::open(folder.path(), options.clone()).unwrap();
    for time in times {
        let mut entry = entry(0);
        entry.at = Timestamp::from_millis(*time);
        assert_eq!(add(&archive, [entry]), [Ok(())]);
    }
    drop(archive);
    assert!(is_sound(folder.path()));
    let mut places = Vec::new();
    find(
        folder.path(),
        &Query::default(),
        &Page::default(),
        |found| {
            places.push(found.id.segment.to_string());
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(places.len(), times.len());
    places.dedup();
    places.join(" ")
}

#[test]
fn a_minute_is_a_segment() {
    let options = ArchiveOptions::default();
    let day = 86_400_000;
    for (times, expected) in [
        (&[MINUTE, MINUTE + 59_999][..], "2026-11-29/1305"),
        (
            &[MINUTE, MINUTE + 60_000],
            "2026-11-29/1305 2026-11-29/1306",
        ),
        // The clock goes back, by up to a day: the newest segment.
        (
            &[MINUTE, MINUTE - 1, MINUTE - 60_000, MINUTE + 1],
            "2026-11-29/1305",
        ),
        (&[MINUTE, MINUTE - day], "2026-11-29/1305"),
        // The clock was more than a day ahead, and is right again.
        (
            &[MINUTE, MINUTE - day - 60_000, MINUTE - day - 1],
            "2026-11-28/1304 2026-11-29/1305",
        ),
        (
            &[MINUTE + 39_300_000, MINUTE + 39_300_001],
            "2026-11-30/0000",
        ),
    ] {
        assert_eq!(segments_of(&options, times), expected);
    }
    let small = ArchiveOptions {
        segment_octets_max: ByteSize::new(300),
        ..options
    };
    let expected = "2026-11-29/1305 2026-11-29/1305-1 2026-11-29/1306";
    assert_eq!(
        segments_of(&small, &[MINUTE, MINUTE, MINUTE + 1, MINUTE + 60_000]),
        expected
    );
}

/// Entries of one batch over a minute's end, and of an earlier minute behind.
#[test]
fn a_batch_may_cross_a_minute() {
    let (folder, disk) = (folder(), Fake::default());
    let archive = disk.open(folder.path(), ArchiveOptions::default());
    let results = add(&archive, [58, 59, 60, 61, 57, 200].map(entry));
    assert!(results.iter().all(Result::is_ok));
    drop(archive);
    assert_eq!(numbers(folder.path()), [58, 59, 60, 61, 57, 200]);
    assert_eq!(
        files(folder.path(), DAY),
        "1305.idx 1305.seg 1306.idx 1306.seg 1308.idx 1308.seg"
    );
    assert!(is_sound(folder.path()));
}

/// A start within the minute begins a part; a start with a clock that went back goes on in the newest minute.
#[test]
fn a_start_begins_a_part() {
    let folder = folder();
    for (number, expected) in [
        (70, "1306.idx 1306.seg"),
        (71, "1306-1.idx 1306-1.seg 1306.idx 1306.seg"),
        (
            0,
            "1306-1.idx 1306-1.seg 1306-2.idx 1306-2.seg 1306.idx 1306.seg",
        ),
    ] {
        crate::tests::written(folder.path(), [number]);
        assert_eq!(files(folder.path(), DAY), expected);
    }
    // Without an entry no segment is begun.
    crate::tests::written(folder.path(), []);
    assert_eq!(numbers(folder.path()), [70, 71, 0]);
    assert!(is_sound(folder.path()));
}

#[test]
fn one_process_writes() {
    let folder = folder();
    let first = Archive::open(folder.path(), ArchiveOptions::default()).unwrap();
    assert_eq!(first.folder(), folder.path());
    let second = Archive::open(folder.path(), ArchiveOptions::default());
    assert!(matches!(second, Err(OpenError::InUse(_))), "{second:?}");
    first.close();
    Archive::open(folder.path(), ArchiveOptions::default()).unwrap();
}

#[test]
fn old_days_go_at_the_opening() {
    let folder = folder();
    crate::tests::written(folder.path(), [0, 200_000, 300_000]);
    let keep = Duration::from_secs(172_800);
    aged(&Kept::Days(folder.path().to_owned()), at(300_000_000), keep);
    let options = ArchiveOptions {
        keep,
        ..ArchiveOptions::default()
    };
    let archive = Archive::open_on(folder.path(), options, Box::new(RealDisk), || {
        at(300_000_000)
    })
    .unwrap();
    while numbers(folder.path()).len() > 2 {
        std::thread::yield_now();
    }
    drop(archive);
    assert_eq!(numbers(folder.path()), [200_000, 300_000]);
}

/// A real disk that is full: a file system in memory of 256 KiB, if this process may mount it.
#[test]
fn a_full_file_system_refuses() {
    let folder = folder();
    let place = folder.path().join("small");
    std::fs::create_dir(&place).unwrap();
    let mount = |program: &str, arguments: &[&str]| {
        let run = std::process::Command::new(program)
            .args(arguments)
            .arg(&place)
            .output();
        run.is_ok_and(|output| output.status.success())
    };
    if !mount("mount", &["-t", "tmpfs", "-o", "size=256k", "vere-archive"]) {
        println!("skipped: this process may not mount a file system");
        return;
    }
    let archive = Archive::open(&place, ArchiveOptions::default()).unwrap();
    let results = add(
        &archive,
        (0..2_000).map(|number| {
            let mut entry = entry(number);
            entry.octets = vec![Bytes::from(vec![b'x'; 1_000])];
            entry
        }),
    );
    let refused = results.iter().filter(|result| result.is_err()).count();
    let is_full = |result: &Result<(), ArchiveError>| {
        matches!(result, Ok(()) | Err(ArchiveError::Full { .. }))
    };
    assert!(results.iter().all(is_full));
    drop(archive);
    let (kept, sound) = (numbers_of_any(&place), verify(&place, |_, _| {}).unwrap());
    drop(Archive::open(&place, ArchiveOptions::default()).unwrap());
    let after = numbers_of_any(&place);
    assert!(mount("umount", &[]));
    assert_eq!(kept as usize, 2_000 - refused);
    assert_eq!(after, kept);
    assert!(
        !sound.issues.list.iter().any(|(_, issue)| issue.is_loss()),
        "{sound:?}"
    );
}
