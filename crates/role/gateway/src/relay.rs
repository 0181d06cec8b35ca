//! How mail leaves for other hosts, by SMTP or LMTP: one connection, over which message after message goes.

use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use vere_delivery::{BeforeMessage, Courier, Session, Unroutable};
use vere_queue::{Attempt, Destination, Envelope, SiteName};
use vere_smtp::client::ClientStep;
use vere_telemetry::trace::{Event, EventKind};

use crate::metrics::OpenConnection;
use crate::process::Process;
use crate::{clock, convert, wire};
use vere_outbound::{Hosts, Opened, Progress, drive};

/// Relays to other hosts.
#[derive(Debug)]
pub(super) struct Relay(pub(super) Rc<Process>);

impl Courier for Relay {
    type Route = Hosts;
    type Session = RelaySession;

    async fn find(&self, way: &Destination) -> Result<Hosts, Unroutable> {
        self.0.outbound.find(way).await
    }

    fn site<'a>(&self, hosts: &'a Hosts) -> &'a SiteName {
        &hosts.site
    }

    async fn open(&self, hosts: &Hosts) -> Result<RelaySession, Unroutable> {
        let opened = self.0.outbound.open_any(hosts).await?;
        Ok(RelaySession {
            security: opened.security(),
            opened,
            used: false,
            _open: self.0.metrics.connection_open(),
            process: Rc::clone(&self.0),
        })
    }

    fn messages_max(&self) -> u32 {
        self.0.settings().delivery.messages_per_connection_max
    }
}

/// A connection that is ready for messages, or was.
pub(super) struct RelaySession {
    process: Rc<Process>,
    opened: Opened,
    /// How it is encrypted and why, for traces.
    security: String,
    /// Whether a message was sent already.
    used: bool,
    _open: OpenConnection,
}

impl Session for RelaySession {
    async fn send(
        &mut self,
        envelope: &Rc<Envelope>,
        body: Bytes,
    ) -> Result<Attempt, BeforeMessage> {
        let begun = Instant::now();
        let sent = self.transact(envelope, body).await;
        if sent.is_ok() {
            self.process.metrics.transaction(begun.elapsed());
        }
        sent
    }
    fn usable(&mut self) -> bool {
        matches!(self.opened.client.step(), ClientStep::Ready)
    }

    async fn closed(&mut self) {
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

    async fn quit(&mut self) {
        self.opened.quit().await;
    }
}

impl RelaySession {
    async fn transact(
        &mut self,
        envelope: &Envelope,
        body: Bytes,
    ) -> Result<Attempt, BeforeMessage> {
        if self.used && !self.usable() {
            return Err(BeforeMessage);
        }
        let again = std::mem::replace(&mut self.used, true);
        let outgoing = match convert::outgoing(envelope, body) {
            Ok(outgoing) => outgoing,
            Err(broken) => return Ok(self.broken_addresses(envelope, &broken)),
        };
        self.note(envelope);
        self.opened.client.begin(outgoing, clock::steady());
        match self.drive().await {
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

    /// The event that says over which connection a message goes.
    fn note(&self, envelope: &Envelope) {
        self.process.note(&Event {
            remote: Some(&self.opened.remote),
            tls: Some(&self.security),
            attempt: Some(u32::from(envelope.head.attempts) + 1),
            ..Event::new(EventKind::Attempt, envelope.head.trace, clock::now())
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
}
