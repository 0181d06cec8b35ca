//! How mail leaves for other hosts, by SMTP or LMTP: a single connection for many messages. Either the gateway or a courier
//! has the connection.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use vere_delivery::{BeforeMessage, Courier, Session, Unroutable};
use vere_outbound::{Hosts, Sending};
use vere_queue::{Attempt, Destination, Envelope, SiteName};
use vere_telemetry::trace::{Event, EventKind};

use super::couriers::{Distant, Route as DistantRoute};
use super::group::Group;
use crate::clock;
use crate::metrics::OpenConnection;
use crate::process::Process;

/// Relays the mail of a group to other hosts.
#[derive(Debug)]
pub(super) struct Relay(pub(super) Rc<Group>);

/// The hosts of a destination.
#[derive(Debug)]
pub(super) enum Route {
    Own(Hosts),
    Distant(DistantRoute),
}

impl Relay {
    fn process(&self) -> &Rc<Process> {
        &self.0.host.process
    }
}

impl Courier for Relay {
    type Route = Route;
    type Session = RelaySession;

    async fn find(&self, way: &Destination) -> Result<Route, Unroutable> {
        match &self.process().couriers {
            Some(couriers) => couriers.find(way).await.map(Route::Distant),
            None => self.process().outbound.find(way).await.map(Route::Own),
        }
    }

    fn site<'a>(&self, route: &'a Route) -> &'a SiteName {
        match route {
            Route::Own(hosts) => &hosts.site,
            Route::Distant(route) => &route.site,
        }
    }

    async fn open(&self, route: &Route) -> Result<RelaySession, Unroutable> {
        let way = match route {
            Route::Own(hosts) => {
                let opened = self.process().outbound.open_any(hosts).await?;
                Way::Own(Box::new(opened.into()))
            }
            Route::Distant(route) => Way::Distant(route.open().await?),
        };
        Ok(RelaySession {
            way,
            _open: self.process().metrics.connection_open(),
            group: Rc::clone(&self.0),
        })
    }

    fn messages_max(&self) -> u32 {
        self.process()
            .settings()
            .delivery
            .messages_per_connection_max
    }
}

/// A connection that is ready for messages, or was.
pub(super) struct RelaySession {
    group: Rc<Group>,
    way: Way,
    _open: OpenConnection,
}

/// The process that has the connection.
#[derive(Debug)]
enum Way {
    Own(Box<Sending>),
    Distant(Distant),
}

impl Session for RelaySession {
    async fn send(
        &mut self,
        envelope: &Rc<Envelope>,
        body: Bytes,
    ) -> Result<Attempt, BeforeMessage> {
        // A wait for room at a courier is no part of the transaction.
        let begun = Cell::new(Instant::now());
        let group = Rc::clone(&self.group);
        let host = &group.host;
        let sent = match &mut self.way {
            Way::Own(own) => {
                let begin = |own: &Sending| {
                    note(&host.process, envelope, own.remote(), own.security());
                };
                own.send(envelope, body, begin).await
            }
            Way::Distant(distant) => {
                let begin = |distant: &Distant| {
                    // The lease may have ended, or the stop begun, during the wait.
                    if !group.delivering() {
                        return Err(BeforeMessage);
                    }
                    begun.set(Instant::now());
                    note(&host.process, envelope, &distant.remote, &distant.security);
                    Ok(())
                };
                distant.send(envelope, body, begin).await
            }
        };
        if sent.is_ok() {
            host.process.metrics.transaction(begun.get().elapsed());
        }
        sent
    }

    fn usable(&mut self) -> bool {
        match &mut self.way {
            Way::Own(own) => own.usable(),
            Way::Distant(distant) => distant.usable(),
        }
    }

    async fn closed(&mut self) {
        match &mut self.way {
            Way::Own(own) => own.closed().await,
            Way::Distant(distant) => distant.closed().await,
        }
    }

    async fn quit(&mut self) {
        match &mut self.way {
            Way::Own(own) => own.quit().await,
            Way::Distant(distant) => distant.quit().await,
        }
    }
}

/// The event that says over which connection a message goes.
fn note(process: &Process, envelope: &Envelope, remote: &str, security: &str) {
    process.note(&Event {
        remote: Some(remote),
        tls: Some(security),
        attempt: Some(u32::from(envelope.head.attempts) + 1),
        ..Event::new(EventKind::Attempt, envelope.head.trace, clock::now())
    });
}
