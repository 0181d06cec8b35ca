//! Logs opened by the indexes of their segments.

use vere_faults::Seeded;
use vere_ports::spool_log::{LogOutliner, LogStretch, OutlinedEntry};

use super::super::index::index_name;
use super::super::indexer::{self, IndexJob, Indexing};
use super::super::reading::ReadJob;
use super::*;

/// So much of an entry is its outline, at most.
const KEPT: usize = 12;
const ENTRIES: usize = 60;

const OUTLINER: LogOutliner = LogOutliner {
    version: 3,
    outline,
    check,
};

fn outline(entry: &[u8], out: &mut Vec<u8>) -> Result<(), UnreadableEntry> {
    out.extend_from_slice(&entry[..entry.len().min(KEPT)]);
    Ok(())
}

fn check(outline: &[u8], len: u32) -> bool {
    outline.len() == (len as usize).min(KEPT)
}

/// Entries of about a hundred octets.
fn long(number: usize) -> Vec<u8> {
    format!("{number:>12} {}", "y".repeat(80 + number % 40)).into_bytes()
}

/// Takes outlines where it gets them.
#[derive(Debug, Default)]
struct Outlines {
    outlined: Vec<(OutlinedEntry, Vec<u8>)>,
    whole: Vec<Vec<u8>>,
}

impl LogReader for Outlines {
    fn outliner(&self) -> Option<LogOutliner> {
        Some(OUTLINER)
    }

    fn outline(&mut self, entry: OutlinedEntry, outline: &[u8]) -> Result<(), UnreadableEntry> {
        assert!(self.whole.is_empty(), "only the last segment is read whole");
        self.outlined.push((entry, outline.to_vec()));
        Ok(())
    }

    fn head(&mut self, number: u64, head: &[u8]) -> Result<(), UnreadableEntry> {
        assert_eq!(head, format!("head {number}").into_bytes());
        Ok(())
    }

    fn entry(&mut self, _: u64, entry: &[u8]) -> Result<(), UnreadableEntry> {
        self.whole.push(entry.to_vec());
        Ok(())
    }
}

impl Outlines {
    fn len(&self) -> usize {
        self.outlined.len() + self.whole.len()
    }

    fn assert_is(&self, count: usize) {
        assert_eq!(self.len(), count);
        for (number, (entry, outline)) in self.outlined.iter().enumerate() {
            let content = long(number);
            assert_eq!(*outline, content[..KEPT]);
            assert_eq!(entry.len as usize, content.len());
        }
        let first = self.outlined.len();
        for (number, content) in self.whole.iter().enumerate() {
            assert_eq!(*content, long(first + number));
        }
    }
}

struct Opened {
    disk: MemoryDisk,
    log: RedoLog<MemoryDisk>,
    read: Outlines,
    syncs: Waiting,
    indexes: Indexes,
    reads: Reads,
}

type Indexes = Receiver<IndexJob<MemoryDisk>>;
type Reads = Receiver<ReadJob<MemoryDisk>>;

fn setup(disk: &MemoryDisk) -> (Common<MemoryDisk>, Waiting, Indexes, Reads) {
    let (mut common, syncs) = common(disk, 0);
    let (jobs, indexes) = channel();
    common.indexing = Some(Indexing { behind: 0, jobs });
    let (jobs, reads) = channel();
    common.reads = jobs;
    (common, syncs, indexes, reads)
}

fn open_by_index(disk: &MemoryDisk) -> Result<Opened, OpenLogError> {
    open_with(disk, SEGMENT_LEN)
}

fn open_with(disk: &MemoryDisk, segment_len: u64) -> Result<Opened, OpenLogError> {
    let (mut common, syncs, indexes, reads) = setup(disk);
    common.segment_len = segment_len;
    let mut read = Outlines::default();
    let log = recover::open(disk.clone(), Path::new("log"), &common, &mut read)?;
    Ok(Opened {
        disk: disk.clone(),
        log,
        read,
        syncs,
        indexes,
        reads,
    })
}

impl Opened {
    fn create() -> Self {
        Self::create_with(SEGMENT_LEN)
    }

    fn create_with(segment_len: u64) -> Self {
        let disk = MemoryDisk::default();
        let (mut common, syncs, indexes, reads) = setup(&disk);
        common.segment_len = segment_len;
        let log = recover::create(disk.clone(), &common, LOG_ID, b"head 1").unwrap();
        Self {
            disk,
            log,
            read: Outlines::default(),
            syncs,
            indexes,
            reads,
        }
    }

    fn append(&mut self, number: usize) -> u64 {
        let position = self.log.append(&long(number)).unwrap().0;
        if self.log.wants_roll() {
            let head = format!("head {}", self.log.newest() + 1);
            self.log.roll(head.as_bytes()).unwrap();
        }
        position
    }

    /// Syncs, and does what follows from it.
    fn sync(&mut self) {
        self.log.start_sync();
        run_waiting(&self.syncs);
        indexer::run_waiting(&self.indexes, &OUTLINER);
    }

    fn read_again(&mut self, stretch: LogStretch) -> Result<Vec<u8>, String> {
        self.log
            .read_back(stretch, vec![0xAA; stretch.octets as usize + 7]);
        assert_eq!(self.log.poll_read(), None, "not on this thread");
        self.reads.try_recv().unwrap().run();
        let read = self.log.poll_read().unwrap();
        assert_eq!(read.stretch, stretch);
        let mut octets = read.octets;
        octets.truncate(stretch.octets as usize);
        read.result.map(|()| octets)
    }

    /// A stretch of so many outlined entries from one on.
    fn stretch(&self, from: usize, count: usize) -> LogStretch {
        let entries = &self.read.outlined[from..from + count];
        let first = entries[0].0;
        assert!(
            entries
                .iter()
                .all(|(entry, _)| entry.segment == first.segment)
        );
        LogStretch {
            segment: first.segment,
            offset: first.offset,
            position: first.position,
            octets: entries.iter().map(|(entry, _)| entry.len).sum(),
        }
    }
}

/// A log of some segments, all of which but the last have an index.
fn indexed() -> MemoryDisk {
    let mut log = Opened::create();
    for number in 0..ENTRIES {
        log.append(number);
    }
    log.sync();
    let names = log.disk.list().unwrap();
    let indexes = names.iter().filter(|name| name.ends_with(".index")).count() as u64;
    assert_eq!(indexes, log.log.newest() - 1);
    assert!(indexes > 5);
    log.disk
}

#[test]
fn a_start_reads_indexes_in_place_of_bodies() {
    const LONG: u64 = 16 << 10;
    const MANY: usize = 1000;
    let mut log = Opened::create_with(LONG);
    for number in 0..MANY {
        log.append(number);
    }
    log.sync();
    let disk = log.disk;
    let read = |disk: &MemoryDisk| {
        let before = disk.read_octets();
        let opened = open_with(disk, LONG).unwrap();
        opened.read.assert_is(MANY);
        disk.read_octets() - before
    };
    // What follows the end is cleared once.
    read(&disk);
    let by_index = read(&disk);
    for name in disk.list().unwrap() {
        if name.ends_with(".index") {
            disk.set_file(&name, None);
        }
    }
    let whole = read(&disk);
    assert!(whole > 100 * MANY as u64, "{whole}");
    assert!(
        by_index * 2 < whole,
        "{by_index} octets, without indexes {whole}"
    );
}

#[test]
fn what_was_outlined_is_read_again() {
    let mut log = open_by_index(&indexed()).unwrap();
    let all = log.read.outlined.len();
    assert!(all > ENTRIES / 2);
    for from in 0..all {
        let stretch = log.stretch(from, 1);
        assert_eq!(log.read_again(stretch), Ok(long(from)));
    }
    let pair = (0..all - 1)
        .find(|&at| log.read.outlined[at].0.segment == log.read.outlined[at + 1].0.segment);
    let at = pair.unwrap();
    let stretch = log.stretch(at, 2);
    assert_eq!(
        log.read_again(stretch),
        Ok([long(at), long(at + 1)].concat())
    );
}

#[test]
fn an_index_that_does_not_fit_is_not_believed() {
    let sound = indexed();
    let name = index_name(2);
    let octets = sound.file(&name).unwrap();
    let mut wrong: Vec<Option<Vec<u8>>> = vec![None, Some(Vec::new())];
    for at in 0..octets.len() {
        let mut flipped = octets.clone();
        flipped[at] ^= 1 << (at % 8);
        wrong.push(Some(flipped));
        wrong.push(Some(octets[..at].to_vec()));
    }
    wrong.push(Some([octets.as_slice(), b"more"].concat()));
    wrong.push(sound.file(&index_name(3)));
    for content in wrong {
        let disk = sound.copy();
        disk.set_file(&name, content);
        let mut log = open_by_index(&disk).unwrap();
        log.read.assert_is(ENTRIES);
        log.sync();
        log.append(ENTRIES);
        log.sync();
        assert_eq!(disk.file(&name).as_ref(), Some(&octets), "written again");
        assert_eq!(log.log.synced().err(), None);
    }
}

#[test]
fn another_version_of_outlines_is_made_anew() {
    const OTHER: LogOutliner = LogOutliner {
        version: 4,
        outline: |entry, out| {
            out.push(entry.len() as u8);
            Ok(())
        },
        check: |outline, len| outline == [len as u8],
    };
    #[derive(Default)]
    struct Other(Vec<u8>);
    impl LogReader for Other {
        fn outliner(&self) -> Option<LogOutliner> {
            Some(OTHER)
        }

        fn outline(&mut self, _: OutlinedEntry, outline: &[u8]) -> Result<(), UnreadableEntry> {
            self.0.extend_from_slice(outline);
            Ok(())
        }

        fn head(&mut self, _: u64, _: &[u8]) -> Result<(), UnreadableEntry> {
            Ok(())
        }

        fn entry(&mut self, _: u64, entry: &[u8]) -> Result<(), UnreadableEntry> {
            self.0.push(entry.len() as u8);
            Ok(())
        }
    }
    let disk = indexed();
    let (common, ..) = setup(&disk);
    let mut other = Other::default();
    recover::open(disk.clone(), Path::new("log"), &common, &mut other).unwrap();
    let lengths: Vec<u8> = (0..ENTRIES)
        .map(|number| long(number).len() as u8)
        .collect();
    assert_eq!(other.0, lengths);
}

/// Changes an octet in the middle of an entry of the second segment.
fn damage(disk: &MemoryDisk) -> String {
    let name = segment_name(2);
    let mut octets = disk.file(&name).unwrap();
    octets[300] ^= 4;
    disk.set_file(&name, Some(octets));
    name
}

#[test]
fn damage_behind_an_index_is_found_afterwards() {
    let disk = indexed();
    let name = damage(&disk);
    let mut log = open_by_index(&disk).unwrap();
    log.read.assert_is(ENTRIES);
    log.append(ENTRIES);
    // The scrubs that were left.
    indexer::run_waiting(&log.indexes, &OUTLINER);
    let error = log.log.synced().unwrap_err();
    assert!(
        matches!(&error, LogError::Damaged(at) if at.contains(&name)),
        "{error}"
    );
    drop(log);
    // The next start looks at it and says so.
    let again = open_by_index(&disk).map(|_| ()).unwrap_err();
    assert!(
        matches!(&again, OpenLogError::Damaged { file, .. } if file.ends_with(&name)),
        "{again}"
    );
}

#[test]
fn damage_is_found_by_who_reads_it() {
    let disk = indexed();
    let name = damage(&disk);
    let mut log = open_by_index(&disk).unwrap();
    let second = |log: &Opened| {
        let mut entries = log.read.outlined.iter();
        entries.position(|(entry, _)| entry.segment == 2).unwrap()
    };
    let first = second(&log);
    let count = log
        .read
        .outlined
        .iter()
        .filter(|(entry, _)| entry.segment == 2)
        .count();
    let stretch = log.stretch(first, count);
    let error = log.read_again(stretch).unwrap_err();
    assert!(error.contains(&name), "{error}");
    let again = open_by_index(&disk).map(|_| ()).unwrap_err();
    assert!(matches!(again, OpenLogError::Damaged { .. }), "{again}");
}

#[test]
fn indexes_go_with_their_segments() {
    let mut log = open_by_index(&indexed()).unwrap();
    let newest = log.log.newest();
    log.log.remove_before(newest).unwrap();
    log.sync();
    log.log.keep_house();
    run_waiting(&log.syncs);
    indexer::run_waiting(&log.indexes, &OUTLINER);
    let names = log.disk.list().unwrap();
    assert!(
        names.iter().all(|name| !name.ends_with(".index")),
        "{names:?}"
    );
    assert_eq!(log.log.synced().err(), None);
}

/// Power cuts at any moment: what was synced comes back, by indexes or without.
#[test]
fn power_cuts_between_everything() {
    let mut by_index = 0;
    for seed in 1..200_u64 {
        let mut dice = Seeded(seed);
        let mut log = Opened::create();
        let (mut written, mut synced) = (Vec::new(), 0);
        for _ in 0..4 {
            for _ in 0..dice.pick(40) {
                written.push(log.append(written.len()));
                match dice.pick(6) {
                    0 => log.sync(),
                    1 => {
                        log.log.start_sync();
                        run_waiting(&log.syncs);
                    }
                    _ => {}
                }
            }
            synced = synced.max(log.log.synced().unwrap().0);
            let disk = log.disk.clone();
            drop(log);
            disk.crash(&mut dice);
            log = open_by_index(&disk).unwrap();
            let count = log.read.len();
            log.read.assert_is(count);
            let least = written.iter().filter(|end| **end <= synced).count();
            assert!(count >= least, "seed {seed}: {count} entries of {least}");
            written.truncate(count);
            by_index += usize::from(log.indexes.try_iter().any(|job| job.scrub));
        }
    }
    assert!(by_index > 50, "{by_index}");
}
