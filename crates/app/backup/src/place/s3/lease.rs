//! The lease of a place: an object that its holder writes again and again, instead of a lock.
//!
//! The lease is taken by a conditional PUT (`If-None-Match: *`), written again every [`Terms::renew`] (`If-Match`), and
//! removed at the end. A lease that stays the same for [`Terms::steal`] belongs to a killed command, and is taken over
//! by a conditional PUT. Both sides measure spans of their own clock: the clocks of two machines are never compared.
//!
//! The holder counts on the lease for [`Terms::valid`] from the beginning of the last renewal on. From then until a take-over
//! more time passes than a request of the holder may still need, so that a request of a former holder does not arrive
//! behind the take-over.

use std::io::{self, ErrorKind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use object_store::ObjectStore as _;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt as _, PutMode, PutResult, UpdateVersion};
use tokio::runtime::{Builder, Runtime};

use super::exchange::failed;

/// Octets of a lease that are read.
const OCTETS_MAX: u64 = 1024;

/// The spans of a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// From one renewal to the next.
    pub(super) renew: Duration,
    /// How long the holder counts on a renewal.
    pub(super) valid: Duration,
    /// How long others watch a lease that does not change.
    pub(super) steal: Duration,
    /// From one look to the next.
    pub(super) look: Duration,
}

impl Terms {
    /// A request and its repetition take 15 + 10 + 60 s at most, with the connection and the longest time for an answer:
    /// 60 + 85 < 150.
    pub(super) const DEFAULT: Self = Self {
        renew: Duration::from_secs(15),
        valid: Duration::from_secs(60),
        steal: Duration::from_secs(150),
        look: Duration::from_secs(5),
    };
}

/// Until when the holder may count on the lease.
#[derive(Debug, Clone)]
pub(super) struct Valid(Arc<Mutex<Instant>>);

impl Valid {
    /// # Errors
    /// When the lease was not renewed in time: another command may hold the place.
    pub(super) fn check(&self) -> io::Result<()> {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match Instant::now() < until {
            true => Ok(()),
            false => Err(io::Error::other(
                "the lease on the backups could not be renewed in time: another command may use them now; run the command again",
            )),
        }
    }

    fn set(&self, until: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// The lease, renewed by a thread until dropped.
#[derive(Debug)]
pub(super) struct Lease {
    valid: Valid,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lease {
    /// Takes the lease; waits for the end of the lease of a killed command.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] while another command holds the lease; [`ErrorKind::Unsupported`] for a server without
    /// conditional PUTs; errors of the server.
    pub(super) fn take(store: Arc<AmazonS3>, path: Path, terms: Terms) -> io::Result<Self> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let mut holder = Holder {
            store,
            path,
            terms,
            runtime: Builder::new_current_thread().enable_all().build()?,
            name: blake3::hash(&nonce).to_hex().to_string(),
            count: 0,
            version: None,
        };
        let valid = Valid(Arc::new(Mutex::new(Instant::now() + terms.valid)));
        holder.take(&valid)?;
        let (stop, stopped) = channel();
        let renewed = valid.clone();
        let thread = thread::Builder::new().name("lease".to_owned());
        let thread = thread.spawn(move || holder.keep(&renewed, &stopped))?;
        Ok(Self {
            valid,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(super) fn valid(&self) -> Valid {
        self.valid.clone()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The thread removes the lease; a panic there has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The side that takes and renews.
struct Holder {
    store: Arc<AmazonS3>,
    path: Path,
    terms: Terms,
    runtime: Runtime,
    /// Random: tells the lease of this command from all others.
    name: String,
    /// Renewals: each has other content, and so another entity tag.
    count: u64,
    version: Option<UpdateVersion>,
}

impl Holder {
    fn take(&mut self, valid: &Valid) -> io::Result<()> {
        let (mut seen, mut since) = (None, Instant::now());
        loop {
            if self.write(PutMode::Create, valid)? {
                return self.probe();
            }
            // An absent lease was given back in this moment.
            let Some((version, _)) = self.look()? else {
                continue;
            };
            match &seen {
                None => {
                    tracing::info!(
                        seconds = self.terms.steal.as_secs(),
                        "lease of another command found, waiting whether that command is alive"
                    );
                    (seen, since) = (Some(version), Instant::now());
                }
                Some(earlier) if *earlier != version => return Err(ErrorKind::WouldBlock.into()),
                Some(_) if since.elapsed() >= self.terms.steal => {
                    return match self.write(PutMode::Update(version), valid)? {
                        true => Ok(()),
                        false => Err(ErrorKind::WouldBlock.into()),
                    };
                }
                Some(_) => {}
            }
            thread::sleep(self.terms.look);
        }
    }

    /// A server that does not know the condition would give the lease to everybody.
    fn probe(&mut self) -> io::Result<()> {
        let put = self
            .store
            .put_opts(&self.path, "probe\n".into(), PutMode::Create.into());
        match self.runtime.block_on(put) {
            Err(Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
            Ok(_) => {
                self.give_back();
                Err(io::Error::new(
                    ErrorKind::Unsupported,
                    "the server ignores If-None-Match: two commands could write to the place at once",
                ))
            }
        }
    }

    /// Writes the lease; false if the condition does not hold.
    fn write(&mut self, mode: PutMode, valid: &Valid) -> io::Result<bool> {
        self.count += 1;
        let began = Instant::now();
        let text = format!("{} {}\n", self.name, self.count);
        let put = self
            .store
            .put_opts(&self.path, text.clone().into(), mode.into());
        let version = match self.runtime.block_on(put) {
            Ok(PutResult { e_tag, version, .. }) => UpdateVersion { e_tag, version },
            // The answer to an earlier attempt may have been lost.
            Err(error) => match self.look() {
                Ok(Some((version, there))) if there == text.as_bytes() => version,
                _ => {
                    let error = failed(error);
                    return match error.kind() {
                        ErrorKind::AlreadyExists => Ok(false),
                        _ => Err(error),
                    };
                }
            },
        };
        self.version = Some(version);
        valid.set(began + self.terms.valid);
        Ok(true)
    }

    /// The lease as the server has it.
    fn look(&self) -> io::Result<Option<(UpdateVersion, Vec<u8>)>> {
        let look = async {
            let found = self.store.get(&self.path).await?;
            let version = UpdateVersion {
                e_tag: found.meta.e_tag.clone(),
                version: found.meta.version.clone(),
            };
            let octets = match found.meta.size > OCTETS_MAX {
                true => Vec::new(),
                false => found.bytes().await?.into(),
            };
            Ok((version, octets))
        };
        match self.runtime.block_on(look) {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Renews the lease until told to stop, then gives the lease back.
    fn keep(mut self, valid: &Valid, stopped: &Receiver<()>) {
        let mut pause = self.terms.renew;
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
            let Some(version) = self.version.clone() else {
                return;
            };
            pause = match self.write(PutMode::Update(version), valid) {
                Ok(true) => self.terms.renew,
                Ok(false) => {
                    tracing::error!("the lease on the backups was taken by another command");
                    valid.set(Instant::now());
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease on the backups was not renewed");
                    self.terms.look
                }
            };
        }
        if valid.check().is_ok() {
            self.give_back();
        }
    }

    /// Removes the lease; what cannot be removed is taken over by the next command.
    fn give_back(&self) {
        let removed = async { self.store.delete(&self.path).await };
        if let Err(error) = self.runtime.block_on(removed) {
            tracing::warn!(%error, "the lease on the backups remains for a while");
        }
    }
}
