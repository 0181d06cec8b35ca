//! Valid policies, kept over restarts.
//!
//! Format version 1: a text file of lines, the first of which is `{"mta_sts":1}`. Every other line is a domain's
//! policy as a JSON object; a later line of a domain replaces an earlier line. An unreadable line, such as a torn
//! last line, is skipped.
//!
//! ```text
//! {"mta_sts":1}
//! {"domain":"example.org","id":"20160831085700Z","fetched":1700000000000,"max_age":604800,
//!  "mode":"enforce","mx":["mail.example.org"]}                                       (one line)
//! ```
//!
//! The file grows by a line for each fetched policy, and is rewritten at a start and whenever three quarters of the
//! lines are obsolete. On a full disk a start keeps the old file, and the next fetched policy tries to rewrite the
//! file again.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::policy::{Mode, Policy};

/// The version written by this code, and the newest version that can be read.
const FORMAT_VERSION: u64 = 1;
/// Policies kept. Beyond the limit, policies that expire first are removed.
const POLICIES_MAX: usize = 100_000;
/// Octets read of the file.
const FILE_OCTETS_MAX: u64 = 256 * 1024 * 1024;
/// Number of obsolete lines that never causes a rewrite.
const LINES_SLACK: usize = 256;

/// A fetched policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The identifier in the DNS record at the time of the fetch.
    pub id: String,
    /// The time of the fetch, in milliseconds since 1970.
    pub fetched_ms: u64,
    /// What it says.
    pub policy: Policy,
}

impl Held {
    /// Whether the policy is valid at this time.
    #[must_use]
    pub fn is_live(&self, now_ms: u64) -> bool {
        now_ms < self.ends_ms()
    }

    fn ends_ms(&self) -> u64 {
        let life = u64::try_from(self.policy.max_age.as_millis()).unwrap_or(u64::MAX);
        self.fetched_ms.saturating_add(life)
    }

    fn line(&self, domain: &str) -> String {
        let policy = &self.policy;
        let value = json!({
            "domain": domain,
            "id": self.id,
            "fetched": self.fetched_ms,
            "max_age": policy.max_age.as_secs(),
            "mode": policy.mode.as_str(),
            "mx": policy.mx,
        });
        format!("{value}\n")
    }

    fn parse(line: &str) -> Option<(String, Self)> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let mx = value["mx"].as_array()?.iter();
        let policy = Policy {
            mode: Mode::parse(value["mode"].as_str()?)?,
            max_age: Duration::from_secs(value["max_age"].as_u64()?),
            mx: mx
                .map(|host| host.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
        };
        let held = Self {
            id: text("id")?,
            fetched_ms: value["fetched"].as_u64()?,
            policy,
        };
        Some((text("domain")?, held))
    }
}

/// The policies by domain, and the file of the policies.
#[derive(Debug)]
pub(super) struct Cache {
    held: HashMap<String, Arc<Held>>,
    path: Option<PathBuf>,
    lines: usize,
    /// Whether the file has to be rewritten before a line can be appended.
    stale: bool,
}

impl Cache {
    /// Policies in memory only.
    pub(super) fn in_memory() -> Self {
        Self {
            held: HashMap::new(),
            path: None,
            lines: 0,
            stale: false,
        }
    }

    /// Reads the file, if present, and rewrites the file without expired policies. A disk without space for the
    /// rewrite is no error: the policies read from the file apply, and a gateway has to start on a full disk too.
    ///
    /// # Errors
    /// The file cannot be read, cannot be written for another reason, or was written by a newer program.
    pub(super) fn open(path: &Path, now_ms: u64) -> io::Result<Self> {
        let mut cache = Self {
            held: HashMap::new(),
            path: Some(path.to_owned()),
            lines: 0,
            stale: false,
        };
        match fs::metadata(path) {
            Ok(file) if file.len() > FILE_OCTETS_MAX => {
                return Err(io::Error::other(
                    "expected at most 256 MiB; the file is larger",
                ));
            }
            Ok(_) => cache.read(&fs::read(path)?, now_ms)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match cache.compact() {
            Err(error) if is_full(&error) => {
                tracing::warn!(path = %path.display(), %error, "MTA-STS policies not rewritten: the disk is full");
                cache.stale = true;
            }
            other => other?,
        }
        Ok(cache)
    }

    fn read(&mut self, octets: &[u8], now_ms: u64) -> io::Result<()> {
        let text = String::from_utf8_lossy(octets);
        let mut lines = text.lines();
        let head: Value = lines
            .next()
            .and_then(|line| serde_json::from_str(line).ok())
            .unwrap_or_default();
        if let Some(version) = head["mta_sts"].as_u64().filter(|v| *v > FORMAT_VERSION) {
            let text = format!("expected format version {FORMAT_VERSION}; found version {version}");
            return Err(io::Error::other(text));
        }
        for (domain, held) in lines.filter_map(Held::parse) {
            self.held.insert(domain, Arc::new(held));
        }
        self.held.retain(|_, held| held.is_live(now_ms));
        Ok(())
    }

    pub(super) fn get(&self, domain: &str) -> Option<Arc<Held>> {
        self.held.get(domain).cloned()
    }

    /// All policies.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Arc<Held>)> {
        self.held.iter()
    }

    /// Keeps a policy, on disk too.
    ///
    /// # Errors
    /// The policy cannot be written; the policy in memory applies all the same.
    pub(super) fn put(&mut self, domain: &str, held: Held, now_ms: u64) -> io::Result<Arc<Held>> {
        let line = held.line(domain);
        let held = Arc::new(held);
        if self.held.len() >= POLICIES_MAX && !self.held.contains_key(domain) {
            self.make_room(now_ms);
        }
        self.held.insert(domain.to_owned(), Arc::clone(&held));
        self.lines += 1;
        if self.stale || self.lines > self.held.len() * 4 + LINES_SLACK {
            self.compact()?;
        } else if let Some(path) = &self.path {
            let mut file = OpenOptions::new().append(true).open(path)?;
            file.write_all(line.as_bytes())?;
            file.sync_data()?;
        }
        Ok(held)
    }

    fn make_room(&mut self, now_ms: u64) {
        self.held.retain(|_, held| held.is_live(now_ms));
        if self.held.len() < POLICIES_MAX {
            return;
        }
        let mut ends: Vec<u64> = self.held.values().map(|held| held.ends_ms()).collect();
        ends.sort_unstable();
        let cut = ends.get(ends.len() / 16).copied().unwrap_or(u64::MAX);
        self.held.retain(|_, held| held.ends_ms() > cut);
    }

    /// Rewrites the file.
    fn compact(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let mut text = format!("{}\n", json!({ "mta_sts": FORMAT_VERSION }));
        for (domain, held) in &self.held {
            text += &held.line(domain);
        }
        let staged = path.with_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o640)
            .open(&staged)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&staged, path)?;
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.lines = self.held.len();
        self.stale = false;
        Ok(())
    }
}

/// Whether the file system has no space left, or the user's quota is exhausted.
fn is_full(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    kinds.contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(id: &str, fetched_ms: u64) -> Held {
        Held {
            id: id.to_owned(),
            fetched_ms,
            policy: Policy {
                mode: Mode::Enforce,
                max_age: Duration::from_secs(10),
                mx: vec!["*.example.org".to_owned()],
            },
        }
    }

    #[test]
    fn policies_survive_and_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policies");
        let mut cache = Cache::open(&path, 0).unwrap();
        cache.put("a.example", held("1", 1_000), 1_000).unwrap();
        cache.put("b.example", held("1", 5_000), 5_000).unwrap();
        cache.put("a.example", held("2", 2_000), 2_000).unwrap();
        let again = Cache::open(&path, 3_000).unwrap();
        assert_eq!(again.get("a.example").as_deref(), Some(&held("2", 2_000)));
        assert_eq!(again.get("b.example").as_deref(), Some(&held("1", 5_000)));
        // RFC 8461 section 3.2: max_age counts from the time of the fetch.
        let later = Cache::open(&path, 12_000).unwrap();
        assert_eq!(later.get("a.example"), None);
        assert!(later.get("b.example").is_some());
    }

    #[test]
    fn a_torn_line_is_passed_over_and_a_newer_version_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policies");
        let mut cache = Cache::open(&path, 0).unwrap();
        cache.put("a.example", held("1", 0), 0).unwrap();
        let whole = fs::read(&path).unwrap();
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            assert!(Cache::open(&path, 0).is_ok(), "cut at {end}");
        }
        fs::write(&path, [&whole[..], b"{\"domain\":\"b.ex"].concat()).unwrap();
        let mut cache = Cache::open(&path, 0).unwrap();
        cache.put("c.example", held("1", 0), 0).unwrap();
        let again = Cache::open(&path, 0).unwrap();
        assert_eq!(again.held.len(), 2);
        fs::write(&path, "{\"mta_sts\":2}\n").unwrap();
        let error = Cache::open(&path, 0).unwrap_err().to_string();
        assert!(error.contains("version 2"), "{error}");
    }

    #[test]
    fn a_full_disk_keeps_the_policies_that_were_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policies");
        let mut cache = Cache::open(&path, 0).unwrap();
        cache.put("a.example", held("1", 0), 0).unwrap();
        // Every write to this device fails with ENOSPC.
        let staged = path.with_extension("new");
        std::os::unix::fs::symlink("/dev/full", &staged).unwrap();
        let mut full = Cache::open(&path, 0).unwrap();
        assert!(full.get("a.example").is_some());
        full.put("b.example", held("1", 0), 0).unwrap_err();
        assert!(full.get("b.example").is_some());
        fs::remove_file(&staged).unwrap();
        full.put("c.example", held("1", 0), 0).unwrap();
        let again = Cache::open(&path, 0).unwrap();
        assert_eq!(again.held.len(), 3);
    }

    #[test]
    fn the_file_does_not_grow_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policies");
        let mut cache = Cache::open(&path, 0).unwrap();
        for number in 0..2_000 {
            cache.put("a.example", held("1", number), number).unwrap();
        }
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= LINES_SLACK + 6, "{lines}");
        let again = Cache::open(&path, 0).unwrap();
        assert_eq!(again.get("a.example").unwrap().fetched_ms, 1_999);
    }
}
