//! Sizes of the data directories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vere_process::failure::Failure;
use vere_settings::Settings;

/// Entries within the count; a Maildir has a file for each message.
const ENTRIES_MAX: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(15);

/// The files below a directory.
#[derive(Debug, Default)]
struct Amount {
    bytes: u64,
    files: u64,
}

/// The sizes of the entries of each data directory. Names further below are left out: some are names of accounts.
pub(super) fn sizes(settings: &Settings) -> Result<String, Failure> {
    let nodes = settings.spool.nodes.iter().filter(|node| !node.remote);
    let mut walk = Walk {
        left: ENTRIES_MAX,
        until: Instant::now() + PATIENCE,
    };
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    for directory in std::iter::once(&settings.data).chain(nodes.map(|node| &node.data)) {
        found.insert(directory.display().to_string(), walk.directory(directory));
    }
    let value = json!({ "complete": walk.is_complete(), "directories": found });
    Ok(format!("{value:#}\n"))
}

struct Walk {
    left: u64,
    until: Instant,
}

impl Walk {
    fn is_complete(&self) -> bool {
        self.left > 0 && Instant::now() < self.until
    }

    fn directory(&mut self, directory: &Path) -> Value {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => return json!({ "error": error.to_string() }),
        };
        let mut found: BTreeMap<String, Value> = BTreeMap::new();
        for entry in entries.flatten() {
            let mut amount = Amount::default();
            self.add(entry.path(), &mut amount);
            let name = entry.file_name().to_string_lossy().into_owned();
            found.insert(
                name,
                json!({ "bytes": amount.bytes, "files": amount.files }),
            );
        }
        json!(found)
    }

    /// Adds the files below a path, links not followed.
    fn add(&mut self, path: PathBuf, amount: &mut Amount) {
        let mut waiting = vec![path];
        while let Some(path) = waiting.pop() {
            if !self.is_complete() {
                return;
            }
            self.left -= 1;
            let Ok(about) = path.symlink_metadata() else {
                continue;
            };
            if about.is_dir() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                waiting.extend(entries.map(|entry| entry.path()));
            } else {
                amount.bytes = amount.bytes.saturating_add(about.len());
                amount.files += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_summed_below_the_first_level() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("maildir/example.org/ann");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("m"), "12345").unwrap();
        let text = format!(
            "version = 1\nhostname = \"a.b\"\ndata = {:?}\n",
            folder.path()
        );
        let settings = Settings::parse(&text, "vere.toml").unwrap();
        let text = sizes(&settings).unwrap();
        assert!(!text.contains("ann"), "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        let data = &value["directories"][folder.path().to_str().unwrap()];
        assert_eq!(data["maildir"], json!({ "bytes": 5, "files": 1 }));
        assert_eq!(value["complete"], true);
    }
}
