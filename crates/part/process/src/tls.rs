//! TLS of the server side, as the settings want it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpStream;
use vere_net::acme::{Acme, AcmeError, AcmeOptions, DnsProof, Proof, Publisher, UpdateOptions};
use vere_net::tls::{
    CertificateFiles, Keyring, Roots, ServerStream, ServerTls as Server, ServerTlsOptions, TlsError,
};
use vere_settings::{AcmeChallenge, Settings};
use vere_smtp::server::TlsInfo;
use vere_units::Timestamp;

use super::kept::{Kept, kept_certificate};
use super::web_names;

/// How often certificate files are looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(60);
/// The same while there is no certificate: clients wait for the first one of an authority.
const FIRST_INTERVAL: Duration = Duration::from_secs(2);

/// Why certificates cannot be shown.
#[derive(Debug)]
pub enum ServerTlsError {
    /// A file is missing or wrong.
    Certificates(TlsError),
    /// What a certificate authority is asked by cannot be made.
    Acme(AcmeError),
}

impl fmt::Display for ServerTlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificates(error) => error.fmt(f),
            Self::Acme(error) => error.fmt(f),
        }
    }
}

impl Error for ServerTlsError {
    /// The display is that of the direct cause; what is behind that follows here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Certificates(error) => error.source(),
            Self::Acme(error) => error.source(),
        }
    }
}

/// Loads the certificates that the settings name, with those for web names of local domains, and their keys; there may be none.
///
/// # Errors
/// When a file is missing or wrong, and none that could be used is kept.
pub fn keyring(settings: &Settings) -> Result<Keyring, ServerTlsError> {
    Ok(Keyring::new(with_web_names(settings)?)?)
}

/// Loads the certificates of other settings.
///
/// # Errors
/// As [`keyring`]; then nothing changes.
pub fn reload(keyring: &Keyring, settings: &Settings) -> Result<(), ServerTlsError> {
    Ok(keyring.reload_with(with_web_names(settings)?)?)
}

impl From<TlsError> for ServerTlsError {
    fn from(error: TlsError) -> Self {
        Self::Certificates(error)
    }
}

/// The server side: which certificates are shown.
#[derive(Debug, Clone)]
pub struct ServerTls(Server);

impl ServerTls {
    /// Loads the certificates that the settings name; there may be none.
    ///
    /// # Errors
    /// When a file is missing or wrong, and none that could be used is kept.
    pub fn new(settings: &Settings) -> Result<Self, ServerTlsError> {
        Ok(Self(Server::new(options(settings)?)?))
    }

    /// The same server, with a request for a certificate of these roots to each client.
    ///
    /// # Errors
    /// When the roots cannot be used.
    pub fn asking(&self, roots: &Roots) -> Result<Self, ServerTlsError> {
        Ok(Self(self.0.asking(roots)?))
    }

    /// The certificates that are shown.
    pub fn keyring(&self) -> &Keyring {
        self.0.keyring()
    }

    /// Shows other certificates to connections to come.
    ///
    /// # Errors
    /// As [`new`](Self::new); then nothing changes.
    pub fn reload(&self, settings: &Settings) -> Result<(), ServerTlsError> {
        Ok(self.0.keyring().reload_with(options(settings)?)?)
    }

    /// Takes over files that have changed now.
    pub fn look(&self) {
        self.0.keyring().look();
    }

    /// Takes over files that change, for ever: the first certificate within seconds, another one within a minute.
    pub async fn watch(&self) {
        loop {
            let pause = match self.available() {
                true => WATCH_INTERVAL,
                false => FIRST_INTERVAL,
            };
            tokio::time::sleep(pause).await;
            self.look();
        }
    }

    /// Whether there is a certificate to show.
    pub fn available(&self) -> bool {
        self.0.keyring().has_certificate()
    }

    /// When the certificates shown end, by the path of their file.
    pub fn certificate_ends(&self) -> Vec<(PathBuf, Timestamp)> {
        self.0.keyring().certificate_ends()
    }

    /// Does the handshake as server.
    ///
    /// # Errors
    /// When the handshake fails, or the connection breaks.
    pub async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(ServerStream<TcpStream>, TlsInfo)> {
        let (stream, info) = self.handshake(stream).await?;
        let info = TlsInfo {
            version: info.version.to_owned(),
            cipher: info.cipher.to_owned(),
            sni: info.sni,
        };
        Ok((stream, info))
    }

    /// Does the handshake as server, for a protocol other than SMTP.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub async fn handshake(
        &self,
        stream: TcpStream,
    ) -> io::Result<(ServerStream<TcpStream>, vere_net::tls::TlsInfo)> {
        self.0.accept(stream).await
    }
}

/// A certificate of a section `[[tls.sni]]` counts before one for the same web name. The certificate of a web name never serves clients of
/// port 25, also while the main certificate is missing.
fn with_web_names(settings: &Settings) -> Result<ServerTlsOptions, ServerTlsError> {
    Ok(ServerTlsOptions {
        named: web_names::certificates(settings),
        ..options(settings)?
    })
}

fn options(settings: &Settings) -> Result<ServerTlsOptions, ServerTlsError> {
    let files = |files: &vere_settings::CertificateFiles, of| CertificateFiles {
        kept: kept_certificate(settings, of),
        ..CertificateFiles::new(&files.certificate, &files.key)
    };
    let default = settings.tls.default.as_ref();
    let acme = acme(settings)
        .map_err(ServerTlsError::Acme)?
        .map(|acme| acme.files());
    let named = settings
        .tls
        .sni
        .iter()
        .enumerate()
        .map(|(n, sni)| (sni.name.clone(), files(&sni.files, Kept::Sni(n))));
    Ok(ServerTlsOptions {
        // A certificate in a file is what an operator chose; that of the authority serves otherwise.
        default: default.map(|own| files(own, Kept::Default)).or(acme),
        sni: named.collect(),
        ..ServerTlsOptions::default()
    })
}

/// What keeps the certificate from a certificate authority, if the settings want one.
///
/// # Errors
/// When its folder cannot be made or the authority's roots cannot be loaded.
pub fn acme(settings: &Settings) -> Result<Option<Acme>, AcmeError> {
    let Some(acme) = &settings.acme else {
        return Ok(None);
    };
    Ok(Some(Acme::new(AcmeOptions {
        directory: acme.directory.clone(),
        contact: acme.contact.clone(),
        domains: acme.domains.clone(),
        root: acme.root.clone(),
        proof: proof(acme)?,
        dir: settings.data.join("acme"),
    })?))
}

/// How the authority sees that names are ours.
///
/// # Errors
/// When nobody publishes the records of dns-01, which the settings refuse.
pub fn proof(acme: &vere_settings::Acme) -> Result<Proof, AcmeError> {
    let dns = &acme.dns;
    let by = match (acme.challenge, dns.server, &dns.hook) {
        (AcmeChallenge::Http01, ..) => return Ok(Proof::Http),
        (AcmeChallenge::TlsAlpn01, ..) => return Ok(Proof::TlsAlpn),
        (AcmeChallenge::Dns01, Some(server), _) => Publisher::Update(UpdateOptions {
            server,
            zone: dns.zone.clone(),
            key: dns.key.clone(),
        }),
        (AcmeChallenge::Dns01, None, Some(hook)) => Publisher::Hook(hook.clone()),
        (AcmeChallenge::Dns01, None, None) => return Err(AcmeError::NoPublisher),
    };
    let wait = dns.wait.duration();
    Ok(Proof::Dns(DnsProof { by, wait }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_certificate_is_shown_within_seconds() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vere.toml");
        let text = "version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n[acme]\n";
        let settings = Settings::parse(text, &file.to_string_lossy()).unwrap();
        let tls = ServerTls::new(&settings).unwrap();
        let watched = tls.clone();
        let watch = async move { watched.watch().await };
        let ordered = async {
            tokio::time::sleep(2 * FIRST_INTERVAL).await;
            assert!(!tls.available());
            let file = acme(&settings).unwrap().unwrap().files().certificate;
            let made = rcgen::generate_simple_self_signed(["mx.example.org".to_owned()]).unwrap();
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
            tokio::time::sleep(2 * FIRST_INTERVAL).await;
            assert!(tls.available());
        };
        tokio::select! {
            () = watch => {}
            () = ordered => {}
        }
    }
}
