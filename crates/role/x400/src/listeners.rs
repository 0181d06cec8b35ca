//! Accepts connections of callers, within the bound of connections.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use vere_associations::{Remote, Stream};
use vere_net::listen::{Inherited, ListenOptions};
use vere_process::accept;
use vere_settings::X400;

use crate::caller::{self, Bound};
use crate::error::X400Error;
use crate::reception::Reception;

/// A port.
#[derive(Debug)]
pub(crate) struct Port {
    listener: TcpListener,
    encrypted: bool,
}

/// Takes or opens the ports.
///
/// # Errors
/// When a port cannot be used.
pub(crate) fn open(x400: &X400, inherited: &mut Inherited) -> Result<Vec<Port>, X400Error> {
    let mut ports = Vec::new();
    let sections = [
        ("x400", &x400.listen, false),
        ("x400-tls", &x400.listen_tls, true),
    ];
    for (section, addresses, encrypted) in sections {
        let options = ListenOptions::default();
        for listener in inherited.take_or_bind(section, addresses, options)? {
            ports.push(Port {
                listener: TcpListener::from_std(listener)?,
                encrypted,
            });
        }
    }
    Ok(ports)
}

/// How long a connection without octets is left alone before the kernel asks whether the peer is there.
const KEEP_ALIVE: Duration = Duration::from_secs(600);

/// Has the kernel end the connections of peers that are gone: an association may be silent for days.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let terms = TcpKeepalive::new()
        .with_time(KEEP_ALIVE)
        .with_interval(KEEP_ALIVE / 10)
        .with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&terms)
}

impl Reception {
    /// Accepts until the MTA stops.
    pub(crate) async fn accept(self: Rc<Self>, port: Port) {
        let stop = self.stop.clone();
        let Port {
            listener,
            encrypted,
        } = port;
        accept::accept(listener, "x400", stop, |(stream, address)| {
            Rc::clone(&self).receive(stream, address, encrypted)
        })
        .await;
    }

    async fn receive(self: Rc<Self>, stream: TcpStream, address: SocketAddr, encrypted: bool) {
        let settings = self.intake.process().settings();
        let most = settings
            .x400
            .as_ref()
            .map_or(0, |x400| x400.connections_max);
        let figures = &self.intake.process().figures;
        if self.connections.get() >= most {
            figures.turned_away();
            tracing::warn!(peer = %address, most, "connection closed: too many connections");
            return;
        }
        self.connections.set(self.connections.get() + 1);
        let _open = figures.connection();
        // An APDU or a token leaves at once.
        if stream.set_nodelay(true).is_ok() && keep_alive(&stream).is_ok() {
            self.serve(stream, address, encrypted).await;
        }
        self.connections
            .set(self.connections.get().saturating_sub(1));
    }

    async fn serve(&self, stream: TcpStream, address: SocketAddr, encrypted: bool) {
        let bound = {
            let settings = self.intake.process().settings();
            let most = settings
                .x400
                .as_ref()
                .map_or(0, |x400| x400.connections_max);
            let place = self
                .waiting
                .enter(address.ip(), usize::try_from(most).unwrap_or(usize::MAX));
            tokio::select! {
                bound = Box::pin(self.bound(stream, address, encrypted)) => bound,
                () = place.lost() => {
                    self.intake.process().figures.turned_away();
                    return tracing::info!(peer = %address, "connection without a bind closed: others wait");
                }
            }
        };
        if let Some(bound) = bound {
            // Boxed: an association mostly waits.
            Box::pin(caller::serve(self, bound)).await;
        }
    }

    /// Waits for the bind of a caller, and answers it.
    async fn bound(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        encrypted: bool,
    ) -> Option<Bound<'_>> {
        let (stream, tls): (Box<dyn Stream>, _) = if encrypted {
            match self.tls.handshake(stream).await {
                Ok((stream, info)) => (Box::new(stream), Some(info)),
                Err(error) => {
                    tracing::info!(peer = %address, %error, "no TLS");
                    return None;
                }
            }
        } else {
            (Box::new(stream), None)
        };
        caller::bind(self, stream, Remote { address, tls }).await
    }
}
