//! Transfers to peers: the courier of the queues `peer:NAME`.

use std::rc::Rc;

use bytes::Bytes;
use vere_associations::{NotTransferred, Outcome, PoolError, ReservedLane};
use vere_delivery::{BeforeMessage, Courier, Session, Unroutable};
use vere_mta400::{Destination as Next, RecordRecipient};
use vere_process::clock;
use vere_queue::{Attempt, Destination, Disposition, Envelope, RecipientResult, SiteName};
use vere_telemetry::trace::{Event, EventKind};

use crate::peers::Line;
use crate::process::{Group, Process};

/// Status of a transfer that broke off (RFC 3463: bad connection).
const BROKE_OFF: &str = "4.4.2";
/// Status of a unit that the peer refused for now (RFC 3463: other or undefined protocol status).
const REFUSED: &str = "4.5.0";
/// Status of a recipient beyond the abilities of the peer (RFC 3463: conversion required but not supported).
const DOWNGRADE: &str = "5.6.3";
/// Status of a stored unit that cannot be read.
const UNREADABLE: &str = "5.6.0";

/// Transfers the units of a group to peers.
#[derive(Debug)]
pub(crate) struct Transfers(pub(crate) Rc<Group>);

/// The way to a peer.
#[derive(Debug)]
pub(crate) struct Route {
    peer: String,
    line: Line,
    site: SiteName,
}

impl Courier for Transfers {
    type Route = Route;
    type Session = Transfer;

    async fn find(&self, way: &Destination) -> Result<Route, Unroutable> {
        let text = way.to_string();
        let Some(peer) = text.strip_prefix("peer:") else {
            return Err(Unroutable::Temporary(format!(
                "expected a peer; found {text}"
            )));
        };
        let line = self.0.host.process.peers.line(peer).await;
        let line = line.map_err(|error| Unroutable::Temporary(error.to_string()))?;
        Ok(Route {
            site: SiteName::new([(text.as_str(), 0)], None),
            peer: peer.to_owned(),
            line,
        })
    }

    fn site<'a>(&self, route: &'a Route) -> &'a SiteName {
        &route.site
    }

    async fn open(&self, route: &Route) -> Result<Transfer, Unroutable> {
        match route.line.pool.reserve().await {
            Ok(lane) => Ok(Transfer {
                group: Rc::clone(&self.0),
                peer: route.peer.clone(),
                lane,
            }),
            Err(error) => Err(Unroutable::Site(wording(&error))),
        }
    }

    fn messages_max(&self) -> u32 {
        u32::MAX
    }
}

fn wording(error: &PoolError) -> String {
    match error {
        PoolError::NotOpen(error) => format!("no association: {error}"),
        PoolError::Ended => "the association has ended".to_owned(),
    }
}

/// A lane of the peer's pool.
#[derive(Debug)]
pub(crate) struct Transfer {
    group: Rc<Group>,
    peer: String,
    lane: ReservedLane,
}

impl Transfer {
    fn process(&self) -> &Rc<Process> {
        &self.group.host.process
    }

    /// The octets of this attempt, and the places of recipients that are left out.
    fn unit(&self, envelope: &Envelope, body: &Bytes) -> Result<(Vec<Bytes>, Vec<u32>), String> {
        let places: Vec<u32> = places(envelope).into_iter().flatten().collect();
        let to = Next::Peer(self.peer.clone());
        let unit = self.process().mta().outgoing(body, &places, &to);
        let unit = unit.map_err(|error| error.to_string())?;
        let pieces = unit.apdu.map(|apdu| apdu.to_pieces()).unwrap_or_default();
        Ok((pieces, unit.left_out))
    }
}

/// The places of the recipients, in the order of the envelope.
fn places(envelope: &Envelope) -> Vec<Option<u32>> {
    let recipients = envelope.mail.recipients.iter();
    let place = |tag: &str| RecordRecipient::place_of(tag);
    recipients
        .map(|one| one.orcpt.as_deref().and_then(place))
        .collect()
}

impl Session for Transfer {
    async fn send(
        &mut self,
        envelope: &Rc<Envelope>,
        body: Bytes,
    ) -> Result<Attempt, BeforeMessage> {
        let trace = envelope.head.trace;
        let (apdu, left_out) = match self.unit(envelope, &body) {
            Ok(unit) => unit,
            Err(error) => {
                tracing::error!(queue_id = %trace, error, "cannot read a stored unit");
                let all = result(Disposition::Failed, UNREADABLE, error);
                return Ok(self.attempt(envelope, &[], &all));
            }
        };
        self.process().note(&Event {
            remote: Some(&self.peer),
            attempt: Some(u32::from(envelope.head.attempts) + 1),
            ..Event::new(EventKind::Attempt, trace, clock::now())
        });
        if apdu.is_empty() {
            let all = result(Disposition::Failed, DOWNGRADE, beyond());
            return Ok(self.attempt(envelope, &[], &all));
        }
        let broken = self.process().peers.take_broken(trace, &self.peer);
        let done = match broken.clone() {
            Some(broken) => self.lane.settle(broken, apdu).await,
            None => self.lane.transfer(apdu).await,
        };
        if let (Err(_), Some(broken)) = (&done, broken) {
            // Without an association the transfer is as unsettled as before.
            self.process().peers.keep_broken(trace, &self.peer, broken);
        }
        let common = match done {
            Ok(outcome) => self.came_to(envelope, outcome),
            // Nothing is known against the unit: the next attempt to open an association tells more, and pauses the queue.
            Err(_) => return Err(BeforeMessage),
        };
        Ok(self.attempt(envelope, &left_out, &common))
    }

    fn usable(&mut self) -> bool {
        true
    }

    /// A lane opens another association where its own has ended.
    async fn closed(&mut self) {
        std::future::pending().await
    }

    /// The association stays open for the next message, or until its pool releases it.
    async fn quit(&mut self) {}
}

impl Transfer {
    fn came_to(&self, envelope: &Envelope, outcome: Outcome) -> RecipientResult {
        let trace = envelope.head.trace;
        let keep = |broken| {
            if let Some(broken) = broken {
                self.process().peers.keep_broken(trace, &self.peer, broken);
            }
        };
        match outcome {
            Outcome::Transferred => {
                result(Disposition::Delivered, "2.0.0", "transferred".to_owned())
            }
            Outcome::NotTransferred(why, broken) => {
                keep(broken);
                let said = match why {
                    NotTransferred::Discarded => {
                        "the transfer was discarded, and is sent anew".to_owned()
                    }
                    other => other.to_string(),
                };
                result(Disposition::Deferred, BROKE_OFF, said)
            }
            Outcome::Refused(exception, broken) => {
                keep(broken);
                let said = format!("the peer has refused the transfer: {exception:?}");
                result(Disposition::Deferred, REFUSED, said)
            }
            Outcome::InDoubt(end, broken) => {
                keep(Some(broken));
                let said = format!("the confirmation did not come ({end}): the peer will be asked");
                result(Disposition::Deferred, BROKE_OFF, said)
            }
        }
    }

    fn attempt(&self, envelope: &Envelope, left_out: &[u32], common: &RecipientResult) -> Attempt {
        let one = |place: Option<u32>| match place {
            Some(place) if left_out.contains(&place) => {
                result(Disposition::Failed, DOWNGRADE, beyond())
            }
            _ => common.clone(),
        };
        Attempt {
            remote: self.peer.clone(),
            reports_taken_over: true,
            results: places(envelope).into_iter().map(one).collect(),
        }
    }
}

fn beyond() -> String {
    "the address cannot be written in P1 of 1984, which the peer speaks".to_owned()
}

fn result(disposition: Disposition, status: &str, reply: String) -> RecipientResult {
    RecipientResult {
        disposition,
        status: status.to_owned(),
        reply,
        from_remote: false,
    }
}
