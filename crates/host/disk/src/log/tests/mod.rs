mod aside;
mod cut;
mod in_place;
mod indexes;

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use vere_faults::{Fate, MemoryDisk};
use vere_ports::spool_log::{
    LogError, LogReader, LogRoom, OpenLogError, SpoolLog, SpoolLogStore, UnreadableEntry,
};
use vere_ports::storage::Storage;

use self::cut::Nothing;
use super::format::{ENTRY_LEN, HEAD_LEN, segment_name};
use super::recover::{self, Common};
use super::redo::RedoLog;
use super::reserve::Reserve;
use super::spares::file_len;
use super::sync::{Syncing, run_waiting};
use super::*;

const LOG_ID: u64 = 0x1122_3344_5566_7788;
const SEGMENT_LEN: u64 = 600;

/// A log on a disk in memory, whose syncs run when the test says so.
struct Bench {
    disk: MemoryDisk,
    waiting: Receiver<Arc<Syncing<MemoryDisk>>>,
    log: RedoLog<MemoryDisk>,
}

/// Everything read, with the segment it was in.
#[derive(Debug, Default)]
struct Reader {
    heads: Vec<(u64, Vec<u8>)>,
    entries: Vec<(u64, Vec<u8>)>,
}

impl LogReader for Reader {
    fn head(&mut self, number: u64, head: &[u8]) -> Result<(), UnreadableEntry> {
        self.heads.push((number, head.to_vec()));
        Ok(())
    }

    fn entry(&mut self, number: u64, entry: &[u8]) -> Result<(), UnreadableEntry> {
        self.entries.push((number, entry.to_vec()));
        Ok(())
    }
}

type Waiting = Receiver<Arc<Syncing<MemoryDisk>>>;

fn common(disk: &MemoryDisk, reserve: u64) -> (Common<MemoryDisk>, Waiting) {
    let (jobs, waiting) = channel();
    let reserve = Reserve::new(disk, reserve).unwrap();
    (
        Common {
            segment_len: SEGMENT_LEN,
            in_place_max: Duration::MAX,
            jobs,
            reserve,
            reads: channel().0,
            indexing: None,
        },
        waiting,
    )
}

fn open(disk: &MemoryDisk) -> Result<(Reader, Bench), OpenLogError> {
    let (common, waiting) = common(disk, 0);
    let mut reader = Reader::default();
    let log = recover::open(disk.clone(), Path::new("log"), &common, &mut reader)?;
    Ok((
        reader,
        Bench {
            disk: disk.clone(),
            waiting,
            log,
        },
    ))
}

impl Bench {
    fn new() -> Self {
        Self::with_reserve(0)
    }

    fn with_reserve(reserve: u64) -> Self {
        let disk = MemoryDisk::default();
        let (common, waiting) = common(&disk, reserve);
        let log = recover::create(disk.clone(), &common, LOG_ID, b"head 1").unwrap();
        Self { disk, waiting, log }
    }

    fn sync(&mut self) {
        self.log.start_sync();
        run_waiting(&self.waiting);
    }

    fn append(&mut self, entry: &[u8]) -> u64 {
        let position = self.log.append(entry).unwrap().0;
        if self.log.wants_roll() {
            let head = format!("head {}", self.log.newest() + 1);
            self.log.roll(head.as_bytes()).unwrap();
        }
        position
    }

    fn synced(&self) -> u64 {
        self.log.synced().unwrap().0
    }
}

fn entry(number: usize) -> Vec<u8> {
    format!("entry {number} {}", "x".repeat(number * 7 % 90)).into_bytes()
}

/// A few segments: everything up to the first number synced, then more.
fn written(synced: usize, all: usize) -> Bench {
    let mut bench = Bench::new();
    for number in 0..all {
        if number == synced {
            bench.sync();
        }
        bench.append(&entry(number));
    }
    if synced == all {
        bench.sync();
        bench.log.keep_house();
        run_waiting(&bench.waiting);
    }
    bench
}

fn assert_prefix(reader: &Reader, least: usize, most: usize) {
    let count = reader.entries.len();
    assert!(
        (least..=most).contains(&count),
        "{count} entries, not {least} to {most}"
    );
    for (number, (_, read)) in reader.entries.iter().enumerate() {
        assert_eq!(*read, entry(number));
    }
}

/// Where each entry lies: (file, first octet, octet after the last).
fn layout(bench: &Bench, all: usize) -> Vec<(String, u64, u64)> {
    let (reader, _) = open(&bench.disk.copy()).unwrap();
    assert_prefix(&reader, all, all);
    let (mut places, mut last, mut offset) = (Vec::new(), 0, 0);
    for (number, octets) in &reader.entries {
        if *number != last {
            let head = reader
                .heads
                .iter()
                .find(|(head, _)| head == number)
                .unwrap();
            (last, offset) = (*number, 56 + head.1.len() as u64);
        }
        let end = offset + (ENTRY_LEN + octets.len()) as u64;
        places.push((segment_name(*number), offset, end));
        offset = end;
    }
    places
}

#[test]
fn what_was_written_is_read() {
    let bench = written(30, 30);
    let (reader, _) = open(&bench.disk).unwrap();
    assert_prefix(&reader, 30, 30);
    assert!(reader.heads.len() > 2, "several segments");
    for (number, head) in &reader.heads {
        assert_eq!(*head, format!("head {number}").into_bytes());
    }
}

/// Cut the last file anywhere: inside what was synced it is damage, after it a torn tail.
#[test]
fn a_log_cut_at_every_octet() {
    let (synced, all) = (26, 30);
    let bench = written(synced, all);
    let places = layout(&bench, all);
    for (name, ..) in [&places[synced], &places[synced - 1], &places[0]] {
        let whole = bench.disk.file(name).unwrap();
        for len in 0..whole.len() {
            let disk = bench.disk.copy();
            disk.set_file(name, Some(whole[..len].to_vec()));
            let first_cut = places
                .iter()
                .position(|(file, _, end)| file == name && *end > len as u64)
                .unwrap_or(all);
            match open(&disk) {
                Ok((reader, _)) => {
                    assert!(first_cut >= synced, "{name} cut at {len} opened");
                    assert_prefix(&reader, synced, first_cut);
                }
                Err(OpenLogError::Damaged { file, offset, .. }) => {
                    assert!(first_cut < synced, "{name} cut at {len} did not open");
                    assert_eq!(file, Path::new("log").join(name));
                    assert!(offset <= len as u64);
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// Flip a bit anywhere: what was synced is never missing without a word, and the word is precise.
#[test]
fn a_log_with_every_octet_flipped() {
    let (synced, all) = (20, 24);
    let bench = written(synced, all);
    let places = layout(&bench, all);
    let mut files: Vec<_> = places.iter().map(|(name, ..)| name.clone()).collect();
    files.dedup();
    for name in files {
        let whole = bench.disk.file(&name).unwrap();
        for at in 0..whole.len() {
            let disk = bench.disk.copy();
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            disk.set_file(&name, Some(flipped));
            let hit = |(file, start, end): &(String, u64, u64)| {
                *file == name && (*start..*end).contains(&(at as u64))
            };
            match (places.iter().position(hit), open(&disk)) {
                // A segment whose head is damaged is not read at all.
                (None, Ok((reader, _))) => assert_prefix(&reader, synced, all),
                (Some(number), Ok((reader, _))) => {
                    assert!(number >= synced, "{name} flipped at {at} opened");
                    assert_prefix(&reader, synced, number);
                }
                (number, Err(OpenLogError::Damaged { file, offset, .. })) => {
                    assert_eq!(file, Path::new("log").join(&name));
                    assert!(
                        number.is_none_or(|number| number < synced),
                        "{name} at {at}"
                    );
                    assert_eq!(offset, number.map_or(0, |number| places[number].1));
                }
                (None, Err(OpenLogError::Version { .. })) => {}
                (_, Err(other)) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_damaged_mark_has_a_double_and_a_lost_one_is_told() {
    let bench = written(10, 10);
    let whole = bench.disk.file("mark").unwrap();
    for (flips, opens) in [(vec![3], true), (vec![4099], true), (vec![3, 4099], false)] {
        let disk = bench.disk.copy();
        let mut flipped = whole.clone();
        for at in flips {
            flipped[at] ^= 4;
        }
        disk.set_file("mark", Some(flipped));
        assert_eq!(open(&disk).is_ok(), opens);
    }
    let disk = bench.disk.copy();
    disk.set_file("mark", None);
    assert!(matches!(open(&disk), Err(OpenLogError::Damaged { .. })));
}

#[test]
fn a_missing_segment_is_told() {
    let bench = written(30, 30);
    let (_, opened) = open(&bench.disk.copy()).unwrap();
    let newest = opened.log.newest();
    for number in 1..=newest {
        let disk = bench.disk.copy();
        disk.set_file(&segment_name(number), None);
        let last_is_empty = number == newest && opened.log.octets() == 0;
        assert_eq!(open(&disk).is_ok(), last_is_empty, "segment {number}");
    }
}

#[test]
fn a_later_version_is_told() {
    let bench = written(3, 3);
    let name = segment_name(1);
    let mut octets = bench.disk.file(&name).unwrap();
    octets[8] = 9;
    let crc = vere_checksum::crc32(&octets[..52]).to_le_bytes();
    octets[52..56].copy_from_slice(&crc);
    bench.disk.set_file(&name, Some(octets));
    assert!(matches!(
        open(&bench.disk),
        Err(OpenLogError::Version { version: 9, .. })
    ));
}

/// A message cannot pretend to be an entry: the log id is not known outside.
#[test]
fn entries_in_a_payload_prove_nothing() {
    let other = written(12, 12);
    let forged = other.disk.file(&segment_name(1)).unwrap();
    let mut bench = Bench::new();
    bench.append(b"first");
    bench.sync();
    let synced = bench.synced();
    bench.append(&forged);
    let name = segment_name(1);
    let mut octets = bench.disk.file(&name).unwrap();
    let at = 56 + 6 + synced as usize + ENTRY_LEN / 2;
    octets[at] ^= 1;
    bench.disk.set_file(&name, Some(octets));
    // Same id here, as if it had leaked: the place is wrong all the same.
    let (reader, _) = open(&bench.disk).unwrap();
    assert_eq!(reader.entries, [(1, b"first".to_vec())]);
}

#[test]
fn a_full_disk_takes_what_the_reserve_holds_and_recovers() {
    let mut bench = Bench::with_reserve(500);
    bench.sync();
    assert_eq!(bench.log.room(), LogRoom::Plenty);
    let used = |bench: &Bench| {
        let names = bench.disk.list().unwrap();
        names
            .iter()
            .map(|name| bench.disk.file(name).unwrap().len() as u64)
            .sum::<u64>()
    };
    // The file was made with its length: what follows is what it grows by.
    let mut before = 0;
    while bench.log.offset + 86 < file_len(SEGMENT_LEN) {
        bench.log.append(&[0; 50]).unwrap();
        before += 1;
    }
    let grows = bench.log.offset + 86 - file_len(SEGMENT_LEN);
    bench.disk.set_capacity(Some(used(&bench) + grows + 14));
    bench.log.append(&[1; 50]).unwrap();
    assert_eq!(bench.log.room(), LogRoom::Plenty);
    bench.log.append(&[2; 50]).unwrap();
    assert_eq!(bench.log.room(), LogRoom::Reserve, "the reserve is used");
    let mut taken = before + 2;
    let full = loop {
        match bench.log.append(&[3; 50]) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, LogError::Full);
    assert!(taken > before + 4, "{taken}");
    bench.log.keep_house();
    assert_eq!(bench.log.room(), LogRoom::Reserve);
    // What did not fit left nothing behind, and with room again it goes on.
    bench.disk.set_capacity(None);
    bench.log.append(&[4; 50]).unwrap();
    bench.log.keep_house();
    assert_eq!(bench.log.room(), LogRoom::Plenty);
    bench.sync();
    let (reader, _) = open(&bench.disk).unwrap();
    assert_eq!(reader.entries.len(), taken + 1);
}

/// After a failed sync a system may take lost pages for clean: nothing is reported any more, and the
/// next process writes what it cannot prove again.
#[test]
fn a_failed_sync_is_final_and_mended_by_the_next_start() {
    let mut bench = Bench::new();
    bench.append(&entry(0));
    bench.sync();
    let synced = bench.synced();
    bench.append(&entry(1));
    bench.disk.fail_syncs(true);
    bench.sync();
    assert!(matches!(bench.log.synced(), Err(LogError::Failed(_))));
    bench.disk.fail_syncs(false);
    bench.sync();
    assert!(
        matches!(bench.log.synced(), Err(LogError::Failed(_))),
        "final"
    );
    assert!(matches!(
        bench.log.append(b"more"),
        Err(LogError::Failed(_))
    ));
    let (reader, reopened) = open(&bench.disk).unwrap();
    assert_prefix(&reader, 2, 2);
    assert!(reopened.synced() > synced);
    bench.disk.crash(&mut Nothing);
    let (reader, _) = open(&bench.disk).unwrap();
    assert_prefix(&reader, 2, 2);
}

#[test]
fn old_segments_go_after_a_sync_and_are_not_missed() {
    let mut bench = written(30, 30);
    let newest = bench.log.newest();
    bench.log.remove_before(newest - 1).unwrap();
    assert!(
        bench.disk.file(&segment_name(1)).is_some(),
        "not before the sync"
    );
    run_waiting(&bench.waiting);
    bench.log.keep_house();
    run_waiting(&bench.waiting);
    assert!(bench.disk.file(&segment_name(newest - 2)).is_none());
    let (reader, mut opened) = open(&bench.disk).unwrap();
    assert_eq!(reader.heads[0].0, newest - 1);
    opened.append(b"goes on");
    opened.sync();
    // Now the oldest one that is needed cannot be missing.
    opened.disk.set_file(&segment_name(newest - 1), None);
    assert!(matches!(
        open(&opened.disk),
        Err(OpenLogError::Damaged { .. })
    ));
}

/// What is no longer needed of a log becomes the file of a segment to come. Whatever it held before, and
/// wherever it is cut off, nothing of that is read.
#[test]
fn an_old_file_that_is_used_again_gives_back_only_what_is_new() {
    let mut bench = Bench::with_reserve(100);
    let mut written = 0;
    for round in 0..40 {
        for _ in 0..3 {
            bench.append(&entry(written));
            written += 1;
        }
        bench.sync();
        bench
            .log
            .remove_before(bench.log.newest().saturating_sub(1))
            .unwrap();
        run_waiting(&bench.waiting);
        if round % 4 == 3 {
            bench.log.keep_house();
            run_waiting(&bench.waiting);
        }
        let disk = bench.disk.copy();
        disk.crash(&mut Nothing);
        let (reader, reopened) = open(&disk).unwrap();
        let first = written - reader.entries.len();
        for (number, (_, read)) in reader.entries.iter().enumerate() {
            assert_eq!(*read, entry(first + number));
        }
        assert_eq!(reopened.synced(), bench.synced());
    }
    let files = bench.disk.list().unwrap();
    let spare = |name: &&String| name.as_str() > segment_name(bench.log.newest()).as_str();
    let spares = files.iter().filter(|name| name.ends_with(".log"));
    let spares: Vec<_> = spares.filter(spare).collect();
    assert!(!spares.is_empty(), "files are there in advance: {files:?}");
    let used = |name: &&&String| {
        bench
            .disk
            .file(name)
            .unwrap()
            .iter()
            .any(|octet| *octet != 0)
    };
    assert!(spares.iter().any(|name| used(&name)), "out of old ones");

    // A full disk has no room for them.
    bench.log.reserve.release();
    bench.disk.set_capacity(Some(0));
    bench.log.keep_house();
    run_waiting(&bench.waiting);
    let newest = segment_name(bench.log.newest());
    let files = bench.disk.list().unwrap();
    let spare = |name: &String| name.ends_with(".log") && *name > newest;
    assert!(!files.iter().any(spare), "{files:?}");
    assert_eq!(bench.log.room(), LogRoom::Reserve);
}

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    StartSync,
    SyncAlone,
    RunSyncs,
    Remove(prop::sample::Index),
    KeepHouse,
    FailSyncs,
    Restart,
    Crash(Vec<prop::sample::Index>),
}

fn step() -> impl Strategy<Value = Step> {
    let fate = proptest::collection::vec(any::<prop::sample::Index>(), 40);
    prop_oneof![
        8 => (0..300_usize).prop_map(Step::Append),
        4 => Just(Step::StartSync),
        2 => Just(Step::SyncAlone),
        4 => Just(Step::RunSyncs),
        1 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => Just(Step::KeepHouse),
        1 => Just(Step::FailSyncs),
        1 => Just(Step::Restart),
        2 => fate.prop_map(Step::Crash),
    ]
}

struct Picks(Vec<prop::sample::Index>, usize);

impl Fate for Picks {
    fn pick(&mut self, bound: usize) -> usize {
        self.1 += 1;
        self.0[self.1 % self.0.len()].index(bound)
    }
}

/// All entries appended and not known to be lost, with segment, end and payload.
#[derive(Debug, Default)]
struct Written {
    entries: Vec<(u64, u64, Vec<u8>)>,
    /// Reported as synced, at most so far.
    synced: u64,
    removed_before: u64,
}

impl Written {
    /// A log that was opened again must hold a beginning of what was written, all of what was synced.
    fn check(&mut self, reader: &Reader) {
        let oldest = reader.heads[0].0;
        assert!(oldest <= self.removed_before.max(1));
        let expected: Vec<_> = self
            .entries
            .iter()
            .filter(|(segment, ..)| *segment >= oldest)
            .collect();
        assert!(reader.entries.len() <= expected.len());
        for ((segment, octets), (number, _, written)) in reader.entries.iter().zip(&expected) {
            assert_eq!((segment, octets), (number, written));
        }
        let lost = expected.get(reader.entries.len());
        assert!(
            lost.is_none_or(|(_, end, _)| *end > self.synced),
            "synced and lost"
        );
        let keep = self.entries.len() - (expected.len() - reader.entries.len());
        self.entries.truncate(keep);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 300 } else { 5000 }))]

    /// Power cuts and failing syncs at any moment: what was reported as synced comes back, in order,
    /// followed by a beginning of the rest.
    #[test]
    fn survives_power_cuts(steps in proptest::collection::vec(step(), 1..80)) {
        let mut bench = Bench::new();
        let mut written = Written::default();
        for step in steps {
            match step {
                Step::Append(len) => {
                    let payload = vec![written.entries.len() as u8; len];
                    let segment = bench.log.newest();
                    if bench.log.append(&payload).is_ok() {
                        let end = bench.log.position;
                        written.entries.push((segment, end, payload));
                        if bench.log.wants_roll() {
                            let head = format!("head {}", segment + 1);
                            bench.log.roll(head.as_bytes()).unwrap();
                        }
                    }
                }
                Step::StartSync => bench.log.start_sync(),
                Step::SyncAlone => bench.log.sync_alone(),
                Step::RunSyncs => run_waiting(&bench.waiting),
                Step::Remove(index) => {
                    let before = index.index(bench.log.newest() as usize + 1) as u64;
                    if bench.log.remove_before(before).is_ok() {
                        written.removed_before = written.removed_before.max(before);
                    }
                }
                Step::KeepHouse => bench.log.keep_house(),
                Step::FailSyncs => bench.disk.fail_syncs(true),
                Step::Restart | Step::Crash(_) => {
                    match step {
                        Step::Crash(fate) => bench.disk.crash(&mut Picks(fate, 0)),
                        _ => bench.disk.fail_syncs(false),
                    }
                    let (reader, opened) = open(&bench.disk).unwrap();
                    written.check(&reader);
                    bench = opened;
                }
            }
            if let Ok(synced) = bench.log.synced() {
                written.synced = written.synced.max(synced.0);
            }
        }
    }
}

fn no_wake() -> Wake {
    Arc::new(|| {})
}

#[test]
fn a_directory_has_one_user_and_keeps_its_groups() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node");
    let woken = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&woken);
    let wake: Wake = Arc::new(move || *counter.lock().unwrap() += 1);
    let options = LogOptions {
        segment_len: 1 << 16,
        reserve_len: 1 << 16,
        ..LogOptions::default()
    };
    let mut directory = NodeDirectory::open(&path, options, wake).unwrap();
    let second = NodeDirectory::open(&path, options, no_wake());
    assert!(matches!(second, Err(OpenLogError::Locked { .. })));
    let incarnation = directory.incarnation();
    let mut log = directory.create("gateway é/..", b"head").unwrap();
    let end = log.append(b"first").unwrap();
    log.start_sync();
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while log.synced().unwrap() < end || *woken.lock().unwrap() == 0 {
        assert!(std::time::Instant::now() < patience);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop((log, directory));
    std::fs::create_dir(path.join("new-0002")).unwrap();

    let directory = NodeDirectory::open(&path, options, no_wake()).unwrap();
    assert_eq!(directory.incarnation(), incarnation);
    let groups = directory.groups().unwrap();
    assert_eq!(groups.len(), 1);
    assert!(!path.join("new-0002").exists(), "a leftover goes");
    let mut reader = Reader::default();
    directory.open_group(&groups[0].1, &mut reader).unwrap();
    assert_eq!(groups[0].0, "gateway é/..");
    assert_eq!(reader.entries, [(1, b"first".to_vec())]);
    drop(directory);

    std::fs::remove_file(groups[0].1.join("name")).unwrap();
    let directory = NodeDirectory::open(&path, options, no_wake()).unwrap();
    assert!(matches!(
        directory.groups(),
        Err(OpenLogError::Damaged { .. })
    ));
    drop(directory);
    std::fs::remove_file(path.join("node")).unwrap();
    let lost = NodeDirectory::open(&path, options, no_wake());
    assert!(
        matches!(lost, Err(OpenLogError::Damaged { .. })),
        "never a new incarnation over logs"
    );
}
