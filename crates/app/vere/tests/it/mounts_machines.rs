//! A volume mounted on two machines at once: each sees the other's changes, and what both have changed is kept twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{run, vere, wait_until};
use crate::mounts::Volume;

/// How long trees may differ: refreshes come every 30 s at the latest.
const PATIENCE: Duration = Duration::from_secs(90);

/// Words of each machine.
const WORDS: usize = 40;
/// Common names.
const NAMES: [&str; 3] = ["one.txt", "two.txt", "folder/three.txt"];

/// A further machine: equal configuration, a state and a mount of its own.
pub(crate) struct Machine<'v> {
    volume: &'v Volume,
    name: &'static str,
}

impl<'v> Machine<'v> {
    pub(crate) fn new(volume: &'v Volume, name: &'static str) -> Self {
        let machine = Self { volume, name };
        let (from, to) = (volume.path("config"), machine.path("config"));
        run(Command::new("cp").arg("-r").args([from, to]));
        fs::create_dir(machine.point()).expect("a folder");
        machine
    }

    fn path(&self, of: &str) -> PathBuf {
        self.volume.path(&format!("{of}-{}", self.name))
    }

    pub(crate) fn point(&self) -> PathBuf {
        self.path("mnt")
    }

    pub(crate) fn fs(&self, words: &[&str]) -> Command {
        let mut command = vere();
        command.arg("fs").args(words);
        for (variable, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(variable, self.path(folder));
        }
        command
    }

    pub(crate) fn mount(&self) {
        let mut mount = self.fs(&["mount", "home"]);
        let phrase = self.volume.path("phrase");
        run(mount.arg(self.point()).arg("--passphrase-file").arg(phrase));
    }

    pub(crate) fn umount(&self) {
        run(&mut self.fs(&["umount", "home"]));
    }

    pub(crate) fn sync(&self) {
        run(&mut self.fs(&["sync", "home"]));
    }

    pub(crate) fn status(&self) -> Value {
        let status = run(&mut self.fs(&["status", "home", "--json"]));
        serde_json::from_str(&status).expect("JSON")
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // A failed test must not leave a mount behind; after others there is none.
        let _none = self.fs(&["umount", "home"]).output();
        let _none = self.fs(&["umount", "--force", "home"]).output();
    }
}

/// Two machines with a mounted volume.
fn two(volume: &Volume) -> [Machine<'_>; 2] {
    let machines = [
        Machine::new(volume, "first"),
        Machine::new(volume, "second"),
    ];
    for machine in &machines {
        machine.mount();
    }
    machines
}

/// Names and contents below a folder.
fn contents(folder: &Path) -> BTreeSet<(PathBuf, String)> {
    let mut all = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // A file that the other machine has just removed or renamed is looked at again.
            let text = fs::read_to_string(&path).unwrap_or_default();
            let name = path.strip_prefix(folder).expect("below").to_owned();
            all.insert((name, text));
        }
    }
    all
}

fn wait_until_equal(machines: &[Machine<'_>; 2]) -> BTreeSet<(PathBuf, String)> {
    let [first, second] = machines;
    // What one sends makes the other one follow, and perhaps send again.
    for _ in 0..2 {
        first.sync();
        second.sync();
    }
    let begun = Instant::now();
    loop {
        let [first, second] = machines
            .each_ref()
            .map(|machine| contents(&machine.point()));
        if first == second {
            return first;
        }
        let only =
            |of: &BTreeSet<_>, not: &BTreeSet<_>| of.difference(not).cloned().collect::<Vec<_>>();
        assert!(
            begun.elapsed() < PATIENCE,
            "only on the first: {:#?}, only on the second: {:#?}",
            only(&first, &second),
            only(&second, &first)
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn texts(of: &BTreeSet<(PathBuf, String)>) -> BTreeSet<&str> {
    of.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn a_change_is_seen_on_the_other_machine() {
    let Some(volume) = Volume::new() else { return };
    let machines = two(&volume);
    let [first, second] = &machines;
    fs::write(first.point().join("file"), "by the first").expect("a file");
    first.sync();
    let file = second.point().join("file");
    wait_until("the other's file", || {
        fs::read_to_string(&file).is_ok_and(|text| text == "by the first")
    });
    fs::write(&file, "by the second").expect("a file");
    second.sync();
    let file = first.point().join("file");
    wait_until("the other's content", || {
        fs::read_to_string(&file).is_ok_and(|text| text == "by the second")
    });
    fs::remove_file(&file).expect("a file");
    first.sync();
    let file = second.point().join("file");
    wait_until("the other's removal", || !file.exists());
}

#[test]
fn what_both_have_changed_is_kept_twice() {
    let Some(volume) = Volume::new() else { return };
    let machines = two(&volume);
    let [first, second] = &machines;
    fs::write(first.point().join("letter"), "common").expect("a file");
    wait_until_equal(&machines);
    // As programs write, and as editors do: a file beside takes the name.
    for machine in &machines {
        let point = machine.point();
        fs::write(point.join("letter"), machine.name).expect("a file");
        let beside = point.join(format!(".note-{}", machine.name));
        fs::write(&beside, format!("a note of the {}", machine.name)).expect("a file");
        fs::rename(&beside, point.join("note")).expect("a rename");
    }
    let all = wait_until_equal(&machines);
    let expected = [
        "first",
        "second",
        "a note of the first",
        "a note of the second",
    ];
    assert_eq!(texts(&all), BTreeSet::from(expected), "{all:?}");
    let conflicts = [first, second].map(|machine| machine.status()["conflicts"].clone());
    let seen = conflicts.iter().filter_map(Value::as_u64).sum::<u64>();
    assert!(seen >= 2, "{conflicts:?}");
    let named = all
        .iter()
        .filter(|(name, _)| name.to_string_lossy().contains("(conflict "));
    assert_eq!(named.count(), 2, "{all:?}");
}

/// Each machine appends words to files that both have. No word may be lost: the word stands in the file, or in a conflict copy.
/// (A program that reads, and then replaces, may lose a word between the two, as two programs on one machine do.)
#[test]
fn words_of_two_machines_all_survive() {
    let Some(volume) = Volume::new() else { return };
    let machines = two(&volume);
    fs::create_dir(machines[0].point().join("folder")).expect("a folder");
    for name in NAMES {
        fs::write(machines[0].point().join(name), "").expect("a file");
    }
    wait_until_equal(&machines);
    let words: BTreeSet<String> = std::thread::scope(|scope| {
        let work = machines.each_ref().map(|machine| {
            let (point, name) = (machine.point(), machine.name);
            scope.spawn(move || append_words(&point, name))
        });
        work.into_iter()
            .flat_map(|work| work.join().expect("a thread"))
            .collect()
    });
    let all = wait_until_equal(&machines);
    let found: BTreeSet<String> = all
        .iter()
        .flat_map(|(_, text)| text.split_whitespace().map(str::to_owned))
        .collect();
    let lost: Vec<_> = words.difference(&found).collect();
    assert!(
        lost.is_empty(),
        "{lost:?} of {} words are lost: {all:#?}",
        words.len()
    );
    for machine in machines {
        run(&mut machine.fs(&["umount", "home"]));
    }
    volume.mount();
    let said = run(&mut volume.fs(&["check", "home", "--data"]));
    assert!(said.contains("clean: "), "{said}");
    assert_eq!(contents(&volume.point()), all);
    volume.umount();
}

fn append_words(point: &Path, machine: &str) -> Vec<String> {
    let mut words = Vec::new();
    for number in 0..WORDS {
        let name = NAMES[number % NAMES.len()];
        let path = point.join(name);
        let word = format!("{machine}{number}");
        let file = fs::File::options().append(true).open(path).expect("a file");
        std::io::Write::write_all(&mut &file, format!("{word} ").as_bytes()).expect("room");
        file.sync_all().expect("the servers");
        words.push(word);
        std::thread::sleep(Duration::from_millis(40 * (number as u64 % 4)));
    }
    words
}
