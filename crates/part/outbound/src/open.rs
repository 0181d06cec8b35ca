//! From the addresses of a host to a connection that takes messages.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use vere_net::connect::{ConnectOptions, connect};
use vere_net::tls::{PeerCertificate, TlsInfo};
use vere_queue::TlsWish;
use vere_settings::{Protocol, TlsMode};
use vere_smtp::client::TlsMode as ClientTls;
use vere_smtp::client::{Client, ClientConfig, ClientStep, CloseReason, TransactionOutcome};
use vere_telemetry::metrics::{ConnectionResult, HandshakeResult, TlsPolicy};

use super::hosts::{Host, Hosts};
use super::patience::Patience;
use super::security::Security;
use super::sessions::Session;
use super::{Outbound, OutboundConfig};
use vere_process::clock;
use vere_process::secret;
use vere_process::wire::{self, Connection};

/// Connections made to one host in turn, when the first ones come about and lead to nothing.
const CONNECTIONS_MAX: usize = 3;
/// What a host that does not offer REQUIRETLS means for a message that needs it.
const NO_REQUIRE_TLS: &str = "message needs REQUIRETLS, which the server does not offer";

/// A connection that takes messages.
pub struct Opened {
    /// The octets of the connection.
    pub stream: Box<dyn Connection>,
    /// The SMTP client at the beginning of a transaction.
    pub client: Client,
    /// The host's name and address, for traces and reports.
    pub remote: String,
    /// Negotiated encryption; `None` in the clear.
    pub tls: Option<TlsInfo>,
    /// Policy that demanded the encryption.
    pub policy: TlsPolicy,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Opened");
        shown.field("remote", &self.remote).field("tls", &self.tls);
        shown.field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Opened {
    /// Says goodbye; nothing depends on the answer.
    pub async fn quit(&mut self) {
        self.client.quit(clock::steady());
        drive(&mut self.stream, &mut self.client).await;
    }

    /// The TLS version and the policy that applied, for traces.
    pub fn security(&self) -> String {
        let version = self.tls.as_ref().map_or("clear", |tls| tls.version);
        format!("{version} {}", self.policy.value())
    }
}

/// What driving the machine led to.
#[derive(Debug)]
pub enum Progress {
    /// The server takes a message.
    Ready,
    /// A transaction has ended.
    Done(Box<TransactionOutcome>),
    /// The TLS handshake is next.
    StartTls,
    /// The session is over.
    Closed(CloseReason),
}

/// Why a host does not take messages.
#[derive(Debug)]
pub enum OpenError {
    /// The TLS handshake failed.
    Handshake(String),
    /// The host has no address, or none that takes a connection.
    Unreachable(String),
    /// A policy forbids to send anything there.
    Policy(String),
    /// The message needs REQUIRETLS, and it is not proven to be the right host.
    Unproven(String),
    /// It does not promise what the message's sender demands.
    NoRequireTls,
    /// It does not take our name and password.
    Login(String),
    /// Everything else.
    Refused(String),
}

impl OpenError {
    fn silent(after: Duration) -> Self {
        let seconds = after.as_secs_f64();
        Self::Unreachable(format!("server not ready within {seconds:.1} s"))
    }

    fn closed(reason: &CloseReason) -> Self {
        let reply = crate::reply_line(&reason.reply());
        match reason {
            CloseReason::AuthRefused(_)
            | CloseReason::AuthUnavailable
            | CloseReason::AuthBroken(_) => Self::Login(reply),
            CloseReason::TlsUnavailable
            | CloseReason::TlsRefused(_)
            | CloseReason::InjectedBeforeTls => Self::Policy(reply),
            _ => Self::Refused(reply),
        }
    }

    /// Whether the fault concerns the host for all mail: nothing was asked of the host that only some
    /// messages need.
    pub(super) const fn is_general(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Refused(_))
    }

    /// One line, for a report or a trace.
    pub fn into_reply(self) -> String {
        match self {
            Self::Handshake(error) => format!("TLS handshake failed: {error}"),
            Self::NoRequireTls => NO_REQUIRE_TLS.to_owned(),
            Self::Policy(reply)
            | Self::Unproven(reply)
            | Self::Unreachable(reply)
            | Self::Login(reply)
            | Self::Refused(reply) => reply,
        }
    }
}

impl Outbound {
    /// A connection to one host, at whichever of its addresses takes mail.
    ///
    /// # Errors
    /// What to tell about a host that does not.
    pub async fn open(&self, hosts: &Hosts, host: &Host) -> Result<Opened, OpenError> {
        self.open_host(hosts, host, (Patience(None), true)).await
    }

    pub(super) async fn open_host(
        &self,
        hosts: &Hosts,
        host: &Host,
        (patience, is_last_host): (Patience, bool),
    ) -> Result<Opened, OpenError> {
        let mut left = match &host.addresses {
            Ok(_) => self.by_health(host),
            Err(why) => {
                self.metrics.connection_begun(ConnectionResult::Unreachable);
                return Err(OpenError::Unreachable(why.clone()));
            }
        };
        let security = self.security(hosts, host).await.map_err(|forbidden| {
            self.metrics.policy(forbidden.policy, false);
            self.note_forbidden(hosts, host, &forbidden);
            match forbidden.policy {
                TlsPolicy::RequireTls => OpenError::Unproven(forbidden.reply),
                _ => OpenError::Policy(forbidden.reply),
            }
        })?;
        let mut made = 0;
        loop {
            made += 1;
            let (stream, address) = self.connect(hosts, &mut left).await?;
            let is_last = is_last_host && (left.is_empty() || made >= CONNECTIONS_MAX);
            let begun = self.begin(hosts, host, &security, stream, address);
            let begun = patience.wait(is_last, begun).await;
            let error = match begun.unwrap_or_else(|after| Err(OpenError::silent(after))) {
                Ok(mut opened) => {
                    self.failures.borrow_mut().worked(address);
                    if hosts.wish == TlsWish::Required && !opened.client.extensions().require_tls {
                        opened.quit().await;
                        self.metrics.policy(TlsPolicy::RequireTls, false);
                        return Err(OpenError::NoRequireTls);
                    }
                    let named = security.policy != TlsPolicy::StsTesting || hosts.is_named(host);
                    let kept = security.is_kept(opened.tls.as_ref()) && named;
                    self.metrics.policy(security.policy, kept);
                    return Ok(opened);
                }
                Err(error) => error,
            };
            if matches!(error, OpenError::Handshake(_)) {
                self.metrics.policy(security.policy, false);
            }
            self.failures.borrow_mut().failed(address, clock::steady());
            // Other addresses would refuse the same login, and repeated failures may lock the account.
            let hopeless = matches!(error, OpenError::Login(_));
            if hopeless || left.is_empty() || made >= CONNECTIONS_MAX {
                return Err(error);
            }
        }
    }

    /// The addresses of a host, those last that did not answer a moment ago.
    fn by_health(&self, host: &Host) -> Vec<SocketAddr> {
        let now = clock::steady();
        let failures = self.failures.borrow();
        let all: Vec<SocketAddr> = host.sockets().collect();
        let mut sockets = vere_net::connect::alternate(&all);
        sockets.sort_by_key(|address| failures.is_failing(*address, now));
        sockets
    }

    /// Connects to the first of the addresses that answers, and takes out those that need not be tried
    /// again.
    async fn connect(
        &self,
        hosts: &Hosts,
        left: &mut Vec<SocketAddr>,
    ) -> Result<(TcpStream, SocketAddr), OpenError> {
        let config = self.config();
        let options = ConnectOptions {
            timeout: config.settings.delivery.connect_timeout.duration(),
            source_v4: hosts.source.as_ref().and_then(|source| source.ipv4),
            source_v6: hosts.source.as_ref().and_then(|source| source.ipv6),
            in_order: true,
            ..ConnectOptions::default()
        };
        let connected = connect(left, &options).await;
        let connected = connected.map_err(|error| {
            for (address, _) in &error.attempts {
                self.failures.borrow_mut().failed(*address, clock::steady());
            }
            error.to_string()
        });
        let with_peer = connected.and_then(|stream| match stream.peer_addr() {
            Ok(address) => Ok((stream, address)),
            Err(error) => Err(error.to_string()),
        });
        match with_peer {
            Ok((stream, address)) => {
                left.retain(|other| *other != address);
                Ok((stream, address))
            }
            Err(reply) => {
                self.metrics.connection_begun(ConnectionResult::Unreachable);
                Err(OpenError::Unreachable(reply))
            }
        }
    }

    /// Goes on with a connection until it takes messages.
    async fn begin(
        &self,
        hosts: &Hosts,
        host: &Host,
        security: &Security,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Result<Opened, OpenError> {
        let opened = self.begin_with(hosts, host, security, stream).await;
        let opened = self.count(opened);
        match opened {
            // RFC 7435: opportunistic encryption gives way rather than to stop the mail.
            Err(OpenError::Handshake(error)) if security.tls == TlsMode::Opportunistic => {
                tracing::info!(remote = %host.name, %error, "TLS failed, trying in the clear");
                let (stream, _) = self.connect(hosts, &mut vec![address]).await?;
                let clear = Security {
                    tls: TlsMode::Off,
                    ..security.clone()
                };
                let opened = self.begin_with(hosts, host, &clear, stream).await;
                self.count(opened)
            }
            other => other,
        }
    }

    fn count(&self, opened: Result<Opened, OpenError>) -> Result<Opened, OpenError> {
        self.metrics.connection_begun(match &opened {
            Ok(_) => ConnectionResult::Open,
            Err(OpenError::Unreachable(_)) => ConnectionResult::Unreachable,
            Err(OpenError::Handshake(_)) => ConnectionResult::Tls,
            Err(_) => ConnectionResult::Refused,
        });
        opened
    }

    async fn begin_with(
        &self,
        hosts: &Hosts,
        host: &Host,
        security: &Security,
        stream: TcpStream,
    ) -> Result<Opened, OpenError> {
        let (tls, policy) = (security.tls, security.policy);
        let config = self.config();
        let remote = match stream.peer_addr() {
            Ok(address) => format!("{} [{}]:{}", host.name, address.ip(), address.port()),
            Err(_) => host.name.clone(),
        };
        let machine = client_config(&config, hosts, tls);
        let session = Session::new(hosts, host, security, &stream);
        if tls == TlsMode::Implicit {
            let (stream, info) = self.shake_hands(&config, &session, stream).await?;
            let client = Client::new(machine, clock::steady());
            return finish(Box::new(stream), client, remote, info, policy).await;
        }
        let mut stream = stream;
        let mut client = Client::new(machine, clock::steady());
        match drive(&mut stream, &mut client).await {
            Progress::StartTls => {
                let (stream, info) = self.shake_hands(&config, &session, stream).await?;
                client.tls_started(clock::steady());
                finish(Box::new(stream), client, remote, info, policy).await
            }
            progress => {
                let is_offered = client.extensions().starttls;
                match &progress {
                    Progress::Ready => self.note_unencrypted(&session, None, is_offered),
                    Progress::Closed(reason) => {
                        self.note_unencrypted(&session, Some(reason), is_offered);
                    }
                    Progress::Done(_) | Progress::StartTls => {}
                }
                ended(progress).map(|()| Opened {
                    stream: Box::new(stream),
                    client,
                    remote,
                    tls: None,
                    policy,
                })
            }
        }
    }

    async fn shake_hands(
        &self,
        config: &OutboundConfig,
        session: &Session<'_>,
        stream: TcpStream,
    ) -> Result<(vere_net::tls::ClientStream<TcpStream>, TlsInfo), OpenError> {
        let Session { host, security, .. } = session;
        let connected = match &security.dane {
            Some(by) => config.tls.connect_dane(&by.dane, &by.base, stream).await,
            None => {
                let verified = security.is_verified();
                config.tls.connect(&host.name, verified, stream).await
            }
        };
        let result = match &connected {
            Ok((_, info)) if info.certificate == PeerCertificate::Valid => HandshakeResult::Done,
            Ok(_) => HandshakeResult::Unverified,
            Err(_) => HandshakeResult::Failed,
        };
        self.metrics.handshake(result);
        self.note_handshake(session, connected.as_ref().map(|(_, info)| info));
        connected.map_err(|error| OpenError::Handshake(error.to_string()))
    }
}

/// Drives a connection that is encrypted until it takes messages.
async fn finish(
    mut stream: Box<dyn Connection>,
    mut client: Client,
    remote: String,
    tls: TlsInfo,
    policy: TlsPolicy,
) -> Result<Opened, OpenError> {
    let progress = drive(&mut stream, &mut client).await;
    ended(progress).map(|()| Opened {
        stream,
        client,
        remote,
        tls: Some(tls),
        policy,
    })
}

/// Whether a connection takes messages.
fn ended(progress: Progress) -> Result<(), OpenError> {
    match progress {
        Progress::Ready => Ok(()),
        Progress::Closed(reason) => Err(OpenError::closed(&reason)),
        Progress::StartTls => Err(OpenError::Refused("server asked for TLS twice".to_owned())),
        Progress::Done(_) => Err(OpenError::Refused(
            "message settled before it was sent".to_owned(),
        )),
    }
}

fn client_config(config: &OutboundConfig, hosts: &Hosts, tls: TlsMode) -> Arc<ClientConfig> {
    let hostname = match &hosts.source {
        Some(source) => &source.hostname,
        None => &config.settings.hostname,
    };
    let mut machine = ClientConfig::new(hostname.clone(), secret::random());
    machine.tls = match tls {
        TlsMode::Off => ClientTls::Off,
        TlsMode::Opportunistic => ClientTls::Opportunistic,
        TlsMode::Required => ClientTls::Required,
        TlsMode::Implicit => ClientTls::Implicit,
    };
    let one_round_max = config.settings.delivery.one_round_max.as_u64();
    machine.one_round_max = usize::try_from(one_round_max).unwrap_or(usize::MAX);
    machine.lmtp = hosts.protocol == Protocol::Lmtp;
    machine.auth = hosts.login.clone();
    machine.auth_in_clear = hosts.password_in_clear;
    Arc::new(machine)
}

/// Moves octets until the machine wants something else.
pub async fn drive(stream: &mut impl Connection, client: &mut Client) -> Progress {
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
    let patience = clock::until_steady(client.deadline());
    let mut unheard = Vec::new();
    let sent = {
        let exchange = wire::exchange(stream, client.output(), |octets| {
            unheard.extend_from_slice(octets);
        });
        wire::within(patience, exchange).await
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
        client.input(&unheard, clock::steady());
    }
    result
}

async fn receive(stream: &mut impl Connection, client: &mut Client) -> io::Result<()> {
    let patience = clock::until_steady(client.deadline());
    let read = wire::read(stream, |octets| client.input(octets, clock::steady()));
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
