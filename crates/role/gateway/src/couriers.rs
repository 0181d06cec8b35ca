//! Couriers: processes that find next hops, connect to them and send messages. The gateway schedules, and says by
//! [`vere_handoff::delivery`] which message goes when (`docs/internals/couriers.md`).
//!
//! In reading order: `slot` (the answers for a number), `room` (the octets that a courier may hold), `line` (the connection of a courier), `lane` (a number on the connection), and here the choice of a courier.

mod lane;
mod line;
mod room;
mod slot;

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;

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

/// Couriers that may be lost for one worker: a next hop whose answers end couriers must not end all couriers for ever.
const LOST_MAX: usize = 3;
/// The bound of a courier's numbers, in quarters of the fair share.
const SHARE_QUARTERS: usize = 5;

/// The connected couriers.
#[derive(Debug)]
pub(super) struct Couriers {
    lines: RefCell<Vec<Rc<Line>>>,
    arrived: Notify,
    metrics: OutboundMetrics,
    /// Connections of couriers at once: an old connection may remain when a courier begins anew.
    lines_max: usize,
}

impl Couriers {
    /// No couriers yet, of at most `processes`.
    pub(super) fn new(processes: u32, metrics: OutboundMetrics) -> Self {
        let processes = usize::try_from(processes).unwrap_or(usize::MAX);
        Self {
            lines: RefCell::default(),
            arrived: Notify::new(),
            metrics,
            lines_max: processes.saturating_mul(2),
        }
    }

    /// Takes the connections of couriers until the gateway stops. Connections that are open then stay, so that attempts under way end; messages
    /// that wait for room go back to their queues.
    pub(super) async fn serve(self: Rc<Self>, listener: UnixListener, stop: watch::Receiver<bool>) {
        accept::accept(listener, "couriers", stop, |stream| {
            let couriers = Rc::clone(&self);
            async move {
                if couriers.lines.borrow().len() >= couriers.lines_max {
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
    /// Connects to the first host that takes messages; by another courier where the first one is lost.
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
        match self.lane.send(&encoded, body).await {
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

/// The attempt of a message that no courier would take: the other messages of a courier go on.
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
mod tests {
    use vere_queue::{Mail, Notify, Recipient, ScheduleHead};
    use vere_units::{Timestamp, TraceId};

    use super::*;

    pub(super) fn envelope() -> Envelope {
        let recipient = |address: &str| Recipient {
            address: address.to_owned(),
            notify: Notify::default(),
            orcpt: None,
        };
        Envelope {
            head: ScheduleHead::new(TraceId::new(7), Timestamp::from_millis(1), 5),
            mail: Mail {
                reverse_path: Some("a@example.net".to_owned()),
                recipients: vec![recipient("b@example.org"), recipient("c@example.org")],
                ..Mail::default()
            },
        }
    }

    #[test]
    fn a_lost_courier_defers_each_recipient() {
        let attempt = lost_attempt("mx", &envelope());
        assert_eq!(attempt.results.len(), 2);
        let results = attempt.results.iter();
        let deferred = |result: &RecipientResult| result.disposition == Disposition::Deferred;
        assert!(results.clone().all(deferred));
        assert!(results.clone().all(|result| result.status == "4.4.2"));
    }

    #[tokio::test]
    async fn results_count_only_where_each_recipient_has_one() {
        for (count, kept) in [(0, false), (1, false), (2, true), (3, false)] {
            let line = Rc::new(Line::default());
            let mut distant = distant(&line);
            let envelope = envelope();
            let outcome = Outcome {
                disposition: 0,
                from_remote: true,
                status: "2.0.0".to_owned(),
                reply: "taken".to_owned(),
            };
            let outcomes = Outcomes {
                usable: true,
                reports_taken_over: false,
                recipients: vec![outcome; count],
            };
            let answer = async {
                line.answered(
                    1,
                    Answer::Sent {
                        number: 1,
                        outcomes,
                    },
                )
            };
            let sent = distant.send(&envelope, Bytes::new(), |_| Ok(()));
            let (attempt, answered) = tokio::join!(sent, answer);
            answered.unwrap();
            let results = attempt.unwrap().results;
            assert_eq!(results.len(), 2);
            let delivered = |result: &RecipientResult| result.disposition == Disposition::Delivered;
            assert_eq!(
                results.iter().filter(|one| delivered(one)).count(),
                if kept { 2 } else { 0 }
            );
            assert_eq!(distant.usable(), kept);
        }
    }

    #[tokio::test]
    async fn an_envelope_that_no_courier_takes_defers_its_message_alone() {
        let line = Rc::new(Line::default());
        let mut distant = distant(&line);
        let mut long = envelope();
        let recipient = Recipient {
            address: "x".repeat(ENVELOPE_OCTETS_MAX / 300),
            notify: Notify::default(),
            orcpt: None,
        };
        long.mail.recipients = vec![recipient; 301];
        let begin = |_: &Distant| panic!("no attempt begins");
        let attempt = distant.send(&long, Bytes::new(), begin).await.unwrap();
        assert_eq!(attempt.results.len(), 301);
        let deferred = |result: &RecipientResult| result.disposition == Disposition::Deferred;
        assert!(attempt.results.iter().all(deferred));
        assert!(distant.usable());
    }

    #[tokio::test]
    async fn a_destination_that_no_courier_takes_is_asked_of_none() {
        let couriers = Couriers::new(1, OutboundMetrics::default());
        let long = "x".repeat(DESTINATION_OCTETS_MAX + 1);
        let found = couriers.find_lane(&long).await.map(drop);
        assert!(matches!(found, Err(Unroutable::Temporary(_))), "{found:?}");
    }

    fn distant(line: &Rc<Line>) -> Distant {
        Distant {
            lane: Rc::new(Lane::new(Rc::clone(line))),
            site: SiteName::made_elsewhere("a:25".to_owned()),
            remote: "mx".to_owned(),
            security: "clear".to_owned(),
            usable: true,
        }
    }

    fn lines(lanes: &[usize]) -> Vec<(Rc<Line>, Vec<Lane>)> {
        let line = |count: &usize| {
            let line = Rc::new(Line::default());
            let lanes = (0..*count).map(|_| Lane::new(Rc::clone(&line))).collect();
            (line, lanes)
        };
        lanes.iter().map(line).collect()
    }

    fn chosen_of(lanes: &[usize], hash: usize) -> Option<usize> {
        let held = lines(lanes);
        let all: Vec<Rc<Line>> = held.iter().map(|(line, _)| Rc::clone(line)).collect();
        let line = chosen(&all, hash)?;
        all.iter().position(|other| Rc::ptr_eq(other, &line))
    }

    #[test]
    fn a_destination_has_its_courier_until_that_has_too_much() {
        assert_eq!(chosen_of(&[], 1), None);
        assert_eq!(chosen_of(&[0, 0], 0), Some(0));
        assert_eq!(chosen_of(&[0, 0], 3), Some(1));
        assert_eq!(chosen_of(&[4, 4, 5], 2), Some(2));
        // More than a quarter above the share of each.
        assert_eq!(chosen_of(&[10, 0], 0), Some(1));
        assert_eq!(chosen_of(&[2, 2, 9], 2), Some(0));
    }

    /// The courier with the least numbers is always below the bound.
    #[test]
    fn some_courier_is_always_chosen() {
        for load in 0..200 {
            for hash in 0..3 {
                assert!(chosen_of(&[load, load / 2, load * 3], hash).is_some());
            }
        }
    }

    #[test]
    fn refusals_keep_their_extent_and_status() {
        let answer = |extent, status| Answer::Unroutable {
            number: 1,
            extent,
            status,
            reply: "no".to_owned(),
        };
        let reply = || "no".to_owned();
        assert_eq!(
            unroutable(answer(Extent::Ever, 2)),
            Unroutable::Permanent {
                status: "5.4.6",
                reply: reply()
            }
        );
        assert_eq!(
            unroutable(answer(Extent::Site, 0)),
            Unroutable::Site(reply())
        );
        // A newer courier may have an unknown status: no message is returned for an unknown status.
        assert_eq!(
            unroutable(answer(Extent::Ever, 99)),
            Unroutable::Temporary(reply())
        );
    }
}
