//! Carries out what the queue engine decides: starts and wakes the workers that deliver.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use vere_queue::{Destination, Next, Supplied, Wanted};
use vere_settings::LocalDelivery;
use vere_spoolwire::{QueueId, RecordId};
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use super::state::Gateway;
use super::worker::Worker;
use super::{clock, local, reading, relay};

/// How long a queue waits before it asks for records again that the spool could not give.
const FETCH_RETRY: Duration = Duration::from_millis(500);

/// How long a step of the wall clock may stay unnoticed while nothing else is to be done.
const CLOCK_PAUSE: Duration = Duration::from_secs(1);

/// Runs until the gateway stops.
pub(super) async fn run(gateway: Rc<Gateway>) {
    loop {
        if gateway.delivering() {
            dispatch(&gateway);
        }
        let wake_at = gateway
            .queues
            .borrow()
            .wake_at()
            .filter(|_| gateway.delivering());
        let timer = async {
            match wake_at {
                Some(time) => tokio::time::sleep(clock::until(time)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = gateway.changed.notified() => {}
            () = timer => {}
            // A clock that was put back makes what is due seem far away.
            () = tokio::time::sleep(CLOCK_PAUSE) => {
                gateway.queue_time();
            }
        }
    }
}

fn dispatch(gateway: &Rc<Gateway>) {
    loop {
        let now = gateway.queue_time();
        let next = gateway.queues.borrow_mut().poll(now);
        match next {
            Some(Next::Wake(queue) | Next::Release(queue)) => gateway.waker(queue).notify_one(),
            Some(Next::Open(queue)) => {
                spawn_local(work(Rc::clone(gateway), queue));
            }
            Some(Next::Fetch(wanted)) => {
                spawn_local(fetch(Rc::clone(gateway), wanted));
            }
            None => break,
        }
    }
}

/// Brings the records back whose turn comes next.
async fn fetch(gateway: Rc<Gateway>, wanted: Wanted) {
    let Wanted {
        queue,
        from,
        records,
        octets,
        ..
    } = wanted;
    let (queue, from) = (QueueId(queue), RecordId(from));
    match gateway.link.fetch(queue, from, records, octets).await {
        Ok(block) => {
            let known = reading::readable(block.records);
            let supplied = gateway.queues.borrow_mut().supply(&wanted, known);
            if let Supplied::Lost(trace) = supplied {
                note_lost(&gateway, trace, queue);
            }
        }
        Err(error) => {
            tracing::warn!(?error, "cannot fetch the messages of a queue");
            let again = clock::now() + FETCH_RETRY;
            gateway.queues.borrow_mut().fetch_failed(&wanted, again);
        }
    }
    gateway.changed.notify_one();
}

/// A message that was known is not in the spool.
pub(super) fn note_lost(gateway: &Gateway, trace: TraceId, queue: QueueId) {
    tracing::error!(
        queue_id = %trace,
        "record is not in the spool: an operator or another owner has ended it"
    );
    gateway.metrics.record_lost();
    let queues = gateway.queues.borrow();
    let name = queues.destination(queue.0).map(ToString::to_string);
    gateway.note(&Event {
        queue: name.as_deref(),
        ..Event::new(EventKind::Lost, trace, clock::now())
    });
}

/// Whether mail for own accounts goes into Maildirs, and not to the mail store.
fn files_itself(gateway: &Gateway) -> bool {
    gateway.settings().delivery.local == LocalDelivery::Maildir
}

/// Runs one worker of one queue until the queue has been empty for a while or the destination fails.
async fn work(gateway: Rc<Gateway>, queue: u32) {
    let destination = gateway.queues.borrow().destination(queue).cloned();
    let mut worker = Worker::new(Rc::clone(&gateway), queue);
    match destination {
        Some(Destination::Local) if files_itself(&gateway) => {
            local::work(&gateway, &mut worker).await
        }
        Some(destination) => relay::work(&gateway, &mut worker, &destination).await,
        None => {}
    }
}
