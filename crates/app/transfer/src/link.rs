//! A connection to an IMAP server: the local store over its socket, or any other server over TCP.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use vere_imap::client::{
    AppendTo, Client, ClientLimits, Command, Condition, Event, Response, Status, Token,
};
use vere_net::connect::{ConnectOptions, connect};
use vere_net::tls::{ClientTls, ConnectTlsError, Roots, Verification};
use vere_sasl::client::{Credentials, Exchange};
use vere_sasl::{Mechanism, NonceSource};

use super::message::{Message, PIECE};
use super::place::{Remote, Security};
use vere_process::failure::Failure;
use vere_process::secret;
use vere_process::wire::Connection;

/// Longest silence of a server with a command under way.
const PATIENCE: Duration = Duration::from_secs(300);

/// Octets of a message that are buffered before they are sent.
const UNSENT_MAX: usize = 256 * 1024;

/// A session.
pub(super) struct Link {
    stream: Option<Box<dyn Connection>>,
    client: Client,
    buffer: Vec<u8>,
    /// The part of the buffer with received and unparsed octets.
    unread: std::ops::Range<usize>,
    greeting: Option<Status>,
    done: HashMap<Token, Status>,
}

/// The receiver of all responses other than the end of a command.
pub(super) type Hear<'a> = &'a mut dyn FnMut(Event<'_>) -> Result<(), Failure>;

/// Ignores every response.
pub(super) fn deaf(_: Event<'_>) -> Result<(), Failure> {
    Ok(())
}

impl Link {
    fn new(stream: Box<dyn Connection>) -> Self {
        Self {
            stream: Some(stream),
            client: Client::new(ClientLimits::default()),
            buffer: vec![0; PIECE],
            unread: 0..0,
            greeting: None,
            done: HashMap::new(),
        }
    }

    /// Opens the mailboxes of an account of the local store.
    ///
    /// # Errors
    /// When the store does not run, refuses the user, or does not know the account.
    pub(super) async fn local(socket: &Path, account: &str) -> Result<Self, Failure> {
        let stream = UnixStream::connect(socket).await;
        let mut stream = stream.map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    "; is the mail store running (vere serve, with [imap], [imaps] or [lmtp])?"
                }
                io::ErrorKind::PermissionDenied => "; run this as the user that vere runs as",
                _ => "",
            };
            Failure::new(format!(
                "cannot open the mail store at {}: {error}{hint}",
                socket.display()
            ))
        })?;
        stream.write_all(format!("{account}\n").as_bytes()).await?;
        let mut link = Self::new(Box::new(stream));
        let greeting = link.greeted().await?;
        match greeting.condition {
            Condition::PreAuth => Ok(link),
            _ => Err(Failure::new(format!("{account}: {}", greeting.text))),
        }
    }

    /// Connects to an account anywhere and logs in.
    ///
    /// # Errors
    /// When the connection fails, or the login would send a password in clear text.
    pub(super) async fn remote(remote: &Remote) -> Result<Self, Failure> {
        let name = &remote.host;
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), remote.port))
            .await
            .map_err(|error| Failure::new(format!("{name}: {error}")))?
            .collect();
        let stream = connect(&addresses, &ConnectOptions::default()).await?;
        let tls = match remote.security {
            Security::Clear => None,
            _ => Some(ClientTls::new(
                Verification::Required,
                &Roots::load(remote.ca.as_deref())?,
            )?),
        };
        let mut link = match (&tls, remote.security) {
            (Some(tls), Security::Implicit) => {
                let (stream, _) = secured(tls.connect(name, stream).await)?;
                Self::new(Box::new(stream))
            }
            _ => Self::new(Box::new(stream)),
        };
        let greeting = link.greeted().await?;
        if let Some(tls) = tls.filter(|_| remote.security == Security::StartTls) {
            // RFC 9051 section 7.1.4: PREAUTH in clear text prevents STARTTLS.
            if greeting.condition == Condition::PreAuth {
                return Err(Failure::new(
                    "the server needs no login and has no TLS; imaps:// may have",
                ));
            }
            link.start_tls(&tls, name).await?;
        }
        // A server that sends PREAUTH (a started subprocess, say) has authenticated the user already.
        if greeting.condition != Condition::PreAuth {
            link.login(&remote.credentials).await?;
        }
        // A server may announce more capabilities after the login.
        link.run(&Command::Capability, &mut deaf).await?;
        Ok(link)
    }

    async fn greeted(&mut self) -> Result<Status, Failure> {
        loop {
            if let Some(greeting) = self.greeting.take() {
                return match greeting.condition {
                    Condition::Bye => Err(Failure::new(format!(
                        "the server does not serve: {}",
                        greeting.text
                    ))),
                    _ => Ok(greeting),
                };
            }
            self.pump(&mut deaf).await?;
        }
    }

    async fn start_tls(&mut self, tls: &ClientTls, host: &str) -> Result<(), Failure> {
        self.run(&Command::StartTls, &mut deaf).await?;
        if !self.unread.is_empty() {
            return Err(Failure::new(
                "something came between STARTTLS and the handshake: perhaps somebody else speaks",
            ));
        }
        let Some(stream) = self.stream.take() else {
            return Err(Failure::new("the connection is closed"));
        };
        let (stream, _) = secured(tls.connect(host, stream).await)?;
        self.stream = Some(Box::new(stream));
        self.client.tls_started();
        Ok(())
    }

    async fn login(&mut self, credentials: &Credentials) -> Result<(), Failure> {
        if !self.client.knows_capabilities() {
            self.run(&Command::Capability, &mut deaf).await?;
        }
        let offered = [Mechanism::ScramSha256, Mechanism::Plain]
            .into_iter()
            .find(|mechanism| self.client.can(&format!("AUTH={}", mechanism.name())));
        let token = match offered {
            Some(mechanism) => {
                let nonce = NonceSource::new(secret::random()).next();
                let (exchange, initial) = Exchange::begin(mechanism, credentials, nonce)?;
                self.client
                    .authenticate(mechanism.name(), exchange, initial)
            }
            None => self.client.send(&Command::Login(credentials.clone())),
        };
        let status = self.wait(token, &mut deaf).await?;
        if !status.is_ok() {
            return Err(Failure::new(format!("login refused: {}", status.text)));
        }
        Ok(())
    }

    /// Whether the server announces a capability.
    pub(super) fn can(&self, capability: &str) -> bool {
        self.client.can(capability)
    }

    /// Sends a command that need not end before the next command.
    pub(super) fn send(&mut self, command: &Command) -> Token {
        self.client.send(command)
    }

    /// Waits for the end of a command, which may be `NO`.
    pub(super) async fn wait(&mut self, token: Token, hear: Hear<'_>) -> Result<Status, Failure> {
        loop {
            if let Some(status) = self.done.remove(&token) {
                return Ok(status);
            }
            self.pump(hear).await?;
        }
    }

    /// Runs a command that must succeed.
    pub(super) async fn run(
        &mut self,
        command: &Command,
        hear: Hear<'_>,
    ) -> Result<Status, Failure> {
        let token = self.send(command);
        let status = self.wait(token, hear).await?;
        match status.is_ok() {
            true => Ok(status),
            false => Err(Failure::new(format!("the server refused: {}", status.text))),
        }
    }

    /// Sends a message to add, without waiting for the end of the command.
    pub(super) async fn append(
        &mut self,
        to: &AppendTo,
        message: &mut Message,
    ) -> Result<Token, Failure> {
        let token = self.client.append(to, message.size);
        self.give(token, message).await?;
        Ok(token)
    }

    /// Sends messages to be added in one transaction, without waiting for the response.
    pub(super) async fn append_several(
        &mut self,
        messages: &mut [(AppendTo, &mut Message)],
    ) -> Result<Option<Token>, Failure> {
        let count = messages.len();
        let Some(((to, first), others)) = messages.split_first_mut() else {
            return Ok(None);
        };
        let token = self.client.append_several(to, first.size, count);
        self.give(token, first).await?;
        for (to, message) in others {
            self.client.append_next(to, message.size);
            self.give(token, message).await?;
        }
        Ok(Some(token))
    }

    /// Sends the octets of an announced message.
    async fn give(&mut self, token: Token, message: &mut Message) -> Result<(), Failure> {
        message.rewind()?;
        let mut buffer = vec![0; PIECE];
        loop {
            self.flush().await?;
            while self.client.waits_for_leave() {
                self.pump(&mut deaf).await?;
                self.flush().await?;
            }
            if self.done.contains_key(&token) {
                // Refused before the message was sent.
                return Ok(());
            }
            while self.client.unsent() < UNSENT_MAX {
                match message.read(&mut buffer)? {
                    0 => return Ok(()),
                    octets => self.client.append_octets(&buffer[..octets]),
                }
            }
        }
    }

    /// Sends the octets that the machine allows to send.
    async fn flush(&mut self) -> Result<(), Failure> {
        let stream = self.stream.as_mut();
        let stream = stream.ok_or_else(|| Failure::new("the connection is closed"))?;
        while !self.client.output().is_empty() {
            let write = stream.write(self.client.output());
            let octets = tokio::time::timeout(PATIENCE, write).await??;
            if octets == 0 {
                return Err(Failure::from(io::Error::from(io::ErrorKind::WriteZero)));
            }
            self.client.sent(octets);
        }
        Ok(tokio::time::timeout(PATIENCE, stream.flush()).await??)
    }

    /// Sends the allowed octets, and processes the received octets.
    async fn pump(&mut self, hear: Hear<'_>) -> Result<(), Failure> {
        self.flush().await?;
        if self.unread.is_empty() {
            let stream = self.stream.as_mut();
            let stream = stream.ok_or_else(|| Failure::new("the connection is closed"))?;
            let octets = tokio::time::timeout(PATIENCE, stream.read(&mut self.buffer)).await??;
            if octets == 0 {
                return Err(Failure::new("the server closed the connection"));
            }
            self.unread = 0..octets;
        }
        while !self.unread.is_empty() {
            let (taken, event) = self.client.input(&self.buffer[self.unread.clone()])?;
            self.unread.start += taken;
            match event {
                None => {}
                Some(Event::Greeting(status)) => {
                    self.greeting = Some(status);
                    return Ok(());
                }
                Some(Event::Done(token, status)) => {
                    self.done.insert(token, status);
                    return Ok(());
                }
                Some(Event::Said(Response::Status(status)))
                    if status.condition == Condition::Bye && self.client.under_way() > 0 =>
                {
                    return Err(Failure::new(format!("the server ended: {}", status.text)));
                }
                Some(event) => hear(event)?,
            }
        }
        Ok(())
    }
}

/// Adds a hint for a certificate of a private CA.
fn secured<T>(connected: Result<T, ConnectTlsError>) -> Result<T, Failure> {
    connected.map_err(|error| match error.is_unknown_issuer() {
        true => Failure::new(format!("{error}; --ca FILE names one that is trusted too")),
        false => error.into(),
    })
}
