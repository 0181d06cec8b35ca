//! Carries out what the queue engine decides: starts and wakes the workers that deliver.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use vere_queue::{Destination, Next, Place, Supplied, Wanted};
use vere_settings::LocalDelivery;
use vere_spoolwire::{QueueId, RecordId};
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use super::group::Group;
use super::worker::Worker;
use super::{clock, local, reading, relay};

/// How long a queue waits before it asks for records again that the spool could not give.
const FETCH_RETRY: Duration = Duration::from_millis(500);

/// How long a step of the wall clock may stay unnoticed while nothing else is to be done.
const CLOCK_PAUSE: Duration = Duration::from_secs(1);

/// Runs until the gateway stops.
pub(super) async fn run(group: Rc<Group>) {
    loop {
        if group.delivering() {
            dispatch(&group);
        }
        let wake_at = group.queues.look(|queues| queues.wake_at());
        let wake_at = wake_at.filter(|_| group.delivering());
        let timer = async {
            match wake_at {
                Some(time) => tokio::time::sleep(clock::until(time)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = group.queues.woken() => {}
            () = timer => {}
            // A clock that was put back makes what is due seem far away.
            () = tokio::time::sleep(CLOCK_PAUSE) => {
                group.queue_time();
            }
        }
    }
}

fn dispatch(group: &Rc<Group>) {
    loop {
        let now = group.queue_time();
        let next = group.queues.change_quietly(|queues| queues.poll(now));
        match next {
            Some(Next::Wake(queue) | Next::Release(queue)) => group.waker(queue).notify_one(),
            Some(Next::Open(queue)) => {
                spawn_local(work(Rc::clone(group), queue));
            }
            Some(Next::Fetch(wanted)) => {
                spawn_local(fetch(Rc::clone(group), wanted));
            }
            None => break,
        }
    }
}

/// Brings the records back whose turn comes next.
async fn fetch(group: Rc<Group>, wanted: Wanted) {
    let Wanted {
        queue,
        from,
        records,
        octets,
        ..
    } = wanted;
    let (queue, from) = (QueueId(queue), RecordId(from));
    match group.link.fetch(queue, from, records, octets).await {
        Ok(block) => {
            let known = reading::readable(block.records);
            let supplied = group.queues.change(|queues| queues.supply(&wanted, known));
            if let Supplied::Lost(trace) = supplied {
                note_lost(&group, trace, queue);
            }
        }
        Err(error) => {
            tracing::warn!(?error, "cannot fetch the messages of a queue");
            let again = clock::now() + FETCH_RETRY;
            group
                .queues
                .change(|queues| queues.fetch_failed(&wanted, again));
        }
    }
}

/// A message that was known is not in the spool.
pub(super) fn note_lost(group: &Group, trace: TraceId, queue: QueueId) {
    tracing::error!(
        queue_id = %trace,
        "record is not in the spool: an operator or another owner has ended it"
    );
    group.process.metrics.record_lost();
    let name = group.queues.name(queue.0);
    group.process.note(&Event {
        queue: name.as_deref(),
        ..Event::new(EventKind::Lost, trace, clock::now())
    });
}

/// Whether mail for own accounts goes into Maildirs, and not to the mail store.
fn files_itself(group: &Group) -> bool {
    group.process.settings().delivery.local == LocalDelivery::Maildir
}

/// Runs one worker of one queue until the queue has been empty for a while or the destination fails.
async fn work(group: Rc<Group>, queue: u32) {
    let destination = group.queues.destination(queue);
    let mut worker = Worker::new(Rc::clone(&group), queue);
    match destination {
        Some(Destination {
            place: Place::Local,
            ..
        }) if files_itself(&group) => local::work(&group, &mut worker).await,
        Some(destination) => relay::work(&group, &mut worker, &destination).await,
        None => {}
    }
}
