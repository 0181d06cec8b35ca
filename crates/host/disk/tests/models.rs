//! The log's two threads in every order of events: the node's thread, which appends, and the one that
//! syncs. The modules are those of the library, built over primitives that the model checker runs.
//!
//! What is shown, for a few entries and segments: nothing is reported as synced that a power cut could
//! take back; a wake-up is never lost; after a failed sync nothing is reported any more; a log that is
//! dropped ends its thread; removing old segments never leaves a log that does not open.

#![allow(dead_code, unreachable_pub, reason = "the library has more users")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "models/channel.rs"]
mod channel;
#[path = "../src/log/format.rs"]
mod format;
mod aside {
    /// No model reads what a disk does not give.
    pub(super) fn is_unreadable(_: &std::io::Error) -> bool {
        false
    }
}
#[path = "../src/log/index.rs"]
mod index;
#[path = "../src/log/indexer.rs"]
mod indexer;
#[path = "../src/log/octets.rs"]
mod octets;
#[path = "../src/log/pace.rs"]
mod pace;
#[path = "../src/log/reading.rs"]
mod reading;
#[path = "../src/log/recover.rs"]
mod recover;
#[path = "../src/log/redo.rs"]
mod redo;
#[path = "../src/log/reserve.rs"]
mod reserve;
#[path = "../src/log/spares.rs"]
mod spares;
#[path = "../src/log/sync.rs"]
mod sync;
#[path = "../src/log/unread.rs"]
mod unread;
mod threads {
    pub(super) use super::channel::{Receiver, Sender};
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(super) use loom::sync::{Arc, Mutex, MutexGuard};

    /// Keeps it, unlike the one of the library: the checker has none, and no model makes indexes.
    pub(super) struct Weak<T>(Arc<T>);

    impl<T> Weak<T> {
        pub(super) fn upgrade(&self) -> Option<Arc<T>> {
            Some(Arc::clone(&self.0))
        }
    }

    pub(super) fn downgrade<T>(of: &Arc<T>) -> Weak<T> {
        Weak(Arc::clone(of))
    }
}

use std::io;
use std::path::Path;
use std::time::Duration;

use loom::sync::Condvar;
use vere_faults::{Fate, MemoryDisk};
use vere_ports::spool_log::{LogReader, SpoolLog, UnreadableEntry};
use vere_ports::storage::{Storage, StorageFile};

use self::recover::Common;
use self::redo::RedoLog;
use self::reserve::Reserve;
use self::sync::{Syncing, Wake, run_jobs};
use self::threads::{Arc, AtomicU64, Mutex, Ordering, Receiver};

/// Switches of threads that nothing asked for, at most, in one run. Faults of two threads show with two.
const PREEMPTIONS: usize = 3;
const LOG_ID: u64 = 7;
/// An entry of 90 octets is the last one of its segment.
const SEGMENT_LEN: u64 = 120;

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.max_branches = 10_000;
    builder.check(run);
}

/// A disk on which every step is one whose place among others matters.
#[derive(Debug, Clone)]
struct Steps<T>(T, Arc<AtomicU64>);

impl<T> Steps<T> {
    fn new(inner: T) -> Self {
        Self(inner, Arc::new(AtomicU64::new(0)))
    }

    fn step(&self) -> &T {
        self.1.fetch_add(1, Ordering::SeqCst);
        &self.0
    }

    fn file<F>(&self, file: F) -> Steps<F> {
        Steps(file, Arc::clone(&self.1))
    }
}

type Disk = Steps<MemoryDisk>;
type File = Steps<<MemoryDisk as Storage>::File>;

impl Storage for Disk {
    type File = File;

    fn list(&self) -> io::Result<Vec<String>> {
        self.step().list()
    }

    fn create(&self, name: &str) -> io::Result<File> {
        self.step().create(name).map(|file| self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        self.step().open(name).map(|file| self.file(file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.step().remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.step().rename(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        self.step().sync()
    }
}

impl StorageFile for File {
    fn len(&self) -> io::Result<u64> {
        self.step().len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.step().read_at(buffer, offset)
    }

    fn write_at(&self, parts: [&[u8]; 2], offset: u64) -> io::Result<()> {
        self.step().write_at(parts, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.step().truncate(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.step().allocate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.step().sync()
    }
}

/// Power fails, and everything that was not synced is gone.
struct AllIsLost;

impl Fate for AllIsLost {
    fn pick(&mut self, bound: usize) -> usize {
        // Of two: the names that last. Of three: nothing of a change.
        if bound == 2 { 0 } else { 2 }
    }
}

/// What the node's thread waits on between its turns.
struct Doorbell {
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Doorbell {
    fn new() -> Self {
        let (rung, bell) = (Mutex::new(false), Condvar::new());
        Self { rung, bell }
    }

    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.bell.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.bell.wait(rung).unwrap();
        }
        *rung = false;
    }
}

#[derive(Default)]
struct Reader(Vec<Vec<u8>>);

impl LogReader for Reader {
    fn head(&mut self, _: u64, _: &[u8]) -> Result<(), UnreadableEntry> {
        Ok(())
    }

    fn entry(&mut self, _: u64, entry: &[u8]) -> Result<(), UnreadableEntry> {
        self.0.push(entry.to_vec());
        Ok(())
    }
}

fn common(disk: &Disk) -> (Common<Disk>, Receiver<Arc<Syncing<Disk>>>) {
    let (jobs, waiting) = channel::channel();
    let common = Common {
        segment_len: SEGMENT_LEN,
        // However long it takes: no run may hang on that.
        in_place_max: Duration::MAX,
        jobs,
        reserve: Reserve::new(disk, 0).unwrap(),
        // Nothing is read again, and nothing gets an index.
        reads: std::sync::mpsc::channel().0,
        indexing: None,
    };
    (common, waiting)
}

/// A node with one log, and the thread that syncs it.
struct Node {
    disk: Disk,
    log: RedoLog<Disk>,
    doorbell: Arc<Doorbell>,
    thread: loom::thread::JoinHandle<()>,
}

impl Node {
    fn start() -> Self {
        let disk = Disk::new(MemoryDisk::default());
        let (common, jobs) = common(&disk);
        let log = recover::create(disk.clone(), &common, LOG_ID, b"head").unwrap();
        let doorbell = Arc::new(Doorbell::new());
        let bell = Arc::clone(&doorbell);
        let thread = loom::thread::spawn(move || {
            let wake: Wake = std::sync::Arc::new(move || bell.ring());
            run_jobs(&jobs, &wake);
        });
        Self {
            disk,
            log,
            doorbell,
            thread,
        }
    }

    /// Appends an entry, and begins another segment when it is time.
    fn append(&mut self, entry: &[u8]) -> u64 {
        let position = self.log.append(entry).unwrap().0;
        if self.log.wants_roll() {
            self.log.roll(b"head").unwrap();
        }
        position
    }

    fn wait_for(&self, position: u64) {
        while self.log.synced().unwrap().0 < position {
            self.doorbell.wait();
        }
    }

    /// The power fails now. Gives what a restart finds.
    fn cut_power(&self) -> Vec<Vec<u8>> {
        self.disk.step().crash(&mut AllIsLost);
        let disk = Disk::new(self.disk.0.copy());
        let (common, _jobs) = common(&disk);
        let mut reader = Reader::default();
        recover::open(disk, Path::new("log"), &common, &mut reader).unwrap();
        reader.0
    }

    /// The log goes, and with it its thread.
    fn stop(self) {
        drop(self.log);
        self.thread.join().unwrap();
    }
}

/// Whatever is reported at any moment is there after a power cut at that moment.
#[test]
fn nothing_is_reported_that_a_power_cut_takes_back() {
    model(|| {
        let mut node = Node::start();
        let mut ends = Vec::new();
        for entry in [&b"one"[..], b"two"] {
            ends.push((node.append(entry), entry));
            node.log.start_sync();
        }
        let synced = node.log.synced().unwrap().0;
        let found = node.cut_power();
        for (end, entry) in ends {
            assert!(
                end > synced || found.iter().any(|found| found == entry),
                "synced to {synced}, and {found:?} is left"
            );
        }
        node.stop();
    });
}

/// The node sleeps until it is woken, and hears of everything it asked for.
#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let mut node = Node::start();
        let first = node.append(b"one");
        node.log.start_sync();
        let last = node.append(&[b'2'; 90]);
        node.log.start_sync();
        node.wait_for(first);
        node.wait_for(last);
        node.log.keep_house();
        assert_eq!(node.cut_power().len(), 2);
        node.stop();
    });
}

/// A sync by the node itself comes between others: nothing that was reported is taken back, and no job that
/// began before it says afterwards that less is synced.
#[test]
fn a_sync_of_the_nodes_own_fits_between_others() {
    model(|| {
        let mut node = Node::start();
        let first = node.append(b"one");
        node.log.start_sync();
        let last = node.append(b"two");
        node.log.sync_alone();
        let before = node.log.synced().unwrap().0;
        let found = node.cut_power();
        assert!(found.len() >= usize::from(before >= first) + usize::from(before >= last));
        node.stop();
    });
}

/// The node hears of what it asked for, whoever syncs it.
#[test]
fn no_wake_up_is_lost_beside_syncs_of_the_nodes_own() {
    model(|| {
        let mut node = Node::start();
        let first = node.append(b"one");
        node.log.start_sync();
        node.wait_for(first);
        let last = node.append(b"two");
        node.log.sync_alone();
        node.wait_for(last);
        assert!(node.log.synced().unwrap().0 >= last);
        assert_eq!(node.cut_power().len(), 2);
        node.stop();
    });
}

/// The segments before the newest go in the background, and the power fails at any moment of it.
#[test]
fn old_segments_go_and_the_log_opens_at_any_moment() {
    model(|| {
        let mut node = Node::start();
        let last = node.append(&[b'1'; 90]);
        node.log.start_sync();
        node.wait_for(last);
        assert_eq!(node.log.newest(), 2);
        node.log.remove_before(2).unwrap();
        let found = node.cut_power();
        assert!(found.len() <= 1);
        node.stop();
    });
}

/// A segment that was begun after everything was synced is not synced with anything: it has to be
/// before the ones before it go.
#[test]
fn a_segment_lasts_before_those_before_it_go() {
    model(|| {
        let mut node = Node::start();
        let last = node.append(b"one");
        node.log.start_sync();
        node.wait_for(last);
        node.log.roll(b"head").unwrap();
        node.log.remove_before(2).unwrap();
        node.log.keep_house();
        let found = node.cut_power();
        assert!(found.len() <= 1);
        node.stop();
    });
}

/// After a failure the node is told so, and nothing counts as synced that was not.
#[test]
fn a_failed_sync_is_told_and_final() {
    model(|| {
        let mut node = Node::start();
        let before = node.log.synced().unwrap().0;
        node.disk.step().fail_syncs(true);
        node.append(b"one");
        node.log.start_sync();
        while let Ok(synced) = node.log.synced() {
            assert_eq!(synced.0, before);
            node.doorbell.wait();
        }
        node.disk.step().fail_syncs(false);
        assert!(node.log.append(b"two").is_err());
        assert!(node.cut_power().is_empty());
        node.stop();
    });
}
