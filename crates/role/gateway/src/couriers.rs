//! Couriers: processes that find next hops, connect to them and send messages. The gateway schedules, and says by
//! [`vere_handoff::delivery`] which message goes when (`docs/internals/couriers.md`).
//!
//! In reading order: `slot` (the answers for a number), `room` (the octets that a courier may hold), `line` (the connection of a courier),
//! `lane` (a number on the connection), and here the choice of a courier.

mod lane;
mod line;
mod room;
mod slot;

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UnixListener;
use tokio::sync::{Notify, watch};
use vere_delivery::{BeforeMessage, Unroutable};
use vere_handoff::delivery::{
    Answer, DESTINATION_OCTETS_MAX, ENVELOPE_OCTETS_MAX, Extent, Outcome, Outcomes, Request,
};
use vere_outbound::{OutboundMetrics, STATUSES};
use vere_process::accept;
use vere_queue::{Attempt, Destination, Disposition, Envelope, RecipientResult, SiteName};

use self::lane::Lane;
use self::line::Line;

/// Couriers that may be lost for a worker: a next hop with fatal answers must not end all couriers for ever.
const LOST_MAX: usize = 3;
/// How long a message may be on the way to the courier at most. A courier that stood still must not begin later.
const BEGIN_PATIENCE: Duration = Duration::from_secs(10);
/// The bound of a courier's numbers, in quarters of the fair share.
const SHARE_QUARTERS: usize = 5;

/// The connected couriers.
#[derive(Debug)]
pub(super) struct Couriers {
    lines: RefCell<Vec<Rc<Line>>>,
    arrived: Notify,
    metrics: OutboundMetrics,
    /// How long a message may be on the way to the courier.
    begin_patience: Duration,
    /// Whether the log has that there are too many connections.
    too_many_told: Cell<bool>,
    /// Connections of couriers at once: an old connection may remain when a courier begins anew.
    lines_max: usize,
}

impl Couriers {
    /// No couriers yet, of at most `processes`. `lease`: how long a delivery lease lasts. The begin of a message may be
    /// later than the end of the lease by a third of it at most.
    pub(super) fn new(processes: u32, lease: Duration, metrics: OutboundMetrics) -> Self {
        let processes = usize::try_from(processes).unwrap_or(usize::MAX);
        Self {
            lines: RefCell::default(),
            arrived: Notify::new(),
            metrics,
            begin_patience: BEGIN_PATIENCE.min(lease / 3),
            too_many_told: Cell::new(false),
            lines_max: processes.saturating_mul(2),
        }
    }

    /// Takes the connections of couriers until the gateway stops. Connections that are open then stay, so that attempts under way end; messages
    /// that wait for room go back to their queues.
    pub(super) async fn serve(self: Rc<Self>, listener: UnixListener, stop: watch::Receiver<bool>) {
        accept::accept(listener, "couriers", stop, |stream| {
            let couriers = Rc::clone(&self);
            async move {
                let connected = couriers.lines.borrow().len();
                if connected >= couriers.lines_max {
                    couriers.tell_too_many(connected);
                    return;
                }
                let line = Rc::new(Line::default());
                couriers.lines.borrow_mut().push(Rc::clone(&line));
                couriers.arrived.notify_waiters();
                tracing::info!("courier connected");
                let ended = line.serve(stream, &couriers.metrics).await;
                let mut lines = couriers.lines.borrow_mut();
                lines.retain(|other| !Rc::ptr_eq(other, &line));
                drop(lines);
                let attempts = line.lose();
                match ended {
                    Ok(()) => tracing::warn!(attempts, "courier lost"),
                    Err(error) => tracing::warn!(%error, attempts, "courier lost"),
                }
            }
        })
        .await;
        for line in self.lines.borrow().iter() {
            line.room.close();
        }
    }

    /// Warns once: each refused courier connects again and again.
    fn tell_too_many(&self, connected: usize) {
        if !self.too_many_told.replace(true) {
            let max = self.lines_max;
            tracing::warn!(
                "expected at most {max} connections of couriers; found one more than {connected}"
            );
        }
    }

    /// Finds the hosts of a destination.
    pub(super) async fn find(self: &Rc<Self>, way: &Destination) -> Result<Route, Unroutable> {
        let destination = way.to_string();
        let (lane, site) = self.find_lane(&destination).await?;
        Ok(Route {
            couriers: Rc::clone(self),
            destination,
            site,
            lane: RefCell::new(lane),
        })
    }

    async fn find_lane(&self, destination: &str) -> Result<(Rc<Lane>, SiteName), Unroutable> {
        if destination.len() > DESTINATION_OCTETS_MAX {
            return Err(Unroutable::Temporary(format!(
                "expected at most {DESTINATION_OCTETS_MAX} octets of destination; found {}",
                destination.len()
            )));
        }
        for _ in 0..LOST_MAX {
            let lane = Rc::new(Lane::new(self.choose(destination).await));
            let find = |number| Request::Find {
                number,
                destination,
            };
            match lane.ask(find).await {
                Some(Answer::Found { site, .. }) => {
                    return Ok((lane, SiteName::made_elsewhere(site)));
                }
                Some(answer) => return Err(unroutable(answer)),
                None => {}
            }
        }
        Err(lost())
    }

    /// Waits for the courier of a destination: always the same courier, whose answers of the DNS are known, unless the courier has much more to do
    /// than the others.
    async fn choose(&self, destination: &str) -> Rc<Line> {
        let mut hasher = DefaultHasher::new();
        destination.hash(&mut hasher);
        let hash = usize::try_from(hasher.finish() >> 33).unwrap_or(0);
        loop {
            let arrived = self.arrived.notified();
            if let Some(line) = chosen(&self.lines.borrow(), hash) {
                return line;
            }
            arrived.await;
        }
    }
}

/// Consistent hashing with bounded loads, for a list that seldom changes.
fn chosen(lines: &[Rc<Line>], hash: usize) -> Option<Rc<Line>> {
    let lanes: usize = lines.iter().map(|line| line.lanes()).sum();
    let bound = lanes * SHARE_QUARTERS / (4 * lines.len().max(1)) + 1;
    let from = hash.checked_rem(lines.len())?;
    let (before, behind) = lines.split_at(from);
    let mut in_turn = behind.iter().chain(before);
    in_turn.find(|line| line.lanes() < bound).map(Rc::clone)
}

/// The hosts of a destination, which a courier knows.
#[derive(Debug)]
pub(super) struct Route {
    couriers: Rc<Couriers>,
    destination: String,
    pub(super) site: SiteName,
    /// Replaced when its courier is lost.
    lane: RefCell<Rc<Lane>>,
}

impl Route {
    /// Connects to the first host open for messages; by another courier if the first courier is lost.
    pub(super) async fn open(&self) -> Result<Distant, Unroutable> {
        for _ in 0..LOST_MAX {
            let lane = Rc::clone(&self.lane.borrow());
            if !lane.is_lost() {
                match lane.ask(|number| Request::Open { number }).await {
                    Some(Answer::Opened {
                        remote, security, ..
                    }) => {
                        return Ok(Distant {
                            lane,
                            site: self.site.clone(),
                            begin_patience: self.couriers.begin_patience,
                            remote,
                            security,
                            usable: true,
                        });
                    }
                    Some(answer) => return Err(unroutable(answer)),
                    None => {}
                }
            }
            let (lane, _) = self.couriers.find_lane(&self.destination).await?;
            self.lane.replace(lane);
        }
        Err(lost())
    }
}

/// A connection of a courier to a next hop.
#[derive(Debug)]
pub(super) struct Distant {
    lane: Rc<Lane>,
    site: SiteName,
    begin_patience: Duration,
    /// The host's name and address.
    pub(super) remote: String,
    /// How the connection is encrypted and why.
    pub(super) security: String,
    usable: bool,
}

impl Distant {
    /// Sends one message. `begin` is called before the courier gets the message, and may refuse a message after a long wait.
    pub(super) async fn send(
        &mut self,
        envelope: &Envelope,
        body: Bytes,
        begin: impl FnOnce(&Self) -> Result<(), BeforeMessage>,
    ) -> Result<Attempt, BeforeMessage> {
        let encoded = envelope.encode();
        if encoded.len() > ENVELOPE_OCTETS_MAX {
            return Ok(too_long(&self.remote, envelope, encoded.len()));
        }
        let room = self.lane.room(body.len(), &self.site).await;
        let _room = room.ok_or(BeforeMessage)?;
        if !self.usable() {
            return Err(BeforeMessage);
        }
        begin(self)?;
        let sent = self.lane.send(&encoded, body, self.begin_patience);
        match sent.await {
            Some(Answer::Sent { outcomes, .. }) => {
                let usable = outcomes.usable;
                let attempt = attempt(&self.remote, envelope, outcomes);
                self.usable = attempt.is_some() && usable;
                // A result whose recipient is unknown is no result.
                Ok(attempt.unwrap_or_else(|| lost_attempt(&self.remote, envelope)))
            }
            Some(Answer::Unsent { usable, .. }) => {
                self.usable = usable;
                Err(BeforeMessage)
            }
            // The next hop may have the message; the message is tried again, as after any lost connection.
            _ => {
                self.usable = false;
                Ok(lost_attempt(&self.remote, envelope))
            }
        }
    }

    /// Whether the connection takes another message.
    pub(super) fn usable(&self) -> bool {
        self.usable && !self.lane.is_closed()
    }

    /// Waits until the connection takes no message any more.
    pub(super) async fn closed(&mut self) {
        self.lane.closed().await;
        self.usable = false;
    }

    /// Has the courier say goodbye, and waits until the connection is closed: the connection counts until then.
    pub(super) async fn quit(&mut self) {
        self.lane.tell(|number| Request::Quit { number });
        self.closed().await;
    }
}

/// The results of an attempt; `None` unless each recipient has one.
fn attempt(remote: &str, envelope: &Envelope, outcomes: Outcomes) -> Option<Attempt> {
    let (expected, found) = (envelope.mail.recipients.len(), outcomes.recipients.len());
    if expected != found {
        tracing::error!(
            queue_id = %envelope.head.trace,
            "expected {expected} results from the courier; found {found}"
        );
        return None;
    }
    Some(Attempt {
        remote: remote.to_owned(),
        reports_taken_over: outcomes.reports_taken_over,
        results: outcomes.recipients.into_iter().map(result).collect(),
    })
}

fn result(outcome: Outcome) -> RecipientResult {
    RecipientResult {
        disposition: match outcome.disposition {
            0 => Disposition::Delivered,
            2 => Disposition::Failed,
            _ => Disposition::Deferred,
        },
        status: outcome.status,
        reply: outcome.reply,
        from_remote: outcome.from_remote,
    }
}

fn lost_attempt(remote: &str, envelope: &Envelope) -> Attempt {
    let reply = "courier process lost during the attempt".to_owned();
    deferred(remote, envelope, "4.4.2", reply)
}

/// The attempt of a message refused by every courier: further messages of a courier go on.
fn too_long(remote: &str, envelope: &Envelope, found: usize) -> Attempt {
    let reply = format!("expected at most {ENVELOPE_OCTETS_MAX} octets of envelope; found {found}");
    deferred(remote, envelope, "4.3.4", reply)
}

fn deferred(remote: &str, envelope: &Envelope, status: &str, reply: String) -> Attempt {
    let result = RecipientResult {
        disposition: Disposition::Deferred,
        status: status.to_owned(),
        reply,
        from_remote: false,
    };
    Attempt {
        remote: remote.to_owned(),
        reports_taken_over: false,
        results: vec![result; envelope.mail.recipients.len()],
    }
}

fn lost() -> Unroutable {
    Unroutable::Temporary(format!(
        "{LOST_MAX} courier processes lost one after another"
    ))
}

fn unroutable(answer: Answer) -> Unroutable {
    match answer {
        Answer::Unroutable {
            extent,
            status,
            reply,
            ..
        } => match (extent, STATUSES.get(usize::from(status))) {
            (Extent::Ever, Some(status)) => Unroutable::Permanent { status, reply },
            (Extent::Site, _) => Unroutable::Site(reply),
            (Extent::Now | Extent::Ever, _) => Unroutable::Temporary(reply),
        },
        _ => Unroutable::Temporary("courier process broke the protocol".to_owned()),
    }
}

#[cfg(test)]
mod tests;
