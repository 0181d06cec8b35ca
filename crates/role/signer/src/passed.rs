//! Connections that the web server passes, by a socket whose ends the supervisor keeps. Strangers may have taken that process over: the
//! connections are few, and their questions concern handshakes alone.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use vere_net::packets::PacketSocket;
use vere_net::quiet::Halves;

use super::secrets::Secrets;
use super::service;

/// Connections at once: the web server has one for each thread that asks.
const CONNECTIONS_MAX: usize = 16;
/// Pause after a failed receipt, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the connections for ever, each on a separate thread. A connection beyond the maximum is closed: the other side tries again.
pub(super) async fn accept(asking: PacketSocket, secrets: Arc<Secrets>) {
    let asking = match Halves::of(asking).and_then(Halves::watch) {
        Ok((asking, _)) => asking,
        Err(error) => {
            tracing::error!(%error, "no handshakes are signed for the web server");
            return;
        }
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let received = asking.with(|socket| socket.receive(&mut [0; 8])).await;
        match received {
            Ok(Some((_, descriptors))) => {
                for passed in descriptors.into_iter().take(1) {
                    serve(passed, &places, &secrets);
                }
            }
            // The supervisor keeps the other end as long as this process lives.
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "connection of the web server not accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn serve(passed: OwnedFd, places: &Arc<Semaphore>, secrets: &Arc<Secrets>) {
    let Ok(place) = Arc::clone(places).try_acquire_owned() else {
        return;
    };
    let secrets = Arc::clone(secrets);
    let served = std::thread::Builder::new()
        .name("sign-web".to_owned())
        .spawn(move || {
            let _place = place;
            if let Err(error) = run(passed, &secrets) {
                tracing::warn!(%error, "connection ended");
            }
        });
    if let Err(error) = served {
        tracing::warn!(%error, "cannot serve a connection");
    }
}

fn run(passed: OwnedFd, secrets: &Secrets) -> io::Result<()> {
    let stream = UnixStream::from(passed);
    stream.set_nonblocking(false)?;
    service::serve(stream, |request| secrets.answer_about_handshakes(request))
}
