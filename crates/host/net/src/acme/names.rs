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

    /// Orders a certificate for as many of the names as the CA agrees to, and stores it. Returns the refused names.
    ///
    /// # Errors
    /// The reason why there is no certificate for any name; the stored certificate remains.
    pub async fn obtain_most(mut self) -> Result<Vec<RefusedName>, AcmeError> {
        let mut refused = Vec::new();
        loop {
            let error = match self.obtain().await {
                Ok(()) => return Ok(refused),
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
            refused.push(RefusedName { name, error });
            if !self.due_in(SystemTime::now()).is_zero() {
                // The stored certificate has the others: an order would only count against the limits of the CA.
                return Ok(refused);
            }
        }
    }
}
