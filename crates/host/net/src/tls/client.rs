//! Makes TLS connections to next hops.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::dane::{Dane, DaneVerifier};
use super::fault::CertificateFault;
use super::keyring::Keyring;
use super::{HANDSHAKE_TIMEOUT, PeerCertificate, TlsError, TlsInfo, certificates, provider};

/// The treatment of a certificate that is not valid for the next hop's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// The result is recorded in [`TlsInfo::certificate`] and the connection continues (RFC 7435).
    Recorded,
    /// The handshake fails.
    Required,
}

/// The trusted CA certificates.
#[derive(Clone)]
pub struct Roots {
    store: Arc<RootCertStore>,
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots")
            .field("certificates", &self.store.len())
            .finish()
    }
}

impl Roots {
    /// The operating system's roots, together with the roots of a PEM file.
    ///
    /// # Errors
    /// The file is invalid, or there is no file and the system has no roots.
    pub fn load(extra: Option<&Path>) -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        let system = rustls_native_certs::load_native_certs();
        // Some systems carry roots that the library cannot read; the other roots suffice.
        store.add_parsable_certificates(system.certs);
        if let Some(path) = extra {
            add_file(&mut store, path)?;
        }
        if store.is_empty() {
            let errors: Vec<String> = system.errors.iter().map(ToString::to_string).collect();
            return Err(TlsError::NoRoots {
                problem: errors.join(", "),
            });
        }
        Ok(Self {
            store: Arc::new(store),
        })
    }

    /// No roots, for [`Verification::Recorded`] on a machine without roots: no certificate proves anything
    /// then, and the connection is encrypted all the same.
    #[must_use]
    pub fn none() -> Self {
        Self {
            store: Arc::new(RootCertStore::empty()),
        }
    }

    /// Only the roots of a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no certificate or a wrong one.
    pub fn only(path: &Path) -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        add_file(&mut store, path)?;
        Ok(Self {
            store: Arc::new(store),
        })
    }

    pub(super) fn store(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.store)
    }

    /// The configuration of a client with these roots only.
    pub(crate) fn client_config(&self) -> Result<ClientConfig, TlsError> {
        Ok(ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|source| TlsError::Library { source })?
            .with_root_certificates(Arc::clone(&self.store))
            .with_no_client_auth())
    }
}

fn add_file(store: &mut RootCertStore, path: &Path) -> Result<(), TlsError> {
    for root in certificates::chain(path)? {
        let invalid = |error: rustls::Error| TlsError::Invalid {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        store.add(root).map_err(invalid)?;
    }
    Ok(())
}

/// Why there is no TLS connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectTlsError {
    /// The next hop's name can be no server name: a matter of routing.
    #[error("{0:?} cannot be the name of a TLS server")]
    Name(String),
    /// No CA certificates are known, and the certificate has to be verified.
    #[error(
        "the certificate cannot be verified: this machine has no CA certificates, install \
         ca-certificates"
    )]
    NoRoots,
    /// The certificate is not valid for the name; only with [`Verification::Required`].
    #[error("certificate refused: {}", reason(.0))]
    Certificate(rustls::CertificateError),
    /// The peer does not speak TLS, or supports no common version or cipher suite.
    #[error("TLS handshake failed: {0}")]
    Handshake(#[source] rustls::Error),
    /// The connection broke.
    #[error("connection broke in the TLS handshake: {0}")]
    Io(#[source] io::Error),
    /// The handshake took too long.
    #[error("TLS handshake not done within {0:?}")]
    Timeout(Duration),
}

/// Why a certificate is not valid. The library says but `UnknownIssuer` of the most frequent reason.
fn reason(error: &rustls::CertificateError) -> String {
    match error {
        rustls::CertificateError::UnknownIssuer => {
            "signed by no authority that is trusted here (UnknownIssuer)".to_owned()
        }
        // The library shows the name of the type.
        rustls::CertificateError::Other(other) => other.0.to_string(),
        other => other.to_string(),
    }
}

impl ConnectTlsError {
    /// Whether trust in a further CA would cure the error.
    #[must_use]
    pub fn is_unknown_issuer(&self) -> bool {
        matches!(
            self,
            Self::Certificate(rustls::CertificateError::UnknownIssuer)
        )
    }

    /// The fault of the certificate, if the error is about one.
    #[must_use]
    pub const fn fault(&self) -> Option<CertificateFault> {
        match self {
            Self::Certificate(error) => Some(CertificateFault::of(error)),
            _ => None,
        }
    }

    fn new(error: io::Error) -> Self {
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(rustls::Error::InvalidCertificate(problem)) => Self::Certificate(problem.clone()),
            Some(other) => Self::Handshake(other.clone()),
            None => Self::Io(error),
        }
    }
}

/// Makes TLS connections; clones share the sessions to resume.
#[derive(Clone)]
pub struct ClientTls {
    connector: TlsConnector,
    /// `None` without roots.
    verifier: Option<Arc<WebPkiServerVerifier>>,
    verification: Verification,
    handshake_timeout: Duration,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("verification", &self.verification)
            .field("handshake_timeout", &self.handshake_timeout)
            .finish_non_exhaustive()
    }
}

impl ClientTls {
    /// A client that trusts `roots`.
    ///
    /// # Errors
    /// The TLS library refuses the roots. Without roots, a client that requires valid certificates refuses
    /// every connection ([`ConnectTlsError::NoRoots`]).
    pub fn new(verification: Verification, roots: &Roots) -> Result<Self, TlsError> {
        let verifier = verifier(roots)?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|source| TlsError::Library { source })?;
        // Each kind has its own configuration and so its own sessions: a session begun without a valid
        // certificate is never resumed where a valid certificate is required.
        let config = match (verification, &verifier) {
            (Verification::Required, Some(verifier)) => {
                builder.with_webpki_verifier(Arc::clone(verifier))
            }
            // `connect` refuses before the handshake; this verifier would refuse every certificate.
            (Verification::Required, None) => {
                builder.with_root_certificates(Arc::clone(&roots.store))
            }
            (Verification::Recorded, _) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate::new())),
        };
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config.with_no_client_auth())),
            verifier,
            verification,
            handshake_timeout: HANDSHAKE_TIMEOUT,
        })
    }

    /// The same without sessions to resume: for servers that strangers name. A ticket has octets of the server's choice, and the name of the server
    /// may have another address at the next connection.
    #[must_use]
    pub fn without_resumption(mut self) -> Self {
        let mut config = ClientConfig::clone(self.connector.config());
        config.resumption = Resumption::disabled();
        self.connector = TlsConnector::from(Arc::new(config));
        self
    }

    /// Shows the default certificate of a keyring to servers that ask for one.
    #[must_use]
    pub fn showing(mut self, keyring: &Keyring) -> Self {
        let mut config = ClientConfig::clone(self.connector.config());
        config.client_auth_cert_resolver = keyring.certificates();
        self.connector = TlsConnector::from(Arc::new(config));
        self
    }

    /// Replaces the time limit for handshakes.
    #[must_use]
    pub fn with_handshake_timeout(mut self, limit: Duration) -> Self {
        self.handshake_timeout = limit;
        self
    }

    /// Does the client's side of the handshake with `host`: a DNS name, with or without trailing
    /// dot, or an address.
    ///
    /// # Errors
    /// See [`ConnectTlsError`].
    pub async fn connect<S>(
        &self,
        host: &str,
        stream: S,
    ) -> Result<(TlsStream<S>, TlsInfo), ConnectTlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if self.verification == Verification::Required && self.verifier.is_none() {
            return Err(ConnectTlsError::NoRoots);
        }
        let verdict = |connection: &ClientConnection, name: &ServerName<'_>| {
            self.certificate(connection, name)
        };
        handshake(
            &self.connector,
            host,
            stream,
            self.handshake_timeout,
            verdict,
        )
        .await
    }

    /// As [`Self::connect`], with a host authenticated by TLSA records alone. `host` is the name used for
    /// the lookup of the records (RFC 7672 section 8.1).
    ///
    /// # Errors
    /// See [`ConnectTlsError`].
    pub async fn connect_dane<S>(
        &self,
        dane: &Dane,
        host: &str,
        stream: S,
    ) -> Result<(TlsStream<S>, TlsInfo), ConnectTlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(ConnectTlsError::Handshake)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(DaneVerifier::new(dane.clone())))
            .with_no_client_auth();
        // A session that is resumed shows no certificate, and the records may have changed.
        config.resumption = Resumption::disabled();
        let connector = TlsConnector::from(Arc::new(config));
        let verdict = |_: &ClientConnection, _: &ServerName<'_>| PeerCertificate::Valid;
        handshake(&connector, host, stream, self.handshake_timeout, verdict).await
    }

    fn certificate(&self, connection: &ClientConnection, name: &ServerName<'_>) -> PeerCertificate {
        let untrusted = |why: String| PeerCertificate::Invalid(CertificateFault::Untrusted, why);
        if self.verification == Verification::Required {
            return PeerCertificate::Valid;
        }
        let Some((own, others)) = connection.peer_certificates().and_then(<[_]>::split_first)
        else {
            return untrusted("no certificate was presented".to_owned());
        };
        let Some(verifier) = &self.verifier else {
            return untrusted("no roots are known".to_owned());
        };
        match verifier.verify_server_cert(own, others, name, &[], UnixTime::now()) {
            Ok(_) => PeerCertificate::Valid,
            Err(rustls::Error::InvalidCertificate(error)) => {
                let why = format!("invalid peer certificate: {}", reason(&error));
                PeerCertificate::Invalid(CertificateFault::of(&error), why)
            }
            Err(error) => untrusted(error.to_string()),
        }
    }
}

async fn handshake<S>(
    connector: &TlsConnector,
    host: &str,
    stream: S,
    limit: Duration,
    verdict: impl FnOnce(&ClientConnection, &ServerName<'_>) -> PeerCertificate,
) -> Result<(TlsStream<S>, TlsInfo), ConnectTlsError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let host = host.strip_suffix('.').unwrap_or(host);
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| ConnectTlsError::Name(host.to_owned()))?;
    let connecting = Box::pin(connector.connect(name.clone(), stream));
    let stream = match timeout(limit, connecting).await {
        Ok(connected) => connected.map_err(ConnectTlsError::new)?,
        Err(_) => return Err(ConnectTlsError::Timeout(limit)),
    };
    let connection = stream.get_ref().1;
    let sni = matches!(name, ServerName::DnsName(_)).then(|| host.to_owned());
    let info = TlsInfo::new(connection, sni, verdict(connection, &name));
    Ok((stream, info))
}

fn verifier(roots: &Roots) -> Result<Option<Arc<WebPkiServerVerifier>>, TlsError> {
    if roots.store.is_empty() {
        return Ok(None);
    }
    let store = Arc::clone(&roots.store);
    let verifier = WebPkiServerVerifier::builder_with_provider(store, provider()).build();
    verifier.map(Some).map_err(|error| TlsError::NoRoots {
        problem: error.to_string(),
    })
}

/// Accepts any certificate, but still requires proof that the peer has the private key.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl AnyCertificate {
    fn new() -> Self {
        Self(provider().signature_verification_algorithms)
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
