//! One connection to another host: drives the client machine over a socket.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::TcpStream;
use vere_net::connect::{ConnectOptions, connect};
use vere_queue::{Attempt, Envelope};
use vere_sasl::client::Credentials;
use vere_settings::{Protocol, TlsMode};
use vere_smtp::client::TlsMode as ClientTls;
use vere_smtp::client::{Client, ClientConfig, ClientStep, CloseReason, TransactionOutcome};
use vere_telemetry::metrics::{ConnectionResult, HandshakeResult, TlsSide};

use super::hosts::{self, Host, Hosts};
use crate::gateway::metrics::OpenConnection;
use crate::gateway::state::Gateway;
use crate::gateway::wire::{self, Connection};
use crate::gateway::{clock, convert};

/// A connection that is ready for messages, or was.
pub(super) struct RelaySession {
    stream: Box<dyn Connection>,
    client: Client,
    /// The host's name and address, for traces and reports.
    remote: String,
    /// Whether a message was sent already.
    used: bool,
    _open: OpenConnection,
}

/// Why a message was not sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// The connection was closed before the message began: nothing is known against it.
    BeforeMessage,
}

/// What driving the machine led to.
enum Progress {
    Ready,
    Done(Box<TransactionOutcome>),
    StartTls,
    Closed(CloseReason),
}

impl RelaySession {
    /// Connects to a host and goes on until it takes messages.
    ///
    /// # Errors
    /// What to tell about a host that does not.
    pub(super) async fn open(
        gateway: &Rc<Gateway>,
        hosts: &Hosts,
        host: &Host,
    ) -> Result<Self, String> {
        match Self::open_counted(gateway, hosts, host, hosts.tls).await {
            // RFC 7435: opportunistic encryption gives way rather than to stop the mail.
            Err(OpenError::Handshake(error)) if hosts.tls == TlsMode::Opportunistic => {
                tracing::info!(remote = %host.name, %error, "TLS failed, trying in the clear");
                let again = Self::open_counted(gateway, hosts, host, TlsMode::Off).await;
                again.map_err(OpenError::into_reply)
            }
            other => other.map_err(OpenError::into_reply),
        }
    }

    async fn open_counted(
        gateway: &Rc<Gateway>,
        hosts: &Hosts,
        host: &Host,
        tls: TlsMode,
    ) -> Result<Self, OpenError> {
        let opened = Self::open_with(gateway, hosts, host, tls).await;
        gateway.metrics.connection_begun(match &opened {
            Ok(_) => ConnectionResult::Open,
            Err(OpenError::Unreachable(_)) => ConnectionResult::Unreachable,
            Err(OpenError::Handshake(_)) => ConnectionResult::Tls,
            Err(OpenError::Refused(_)) => ConnectionResult::Refused,
        });
        opened
    }

    async fn open_with(
        gateway: &Rc<Gateway>,
        hosts: &Hosts,
        host: &Host,
        tls: TlsMode,
    ) -> Result<Self, OpenError> {
        let settings = gateway.settings();
        let addresses = hosts::addresses(gateway, host)
            .await
            .map_err(OpenError::Unreachable)?;
        let options = ConnectOptions {
            timeout: settings.delivery.connect_timeout.duration(),
            ..ConnectOptions::default()
        };
        let stream = connect(&addresses, &options)
            .await
            .map_err(|error| OpenError::Unreachable(error.to_string()))?;
        let open = gateway.metrics.connection_open();
        let remote = match stream.peer_addr() {
            Ok(address) => format!("{} [{}]:{}", host.name, address.ip(), address.port()),
            Err(_) => host.name.clone(),
        };
        let config = client_config(gateway, hosts, tls);
        let mut session = Plain {
            stream,
            client: Client::new(config, clock::now()),
            open,
        };
        match drive(&mut session.stream, &mut session.client).await {
            Progress::Ready => Ok(Self {
                stream: Box::new(session.stream),
                client: session.client,
                remote,
                used: false,
                _open: session.open,
            }),
            Progress::StartTls => session.start_tls(gateway, host, tls, remote).await,
            Progress::Closed(reason) => Err(OpenError::closed(&reason)),
            Progress::Done(_) => Err(OpenError::Refused(
                "message settled before it was sent".to_owned(),
            )),
        }
    }

    /// Sends one message.
    ///
    /// # Errors
    /// [`SessionEnd::BeforeMessage`] when a kept connection turns out to be closed.
    pub(super) async fn send(
        &mut self,
        envelope: &Envelope,
        body: Bytes,
    ) -> Result<Attempt, SessionEnd> {
        if self.used && self.closed_meanwhile() {
            return Err(SessionEnd::BeforeMessage);
        }
        let again = std::mem::replace(&mut self.used, true);
        let outgoing = match convert::outgoing(envelope, body) {
            Ok(outgoing) => outgoing,
            Err(broken) => return Ok(self.broken_addresses(envelope, &broken)),
        };
        self.client.begin(outgoing, clock::now());
        match drive(&mut self.stream, &mut self.client).await {
            // Closed before the server said anything about it.
            Progress::Done(outcome) if outcome.untried && again => Err(SessionEnd::BeforeMessage),
            Progress::Done(outcome) => Ok(Attempt {
                remote: self.remote.clone(),
                reports_taken_over: outcome.dsn_passed_on,
                results: convert::results(&outcome),
            }),
            // A machine that closes settles the message first, and only then says why it closed.
            Progress::Ready | Progress::StartTls | Progress::Closed(_) => {
                Err(SessionEnd::BeforeMessage)
            }
        }
    }

    fn broken_addresses(&self, envelope: &Envelope, broken: &[usize]) -> Attempt {
        Attempt {
            remote: self.remote.clone(),
            reports_taken_over: false,
            results: convert::broken(envelope, broken),
        }
    }

    /// Whether the connection takes another message.
    pub(super) fn usable(&mut self) -> bool {
        matches!(self.client.step(), ClientStep::Ready)
    }

    fn closed_meanwhile(&mut self) -> bool {
        !self.usable()
    }

    /// Waits until the server closes the connection or says something unasked, which ends it too.
    pub(super) async fn closed(&mut self) {
        loop {
            let client = &mut self.client;
            let read = wire::read(&mut self.stream, |octets| {
                client.input(octets, clock::now())
            })
            .await;
            match read {
                Ok(Some(_)) if matches!(self.client.step(), ClientStep::Ready) => {}
                Ok(Some(_)) => return,
                Ok(None) | Err(_) => return self.client.connection_lost(),
            }
        }
    }

    /// Says goodbye; nothing depends on the answer.
    pub(super) async fn quit(&mut self) {
        self.client.quit(clock::now());
        drive(&mut self.stream, &mut self.client).await;
    }
}

/// A connection before or without TLS.
struct Plain {
    stream: TcpStream,
    client: Client,
    open: OpenConnection,
}

impl Plain {
    async fn start_tls(
        mut self,
        gateway: &Rc<Gateway>,
        host: &Host,
        tls: TlsMode,
        remote: String,
    ) -> Result<RelaySession, OpenError> {
        let client_tls = gateway.client_tls();
        let connected = client_tls.connect(&host.name, tls, self.stream).await;
        let result = match &connected {
            Ok((_, true)) => HandshakeResult::Done,
            Ok((_, false)) => HandshakeResult::Unverified,
            Err(_) => HandshakeResult::Failed,
        };
        gateway.metrics.handshake(TlsSide::Client, result);
        let (mut stream, _) = connected.map_err(OpenError::Handshake)?;
        self.client.tls_started(clock::now());
        match drive(&mut stream, &mut self.client).await {
            Progress::Ready => Ok(RelaySession {
                stream: Box::new(stream),
                client: self.client,
                remote,
                used: false,
                _open: self.open,
            }),
            Progress::Closed(reason) => Err(OpenError::closed(&reason)),
            Progress::StartTls | Progress::Done(_) => {
                Err(OpenError::Refused("server asked for TLS twice".to_owned()))
            }
        }
    }
}

/// Why a connection does not take messages.
enum OpenError {
    /// The TLS handshake failed.
    Handshake(String),
    /// The host has no address, or none that takes a connection.
    Unreachable(String),
    /// Everything else.
    Refused(String),
}

impl OpenError {
    fn closed(reason: &CloseReason) -> Self {
        Self::Refused(convert::reply_line(&reason.reply()))
    }

    fn into_reply(self) -> String {
        match self {
            Self::Handshake(error) => format!("TLS handshake failed: {error}"),
            Self::Unreachable(reply) | Self::Refused(reply) => reply,
        }
    }
}

fn client_config(gateway: &Gateway, hosts: &Hosts, tls: TlsMode) -> Arc<ClientConfig> {
    let settings = gateway.settings();
    let mut config = ClientConfig::new(settings.hostname.clone(), gateway.random());
    config.tls = match tls {
        TlsMode::Off => ClientTls::Off,
        TlsMode::Opportunistic => ClientTls::Opportunistic,
        TlsMode::Required => ClientTls::Required,
    };
    config.lmtp = hosts.protocol == Protocol::Lmtp;
    if let Some(route) = &hosts.login
        && let (Some(username), Some(password)) = (&route.username, &route.password)
    {
        config.auth = Some(Credentials::new(
            username.clone(),
            password.expose().clone(),
        ));
    }
    Arc::new(config)
}

/// Moves octets until the machine wants something else.
async fn drive(stream: &mut impl Connection, client: &mut Client) -> Progress {
    loop {
        let moved = match client.step() {
            ClientStep::Ready => return Progress::Ready,
            ClientStep::Done(outcome) => return Progress::Done(outcome),
            ClientStep::StartTls => return Progress::StartTls,
            ClientStep::Closed(reason) => return Progress::Closed(reason),
            ClientStep::Send => send(stream, client).await,
            ClientStep::NeedInput => receive(stream, client).await,
        };
        if moved.is_err() {
            client.connection_lost();
        }
    }
}

/// Sends what the machine has, and listens meanwhile: a server may refuse in the middle of a message, and
/// one that waits for its own replies to be read must not be waited for.
async fn send(stream: &mut impl Connection, client: &mut Client) -> io::Result<()> {
    let patience = clock::until(client.deadline());
    let mut unheard = Vec::new();
    let sent = {
        let exchange = wire::exchange(stream, client.output(), |octets| {
            unheard.extend_from_slice(octets);
        });
        tokio::time::timeout(patience, exchange).await
    };
    let result = match sent {
        Ok(Ok(octets)) => {
            client.sent(octets);
            Ok(())
        }
        Ok(Err(error)) => Err(error),
        Err(_) => {
            client.timed_out();
            Ok(())
        }
    };
    if !unheard.is_empty() {
        client.input(&unheard, clock::now());
    }
    result
}

async fn receive(stream: &mut impl Connection, client: &mut Client) -> io::Result<()> {
    let patience = clock::until(client.deadline());
    let read = wire::read(stream, |octets| client.input(octets, clock::now()));
    match tokio::time::timeout(patience, read).await {
        Ok(Ok(Some(_))) => Ok(()),
        Ok(Ok(None)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            client.timed_out();
            Ok(())
        }
    }
}
