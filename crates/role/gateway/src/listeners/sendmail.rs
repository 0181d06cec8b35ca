//! Accepts mail from programs and users of this machine (`vere sendmail`), over a socket in the file system. The kernel
//! identifies the user, so clients need no password.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use vere_smtp::server::Peer;

use super::Reception;
use crate::intake::Intakes;
use crate::service::Service;
use crate::session;
use vere_process::accept;
use vere_process::places::Client;

impl<I: Intakes> Reception<I> {
    /// Accepts local programs until the gateway stops.
    pub(crate) async fn accept_local(self: Rc<Self>, listener: UnixListener) {
        let stop = self.stop.clone();
        accept::accept(listener, Service::Sendmail.name(), stop, |stream| {
            Rc::clone(&self).receive_local(stream)
        })
        .await;
    }

    async fn receive_local(self: Rc<Self>, stream: UnixStream) {
        self.process.metrics.accepted(Service::Sendmail);
        if let Err(error) = self.serve_local(stream).await {
            tracing::debug!(%error, "connection of a local program lost");
        }
        self.process.metrics.ended(Service::Sendmail);
    }

    async fn serve_local(self: &Rc<Self>, mut stream: UnixStream) -> io::Result<()> {
        let user = stream.peer_cred()?.uid();
        let client = Client::User(user);
        let settings = self.process.settings();
        let _place = match self.places.take(&settings, client) {
            Ok(place) => place,
            Err(reason) => {
                self.process.metrics.turned_away(reason);
                let busy = b"421 4.7.0 too many connections, try again later\r\n";
                return stream.write_all(busy).await;
            }
        };
        let context = self.context(Service::Sendmail, client);
        Box::pin(session::serve_local(stream, local_peer(user), context)).await
    }
}

/// Returns the rights of a user of this machine, who may send to any domain. The trace shows the user's number.
fn local_peer(user: u32) -> Peer {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Peer {
        name: Some(format!("uid {user}")),
        may_relay: true,
        may_prioritise: true,
        ..Peer::new(loopback, loopback)
    }
}
