//! Accepts TLS connections.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring::Ticketer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use vere_units::Timestamp;

use super::certificates::{
    Certificates, Fingerprint, Loader, Set, fingerprint, load, load_or_kept,
};
use super::{HANDSHAKE_TIMEOUT, PeerCertificate, TlsError, TlsInfo, provider};

/// A certificate chain, the server's own first, and its private key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain.
    pub certificate: PathBuf,
    /// The key: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub key: PathBuf,
    /// Files that do not exist yet are no error, as before the first ACME order is done.
    pub may_be_missing: bool,
    /// The place for a copy of usable files (a single file with both, readable by the owner only): a
    /// start with unusable files loads the copy.
    pub kept: Option<PathBuf>,
}

impl CertificateFiles {
    /// Files that must exist.
    #[must_use]
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            may_be_missing: false,
            kept: None,
        }
    }
}

/// The certificates of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsOptions {
    /// Presented when no name matches or the client requests no name; without a default, the first of
    /// `sni`.
    pub default: Option<CertificateFiles>,
    /// Server names, or `*.` and a domain, with their certificates.
    pub sni: Vec<(String, CertificateFiles)>,
    /// Longest time for a handshake.
    pub handshake_timeout: Duration,
}

impl Default for ServerTlsOptions {
    fn default() -> Self {
        Self {
            default: None,
            sni: Vec::new(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
        }
    }
}

/// Whether [`ServerTls::reload_if_changed`] did anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// No file has changed since the last attempt.
    Unchanged,
    /// All files were loaded and are in use for new connections.
    Loaded,
}

/// Accepts TLS connections; clones share certificates and tickets.
#[derive(Clone)]
pub struct ServerTls {
    inner: Arc<Inner>,
}

struct Inner {
    acceptor: TlsAcceptor,
    certificates: Arc<Certificates>,
    state: Mutex<State>,
}

struct State {
    options: ServerTlsOptions,
    /// The fingerprints of the files at the last attempt to load, successful or not.
    attempted: Vec<Fingerprint>,
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls")
            .field("options", &self.state().options)
            .finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Loads all certificates.
    ///
    /// # Errors
    /// A required file is missing or invalid, or a key does not fit its certificate, and there is no
    /// copy of earlier files.
    pub fn new(options: ServerTlsOptions) -> Result<Self, TlsError> {
        let library = |source| TlsError::Library { source };
        let certificates = Arc::new(Certificates::default());
        let resolver = Arc::clone(&certificates);
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(library)?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.ticketer = Ticketer::new().map_err(library)?;
        let state = State {
            options: options.clone(),
            attempted: Vec::new(),
        };
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let inner = Inner {
            acceptor,
            certificates,
            state: Mutex::new(state),
        };
        let tls = Self {
            inner: Arc::new(inner),
        };
        tls.replace(options, load_or_kept)?;
        Ok(tls)
    }

    /// Whether there is a certificate: without one STARTTLS must not be offered.
    #[must_use]
    pub fn has_certificate(&self) -> bool {
        !self.inner.certificates.current().is_empty()
    }

    /// When the certificates in use end, by the path of their file.
    #[must_use]
    pub fn certificate_ends(&self) -> Vec<(PathBuf, Timestamp)> {
        self.inner.certificates.current().ends().to_vec()
    }

    /// Loads all files again; on an error the certificates in use stay.
    ///
    /// # Errors
    /// As [`Self::reload_with`].
    pub fn reload(&self) -> Result<(), TlsError> {
        let options = self.state().options.clone();
        self.reload_with(options)
    }

    /// Loads the files of other options; on an error the certificates and options in use stay.
    ///
    /// # Errors
    /// As [`Self::new`]; copies do not serve.
    pub fn reload_with(&self, options: ServerTlsOptions) -> Result<(), TlsError> {
        self.replace(options, load)
    }

    fn replace(&self, options: ServerTlsOptions, load: Loader) -> Result<(), TlsError> {
        let mut state = self.state();
        // Taken before reading: a change in between shows at the next look.
        state.attempted = fingerprints(&options);
        let set = Set::load(&options, load)?;
        state.options = options;
        self.inner.certificates.replace(set);
        Ok(())
    }

    /// Loads all files again when one has changed since the last attempt. Costs one `stat` a file;
    /// meant to be called every minute or so.
    ///
    /// # Errors
    /// As [`Self::reload_with`]; once for each change of the files.
    pub fn reload_if_changed(&self) -> Result<Reload, TlsError> {
        let state = self.state();
        if fingerprints(&state.options) == state.attempted {
            return Ok(Reload::Unchanged);
        }
        drop(state);
        self.reload().map(|()| Reload::Loaded)
    }

    /// Checks for changed files at each `interval`, for ever, and logs the result.
    pub async fn watch(&self, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            match self.reload_if_changed() {
                Ok(Reload::Unchanged) => {}
                Ok(Reload::Loaded) => tracing::info!("certificates loaded"),
                Err(error) => tracing::error!(%error, "old certificates stay in use"),
            }
        }
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
        let limit = self.state().options.handshake_timeout;
        let accepting = Box::pin(self.inner.acceptor.accept(stream));
        let stream = match timeout(limit, accepting).await {
            Ok(accepted) => accepted?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        let connection = stream.get_ref().1;
        let sni = connection.server_name().map(str::to_owned);
        let info = TlsInfo::new(connection, sni, PeerCertificate::NotAsked);
        Ok((stream, info))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn fingerprints(options: &ServerTlsOptions) -> Vec<Fingerprint> {
    options
        .default
        .iter()
        .chain(options.sni.iter().map(|(_, files)| files))
        .flat_map(|files| [fingerprint(&files.certificate), fingerprint(&files.key)])
        .collect()
}
