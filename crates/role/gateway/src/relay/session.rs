//! One connection to another host, over which message after message goes.

use bytes::Bytes;
use vere_queue::{Attempt, Envelope};
use vere_smtp::client::ClientStep;
use vere_telemetry::trace::{Event, EventKind};

use crate::metrics::OpenConnection;
use crate::process::Process;
use crate::{clock, convert, wire};
use vere_outbound::{Hosts, Opened, Progress, Unroutable, drive};

/// A connection that is ready for messages, or was.
pub(super) struct RelaySession {
    opened: Opened,
    /// How it is encrypted and why, for traces.
    security: String,
    /// Whether a message was sent already.
    used: bool,
    _open: OpenConnection,
}

/// Why a message was not sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// The connection was closed before the message began: nothing is known against it.
    BeforeMessage,
}

impl RelaySession {
    /// Connects to the first of a destination's hosts that takes messages.
    ///
    /// # Errors
    /// Why none does.
    pub(super) async fn open(process: &Process, hosts: &Hosts) -> Result<Self, Unroutable> {
        let opened = process.outbound.open_any(hosts).await?;
        Ok(Self {
            security: opened.security(),
            opened,
            used: false,
            _open: process.metrics.connection_open(),
        })
    }
    /// Sends one message.
    ///
    /// # Errors
    /// [`SessionEnd::BeforeMessage`] when a kept connection turns out to be closed.
    pub(super) async fn send(
        &mut self,
        process: &Process,
        envelope: &Envelope,
        body: Bytes,
    ) -> Result<Attempt, SessionEnd> {
        if self.used && self.closed_meanwhile() {
            return Err(SessionEnd::BeforeMessage);
        }
        let again = std::mem::replace(&mut self.used, true);
        let outgoing = match convert::outgoing(envelope, body) {
            Ok(outgoing) => outgoing,
            Err(broken) => return Ok(self.broken_addresses(envelope, &broken)),
        };
        self.note(process, envelope);
        self.opened.client.begin(outgoing, clock::steady());
        match self.drive().await {
            // Closed before the server said anything about it.
            Progress::Done(outcome) if outcome.untried && again => Err(SessionEnd::BeforeMessage),
            Progress::Done(outcome) => Ok(Attempt {
                remote: self.opened.remote.clone(),
                reports_taken_over: outcome.dsn_passed_on,
                results: convert::results(&outcome),
            }),
            // A machine that closes settles the message first, and only then says why it closed.
            Progress::Ready | Progress::StartTls | Progress::Closed(_) => {
                Err(SessionEnd::BeforeMessage)
            }
        }
    }

    /// The event that says over which connection a message goes.
    fn note(&self, process: &Process, envelope: &Envelope) {
        process.note(&Event {
            remote: Some(&self.opened.remote),
            tls: Some(&self.security),
            attempt: Some(u32::from(envelope.attempts) + 1),
            ..Event::new(EventKind::Attempt, envelope.trace, clock::now())
        });
    }

    fn broken_addresses(&self, envelope: &Envelope, broken: &[usize]) -> Attempt {
        Attempt {
            remote: self.opened.remote.clone(),
            reports_taken_over: false,
            results: convert::broken(envelope, broken),
        }
    }

    async fn drive(&mut self) -> Progress {
        let Opened { stream, client, .. } = &mut self.opened;
        drive(stream, client).await
    }

    /// Whether the connection takes another message.
    pub(super) fn usable(&mut self) -> bool {
        matches!(self.opened.client.step(), ClientStep::Ready)
    }

    fn closed_meanwhile(&mut self) -> bool {
        !self.usable()
    }

    /// Waits until the server closes the connection or says something unasked, which ends it too.
    pub(super) async fn closed(&mut self) {
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
    pub(super) async fn quit(&mut self) {
        self.opened.quit().await;
    }
}
