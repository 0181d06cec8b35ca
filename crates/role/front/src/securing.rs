//! STARTTLS of a session.

use std::io;

use mio::Registry;
use mio::net::TcpStream;
use vere_net::tls::{Carrier, kernel};
use vere_screen::Ticket;
use vere_units::Timestamp;

use super::guest::Guest;
use super::host::{Host, slot};
use super::tls::pair;

impl Host {
    /// Gives the client of a session to a thread of TLS, once. The session waits until the thread has [`secured`](Self::secured) the
    /// connection, or has closed it.
    pub(crate) fn secure(&mut self, ticket: Ticket, now: Timestamp) {
        let Some(guest) = self.guest(ticket) else {
            return;
        };
        match (guest.is_securing, guest.has_ended()) {
            (true, false) => {}
            (true, true) => {
                tracing::debug!(peer = %guest.server.peer().address, "handshake failed");
                self.leave(ticket);
            }
            (false, _) => match self.begin(ticket) {
                Ok(()) => self.waits(ticket, now),
                Err(error) => {
                    tracing::warn!(%error, "connection cannot be encrypted");
                    self.leave(ticket);
                }
            },
        }
    }

    fn begin(&mut self, ticket: Ticket) -> io::Result<()> {
        let (here, plain) = pair()?;
        let registry = self.poll.registry();
        let guest = self.guests.get_mut(slot(ticket)).and_then(Option::as_mut);
        if let Some(guest) = guest
            && let Some(client) = guest.encrypt(here, registry)?
        {
            self.tls.take(ticket, client, plain);
        }
        Ok(())
    }

    /// Goes on with the sessions of finished handshakes.
    pub(crate) fn secured(&mut self, now: Timestamp) {
        for (ticket, info, carrier) in self.tls.secured() {
            let registry = self.poll.registry();
            let guest = self.guests.get_mut(slot(ticket)).and_then(Option::as_mut);
            let Some(guest) = guest.filter(|guest| guest.ticket == ticket) else {
                if let Carrier::Kernel { client, .. } = carrier {
                    kernel::close_notify(&client);
                }
                continue;
            };
            self.figures.secured(&carrier);
            match carried(guest, carrier, registry) {
                Ok(()) => {
                    guest.is_securing = false;
                    guest.server.tls_started(info);
                    self.serve(ticket, now);
                }
                Err(error) => {
                    tracing::warn!(%error, "encrypted connection cannot be used");
                    self.leave(ticket);
                }
            }
        }
    }
}

/// Puts the plaintext of the carrier in the place of the client.
fn carried(guest: &mut Guest, carrier: Carrier, registry: &Registry) -> io::Result<()> {
    match carrier {
        Carrier::Thread => Ok(()),
        Carrier::Kernel { client, plain: _ } => {
            guest.encrypted_by_kernel(TcpStream::from_std(client), registry)
        }
    }
}
