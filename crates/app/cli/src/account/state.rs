//! `vere account disable` and `enable`.

use serde_json::json;
use vere_login::directory::open;
use vere_ports::directory::{Account, AccountName, Credentials};
use vere_process::failure::Failure;
use vere_settings::Settings;

use super::records::{existing, explained};
use vere_process::json::printed;

/// Whether the account has a locked password.
pub(super) fn is_disabled(account: &Account) -> bool {
    let credentials = account.credentials.as_ref();
    credentials.is_some_and(Credentials::is_locked)
}

/// Allows or refuses the logins of an account.
///
/// # Errors
/// When the account is unknown, has no password, or the directory cannot be changed.
pub(super) fn set(
    address: &str,
    enabled: bool,
    json: bool,
    settings: &Settings,
) -> Result<String, Failure> {
    let name = AccountName::parse(address)?;
    let directory = open(settings)?;
    let account = existing(&directory, &name)?;
    if account.credentials.is_none() {
        return Err(Failure::new(format!(
            "{name} has no password, so that every login is refused; set one with: vere account passwd {name}"
        )));
    }
    let changed = directory.set_enabled(&name, enabled).map_err(explained)?;
    let state = match (enabled, changed) {
        (true, true) => "is enabled",
        (true, false) => "was enabled before",
        (false, true) => {
            "is disabled: logins are refused, sessions end within two seconds, mail is still accepted"
        }
        (false, false) => "was disabled before",
    };
    let value = json!({ "account": name.to_string(), "changed": changed });
    Ok(printed(json, value, format!("{name} {state}\n")))
}
