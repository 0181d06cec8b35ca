//! What operators order for destinations, kept in a queue of the group of its own: it holds after a
//! restart, and for a gateway that takes the group over.

use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_local;
use vere_queue::ledger::OrderNotice;
use vere_queue::order::{FOREVER, ORDERS_QUEUE};
use vere_queue::{Destination, Detour, Order, Place};
use vere_spool::owner::{Batch, Record};
use vere_spoolwire::{QueueId, QueueLimits, RecordId};
use vere_units::Timestamp;

use super::group::Group;
use super::{clock, event_lines};
use vere_link::link::SpoolError;

/// How long somebody waits for the spool to keep an order.
const PATIENCE: Duration = Duration::from_secs(10);

/// What changes for a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Hold,
    Release,
    Refuse,
    Accept,
    /// Its messages go there.
    Reroute(Place),
    /// They go their own way again.
    Restore,
}

/// Why it is not known that an order is kept.
#[derive(Debug)]
pub(super) enum Unkept {
    /// It is not.
    Unchanged(SpoolError),
    /// The command was not stored: an earlier command is still being stored.
    NotBegun,
    /// The spool does not answer yet.
    Unanswered,
    /// The spool received the command, and the outcome is unknown.
    Unknown(SpoolError),
}

impl From<SpoolError> for Unkept {
    fn from(error: SpoolError) -> Self {
        Self::Unchanged(error)
    }
}

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unchanged(error) => write!(f, "nothing changed: {error}"),
            Self::NotBegun => f.write_str(
                "nothing changed: the spool does not answer, and an order before this one waits for it",
            ),
            Self::Unanswered => f.write_str(
                "the spool does not answer: it is done as soon as it does, unless the gateway ends before",
            ),
            Self::Unknown(error) => write!(
                f,
                "it may be done or not ({error}); look again, once the gateway has read its queues"
            ),
        }
    }
}

impl Group {
    /// Runs one change of queue commands at a time, since each change builds on its predecessor. The change continues
    /// if the caller gives up or the spool's answer comes late.
    ///
    /// # Errors
    /// [`Unkept::NotBegun`], [`Unkept::Unanswered`], each after some seconds.
    pub(super) async fn in_turn<T: 'static>(
        &self,
        change: impl Future<Output = T> + 'static,
    ) -> Result<T, Unkept> {
        let turn = Arc::clone(&self.ordering).lock_owned();
        let turn = tokio::time::timeout(PATIENCE, turn).await;
        let turn = turn.map_err(|_| Unkept::NotBegun)?;
        let done = spawn_local(async move {
            let _turn = turn;
            change.await
        });
        match tokio::time::timeout(PATIENCE, done).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) | Err(_) => Err(Unkept::Unanswered),
        }
    }
}

/// Changes the queue commands of a destination, first in the spool. Returns the commands in effect.
///
/// # Errors
/// When the spool did not confirm the change, which then takes effect later or never.
pub(super) async fn change(
    group: &Rc<Group>,
    destination: Destination,
    change: &Change,
    span: Option<Duration>,
) -> Result<Order, Unkept> {
    let (one, change) = (Rc::clone(group), change.clone());
    let kept = async move { keep(&one, destination, &change, span).await };
    Ok(group.in_turn(kept).await??)
}

async fn keep(
    group: &Group,
    destination: Destination,
    change: &Change,
    span: Option<Duration>,
) -> Result<Order, SpoolError> {
    let queue = queue(group).await?;
    let now = clock::now();
    let (mut order, before) = group.queues.look(|queues| {
        let order = queues.order(&destination, now);
        (order, queues.order_record(&destination))
    });
    let until = span.map_or(FOREVER, |span| now + span);
    match change {
        Change::Hold => order.held_until = Some(until),
        Change::Release => order.held_until = None,
        Change::Refuse => order.refused_until = Some(until),
        Change::Accept => order.refused_until = None,
        Change::Reroute(to) => {
            let to = to.clone();
            order.detour = Some(Detour { to, until });
        }
        Change::Restore => order.detour = None,
    }
    let mut batch = Batch::new();
    if let Some(before) = before {
        batch.delete(queue, RecordId(before));
    }
    if !order.is_none() {
        batch.put(queue, order.encode().into(), bytes::Bytes::new());
    }
    let mut kept = RecordId(0);
    if !batch.is_empty() {
        let lines = group.order_lines(&order, notice(change));
        event_lines::put(&lines, &mut batch);
        let committed = group.link.commit(batch).await?;
        group.lines_stored(&lines);
        let first = committed.ids.first().copied();
        kept = first.filter(|_| !order.is_none()).unwrap_or(kept);
    }
    group
        .queues
        .change(|queues| queues.set_order(order.clone(), kept.0, now));
    Ok(order)
}

const fn notice(change: &Change) -> OrderNotice {
    match change {
        Change::Hold => OrderNotice::Held,
        Change::Release => OrderNotice::Released,
        Change::Refuse => OrderNotice::Refused,
        Change::Accept => OrderNotice::Accepted,
        Change::Reroute(_) => OrderNotice::Rerouted,
        Change::Restore => OrderNotice::Restored,
    }
}

/// Formats the end of a queue command; [`FOREVER`] means until an operator reverts the command.
pub(super) fn until_text(until: Timestamp) -> String {
    if until == FOREVER {
        "taken back".to_owned()
    } else {
        until.to_string()
    }
}

async fn queue(group: &Group) -> Result<QueueId, SpoolError> {
    if let Some(queue) = group.orders_queue.get() {
        return Ok(queue);
    }
    let queue = group
        .link
        .create_queue(ORDERS_QUEUE, QueueLimits::UNLIMITED)
        .await?;
    group.orders_queue.set(Some(queue));
    Ok(queue)
}

/// Restores a command from its record after a restart or takeover. Removes an expired command.
pub(super) fn recover(group: &Group, queue: QueueId, record: &Record) {
    group.orders_queue.set(Some(queue));
    let now = clock::now();
    match Order::decode(&record.meta) {
        Ok(order) if order.clone().at(now).is_none() => {
            let mut batch = Batch::new();
            batch.delete(queue, record.id);
            // If it cannot be asked now, it is found again at the next start.
            let _ = group.link.post(batch);
        }
        Ok(order) => group
            .queues
            .change(|queues| queues.set_order(order, record.id.0, now)),
        Err(error) => tracing::error!(record = record.id.0, %error, "order left alone"),
    }
}
