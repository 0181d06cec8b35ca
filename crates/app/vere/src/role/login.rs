//! Whether somebody is who they say they are, for every protocol that has passwords.

use vere_directory::{Directory, Login};
use vere_ports::directory::AccountName;
use vere_sasl::ScramKeys;
use vere_sasl::server::PasswordAttempt;

/// What came of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Checked {
    /// It is right, and this is the account.
    Accepted(String),
    /// It is not, there is no such account, or one may not act as the other.
    Rejected,
    /// It cannot be found out now.
    Unavailable,
}

/// What came of looking for an account's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keys {
    /// The account, and its keys.
    Found(String, ScramKeys),
    /// There is no such account, or it has none.
    Unknown,
    /// It cannot be found out now.
    Unavailable,
}

/// Checks a password, on another thread.
pub(crate) async fn password(directory: Directory, attempt: PasswordAttempt) -> Checked {
    if !acts_as_itself(&attempt) {
        return Checked::Rejected;
    }
    // Argon2id takes tens of milliseconds on purpose: not on the thread that serves everybody.
    let checked = tokio::task::spawn_blocking(move || {
        directory.verify_password(&attempt.authcid, &attempt.password)
    });
    match checked.await {
        Ok(Ok(Login::Accepted(account))) => Checked::Accepted(account.to_string()),
        Ok(Ok(Login::Rejected)) => Checked::Rejected,
        Ok(Err(error)) => {
            tracing::error!(%error, "password cannot be checked");
            Checked::Unavailable
        }
        Err(_) => Checked::Unavailable,
    }
}

/// Whether nobody else is meant (RFC 4616 section 2): no authorization identity is given, an empty one, or one
/// that names the same account as the authentication identity does.
fn acts_as_itself(attempt: &PasswordAttempt) -> bool {
    let Some(other) = attempt.authzid.as_deref().filter(|other| !other.is_empty()) else {
        return true;
    };
    let name = |text: &str| AccountName::parse(text).ok();
    other == attempt.authcid
        || name(other).is_some_and(|other| Some(other) == name(&attempt.authcid))
}

/// Finds the keys of a user.
pub(crate) fn scram_keys(directory: &Directory, username: &str) -> Keys {
    match directory.scram_keys(username) {
        Ok(Some((account, keys))) => Keys::Found(account.to_string(), keys),
        Ok(None) => Keys::Unknown,
        Err(error) => {
            tracing::error!(%error, "keys cannot be looked up");
            Keys::Unavailable
        }
    }
}

#[cfg(test)]
mod tests {
    use vere_sasl::Mechanism;
    use vere_units::Secret;

    use super::*;

    #[test]
    fn who_is_named_is_who_logs_in_in_any_case_of_letters_or_nobody() {
        let acts = |authzid: Option<&str>| {
            acts_as_itself(&PasswordAttempt {
                mechanism: Mechanism::Plain,
                authzid: authzid.map(str::to_owned),
                authcid: "Ann@example.org".to_owned(),
                password: Secret::new("x".to_owned()),
            })
        };
        for same in [
            None,
            Some(""),
            Some("Ann@example.org"),
            Some("ann@EXAMPLE.org"),
        ] {
            assert!(acts(same), "{same:?}");
        }
        for other in ["bob@example.org", "ann", "ann@example.org ", "@"] {
            assert!(!acts(Some(other)), "{other}");
        }
    }

    #[test]
    fn what_is_no_account_name_is_the_same_only_to_the_letter() {
        let attempt = |authzid: &str| PasswordAttempt {
            mechanism: Mechanism::Plain,
            authzid: Some(authzid.to_owned()),
            authcid: "no address".to_owned(),
            password: Secret::new("x".to_owned()),
        };
        assert!(acts_as_itself(&attempt("no address")));
        assert!(!acts_as_itself(&attempt("No Address")));
    }
}
