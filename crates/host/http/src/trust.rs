//! Whose certificates a client accepts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, client::WantsClientCert};

/// A file of certificates or keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct FileError {
    path: PathBuf,
    problem: String,
}

impl FileError {
    /// What is wrong with the file.
    #[must_use]
    pub fn new(path: &Path, problem: &dyn fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }
}

/// The authorities of a PEM file alone, or those of the system; absent if no server is asked by HTTPS.
///
/// # Errors
/// The file cannot be read, or holds no certificate or a wrong one.
pub fn authorities(file: Option<&Path>, https: bool) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = file {
        for root in certificates(path)? {
            roots
                .add(root)
                .map_err(|error| FileError::new(path, &error))?;
        }
    } else if https {
        // Some systems carry roots that the library cannot read; the other roots suffice.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    Ok(roots)
}

/// The certificates of a PEM file, one at least.
///
/// # Errors
/// The file cannot be read, or holds no certificate.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error| FileError::new(path, &error))?;
    if certificates.is_empty() {
        return Err(FileError::new(path, &"holds no certificate"));
    }
    Ok(certificates)
}

/// A configuration with these authorities, TLS 1.2 and 1.3 by the ring provider; a client certificate is still to be
/// chosen.
///
/// # Errors
/// The provider lacks what these versions need.
pub fn client_config(
    roots: RootCertStore,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots))
}
