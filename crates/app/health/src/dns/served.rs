//! The certificates of a host for senders of mail.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use vere_net::resolver::AddressAnswer;
use vere_net::tls::{ClientTls, Roots, Verification};
use vere_outbound::{Progress, drive};
use vere_process::{clock, secret};
use vere_smtp::client::{Client, ClientConfig, TlsMode};

use super::subject::Subject;

/// How long a host may take for greeting, EHLO and handshake.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a host shows no certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unseen {
    /// No connection, or no SMTP.
    Unreachable(String),
    /// STARTTLS is not offered.
    NoTls,
}

/// The certificates of the checked host, the leaf first, after STARTTLS at the first responsive address.
///
/// # Errors
/// The reason why there is no certificate.
pub(super) async fn shown_by_host(subject: &Subject) -> Result<Vec<Vec<u8>>, Unseen> {
    let host = &subject.hostname;
    let AddressAnswer::Found(addresses) = subject.resolver.addresses(host).await else {
        return Err(Unseen::Unreachable("no address".to_owned()));
    };
    let mut last = Unseen::Unreachable("no address".to_owned());
    for address in addresses {
        let at = SocketAddr::new(address, subject.mail_port);
        match timeout(PATIENCE, shown(subject, at)).await {
            Ok(Err(Unseen::Unreachable(why))) => last = Unseen::Unreachable(why),
            Ok(seen) => return seen,
            Err(_) => {
                last = Unseen::Unreachable(format!("no answer within {} s", PATIENCE.as_secs()));
            }
        }
    }
    Err(last)
}

async fn shown(subject: &Subject, at: SocketAddr) -> Result<Vec<Vec<u8>>, Unseen> {
    let unreachable = |why: &dyn std::fmt::Display| Unseen::Unreachable(format!("{at}: {why}"));
    let mut stream = TcpStream::connect(at)
        .await
        .map_err(|error| unreachable(&error))?;
    let mut config = ClientConfig::new(subject.hostname.clone(), secret::random());
    config.tls = TlsMode::Opportunistic;
    let mut client = Client::new(Arc::new(config), clock::steady());
    match drive(&mut stream, &mut client).await {
        Progress::StartTls => {}
        Progress::Closed(reason) => return Err(unreachable(&reason)),
        Progress::Ready | Progress::Done(_) => return Err(Unseen::NoTls),
    }
    // The records prove the certificate, without roots.
    let tls = ClientTls::new(Verification::Recorded, &Roots::none())
        .map_err(|error| unreachable(&error))?;
    let (stream, _) = tls
        .connect(&subject.hostname, stream)
        .await
        .map_err(|error| unreachable(&error))?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    Ok(chain.iter().map(|one| one.as_ref().to_vec()).collect())
}
