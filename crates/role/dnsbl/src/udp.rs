//! A thread for a UDP socket.

use std::io;
use std::net::UdpSocket;
use std::thread::{Builder, sleep};
use std::time::Duration;

use vere_dns::DATAGRAM_MAX;
use vere_net::datagrams::Batch;

use crate::desk::Desk;

/// Pause after an error of the socket, so that a lasting one does not take a whole core.
const PAUSE: Duration = Duration::from_millis(10);

/// Starts the thread, which lives as long as the process.
pub(crate) fn start(socket: UdpSocket, mut desk: Desk) -> io::Result<()> {
    let serve = move || {
        let mut batch = match Batch::new(socket, DATAGRAM_MAX) {
            Ok(batch) => batch,
            Err(error) => {
                tracing::error!(%error, "socket cannot be used");
                return;
            }
        };
        // A lasting error has one line, not one for each attempt.
        let mut is_failing = false;
        loop {
            match batch.receive() {
                Ok(()) => is_failing = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    if !is_failing {
                        tracing::warn!(%error, "cannot receive queries");
                    }
                    is_failing = true;
                    sleep(PAUSE);
                    continue;
                }
            }
            desk.begin();
            batch.answer(|client, packet, memory| desk.datagram(client, packet, memory));
            batch.send();
        }
    };
    Builder::new().name("udp".to_owned()).spawn(serve)?;
    Ok(())
}
