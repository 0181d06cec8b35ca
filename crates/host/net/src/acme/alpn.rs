//! Answers tls-alpn-01 challenges (RFC 8737): a listener that shows a certificate for a challenge, and nothing else.
//!
//! A connection is a handshake of TLS with the protocol `acme-tls/1` and the name in question, and ends behind it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::AcmeError;
use crate::tls::provider;

/// The protocol of the challenge (RFC 8737 section 4).
const PROTOCOL: &[u8] = b"acme-tls/1";
/// Octets of a digest (SHA-256).
const DIGEST_OCTETS: usize = 32;
/// Connections at once: an authority looks from a handful of places.
const CONNECTIONS_MAX: usize = 64;
/// Longest time of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type ByName = HashMap<String, Arc<CertifiedKey>>;

/// The certificates for challenges of orders under way, by name; clones share them.
#[derive(Clone, Default)]
pub struct AlpnChallenges(Arc<Mutex<ByName>>);

impl fmt::Debug for AlpnChallenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlpnChallenges")
            .field("open", &self.lock().len())
            .finish()
    }
}

impl AlpnChallenges {
    fn lock(&self) -> MutexGuard<'_, ByName> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a certificate with this digest for the name.
    pub(super) fn add(&self, name: &str, digest: &[u8]) -> Result<(), AcmeError> {
        let certified = certificate(name, digest).map_err(|problem| AcmeError::Challenge {
            name: name.to_owned(),
            problem,
        })?;
        self.lock()
            .insert(name.to_ascii_lowercase(), Arc::new(certified));
        Ok(())
    }

    pub(super) fn remove(&self, name: &str) {
        self.lock().remove(&name.to_ascii_lowercase());
    }
}

/// A self-signed certificate whose one extension beside the name has the digest (RFC 8737 section 3).
fn certificate(name: &str, digest: &[u8]) -> Result<CertifiedKey, String> {
    if digest.len() != DIGEST_OCTETS {
        return Err(format!("expected a digest of {DIGEST_OCTETS} octets"));
    }
    let text = |error: rcgen::Error| error.to_string();
    let mut params = CertificateParams::new([name.to_owned()]).map_err(text)?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let pair = KeyPair::generate().map_err(text)?;
    let certificate = params.self_signed(&pair).map_err(text)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.serialize_der()));
    let key = provider().key_provider.load_private_key(key);
    let key = key.map_err(|error| error.to_string())?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}

/// Chooses the certificate of a challenge, for the protocol of challenges alone.
#[derive(Debug)]
struct Shown(AlpnChallenges);

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut protocols = hello.alpn()?;
        let asks = protocols.next() == Some(PROTOCOL) && protocols.next().is_none();
        let name = hello.server_name().filter(|_| asks)?;
        self.0.lock().get(&name.to_ascii_lowercase()).cloned()
    }
}

fn config(challenges: AlpnChallenges) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Shown(challenges)));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// Serves connections of `listener` until the future is dropped. Further connections than the bound wait.
pub async fn serve_alpn(listener: TcpListener, challenges: AlpnChallenges) {
    let acceptor = match config(challenges) {
        Ok(config) => TlsAcceptor::from(Arc::new(config)),
        Err(error) => {
            tracing::error!(%error, "no answers to tls-alpn-01");
            return;
        }
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let _place = place;
            let _ = timeout(CONNECTION_TIMEOUT, shake(acceptor, stream)).await;
        });
    }
}

async fn shake(acceptor: TlsAcceptor, stream: TcpStream) {
    match acceptor.accept(stream).await {
        Ok(mut stream) => {
            // The authority may be gone already.
            let _ = stream.shutdown().await;
        }
        Err(error) => tracing::debug!(%error, "handshake without a challenge"),
    }
}
