//! The server's side of an authentication exchange.
//!
//! | state        | on a message            | on keys      | leads to                         |
//! |--------------|-------------------------|--------------|----------------------------------|
//! | PLAIN        | all in one              |              | a password to verify             |
//! | LOGIN name   | the name                |              | LOGIN password                   |
//! | LOGIN pass   | the password            |              | a password to verify             |
//! | SCRAM first  | client-first-message    |              | SCRAM keys                       |
//! | SCRAM keys   |                         | real or fake | SCRAM final                      |
//! | SCRAM final  | client-final-message    |              | SCRAM end, or failure            |
//! | SCRAM end    | the empty message       |              | authenticated                    |
//!
//! One exchange serves one AUTH command. A failed or finished exchange answers every further
//! message with [`Failure::OutOfOrder`].

mod ended;
mod login;
mod plain;
mod scram;

use vere_units::Secret;

pub use ended::{Login, LoginResult};

use super::{FakeKeys, Mechanism, NAME_LENGTH_MAX, Nonce, PASSWORD_LENGTH_MAX, ScramKeys};

/// The identity claimed by a client, and the password.
#[derive(Debug)]
pub struct PasswordAttempt {
    /// The mechanism, PLAIN or LOGIN.
    pub mechanism: Mechanism,
    /// The identity to act as; `None` for the authenticated user itself. The verifier must refuse an identity that
    /// the user is not allowed to act as.
    pub authzid: Option<String>,
    /// The owner of the password, never empty.
    pub authcid: String,
    /// The password, never empty; not prepared, see [`prepare`](super::prepare).
    pub password: Secret<String>,
}

/// The result of verifying a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordOutcome {
    /// It is right.
    Accepted {
        /// The account's own name.
        account: String,
    },
    /// The user does not exist, the password is wrong, or the user may not act as the other.
    Rejected,
    /// The password cannot be verified now.
    Unavailable,
}

/// The result of looking up a user's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScramLookup {
    /// The user exists.
    Found {
        /// The account's own name.
        account: String,
        /// Its keys.
        keys: ScramKeys,
    },
    /// The user does not exist or has no keys for SCRAM; the exchange continues with fake keys.
    Unknown,
    /// The lookup is impossible now.
    Unavailable,
}

/// The next step of the host in an exchange.
#[derive(Debug)]
pub enum Step {
    /// Send this challenge, then give the response to [`Exchange::respond`].
    Challenge(Vec<u8>),
    /// Verify the password; the exchange is over.
    Password(PasswordAttempt),
    /// Look up the keys of this user, then call [`Exchange::keys`].
    ScramUser(String),
    /// The client has proved to be this user; the exchange is over.
    Authenticated {
        /// The user name given by the client.
        authcid: String,
    },
    /// The exchange is over.
    Failed(Failure),
}

/// Why an exchange ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Peer: the message is not of the mechanism's form; the text names the part.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// Peer: a name or password exceeds the length limit; the text names the field.
    #[error("{0} too long")]
    TooLong(&'static str),
    /// Peer: the client requests channel binding, which is not offered (RFC 5802 section 7,
    /// `channel-binding-not-supported`).
    #[error("channel binding is not supported")]
    ChannelBinding,
    /// Peer: the client requests to act as another user.
    #[error("acting as another user is not allowed")]
    Authzid,
    /// Peer: the proof is wrong, or there is no such user.
    #[error("authentication credentials invalid")]
    Credentials,
    /// Host: a message or keys while the exchange waits for something else.
    #[error("message out of order")]
    OutOfOrder,
}

impl Failure {
    /// Says whether the message could not even be read, so that `501 5.5.2` is the answer and not
    /// `535 5.7.8` (RFC 4954 sections 4 and 6).
    #[must_use]
    pub fn is_syntax(self) -> bool {
        matches!(self, Self::Malformed(_) | Self::TooLong(_))
    }
}

/// One authentication exchange; decoded messages in, [`Step`]s out.
///
/// ```
/// use vere_sasl::server::{Exchange, Step};
/// use vere_sasl::{Mechanism, NonceSource};
///
/// let nonces = NonceSource::new([0; 32]); // random in earnest
/// let (_, step) = Exchange::begin(Mechanism::Plain, Some(b"\0tim\0tanstaaftanstaaf"), nonces.next());
/// let Step::Password(attempt) = step else { panic!() };
/// assert_eq!(attempt.authcid, "tim");
/// ```
#[derive(Debug)]
pub struct Exchange(State);

#[derive(Debug)]
enum State {
    Plain,
    LoginName,
    LoginPassword { name: String },
    ScramFirst { nonce: Nonce },
    ScramKeys(Box<scram::AwaitKeys>),
    ScramFinal(Box<scram::AwaitFinal>),
    ScramEnd { authcid: String },
    Over,
}

impl Exchange {
    /// Begins an exchange, with the initial response if the client sent one.
    ///
    /// The nonce is used by SCRAM only, and must be new for every exchange.
    #[must_use]
    pub fn begin(mechanism: Mechanism, initial: Option<&[u8]>, nonce: Nonce) -> (Self, Step) {
        let (state, challenge) = match mechanism {
            Mechanism::Plain => (State::Plain, &b""[..]),
            Mechanism::Login => (State::LoginName, login::NAME_PROMPT),
            Mechanism::ScramSha256 => (State::ScramFirst { nonce }, &b""[..]),
        };
        let mut exchange = Self(state);
        let step = match initial {
            Some(message) => exchange.respond(message),
            None => Step::Challenge(challenge.to_vec()),
        };
        (exchange, step)
    }

    /// Takes the decoded response to the last challenge.
    #[must_use]
    pub fn respond(&mut self, message: &[u8]) -> Step {
        let next = match std::mem::replace(&mut self.0, State::Over) {
            State::Plain => plain::response(message).map(|attempt| (State::Over, attempt)),
            State::LoginName => login::name(message),
            State::LoginPassword { name } => login::password(name, message),
            State::ScramFirst { nonce } => scram::client_first(nonce, message),
            State::ScramFinal(waiting) => waiting.client_final(message),
            State::ScramEnd { authcid } => scram::end(authcid, message),
            State::ScramKeys(_) | State::Over => Err(Failure::OutOfOrder),
        };
        self.enter(next)
    }

    /// Takes the keys requested by [`Step::ScramUser`]; for an unknown user the exchange continues with fake keys to
    /// an end that looks like a wrong password.
    #[must_use]
    pub fn keys(&mut self, found: Option<ScramKeys>, fake: &FakeKeys) -> Step {
        let next = match std::mem::replace(&mut self.0, State::Over) {
            State::ScramKeys(waiting) => Ok(waiting.keys(found, fake)),
            _ => Err(Failure::OutOfOrder),
        };
        self.enter(next)
    }

    fn enter(&mut self, next: Result<(State, Step), Failure>) -> Step {
        match next {
            Ok((state, step)) => {
                self.0 = state;
                step
            }
            Err(failure) => Step::Failed(failure),
        }
    }
}

/// Checks a name: UTF-8, not empty, without NUL, not over its bound.
fn checked_name(octets: &[u8]) -> Result<&str, Failure> {
    checked(octets, "user name", NAME_LENGTH_MAX)
}

/// Checks a password: UTF-8, without NUL, within the length limit. An empty password belongs to no account: servers
/// refuse an empty password as wrong, as clients expect.
fn checked_password(octets: &[u8]) -> Result<Secret<String>, Failure> {
    if octets.is_empty() {
        return Err(Failure::Credentials);
    }
    checked(octets, "password", PASSWORD_LENGTH_MAX).map(|text| Secret::new(text.to_owned()))
}

fn checked<'a>(octets: &'a [u8], what: &'static str, max: usize) -> Result<&'a str, Failure> {
    if octets.len() > max {
        return Err(Failure::TooLong(what));
    }
    let text = std::str::from_utf8(octets).map_err(|_| Failure::Malformed(what))?;
    if text.is_empty() || text.contains('\0') {
        return Err(Failure::Malformed(what));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
