//! The line in the log for each attempt to log in: who guesses passwords can be found and locked out by it.

use std::net::IpAddr;

use vere_sasl::server::{Login, LoginResult};
use vere_telemetry::log::MAIL_TARGET;
use vere_telemetry::metrics::AuthResult;

/// Writes the line of an attempt that ended.
pub fn write(service: &str, client: IpAddr, encrypted: bool, login: &Login) {
    let client = tracing::field::display(client.to_canonical());
    let (account, mechanism, tls) = (login.name.as_str(), login.mechanism.name(), encrypted);
    // Whole macros: the list of log lines in the documentation is gathered from them.
    match login.result {
        LoginResult::Accepted => {
            tracing::info!(target: MAIL_TARGET, service, client, account, mechanism, tls, "login accepted");
        }
        LoginResult::Rejected => {
            tracing::info!(target: MAIL_TARGET, service, client, account, mechanism, tls, "login failed");
        }
        LoginResult::Undecided => {
            tracing::info!(target: MAIL_TARGET, service, client, account, mechanism, tls, "login undecided");
        }
    }
}

/// What is counted of it.
pub const fn result(login: &Login) -> AuthResult {
    match login.result {
        LoginResult::Accepted => AuthResult::Accepted,
        LoginResult::Rejected => AuthResult::Rejected,
        LoginResult::Undecided => AuthResult::Unavailable,
    }
}
