//! Call-ahead: a next hop is asked by MAIL and RCPT whether a recipient exists, before mail for the recipient is accepted
//! from a stranger. Mail for nobody is refused to the client that brings it, and no bounce goes to a forged sender.
//!
//! Questions about one recipient share a call. A next hop has a queue of calls and a few tasks, each with a connection, so
//! that a slow next hop delays no question about others. Loops of systems that call each other end: the same
//! recipient never causes a second call, and each call has its time.
//!
//! Reading order: this file (a question), `hop` (queue and tasks of a next hop), `line` (a connection), `kept` (results).

mod hop;
mod kept;
mod line;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout_at};
use vere_handoff::question::{Answer, Figures};
use vere_net::resolver::Resolver;
use vere_outbound::{Outbound, OutboundError, OutboundMetrics};
use vere_queue::Place;
use vere_settings::Settings;
use vere_smtp::address::AddrSpec;
use vere_smtp::refusal::Refusal;
use vere_units::Span;

use self::hop::{Call, Hop};
use self::kept::{Kept, Verdict};
use super::share::{Share, Shares};

/// Connections to next hops in all.
pub(super) const CONNECTIONS_MAX: usize = 64;
/// Questions that wait for calls; a further one is answered as if the next hop did not answer.
const WAITING_MAX: usize = 4_096;
/// Recipients whose calls are under way or wait.
const CALLS_MAX: usize = 1_024;
/// Questions that wait for calls, of the clients of one /24 (IPv4) or /64 (IPv6).
pub(super) const SHARE_MAX: u32 = 16;
/// Next hops known at once. A route for the domains below a domain may have any number of next hops.
const HOPS_MAX: usize = 256;
/// Connections are tried for this part of the time of a call, so that another address has its turn.
const CONNECT_PARTS: u32 = 3;
/// How long a question outlives its call, which ends by itself with its time.
const GRACE: Duration = Duration::from_secs(1);

/// An answer that comes later, with the id of its question.
pub(super) type Later = Pin<Box<dyn Future<Output = (u64, Answer)>>>;

/// Asks next hops.
#[derive(Debug)]
pub(super) struct CallAhead {
    /// `None` where no route wants calls.
    way: RefCell<Option<Rc<Way>>>,
    shared: Rc<Shared>,
}

/// What outlives a reload.
#[derive(Debug)]
struct Shared {
    connections: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    shares: Shares,
    figures: Cell<Figures>,
}

impl Shared {
    fn count(&self, count: impl FnOnce(&mut Figures) -> &mut u64) {
        let mut figures = self.figures.get();
        *count(&mut figures) += 1;
        self.figures.set(figures);
    }
}

/// The calls under one reading of the settings, and their results. Calls that a reload finds under way end by the
/// settings that they began with.
#[derive(Debug)]
struct Way {
    outbound: Outbound,
    terms: vere_settings::CallAhead,
    /// Calls over a connection.
    calls_per_connection: u32,
    kept: RefCell<Kept>,
    /// The recipients of the calls that are under way or wait.
    open: RefCell<HashMap<Box<str>, watch::Receiver<Option<Verdict>>>>,
    hops: RefCell<HashMap<Place, Rc<Hop>>>,
    shared: Rc<Shared>,
}

impl CallAhead {
    /// # Errors
    /// When roots of certificates or a password cannot be read.
    pub(super) fn new(settings: &Settings, resolver: &Resolver) -> Result<Self, OutboundError> {
        let shared = Rc::new(Shared {
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            shares: Shares::default(),
            figures: Cell::default(),
        });
        let way = Way::of(settings, resolver, &shared)?;
        Ok(Self {
            way: RefCell::new(way),
            shared,
        })
    }

    /// Asks by other settings from the next question on, and forgets all results.
    ///
    /// # Errors
    /// As [`CallAhead::new`]; then nothing changes.
    pub(super) fn set_settings(
        &self,
        settings: &Settings,
        resolver: &Resolver,
    ) -> Result<(), OutboundError> {
        let way = Way::of(settings, resolver, &self.shared)?;
        self.way.replace(way);
        Ok(())
    }

    /// Returns the counts since the start.
    pub(super) fn figures(&self) -> Figures {
        self.shared.figures.get()
    }

    /// Returns the answer about a recipient, or the answer that comes later.
    pub(super) fn ask(
        &self,
        id: u64,
        (place, address): (&Place, &str),
        client: IpAddr,
    ) -> Result<Answer, Later> {
        let recipient = AddrSpec::parse(address).map(Recipient::new);
        match (&*self.way.borrow(), recipient) {
            (Some(way), Ok(recipient)) => way.ask(id, (place, recipient), client),
            // The address has passed the same parser, and a route that is gone has taken its verdicts along.
            _ => Ok(refused(&Refusal::LocalError)),
        }
    }
}

impl Way {
    fn of(
        settings: &Settings,
        resolver: &Resolver,
        shared: &Rc<Shared>,
    ) -> Result<Option<Rc<Self>>, OutboundError> {
        let wanted = settings.routes.iter().any(|route| route.call_ahead);
        let Some(front) = settings.front.as_ref().filter(|_| wanted) else {
            return Ok(None);
        };
        let terms = front.call_ahead;
        let mut settings = settings.clone();
        let patience = terms.timeout.duration() / CONNECT_PARTS;
        let connect = &mut settings.delivery.connect_timeout;
        if connect.duration() > patience {
            *connect = Span::new(patience);
        }
        let calls_per_connection = settings.delivery.messages_per_connection_max;
        let settings = Arc::new(settings);
        let (resolver, metrics) = (resolver.clone(), OutboundMetrics::default());
        Ok(Some(Rc::new(Self {
            outbound: Outbound::new(&settings, resolver, metrics, None)?,
            terms,
            calls_per_connection,
            kept: RefCell::default(),
            open: RefCell::default(),
            hops: RefCell::default(),
            shared: Rc::clone(shared),
        })))
    }

    fn ask(
        self: &Rc<Self>,
        id: u64,
        (place, recipient): (&Place, Recipient),
        client: IpAddr,
    ) -> Result<Answer, Later> {
        let now = Instant::now();
        if let Some(verdict) = self.kept.borrow_mut().find(&recipient, now) {
            self.shared.count(|figures| &mut figures.answers_kept);
            return Ok(self.answer(verdict));
        }
        let Some(place_of_question) = self.place_of_question(client) else {
            self.shared.count(|figures| &mut figures.answers_denied);
            return Ok(refused(&Refusal::RecipientUnverified));
        };
        let open = self.open.borrow().get(recipient.key()).cloned();
        let mut call = match open {
            Some(call) => {
                self.shared.count(|figures| &mut figures.answers_shared);
                call
            }
            None => match self.begin(place, recipient, now) {
                Some(call) => {
                    self.shared.count(|figures| &mut figures.answers_called);
                    call
                }
                None => {
                    self.shared.count(|figures| &mut figures.answers_denied);
                    return Ok(self.answer(Verdict::Unavailable));
                }
            },
        };
        let by = now + self.terms.timeout.duration() + GRACE;
        let way = Rc::clone(self);
        Err(Box::pin(async move {
            let settled = timeout_at(by, call.wait_for(Option::is_some)).await;
            let verdict = match settled {
                Ok(Ok(verdict)) => *verdict,
                Ok(Err(_)) | Err(_) => None,
            };
            drop(place_of_question);
            (id, way.answer(verdict.unwrap_or(Verdict::Unavailable)))
        }))
    }

    /// Takes a place among the questions that wait.
    fn place_of_question(&self, client: IpAddr) -> Option<(Share, OwnedSemaphorePermit)> {
        let share = Share::take(&self.shared.shares, client, SHARE_MAX)?;
        let place = Arc::clone(&self.shared.waiting).try_acquire_owned().ok()?;
        Some((share, place))
    }

    /// Begins a call; `None` where the next hop failed a moment ago, or a bound is reached.
    fn begin(
        self: &Rc<Self>,
        place: &Place,
        recipient: Recipient,
        now: Instant,
    ) -> Option<watch::Receiver<Option<Verdict>>> {
        if self.open.borrow().len() >= CALLS_MAX {
            return None;
        }
        let hop = self.hop(place)?;
        let (told, call) = watch::channel(None);
        let key = recipient.key().into();
        let by = now + self.terms.timeout.duration();
        let is_begun = hop.push(
            self,
            Call {
                recipient,
                by,
                told,
            },
        );
        is_begun.then(|| {
            self.open.borrow_mut().insert(key, call.clone());
            call
        })
    }

    fn hop(&self, place: &Place) -> Option<Rc<Hop>> {
        let mut hops = self.hops.borrow_mut();
        if let Some(hop) = hops.get(place) {
            return Some(Rc::clone(hop));
        }
        if hops.len() >= HOPS_MAX {
            hops.retain(|_, hop| hop.is_busy());
        }
        if hops.len() >= HOPS_MAX {
            return None;
        }
        let hop = Rc::new(Hop::new(place.clone()));
        hops.insert(place.clone(), Rc::clone(&hop));
        Some(hop)
    }

    fn answer(&self, verdict: Verdict) -> Answer {
        match verdict {
            Verdict::Exists => Answer::Accepted,
            Verdict::Unknown => refused(&Refusal::MailboxUnknown),
            Verdict::Unavailable if self.terms.defers_unavailable => {
                refused(&Refusal::RecipientUnverified)
            }
            Verdict::Unavailable => Answer::Accepted,
        }
    }
}

/// A recipient of another system.
#[derive(Debug)]
struct Recipient {
    address: AddrSpec,
    /// The address with its domain in lower case; local-parts of two cases are two recipients (RFC 5321 section 2.4).
    key: Box<str>,
    /// Where the domain begins in `key`, at the `@`.
    at: usize,
}

impl Recipient {
    fn new(address: AddrSpec) -> Self {
        let domain = address.domain().to_ascii_lowercase();
        let at = address.as_str().len().saturating_sub(domain.len() + 1);
        let local = address.as_str().get(..at).unwrap_or_default();
        Self {
            key: format!("{local}@{domain}").into(),
            at: local.len(),
            address,
        }
    }

    fn key(&self) -> &str {
        &self.key
    }

    /// `@` and the domain: no address, so that results for the domain have keys of their own.
    fn domain_key(&self) -> &str {
        self.key.get(self.at..).unwrap_or_default()
    }
}

/// A number that nobody knows stands for a local error.
fn refused(refusal: &Refusal) -> Answer {
    Answer::Refused(refusal.number().unwrap_or_default())
}
