//! Certificates of the systems, and clients that trust them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

/// The name in the certificate.
const NAME: &str = "mx.front.test";

/// A certificate for ECDSA with P-256, the usual kind of today's authorities, in files.
#[derive(Debug)]
pub(super) struct Certificate {
    folder: tempfile::TempDir,
    authority: CertificateDer<'static>,
}

/// What the clients of a load have in common.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    /// A client keeps a few tickets of a server: each place has a separate client.
    configs: Vec<Arc<ClientConfig>>,
    name: ServerName<'static>,
}

impl Certificate {
    /// Makes an authority and a certificate, in a folder below `base`.
    pub(super) fn new(base: &Path) -> io::Result<Self> {
        let wrong = |error: rcgen::Error| io::Error::other(error.to_string());
        let mut params = CertificateParams::new(Vec::new()).map_err(wrong)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().map_err(wrong)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(wrong)?;
        let key = KeyPair::generate().map_err(wrong)?;
        let params = CertificateParams::new(vec![NAME.to_owned()]).map_err(wrong)?;
        let certificate = params.signed_by(&key, &issuer).map_err(wrong)?;
        let folder = tempfile::Builder::new()
            .prefix("vere-bench-certificate-")
            .tempdir_in(base)?;
        let own = Self {
            folder,
            authority: issuer.der().clone(),
        };
        fs::write(own.chain(), certificate.pem())?;
        fs::write(own.key(), key.serialize_pem())?;
        Ok(own)
    }

    fn chain(&self) -> PathBuf {
        self.folder.path().join("mx.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("mx.key")
    }

    /// The section of Veredarius' settings.
    pub(super) fn vere(&self) -> String {
        let (chain, key) = (self.chain(), self.key());
        format!(
            "[tls]\ncertificate = \"{}\"\nkey = \"{}\"\n",
            chain.display(),
            key.display()
        )
    }

    /// The lines of Postfix' `main.cf`. Postfix resumes sessions by tickets as shipped.
    pub(super) fn postfix(&self) -> String {
        let (chain, key) = (self.chain(), self.key());
        format!(
            "smtpd_tls_security_level = may\nsmtpd_tls_cert_file = {}\nsmtpd_tls_key_file = {}\n",
            chain.display(),
            key.display()
        )
    }

    /// Clients that verify the certificate, for so many places; with `resumes` each takes up the session before.
    pub(super) fn clients(&self, places: usize, resumes: bool) -> io::Result<Tls> {
        let mut roots = RootCertStore::empty();
        roots
            .add(self.authority.clone())
            .map_err(io::Error::other)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let place = |_| {
            config.resumption = match resumes {
                true => Resumption::in_memory_sessions(1),
                false => Resumption::disabled(),
            };
            Arc::new(config.clone())
        };
        Ok(Tls {
            configs: (0..places.max(1)).map(place).collect(),
            name: ServerName::try_from(NAME).map_err(io::Error::other)?,
        })
    }
}

impl Tls {
    /// The client of a place.
    pub(super) fn config(&self, place: usize) -> &Arc<ClientConfig> {
        &self.configs[place % self.configs.len()]
    }

    pub(super) const fn name(&self) -> &ServerName<'static> {
        &self.name
    }
}
