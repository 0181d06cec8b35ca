//! Connects to an account and logs in.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::timeout;
use vere_imap::client::{Code, Command, Condition, Status};
use vere_net::connect::{ConnectOptions, connect};
use vere_net::tls::{ClientTls, ConnectTlsError, Roots, Verification};
use vere_process::failure::Failure;
use vere_process::secret;
use vere_sasl::client::{Bearer, BearerMechanism, Credentials, Exchange};
use vere_sasl::{Mechanism, NonceSource};
use vere_units::Secret;

use crate::fault;
use crate::link::{Link, deaf};
use crate::program;
use crate::remote::{Login, Remote, Security};

/// Why there is no session with an account.
#[derive(Debug)]
pub enum DialError {
    /// No connection, or no answer to the purpose.
    Unreachable(Failure),
    /// The server's certificate is signed by no trusted CA.
    UnknownCa(ConnectTlsError),
    /// The server greets with BYE.
    Bye(Status),
    /// The server refuses the login; the answer.
    Refused(Status),
    /// The login lacks a password and a token.
    NoSecret(Failure),
}

impl std::fmt::Display for DialError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(failure) => failure.fmt(f),
            Self::UnknownCa(error) => error.fmt(f),
            Self::Bye(status) => write!(f, "the server does not serve: {}", status.text),
            Self::Refused(status) => write!(f, "login refused: {}", status.text),
            Self::NoSecret(failure) => write!(f, "no password or token: {failure}"),
        }
    }
}

impl std::error::Error for DialError {}

impl From<Failure> for DialError {
    fn from(failure: Failure) -> Self {
        Self::Unreachable(failure)
    }
}

/// Connects to an account anywhere and logs in.
///
/// # Errors
/// When the connection fails, or the login would send a password in clear text against the settings.
pub async fn dial(remote: &Remote) -> Result<Link, DialError> {
    let mut link = dial_within(remote, None).await?;
    link.asks_for_little(false);
    Ok(link)
}

/// As [`dial`], with the longest time from the first octet to the end of the login.
pub(crate) async fn dial_within(
    remote: &Remote,
    longest: Option<Duration>,
) -> Result<Link, DialError> {
    match dial_once(remote, longest).await {
        // A token may have expired on the way; the next one is fresh.
        Err(DialError::Refused(status))
            if matches!(remote.login, Login::TokenProgram { .. })
                && fault::patience(&status).is_none() =>
        {
            dial_once(remote, longest).await
        }
        dialled => dialled,
    }
}

async fn dial_once(remote: &Remote, longest: Option<Duration>) -> Result<Link, DialError> {
    // A program has a time limit of its own, and no connection waits for the program.
    let proof = Proof::of(&remote.login).await?;
    let opened = open(remote, &proof);
    let Some(longest) = longest else {
        return opened.await;
    };
    timeout(longest, opened).await.unwrap_or_else(|_| {
        let text = format!("no login within {} seconds", longest.as_secs());
        Err(Failure::new(text).into())
    })
}

async fn open(remote: &Remote, proof: &Proof) -> Result<Link, DialError> {
    let (mut link, greeting) = reach(remote).await?;
    // A server that sends PREAUTH (a started subprocess, say) has authenticated the user already.
    let told = match greeting.condition {
        Condition::PreAuth => false,
        _ => login(&mut link, remote, proof).await?,
    };
    // A server may announce more capabilities after the login.
    if !told {
        link.run(&Command::Capability, &mut deaf).await?;
    }
    if remote.compress && link.can("COMPRESS=DEFLATE") {
        link.compress().await?;
    }
    Ok(link)
}

/// The proof of the user, for a single login.
enum Proof {
    Password(Credentials),
    Token(String, Secret<String>),
}

impl Proof {
    async fn of(login: &Login) -> Result<Self, DialError> {
        let printed = async |words: &Vec<String>| {
            let printed = program::printed(words.clone()).await;
            printed.map_err(DialError::NoSecret)
        };
        Ok(match login {
            Login::Password(credentials) => Self::Password(credentials.clone()),
            Login::Token { username, token } => Self::Token(username.clone(), token.clone()),
            Login::PasswordProgram { username, words } => Self::Password(Credentials {
                authzid: None,
                username: username.clone(),
                password: printed(words).await?,
            }),
            Login::TokenProgram { username, words } => {
                Self::Token(username.clone(), printed(words).await?)
            }
        })
    }
}

/// Connects, up to the greeting or the end of STARTTLS: the proof of a reachable account.
pub(crate) async fn reach(remote: &Remote) -> Result<(Link, Status), DialError> {
    let name = &remote.host;
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), remote.port))
        .await
        .map_err(|error| Failure::new(format!("{name}: {error}")))?
        .collect();
    let stream = connect(&addresses, &ConnectOptions::default())
        .await
        .map_err(Failure::from)?;
    let tls = match remote.security {
        Security::Clear => None,
        _ => Some(tls(remote)?),
    };
    let mut link = match (&tls, remote.security) {
        (Some(tls), Security::Implicit) => {
            let (stream, _) = tls.connect(name, stream).await.map_err(secured)?;
            Link::over(Box::new(stream))
        }
        _ => Link::over(Box::new(stream)),
    };
    link.asks_for_little(true);
    let greeting = link.greeting().await?;
    if greeting.condition == Condition::Bye {
        return Err(DialError::Bye(greeting));
    }
    if let Some(tls) = tls.filter(|_| remote.security == Security::StartTls) {
        // RFC 9051 section 7.1.4: PREAUTH in clear text prevents STARTTLS.
        if greeting.condition == Condition::PreAuth {
            return Err(Failure::new(
                "the server needs no login and has no TLS; imaps:// may have",
            )
            .into());
        }
        link.run(&Command::StartTls, &mut deaf).await?;
        let stream = link.stream_for_tls()?;
        let (stream, _) = tls.connect(name, stream).await.map_err(secured)?;
        link.secured(Box::new(stream));
    }
    Ok((link, greeting))
}

fn tls(remote: &Remote) -> Result<ClientTls, Failure> {
    let roots = Roots::load(remote.ca.as_deref())?;
    Ok(ClientTls::new(Verification::Required, &roots)?)
}

fn secured(error: ConnectTlsError) -> DialError {
    match error.is_unknown_issuer() {
        true => DialError::UnknownCa(error),
        false => DialError::Unreachable(error.into()),
    }
}

/// Logs in, and returns whether the success came with capabilities.
async fn login(link: &mut Link, remote: &Remote, proof: &Proof) -> Result<bool, DialError> {
    if !link.machine().knows_capabilities() {
        link.run(&Command::Capability, &mut deaf).await?;
    }
    let token = match proof {
        Proof::Password(credentials) => {
            let offered = [Mechanism::ScramSha256, Mechanism::Plain]
                .into_iter()
                .find(|mechanism| link.can(&format!("AUTH={}", mechanism.name())));
            match offered {
                Some(mechanism) => {
                    let nonce = NonceSource::new(secret::random()).next();
                    let (exchange, initial) =
                        Exchange::begin(mechanism, credentials, nonce).map_err(Failure::from)?;
                    let machine = link.machine();
                    machine.authenticate(mechanism.name(), exchange, initial)
                }
                None => link.send(&Command::Login(credentials.clone())),
            }
        }
        Proof::Token(username, token) => {
            let bearer = Bearer {
                username: username.clone(),
                token: token.clone(),
                host: remote.host.clone(),
                port: remote.port,
            };
            let mechanism = BearerMechanism::ALL
                .into_iter()
                .find(|mechanism| link.can(&format!("AUTH={}", mechanism.name())))
                .ok_or_else(|| Failure::new("the server takes no token (OAUTHBEARER, XOAUTH2)"))?;
            let (exchange, initial) =
                Exchange::begin_bearer(mechanism, &bearer).map_err(Failure::from)?;
            let machine = link.machine();
            machine.authenticate(mechanism.name(), exchange, Some(initial))
        }
    };
    let status = link.wait(token, &mut deaf).await?;
    match status.is_ok() {
        true => Ok(matches!(status.code, Some(Code::Capability(_)))),
        false => Err(DialError::Refused(status)),
    }
}
