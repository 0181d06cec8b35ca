//! Mail that waits follows its route: when other settings lead elsewhere, it moves to where new mail would go.
//!
//! A message is moved by one change of the spool, so that it is in the one queue or the other whatever dies
//! meanwhile: by MOVE, which leaves its body where it is, or, when its recipients part, by PUTs and a DELETE in one
//! batch. It stands still until that is acknowledged. It keeps its age, its attempts, and its hold, and is due at
//! once: what the hosts before said is no word of those that come now.
//!
//! What an operator ordered goes before routes: mail of a destination that is held or rerouted stays. One that is
//! being delivered is looked at again until it has left or failed.

use std::iter;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use vere_queue::order::FOREVER;
use vere_queue::{Destination, Envelope, Standing};
use vere_settings::{NextHop, RoutePattern, Settings};
use vere_spool::owner::Batch;
use vere_spoolwire::{QueueId, RecordId, Refusal};
use vere_units::TraceId;

use super::records::Lines;
use super::state::{FETCH_BYTES, Gateway, Part};
use super::{clock, operate, recovery};
use crate::spool::link::SpoolError;

/// Messages looked at in one go.
const PAGE: usize = 500;
/// The pause before those are looked at again that could not be moved.
const AGAIN: Duration = Duration::from_secs(1);

/// Which domains go where.
type Ways<'a> = Vec<(&'a RoutePattern, &'a NextHop)>;

/// The ways that routes name, in their order.
fn ways(settings: &Settings) -> Ways<'_> {
    let routes = settings.routes.iter();
    routes
        .map(|route| (&route.domain, &route.next_hop))
        .collect()
}

/// Whether routes lead elsewhere than before.
pub(super) fn leads_elsewhere(before: &Settings, now: &Settings) -> bool {
    ways(before) != ways(now)
}

/// Moves what waits in the wrong queues, here and in adopted groups, and names in the log what has to stay.
/// `anew`: routes have changed, so that mail for one next hop may have others now.
pub(super) async fn follow_routes(gateway: Rc<Gateway>, anew: bool) {
    let mut waiting = Vec::new();
    let mut moved = 0;
    for one in gateway.with_adopted() {
        for queue in astray(&one, anew).await {
            waiting.extend(pass(&one, queue, &mut moved).await);
        }
    }
    tell(moved);
    operate::tell_unrouted(&gateway);
    while !waiting.is_empty() {
        tokio::time::sleep(AGAIN).await;
        let mut moved = 0;
        let mut left = Vec::new();
        for message in waiting {
            match message.follow().await {
                Came::Moved => moved += 1,
                Came::Stayed | Came::Closed => {}
                Came::Later => left.push(message),
            }
        }
        tell(moved);
        waiting = left;
    }
}

fn tell(moved: usize) {
    if moved > 0 {
        tracing::info!(
            messages = moved,
            "mail that waited moved to where its route leads now"
        );
    }
}

/// The queues whose mail may have to go elsewhere. Others go on meanwhile: there may be very many, and each is
/// asked of the directory.
async fn astray(gateway: &Gateway, anew: bool) -> Vec<u32> {
    let active = gateway.queues.borrow().active();
    let mut found = Vec::new();
    for numbers in active.chunks(PAGE) {
        let astray = numbers
            .iter()
            .filter(|number| is_astray(gateway, **number, anew));
        found.extend(astray);
        tokio::task::yield_now().await;
    }
    found
}

fn is_astray(gateway: &Gateway, number: u32, anew: bool) -> bool {
    let queues = gateway.queues.borrow();
    let Some(destination) = queues.destination(number) else {
        return false;
    };
    let order = queues.order(destination, clock::now());
    let ordered = order.held_until.is_some() || order.detour.is_some();
    let hop = anew && matches!(destination.place().0, Destination::Relay(_));
    let settings = gateway.settings();
    let leads = || gateway.router.leads_to(&settings, destination);
    !ordered && queues.fill(destination).0 > 0 && (hop || leads().is_err())
}

/// Goes through a queue once. Gives the messages to be looked at again.
async fn pass(gateway: &Rc<Gateway>, queue: u32, moved: &mut usize) -> Vec<Waiting> {
    let begun = clock::now();
    let mut later = Vec::new();
    let mut after = None;
    loop {
        let page: Vec<_> = {
            let queues = gateway.queues.borrow();
            queues.list_behind(queue, after.as_ref(), PAGE).collect()
        };
        let Some(last) = page.last() else {
            return later;
        };
        after = Some(*last);
        // What came since went by the routes of now.
        for message in page.iter().filter(|one| one.accepted <= begun) {
            let waiting = Waiting {
                gateway: Rc::clone(gateway),
                queue,
                record: message.record,
                trace: message.trace,
            };
            match waiting.follow().await {
                Came::Moved => *moved += 1,
                Came::Stayed => {}
                Came::Later => later.push(waiting),
                Came::Closed => return Vec::new(),
            }
        }
        if last.accepted > begun {
            return later;
        }
    }
}

/// What came of looking at a message.
enum Came {
    /// It waits elsewhere.
    Moved,
    /// It is where new mail would go, has left, or has no way that is known.
    Stayed,
    /// It is being delivered, or the spool cannot change it now.
    Later,
    /// The gateway ends, or has handed the group back.
    Closed,
}

/// A message in its queue.
struct Waiting {
    gateway: Rc<Gateway>,
    queue: u32,
    record: u64,
    trace: TraceId,
}

impl Waiting {
    async fn follow(&self) -> Came {
        // An operator does not hold or release it meanwhile.
        let _one_at_a_time = self.gateway.ordering.lock().await;
        let (queue, record, trace) = (self.queue, self.record, self.trace);
        let found = self.gateway.queues.borrow().message(queue, record, trace);
        let Some(before) = found else {
            return Came::Stayed;
        };
        if before.standing == Standing::InFlight {
            return Came::Later;
        }
        let (envelope, body) = match self.read().await {
            Ok(Some(found)) => found,
            Ok(None) => return Came::Stayed,
            Err(error) => return self.failed(error),
        };
        let Some(parts) = self.parts(&envelope, &body) else {
            return Came::Stayed;
        };
        let stands = |until| {
            let mut queues = self.gateway.queues.borrow_mut();
            queues.hold_message(queue, record, trace, until)
        };
        if !stands(FOREVER) {
            return Came::Later;
        }
        match self.change(parts).await {
            Ok(()) => {
                let mut queues = self.gateway.queues.borrow_mut();
                queues.discard(queue, record, trace);
                drop(queues);
                self.gateway.changed.notify_one();
                Came::Moved
            }
            Err(error) => {
                let goes_on = before.held_until.is_none_or(|until| !stands(until));
                if goes_on {
                    let mut queues = self.gateway.queues.borrow_mut();
                    queues.release_message(queue, record, trace, clock::now());
                }
                self.gateway.changed.notify_one();
                self.failed(error)
            }
        }
    }

    fn failed(&self, error: SpoolError) -> Came {
        match error {
            SpoolError::Closed => Came::Closed,
            // Another owner has ended it; whoever delivers next sees that.
            SpoolError::Refused(Refusal::NoRecord) => Came::Stayed,
            _ => {
                tracing::warn!(
                    queue_id = %self.trace,
                    %error,
                    "cannot move a message to its new route yet"
                );
                Came::Later
            }
        }
    }

    /// Its record; none when it is gone, or this version cannot read it.
    async fn read(&self) -> Result<Option<(Envelope, Bytes)>, SpoolError> {
        let (queue, record) = (QueueId(self.queue), RecordId(self.record));
        let link = &self.gateway.link;
        let block = link.fetch(queue, record, 1, FETCH_BYTES).await?;
        let mut records = recovery::readable(block.records);
        let found = records.find(|(id, ..)| *id == record.0);
        Ok(found.map(|(_, envelope, body)| (envelope, body)))
    }

    /// The records it is to be; none when it stays.
    fn parts(&self, envelope: &Envelope, body: &Bytes) -> Option<Vec<Part>> {
        let base = Envelope {
            not_before: None,
            ..envelope.clone()
        };
        let gateway = &self.gateway;
        let parts = gateway.router.again(&gateway.settings(), &base, body)?;
        let queues = gateway.queues.borrow();
        let here = queues.destination(self.queue)?;
        let elsewhere = parts.iter().any(|part| part.destination != *here);
        elsewhere.then_some(parts)
    }

    async fn change(&self, mut parts: Vec<Part>) -> Result<(), SpoolError> {
        match parts.pop() {
            Some(whole) if parts.is_empty() => self.move_to(whole).await,
            last => {
                let mut end = Batch::new();
                end.delete(QueueId(self.queue), RecordId(self.record));
                parts.extend(last);
                self.gateway.store(end, parts, &Lines::new()).await
            }
        }
    }

    /// Moves the whole message to another queue.
    async fn move_to(&self, part: Part) -> Result<(), SpoolError> {
        let gateway = &self.gateway;
        let to = || iter::once(&part.destination);
        let known = gateway.queues.borrow().number(&part.destination).is_some();
        let expected = match known {
            true => gateway.expect(to())?,
            false => gateway.expect_made(to()).await?,
        };
        for number in expected.numbers() {
            let mut batch = Batch::new();
            let envelope = Bytes::from(part.envelope.encode());
            let (queue, record) = (QueueId(self.queue), RecordId(self.record));
            batch.move_to(queue, record, QueueId(number), Some(envelope));
            let committed = gateway.link.commit(batch).await?;
            gateway.note_queued(&part.destination, &part.envelope);
            let mut queues = gateway.queues.borrow_mut();
            for RecordId(record) in committed.ids {
                queues.admit(number, record, part.envelope.clone(), None, clock::now());
            }
        }
        Ok(())
    }
}
