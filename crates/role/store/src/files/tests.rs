//! The metadata engine's own files are torn and damaged: everything in them is in the log as well.

use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use vere_store::{FlagMode, Flags, Prepared, SystemFlags, Uid};

use super::*;
use crate::filled::{self, deliver, inbox, sync};

/// Messages: UID, flags, text.
type Contents = Vec<(u32, SystemFlags, Vec<u8>)>;

/// Messages, of which some are seen and some are gone; the metadata were made last in the middle of it.
fn fill(store: &mut MailStore) -> Contents {
    let mailbox = inbox(store);
    for number in 0..60_u8 {
        let text = format!(
            "Subject: {number}\r\n\r\n{}\r\n",
            "text ".repeat(number.into())
        );
        let body = Prepared::new(text.as_bytes(), b"parsed", &[u64::from(number)]).unwrap();
        deliver(store, &body, SystemFlags::default(), number);
        if number == 20 {
            store.persist().unwrap();
        }
        let flags = match number % 3 {
            0 => SystemFlags::SEEN,
            1 => SystemFlags::DELETED,
            _ => continue,
        };
        let flags = Flags {
            system: flags,
            keywords: Vec::new(),
        };
        let uid = Uid::new(u32::from(number) + 1).unwrap();
        drop(
            store
                .store_flags(mailbox, &[uid], FlagMode::Add, &flags, None)
                .unwrap(),
        );
        if number % 9 == 4 {
            drop(
                store
                    .expunge(mailbox, None, vere_process::clock::now())
                    .unwrap(),
            );
        }
        sync(store);
    }
    contents(store)
}

fn contents(store: &mut MailStore) -> Contents {
    let mailbox = inbox(store);
    let snapshot = store.snapshot(mailbox).unwrap();
    let snapshot = snapshot.when(store.synced()).unwrap();
    let reader = store.body_reader();
    let all = snapshot.iter_from(0).map(|message| {
        let text = reader.open(message.blob).unwrap().message().unwrap();
        (message.uid.get(), message.flags, text)
    });
    all.collect()
}

/// Copies a folder, as a kill leaves it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &place);
            continue;
        }
        // The zeros at the end of what is allocated ahead are not carried.
        let octets = fs::read(&path).unwrap();
        let used = octets
            .iter()
            .rposition(|octet| *octet != 0)
            .map_or(0, |last| last + 1);
        fs::write(&place, &octets[..used]).unwrap();
        let file = File::options().write(true).open(&place).unwrap();
        file.set_len(octets.len() as u64).unwrap();
    }
}

/// The engine's journals, and how many octets of each are used.
fn journals(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join(META)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            let octets = fs::read(&path).unwrap();
            let used = octets.iter().rposition(|octet| *octet != 0).unwrap_or(0);
            found.push((path, used as u64));
        }
    }
    found
}

/// Something that is done to a journal.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Cut(u64),
    Zeros(u64),
    Flip(u64),
}

impl Damage {
    fn to(self, path: &Path) {
        let file = File::options().read(true).write(true).open(path).unwrap();
        match self {
            Self::Cut(at) => file.set_len(at).unwrap(),
            // A block that did not reach the disk while those behind it did.
            Self::Zeros(at) => file.write_all_at(&[0; 512], at).unwrap(),
            Self::Flip(at) => {
                let mut octet = [0];
                file.read_exact_at(&mut octet, at).unwrap();
                file.write_all_at(&[octet[0] ^ 0x20], at).unwrap();
            }
        }
    }
}

/// Opens a store with damaged metadata, which must have these contents; true if the metadata were unreadable.
fn opens_with_everything(torn: &Path, damage: Damage, before: &Contents) -> bool {
    let files = filled::lock(torn);
    let unreadable = files.meta(META).is_err();
    let opened = files.open();
    let mut store = opened.unwrap_or_else(|error| panic!("{damage:?}: {error}"));
    assert!(contents(&mut store) == *before, "{damage:?}");
    assert_eq!(store.check_all().unwrap().findings, [], "{damage:?}");
    drop((store, files));
    assert!(!torn.join(META_NEW).exists() && !torn.join(META_OLD).exists());
    assert_eq!(torn.join(META_TORN).exists(), unreadable, "{damage:?}");
    unreadable
}

/// A kill, and what it left of the journal torn: the store opens, and nothing that was acknowledged is missing.
#[test]
fn a_torn_journal_of_the_metadata_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (live, killed) = (folder.path().join("live"), folder.path().join("killed"));
    fs::create_dir_all(live.join("log")).unwrap();
    let mut store = filled::lock(&live).open().unwrap();
    let before = fill(&mut store);
    assert!(before.len() > 30);
    copy(&live, &killed);
    drop(store);
    let journals = journals(&killed);
    assert!(!journals.is_empty());
    let damages: Vec<_> = journals
        .iter()
        .flat_map(|(path, used)| {
            let places = (0..8).map(move |part| used * part / 8 + part * 7 % 13);
            let damages =
                places.flat_map(|at| [Damage::Cut(at), Damage::Zeros(at), Damage::Flip(at)]);
            damages.map(move |damage| (path, damage))
        })
        .collect();
    // A store spends most of its opening waiting.
    let (next, rebuilt) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(&(path, damage)) = damages.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let torn = tempfile::tempdir().unwrap();
                    let torn = torn.path().join("torn");
                    copy(&killed, &torn);
                    damage.to(&torn.join(META).join(path.file_name().unwrap()));
                    let unreadable = opens_with_everything(&torn, damage, &before);
                    rebuilt.fetch_add(usize::from(unreadable), Ordering::Relaxed);
                }
            });
        }
    });
    let rebuilt = rebuilt.into_inner();
    assert!(rebuilt > 0, "no damage kept the engine from opening");
}

const SEGMENT: &str = "log/0000000000000040.log";

/// A store with messages whose metadata cannot be read.
fn unreadable() -> (tempfile::TempDir, Contents) {
    let (folder, mut store) = filled::store();
    let before = fill(&mut store);
    drop(store);
    for (path, used) in journals(folder.path()) {
        Damage::Flip(used / 2).to(&path);
    }
    let files = filled::lock(folder.path());
    assert!(matches!(files.meta(META), Err(MetaError::Damaged(_))));
    (folder, before)
}

/// Opening says why it does not, and changes no metadata.
fn refuses(folder: &Path, why: &str) {
    let files = filled::lock(folder);
    let error = files.open().unwrap_err();
    assert!(error.to_string().contains(why), "{error}");
    assert!(matches!(files.meta(META), Err(MetaError::Damaged(_))));
    for name in [META_NEW, META_OLD, META_TORN] {
        assert!(!folder.join(name).exists(), "{name}");
    }
}

/// Metadata that cannot be read stay beside a log that is damaged too: a repair decides.
#[test]
fn metadata_are_not_made_anew_of_a_damaged_log() {
    let (folder, _) = unreadable();
    Damage::Flip(300).to(&folder.path().join(SEGMENT));
    refuses(folder.path(), "is damaged at offset");
}

/// Without the head of its only segment a log is none; without metadata it was taken for a new one and removed.
#[test]
fn a_log_without_a_head_is_not_begun_anew() {
    let (folder, before) = unreadable();
    let log = folder.path().join(SEGMENT);
    Damage::Flip(10).to(&log);
    let octets = fs::read(&log).unwrap();
    refuses(folder.path(), "0000000000000040.log is damaged at offset 0");
    // Nor where somebody removes the metadata by hand.
    fs::remove_dir_all(folder.path().join(META)).unwrap();
    let files = filled::lock(folder.path());
    for _ in 0..2 {
        let said = files.open().unwrap_err().to_string();
        let named = "0000000000000040.log is damaged at offset 0";
        assert!(
            said.contains(named) && said.contains("vere store repair"),
            "{said}"
        );
    }
    assert!(fs::read(&log).unwrap() == octets);
    assert!(!files.repair(false).unwrap().has_losses());
    assert!(contents(&mut files.open().unwrap()) == before);
}

/// A disk that is not mounted, say; also where the exchange of the metadata was cut off.
#[test]
fn a_log_that_is_not_there_is_not_begun_anew() {
    let (folder, _) = unreadable();
    let log = folder.path().join("log");
    fs::remove_dir_all(&log).unwrap();
    fs::create_dir(&log).unwrap();
    refuses(folder.path(), "the log is missing");
    assert_eq!(fs::read_dir(&log).unwrap().count(), 0);
    fs::rename(folder.path().join(META), folder.path().join(META_TORN)).unwrap();
    let files = filled::lock(folder.path());
    let error = files.open().unwrap_err();
    assert!(error.to_string().contains("the log is missing"), "{error}");
    assert_eq!(fs::read_dir(&log).unwrap().count(), 0);
}

/// A store whose metadata cannot be read, and the end of whose log is torn; beside it an index, of which nothing
/// is asked here.
fn torn() -> (tempfile::TempDir, Contents) {
    let (folder, before) = unreadable();
    let log = folder.path().join(SEGMENT);
    let octets = fs::read(&log).unwrap();
    let last = octets.iter().rposition(|octet| *octet != 0).unwrap();
    Damage::Flip(last as u64).to(&log);
    fs::create_dir(folder.path().join(crate::index::FOLDER)).unwrap();
    (folder, before)
}

fn uid_validity(store: &mut MailStore) -> u32 {
    let mailbox = inbox(store);
    let status = store.status(mailbox).unwrap();
    status.when(store.synced()).unwrap().uid_validity
}

/// Opens a store: nobody takes what it gives for what it gave before.
fn renewed(files: &Files) -> u32 {
    let mut store = files.open().unwrap();
    // That of its making, in a time that had just begun, is 1.
    let renewed = uid_validity(&mut store);
    assert!(renewed > 1);
    assert!(!files.folder().join(crate::index::FOLDER).exists());
    renewed
}

/// What was in a torn end is given again: no client, and no index, is to take the one for the other. Also where the
/// making was cut off behind the cutting of the log.
#[test]
fn behind_a_cut_end_no_number_is_given_twice() {
    for is_begun in [false, true] {
        let (folder, _) = torn();
        let files = filled::lock(folder.path());
        if is_begun {
            assert!(!files.note_rebuilding().unwrap());
            let (store, report) = files
                .open_with(files.meta(META_NEW).unwrap(), true)
                .unwrap();
            assert!(report.cut > 0);
            drop(store);
        }
        let renewed = renewed(&files);
        // The log has it, and it is done once.
        files.repair(false).unwrap();
        assert_eq!(uid_validity(&mut files.open().unwrap()), renewed);
    }
}

/// The same where a repair makes them, or somebody took the old ones away; also where an attempt of it ended just
/// behind the cutting of the log.
#[test]
fn behind_a_cut_end_that_nobody_else_saw_no_number_is_given_twice() {
    for (is_repaired, is_begun) in [(true, false), (true, true), (false, false), (false, true)] {
        let (folder, _) = torn();
        let files = filled::lock(folder.path());
        if !is_repaired {
            fs::remove_dir_all(folder.path().join(META)).unwrap();
        }
        if is_begun {
            assert!(!files.note_if(true).unwrap());
            let meta = files.meta(if is_repaired { META_NEW } else { META });
            let (store, report) = files.open_with(meta.unwrap(), true).unwrap();
            assert!(report.cut > 0);
            drop(store);
        }
        if is_repaired {
            files.repair(false).unwrap();
        }
        let renewed = renewed(&files);
        assert_eq!(uid_validity(&mut files.open().unwrap()), renewed);
    }
}

/// Where nothing was cut everything goes on as before.
#[test]
fn behind_a_whole_log_numbers_go_on() {
    let (folder, before) = unreadable();
    let index = folder.path().join(crate::index::FOLDER);
    fs::create_dir(&index).unwrap();
    let files = filled::lock(folder.path());
    let mut store = files.open().unwrap();
    assert!(contents(&mut store) == before && index.exists());
    assert_eq!(uid_validity(&mut store), 1);
}

/// Nothing but the old metadata knows that a torn end was synced: it is told, and they are there until a repair.
#[test]
fn a_torn_end_is_told_when_metadata_are_made_anew() {
    let (folder, before) = torn();
    let files = filled::lock(folder.path());
    let report = files.rebuild().unwrap();
    assert!(report.replayed > 0 && report.cut > 0, "{report:?}");
    let torn = folder.path().join(META_TORN);
    assert!(matches!(files.meta(META_TORN), Err(MetaError::Damaged(_))));
    let kept = contents(&mut files.open().unwrap());
    assert!(torn.is_dir() && kept != before);
    files.repair(false).unwrap();
    assert!(!torn.exists());
}

/// A store with a mark beside it, of which a copy was taken when half of its mail was there.
struct Marked {
    folder: tempfile::TempDir,
}

impl Marked {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("store/log")).unwrap();
        let marked = Self { folder };
        marked.deliver(0..5);
        copy(&marked.path("store"), &marked.path("backup"));
        marked.deliver(5..10);
        marked
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn files(&self) -> Files {
        let mark = Some(self.path("store.mark"));
        Files {
            mark,
            ..filled::lock(&self.path("store"))
        }
    }

    fn deliver(&self, numbers: std::ops::Range<u8>) {
        let files = self.files();
        let mut store = files.open().unwrap();
        let mut mark = files.mark(&store).unwrap();
        for number in numbers {
            let text = format!("Subject: {number}\r\n\r\n");
            let body = Prepared::new(text.as_bytes(), b"parsed", &[u64::from(number)]).unwrap();
            deliver(&mut store, &body, SystemFlags::default(), number);
        }
        mark.reached(store.synced());
        store.persist().unwrap();
    }

    /// Puts back one of the folders of the copy, or all of it.
    fn put_back(&self, name: &str) {
        fs::remove_dir_all(self.path("store").join(name)).unwrap();
        copy(
            &self.path("backup").join(name),
            &self.path("store").join(name),
        );
    }
}

/// Numbers that were given after the copy are given again: no client is to take the one message for the other.
#[test]
fn a_copy_that_is_put_back_is_noticed_once() {
    let marked = Marked::new();
    assert_eq!(uid_validity(&mut marked.files().open().unwrap()), 1);
    marked.put_back("");
    let renewed = renewed(&marked.files());
    let mut store = marked.files().open().unwrap();
    assert_eq!(uid_validity(&mut store), renewed);
    assert_eq!(contents(&mut store).len(), 5);
}

#[test]
fn a_log_of_another_store_is_noticed() {
    let (marked, other) = (Marked::new(), Marked::new());
    other.deliver(10..20);
    fs::remove_dir_all(marked.path("store")).unwrap();
    copy(&other.path("store"), &marked.path("store"));
    renewed(&marked.files());
}

/// Before the first message each restart warned of a restored log, and removed the index.
#[test]
fn an_empty_store_is_the_same_when_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("store/log")).unwrap();
    let files = || Files {
        mark: Some(folder.path().join("store.mark")),
        ..filled::lock(&folder.path().join("store"))
    };
    let first = files().open().unwrap().log_id();
    let index = folder.path().join("store").join(crate::index::FOLDER);
    fs::create_dir_all(&index).unwrap();
    assert_ne!(files().open().unwrap().log_id(), first);
    assert!(index.exists(), "the store was taken for another store");
}

/// On a machine where there was no store before, as the manual says: the log alone.
#[test]
fn a_log_without_metadata_and_mark_is_one_that_was_put_back() {
    let marked = Marked::new();
    fs::remove_dir_all(marked.path("store").join(META)).unwrap();
    fs::remove_file(marked.path("store.mark")).unwrap();
    renewed(&marked.files());
}

/// A store of a version that made no mark.
#[test]
fn a_store_without_mark_gets_one() {
    let marked = Marked::new();
    fs::remove_file(marked.path("store.mark")).unwrap();
    assert_eq!(uid_validity(&mut marked.files().open().unwrap()), 1);
    marked.put_back("");
    renewed(&marked.files());
}

/// Metadata that know more than the log are no store; whoever put the log back says so.
#[test]
fn a_log_that_was_put_back_alone_is_gone_on_with_by_command() {
    let marked = Marked::new();
    marked.put_back("log");
    let error = marked.files().open().unwrap_err().to_string();
    assert!(error.contains("`vere store restored`"), "{error}");
    assert!(marked.files().restored().unwrap() > 0);
    let renewed = renewed(&marked.files());
    let mut store = marked.files().open().unwrap();
    assert_eq!(uid_validity(&mut store), renewed);
    assert_eq!(contents(&mut store).len(), 5);
}

/// Where everything was put back, the mark as well, nothing but the command says so.
#[test]
fn a_copy_of_everything_is_gone_on_with_by_command() {
    let marked = Marked::new();
    marked.put_back("");
    fs::remove_file(marked.path("store.mark")).unwrap();
    assert_eq!(uid_validity(&mut marked.files().open().unwrap()), 1);
    marked.files().restored().unwrap();
    let renewed = renewed(&marked.files());
    assert_eq!(uid_validity(&mut marked.files().open().unwrap()), renewed);
}

/// Old metadata tell a repair which numbers were given.
#[test]
fn a_repair_with_the_old_metadata_renews_nothing() {
    let marked = Marked::new();
    let log = marked.path("store").join(SEGMENT);
    let octets = fs::read(&log).unwrap();
    let last = octets.iter().rposition(|octet| *octet != 0).unwrap();
    Damage::Flip(last as u64).to(&log);
    marked.files().repair(false).unwrap();
    assert_eq!(uid_validity(&mut marked.files().open().unwrap()), 1);
}
