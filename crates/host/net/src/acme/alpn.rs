//! Answers tls-alpn-01 challenges (RFC 8737): a listener that shows a certificate for a challenge, and nothing else.
//!
//! A connection is a handshake of TLS with the protocol `acme-tls/1` and the name in question, and ends behind it.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::AcmeError;
use crate::aside::write_private;
use crate::tls::{ChallengeCertificates, provider};

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

/// Octets of a file with a certificate and its key; a name is 253 octets at most.
const FILE_OCTETS_MAX: u64 = 8 * 1024;
/// Octets of a name (RFC 1035 section 2.3.4).
const NAME_OCTETS_MAX: usize = 253;

/// The certificates for challenges of orders under way, by name; clones share them.
#[derive(Clone, Default)]
pub struct AlpnChallenges {
    shown: Arc<Mutex<ByName>>,
    /// Where another process finds the certificates, too: a file by the name of each.
    directory: Option<Arc<Path>>,
}

impl fmt::Debug for AlpnChallenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlpnChallenges")
            .field("open", &self.lock().len())
            .finish()
    }
}

impl AlpnChallenges {
    /// Certificates that another process shows ([`PublishedCertificates`]), by files in a directory. The certificates of earlier orders
    /// there are removed.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub fn in_directory(directory: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory)?;
        for entry in fs::read_dir(directory)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(Self {
            directory: Some(directory.into()),
            ..Self::default()
        })
    }

    fn lock(&self) -> MutexGuard<'_, ByName> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the file of a name. A certificate that no process can show would cost a failed validation, and authorities allow few.
    fn publish(&self, name: &str, pem: &str) -> Result<(), AcmeError> {
        let Some(path) = self.directory.as_deref().and_then(|at| file(at, name)) else {
            return Ok(());
        };
        let written = write_private(&path, pem.as_bytes());
        let published = written.and_then(|aside| fs::rename(aside, &path));
        published.map_err(|source| AcmeError::Storage { path, source })
    }

    /// Shows a certificate with this digest for the name.
    pub(super) fn add(&self, name: &str, digest: &[u8]) -> Result<(), AcmeError> {
        let failed = |problem| AcmeError::Challenge {
            name: name.to_owned(),
            problem,
        };
        let pem = certificate(name, digest).map_err(failed)?;
        let certified = read(&pem).map_err(failed)?;
        self.publish(name, &pem)?;
        self.lock()
            .insert(name.to_ascii_lowercase(), Arc::new(certified));
        Ok(())
    }

    pub(super) fn remove(&self, name: &str) {
        self.lock().remove(&name.to_ascii_lowercase());
        if let Some(path) = self.directory.as_deref().and_then(|at| file(at, name)) {
            // The next start removes it otherwise; the certificate of an old challenge helps nobody.
            let _ = fs::remove_file(path);
        }
    }
}

/// The file of a name; `None` for a text that is no host name, and might be a path.
fn file(directory: &Path, name: &str) -> Option<PathBuf> {
    let is_fit = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
    let mut labels = name.split('.');
    let is_name = name.len() <= NAME_OCTETS_MAX
        && labels.all(|label| !label.is_empty() && label.bytes().all(is_fit));
    is_name.then(|| directory.join(format!("{}.pem", name.to_ascii_lowercase())))
}

/// The certificates of challenges that another process publishes, read at each handshake for a challenge.
#[derive(Debug)]
pub struct PublishedCertificates(PathBuf);

impl PublishedCertificates {
    /// Reads the directory of [`AlpnChallenges::in_directory`], which may not exist yet.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self(directory.to_owned())
    }
}

impl ChallengeCertificates for PublishedCertificates {
    fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let opened = fs::File::open(file(&self.0, name)?).ok()?;
        let mut pem = String::new();
        opened.take(FILE_OCTETS_MAX).read_to_string(&mut pem).ok()?;
        let certified = read(&pem);
        let certified = certified.inspect_err(|problem| {
            tracing::warn!(name, problem, "certificate of a challenge not shown");
        });
        certified.ok().map(Arc::new)
    }
}

/// A self-signed certificate whose one extension beside the name has the digest (RFC 8737 section 3), and its key, in PEM.
fn certificate(name: &str, digest: &[u8]) -> Result<String, String> {
    if digest.len() != DIGEST_OCTETS {
        return Err(format!("expected a digest of {DIGEST_OCTETS} octets"));
    }
    let text = |error: rcgen::Error| error.to_string();
    let mut params = CertificateParams::new([name.to_owned()]).map_err(text)?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let pair = KeyPair::generate().map_err(text)?;
    let certificate = params.self_signed(&pair).map_err(text)?;
    Ok(certificate.pem() + &pair.serialize_pem())
}

/// The certificate and the key of a text that [`certificate`] has made.
fn read(pem: &str) -> Result<CertifiedKey, String> {
    let chain =
        CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
    let key = provider().key_provider.load_private_key(key);
    let key = key.map_err(|error| error.to_string())?;
    Ok(CertifiedKey::new(vec![chain], key))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_shows_the_certificates_of_an_order_and_reads_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("certificates");
        let shown = PublishedCertificates::new(&directory);
        assert!(shown.certificate("mx.test").is_none(), "no directory yet");
        let challenges = AlpnChallenges::in_directory(&directory).unwrap();
        challenges.add("MX.test", &[7; DIGEST_OCTETS]).unwrap();
        let own = challenges.lock().get("mx.test").cloned().unwrap();
        let read = shown.certificate("mx.test").unwrap();
        assert_eq!(read.cert, own.cert);
        fs::write(folder.path().join("secret.pem"), "x").unwrap();
        fs::write(directory.join("damaged.test.pem"), "x").unwrap();
        for name in [
            "",
            ".",
            "..",
            "../secret",
            "a/b",
            "a..b",
            "other.test",
            "damaged.test",
            "a\0b",
        ] {
            assert!(shown.certificate(name).is_none(), "{name:?}");
        }
        assert_eq!(file(&directory, &"a.".repeat(200)), None);
        challenges.remove("mx.test");
        assert!(shown.certificate("mx.test").is_none());
        // A certificate that nobody can show is an error of the order, before the CA looks.
        fs::remove_dir_all(&directory).unwrap();
        let error = challenges.add("mx.test", &[7; DIGEST_OCTETS]);
        assert!(matches!(error, Err(AcmeError::Storage { .. })), "{error:?}");
        AlpnChallenges::in_directory(&directory).unwrap();
        fs::write(directory.join("left.pem"), "x").unwrap();
        AlpnChallenges::in_directory(&directory).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }
}
