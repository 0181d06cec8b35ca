//! MTA-STS (RFC 8461): the requirements of a domain for connections to its mail exchangers, announced by a
//! DNS record, fetched over HTTPS, and kept over restarts.
//!
//! [`Sts::policy`] returns the policy that applies to a domain now: a fetched policy is not fetched again
//! while the DNS record has the same identifier, and applies while no lookup succeeds. The caller applies
//! the policy to a connection.
//!
//! Reports to the domain (RFC 8460) are the matter of the caller.

mod cache;
mod fetch;
mod policy;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cache::Cache;
pub use cache::Held;
pub use fetch::FetchError;
pub use policy::{MAX_AGE_MAX, Mode, POLICY_OCTETS_MAX, Policy, PolicyError, record_id};

use crate::resolver::{Resolver, TxtAnswer};
use crate::tls::ClientTls;

/// The port of policy hosts.
pub const HTTPS_PORT: u16 = 443;
/// After a failure a domain's policy host is left alone for this long (RFC 8461 section 3.3).
const FAILURE_PAUSE: Duration = Duration::from_secs(5 * 60);
/// A policy is fetched again at this age, or after half of its lifetime, so that the policy does not
/// expire while the domain is under attack (RFC 8461 section 10.2).
const REFRESH_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Failures remembered at once.
const FAILURES_MAX: usize = 10_000;

/// How a domain's policy was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StsAnswer {
    /// It has none.
    None,
    /// The policy cannot be fetched, and no earlier policy is known: mail is sent as without a policy.
    Unavailable(FetchError),
    /// This one holds.
    Policy(Arc<Held>),
}

/// Finds and keeps policies; clones share the policies.
#[derive(Clone)]
pub struct Sts {
    shared: Arc<Shared>,
}

struct Shared {
    resolver: Resolver,
    /// The client and the port of policy hosts.
    https: Mutex<(ClientTls, u16)>,
    cache: Mutex<Cache>,
    failures: Mutex<HashMap<String, (u64, FetchError)>>,
    fetching: tokio::sync::Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl fmt::Debug for Sts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sts").finish_non_exhaustive()
    }
}

impl Sts {
    /// Finds policies with `resolver`, authenticates policy hosts by `https`, which must refuse invalid
    /// certificates, and keeps policies in memory.
    #[must_use]
    pub fn in_memory(resolver: Resolver, https: ClientTls, port: u16) -> Self {
        Self::with_cache(resolver, https, port, Cache::in_memory())
    }

    /// As `in_memory`, with policies kept in a file, created if missing.
    ///
    /// # Errors
    /// The file cannot be read or written, or was written by a newer program.
    pub fn open(resolver: Resolver, https: ClientTls, port: u16, path: &Path) -> io::Result<Self> {
        let cache = Cache::open(path, now_ms())?;
        Ok(Self::with_cache(resolver, https, port, cache))
    }

    fn with_cache(resolver: Resolver, https: ClientTls, port: u16, cache: Cache) -> Self {
        Self {
            shared: Arc::new(Shared {
                resolver,
                https: Mutex::new((https, port)),
                cache: Mutex::new(cache),
                failures: Mutex::default(),
                fetching: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Asks policy hosts by another client, at another port, from now on.
    pub fn set_https(&self, https: ClientTls, port: u16) {
        *lock(&self.shared.https) = (https, port);
    }

    /// The policy that applies to a domain (RFC 8461 sections 3.1, 3.3 and 5.1).
    pub async fn policy(&self, domain: &str) -> StsAnswer {
        let domain = domain
            .strip_suffix('.')
            .unwrap_or(domain)
            .to_ascii_lowercase();
        let known = lock(&self.shared.cache).get(&domain);
        let known = known.filter(|held| held.is_live(now_ms()));
        let texts = match self
            .shared
            .resolver
            .txt(&format!("_mta-sts.{domain}"))
            .await
        {
            TxtAnswer::Found(texts) => texts,
            _ => Vec::new(),
        };
        let found = match (record_id(&texts), known) {
            // Section 5.1: what is known holds, whatever the name servers say or do not say.
            (None, Some(known)) => Some(known),
            (Some(id), Some(known)) if known.id == id => {
                if self.is_due(&known) {
                    let (sts, domain) = (self.clone(), domain.clone());
                    tokio::spawn(async move { sts.fetch(&domain, &id, true).await });
                }
                Some(known)
            }
            (Some(id), known) => match (self.fetch(&domain, &id, false).await, known) {
                (Ok(fetched), _) => Some(fetched),
                (Err(_), Some(known)) => Some(known),
                (Err(error), None) => return StsAnswer::Unavailable(error),
            },
            (None, None) => None,
        };
        match found {
            Some(held) if held.policy.mode != Mode::None => StsAnswer::Policy(held),
            _ => StsAnswer::None,
        }
    }

    /// Fetches the policy of a domain now, whether or not a record announces the policy. Nothing is kept.
    ///
    /// # Errors
    /// The reason why there is no policy.
    pub async fn fetched(&self, domain: &str) -> Result<Policy, FetchError> {
        let (https, port) = lock(&self.shared.https).clone();
        fetch::fetch(&self.shared.resolver, &https, domain, port).await
    }

    /// Fetches policies again before they expire, also of domains without mail at the moment; to be called
    /// every hour or so.
    pub async fn refresh(&self) {
        let due: Vec<(String, String)> = {
            let cache = lock(&self.shared.cache);
            let now = now_ms();
            let live = cache.iter().filter(|(_, held)| held.is_live(now));
            live.filter(|(_, held)| self.is_due(held))
                .map(|(domain, held)| (domain.clone(), held.id.clone()))
                .collect()
        };
        for (domain, id) in due {
            // A failure is remembered and tried again the next time.
            let _ = self.fetch(&domain, &id, true).await;
        }
    }

    fn is_due(&self, held: &Held) -> bool {
        let age = Duration::from_millis(now_ms().saturating_sub(held.fetched_ms));
        age >= REFRESH_AGE.min(held.policy.max_age / 2)
    }

    /// Fetches and keeps a domain's policy, once for all concurrent callers.
    async fn fetch(&self, domain: &str, id: &str, again: bool) -> Result<Arc<Held>, FetchError> {
        let turn = {
            let mut fetching = self.shared.fetching.lock().await;
            fetching.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(fetching.entry(domain.to_owned()).or_default())
        };
        let begun = now_ms();
        let _turn = turn.lock().await;
        let known = lock(&self.shared.cache).get(domain);
        let fresh = known.filter(|held| held.id == id && (!again || held.fetched_ms > begun));
        if let Some(held) = fresh.filter(|held| held.is_live(now_ms())) {
            return Ok(held);
        }
        if let Some(error) = self.failed_lately(domain) {
            return Err(error);
        }
        let (https, port) = lock(&self.shared.https).clone();
        match fetch::fetch(&self.shared.resolver, &https, domain, port).await {
            Ok(policy) => {
                tracing::info!(
                    domain,
                    mode = policy.mode.as_str(),
                    "MTA-STS policy fetched"
                );
                lock(&self.shared.failures).remove(domain);
                let held = Held {
                    id: id.to_owned(),
                    fetched_ms: now_ms(),
                    policy,
                };
                Ok(self.keep(domain.to_owned(), held).await)
            }
            Err(error) => {
                tracing::warn!(domain, %error, "MTA-STS policy cannot be fetched");
                self.remember_failure(domain, &error);
                Err(error)
            }
        }
    }

    /// Puts a policy into the cache; the file is written on a thread that may wait.
    async fn keep(&self, domain: String, held: Held) -> Arc<Held> {
        let shared = Arc::clone(&self.shared);
        let kept = Arc::new(held.clone());
        let writing = tokio::task::spawn_blocking(move || {
            let written = lock(&shared.cache).put(&domain, held, now_ms());
            if let Err(error) = written {
                tracing::error!(%error, "MTA-STS policies cannot be written");
            }
        });
        // The task fails only when the process ends.
        let _ = writing.await;
        kept
    }

    fn failed_lately(&self, domain: &str) -> Option<FetchError> {
        let failures = lock(&self.shared.failures);
        let (until, error) = failures.get(domain)?;
        (now_ms() < *until).then(|| error.clone())
    }

    fn remember_failure(&self, domain: &str, error: &FetchError) {
        let mut failures = lock(&self.shared.failures);
        let now = now_ms();
        if failures.len() >= FAILURES_MAX {
            failures.retain(|_, (until, _)| *until > now);
        }
        if failures.len() < FAILURES_MAX {
            let pause = u64::try_from(FAILURE_PAUSE.as_millis()).unwrap_or(u64::MAX);
            failures.insert(domain.to_owned(), (now + pause, error.clone()));
        }
    }
}

/// A lock that a panic elsewhere left is as good as another: no change is left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
