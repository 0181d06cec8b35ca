//! The account under which this machine speaks to nodes.

use vere_process::secret::{self, SecretError};
use vere_settings::Settings;
use vere_spoolwire::SharedSecret;

/// As whom this machine speaks to nodes, and by which key; made when it is absent.
///
/// # Errors
/// When the file of the key cannot be used.
pub fn account(settings: &Settings) -> Result<Credentials, SecretError> {
    let spool = &settings.spool;
    let file = spool.secret_of(&spool.speaks_as).unwrap_or(&spool.secret);
    Ok(Credentials {
        account: spool.speaks_as.clone(),
        secret: secret::load_or_make(file)?,
    })
}

/// An account and what proves it.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The name of the account.
    pub account: String,
    /// The key that the account and its nodes share.
    pub secret: SharedSecret,
}
