//! `vere dkim`: the keys that sign mail, and the DNS records of the keys.
//!
//! A new key waits until its record is seen in the DNS (`vere_dkim::waiting`), however the key is made; `--after` is the
//! least wait.

mod activate;
mod list;
mod records;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Subcommand, ValueEnum};
use vere_dkim::{KeyAlgorithm, KeyError, KeyStore, StoredKey, Waiting};
use vere_health::signing::Signing;
use vere_settings::{Dkim, Settings};
use vere_units::{Span, Timestamp};

use vere_process::failure::Failure;
use vere_process::outcome::Outcome;

use activate::Wanted;
use list::List;

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
    ///
    /// The keys sign once their records are seen in the DNS: the running system looks for the records by itself.
    Keygen {
        /// The domain.
        domain: String,
        /// The algorithms of the keys; two signatures reach every verifier, those with Ed25519 included.
        #[arg(long, value_enum, default_value_t = Which::Both)]
        algorithm: Which,
        /// The size of an RSA key: 2048, 3072 or 4096.
        #[arg(long, default_value_t = RSA_BITS)]
        bits: usize,
        /// Wait at least this long before the keys sign, such as `2d`.
        #[arg(long, value_name = "SPAN")]
        after: Option<Span>,
    },
    /// Create the successors of a domain's keys, and remove expired keys.
    ///
    /// The new keys sign once their records are seen in the DNS and `--after` is over; until then the old keys sign. `vere
    /// dkim list` has the time until which the old records must remain.
    Rotate {
        /// The domain.
        domain: String,
        /// How long the new keys wait at least while their records spread.
        #[arg(long, value_name = "SPAN", default_value = ANNOUNCE)]
        after: Span,
        /// How long the old records stay after the new keys sign.
        #[arg(long, value_name = "SPAN", default_value = KEEP)]
        keep: Span,
        /// The size of an RSA key.
        #[arg(long, default_value_t = RSA_BITS)]
        bits: usize,
    },
    /// Let waiting keys sign now, before the running system has seen their records.
    ///
    /// Looks up each record first. Exit code 3: a record is not in the DNS, and its key still waits.
    Activate {
        /// Only keys of this domain; by default the keys of every domain.
        domain: Option<String>,
        /// Only the key with this selector.
        #[arg(long)]
        selector: Option<String>,
        /// Sign also with keys whose record is not seen: receivers cannot verify these signatures.
        #[arg(long)]
        force: bool,
    },
    /// List keys with their present state, and why waiting keys wait.
    List {
        /// List only the keys of this domain.
        domain: Option<String>,
        /// Print JSON: a list of objects with `domain`, `selector`, `algorithm`, `state`, `why`, `created`,
        /// `waiting_since`, `active_from`, `retire_at`, `record_name` and `record_text`.
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
pub(crate) fn run(command: &DkimCommand, settings: &Settings) -> Result<Outcome, Failure> {
    let dkim: &Dkim = settings.dkim.as_ref().ok_or_else(|| {
        Failure::new("the settings have no [dkim]: add the section, then restart the system")
    })?;
    let signing = Signing::of(dkim)?;
    let keys = Keys {
        store: KeyStore::new(&dkim.keys),
        now: now(),
        // Only a running signer reads new keys; a signer that was not started since `[dkim]` was added does not.
        signs: signing.runs(),
    };
    let text = match command {
        DkimCommand::Keygen {
            domain,
            algorithm,
            bits,
            after,
        } => keys.generate(&lower(domain), *algorithm, *bits, *after)?,
        DkimCommand::Rotate {
            domain,
            after,
            keep,
            bits,
        } => keys.rotate(&lower(domain), *after, *keep, *bits)?,
        DkimCommand::Activate {
            domain,
            selector,
            force,
        } => {
            let domain = domain.as_deref().map(lower);
            let wanted = Wanted {
                domain: domain.as_deref(),
                selector: selector.as_deref(),
                force: *force,
            };
            return activate::run(&wanted, &signing, &keys.store, settings, keys.now);
        }
        DkimCommand::List { domain, json } => {
            keys.list(domain.as_deref(), *json, settings, signing)?
        }
        DkimCommand::Dns { domain } => keys.dns(domain.as_deref())?,
        DkimCommand::Remove { domain, selector } => keys.remove(&lower(domain), selector)?,
    };
    Ok(Outcome::Print(text))
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
        let new = New::from(keys.now, None, keys.now);
        there = keys.make(&domain, Which::Both.algorithms(), RSA_BITS, new)?;
    }
    Ok(there)
}

fn lower(domain: &str) -> String {
    domain.trim_end_matches('.').to_ascii_lowercase()
}

/// When new keys sign.
#[derive(Debug, Clone, Copy)]
struct New {
    /// The earliest time.
    from: Timestamp,
    waits: Waiting,
}

impl New {
    /// Keys that wait for their records, at least until `from`. `keep`: how long the records of predecessors stay.
    fn from(from: Timestamp, keep: Option<Span>, now: Timestamp) -> Self {
        let keep = keep.map(Span::duration);
        let waits = Waiting { since: now, keep };
        Self { from, waits }
    }
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
        let new = New::from(from, None, self.now);
        let made = self.make(domain, which.algorithms(), bits, new)?;
        Ok(announcement(&made, from, self.now, self.signs))
    }

    /// Creates keys under the first free selectors of the day.
    fn make(
        &self,
        domain: &str,
        algorithms: &[KeyAlgorithm],
        bits: usize,
        new: New,
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
                new.from,
            )?;
            key.waits = Some(new.waits);
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
        if let Some(next) = old.iter().find(|key| key.is_to_come(self.now)) {
            let text = format!(
                "{} is to sign next: rotate again when it does (vere dkim list)",
                next.record_name()
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
        // The end of the old keys is set when their successors sign: a record that never comes stops no signing.
        let new = New::from(from, Some(keep), self.now);
        let made = self.make(domain, &algorithms, bits, new)?;
        for key in old.iter().filter(|key| key.retire_at.is_none()) {
            let _ = writeln!(
                out,
                "{} signs until then; keep its record for {keep} after that",
                key.record_name()
            );
        }
        Ok(announcement(&made, from, self.now, self.signs) + &out)
    }

    fn list(
        &self,
        domain: Option<&str>,
        json: bool,
        settings: &Settings,
        mut signing: Signing,
    ) -> Result<String, Failure> {
        let domain = domain.map(lower);
        let mut keys = signing.keys.clone();
        keys.retain(|key| domain.as_ref().is_none_or(|domain| key.domain == *domain));
        let waiting: Vec<_> = keys.iter().filter(|key| key.waits.is_some()).collect();
        let looks = records::look_up(settings, &waiting)?;
        let domains: BTreeSet<&str> = keys.iter().map(|key| key.domain.as_str()).collect();
        let mut unused = HashMap::new();
        for domain in domains {
            for (selector, why) in signing.unused(domain, self.now) {
                unused.insert((domain.to_owned(), selector), why);
            }
        }
        let list = List {
            keys: &keys,
            looks: &looks,
            unused: &unused,
            now: self.now,
        };
        Ok(match json {
            true => list.json(),
            false => list.text() + &aside(&signing, domain.as_deref(), self.now),
        })
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

/// What `vere dkim list` says beside the keys: a signing parent domain, and unreadable keys.
fn aside(signing: &Signing, domain: Option<&str>, now: Timestamp) -> String {
    let mut out = String::new();
    if let Some(domain) = domain
        && let Some(parent) = signing.signing_domain(domain, now)
        && parent != domain
    {
        let _ = writeln!(
            out,
            "the keys of {parent} sign the mail of {domain}: vere dkim list {parent}"
        );
    }
    out + &left_out(signing)
}

/// Unreadable keys, a line each.
fn left_out(signing: &Signing) -> String {
    let wrong = signing.wrong.iter();
    wrong
        .map(|error| format!("a key cannot be read, and signs nothing: {error}\n"))
        .collect()
}

fn announcement(made: &[StoredKey], from: Timestamp, now: Timestamp, signs: bool) -> String {
    let domain = made.first().map_or("", |key| key.domain.as_str());
    let mut out = if signs {
        format!(
            "put these records into the DNS; the keys sign once the records are seen there, or by: vere dkim activate {domain}\n"
        )
    } else {
        "put these records into the DNS; no signer runs: the keys sign once the system runs and the records are seen\n"
            .to_owned()
    };
    if from > now {
        let _ = writeln!(out, "the keys sign from {from} on at the earliest:");
    }
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
