//! `vere dkim`: the keys that sign mail, and the DNS records of the keys.

use std::fmt::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Subcommand, ValueEnum};
use serde_json::json;
use vere_dkim::{KeyAlgorithm, KeyError, KeyStore, StoredKey};
use vere_settings::{Dkim, Settings};
use vere_units::{Span, Timestamp};

use vere_process::failure::Failure;

/// How long a new key waits while its record spreads, by default.
const ANNOUNCE: &str = "2d";
/// How long the record of an old key is to stay after its last signature: mail may be read late, and
/// forwarded later.
const KEEP: &str = "7d";
/// Size of an RSA key: a size that every receiver verifies, and that fits into the DNS (RFC 8301 section 3.2).
const RSA_BITS: usize = 2048;

/// Manage the keys that sign mail (DKIM).
#[derive(Debug, Subcommand)]
pub(crate) enum DkimCommand {
    /// Create keys for a domain without keys, and print their records.
    Keygen {
        /// The domain.
        domain: String,
        /// The algorithms of the keys; two signatures reach every verifier, those with Ed25519 included.
        #[arg(long, value_enum, default_value_t = Which::Both)]
        algorithm: Which,
        /// The size of an RSA key: 2048, 3072 or 4096.
        #[arg(long, default_value_t = RSA_BITS)]
        bits: usize,
        /// Wait this long before the keys sign, such as `2d`; by default the keys sign at once.
        #[arg(long, value_name = "SPAN")]
        after: Option<Span>,
    },
    /// Create the successors of a domain's keys, and remove expired keys.
    ///
    /// The output has the time from which the new keys sign, and the time until which the old records must remain.
    Rotate {
        /// The domain.
        domain: String,
        /// How long the new keys wait while their records spread.
        #[arg(long, value_name = "SPAN", default_value = ANNOUNCE)]
        after: Span,
        /// How long the old records stay after the new keys sign.
        #[arg(long, value_name = "SPAN", default_value = KEEP)]
        keep: Span,
        /// The size of an RSA key.
        #[arg(long, default_value_t = RSA_BITS)]
        bits: usize,
    },
    /// List keys with their present state.
    List {
        /// List only the keys of this domain.
        domain: Option<String>,
        /// Print JSON: a list of objects.
        #[arg(long)]
        json: bool,
    },
    /// Print the records that must be in the DNS now, as lines of a zone file.
    Dns {
        /// Print only the records of this domain.
        domain: Option<String>,
    },
    /// Remove a key at once, such as a stolen key.
    Remove {
        /// The domain of the key.
        domain: String,
        /// The selector of the key.
        selector: String,
    },
}

/// Algorithms of new keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    Rsa,
    Ed25519,
    Both,
}

impl Which {
    const fn algorithms(self) -> &'static [KeyAlgorithm] {
        match self {
            Self::Rsa => &[KeyAlgorithm::RsaSha256],
            Self::Ed25519 => &[KeyAlgorithm::Ed25519Sha256],
            Self::Both => &[KeyAlgorithm::RsaSha256, KeyAlgorithm::Ed25519Sha256],
        }
    }
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When the settings disable signatures, a key cannot be created or written, or no key exists.
pub(crate) fn run(command: &DkimCommand, settings: &Settings) -> Result<String, Failure> {
    let dkim: &Dkim = settings.dkim.as_ref().ok_or_else(|| {
        Failure::new("the settings have no [dkim]: add the section, then restart the system")
    })?;
    let keys = Keys {
        store: KeyStore::new(&dkim.keys),
        now: now(),
        // Only a running signer reads new keys; a signer that was not started since `[dkim]` was added does not.
        signs: UnixStream::connect(&dkim.socket).is_ok(),
    };
    match command {
        DkimCommand::Keygen {
            domain,
            algorithm,
            bits,
            after,
        } => keys.generate(&lower(domain), *algorithm, *bits, *after),
        DkimCommand::Rotate {
            domain,
            after,
            keep,
            bits,
        } => keys.rotate(&lower(domain), *after, *keep, *bits),
        DkimCommand::List { domain, json } => keys.list(domain.as_deref(), *json),
        DkimCommand::Dns { domain } => keys.dns(domain.as_deref()),
        DkimCommand::Remove { domain, selector } => keys.remove(&lower(domain), selector),
    }
}

/// The present and future keys of a domain; created where missing.
///
/// # Errors
/// As [`run`].
pub(super) fn ensure(settings: &Settings, domain: &str) -> Result<Vec<StoredKey>, Failure> {
    let dkim = settings.dkim.as_ref();
    let dkim = dkim.ok_or_else(|| Failure::new("the settings have no [dkim]"))?;
    let keys = Keys {
        store: KeyStore::new(&dkim.keys),
        now: now(),
        signs: false,
    };
    let domain = lower(domain);
    let mut there = keys.of(Some(&domain))?;
    there.retain(|key| !key.is_retired(keys.now));
    if there.is_empty() {
        there = keys.make(&domain, Which::Both.algorithms(), RSA_BITS, keys.now)?;
    }
    Ok(there)
}

fn lower(domain: &str) -> String {
    domain.trim_end_matches('.').to_ascii_lowercase()
}

struct Keys {
    store: KeyStore,
    now: Timestamp,
    /// Whether a signer runs.
    signs: bool,
}

impl Keys {
    fn of(&self, domain: Option<&str>) -> Result<Vec<StoredKey>, Failure> {
        let (mut keys, wrong) = self.store.keys()?;
        if let Some(error) = wrong.into_iter().next() {
            return Err(error.into());
        }
        if let Some(domain) = domain.map(lower) {
            keys.retain(|key| key.domain == domain);
        }
        Ok(keys)
    }

    fn generate(
        &self,
        domain: &str,
        which: Which,
        bits: usize,
        after: Option<Span>,
    ) -> Result<String, Failure> {
        if self
            .of(Some(domain))?
            .iter()
            .any(|key| !key.is_retired(self.now))
        {
            let text =
                format!("{domain} has keys; `vere dkim rotate {domain}` makes their successors");
            return Err(Failure::new(text));
        }
        let from = after.map_or(self.now, |after| self.now + after.duration());
        let made = self.make(domain, which.algorithms(), bits, from)?;
        Ok(announcement(&made, from, self.now, self.signs))
    }

    /// Creates keys under the first free selectors of the day.
    fn make(
        &self,
        domain: &str,
        algorithms: &[KeyAlgorithm],
        bits: usize,
        from: Timestamp,
    ) -> Result<Vec<StoredKey>, Failure> {
        let mut made = Vec::new();
        for &algorithm in algorithms {
            let letter = match algorithm {
                KeyAlgorithm::RsaSha256 => 'r',
                KeyAlgorithm::Ed25519Sha256 => 'e',
            };
            let day: String = self
                .now
                .to_string()
                .chars()
                .filter(char::is_ascii_digit)
                .take(8)
                .collect();
            let mut key = StoredKey::generate(
                domain,
                &format!("{day}{letter}"),
                algorithm,
                bits,
                self.now,
                from,
            )?;
            let mut count = 1;
            loop {
                match self.store.add(&key) {
                    Err(KeyError::Exists(_)) => {
                        count += 1;
                        key.selector = format!("{day}{letter}{count}");
                    }
                    done => break done?,
                }
            }
            made.push(key);
        }
        Ok(made)
    }

    fn rotate(
        &self,
        domain: &str,
        after: Span,
        keep: Span,
        bits: usize,
    ) -> Result<String, Failure> {
        let mut old = self.of(Some(domain))?;
        let mut out = String::new();
        for key in old.extract_if(.., |key| key.is_retired(self.now)) {
            self.store.remove(&key)?;
            let _ = writeln!(out, "removed {}: its record may go too", key.record_name());
        }
        if let Some(next) = old.iter().find(|key| key.active_from > self.now) {
            let text = format!(
                "{} is to sign from {} on: rotate again when it does",
                next.record_name(),
                next.active_from
            );
            return Err(Failure::new(text));
        }
        let mut algorithms: Vec<_> = old.iter().map(|key| key.algorithm).collect();
        algorithms.sort();
        algorithms.dedup();
        if algorithms.is_empty() {
            return Err(Failure::new(format!(
                "{domain} has no keys; `vere dkim keygen {domain}`"
            )));
        }
        let from = self.now + after.duration();
        // The successors first: after a crash in between, the old keys go on signing.
        let made = self.make(domain, &algorithms, bits, from)?;
        for mut key in old {
            if key.retire_at.is_none() {
                key.retire_at = Some(from + keep.duration());
                self.store.write(&key)?;
                let _ = writeln!(
                    out,
                    "{} signs until {from}; keep its record until {}",
                    key.record_name(),
                    from + keep.duration()
                );
            }
        }
        Ok(out + &announcement(&made, from, self.now, self.signs))
    }

    fn list(&self, domain: Option<&str>, json: bool) -> Result<String, Failure> {
        let keys = self.of(domain)?;
        let signing = |key: &StoredKey| {
            vere_dkim::store::signing(&keys, &key.domain, self.now)
                .iter()
                .any(|one| one.selector == key.selector)
        };
        let state = |key: &StoredKey| match key {
            key if signing(key) => "signs",
            key if key.active_from > self.now => "waits",
            key if key.is_retired(self.now) => "retired",
            _ => "replaced",
        };
        if json {
            let rows: Vec<_> = keys
                .iter()
                .map(|key| {
                    json!({
                        "domain": key.domain,
                        "selector": key.selector,
                        "algorithm": key.algorithm.name(),
                        "state": state(key),
                        "created": key.created.to_string(),
                        "active_from": key.active_from.to_string(),
                        "retire_at": key.retire_at.map(|time| time.to_string()),
                        "record_name": key.record_name(),
                        "record_text": key.record_text(),
                    })
                })
                .collect();
            return Ok(format!("{:#}\n", serde_json::Value::from(rows)));
        }
        if keys.is_empty() {
            return Ok("no keys\n".to_owned());
        }
        let mut out = format!(
            "{:<28} {:<14} {:<15} {:<9} {:<25} {}\n",
            "DOMAIN", "SELECTOR", "ALGORITHM", "STATE", "SIGNS FROM", "RECORD NEEDED UNTIL"
        );
        for key in &keys {
            let until = key.retire_at.map(|time| time.to_string());
            let _ = writeln!(
                out,
                "{:<28} {:<14} {:<15} {:<9} {:<25} {}",
                key.domain,
                key.selector,
                key.algorithm.name(),
                state(key),
                key.active_from.to_string(),
                until.as_deref().unwrap_or("-")
            );
        }
        Ok(out)
    }

    fn dns(&self, domain: Option<&str>) -> Result<String, Failure> {
        let keys = self.of(domain)?;
        let needed = keys.iter().filter(|key| !key.is_retired(self.now));
        Ok(needed.map(|key| key.zone_line() + "\n").collect())
    }

    fn remove(&self, domain: &str, selector: &str) -> Result<String, Failure> {
        let keys = self.of(Some(domain))?;
        let key = keys.iter().find(|key| key.selector == selector);
        let key = key.ok_or_else(|| Failure::new(format!("{domain} has no key {selector}")))?;
        self.store.remove(key)?;
        let mut text = format!(
            "removed; it signs no more within seconds. Empty its record, so that nobody believes it:\n\
             {}. IN TXT \"v=DKIM1; p=\"\n",
            key.record_name()
        );
        let left = self.of(Some(domain))?;
        if vere_dkim::store::signing(&left, domain, self.now).is_empty() {
            let _ = writeln!(
                text,
                "nothing signs the mail of {domain} now; new keys: vere dkim keygen {domain}"
            );
        }
        Ok(text)
    }
}

fn announcement(made: &[StoredKey], from: Timestamp, now: Timestamp, signs: bool) -> String {
    let mut out = if from <= now && !signs {
        "no signer runs: the keys sign once the system is started; put these records into the DNS before:\n"
            .to_owned()
    } else if from <= now {
        "the keys sign within seconds; put these records into the DNS:\n".to_owned()
    } else {
        format!("put these records into the DNS now; the keys sign from {from} on:\n")
    };
    for key in made {
        out += &key.zone_line();
        out.push('\n');
    }
    out
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    Timestamp::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
