//! A certificate authority for tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// A CA, whose certificate is the only root that its clients trust, and a directory with everything it signed.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: tempfile::TempDir,
    /// The CA certificate in PEM.
    pub(crate) ca: PathBuf,
    /// The CA certificate in DER.
    pub(crate) der: Vec<u8>,
    /// A TLS client that trusts the CA.
    pub(super) client: Arc<ClientConfig>,
}

/// A certificate with its key, in PEM files.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// The certificate in DER.
    pub(crate) der: Vec<u8>,
}

impl Authority {
    /// Creates a CA.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "Test authority");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let client = trusting(certificate.der());
        let folder = tempfile::tempdir().expect("a temporary directory");
        // Other users' programs read the certificates.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), mode).expect("its mode");
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, certificate.pem()).expect("the authority's certificate");
        Self {
            folder,
            ca,
            der: certificate.der().to_vec(),
            client: Arc::new(client),
            issuer: Issuer::new(params, key),
        }
    }

    /// The directory of the certificates and keys.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a new certificate for these names or addresses to `label.pem`.
    pub(crate) fn sign(&self, label: &str, names: &[&str]) -> Files {
        self.write_signed(label, params(names))
    }

    /// Writes a certificate that expired years ago.
    pub(crate) fn sign_expired(&self, label: &str, names: &[&str]) -> Files {
        let mut params = params(names);
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
        self.write_signed(label, params)
    }

    fn write_signed(&self, label: &str, params: CertificateParams) -> Files {
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let files = Files {
            certificate: self.folder().join(format!("{label}.pem")),
            key: self.folder().join(format!("{label}.key")),
            der: signed.der().to_vec(),
        };
        std::fs::write(&files.certificate, signed.pem()).expect("the certificate");
        std::fs::write(&files.key, key.serialize_pem()).expect("the key");
        files
    }
}

impl Files {
    /// A TLS server with the certificate, and with further certificates behind it.
    pub(crate) fn server(&self, chain: &[Vec<u8>]) -> Arc<ServerConfig> {
        let own = CertificateDer::from_pem_file(&self.certificate).expect("PEM");
        let further = chain.iter().cloned().map(CertificateDer::from);
        let key = PrivateKeyDer::from_pem_file(&self.key).expect("PEM");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_single_cert(std::iter::once(own).chain(further).collect(), key);
        Arc::new(config.expect("a certificate with its key"))
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names.clone()).expect("names");
    params.not_before = date_time_ymd(2024, 1, 1);
    params.not_after = date_time_ymd(2049, 1, 1);
    params
        .distinguished_name
        .push(DnType::CommonName, names[0].clone());
    params
}

fn trusting(root: &CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    // A resumed session has the certificate of its first handshake.
    config.resumption = Resumption::disabled();
    config
}
