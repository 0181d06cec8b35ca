//! A server of HTTPS with certificates of another process, for tasks of an async runtime.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::TlsError;
use super::certificates::Certificates;
use super::remote::RemoteCertificates;
use super::server::config;

/// The protocol of requests.
const HTTP: &[u8] = b"http/1.1";
/// The protocol of a connection by which a CA looks at a certificate alone (RFC 8737 section 4).
const CHALLENGE: &[u8] = b"acme-tls/1";

/// The certificates that answer challenges of type tls-alpn-01 (RFC 8737), by the server name of the connection.
pub trait ChallengeCertificates: Debug + Send + Sync {
    /// The certificate for a name with an open challenge. Called within a handshake: it must not wait.
    fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>>;
}

/// Accepts connections for HTTP/1.1.
#[derive(Clone)]
pub struct RemoteServer(TlsAcceptor);

impl Debug for RemoteServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteServer").finish_non_exhaustive()
    }
}

impl RemoteServer {
    /// Shows these certificates, and those of challenges to connections that ask for nothing else.
    ///
    /// # Errors
    /// The TLS library refuses.
    pub fn new(
        certificates: &RemoteCertificates,
        challenges: Option<Arc<dyn ChallengeCertificates>>,
    ) -> Result<Self, TlsError> {
        let mut config = config(certificates.certificates())?;
        config.alpn_protocols = vec![HTTP.to_vec()];
        if let Some(challenges) = challenges {
            config.alpn_protocols.push(CHALLENGE.to_vec());
            config.cert_resolver = Arc::new(Resolver {
                certificates: certificates.certificates(),
                challenges,
            });
        }
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Carries out the server's side of the handshake, for which the caller has a time limit. Signatures come from the process with the keys,
    /// and the thread waits for them.
    ///
    /// # Errors
    /// The connection breaks, the client sends no TLS, or the sides have nothing in common. A connection for a challenge is
    /// at its end ([`io::ErrorKind::ConnectionAborted`]): the CA has seen the certificate.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let stream = Box::pin(self.0.accept(stream)).await?;
        match stream.get_ref().1.alpn_protocol() {
            Some(CHALLENGE) => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(stream),
        }
    }
}

#[derive(Debug)]
struct Resolver {
    certificates: Arc<Certificates>,
    challenges: Arc<dyn ChallengeCertificates>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut protocols = hello.alpn().into_iter().flatten();
        // A CA offers this protocol alone (RFC 8737 section 3).
        if protocols.next() == Some(CHALLENGE) && protocols.next().is_none() {
            return self.challenges.certificate(hello.server_name()?);
        }
        self.certificates.resolve(hello)
    }
}
