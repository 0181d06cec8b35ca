//! The greylist on disk, so that a restart puts nobody off a second time. A list that is lost costs a delay, and nothing else.
//!
//! Each loop has a file. The loops divide all files anew at the start, since the number of loops may have changed.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use vere_process::secret;
use vere_screen::{GreylistSnapshot, Partition, Screen, Terms};
use vere_settings::Settings;

/// Names in the directory of the front: the list of a loop has the loop's number behind the dot.
const LIST: &str = "greylist.";
/// The ending of a list as it is written.
const NEW: &str = ".new";
/// The key of the entries. The partition has the same key, so that a network keeps its loop.
const KEY: &str = "greylist.key";
/// How long a front that stops waits for the write before: the supervisor ends a role that is slow to stop.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two looks at that write.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Makes an engine for each loop, with its part of the lists that were kept, and the partition of the networks. Without the key or
/// the lists the engines begin with none.
pub(crate) fn screens(
    settings: &Settings,
    terms: &Terms,
    loops: NonZeroU32,
) -> (Partition, Vec<Screen>) {
    let folder = settings.front_directory();
    let key = secret::load_or_make(&folder.join(KEY));
    let key = key.map(|key| *key.expose()).unwrap_or_else(|error| {
        tracing::warn!(%error, "the greylist begins anew");
        secret::random()
    });
    let partition = Partition::new(key, loops);
    let found = lists(&folder).unwrap_or_else(|error| {
        tracing::warn!(%error, path = %folder.display(), "the greylist begins anew");
        Vec::new()
    });
    let snapshots: Vec<_> = found
        .iter()
        .filter_map(|(_, path)| read(path, key))
        .collect();
    let of_part = |part| {
        let mut screen = Screen::new(terms.clone(), key);
        screen.restore_greylist(&snapshots, part);
        screen
    };
    let screens: Vec<Screen> = partition.parts().map(of_part).collect();
    let is_foreign = |(number, _): &&(usize, PathBuf)| *number >= screens.len();
    let mut foreign = found.iter().filter(is_foreign).peekable();
    // New lists have all entries before an old list goes.
    if foreign.peek().is_some() && (0..).zip(&screens).all(|(at, one)| keep(settings, at, one)) {
        for (_, path) in foreign {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!(%error, path = %path.display(), "an old greylist cannot be removed");
            }
        }
    }
    (partition, screens)
}

/// The lists in the directory, with the numbers of their loops.
fn lists(folder: &Path) -> io::Result<Vec<(usize, PathBuf)>> {
    let mut lists = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(LIST));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            lists.push((number, entry.path()));
        }
    }
    Ok(lists)
}

fn read(path: &Path, key: [u8; 32]) -> Option<GreylistSnapshot> {
    let snapshot = fs::read(path)
        .and_then(|octets| GreylistSnapshot::read(&octets, key).map_err(io::Error::other));
    if let Err(error) = &snapshot {
        tracing::warn!(%error, path = %path.display(), "entries of the greylist are lost");
    }
    snapshot.ok()
}

/// Writes the list of a loop, unless greylisting is off, and returns whether a file was written.
fn keep(settings: &Settings, number: usize, screen: &Screen) -> bool {
    let list = List::of(settings, number);
    list.is_some_and(|list| list.write(&screen.export_greylist()))
}

/// The file of a loop.
struct List {
    path: PathBuf,
    /// The name until all of the list is written.
    new: PathBuf,
}

impl List {
    /// `None` where greylisting is off.
    fn of(settings: &Settings, number: usize) -> Option<Self> {
        let front = settings.front.as_ref()?;
        front.greylist_delay?;
        let folder = settings.front_directory();
        Some(Self {
            path: folder.join(format!("{LIST}{number}")),
            new: folder.join(format!("{LIST}{number}{NEW}")),
        })
    }

    fn write(&self, octets: &[u8]) -> bool {
        let Self { path, new } = self;
        let written = fs::write(new, octets).and_then(|()| fs::rename(new, path));
        if let Err(error) = &written {
            tracing::warn!(%error, path = %path.display(), "the greylist cannot be kept");
            // A part of a list takes space that the disk may lack.
            let _ = fs::remove_file(new);
        }
        written.is_ok()
    }
}

/// Writes the list of a loop by a thread, so that no client of the loop waits for the disk. One write runs at a time.
#[derive(Debug, Default)]
pub(crate) struct Keeper(Option<JoinHandle<bool>>);

impl Keeper {
    /// Begins a write, unless greylisting is off or the write before has not ended, and returns whether a write has begun.
    pub(crate) fn begin(&mut self, settings: &Settings, number: usize, screen: &Screen) -> bool {
        let is_free = self.0.as_ref().is_none_or(JoinHandle::is_finished);
        let Some(list) = List::of(settings, number).filter(|_| is_free) else {
            return false;
        };
        let octets = screen.export_greylist();
        let thread = Builder::new().name(format!("greylist-{number}"));
        let begun = thread.spawn(move || list.write(&octets));
        if let Err(error) = &begun {
            tracing::warn!(%error, "no thread writes the greylist");
        }
        self.0 = begun.ok();
        self.0.is_some()
    }

    /// Waits for a write that has begun, and writes the list for the last time. Returns whether a file was written: a disk that
    /// still holds the write before after [`LAST_PATIENCE`] gets no further one.
    pub(crate) fn finish(&mut self, settings: &Settings, number: usize, screen: &Screen) -> bool {
        // The two writes have the same files.
        if let Some(write) = self.0.take() {
            let by = Instant::now() + LAST_PATIENCE;
            while !write.is_finished() {
                if Instant::now() >= by {
                    tracing::warn!(
                        "the last greylist is not written: the disk holds the write before"
                    );
                    return false;
                }
                thread::sleep(LOOK_EVERY);
            }
            if write.join().is_err() {
                tracing::error!("a write of the greylist has panicked");
            }
        }
        keep(settings, number, screen)
    }
}

#[cfg(test)]
mod tests {
    use vere_screen::{Answer, Recipient, Step};
    use vere_units::Timestamp;

    use super::*;
    use crate::terms::terms;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn settings(data: &Path) -> Settings {
        let text = format!(
            "version = 1\nhostname = \"mx.example.org\"\ndata = \"{}\"\n[front]\nbanner_delay = \"0s\"\n\
             greylist = \"on\"\n",
            data.display()
        );
        Settings::parse(&text, "vere.toml").unwrap()
    }

    fn screens(settings: &Settings, loops: u32) -> (Partition, Vec<Screen>) {
        let terms = terms(settings, settings.front.as_ref().unwrap(), loops as usize);
        super::screens(settings, &terms, NonZeroU32::new(loops).unwrap())
    }

    /// An attempt of a client, which is put off.
    fn attempt(screen: &mut Screen, client: &str) {
        let ticket = screen.arrive(NOW, client.parse().unwrap()).unwrap().ticket;
        screen.said_helo(NOW, ticket, "mx.example.net").unwrap();
        screen.mail(NOW, ticket, "a@example.net").unwrap();
        let Step::Ask(questions) = screen.recipient(NOW, ticket, "b@example.org").unwrap() else {
            panic!("no question");
        };
        let answer = Answer::Recipient(Recipient::Accepted);
        screen
            .answered(NOW, ticket, questions.round, answer)
            .unwrap();
        screen.left(ticket).unwrap();
    }

    fn names(settings: &Settings) -> Vec<String> {
        let files = fs::read_dir(settings.front_directory()).unwrap();
        let mut names: Vec<_> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn another_number_of_loops_keeps_every_entry() {
        let data = tempfile::tempdir().unwrap();
        let settings = settings(data.path());
        fs::create_dir(settings.front_directory()).unwrap();
        let (partition, mut first) = screens(&settings, 3);
        for network in 0..100 {
            let client = format!("198.51.{network}.7");
            attempt(
                &mut first[partition.part_of(client.parse().unwrap())],
                &client,
            );
        }
        for (number, screen) in (0..).zip(&first) {
            assert!(keep(&settings, number, screen));
        }
        for loops in [3, 2, 1, 4] {
            let (_, again) = screens(&settings, loops);
            let entries: Vec<_> = again.iter().map(|screen| screen.remembered().2).collect();
            assert_eq!(entries.iter().sum::<usize>(), 100, "{entries:?}");
            for (number, screen) in (0..).zip(&again) {
                assert!(keep(&settings, number, screen));
            }
            let lists = (0..loops).map(|number| format!("{LIST}{number}"));
            let expected: Vec<_> = lists.chain([KEY.to_owned()]).collect();
            assert_eq!(names(&settings), expected);
        }
    }

    /// A pipe stands for a disk that holds still: the thread waits until the pipe is read.
    #[test]
    fn a_slow_disk_holds_up_no_loop() {
        let data = tempfile::tempdir().unwrap();
        let settings = settings(data.path());
        fs::create_dir(settings.front_directory()).unwrap();
        let (_, mut screens) = screens(&settings, 1);
        let pipe = settings.front_directory().join("greylist.0.new");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut keeper = Keeper::default();
        assert!(keeper.begin(&settings, 0, &screens[0]));
        attempt(&mut screens[0], "198.51.100.7");
        assert!(!keeper.begin(&settings, 0, &screens[0]), "one at a time");
        assert!(!fs::read(&pipe).unwrap().is_empty());
        assert!(keeper.finish(&settings, 0, &screens[0]));
        let (_, again) = self::screens(&settings, 1);
        assert_eq!(again[0].remembered().2, 1, "the last list");
    }

    /// A directory in the place of the list stands for a disk that refuses.
    #[test]
    fn a_list_that_cannot_be_kept_leaves_nothing_behind() {
        let data = tempfile::tempdir().unwrap();
        let settings = settings(data.path());
        fs::create_dir(settings.front_directory()).unwrap();
        let (_, screens) = screens(&settings, 1);
        fs::create_dir(settings.front_directory().join("greylist.0")).unwrap();
        assert!(!keep(&settings, 0, &screens[0]));
        assert_eq!(names(&settings), ["greylist.0", KEY]);
    }

    /// A damaged list costs its entries, not the start.
    #[test]
    fn damaged_lists_and_other_files_are_left_alone() {
        let data = tempfile::tempdir().unwrap();
        let settings = settings(data.path());
        fs::create_dir(settings.front_directory()).unwrap();
        for name in ["greylist.0", "greylist.new", "greylist.1.new", "broker"] {
            fs::write(settings.front_directory().join(name), "damaged").unwrap();
        }
        let (_, screens) = screens(&settings, 1);
        assert_eq!(screens[0].remembered().2, 0);
        assert_eq!(names(&settings).len(), 5);
    }
}
