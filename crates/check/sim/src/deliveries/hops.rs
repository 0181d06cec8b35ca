//! Next hops, and how a gateway reaches them.

use std::rc::Rc;

use bytes::Bytes;
use vere_delivery::{BeforeMessage, Courier, Session, Unroutable};
use vere_queue::{Attempt, Destination, Disposition, Envelope, RecipientResult, SiteName};

use super::{BrokenDelivery, Shared};
use crate::random::Random;
use crate::schedule::{MILLI, SECOND};
use crate::stage::Staged;

/// Destinations of mail; senders have the last one.
pub(super) const DOMAINS: usize = 4;

/// The destination of an address.
pub(super) fn destination(address: &str) -> Destination {
    let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
    Destination::domain(domain.to_owned())
}

/// The name of a domain.
pub(super) fn domain(index: usize) -> String {
    format!("d{index}.example")
}

/// The manner of a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It takes everything.
    Takes,
    /// It answers each recipient as it likes.
    Picks,
    /// It answers "later".
    Defers,
    /// It refuses.
    Refuses,
    /// It cuts the connection, before or after it took a message.
    Cuts,
    /// The hop answers after a minute, or not at all.
    Hangs,
    /// It cannot be reached.
    Down,
    /// None of the hosts of its site can be reached.
    SiteDown,
    /// It says that it takes no mail.
    NoMail,
}

impl Manner {
    /// A manner, most often a good one.
    pub(super) fn draw(random: &mut Random) -> Self {
        let all = [
            Self::Takes,
            Self::Takes,
            Self::Takes,
            Self::Picks,
            Self::Picks,
            Self::Defers,
            Self::Refuses,
            Self::Cuts,
            Self::Cuts,
            Self::Hangs,
            Self::Down,
            Self::SiteDown,
            Self::NoMail,
        ];
        random.pick(&all).unwrap_or(Self::Takes)
    }
}

/// The way of one gateway to next hops.
pub(super) struct SimCourier {
    pub(super) world: Shared,
    pub(super) life: usize,
}

impl Courier for SimCourier {
    type Route = (usize, SiteName);
    type Session = SimSession;

    async fn find(&self, way: &Destination) -> Result<Self::Route, Unroutable> {
        self.world.pause(0..50 * MILLI).await;
        let name = way.to_string();
        let index = (0..DOMAINS).find(|index| domain(*index) == name);
        let index = index.ok_or_else(|| Unroutable::Temporary("no such domain".to_owned()))?;
        if self.world.manner(index) == Manner::NoMail {
            let reply = "it takes no mail".to_owned();
            let status = "5.1.10";
            return Err(Unroutable::Permanent { status, reply });
        }
        // Two domains share their hosts.
        let host = ["mx0.example", "mx0.example", "mx2.example", "mx3.example"];
        let host = host.get(index).copied().unwrap_or_default();
        Ok((index, SiteName::new([(host, 25)], None)))
    }

    fn site<'a>(&self, route: &'a Self::Route) -> &'a SiteName {
        &route.1
    }

    async fn open(&self, route: &Self::Route) -> Result<SimSession, Unroutable> {
        self.world.pause(0..200 * MILLI).await;
        match self.world.manner(route.0) {
            Manner::Down => Err(Unroutable::Temporary("connection refused".to_owned())),
            Manner::SiteDown => Err(Unroutable::Site("421 too busy".to_owned())),
            _ => Ok(SimSession {
                world: Rc::clone(&self.world),
                life: self.life,
                hop: route.0,
                used: false,
                open: true,
            }),
        }
    }

    fn messages_max(&self) -> u32 {
        5
    }
}

/// A connection to a next hop.
pub(super) struct SimSession {
    world: Shared,
    life: usize,
    hop: usize,
    used: bool,
    open: bool,
}

const fn result(disposition: Disposition) -> (Disposition, &'static str, &'static str) {
    match disposition {
        Disposition::Delivered => (disposition, "2.0.0", "250 taken"),
        Disposition::Deferred => (disposition, "4.2.1", "450 later"),
        Disposition::Failed => (disposition, "5.1.1", "550 no such user"),
    }
}

impl SimSession {
    fn attempt(&self, of: impl Iterator<Item = Disposition>) -> Attempt {
        let result = |one| {
            let (disposition, status, reply) = result(one);
            RecipientResult {
                disposition,
                status: status.to_owned(),
                reply: reply.to_owned(),
                from_remote: true,
            }
        };
        Attempt {
            remote: domain(self.hop),
            reports_taken_over: false,
            results: of.map(result).collect(),
        }
    }

    /// The hop takes the message for one recipient.
    fn take(&self, envelope: &Envelope, address: &str) {
        self.world.takes(self.life, envelope, address);
    }

    fn answer(&self, envelope: &Envelope, picks: bool) -> Attempt {
        let mut results = Vec::new();
        for recipient in &envelope.mail.recipients {
            let one = match picks {
                true => self.world.pick(&[
                    Disposition::Delivered,
                    Disposition::Deferred,
                    Disposition::Failed,
                ]),
                false => Disposition::Delivered,
            };
            if one == Disposition::Delivered {
                self.take(envelope, &recipient.address);
            }
            results.push(one);
        }
        self.attempt(results.into_iter())
    }

    /// The connection ends before the reply; the hop may have taken the message.
    fn cut(&mut self, envelope: &Envelope) -> Attempt {
        self.open = false;
        if self.world.pick(&[true, false]) {
            for recipient in &envelope.mail.recipients {
                self.take(envelope, &recipient.address);
                let copy = (envelope.head.trace, recipient.address.clone());
                self.world.account.borrow_mut().unheard(&copy);
            }
        }
        self.all(envelope, Disposition::Deferred)
    }

    fn all(&self, envelope: &Envelope, one: Disposition) -> Attempt {
        self.attempt(envelope.mail.recipients.iter().map(|_| one))
    }
}

impl Session for SimSession {
    async fn send(&mut self, envelope: &Rc<Envelope>, _: Bytes) -> Result<Attempt, BeforeMessage> {
        self.world.begins(self.life, envelope, &domain(self.hop));
        if self.used && self.world.draw(5) {
            self.open = false;
            return Err(BeforeMessage);
        }
        self.used = true;
        if self.world.broken == BrokenDelivery::EagerEnd {
            self.world.end_eagerly(envelope);
        }
        self.world.pause(0..100 * MILLI).await;
        let attempt = match self.world.manner(self.hop) {
            Manner::Takes => self.answer(envelope, false),
            Manner::Picks => self.answer(envelope, true),
            Manner::Defers => self.all(envelope, Disposition::Deferred),
            Manner::Refuses => self.all(envelope, Disposition::Failed),
            Manner::Cuts | Manner::Down | Manner::SiteDown | Manner::NoMail => self.cut(envelope),
            Manner::Hangs => {
                self.world.pause(SECOND..60 * SECOND).await;
                self.cut(envelope)
            }
        };
        // The reply is on the way.
        self.world.pause(0..20 * MILLI).await;
        Ok(attempt)
    }

    fn usable(&mut self) -> bool {
        self.open
    }

    async fn closed(&mut self) {
        self.world.pause(SECOND..20 * SECOND).await;
        self.open = false;
    }

    async fn quit(&mut self) {
        self.world.pause(0..20 * MILLI).await;
    }
}
