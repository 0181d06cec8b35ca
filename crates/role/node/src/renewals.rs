//! The node's next certificate, brought by a gateway that has the key of the CA.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vere_enrolment::renewal;
use vere_net::tls::{Line, MutualTls};

/// The renewal that is going on, if there is one: each takes a thread for a few seconds at most.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    busy: Arc<AtomicBool>,
}

impl Renewals {
    /// Receives a certificate beside the loop. A second connection at the same time is closed; its gateway comes again.
    pub(super) fn start(&self, stream: TcpStream, line: Line, tls: MutualTls, peer: SocketAddr) {
        if self.busy.swap(true, Ordering::AcqRel) {
            tracing::warn!(%peer, "renewal of the certificate refused: another one is going on");
            return;
        }
        let busy = Arc::clone(&self.busy);
        let receive = move || {
            match renewal::receive(stream, line, &tls, peer) {
                Ok(Some(end)) => tracing::info!(%peer, %end, "certificate of the node renewed"),
                Ok(None) => {}
                Err(error) => tracing::error!(%peer, %error, "certificate of the node not renewed"),
            }
            busy.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name("renewal".to_owned());
        if let Err(error) = thread.spawn(receive) {
            self.busy.store(false, Ordering::Release);
            tracing::error!(%peer, %error, "certificate of the node not renewed");
        }
    }
}
