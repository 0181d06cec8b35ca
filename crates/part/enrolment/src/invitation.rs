//! The inviting machine: listens until one machine has joined, or the time is over.
//!
//! Wrong secrets end nothing: a secret of 256 random bits is not guessed, and whoever reaches the port could end the
//! invitation of somebody else.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ServerConfig, ServerConnection, Stream};
use vere_units::{Secret, constant_time_eq};

use crate::authority::{Authority, Purpose};
use crate::crowd::{Crowd, Entered};
use crate::message::{Membership, REQUEST_MAX, Reply, Request, VERSION};
use crate::wire::Timed;
use crate::{EnrolmentError, Token};
use vere_joinwire::wire::{receive, send};

/// Failed connections that are logged, so that strangers do not fill the log.
const LOGGED_MAX: usize = 20;
/// The text for a machine with another secret, such as that of a token from before.
const WRONG_SECRET: &str = "the secret of the token is wrong: the token is of an earlier invitation, which ended; copy the \
    line that `vere node invite` printed last";
/// The DNS name of the inviting machine's certificate: no node and no gateway has it.
pub(crate) const INVITER: &str = "inviter.spool.invalid";
/// The protocol name (RFC 7301).
pub(crate) const PROTOCOL: &[u8] = b"vere-join";
/// Pause between two looks for connections, and for the end.
const LOOK: Duration = Duration::from_millis(50);

/// The bounds of an invitation.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long the invitation is valid.
    pub valid: Duration,
    /// How long a stranger may take from the connection to the request.
    pub stranger: Duration,
    /// How long an accepted machine may take to write its files.
    pub accepted: Duration,
    /// How long the answer to a wrong secret is kept back, at most for `stranger`.
    pub wrong: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            valid: Duration::from_secs(3600),
            stranger: Duration::from_secs(10),
            accepted: Duration::from_secs(60),
            wrong: Duration::from_secs(1),
        }
    }
}

/// How an invitation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A machine joined from this address.
    Joined(SocketAddr),
    /// Nobody joined in time.
    Expired,
    /// The operator ended it.
    Stopped,
}

/// An offer to one machine to become a node.
#[derive(Debug)]
pub struct Invitation {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    token: Token,
    authority: Authority,
    /// Everything but the certificate.
    membership: Membership,
    limits: Limits,
    crowd: Crowd,
    failures: AtomicUsize,
    ended: AtomicBool,
    joined: Mutex<Option<SocketAddr>>,
}

impl Invitation {
    /// Prepares an invitation that listens already. `membership` has an empty certificate.
    ///
    /// # Errors
    /// The certificate of the connection cannot be made, or the socket has no address.
    pub fn new(
        listener: TcpListener,
        authority: Authority,
        membership: Membership,
        limits: Limits,
    ) -> Result<Self, EnrolmentError> {
        let failed = || EnrolmentError::connection("the listener");
        let address = listener.local_addr().map_err(failed())?;
        listener.set_nonblocking(true).map_err(failed())?;
        let token = Token {
            address,
            pin: authority.pin(),
            secret: Secret::new(vere_process::secret::random()),
        };
        Ok(Self {
            tls: server_config(&authority)?,
            listener,
            token,
            authority,
            membership,
            limits,
            crowd: Crowd::default(),
            failures: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            joined: Mutex::new(None),
        })
    }

    /// Puts another address into the token: this machine is reached there, such as in front of a NAT.
    pub const fn advertise(&mut self, address: SocketAddr) {
        self.token.address = address;
    }

    /// The token for the other machine.
    pub const fn token(&self) -> &Token {
        &self.token
    }

    /// Serves until the end, and then closes the port. `record` puts the node into the settings of this machine, once the other machine has
    /// written its files; a refusal by `record` leaves the invitation open.
    ///
    /// # Errors
    /// The listener fails.
    pub fn serve(
        self,
        stop: &AtomicBool,
        record: &(impl Fn() -> Result<(), String> + Sync),
    ) -> Result<Ending, EnrolmentError> {
        let until = Instant::now() + self.limits.valid;
        let this = &self;
        std::thread::scope(|scope| {
            loop {
                if let Some(ending) = this.ending(stop, until) {
                    this.ended.store(true, Ordering::Release);
                    return Ok(ending);
                }
                if !this.crowd.has_room() {
                    std::thread::sleep(LOOK);
                    continue;
                }
                match this.listener.accept() {
                    Ok((stream, peer)) => {
                        let Some(entered) = this.crowd.enter(&stream, peer.ip()) else {
                            this.note(peer, &io::Error::other("there are too many connections"));
                            continue;
                        };
                        let serve = move || this.attend(stream, peer, &entered, record);
                        let thread = std::thread::Builder::new().name("join".to_owned());
                        // A thread that cannot start drops the connection and its place.
                        drop(thread.spawn_scoped(scope, serve));
                    }
                    Err(error) if is_passing(&error) => std::thread::sleep(LOOK),
                    Err(error) => return Err(EnrolmentError::connection("the listener")(error)),
                }
            }
        })
    }

    /// The end of the invitation, if it is reached.
    fn ending(&self, stop: &AtomicBool, until: Instant) -> Option<Ending> {
        if let Some(peer) = *self.joined.lock().unwrap_or_else(PoisonError::into_inner) {
            return Some(Ending::Joined(peer));
        }
        if stop.load(Ordering::Acquire) {
            return Some(Ending::Stopped);
        }
        (Instant::now() >= until).then_some(Ending::Expired)
    }

    /// Serves one connection, and says why it failed.
    fn attend(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        entered: &Entered<'_>,
        record: &impl Fn() -> Result<(), String>,
    ) {
        match self.converse(stream, peer, entered, record) {
            // Nobody said anything: a scan, or the probe of this machine.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                tracing::debug!(%peer, %error, "connection ended");
            }
            Err(error) => self.note(peer, &error),
            Ok(()) => {}
        }
    }

    /// Logs a failure, up to [`LOGGED_MAX`].
    fn note(&self, peer: SocketAddr, error: &io::Error) {
        match self.failures.fetch_add(1, Ordering::AcqRel) {
            before if before < LOGGED_MAX => tracing::warn!(%peer, %error, "joining failed"),
            LOGGED_MAX => tracing::warn!("further failed connections are not logged"),
            _ => {}
        }
    }

    fn converse(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        entered: &Entered<'_>,
        record: &impl Fn() -> Result<(), String>,
    ) -> io::Result<()> {
        let mut socket = Timed::new(stream, self.limits.stranger)?;
        let mut tls = ServerConnection::new(Arc::clone(&self.tls)).map_err(io::Error::other)?;
        let mut stream = Stream::new(&mut tls, &mut socket);
        let answer = self.answer(receive(&mut stream, REQUEST_MAX)?);
        match &answer {
            Reply::Accepted(_) => entered.prove(),
            Reply::Refused(reason) if reason == WRONG_SECRET => {
                self.note(peer, &io::Error::other("the secret is wrong"));
                stream.sock.sit_out(self.limits.wrong);
            }
            _ => {}
        }
        send(&mut stream, &answer)?;
        if let Reply::Accepted(_) = answer {
            stream.sock.prolong(self.limits.accepted);
            let request: Request = receive(&mut stream, REQUEST_MAX)?;
            let reply = self.record(&request, peer, record);
            send(&mut stream, &reply)?;
        }
        stream.conn.send_close_notify();
        // The other side has every message already.
        let _ = stream.conn.write_tls(stream.sock);
        Ok(())
    }

    /// The reply to the first message of a connection.
    fn answer(&self, request: Request) -> Reply {
        let Request::Join {
            version,
            secret,
            request,
        } = request
        else {
            return Reply::Refused("expected a request to join".to_owned());
        };
        if version != VERSION {
            let text = format!("expected version {VERSION} of the messages; found {version}");
            return Reply::Refused(format!("{text}: install the same vere on both machines"));
        }
        if self.ended.load(Ordering::Acquire) {
            return Reply::Refused("the invitation has ended".to_owned());
        }
        let wanted = hexadecimal(self.token.secret.expose());
        if !constant_time_eq(wanted.as_bytes(), secret.as_bytes()) {
            return Reply::Refused(WRONG_SECRET.to_owned());
        }
        let names = [self.membership.node.clone()];
        match self.authority.sign_request(&names, Purpose::Node, &request) {
            Ok(issued) => Reply::Accepted(Box::new(Membership {
                certificate: issued.pem,
                ca: self.authority.pem().to_owned(),
                ..self.membership.clone()
            })),
            Err(error) => Reply::Refused(error.to_string()),
        }
    }

    /// Records the node once, however many machines have the token.
    fn record(
        &self,
        request: &Request,
        peer: SocketAddr,
        record: &impl Fn() -> Result<(), String>,
    ) -> Reply {
        if *request != Request::Done {
            return Reply::Refused("expected the word that the files are written".to_owned());
        }
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if joined.is_some() || self.ended.load(Ordering::Acquire) {
            return Reply::Refused("the invitation has ended".to_owned());
        }
        match record() {
            Ok(()) => {
                *joined = Some(peer);
                Reply::Recorded
            }
            Err(reason) => Reply::Refused(reason),
        }
    }
}

/// Whether accepting goes on after an error: nobody is waiting, the peer is gone, or descriptors are short for now.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    // EMFILE and ENFILE.
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
        || matches!(error.raw_os_error(), Some(23 | 24))
}

/// Octets as hexadecimal digits.
pub(crate) fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// A certificate of its own for the connections, with the CA certificate behind it, which the joining machine
/// compares with the pin.
fn server_config(authority: &Authority) -> Result<Arc<ServerConfig>, EnrolmentError> {
    let failed = EnrolmentError::certificate("make a key");
    let key = KeyPair::generate().map_err(failed)?;
    let issued = authority.sign(&[INVITER.to_owned()], Purpose::Node, &key)?;
    let chain = vec![
        CertificateDer::from(issued.der),
        CertificateDer::from(authority.der().to_vec()),
    ];
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes());
    let key = key.map_err(|error| EnrolmentError::Tls {
        source: rustls::Error::General(error.to_string()),
    })?;
    let tls = |source| EnrolmentError::Tls { source };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(tls)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(tls)?;
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}
