//! LOGIN, draft-murchison-sasl-login-00.
//!
//! Deviates: the draft's prompts are `User Name` and `Password` with a NUL after each; clients
//! know, and some clients compare, the prompts used here. An initial response is accepted as the
//! user name; the draft does not allow the response, but several clients send the name there.

use super::{Failure, PasswordAttempt, State, Step, checked_name, checked_password};
use crate::Mechanism;

pub(super) const NAME_PROMPT: &[u8] = b"Username:";
const PASSWORD_PROMPT: &[u8] = b"Password:";

pub(super) fn name(message: &[u8]) -> Result<(State, Step), Failure> {
    let name = checked_name(message)?.to_owned();
    Ok((
        State::LoginPassword { name },
        Step::Challenge(PASSWORD_PROMPT.to_vec()),
    ))
}

pub(super) fn password(name: String, message: &[u8]) -> Result<(State, Step), Failure> {
    let attempt = PasswordAttempt {
        mechanism: Mechanism::Login,
        authzid: None,
        authcid: name,
        password: checked_password(message)?,
    };
    Ok((State::Over, Step::Password(attempt)))
}
