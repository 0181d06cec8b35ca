//! What the real disk does not do when asked: fail, stand still, be cut off in the middle.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

const KEY: &str = "group/a";
/// For the disks of busy machines.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of the child that dies in a swap: where its register lies, and after which step it dies.
const FOLDER: &str = "VERE_TEST_REGISTER";
const STEP: &str = "VERE_TEST_STEP";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Write,
    Sync,
    Rename,
    SyncFolder,
}

const STEPS: [Step; 4] = [Step::Write, Step::Sync, Step::Rename, Step::SyncFolder];

/// The real steps, with something that happens before each.
struct Before<F>(F);

impl<F> std::fmt::Debug for Before<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Before").finish_non_exhaustive()
    }
}

impl<F: Fn(Step) -> io::Result<()> + Send + Sync> Steps for Before<F> {
    fn write(&self, path: &Path, octets: &[u8]) -> io::Result<File> {
        if let Err(error) = self.0(Step::Write) {
            // As a disk that becomes full does.
            System.write(path, &octets[..octets.len() / 2])?;
            return Err(error);
        }
        System.write(path, octets)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.0(Step::Sync)?;
        System.sync(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0(Step::Rename)?;
        System.rename(from, to)
    }

    fn sync_folder(&self, folder: &File) -> io::Result<()> {
        self.0(Step::SyncFolder)?;
        System.sync_folder(folder)
    }
}

fn with(
    folder: &Path,
    before: impl Fn(Step) -> io::Result<()> + Send + Sync + 'static,
) -> FileRegister {
    let register = FileRegister::with(folder, Box::new(Before(before))).unwrap();
    register.with_timeout(PATIENCE)
}

fn versioned(version: u64, value: &[u8]) -> Versioned {
    let value = value.to_vec();
    Versioned { version, value }
}

/// A register with the value `old` in its first version.
async fn prepared() -> (tempfile::TempDir, FileRegister) {
    let folder = tempfile::tempdir().unwrap();
    let register = FileRegister::open(folder.path()).unwrap();
    let register = register.with_timeout(PATIENCE);
    assert_eq!(register.swap(KEY, None, b"old").await, Ok(Swap::Done(1)));
    (folder, register)
}

#[tokio::test]
async fn replaces_only_the_expected_version() {
    let (folder, register) = prepared().await;
    let old = versioned(1, b"old");
    let conflict = Ok(Swap::Conflict(Some(old.clone())));
    assert_eq!(register.swap(KEY, None, b"x").await, conflict);
    assert_eq!(register.swap(KEY, Some(2), b"x").await, conflict);
    assert_eq!(register.read(KEY).await, Ok(Some(old)));
    let absent = register.swap("group/b", Some(1), b"x").await;
    assert_eq!(absent, Ok(Swap::Conflict(None)));
    assert_eq!(register.read("group/b").await, Ok(None));
    assert_eq!(register.swap(KEY, Some(1), b"").await, Ok(Swap::Done(2)));
    let again = FileRegister::open(folder.path()).unwrap();
    assert_eq!(again.read(KEY).await, Ok(Some(versioned(2, b""))));
}

#[tokio::test]
async fn lists_by_prefix_in_order() {
    let (_folder, register) = prepared().await;
    let largest = vec![7; crate::VALUE_MAX];
    let long = format!("group/{}", "%".repeat(255));
    for key in ["group/b/../c", "lease/a", &long] {
        assert_eq!(register.swap(key, None, &largest).await, Ok(Swap::Done(1)));
    }
    let keys = async |prefix: &str| -> Vec<String> {
        let list = register.list(prefix).await.unwrap();
        list.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys("group/").await, [&long, KEY, "group/b/../c"]);
    assert_eq!(keys("group/b").await, ["group/b/../c"]);
    assert_eq!(keys("lease/").await, ["lease/a"]);
    assert_eq!(keys("").await.len(), 4);
    let list = register.list("lease/a").await.unwrap();
    assert_eq!(list, [("lease/a".to_owned(), versioned(1, &largest))]);
}

#[tokio::test]
async fn a_failing_disk_leaves_the_old_value_or_says_that_it_may_not() {
    for errno in [nix::errno::Errno::EIO, nix::errno::Errno::ENOSPC] {
        for failing in STEPS {
            let (folder, register) = prepared().await;
            let faulty = with(folder.path(), move |step| match step {
                step if step == failing => Err(errno.into()),
                _ => Ok(()),
            });
            let error = faulty.swap(KEY, Some(1), b"new").await.unwrap_err();
            let unknown = matches!(failing, Step::Rename | Step::SyncFolder);
            assert_eq!(error.maybe_applied(), unknown, "{failing:?}: {error}");
            assert!(error.to_string().contains("group.a"), "{error}");
            let now = register.read(KEY).await.unwrap().unwrap();
            let applied = failing == Step::SyncFolder;
            assert_eq!(now.version, if applied { 2 } else { 1 }, "{failing:?}");
            let left = folder.path().join("group.a.new").exists();
            // The new value, or the old one, over which the next is written.
            let is_kept = matches!(failing, Step::Rename | Step::SyncFolder);
            assert_eq!(left, is_kept, "{failing:?}");
            let next = register.swap(KEY, Some(now.version), b"next").await;
            assert_eq!(next, Ok(Swap::Done(now.version + 1)), "{failing:?}");
        }
    }
}

/// What a killed writer renamed but did not sync would be gone after a power cut, although somebody
/// had acted on it.
#[tokio::test]
async fn nothing_is_told_that_is_not_on_stable_storage() {
    let (folder, _register) = prepared().await;
    let faulty = with(folder.path(), |step| match step {
        Step::SyncFolder => Err(nix::errno::Errno::EIO.into()),
        _ => Ok(()),
    });
    assert!(matches!(
        faulty.read(KEY).await,
        Err(RegisterError::Unreachable { .. })
    ));
    let conflict = faulty.swap(KEY, None, b"x").await.unwrap_err();
    assert!(!conflict.maybe_applied(), "{conflict}");
    assert!(faulty.list("group/").await.is_err());
}

#[test]
#[ignore = "is run by a_crash_at_any_step_leaves_one_of_both_values"]
fn child_that_dies_in_a_swap() {
    let folder = std::env::var_os(FOLDER).expect("run by its parent");
    let last = std::env::var(STEP).expect("run by its parent");
    let register = with(Path::new(&folder), move |step| {
        if format!("{step:?}") == last {
            if step == Step::Write {
                let half = Path::new(&std::env::var_os(FOLDER).unwrap()).join("group.a.new");
                fs::write(half, b"VEREREG\0\x01\0").unwrap();
            }
            nix::sys::signal::raise(nix::sys::signal::SIGKILL).unwrap();
        }
        Ok(())
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let swap = runtime
        .unwrap()
        .block_on(register.swap(KEY, Some(1), b"new"));
    panic!("alive after {swap:?}");
}

#[tokio::test]
async fn a_crash_at_any_step_leaves_one_of_both_values() {
    for last in STEPS {
        let (folder, register) = prepared().await;
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "file::tests::child_that_dies_in_a_swap",
            ])
            .env(FOLDER, folder.path())
            .env(STEP, format!("{last:?}"))
            .output()
            .unwrap();
        assert_eq!(child.status.signal(), Some(9), "{last:?}: {child:?}");
        let now = register.read(KEY).await.unwrap().unwrap();
        let wanted = match last {
            Step::SyncFolder => versioned(2, b"new"),
            _ => versioned(1, b"old"),
        };
        assert_eq!(now, wanted, "{last:?}");
        assert_eq!(register.list("").await.unwrap().len(), 1, "{last:?}");
        let next = register.swap(KEY, Some(now.version), b"next").await;
        assert_eq!(next, Ok(Swap::Done(now.version + 1)), "{last:?}");
    }
}

#[tokio::test]
async fn what_is_damaged_is_never_absent() {
    let (folder, register) = prepared().await;
    assert_eq!(
        register.swap("group/b", None, b"b").await,
        Ok(Swap::Done(1))
    );
    assert_eq!(
        register.swap("lease/a", None, b"l").await,
        Ok(Swap::Done(1))
    );
    let file = folder.path().canonicalize().unwrap().join("group.a.value");
    let whole = fs::read(&file).unwrap();
    let mut rotten = whole.clone();
    rotten[34] ^= 0x40;
    let other = fs::read(folder.path().join("group.b.value")).unwrap();
    let half = whole[..whole.len() / 2].to_vec();
    for octets in [Vec::new(), half, vec![0; whole.len()], rotten, other] {
        fs::write(&file, octets).unwrap();
        let named = |error: RegisterError| match error {
            RegisterError::Damaged { file, .. } => file,
            other => panic!("{other}"),
        };
        assert_eq!(named(register.read(KEY).await.unwrap_err()), file);
        for expected in [None, Some(1)] {
            let swap = register.swap(KEY, expected, b"x").await;
            assert_eq!(named(swap.unwrap_err()), file);
        }
        assert_eq!(named(register.list("group/").await.unwrap_err()), file);
        // The others are as they were.
        assert_eq!(register.read("group/b").await, Ok(Some(versioned(1, b"b"))));
        assert_eq!(register.list("lease/").await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_folder_that_was_exchanged_is_not_an_empty_register() {
    let (folder, _register) = prepared().await;
    let inner = folder.path().join("inner");
    let register = FileRegister::open(&inner).unwrap();
    assert_eq!(register.swap(KEY, None, b"x").await, Ok(Swap::Done(1)));
    fs::rename(&inner, folder.path().join("elsewhere")).unwrap();
    for exchanged in [false, true] {
        if exchanged {
            fs::create_dir(&inner).unwrap();
        }
        let read = register.read(KEY).await;
        assert!(
            matches!(read, Err(RegisterError::Damaged { .. })),
            "{read:?}"
        );
        let swap = register.swap(KEY, None, b"y").await;
        assert!(swap.is_err_and(|error| !error.maybe_applied()));
        assert!(register.list("").await.is_err());
    }
    assert!(!inner.join("group.a.value").exists());
}

#[tokio::test]
async fn a_process_stopped_in_a_swap_holds_up_swaps_of_one_key_only() {
    let (folder, register) = prepared().await;
    let lock = File::open(folder.path().join("group.a.lock")).unwrap();
    lock.lock().unwrap();
    let quick = register.clone().with_timeout(Duration::from_millis(40));
    let error = quick.swap(KEY, Some(1), b"x").await.unwrap_err();
    assert!(
        matches!(error, RegisterError::Unreachable { .. }),
        "{error}"
    );
    assert_eq!(register.read(KEY).await, Ok(Some(versioned(1, b"old"))));
    assert_eq!(
        register.swap("lease/a", None, b"x").await,
        Ok(Swap::Done(1))
    );
    drop(lock);
    assert_eq!(register.swap(KEY, Some(1), b"x").await, Ok(Swap::Done(2)));
}

/// A register whose disk stands still before each sync of a file until something is sent; it tells
/// when it stands.
fn slow(folder: &Path) -> (FileRegister, Receiver<()>, Sender<()>) {
    let (stands, told) = channel();
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let register = with(folder, move |step| {
        if step == Step::Sync {
            let _ = stands.send(());
            let _ = wait.lock().unwrap().recv();
        }
        Ok(())
    });
    (register, told, go)
}

#[tokio::test]
async fn the_event_loop_goes_on_while_the_disk_stands_still() {
    let (folder, _register) = prepared().await;
    let (register, stands, go) = slow(folder.path());
    let swap = register.swap(KEY, Some(1), b"new");
    let others = async {
        while stands.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        let read = register.read(KEY).await;
        go.send(()).unwrap();
        read
    };
    let (swap, read) = tokio::join!(swap, others);
    assert_eq!(
        (swap, read),
        (Ok(Swap::Done(2)), Ok(Some(versioned(1, b"old"))))
    );
}

#[tokio::test]
async fn a_swap_that_the_disk_does_not_finish_has_an_unknown_outcome() {
    let (folder, reader) = prepared().await;
    let (register, stands, go) = slow(folder.path());
    let quick = register.clone().with_timeout(Duration::from_millis(20));
    let mut unknown = 0;
    // The threads are as many as there are keys that stand still, and no more.
    for n in 0..THREADS_MAX {
        let key = format!("group/{n}");
        let error = quick.swap(&key, None, b"late").await.unwrap_err();
        unknown += usize::from(error.maybe_applied());
    }
    assert_eq!(unknown, THREADS_MAX);
    let error = quick.swap("group/x", None, b"late").await.unwrap_err();
    assert!(!error.maybe_applied(), "{error}");
    for _ in 0..THREADS_MAX {
        stands.recv().unwrap();
        go.send(()).unwrap();
    }
    // All of them come to be after all.
    let all = register
        .threads
        .acquire_many(THREADS_MAX as u32)
        .await
        .unwrap();
    drop(all);
    assert_eq!(reader.list("group/").await.unwrap().len(), 1 + THREADS_MAX);
    assert_eq!(reader.read("group/x").await, Ok(None));
}

/// The files of a key, by their inodes and blocks.
fn blocks(folder: &Path) -> Vec<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let about = files.map(|file| file.metadata().unwrap());
    let mut found: Vec<_> = about.map(|about| (about.ino(), about.blocks())).collect();
    found.sort_unstable();
    found
}

#[tokio::test]
async fn a_swap_needs_no_room_once_there_was_one() {
    let (folder, register) = prepared().await;
    assert_eq!(
        register.swap(KEY, Some(1), b"second").await,
        Ok(Swap::Done(2))
    );
    let before = blocks(folder.path());
    for version in 2..40 {
        let value = vec![b'x'; usize::try_from(version * 50).unwrap()];
        let swapped = register.swap(KEY, Some(version), &value).await;
        assert_eq!(swapped, Ok(Swap::Done(version + 1)));
        let read = register.read(KEY).await;
        assert_eq!(read, Ok(Some(versioned(version + 1, &value))));
    }
    assert_eq!(
        blocks(folder.path()),
        before,
        "the same files, with the blocks they had"
    );
}

/// Whoever opened a value reads that one, however often it is replaced meanwhile.
#[tokio::test]
async fn what_is_being_read_is_not_written_over() {
    let (folder, register) = prepared().await;
    let place = folder::open_value(&folder.path().join("group.a.value")).unwrap();
    for version in 1..4 {
        let swapped = register.swap(KEY, Some(version), b"other").await;
        assert_eq!(swapped, Ok(Swap::Done(version + 1)));
    }
    let mut octets = Vec::new();
    std::io::Read::read_to_end(&mut &place, &mut octets).unwrap();
    let (_, found) = format::decode(&octets).unwrap();
    assert_eq!(found, versioned(1, b"old"));
}

/// Many read while one writes over the files in turn: each sees whole values, and never an older one than before.
#[tokio::test]
async fn readers_see_whole_values_in_their_order() {
    let (folder, register) = prepared().await;
    let path = folder.path().to_owned();
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let register = FileRegister::open(&path).unwrap().with_timeout(PATIENCE);
            tokio::spawn(async move {
                let mut last = 0;
                while last < 60 {
                    let found = register.read(KEY).await.unwrap().expect("a value");
                    assert!(found.version >= last, "{} after {last}", found.version);
                    if found.version > 1 {
                        let wanted = vec![b'a'; 100 * usize::try_from(found.version).unwrap()];
                        assert_eq!(found.value, wanted);
                    }
                    last = found.version;
                }
            })
        })
        .collect();
    for version in 1..60_u64 {
        let value = vec![b'a'; 100 * usize::try_from(version + 1).unwrap()];
        let swapped = register.swap(KEY, Some(version), &value).await;
        assert_eq!(swapped, Ok(Swap::Done(version + 1)));
    }
    for reader in readers {
        reader.await.unwrap();
    }
}
