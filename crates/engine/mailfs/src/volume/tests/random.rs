//! Mounts, partitions, kills and lost answers at random: what an fsync has acknowledged is found at the end.
//!
//! Programs only ever add words at the end of what they see. So a word may be missing at the end only if a mount that saw the
//! word removed its file.

use std::collections::{BTreeSet, HashMap};

use super::checks::{check, differences, rows_of};
use super::rig::Several;
use super::*;
use crate::breakage::{Breakage, break_by};

const NAMES: [&str; 7] = ["a", "b", "d/a", "d/c", "e/a", "d/e/b", "e"];
const FOLDERS: [&str; 3] = ["d", "e", "d/e"];
const STEPS: usize = 60;

/// What lies at a name, and the length.
type Seen = (Option<Inode>, usize);

struct Run {
    several: Several,
    seeded: Seeded,
    words: u64,
    /// Words by the call that waits for them.
    waiting: HashMap<(usize, CallId), BTreeSet<String>>,
    acknowledged: BTreeSet<String>,
    removed: BTreeSet<String>,
    /// The file that a program has looked at last.
    looked: Option<Inode>,
    /// Words of each mount since its folder is new, which nobody has acknowledged.
    written: Vec<BTreeSet<String>>,
    /// Whether mounts begin from the local disk where they can.
    starts_locally: bool,
    /// Whether no machine loses its folder.
    keeps_folders: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut seeded = Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let count = 2 + usize::try_from(seeded.next_u64() % 2).unwrap();
        Self {
            several: Several::new(count),
            seeded,
            words: 0,
            waiting: HashMap::new(),
            acknowledged: BTreeSet::new(),
            removed: BTreeSet::new(),
            looked: None,
            written: vec![BTreeSet::new(); count],
            starts_locally: false,
            keeps_folders: false,
        }
    }

    fn start(&mut self, mount: usize) -> Result<(), OpenError> {
        if self.starts_locally && self.several.mount_locally(mount).is_ok() {
            return Ok(());
        }
        self.several.mount(mount)
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.seeded.next_u64() % u64::try_from(count).unwrap()).unwrap()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// The content that a mount sees in a file; absent if the file cannot be read now.
    fn seen(&mut self, mount: usize, path: &str) -> Option<Vec<u8>> {
        self.looked = self.several.at(mount, path).ok();
        let Some(inode) = self.looked else {
            return Some(Vec::new());
        };
        match self.several.content(mount, inode) {
            Ok(content) => Some(content),
            Err(Errno::IsDir) => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// The folder of a path, the name, and what lies there with its length, without a step of the mount.
    fn now(&mut self, mount: usize, path: &str) -> Option<(Inode, Vec<u8>, Seen)> {
        let files = &mut self.several.volume(mount).files;
        let mut parent = Inode::ROOT;
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        for folder in folders.split('/').filter(|name| !name.is_empty()) {
            parent = files.inode_at(parent, folder.as_bytes()).ok()??;
        }
        let inode = files.inode_at(parent, name.as_bytes()).ok()?;
        let length = inode.map_or(0, |inode| match files.inode_at(inode, b"x") {
            Err(Errno::NotDir) => files.size(inode).unwrap_or(0),
            _ => 0,
        });
        let found = (inode, usize::try_from(length).unwrap());
        Some((parent, name.into(), found))
    }

    /// Removes or renames, unless the file that goes has changed since a program saw its content.
    fn replace(&mut self, mount: usize, from: Option<&str>, to: &str, content: &[u8]) -> bool {
        if self.several.volume(mount).status().writer == 0
            || self.several.volume(mount).is_registering()
        {
            return false;
        }
        let Some((parent, name, found)) = self.now(mount, to) else {
            return false;
        };
        if found != (self.looked, content.len()) {
            return false;
        }
        let call = match from.map(|from| self.now(mount, from)) {
            None => Call::Unlink { parent, name },
            Some(None) => return false,
            Some(Some((old_parent, old_name, _))) => Call::Rename {
                parent: old_parent,
                name: old_name,
                new_parent: parent,
                new_name: name,
                mode: vere_ports::files::RenameMode::Replace,
            },
        };
        self.several.call(mount, call).is_ok()
    }

    fn act(&mut self) {
        let mount = self.below(self.several.mounts.len());
        if self.several.mounts[mount].volume.is_none() {
            self.start(mount).unwrap();
            return;
        }
        match self.below(30) {
            0..=9 => self.append(mount),
            10..=12 => self.save(mount),
            13..=14 => {
                let path = self.pick(&FOLDERS);
                let _ = self.several.folder(mount, path);
            }
            15..=16 => {
                let (from, to) = (self.pick(&NAMES), self.pick(&NAMES));
                self.rename(mount, from, to);
            }
            17 => {
                let (from, to) = (self.pick(&FOLDERS), self.pick(&FOLDERS));
                self.rename(mount, from, to);
            }
            18 => {
                let path = self.pick(&NAMES);
                if let Some(seen) = self.seen(mount, path)
                    && self.replace(mount, None, path, &seen)
                {
                    self.removed.extend(words(&seen));
                }
            }
            19 => {
                let path = self.pick(&FOLDERS);
                let _ = self.several.remove_folder(mount, path);
            }
            20..=22 => {
                let held = self.below(2) == 0;
                self.several.mounts[mount].is_held = held;
            }
            23 => {
                let keeps = self.below(3) > 0 || self.keeps_folders;
                self.kill(mount, keeps);
            }
            24..=25 => {
                let seconds = [1, 6, 31, 70][self.below(4)];
                self.several.now += seconds * 1_000;
                self.several.wake();
            }
            _ => {
                for _ in 0..self.below(20) {
                    let mount = self.below(self.several.mounts.len());
                    self.several.step(mount);
                }
            }
        }
        self.collect();
    }

    fn append(&mut self, mount: usize) {
        let path = self.pick(&NAMES);
        self.words += 1;
        let word = format!("w{}.", self.words);
        if let Ok(handle) = self.several.append(mount, path, word.as_bytes()) {
            self.written[mount].insert(word.clone());
            if self.below(2) == 0 {
                let call = Call::Fsync {
                    handle,
                    data_only: false,
                };
                let id = self.several.begin(mount, call);
                self.waiting.insert((mount, id), BTreeSet::from([word]));
            }
            if self.below(4) > 0 {
                let _ = self.several.begin(mount, Call::Release { handle });
            }
        }
    }

    /// The way of editors: a new file with the old words and one more takes the name.
    fn save(&mut self, mount: usize) {
        let path = self.pick(&NAMES);
        let Ok(inode) = self.several.at(mount, path) else {
            return;
        };
        let Ok(before) = self.several.content(mount, inode) else {
            return;
        };
        self.looked = Some(inode);
        let mut content = before.clone();
        self.words += 1;
        let word = format!("w{}.", self.words);
        content.extend_from_slice(word.as_bytes());
        let new = format!("{path}.new");
        if self.several.at(mount, &new).is_ok() {
            return;
        }
        if let Ok(handle) = self.several.append(mount, &new, &content) {
            self.written[mount].insert(word);
            let _ = self.several.begin(mount, Call::Release { handle });
            self.replace(mount, Some(&new), path, &before);
        }
    }

    fn rename(&mut self, mount: usize, from: &str, to: &str) {
        if from == to {
            return;
        }
        let Some(seen) = self.seen(mount, to) else {
            return;
        };
        if self.replace(mount, Some(from), to, &seen) {
            self.removed.extend(words(&seen));
        }
    }

    fn kill(&mut self, mount: usize, keeps_folder: bool) {
        self.collect();
        self.several.kill(mount);
        self.waiting.retain(|(of, _), _| *of != mount);
        if !keeps_folder {
            self.several.mounts[mount].disk = MemoryDisk::default();
            self.written[mount].clear();
        }
    }

    /// Takes the replies of calls that nobody waits for.
    fn collect(&mut self) {
        for (number, mount) in self.several.mounts.iter_mut().enumerate() {
            for (id, reply) in std::mem::take(&mut mount.replies) {
                let words = self.waiting.remove(&(number, id));
                if let (Some(words), Ok(_)) = (words, reply) {
                    self.acknowledged.extend(words);
                }
            }
        }
    }

    fn finish(mut self) -> Result<(), String> {
        self.several.luck = Box::new(|| Luck::Good);
        for mount in 0..self.several.mounts.len() {
            self.several.mounts[mount].is_held = false;
            if self.several.mounts[mount].volume.is_none() {
                self.start(mount).map_err(|error| error.to_string())?;
            }
        }
        for _ in 0..40 {
            self.several.pass(20);
        }
        self.collect();
        let first = self.several.tree(0);
        for mount in 0..self.several.mounts.len() {
            if let Some(notice) = self.several.volume(mount).read_only() {
                return Err(format!("mount {mount}: {notice}"));
            }
            let tree = self.several.tree(mount);
            if tree != first {
                return Err(format!("trees differ: {first:#?}, {mount}: {tree:#?}"));
            }
        }
        for _ in 0..10 {
            self.several.pass(20);
        }
        let rows = rows_of(self.several.volume(0).files.tree());
        for mount in 0..self.several.mounts.len() {
            let volume = self.several.volume(mount);
            check(volume.files.tree()).map_err(|error| format!("mount {mount}: {error}"))?;
            if !volume.is_quiet() {
                return Err(format!("mount {mount} is not quiet"));
            }
            let differ = differences(&rows, &rows_of(volume.files.tree()));
            if !differ.is_empty() {
                return Err(format!("mount {mount}: rows differ: {differ:?}"));
            }
        }
        let found: BTreeSet<String> = first
            .values()
            .flat_map(|content| words(content.as_bytes()))
            .collect();
        let needed = self
            .acknowledged
            .iter()
            .chain(self.written.iter().flatten());
        let lost: Vec<&String> = needed
            .filter(|word| !found.contains(*word) && !self.removed.contains(*word))
            .collect();
        if lost.is_empty() {
            Ok(())
        } else {
            Err(format!("lost: {lost:?} in {first:#?}"))
        }
    }
}

fn words(content: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(content).into_owned();
    text.split_inclusive('.').map(str::to_owned).collect()
}

fn run(seed: u64) -> Result<(), String> {
    run_with(seed, false)
}

fn run_with(seed: u64, starts_locally: bool) -> Result<(), String> {
    let mut run = Run::new(seed);
    run.starts_locally = starts_locally;
    run.run_whole(seed)
}

/// Changes that need several commits. Without its mount a part of them stays one, so no folder is lost.
fn run_in_parts(seed: u64) -> Result<(), String> {
    let mut run = Run::new(seed);
    let rows = [12, 16, 20, 24];
    run.several.terms.rows_max = rows[usize::try_from(seed).unwrap() % rows.len()];
    for mount in 0..run.several.mounts.len() {
        run.several.kill(mount);
        run.several.mount(mount).unwrap();
    }
    run.keeps_folders = true;
    run.run_whole(seed)
}

impl Run {
    fn run_whole(mut self, seed: u64) -> Result<(), String> {
        self.go(seed);
        self.finish()
    }

    fn go(&mut self, seed: u64) {
        let mut luck = Seeded(seed + 77);
        let bad = seed % 3;
        self.several.luck = Box::new(move || match luck.next_u64() % 100 {
            0..=4 if bad > 0 => Luck::Lost,
            5..=9 if bad > 0 => Luck::Unanswered,
            _ => Luck::Good,
        });
        for _ in 0..STEPS {
            self.act();
        }
    }
}

/// Seeds of a run.
const SEEDS: std::ops::Range<u64> = 0..300;

#[test]
fn nothing_acknowledged_is_lost() {
    assert_none_fails(SEEDS, run);
}

#[test]
fn nothing_acknowledged_is_lost_where_mounts_begin_from_the_local_disk() {
    assert_none_fails(0..100, |seed| run_with(seed, true));
}

#[test]
fn nothing_acknowledged_is_lost_where_changes_need_several_commits() {
    assert_none_fails(SEEDS, run_in_parts);
}

fn assert_none_fails(seeds: std::ops::Range<u64>, run: impl Fn(u64) -> Result<(), String>) {
    let failed: Vec<String> = seeds
        .filter_map(|seed| {
            let error = run(seed).err()?;
            Some(format!("seed {seed}: {error}"))
        })
        .collect();
    let few: Vec<&String> = failed.iter().take(3).collect();
    assert!(failed.is_empty(), "{} failed: {few:#?}", failed.len());
}

/// The number of the first seed that notices a breakage.
fn noticed(breakage: Breakage) -> Option<u64> {
    break_by(Some(breakage));
    let found = (0..6000).find(|seed| {
        let seed = *seed;
        std::panic::catch_unwind(|| run(seed)).map_or(true, |run| run.is_err())
    });
    break_by(None);
    found
}

#[test]
fn breakages_are_noticed() {
    for breakage in [
        Breakage::Gap,
        Breakage::MergeTwice,
        Breakage::ContentDropped,
        Breakage::RebaseForgotten,
    ] {
        let seed = noticed(breakage);
        assert!(seed.is_some(), "{breakage:?}");
    }
}
