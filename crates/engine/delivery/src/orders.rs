//! What operators order for destinations, stored in a queue of the group's own: the orders outlast a restart and
//! apply for a gateway that takes the group over.

use std::time::Duration;

use bytes::Bytes;
use vere_queue::ledger::OrderNotice;
use vere_queue::order::{FOREVER, ORDERS_QUEUE};
use vere_queue::{Destination, Detour, Order, Place};
use vere_spoolwire::{Batch, QueueId, Record, RecordId, SpoolError};

use crate::group::Group;
use crate::host::Host;
use crate::lines;

/// A change of what holds for a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Its messages wait.
    Hold,
    /// Ends that.
    Release,
    /// New mail for it is refused.
    Refuse,
    /// Ends that.
    Accept,
    /// Its messages go there.
    Reroute(Place),
    /// Its messages go their own way again.
    Restore,
}

/// Why an order is not known to be kept.
#[derive(Debug, thiserror::Error)]
pub enum Unkept {
    /// The order is not kept.
    #[error("nothing changed: {0}")]
    Unchanged(SpoolError),
    /// The order was not stored: an earlier order is still being stored.
    #[error(
        "nothing changed: the spool does not answer, and an order before this one waits for it"
    )]
    NotBegun,
    /// The spool does not answer yet.
    #[error(
        "the spool does not answer: it is done as soon as it does, unless the gateway ends before"
    )]
    Unanswered,
    /// The spool received the order, and the outcome is unknown.
    #[error("it may be done or not ({0}); look again, once the gateway has read its queues")]
    Unknown(SpoolError),
}

impl From<SpoolError> for Unkept {
    fn from(error: SpoolError) -> Self {
        Self::Unchanged(error)
    }
}

impl<H: Host> Group<H> {
    /// Changes the order for a destination, first in the spool; without `span`, until an operator takes the order
    /// back. Returns the order in effect. Each change builds on the one before: only one may run at a time.
    ///
    /// # Errors
    /// When the spool did not confirm the change, which then takes effect later or never.
    pub async fn order(
        &self,
        destination: Destination,
        change: &Change,
        span: Option<Duration>,
    ) -> Result<Order, SpoolError> {
        let queue = self.orders_queue().await?;
        let now = self.host.now();
        let (mut order, before) = self.queues.look(|queues| {
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
            batch.delete(queue, before);
        }
        if !order.is_none() {
            batch.put(queue, order.encode().into(), Bytes::new());
        }
        let mut kept = RecordId(0);
        if !batch.is_empty() {
            let told = self.order_lines(&order, notice(change));
            lines::put(&told, &mut batch);
            let committed = self.host.commit(batch).await?;
            self.lines_stored(&told);
            let first = committed.ids.first().copied();
            kept = first.filter(|_| !order.is_none()).unwrap_or(kept);
        }
        self.queues
            .change(|queues| queues.set_order(order.clone(), kept, now));
        Ok(order)
    }

    async fn orders_queue(&self) -> Result<QueueId, SpoolError> {
        if let Some(queue) = self.orders_queue.get() {
            return Ok(queue);
        }
        let queue = self.create_queue(ORDERS_QUEUE).await?;
        self.orders_queue.set(Some(queue));
        Ok(queue)
    }

    /// Takes an order back from its record after a restart or takeover. Removes an order whose time is over.
    pub(crate) fn recover_order(&self, queue: QueueId, record: &Record) {
        self.orders_queue.set(Some(queue));
        let now = self.host.now();
        match Order::decode(&record.meta) {
            Ok(order) if order.clone().at(now).is_none() => {
                let mut batch = Batch::new();
                batch.delete(queue, record.id);
                // A record that cannot be deleted now is found again at the next start.
                let _ = self.host.post(batch);
            }
            Ok(order) => self
                .queues
                .change(|queues| queues.set_order(order, record.id, now)),
            Err(error) => tracing::error!(record = record.id.0, %error, "order left alone"),
        }
    }
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
