//! TLS of the client side, as the gateway's settings want it.

use tokio::net::TcpStream;
use vere_net::tls::{
    ClientStream, ClientTls as Client, ConnectTlsError, Dane, Roots, TlsError,
    TlsInfo as ClientTlsInfo, Verification,
};
use vere_settings::Settings;

/// The client side: which servers are trusted.
#[derive(Debug, Clone)]
pub(crate) struct ClientTls {
    opportunistic: Client,
    required: Client,
    /// For web servers that strangers name.
    https: Client,
}

impl ClientTls {
    /// Loads the roots. A system without any still encrypts where that is offered; what must be verified is
    /// not sent.
    ///
    /// # Errors
    /// When the file of roots is wrong.
    pub(crate) fn new(settings: &Settings) -> Result<Self, TlsError> {
        let ca = settings.delivery.ca.as_deref();
        let roots = match Roots::load(ca) {
            Err(error) if ca.is_none() => {
                tracing::warn!(%error, "no certificate can be verified: install ca-certificates");
                Roots::none()
            }
            other => other?,
        };
        let required = Client::new(Verification::Required, &roots)?;
        Ok(Self {
            opportunistic: Client::new(Verification::Recorded, &roots)?,
            https: required.clone().without_resumption(),
            required,
        })
    }

    /// What refuses certificates that are not valid and resumes no session, for servers other than next hops.
    pub(crate) fn https(&self) -> Client {
        self.https.clone()
    }

    /// Does the handshake as client with the server of that name, whose certificate must be valid or need
    /// not.
    ///
    /// # Errors
    /// When it fails, or the certificate must be valid and is not.
    pub(crate) async fn connect(
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
    pub(crate) async fn connect_dane(
        &self,
        dane: &Dane,
        name: &str,
        stream: TcpStream,
    ) -> Result<(ClientStream<TcpStream>, ClientTlsInfo), ConnectTlsError> {
        self.required.connect_dane(dane, name, stream).await
    }
}
