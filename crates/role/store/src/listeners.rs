//! Accepts connections, and determines a client's address and rights.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use vere_imap::server::Peer;
use vere_net::unsent::limit_unsent;
use vere_settings::Settings;
use vere_smtp::server as smtp;

use super::reception::Reception;
use super::{lmtp, session};
use vere_process::{accept, places, proxy};

/// Octets that the kernel buffers for a client that does not read.
const UNSENT_MAX: u32 = 128 * 1024;

/// A service of the store, by the settings section that configures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Imap,
    Imaps,
    Lmtp,
}

impl Service {
    pub(super) const ALL: [Self; 3] = [Self::Imap, Self::Imaps, Self::Lmtp];

    /// Name of the settings section, and of the inherited listeners.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Imap => "imap",
            Self::Imaps => "imaps",
            Self::Lmtp => "lmtp",
        }
    }

    pub(super) fn addresses(self, settings: &Settings) -> &[SocketAddr] {
        match self {
            Self::Imap => &settings.imap.listen,
            Self::Imaps => &settings.imaps.listen,
            Self::Lmtp => &settings.lmtp.listen,
        }
    }
}

/// Accepts connections until the role stops.
pub(super) async fn accept(reception: Rc<Reception>, service: Service, listener: TcpListener) {
    let stop = reception.stopping();
    accept::accept(listener, service.name(), stop, |(stream, address)| {
        let reception = Rc::clone(&reception);
        async move {
            if let Err(error) = serve(reception, service, stream, address).await {
                tracing::debug!(peer = %address, %error, "connection lost");
            }
        }
    })
    .await;
}

async fn serve(
    reception: Rc<Reception>,
    service: Service,
    mut stream: TcpStream,
    from: SocketAddr,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if service != Service::Lmtp {
        limit_unsent(&stream, UNSENT_MAX)?;
    }
    let address = client_address(&reception, service, &mut stream, from).await?;
    let visitor = places::Client::at(address.ip());
    let place = reception.place(visitor);
    let Ok(_place) = place else {
        let busy: &[u8] = match service {
            Service::Lmtp => b"421 4.7.0 too many connections, try again later\r\n",
            Service::Imap | Service::Imaps => {
                b"* BYE [LIMIT] too many connections, try again later\r\n"
            }
        };
        return stream.write_all(busy).await;
    };
    let in_clear = reception.may_auth_in_clear(address.ip());
    let peer = Peer {
        address,
        tls: false,
        tls_available: reception.tls().available(),
        may_auth_in_clear: in_clear,
    };
    let imap = reception.imap();
    // Boxed: a session mostly waits, and an idle client costs as much memory as the session's future.
    match service {
        Service::Imap => Box::pin(session::serve(stream, peer, imap, reception)).await,
        Service::Imaps => Box::pin(session::serve_tls(stream, peer, imap, reception)).await,
        Service::Lmtp => {
            let peer = smtp::Peer::new(address, stream.local_addr()?);
            let config = Arc::new(reception.lmtp_config());
            Box::pin(lmtp::serve(stream, peer, config, reception)).await
        }
    }
}

/// Returns the client's address: behind a load balancer, the address that the PROXY header names.
async fn client_address(
    reception: &Reception,
    service: Service,
    stream: &mut TcpStream,
    from: SocketAddr,
) -> io::Result<SocketAddr> {
    let proxied = service != Service::Lmtp && reception.is_imap_proxy(from.ip());
    if !proxied {
        return Ok(from);
    }
    // Boxed: its buffer must not make every session larger.
    let read = Box::pin(proxy::read(stream, reception.write_patience())).await;
    if let Err(error) = &read {
        tracing::info!(peer = %from, %error, "no PROXY header came from a network of proxy.imap_networks");
    }
    Ok(read?.map_or(from, |(client, _)| client))
}
