//! The keys in memory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use vere_dkim::{KeyAlgorithm, KeyError, KeyStore, PrivateKey, StoredKey};
use vere_signwire::{ActiveKey, Algorithm, Answer, Reason, WaitingKey};
use vere_units::Timestamp;

use super::waiting::{Queue, Turn};

/// Longest validity of an answer about keys: the gateway notices a new or ended key within this time.
const HOLDS_MAX: Duration = Duration::from_secs(10);
/// Longest validity for a domain without keys: its first keys should sign soon.
const HOLDS_WITHOUT_MAX: Duration = Duration::from_secs(1);

/// A key, parsed before its first signature: a hoster has very many keys, and uses few at a time.
#[derive(Debug)]
struct Entry {
    key: StoredKey,
    ready: OnceLock<Option<PrivateKey>>,
}

type ByDomain = HashMap<String, Vec<Entry>>;

/// The paths and times that distinguish two states of the folder.
type Stamp = Vec<(PathBuf, i64, i64)>;

/// All keys of the folder, as of the last check.
#[derive(Debug)]
pub(super) struct Keys {
    store: KeyStore,
    seen: Mutex<Stamp>,
    keys: RwLock<Arc<ByDomain>>,
    /// The keys that wait for their records.
    waiting: Mutex<Queue>,
}

impl Keys {
    /// Reads the folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn load(folder: &Path) -> Result<Self, KeyError> {
        let store = KeyStore::new(folder);
        let keys = Self {
            seen: Mutex::new(store.stamp()),
            keys: RwLock::default(),
            waiting: Mutex::default(),
            store,
        };
        keys.read()?;
        Ok(keys)
    }

    /// Reads the folder again if the folder has changed; an unreadable folder changes nothing.
    pub(super) fn look(&self) {
        let stamp = self.store.stamp();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == stamp {
            return;
        }
        match self.read() {
            Ok(()) => *seen = stamp,
            Err(error) => tracing::error!(%error, "keys kept as they were"),
        }
    }

    /// Reads the folder again, also where owners or permissions alone have changed: no time shows such a change.
    pub(super) fn reload(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clear();
        drop(seen);
        self.look();
    }

    fn read(&self) -> Result<(), KeyError> {
        let (keys, wrong) = self.store.keys()?;
        for error in wrong {
            tracing::error!(%error, "key left out");
        }
        let count = keys.len();
        let mut by_domain = ByDomain::new();
        for key in keys {
            let ready = OnceLock::new();
            let entries = by_domain.entry(key.domain.clone()).or_default();
            entries.push(Entry { key, ready });
        }
        let waits = |entry: &&Entry| entry.key.waits.is_some();
        let waiting = by_domain.values().flatten().filter(waits);
        let waiting = waiting.map(|entry| (entry.key.domain.clone(), entry.key.selector.clone()));
        let count_waiting = self.queue().set(waiting, Instant::now());
        tracing::info!(
            keys = count,
            domains = by_domain.len(),
            waiting = count_waiting,
            "keys read"
        );
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(by_domain);
        Ok(())
    }

    /// Answers which keys sign for a domain now.
    pub(super) fn active(&self, domain: &str) -> Answer {
        active(entries(&self.current(), domain), now())
    }

    /// Signs by the key with this name, if it signs now.
    pub(super) fn sign(
        &self,
        algorithm: Algorithm,
        domain: &str,
        selector: &str,
        octets: &[u8],
    ) -> Answer {
        let named = |entry: &&Entry| {
            entry.key.selector == *selector && wire(entry.key.algorithm) == algorithm
        };
        match entries(&self.current(), domain).iter().find(named) {
            Some(entry) if entry.key.is_active(now()) => entry.sign(octets),
            _ => Answer::Refused(Reason::NoKey),
        }
    }

    /// Answers which waiting key's record is to be looked up now.
    pub(super) fn waiting(&self) -> Answer {
        let (count, turn) = self.queue().next(Instant::now());
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let (pause, key) = match turn {
            Turn::Pause(pause) => (pause, None),
            Turn::Look {
                domain,
                selector,
                looks,
            } => {
                let current = self.current();
                let mut known = entries(&current, &domain).iter();
                let entry = known.find(|entry| entry.key.selector == selector);
                let key = entry.map(|entry| WaitingKey {
                    record: entry.key.record_text(),
                    domain,
                    selector,
                    looks,
                });
                (Duration::ZERO, key)
            }
        };
        Answer::Waiting {
            count,
            pause_ms: u32::try_from(pause.as_millis()).unwrap_or(u32::MAX),
            key,
        }
    }

    /// Lets a waiting key sign: the DNS has its record.
    pub(super) fn seen(&self, domain: &str, selector: &str) -> Answer {
        self.look();
        let current = self.current();
        let entries = entries(&current, domain);
        let waits = |entry: &&Entry| entry.key.selector == selector && entry.key.waits.is_some();
        let Some(Entry { key, .. }) = entries.iter().find(waits) else {
            return Answer::Refused(Reason::NoKey);
        };
        let others: Vec<StoredKey> = entries.iter().map(|entry| entry.key.clone()).collect();
        match self.store.activate(key, &others, now(), false) {
            Ok(()) => {
                tracing::info!(key = %key.record_name(), from = %key.active_from, "record seen, key activated");
                self.look();
                Answer::Activated
            }
            Err(error) => {
                tracing::error!(key = %key.record_name(), %error, "key cannot be activated");
                Answer::Refused(Reason::Failed)
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Arc<ByDomain> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn entries<'a>(keys: &'a ByDomain, domain: &str) -> &'a [Entry] {
    keys.get(domain).map(Vec::as_slice).unwrap_or_default()
}

impl Entry {
    fn sign(&self, octets: &[u8]) -> Answer {
        let ready = self.ready.get_or_init(|| {
            let made = self.key.private();
            made.inspect_err(|error| {
                tracing::error!(key = %self.key.record_name(), %error, "key cannot sign");
            })
            .ok()
        });
        match ready.as_ref().map(|key| key.sign(octets)) {
            Some(Ok(signature)) => Answer::Signed(signature),
            _ => Answer::Refused(Reason::Failed),
        }
    }
}

/// Returns the keys that sign at this time, and the validity of the answer.
fn active(entries: &[Entry], now: Timestamp) -> Answer {
    let youngest = |algorithm| {
        entries
            .iter()
            .map(|entry| &entry.key)
            .filter(|key| key.algorithm == algorithm && key.is_active(now))
            .max_by_key(|key| key.active_from)
    };
    let keys: Vec<_> = [KeyAlgorithm::RsaSha256, KeyAlgorithm::Ed25519Sha256]
        .into_iter()
        .filter_map(youngest)
        .map(|key| ActiveKey {
            algorithm: wire(key.algorithm),
            selector: key.selector.clone(),
        })
        .collect();
    let next_change = entries
        .iter()
        .flat_map(|entry| [Some(entry.key.active_from), entry.key.retire_at])
        .flatten()
        .filter(|time| *time > now)
        .min();
    let most = if keys.is_empty() {
        HOLDS_WITHOUT_MAX
    } else {
        HOLDS_MAX
    };
    let holds = next_change.map_or(most, |time| time.saturating_since(now).min(most));
    Answer::Keys {
        holds_ms: u32::try_from(holds.as_millis()).unwrap_or(u32::MAX),
        keys,
    }
}

const fn wire(algorithm: KeyAlgorithm) -> Algorithm {
    match algorithm {
        KeyAlgorithm::RsaSha256 => Algorithm::RsaSha256,
        KeyAlgorithm::Ed25519Sha256 => Algorithm::Ed25519Sha256,
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    Timestamp::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use vere_dkim::Waiting;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn key(selector: &str, from: Timestamp) -> StoredKey {
        let algorithm = KeyAlgorithm::Ed25519Sha256;
        StoredKey::generate("example.org", selector, algorithm, 0, from, from).expect("a key")
    }

    fn selectors(answer: &Answer) -> (u32, Vec<&str>) {
        let Answer::Keys { holds_ms, keys } = answer else {
            panic!("{answer:?}");
        };
        (
            *holds_ms,
            keys.iter().map(|key| key.selector.as_str()).collect(),
        )
    }

    #[test]
    fn a_reload_reads_what_no_time_announces() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = KeyStore::new(folder.path());
        store.add(&key("s1", now())).expect("written");
        let keys = Keys::load(folder.path()).expect("read");
        assert_eq!(selectors(&keys.active("example.org")).1, ["s1"]);
        // An empty file is left out like a file that cannot be read; the times of the folders stay.
        let file = folder.path().join("example.org/s1.toml");
        std::fs::write(&file, "").expect("written");
        keys.look();
        assert_eq!(selectors(&keys.active("example.org")).1, ["s1"]);
        keys.reload();
        assert!(selectors(&keys.active("example.org")).1.is_empty());
    }

    #[test]
    fn keys_change_at_their_time_and_with_their_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = Keys::load(folder.path()).expect("an empty folder");
        let ask = "example.org";
        assert_eq!(selectors(&keys.active(ask)), (1_000, vec![]));
        let store = KeyStore::new(folder.path());
        store.add(&key("first", now())).expect("written");
        keys.look();
        assert_eq!(selectors(&keys.active(ask)).1, ["first"]);
        let sign = |selector| keys.sign(Algorithm::Ed25519Sha256, ask, selector, b"x");
        assert!(matches!(sign("first"), Answer::Signed(octets) if octets.len() == 64));
        assert_eq!(sign("other"), Answer::Refused(Reason::NoKey));
        // One that signs from tomorrow on does not sign today.
        store.add(&key("next", now() + DAY)).expect("written");
        keys.look();
        assert_eq!(selectors(&keys.active(ask)).1, ["first"]);
        assert_eq!(sign("next"), Answer::Refused(Reason::NoKey));
    }

    #[test]
    fn a_waiting_key_is_to_be_looked_up_and_signs_when_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = KeyStore::new(folder.path());
        let mut waits = key("next", now());
        let keep = Some(DAY);
        waits.waits = Some(Waiting { since: now(), keep });
        store.add(&key("first", now())).expect("written");
        store.add(&waits).expect("written");
        let keys = Keys::load(folder.path()).expect("read");
        let ask = "example.org";
        assert_eq!(selectors(&keys.active(ask)).1, ["first"]);
        let sign = |selector| keys.sign(Algorithm::Ed25519Sha256, ask, selector, b"x");
        assert_eq!(sign("next"), Answer::Refused(Reason::NoKey));
        let Answer::Waiting {
            count: 1,
            pause_ms: 0,
            key: Some(due),
        } = keys.waiting()
        else {
            panic!("expected a key that waits")
        };
        assert_eq!((due.selector.as_str(), due.looks), ("next", 0));
        assert_eq!(due.record, waits.record_text());
        let Answer::Waiting { key: None, .. } = keys.waiting() else {
            panic!("expected a pause")
        };
        assert_eq!(keys.seen(ask, "first"), Answer::Refused(Reason::NoKey));
        assert_eq!(keys.seen(ask, "next"), Answer::Activated);
        keys.look();
        assert!(matches!(sign("next"), Answer::Signed(_)));
        let none = Answer::Waiting {
            count: 0,
            pause_ms: 5_000,
            key: None,
        };
        assert_eq!(keys.waiting(), none);
        assert_eq!(keys.seen(ask, "next"), Answer::Refused(Reason::NoKey));
        let (all, _) = store.keys().expect("read");
        let first = all.iter().find(|key| key.selector == "first");
        assert!(first.is_some_and(|key| key.retire_at.is_some()));
    }

    #[test]
    fn an_answer_holds_until_the_next_change() {
        let entry = |from: u64| Entry {
            key: key("k", Timestamp::from_millis(from)),
            ready: OnceLock::new(),
        };
        let entries = [entry(1_000), entry(5_000)];
        let at = |now| active(&entries, Timestamp::from_millis(now));
        assert_eq!(selectors(&at(0)), (1_000, vec![]));
        assert_eq!(selectors(&at(2_000)), (3_000, vec!["k"]));
        assert_eq!(selectors(&at(5_000)), (10_000, vec!["k"]));
    }
}
