//! The access of the commands to the nodes and to the gateway.

use std::path::Path;

use vere_control::{ReplicaLine, Request, ask};
use vere_link::Credentials;
use vere_process::failure::Failure;
use vere_process::present::is_there;
use vere_settings::Settings;

/// Returns the credentials for the nodes; never creates a missing key.
pub(super) fn key(settings: &Settings) -> Result<Credentials, Failure> {
    let path = settings.spool.secret_of(&settings.spool.speaks_as);
    if let Some(path) = path
        && !is_there(path, settings)?
    {
        return Err(Failure::new(format!(
            "{} is not there: no node has run with these settings yet",
            path.display()
        )));
    }
    Ok(vere_link::account(settings)?)
}

/// Asks the gateway for the state of its replicas.
pub(crate) fn replicas(socket: &Path) -> Result<Vec<ReplicaLine>, String> {
    let value = ask(socket, &Request::SpoolTable).map_err(|error| error.to_string())?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}
