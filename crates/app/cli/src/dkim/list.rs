//! `vere dkim list`: the keys with their present state.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::json;
use vere_dkim::StoredKey;
use vere_health::signing::Unused;
use vere_units::Timestamp;

use super::records::Look;

/// Keys, and the records of keys that wait.
#[derive(Debug)]
pub(super) struct List<'a> {
    pub(super) keys: &'a [StoredKey],
    /// By the names of the records.
    pub(super) looks: &'a HashMap<String, Look>,
    /// Keys expected to sign, and unused, by domain and selector.
    pub(super) unused: &'a HashMap<(String, String), Unused>,
    pub(super) now: Timestamp,
}

impl List<'_> {
    fn state(&self, key: &StoredKey) -> &'static str {
        let signing = vere_dkim::store::signing(self.keys, &key.domain, self.now);
        match key {
            key if self.unused_for(key).is_some() => "ready",
            key if signing.iter().any(|one| one.selector == key.selector) => "signs",
            key if key.is_retired(self.now) => "retired",
            key if key.is_to_come(self.now) => "waits",
            _ => "replaced",
        }
    }

    fn unused_for(&self, key: &StoredKey) -> Option<Unused> {
        let name = (key.domain.clone(), key.selector.clone());
        self.unused.get(&name).copied()
    }

    /// Why a key waits, or does not sign.
    fn why(&self, key: &StoredKey) -> Option<String> {
        if !key.is_to_come(self.now) {
            return self.unused_for(key).map(|why| match why {
                Unused::NoSigner => {
                    "no signer runs, and the key signs once the system runs".to_owned()
                }
                Unused::Unknown => {
                    "the running signer does not have the key, see its log".to_owned()
                }
            });
        }
        let time = (key.active_from > self.now).then(|| format!("signs from {}", key.active_from));
        let record = key.waits.map(|waits| {
            let look = self.looks.get(&key.record_name());
            match look {
                Some(look) if look.is_seen => {
                    "its record is in the DNS: it signs once the running system has looked"
                        .to_owned()
                }
                Some(look) => format!("the name {}, since {}", look.text, waits.since),
                None => format!("for its record, since {}", waits.since),
            }
        });
        Some(
            [record, time]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; "),
        )
    }

    pub(super) fn json(&self) -> String {
        let row = |key: &StoredKey| {
            json!({
                "domain": key.domain,
                "selector": key.selector,
                "algorithm": key.algorithm.name(),
                "state": self.state(key),
                "why": self.why(key),
                "created": key.created.to_string(),
                "waiting_since": key.waits.map(|waits| waits.since.to_string()),
                "active_from": key.active_from.to_string(),
                "retire_at": key.retire_at.map(|time| time.to_string()),
                "record_name": key.record_name(),
                "record_text": key.record_text(),
            })
        };
        let rows: Vec<_> = self.keys.iter().map(row).collect();
        format!("{:#}\n", serde_json::Value::from(rows))
    }

    pub(super) fn text(&self) -> String {
        if self.keys.is_empty() {
            return "no keys\n".to_owned();
        }
        let mut out = format!(
            "{:<28} {:<14} {:<15} {:<9} {:<25} {}\n",
            "DOMAIN", "SELECTOR", "ALGORITHM", "STATE", "SIGNS FROM", "RECORD NEEDED UNTIL"
        );
        for key in self.keys {
            let until = key.retire_at.map(|time| time.to_string());
            let from = match key.waits {
                Some(_) if key.active_from <= self.now => "its record is seen".to_owned(),
                _ => key.active_from.to_string(),
            };
            let _ = writeln!(
                out,
                "{:<28} {:<14} {:<15} {:<9} {from:<25} {}",
                key.domain,
                key.selector,
                key.algorithm.name(),
                self.state(key),
                until.as_deref().unwrap_or("-")
            );
        }
        for key in self.keys {
            if let Some(why) = self.why(key) {
                let state = self.state(key);
                let _ = writeln!(out, "{} {}: {why}", key.record_name(), state_verb(state));
            }
        }
        out
    }
}

/// The state of a key as the predicate of a sentence.
fn state_verb(state: &str) -> &str {
    match state {
        "ready" => "does not sign",
        state => state,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use vere_dkim::{KeyAlgorithm, Waiting};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    fn key(selector: &str, waits: bool) -> StoredKey {
        let algorithm = KeyAlgorithm::Ed25519Sha256;
        let key = StoredKey::generate("example.org", selector, algorithm, 0, NOW, NOW);
        let mut key = key.expect("a key");
        let (since, keep) = (NOW, None);
        key.waits = waits.then_some(Waiting { since, keep });
        key
    }

    #[test]
    fn a_waiting_key_says_why() {
        let mut later = key("later", true);
        later.active_from = NOW + Duration::from_secs(3600);
        let keys = [key("now", false), key("next", true), later];
        let missing = Look {
            is_seen: false,
            text: "has no record".to_owned(),
        };
        let looks = HashMap::from([("next._domainkey.example.org".to_owned(), missing)]);
        let list = List {
            keys: &keys,
            looks: &looks,
            unused: &HashMap::new(),
            now: NOW,
        };
        let states: Vec<_> = keys.iter().map(|key| list.state(key)).collect();
        assert_eq!(states, ["signs", "waits", "waits"]);
        let text = list.text();
        for words in [
            "next._domainkey.example.org waits: the name has no record, since 2026-01-01T00:00:00",
            "later._domainkey.example.org waits: for its record, since 2026-01-01T00:00:00",
            "; signs from 2026-01-01T01:00:00",
            "its record is seen",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert!(!text.contains("now._domainkey"), "{text}");
    }

    /// A key was said to sign by the file alone.
    #[test]
    fn a_key_that_the_signer_does_not_have_is_ready() {
        let keys = [key("now", false), key("other", false)];
        let unused = HashMap::from([(
            ("example.org".to_owned(), "now".to_owned()),
            Unused::NoSigner,
        )]);
        let list = List {
            keys: &keys[..1],
            looks: &HashMap::new(),
            unused: &unused,
            now: NOW,
        };
        assert_eq!(list.state(&keys[0]), "ready");
        let text = list.text();
        let said = "now._domainkey.example.org does not sign: no signer runs";
        assert!(text.contains(said), "{text}");
    }
}
