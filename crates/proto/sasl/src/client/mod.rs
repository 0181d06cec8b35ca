//! The client's side of an authentication exchange.

mod bearer;
mod scram;

use vere_units::Secret;

use super::{KeyError, Mechanism, Nonce};

pub use bearer::{Bearer, BearerMechanism};

/// The user name and the secret for authentication.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The identity to act as; `None` for the user itself. LOGIN cannot carry an authorization
    /// identity.
    pub authzid: Option<String>,
    /// The user.
    pub username: String,
    /// The password.
    pub password: Secret<String>,
}

impl Credentials {
    /// Makes credentials to act as the user itself.
    #[must_use]
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            authzid: None,
            username: username.into(),
            password: Secret::new(password.into()),
        }
    }
}

/// Why an exchange cannot go on. The client then cancels with `*` or closes the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// Peer: a challenge is not of the mechanism's form; the text names the part.
    #[error("server sent a malformed {0}")]
    Malformed(&'static str),
    /// Peer: the server's nonce does not begin with the client's nonce, or adds no characters.
    #[error("server did not extend our nonce")]
    Nonce,
    /// Peer: the iteration count or salt is outside our bounds; or ours: the password cannot be
    /// one.
    #[error("no SCRAM keys: {0}")]
    Keys(KeyError),
    /// Peer: the server reported an error of SCRAM.
    #[error("server reported {0}")]
    Server(String),
    /// Peer: the server's signature is wrong, so the server does not know the password and may be
    /// an impostor.
    #[error("server signature is wrong")]
    Signature,
    /// Peer: it asked again after the last message of the mechanism.
    #[error("server asked beyond the mechanism's last message")]
    Surplus,
    /// Peer: the server claims success before proving its identity, which SCRAM demands.
    #[error("server claims success without having proved itself")]
    Unproven,
    /// Ours: name or password holds a NUL or is empty, or the name is not allowed by SASLprep.
    #[error("name or password cannot be used with SASL")]
    Credentials,
}

/// One authentication exchange; decoded challenges in, decoded responses out.
///
/// ```
/// use vere_sasl::client::{Credentials, Exchange};
/// use vere_sasl::{Mechanism, NonceSource};
///
/// let nonces = NonceSource::new([0; 32]); // random in earnest
/// let tim = Credentials::new("tim", "tanstaaftanstaaf");
/// let (exchange, initial) = Exchange::begin(Mechanism::Plain, &tim, nonces.next())?;
/// assert_eq!(initial.as_deref(), Some(&b"\0tim\0tanstaaftanstaaf"[..]));
/// exchange.succeeded()?;
/// # Ok::<(), vere_sasl::client::ExchangeError>(())
/// ```
#[derive(Debug)]
pub struct Exchange(State);

#[derive(Debug)]
enum State {
    LoginName {
        name: String,
        password: Secret<String>,
    },
    LoginPassword {
        password: Secret<String>,
    },
    ScramFirst(Box<scram::AwaitFirst>),
    ScramFinal(scram::AwaitFinal),
    /// The last response is sent; the server may now report success.
    Sent,
    /// A token is sent; the server reports success, or an error that has to be answered with these octets.
    Bearer(&'static [u8]),
    /// The exchange broke.
    Broken,
}

impl Exchange {
    /// Begins an exchange; the second value is the initial response, if the mechanism has one.
    ///
    /// The nonce is used by SCRAM only, and must be new for every exchange.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::Credentials`] when the mechanism cannot carry the credentials.
    pub fn begin(
        mechanism: Mechanism,
        credentials: &Credentials,
        nonce: Nonce,
    ) -> Result<(Self, Option<Vec<u8>>), ExchangeError> {
        let password = credentials.password.expose();
        let fields = [
            Some(&credentials.username),
            Some(password),
            credentials.authzid.as_ref(),
        ];
        if fields
            .into_iter()
            .flatten()
            .any(|field| field.is_empty() || field.contains('\0'))
        {
            return Err(ExchangeError::Credentials);
        }
        let (state, initial) = match mechanism {
            Mechanism::Plain => {
                let authzid = credentials.authzid.as_deref().unwrap_or("");
                let message = [authzid, &credentials.username, password].join("\0");
                (State::Sent, Some(message.into_bytes()))
            }
            Mechanism::Login => {
                let (name, password) = (credentials.username.clone(), credentials.password.clone());
                (State::LoginName { name, password }, None)
            }
            Mechanism::ScramSha256 => {
                let (waiting, message) = scram::begin(credentials, &nonce)?;
                (
                    State::ScramFirst(Box::new(waiting)),
                    Some(message.into_bytes()),
                )
            }
        };
        Ok((Self(state), initial))
    }

    /// Begins an exchange with a token instead of a password; the second value is the initial response.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::Credentials`] when user, host or token are empty or hold control characters.
    pub fn begin_bearer(
        mechanism: BearerMechanism,
        bearer: &Bearer,
    ) -> Result<(Self, Vec<u8>), ExchangeError> {
        let initial = bearer.initial(mechanism)?;
        Ok((Self(State::Bearer(mechanism.end_of_error())), initial))
    }

    /// Takes a decoded challenge and returns the response to it.
    ///
    /// # Errors
    ///
    /// [`ExchangeError`]; the exchange is then broken, and the client cancels it with `*`.
    pub fn respond(&mut self, challenge: &[u8]) -> Result<Vec<u8>, ExchangeError> {
        let (state, response) = match std::mem::replace(&mut self.0, State::Broken) {
            // The prompts of LOGIN differ between servers, only their order is certain.
            State::LoginName { name, password } => {
                (State::LoginPassword { password }, name.into_bytes())
            }
            State::LoginPassword { password } => {
                (State::Sent, password.expose().clone().into_bytes())
            }
            State::ScramFirst(waiting) => {
                let (waiting, message) = waiting.server_first(challenge)?;
                (State::ScramFinal(waiting), message.into_bytes())
            }
            State::ScramFinal(waiting) => {
                waiting.server_final(challenge)?;
                (State::Sent, Vec::new())
            }
            // The challenge is the error; only after the response does the server refuse the login.
            State::Bearer(end) => (State::Broken, end.to_vec()),
            State::Sent => return Err(ExchangeError::Surplus),
            State::Broken => return Err(ExchangeError::Malformed("challenge after an error")),
        };
        self.0 = state;
        Ok(response)
    }

    /// Ends the exchange after the server's positive reply.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::Unproven`] when the mechanism was not at its end: the reply must then not
    /// be believed.
    pub fn succeeded(self) -> Result<(), ExchangeError> {
        match self.0 {
            State::Sent | State::Bearer(_) => Ok(()),
            _ => Err(ExchangeError::Unproven),
        }
    }
}

#[cfg(test)]
mod tests;
