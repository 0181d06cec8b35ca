//! Message after message over one connection.

use bytes::Bytes;
use vere_delivery::BeforeMessage;
use vere_process::{clock, wire};
use vere_queue::{Attempt, Envelope};
use vere_smtp::client::ClientStep;

use super::convert;
use super::open::{Opened, Progress, drive};

/// A connection that is ready for messages, or was.
#[derive(Debug)]
pub struct Sending {
    opened: Opened,
    security: String,
    /// Whether a message was sent already.
    used: bool,
}

impl From<Opened> for Sending {
    fn from(opened: Opened) -> Self {
        Self {
            security: opened.security(),
            opened,
            used: false,
        }
    }
}

impl Sending {
    /// The host's name and address, for traces and reports.
    pub fn remote(&self) -> &str {
        &self.opened.remote
    }

    /// How the connection is encrypted and why, for traces.
    pub fn security(&self) -> &str {
        &self.security
    }

    /// Sends one message. Calls `begin` before the first octet.
    ///
    /// # Errors
    /// [`BeforeMessage`] when a kept connection turns out to be closed.
    pub async fn send(
        &mut self,
        envelope: &Envelope,
        body: Bytes,
        begin: impl FnOnce(&Self),
    ) -> Result<Attempt, BeforeMessage> {
        if self.used && !self.usable() {
            return Err(BeforeMessage);
        }
        let again = std::mem::replace(&mut self.used, true);
        let outgoing = match convert::outgoing(envelope, body) {
            Ok(outgoing) => outgoing,
            Err(broken) => {
                return Ok(Attempt {
                    remote: self.opened.remote.clone(),
                    reports_taken_over: false,
                    results: convert::broken(envelope, &broken),
                });
            }
        };
        begin(self);
        self.opened.client.begin(outgoing, clock::steady());
        let Opened { stream, client, .. } = &mut self.opened;
        match drive(stream, client).await {
            // Closed before the server said anything about it.
            Progress::Done(outcome) if outcome.untried && again => Err(BeforeMessage),
            Progress::Done(outcome) => Ok(Attempt {
                remote: self.opened.remote.clone(),
                reports_taken_over: outcome.dsn_passed_on,
                results: convert::results(&outcome),
            }),
            // A machine that closes settles the message first, and only then says why it closed.
            Progress::Ready | Progress::StartTls | Progress::Closed(_) => Err(BeforeMessage),
        }
    }

    /// Whether the connection takes another message.
    pub fn usable(&mut self) -> bool {
        matches!(self.opened.client.step(), ClientStep::Ready)
    }

    /// Waits until the other side closes the connection or says something unasked, which ends it too.
    pub async fn closed(&mut self) {
        loop {
            let Opened { stream, client, .. } = &mut self.opened;
            let read = wire::read(stream, |octets| client.input(octets, clock::steady())).await;
            match read {
                Ok(Some(_)) if matches!(self.opened.client.step(), ClientStep::Ready) => {}
                Ok(Some(_)) => return,
                Ok(None) | Err(_) => return self.opened.client.connection_lost(),
            }
        }
    }

    /// Says goodbye; nothing depends on the answer.
    pub async fn quit(&mut self) {
        self.opened.quit().await;
    }
}
