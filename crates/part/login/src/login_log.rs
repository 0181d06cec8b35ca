//! The line in the log for each attempt to log in: who guesses passwords can be found and locked out by it.

use std::net::IpAddr;

use vere_sasl::server::{Login, LoginResult};
use vere_telemetry::log::MAIL_TARGET;
use vere_telemetry::metrics::AuthResult;

/// Writes the line of an attempt that ended.
pub fn write(service: &str, client: IpAddr, encrypted: bool, login: &Login) {
    let (name, mechanism) = (login.name.as_str(), login.mechanism.name());
    macro_rules! line {
        ($what:literal) => {
            tracing::info!(
                target: MAIL_TARGET,
                service,
                client = %client.to_canonical(),
                account = name,
                mechanism,
                tls = encrypted,
                $what
            )
        };
    }
    match login.result {
        LoginResult::Accepted => line!("login accepted"),
        LoginResult::Rejected => line!("login failed"),
        LoginResult::Undecided => line!("login undecided"),
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
