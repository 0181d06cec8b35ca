//! A filter with its connections.

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use vere_milter::Session;

use crate::failure::Failure;
use crate::milter;
use crate::outcome::{Asked, Outcome};
use crate::rspamd::Class;
use crate::terms::{Kind, Terms};

/// A filter with connections.
#[derive(Debug)]
pub struct Filter {
    terms: Terms,
    places: Semaphore,
}

impl Filter {
    /// A filter by terms, without a connection yet.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self {
            places: Semaphore::new(terms.connections_max),
            terms,
        }
    }

    /// The terms.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Asks about a message, and returns by the deadline at the latest.
    pub async fn ask(&self, message: &Bytes, session: &Session<'_>) -> Asked {
        if message.len() > self.terms.size_max {
            return Asked::Skipped {
                octets: message.len(),
                size_max: self.terms.size_max,
            };
        }
        match self.within(self.talk(message, session)).await {
            Ok(outcome) => Asked::Answered(outcome),
            Err(failure) => Asked::Unavailable(failure),
        }
    }

    /// Teaches rspamd that a message is spam or not; the filter's address is the controller's.
    ///
    /// # Errors
    /// The filter is not rspamd, the message is longer than [`Terms::size_max`], or rspamd fails. A message that rspamd has
    /// learned before is no error.
    pub async fn learn(&self, message: &Bytes, class: Class) -> Result<(), Failure> {
        let Kind::Rspamd(rspamd) = &self.terms.kind else {
            return Err(Failure::NotTaught);
        };
        if message.len() > self.terms.size_max {
            return Err(Failure::MessageLong(self.terms.size_max));
        }
        let Terms {
            address, bounds, ..
        } = &self.terms;
        self.within(rspamd.learn(address, bounds, message, class))
            .await
    }

    /// Checks that ClamAV is there, and returns the versions of program and signatures.
    ///
    /// # Errors
    /// The filter is not ClamAV, or ClamAV fails.
    pub async fn version(&self) -> Result<String, Failure> {
        match self.terms.kind {
            Kind::Clamd(clamd) => self.within(clamd.version(&self.terms.address)).await,
            Kind::Rspamd(_) | Kind::Milter => Err(Failure::NoVersion),
        }
    }

    /// Bounds a talk in time, the wait for a place included.
    async fn within<T>(
        &self,
        talk: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        let by = begun + self.terms.timeout;
        let Ok(place) = timeout_at(by, self.places.acquire()).await else {
            return Err(Failure::Busy(self.terms.connections_max));
        };
        let waited = begun.elapsed();
        let answer = timeout_at(by, talk).await;
        drop(place);
        answer.unwrap_or_else(|_| match waited > self.terms.timeout / 2 {
            // The filter works; it has too much to do.
            true => Err(Failure::Busy(self.terms.connections_max)),
            false => Err(Failure::Late(self.terms.timeout)),
        })
    }

    async fn talk(&self, message: &Bytes, session: &Session<'_>) -> Result<Outcome, Failure> {
        let Terms {
            kind,
            address,
            bounds,
            ..
        } = &self.terms;
        match kind {
            Kind::Rspamd(rspamd) => rspamd.check(address, bounds, message, session).await,
            Kind::Clamd(clamd) => clamd.scan(address, message).await,
            Kind::Milter => {
                let body_max = self.terms.size_max;
                milter::ask(address, bounds, body_max, message, session).await
            }
        }
    }
}
