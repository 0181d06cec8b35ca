//! Mutual TLS between processes of a system: both sides present a certificate of the same CA.
//!
//! [`MutualTls`] holds the certificates and makes a [`Line`] for each connection. The owner of the
//! socket drives a line, in a readiness loop as well as with blocking calls: [`Line::read`] and
//! [`Line::write`] replace the calls of the socket.
//!
//! TLS 1.3 only (RFC 8446), no session is resumed, so that every connection verifies both
//! certificates anew.

mod peer;

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, Connection, Error, InvalidMessage, ServerConfig,
    ServerConnection,
};
use vere_units::Timestamp;

use peer::Peer;

use super::certificates::{FileStamp, Loader, file_stamp, load, load_or_kept};
use super::{CertificateFiles, Leaf, Roots, TlsError, Validity, provider};

/// Octets of ciphertext read at once, and kept at most while the reader of the plaintext waits: two
/// records of the greatest length (RFC 8446 section 5.2).
const INPUT_LEN: usize = 36 * 1024;
/// The most octets waiting for the socket, and the most octets accepted by a call of [`Line::write`].
const OUTPUT_MAX: usize = 64 * 1024;
/// The protocol name of both sides (RFC 7301), so that a line cannot be confused with another service
/// that uses certificates of the same CA.
const PROTOCOL: &[u8] = b"vere-spool";
/// The protocol name of connections that bring a node its next certificate.
const RENEWAL: &[u8] = b"vere-spool-renewal";

/// The files of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutualTlsOptions {
    /// The certificate presented to the other side.
    pub files: CertificateFiles,
    /// A PEM file of the CAs accepted for the other side's certificate.
    pub ca: PathBuf,
}

/// Certificates for connections in both directions; clones share the certificates.
#[derive(Clone)]
pub struct MutualTls {
    inner: Arc<Inner>,
}

struct Inner {
    options: MutualTlsOptions,
    state: Mutex<State>,
}

struct State {
    keys: Keys,
    /// The fingerprints of the files at the last attempt to load, successful or not.
    attempted: [FileStamp; 3],
}

#[derive(Clone)]
struct Keys {
    server: Arc<ServerConfig>,
    own: Arc<CertifiedKey>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl fmt::Debug for MutualTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutualTls")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

impl MutualTls {
    /// Loads the files.
    ///
    /// # Errors
    /// A file cannot be read or is wrong, or the key does not fit the certificate, and no copy of better
    /// ones is kept.
    pub fn new(options: MutualTlsOptions) -> Result<Self, TlsError> {
        // Taken before reading: a change in between shows at the next look.
        let attempted = options.fingerprints();
        let state = Mutex::new(State {
            keys: Keys::load(&options, load_or_kept)?,
            attempted,
        });
        let inner = Arc::new(Inner { options, state });
        Ok(Self { inner })
    }

    /// The server's side of a new connection.
    ///
    /// # Errors
    /// The TLS library refuses, for which there is no known reason.
    pub fn accept(&self) -> Result<Line, TlsError> {
        let connection = ServerConnection::new(self.keys().server);
        let connection = connection.map_err(|source| TlsError::Library { source })?;
        let mut line = Line::new(Connection::Server(connection));
        line.held = true;
        Ok(line)
    }

    /// The client's side of a new connection to `address`. The server's certificate must name the
    /// address or, as a DNS name, `name`.
    ///
    /// # Errors
    /// The TLS library refuses, for which there is no known reason.
    pub fn connect(&self, name: &str, address: IpAddr) -> Result<Line, TlsError> {
        self.connect_for(PROTOCOL, name, address)
    }

    /// As [`Self::connect`], for a connection with the next certificate of the other side.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_to_renew(&self, name: &str, address: IpAddr) -> Result<Line, TlsError> {
        self.connect_for(RENEWAL, name, address)
    }

    fn connect_for(&self, protocol: &[u8], name: &str, address: IpAddr) -> Result<Line, TlsError> {
        let library = |source| TlsError::Library { source };
        let keys = self.keys();
        let peer = Peer {
            verifier: keys.verifier,
            name: ServerName::try_from(name.to_owned()).ok(),
        };
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(library)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(peer))
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(keys.own)));
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![protocol.to_vec()];
        let server = ServerName::from(address.to_canonical());
        let connection = ClientConnection::new(Arc::new(config), server).map_err(library)?;
        Ok(Line::new(Connection::Client(connection)))
    }

    /// The end of the own certificate's validity, with the path of the file.
    #[must_use]
    pub fn certificate_end(&self) -> Option<(PathBuf, Timestamp)> {
        let own = self.keys().own;
        let validity = Validity::of(own.cert.first()?)?;
        let file = self.inner.options.files.certificate.clone();
        Some((file, validity.not_after))
    }

    /// Verifies that a PEM text is a successor of the own certificate: signed by the CA, for the same key and names, and
    /// valid now and for longer.
    ///
    /// # Errors
    /// [`TlsError::Invalid`] with the path of the own certificate and the reason.
    pub fn check_successor(&self, pem: &[u8]) -> Result<(), TlsError> {
        let invalid = |problem: String| TlsError::Invalid {
            path: self.inner.options.files.certificate.clone(),
            problem: format!("refused as its successor: {problem}"),
        };
        let keys = self.keys();
        let next =
            CertificateDer::from_pem_slice(pem).map_err(|error| invalid(error.to_string()))?;
        let old = keys.own.cert.first().and_then(Leaf::of);
        let (Some(old), Some(new)) = (old, Leaf::of(&next)) else {
            return Err(invalid("the certificate cannot be parsed".to_owned()));
        };
        let differs = [
            (new.public_key != old.public_key, "the key differs"),
            (new.names != old.names, "the names differ"),
            (
                new.validity.not_after <= old.validity.not_after,
                "the certificate does not last longer",
            ),
        ];
        if let Some((_, problem)) = differs.into_iter().find(|(found, _)| *found) {
            return Err(invalid(problem.to_owned()));
        }
        let name = new
            .names
            .into_iter()
            .find_map(|name| ServerName::try_from(name).ok());
        let name = name.ok_or_else(|| invalid("the certificate has no name".to_owned()))?;
        let now = UnixTime::now();
        let verified = keys
            .verifier
            .verify_server_cert(&next, &[], &name, &[], now);
        verified
            .map(|_| ())
            .map_err(|error| invalid(error.to_string()))
    }

    /// The keys for a new connection: changed files are loaded first, if usable. Costs three `stat`.
    fn keys(&self) -> Keys {
        let options = &self.inner.options;
        let state = self.inner.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let found = options.fingerprints();
        if found != state.attempted {
            state.attempted = found;
            match Keys::load(options, load) {
                Ok(keys) => {
                    state.keys = keys;
                    tracing::info!("certificates of the spool loaded");
                }
                Err(error) => tracing::error!(%error, "old certificates of the spool stay in use"),
            }
        }
        state.keys.clone()
    }
}

impl MutualTlsOptions {
    fn fingerprints(&self) -> [FileStamp; 3] {
        let files = &self.files;
        [&files.certificate, &files.key, &self.ca].map(|path| file_stamp(path))
    }
}

impl Keys {
    fn load(options: &MutualTlsOptions, load: Loader) -> Result<Self, TlsError> {
        let library = |source| TlsError::Library { source };
        let invalid = |problem: &dyn fmt::Display| TlsError::Invalid {
            path: options.ca.clone(),
            problem: problem.to_string(),
        };
        let own = Arc::new(load(&options.files)?);
        let roots = Roots::only(&options.ca)?.store();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider());
        let clients = clients.build().map_err(|error| invalid(&error))?;
        let servers = WebPkiServerVerifier::builder_with_provider(roots, provider());
        let verifier = servers.build().map_err(|error| invalid(&error))?;
        let mut server = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(library)?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&own))));
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![PROTOCOL.to_vec(), RENEWAL.to_vec()];
        Ok(Self {
            server: Arc::new(server),
            own,
            verifier,
        })
    }
}

/// An encrypted connection without its socket, which is passed to every call. Holds at most about 200
/// KiB.
pub struct Line {
    connection: Connection,
    /// Ciphertext read from the socket and not yet processed.
    input: Box<[u8]>,
    begin: usize,
    end: usize,
    failure: Option<Error>,
    /// Whether the plaintext of a renewal waits for [`Self::take_renewal`].
    held: bool,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Line {
    fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(OUTPUT_MAX));
        Self {
            connection,
            input: vec![0; INPUT_LEN].into_boxed_slice(),
            begin: 0,
            end: 0,
            failure: None,
            held: false,
        }
    }

    /// Whether the other side has not been authenticated yet: no data can be written.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether the other side is authenticated and brings the next certificate of this side.
    #[must_use]
    pub fn is_renewal(&self) -> bool {
        !self.is_handshaking() && self.connection.alpn_protocol() == Some(RENEWAL)
    }

    /// Whether a server's side is a renewal, whose plaintext the next reads return. Until then a read would block, so
    /// that no octet of a renewal reaches the reader of another protocol.
    pub fn take_renewal(&mut self) -> bool {
        let is_renewal = self.is_renewal();
        self.held &= !is_renewal;
        is_renewal
    }

    /// The other side's certificate, once presented.
    #[must_use]
    pub fn peer_leaf(&self) -> Option<Leaf> {
        Leaf::of(self.connection.peer_certificates()?.first()?)
    }

    /// The end of the validity of the other side's certificate, once presented.
    #[must_use]
    pub fn peer_certificate_end(&self) -> Option<Timestamp> {
        let own = self.connection.peer_certificates()?.first()?;
        Some(Validity::of(own)?.not_after)
    }

    /// Reads plaintext as far as there is some, and from the socket when there is none; goes on with the
    /// handshake on the way. 0 is the end declared by the other side; an undeclared end is
    /// [`io::ErrorKind::UnexpectedEof`].
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] only when the socket would block and no plaintext is left in the
    /// line. [`io::ErrorKind::InvalidData`] when the other side fails authentication or does not speak
    /// TLS; the other side gets an alert as far as the socket accepts the octets. The errors of the
    /// socket.
    pub fn read(
        &mut self,
        socket: &mut (impl Read + Write),
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        let mut count = 0;
        loop {
            if self.held && self.is_renewal() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let rest = buffer.get_mut(count..).unwrap_or_default();
            match self.connection.reader().read(rest) {
                // The end declared by the other side, returned once all earlier plaintext is read.
                Ok(0) => return Ok(count),
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if count == buffer.len() {
                return Ok(count);
            }
            if self.failure.is_none() && self.begin < self.end {
                self.take(socket);
                continue;
            }
            if count > 0 {
                return Ok(count);
            }
            if let Some(failure) = &self.failure {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    describe(failure),
                ));
            }
            match socket.read(&mut self.input)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => (self.begin, self.end) = (0, read),
            }
        }
    }

    /// Decrypts octets read from the socket.
    fn take(&mut self, socket: &mut impl Write) {
        let mut octets = self.input.get(self.begin..self.end).unwrap_or_default();
        let before = octets.len();
        // There is room: all plaintext was taken before.
        let taken = self.connection.read_tls(&mut octets);
        self.begin += before - octets.len();
        if let Err(error) = self.connection.process_new_packets() {
            self.failure = Some(error);
        } else if let Err(error) = taken {
            self.failure = Some(Error::General(error.to_string()));
        }
        // Sends the records of the handshake or the alert; a full socket is tried again later.
        let _ = self.flush(socket);
    }

    /// Encrypts as much of `slices` as there is room for, and writes what the socket takes. The next
    /// call of this function or of [`Self::flush`] writes the rest.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the socket accepted too little of earlier output, or during
    /// the handshake. The errors of the socket.
    pub fn write(&mut self, socket: &mut impl Write, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush(socket)?;
        if self.connection.is_handshaking() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = self.connection.writer().write_vectored(slices)?;
        match self.flush(socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(count),
        }
    }

    /// Writes encrypted output.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the socket did not accept all octets. The errors of the
    /// socket.
    pub fn flush(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Declares the end of the data, as far as the socket accepts the octets.
    pub fn close(&mut self, socket: &mut impl Write) {
        self.connection.send_close_notify();
        // The other side notices the end in any case.
        let _ = self.flush(socket);
    }

    /// Completes the handshake on a blocking socket.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn shake_hands(&mut self, socket: &mut (impl Read + Write)) -> io::Result<()> {
        self.flush(socket)?;
        while self.connection.is_handshaking() {
            if self.begin == self.end {
                match socket.read(&mut self.input)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => (self.begin, self.end) = (0, read),
                }
            }
            self.take(socket);
            if let Some(failure) = &self.failure {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    describe(failure),
                ));
            }
        }
        self.flush(socket)
    }
}

/// The library's text, or a clearer text for common errors.
fn describe(error: &Error) -> String {
    match error {
        Error::NoCertificatesPresented => {
            "TLS refused: the other side shows no certificate".to_owned()
        }
        Error::InvalidCertificate(problem) => format!("TLS refused: certificate: {problem}"),
        Error::AlertReceived(alert) => format!("the other side refused TLS: {alert:?}"),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "TLS refused: the other side does not speak TLS".to_owned()
        }
        other => format!("TLS failed: {other}"),
    }
}

#[cfg(test)]
mod tests;
