//! Further certificates beside the first, where one name must not cost the others their certificate.

use std::path::Path;
use std::time::SystemTime;

use super::{Acme, AcmeError};

/// A name that the CA refused, with the reason.
#[derive(Debug)]
pub struct RefusedName {
    /// The name.
    pub name: String,
    /// The reason.
    pub error: AcmeError,
}

/// The result of [`Acme::obtain_most`].
#[derive(Debug)]
pub struct Most {
    /// The refused names.
    pub refused: Vec<RefusedName>,
    /// Whether there is a new certificate. The old one stays where it has the other names, and where it has a refused name and serves for
    /// some time.
    pub is_new: bool,
}

impl Acme {
    /// Keeps another certificate, in this file and for these names, by the same account and with answers at the same places.
    ///
    /// # Errors
    /// The directory of the file cannot be made, or the list of names is empty.
    pub fn beside(&self, certificate: &Path, domains: Vec<String>) -> Result<Self, AcmeError> {
        if domains.is_empty() {
            return Err(AcmeError::NoDomain);
        }
        let mut options = self.options.clone();
        options.domains = domains;
        Ok(Self {
            store: self.store.beside(certificate)?,
            options,
            places: self.places.clone(),
            http: self.http.clone(),
        })
    }

    /// Whether the account exists: two first orders at once would make two accounts, which authorities count.
    #[must_use]
    pub fn has_account(&self) -> bool {
        matches!(self.store.account(), Ok(Some(_)))
    }

    /// Whether an order would lose a name: the stored certificate has one of the wanted names beside those of the order, and serves for
    /// more than a sixth of its lifetime.
    #[must_use]
    pub fn would_lose(&self, wanted: &[String], now: SystemTime) -> bool {
        self.store.has_more(&self.options.domains, wanted, now)
    }

    /// Whether the stored certificate lacks a name.
    #[must_use]
    pub fn lacks_a_name(&self) -> bool {
        self.store.lacks(&self.options.domains)
    }

    /// Orders a certificate for as many of the names as the CA agrees to, and stores it. A name that the CA refuses now and the stored
    /// certificate has ends the attempt: a certificate without the name would not serve it.
    ///
    /// # Errors
    /// The reason why there is no certificate for any name; the stored certificate remains.
    pub async fn obtain_most(mut self) -> Result<Most, AcmeError> {
        let mut refused = Vec::new();
        loop {
            let error = match self.obtain().await {
                Ok(()) => {
                    let is_new = true;
                    return Ok(Most { refused, is_new });
                }
                Err(error) => error,
            };
            // Each turn takes one name away, so that there are as many orders as names at most.
            let name = match &error {
                AcmeError::Refused { domain, .. } | AcmeError::NoChallenge { domain, .. } => {
                    domain.clone()
                }
                // By dns-01: the name's zone is elsewhere, or the program fails for the name.
                AcmeError::Challenge { name, .. } => name.clone(),
                _ => return Err(error),
            };
            let before = self.options.domains.len();
            self.options.domains.retain(|domain| *domain != name);
            if self.options.domains.is_empty() || self.options.domains.len() == before {
                return Err(error);
            }
            let now = SystemTime::now();
            let loses = self.would_lose(std::slice::from_ref(&name), now);
            refused.push(RefusedName { name, error });
            // Where the stored certificate has the others, an order would only count against the limits of the CA.
            if loses || !self.due_in(now).is_zero() {
                let is_new = false;
                return Ok(Most { refused, is_new });
            }
        }
    }
}
