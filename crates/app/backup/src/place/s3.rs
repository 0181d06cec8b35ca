//! A prefix of an S3 bucket as a place for backups.
//!
//! A PUT is atomic, and a finished one is safe, so that nothing has to be settled. The lists and the description are
//! written by conditional PUTs (`If-None-Match: *`), which fail if another command was faster. [`lease`] stands in for
//! the lock of a directory. Commands that only read take no lease: a prune beside a restore of an old backup makes the
//! restore fail, and costs no content that a list has.

mod exchange;
mod lease;

use std::any::Any;
use std::cell::RefCell;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore as _, ObjectStoreExt as _, PutMode, RetryConfig};
use tokio::runtime::{Builder, Runtime};
use vere_process::failure::Failure;
use vere_units::Span;

use super::{Entry, Place, Use};
use exchange::{Exchanges, failed};
use lease::{Lease, Terms, Valid};

/// The beginning of the name of such a place.
pub(crate) const SCHEME: &str = "s3://";
/// Variables of the environment; each shows where credentials come from.
const CREDENTIALS: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_METADATA_ENDPOINT",
    "AWS_SKIP_SIGNATURE",
];
/// The variable of the environment with the time for an answer, and the bounds: [`Terms`] counts on the longest time.
const TIMEOUT: &str = "VERE_BACKUP_TIMEOUT";
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
const TIMEOUT_MIN: Duration = Duration::from_secs(1);
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// How often a failed request is sent again, and the longest time from the first to the last request, in times for an
/// answer.
const RETRIES: usize = 6;
const RETRY_TIMES: u32 = 4;

/// How long a server is waited for.
struct Waits {
    /// For an answer, beside the time for the octets.
    answer: Duration,
    retry: RetryConfig,
    terms: Terms,
}

/// A prefix of a bucket.
pub(crate) struct Bucket {
    name: String,
    root: Path,
    store: Arc<AmazonS3>,
    /// The store of the lease: failures show before the lease ends.
    impatient: Arc<AmazonS3>,
    /// As `impatient`, for removals: a request sent again for longer arrives behind a take-over of the lease.
    brief: AmazonS3,
    runtime: Runtime,
    terms: Terms,
    /// The lease of this command, once taken.
    valid: RefCell<Option<Valid>>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Bucket {
    /// Opens `s3://BUCKET/PREFIX`. Credentials, region and endpoint come from the environment (`AWS_*`), and the time for
    /// an answer (`VERE_BACKUP_TIMEOUT`).
    ///
    /// # Errors
    /// When the name is none, or the environment lacks credentials or has another time.
    pub(crate) fn open(text: &str) -> Result<Self, Failure> {
        if CREDENTIALS.iter().all(|name| env::var_os(name).is_none()) {
            return Err(Failure::new(format!(
                "{text}: expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment; found neither"
            )));
        }
        let answer = timeout(env::var_os(TIMEOUT).as_deref())?;
        let waits = Waits {
            answer,
            retry: retries(RETRIES, answer * RETRY_TIMES),
            terms: Terms::DEFAULT,
        };
        Self::with(text, AmazonS3Builder::from_env(), waits)
    }

    fn with(text: &str, builder: AmazonS3Builder, waits: Waits) -> Result<Self, Failure> {
        let expected = || {
            Failure::new(format!(
                "{text}: expected s3://BUCKET/PREFIX, without credentials"
            ))
        };
        let below = text.strip_prefix(SCHEME).ok_or_else(expected)?;
        let (bucket, prefix) = below.split_once('/').unwrap_or((below, ""));
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
        if bucket.is_empty() || !bucket.chars().all(is_plain) {
            return Err(expected());
        }
        let root = Path::parse(prefix.trim_end_matches('/'))?;
        let builder = builder
            .with_bucket_name(bucket)
            .with_allow_http(true)
            // Entries are removed one at a time; not every server knows the request for several.
            .with_disable_bulk_delete(true)
            .with_http_connector(Exchanges::new(
                env::var_os("AWS_CA_BUNDLE").as_deref(),
                waits.answer,
            )?);
        let impatient = builder.clone().with_retry(retries(1, waits.terms.renew));
        Ok(Self {
            name: text.trim_end_matches('/').to_owned(),
            root,
            store: Arc::new(builder.with_retry(waits.retry).build()?),
            brief: impatient.clone().build()?,
            impatient: Arc::new(impatient.build()?),
            runtime: Builder::new_current_thread().enable_all().build()?,
            terms: waits.terms,
            valid: RefCell::default(),
        })
    }

    fn path(&self, below: &str) -> Path {
        let parts = self.root.parts().map(|part| part.as_ref().to_owned());
        let below = below.split('/').map(str::to_owned);
        Path::from_iter(parts.chain(below))
    }

    async fn get(&self, path: &Path, max: u64) -> io::Result<Vec<u8>> {
        let found = self.store.get(path).await.map_err(failed)?;
        if found.meta.size > max {
            let expected = format!("expected at most {max} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, expected));
        }
        Ok(found.bytes().await.map_err(failed)?.into())
    }

    /// # Errors
    /// When the lease of this command has ended.
    fn check(&self) -> io::Result<()> {
        match &*self.valid.borrow() {
            Some(valid) => valid.check(),
            None => Ok(()),
        }
    }

    async fn create_once(&self, path: &Path, octets: &[u8]) -> io::Result<()> {
        let put = self
            .store
            .put_opts(path, octets.to_vec().into(), PutMode::Create.into());
        let Err(error) = put.await else {
            return Ok(());
        };
        // The answer to an earlier attempt may have been lost.
        match self.get(path, octets.len() as u64).await {
            Ok(there) if there == octets => Ok(()),
            _ => Err(failed(error)),
        }
    }

    /// Removes an entry, if present, as long as the lease lasts.
    async fn remove_once(&self, path: &Path) -> io::Result<()> {
        let mut left = RETRIES;
        loop {
            self.check()?;
            match self.brief.delete(path).await.map_err(failed) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind() == ErrorKind::NotConnected && left > 0 => left -= 1,
                removed => return removed,
            }
            tokio::time::sleep(self.terms.look).await;
        }
    }
}

/// The time for an answer, as the environment has it.
fn timeout(given: Option<&OsStr>) -> Result<Duration, Failure> {
    let Some(given) = given.filter(|given| !given.is_empty()) else {
        return Ok(TIMEOUT_DEFAULT);
    };
    let span = given.to_str().and_then(|text| text.parse::<Span>().ok());
    let span = span.map(Span::duration);
    span.filter(|span| (TIMEOUT_MIN..=TIMEOUT_MAX).contains(span))
        .ok_or_else(|| {
            Failure::new(format!(
                "{TIMEOUT}: expected a time from 1s to 60s, such as 30s; found {given:?}"
            ))
        })
}

fn retries(max_retries: usize, retry_timeout: Duration) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries,
        retry_timeout,
    }
}

impl Place for Bucket {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn lock(&self, usage: Use) -> io::Result<Box<dyn Any>> {
        if usage == Use::Reading {
            return Ok(Box::new(()));
        }
        let store = Arc::clone(&self.impatient);
        let lease = Lease::take(store, self.path("lock"), self.terms)?;
        self.valid.replace(Some(lease.valid()));
        Ok(Box::new(lease))
    }

    fn read(&self, path: &str, max: u64) -> io::Result<Vec<u8>> {
        self.runtime.block_on(self.get(&self.path(path), max))
    }

    fn write(&self, path: &str, octets: &[u8]) -> io::Result<()> {
        let put = async {
            self.store
                .put(&self.path(path), octets.to_vec().into())
                .await
        };
        self.runtime.block_on(put).map(drop).map_err(failed)
    }

    fn create(&self, path: &str, octets: &[u8]) -> io::Result<()> {
        self.check()?;
        let whole = self.path(path);
        self.runtime.block_on(self.create_once(&whole, octets))?;
        // A prune that took over the lease meanwhile may have removed objects that the list names.
        self.check().inspect_err(|_| {
            let removed = self.runtime.block_on(async { self.store.delete(&whole).await });
            if let Err(error) = removed {
                tracing::error!(%error, path, "a list without a lease cannot be removed: verify the backup");
            }
        })
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.runtime.block_on(self.remove_once(&self.path(path)))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let whole = self.path(folder);
        let entry = |meta: object_store::ObjectMeta| {
            let path = meta.location.as_ref().strip_prefix(self.root.as_ref());
            Entry {
                path: path.unwrap_or_default().trim_start_matches('/').to_owned(),
                octets: meta.size,
            }
        };
        let listed = async {
            self.store
                .list(Some(&whole))
                .map_ok(entry)
                .try_collect()
                .await
        };
        self.runtime.block_on(listed).map_err(failed)
    }

    fn clear_leftovers(&self, _folder: &str) -> io::Result<()> {
        Ok(())
    }

    fn settle(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
