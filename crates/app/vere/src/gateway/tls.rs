//! TLS on both sides, as the gateway's settings want it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpStream;
use vere_net::acme::{Acme, AcmeOptions};
use vere_net::tls::{
    CertificateFiles, ClientStream, ClientTls as Client, ConnectTlsError, Dane, Roots,
    ServerStream, ServerTls as Server, ServerTlsOptions, TlsInfo as ClientTlsInfo, Verification,
};
use vere_settings::Settings;
use vere_smtp::server::TlsInfo;
use vere_units::Timestamp;

use crate::cli::Failure;
use crate::supervisor::{Kept, kept_certificate};

/// How often certificate files are looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(60);

/// The server side: which certificates are shown.
#[derive(Debug, Clone)]
pub(crate) struct ServerTls(Server);

impl ServerTls {
    /// Loads the certificates that the settings name; there may be none.
    ///
    /// # Errors
    /// When a file is missing or wrong, and none that could be used is kept.
    pub(crate) fn new(settings: &Settings) -> Result<Self, Failure> {
        Ok(Self(Server::new(options(settings)?)?))
    }

    /// Shows other certificates to connections to come.
    ///
    /// # Errors
    /// As [`new`](Self::new); then nothing changes.
    pub(crate) fn reload(&self, settings: &Settings) -> Result<(), Failure> {
        Ok(self.0.reload_with(options(settings)?)?)
    }

    /// Takes over files that have changed now.
    pub(crate) fn look(&self) {
        if let Err(error) = self.0.reload_if_changed() {
            tracing::error!(%error, "certificates kept: the new ones cannot be used");
        }
    }

    /// Takes over files that change, for ever.
    pub(crate) async fn watch(&self) {
        self.0.watch(WATCH_INTERVAL).await;
    }

    /// Whether there is a certificate to show.
    pub(crate) fn available(&self) -> bool {
        self.0.has_certificate()
    }

    /// When the certificates shown end, by the path of their file.
    pub(crate) fn certificate_ends(&self) -> Vec<(PathBuf, Timestamp)> {
        self.0.certificate_ends()
    }

    /// Does the handshake as server.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(ServerStream<TcpStream>, TlsInfo)> {
        let (stream, info) = self.0.accept(stream).await?;
        let info = TlsInfo {
            version: info.version.to_owned(),
            cipher: info.cipher.to_owned(),
            sni: info.sni,
        };
        Ok((stream, info))
    }
}

fn options(settings: &Settings) -> Result<ServerTlsOptions, Failure> {
    let files = |files: &vere_settings::CertificateFiles, of| CertificateFiles {
        kept: kept_certificate(settings, of),
        ..CertificateFiles::new(&files.certificate, &files.key)
    };
    let default = settings.tls.default.as_ref();
    let acme = acme(settings)?.map(|acme| acme.files());
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
pub(super) fn acme(settings: &Settings) -> Result<Option<Acme>, Failure> {
    let Some(acme) = &settings.acme else {
        return Ok(None);
    };
    Ok(Some(Acme::new(AcmeOptions {
        directory: acme.directory.clone(),
        contact: acme.contact.clone(),
        domains: acme.domains.clone(),
        root: acme.root.clone(),
        dir: settings.data.join("acme"),
    })?))
}

/// The client side: which servers are trusted.
#[derive(Debug, Clone)]
pub(super) struct ClientTls {
    opportunistic: Client,
    required: Client,
}

impl ClientTls {
    /// Loads the roots. A system without any still encrypts where that is offered; what must be verified is
    /// not sent.
    ///
    /// # Errors
    /// When the file of roots is wrong.
    pub(super) fn new(settings: &Settings) -> Result<Self, Failure> {
        let ca = settings.delivery.ca.as_deref();
        let roots = match Roots::load(ca) {
            Err(error) if ca.is_none() => {
                tracing::warn!(%error, "no certificate can be verified: install ca-certificates");
                Roots::none()
            }
            other => other?,
        };
        Ok(Self {
            opportunistic: Client::new(Verification::Recorded, &roots)?,
            required: Client::new(Verification::Required, &roots)?,
        })
    }

    /// What refuses certificates that are not valid, for servers other than next hops.
    pub(super) fn https(&self) -> Client {
        self.required.clone()
    }

    /// Does the handshake as client with the server of that name, whose certificate must be valid or need
    /// not.
    ///
    /// # Errors
    /// When it fails, or the certificate must be valid and is not.
    pub(super) async fn connect(
        &self,
        name: &str,
        verified: bool,
        stream: TcpStream,
    ) -> Result<(ClientStream<TcpStream>, ClientTlsInfo), ConnectTlsError> {
        let client = if verified {
            &self.required
        } else {
            &self.opportunistic
        };
        client.connect(name, stream).await
    }

    /// The same with a server that TLSA records vouch for.
    ///
    /// # Errors
    /// When it fails, or the certificate fits none of them.
    pub(super) async fn connect_dane(
        &self,
        dane: &Dane,
        name: &str,
        stream: TcpStream,
    ) -> Result<(ClientStream<TcpStream>, ClientTlsInfo), ConnectTlsError> {
        self.required.connect_dane(dane, name, stream).await
    }
}
