//! Call-ahead: the broker asks a next hop by MAIL and RCPT whether a recipient exists, before the system accepts mail for the
//! recipient from a stranger. The client gets the refusal of an unknown recipient, and no bounce goes to a forged sender.
//!
//! Questions about one recipient share a call. A next hop has a queue of calls and a few tasks, each with a connection; a
//! slow next hop delays no question about other next hops. Loops of systems end: a recipient with a call under way causes no
//! second call, and each call has a time limit.
//!
//! Reading order: this file (a question), `hop` (queue and tasks of a next hop), `line` (a connection), `kept` (results), `ground`
//! (what calls share).

mod ground;
mod hop;
mod kept;
mod line;
mod recipient;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
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
use vere_outbound::OutboundError;
use vere_queue::Place;
use vere_settings::Settings;
use vere_smtp::address::AddrSpec;
use vere_smtp::refusal::Refusal;

use self::ground::{Ground, Shared};
use self::hop::{Call, Hop};
use self::kept::Verdict;
use self::recipient::Recipient;
use super::share::Share;

/// Calls under way and waiting calls.
const CALLS_MAX: usize = 1_024;
/// Waiting questions of the clients of one /24 (IPv4) or /64 (IPv6).
pub(super) const SHARE_MAX: u32 = 16;
/// Waiting questions of one connection, and so calls that a connection begins at a time: half of all calls.
pub(super) const CONNECTION_MAX: usize = CALLS_MAX / 2;
/// Known next hops. A route for the domains below a domain may have any number of next hops.
const HOPS_MAX: usize = 256;
/// Life of a question after the end of the call, which settles the question.
const GRACE: Duration = Duration::from_secs(1);

/// An answer that comes later, with the id of its question.
pub(super) type Later = Pin<Box<dyn Future<Output = (u64, Answer)>>>;

/// The places of a connection of a client for questions that wait for calls.
#[derive(Debug)]
pub(super) struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CONNECTION_MAX)))
    }
}

/// What a question holds while it waits: a part of the share of its network, a place among all, and one of its connection.
type Held = (Share, OwnedSemaphorePermit, OwnedSemaphorePermit);

/// Asks next hops.
#[derive(Debug)]
pub(super) struct CallAhead {
    /// `None` where no route wants calls.
    way: RefCell<Option<Rc<Way>>>,
    shared: Rc<Shared>,
}

/// The calls under one reading of the settings.
#[derive(Debug)]
struct Way {
    ground: Rc<Ground>,
    hops: RefCell<HashMap<Place, Rc<Hop>>>,
}

impl CallAhead {
    /// # Errors
    /// When roots of certificates or a password cannot be read.
    pub(super) fn new(settings: &Settings, resolver: &Resolver) -> Result<Self, OutboundError> {
        let shared = Rc::<Shared>::default();
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
        self.shared.figures()
    }

    /// Returns the answer about a recipient, or the answer that comes later.
    pub(super) fn ask(
        &self,
        id: u64,
        (place, address): (&Place, &str),
        (client, places): (IpAddr, &Places),
    ) -> Result<Answer, Later> {
        let recipient = AddrSpec::parse(address).map(Recipient::new);
        match (&*self.way.borrow(), recipient) {
            (Some(way), Ok(recipient)) => way.ask(id, (place, recipient), (client, places)),
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
        Ok(Some(Rc::new(Self {
            ground: Rc::new(Ground::new(settings, front, resolver, shared)?),
            hops: RefCell::default(),
        })))
    }

    fn ask(
        self: &Rc<Self>,
        id: u64,
        (place, recipient): (&Place, Recipient),
        (client, places): (IpAddr, &Places),
    ) -> Result<Answer, Later> {
        let now = Instant::now();
        if let Some(verdict) = self.ground.kept.borrow_mut().find(&recipient, now) {
            self.ground
                .shared
                .count(|figures| &mut figures.answers_kept);
            return Ok(self.answer(verdict));
        }
        let Some(place_of_question) = self.place_of_question(client, places) else {
            self.ground
                .shared
                .count(|figures| &mut figures.answers_denied);
            return Ok(refused(&Refusal::RecipientUnverified));
        };
        let open = self.ground.open.borrow().get(recipient.key()).cloned();
        let mut call = match open {
            Some(call) => {
                self.ground
                    .shared
                    .count(|figures| &mut figures.answers_shared);
                call
            }
            None => match self.begin(place, recipient, now) {
                Some(call) => {
                    self.ground
                        .shared
                        .count(|figures| &mut figures.answers_called);
                    call
                }
                None => {
                    self.ground
                        .shared
                        .count(|figures| &mut figures.answers_denied);
                    return Ok(self.answer(Verdict::Unavailable));
                }
            },
        };
        let by = now + self.ground.terms.timeout.duration() + GRACE;
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
    fn place_of_question(&self, client: IpAddr, places: &Places) -> Option<Held> {
        let share = Share::take(&self.ground.shared.shares, client, SHARE_MAX)?;
        let place = |all: &Arc<Semaphore>| Arc::clone(all).try_acquire_owned().ok();
        Some((
            share,
            place(&self.ground.shared.waiting)?,
            place(&places.0)?,
        ))
    }

    /// Begins a call; `None` where the next hop failed a moment ago, or a bound is reached.
    fn begin(
        self: &Rc<Self>,
        place: &Place,
        recipient: Recipient,
        now: Instant,
    ) -> Option<watch::Receiver<Option<Verdict>>> {
        if self.ground.open.borrow().len() >= CALLS_MAX {
            return None;
        }
        let hop = self.hop(place)?;
        let (told, call) = watch::channel(None);
        let key = recipient.key().into();
        let by = now + self.ground.terms.timeout.duration();
        let is_begun = hop.push(
            &self.ground,
            Call {
                recipient,
                by,
                told,
            },
        );
        is_begun.then(|| {
            self.ground.open.borrow_mut().insert(key, call.clone());
            call
        })
    }

    fn hop(&self, place: &Place) -> Option<Rc<Hop>> {
        let mut hops = self.hops.borrow_mut();
        if let Some(hop) = hops.get(place) {
            return Some(Rc::clone(hop));
        }
        if hops.len() >= HOPS_MAX {
            let spare = hops.iter().filter_map(|(of, hop)| Some((hop.spare()?, of)));
            let (_, first) = spare.min_by(|one, other| one.0.cmp(&other.0))?;
            let first = first.clone();
            hops.remove(&first);
        }
        let hop = Rc::new(Hop::new(place.clone()));
        hops.insert(place.clone(), Rc::clone(&hop));
        Some(hop)
    }

    fn answer(&self, verdict: Verdict) -> Answer {
        match verdict {
            Verdict::Exists => Answer::Accepted,
            Verdict::Unknown => refused(&Refusal::MailboxUnknown),
            Verdict::Unavailable if self.ground.terms.defers_unavailable => {
                refused(&Refusal::RecipientUnverified)
            }
            Verdict::Unavailable => Answer::Accepted,
        }
    }
}

/// A number that nobody knows stands for a local error.
fn refused(refusal: &Refusal) -> Answer {
    Answer::Refused(refusal.number().unwrap_or_default())
}
