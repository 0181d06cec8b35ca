//! Accepts TLS connections.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::Ticketer;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificates::Certificates;
use super::keyring::Keyring;
use super::options::ServerTlsOptions;
use super::{Leaf, PeerCertificate, Roots, TlsError, TlsInfo, provider};

/// Accepts TLS connections; clones share certificates and tickets.
#[derive(Clone)]
pub struct ServerTls {
    acceptor: TlsAcceptor,
    keyring: Arc<Keyring>,
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls")
            .field("keyring", &self.keyring)
            .finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Loads all certificates.
    ///
    /// # Errors
    /// As [`Keyring::new`], or the TLS library refuses.
    pub fn new(options: ServerTlsOptions) -> Result<Self, TlsError> {
        let keyring = Arc::new(Keyring::new(options)?);
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config(keyring.certificates())?)),
            keyring,
        })
    }

    /// The same server, which asks clients for a certificate that one of these roots has issued. A client without a certificate is served; a client
    /// with a certificate of other roots is not. Sessions are not resumed, so that each handshake checks the certificate.
    ///
    /// # Errors
    /// The TLS library refuses the roots.
    pub fn asking(&self, roots: &Roots) -> Result<Self, TlsError> {
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.store(), provider());
        let verifier = verifier.allow_unauthenticated().build();
        let verifier = verifier.map_err(|error| TlsError::NoRoots {
            problem: error.to_string(),
        })?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|source| TlsError::Library { source })?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(self.keyring.certificates());
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            keyring: Arc::clone(&self.keyring),
        })
    }

    /// The certificates and their keys.
    #[must_use]
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Carries out the server's side of the handshake.
    ///
    /// # Errors
    /// The connection breaks, the client sends no TLS, the sides have nothing in common
    /// ([`io::ErrorKind::InvalidData`]), or the time limit is exceeded ([`io::ErrorKind::TimedOut`]).
    pub async fn accept<S>(&self, stream: S) -> io::Result<(TlsStream<S>, TlsInfo)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let limit = self.keyring.handshake_timeout();
        let accepting = Box::pin(self.acceptor.accept(stream));
        let stream = match timeout(limit, accepting).await {
            Ok(accepted) => accepted?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        let connection = stream.get_ref().1;
        let sni = connection.server_name().map(str::to_owned);
        let shown = connection.peer_certificates().and_then(<[_]>::first);
        let certificate = shown.map_or(PeerCertificate::NotAsked, |shown| {
            // The handshake proved the certificate; one that cannot be read here has no names.
            let leaf = Leaf::of(shown);
            PeerCertificate::Client(leaf.map(|leaf| leaf.names).unwrap_or_default())
        });
        let info = TlsInfo::new(connection, sni, certificate);
        Ok((stream, info))
    }
}

/// The configuration of a server that shows certificates; sessions are resumed by tickets.
pub(super) fn config(certificates: Arc<Certificates>) -> Result<ServerConfig, TlsError> {
    let library = |source| TlsError::Library { source };
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(library)?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.ticketer = Ticketer::new().map_err(library)?;
    Ok(config)
}
