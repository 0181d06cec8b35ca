//! What operators order for destinations, kept in a queue of the group of its own: it holds after a
//! restart, and for a gateway that takes the group over.

use std::time::Duration;

use vere_queue::ledger::OrderNotice;
use vere_queue::order::{FOREVER, ORDERS_QUEUE};
use vere_queue::{Destination, Detour, Order};
use vere_spool::owner::{Batch, Record};
use vere_spoolwire::{QueueId, QueueLimits, RecordId};
use vere_units::Timestamp;

use super::state::Gateway;
use super::{clock, records};
use crate::spool::link::SpoolError;

/// What changes for a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Hold,
    Release,
    Refuse,
    Accept,
    /// Its messages go there.
    Reroute(Destination),
    /// They go their own way again.
    Restore,
}

/// Changes what is ordered for a destination, first in the spool. Gives what holds from now on.
///
/// # Errors
/// When the spool cannot keep it; then nothing changes.
pub(super) async fn change(
    gateway: &Gateway,
    destination: Destination,
    change: &Change,
    span: Option<Duration>,
) -> Result<Order, SpoolError> {
    // One at a time: each replaces the record of the one before.
    let _one_at_a_time = gateway.ordering.lock().await;
    let queue = queue(gateway).await?;
    let now = clock::now();
    let (mut order, before) = {
        let queues = gateway.queues.borrow();
        (
            queues.order(&destination, now),
            queues.order_record(&destination),
        )
    };
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
        let lines = gateway.order_lines(&order, notice(change));
        records::put(&lines, &mut batch);
        let committed = gateway.link.commit(batch).await?;
        gateway.lines_stored(&lines);
        let first = committed.ids.first().copied();
        kept = first.filter(|_| !order.is_none()).unwrap_or(kept);
    }
    gateway
        .queues
        .borrow_mut()
        .set_order(order.clone(), kept.0, now);
    gateway.changed.notify_one();
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

/// A time, or that there is none.
pub(super) fn until_text(until: Timestamp) -> String {
    if until == FOREVER {
        "taken back".to_owned()
    } else {
        until.to_string()
    }
}

async fn queue(gateway: &Gateway) -> Result<QueueId, SpoolError> {
    if let Some(queue) = gateway.orders_queue.get() {
        return Ok(queue);
    }
    let queue = gateway
        .link
        .create_queue(ORDERS_QUEUE, QueueLimits::UNLIMITED)
        .await?;
    gateway.orders_queue.set(Some(queue));
    Ok(queue)
}

/// Takes a record back after a restart or a takeover. One that has ended goes.
pub(super) fn recover(gateway: &Gateway, queue: QueueId, record: &Record) {
    gateway.orders_queue.set(Some(queue));
    let now = clock::now();
    match Order::decode(&record.meta) {
        Ok(order) if order.clone().at(now).is_none() => {
            let mut batch = Batch::new();
            batch.delete(queue, record.id);
            // If it cannot be asked now, it is found again at the next start.
            let _ = gateway.link.post(batch);
        }
        Ok(order) => gateway
            .queues
            .borrow_mut()
            .set_order(order, record.id.0, now),
        Err(error) => tracing::error!(record = record.id.0, %error, "order left alone"),
    }
}
