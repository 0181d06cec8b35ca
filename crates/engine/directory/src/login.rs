//! Verification of a client's identity.

use vere_ports::directory::{AccountName, Credentials, StoreError};
use vere_sasl::ScramKeys;
use vere_units::Secret;

use crate::password::{self, Verdict};
use crate::{Directory, DirectoryError};

/// The outcome of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// The client is this account.
    Accepted(AccountName),
    /// The password is wrong or the account does not exist; the peer is not told the difference.
    /// Permanent, 5.7.8.
    Rejected,
}

impl Directory {
    /// Checks a password of the account whose whole address `username` is, in any case.
    ///
    /// Takes the same time and memory with and without the account: for an unknown account, the
    /// password is checked against a hash without a matching password.
    ///
    /// # Errors
    ///
    /// [`DirectoryError`]: the check failed, and the peer should try again.
    pub fn verify_password(
        &self,
        username: &str,
        password: &Secret<String>,
    ) -> Result<Login, DirectoryError> {
        let found = self.credentials(username)?;
        let hash = found
            .as_ref()
            .map(|(_, credentials)| &credentials.password_hash);
        match (password::verify(hash, password), found) {
            (Verdict::Fits, Some((name, _))) => Ok(Login::Accepted(name)),
            (Verdict::Unreadable, Some((name, _))) => Err(DirectoryError::Credentials(name)),
            (Verdict::Fits | Verdict::Unreadable | Verdict::DoesNotFit, _) => Ok(Login::Rejected),
        }
    }

    /// Finds the SCRAM-SHA-256 keys of the account whose whole address `username` is, in any case.
    ///
    /// `None` covers unknown users and users without a password; the machine continues with fake
    /// keys ([`password::SCRAM_ITERATIONS`] rounds) so that the peer cannot tell the difference.
    ///
    /// # Errors
    ///
    /// [`DirectoryError`]: the lookup failed, and the peer should try again.
    pub fn scram_keys(
        &self,
        username: &str,
    ) -> Result<Option<(AccountName, ScramKeys)>, DirectoryError> {
        let Some((name, credentials)) = self.credentials(username)? else {
            return Ok(None);
        };
        match credentials.scram_sha_256.expose().parse() {
            Ok(keys) => Ok(Some((name, keys))),
            Err(_) => Err(DirectoryError::Credentials(name)),
        }
    }

    fn credentials(
        &self,
        username: &str,
    ) -> Result<Option<(AccountName, Credentials)>, StoreError> {
        let Ok(name) = AccountName::parse(username) else {
            return Ok(None);
        };
        let account = self.store.account(&name)?;
        let found = account.and_then(|account| Some((account.name, account.credentials?)));
        // A disabled account is to clients as one without a password.
        Ok(found.filter(|(_, credentials)| !credentials.is_locked()))
    }
}
