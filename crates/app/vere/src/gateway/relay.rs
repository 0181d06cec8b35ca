//! Delivers to other hosts by SMTP or LMTP: finds them, connects, and sends message after message over
//! the same connection.

mod session;

use std::rc::Rc;
use std::time::{Duration, Instant};

use vere_queue::{Attempt, Destination, Disposition, Job, Queues, RecipientResult};

use self::session::{RelaySession, SessionEnd};
use super::outbound::Unroutable;
use super::scheduler::Worker;
use super::state::Gateway;
use super::{clock, sweep};

/// How long a connection without messages is kept for the next one.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// One worker: connects and delivers until the queue is empty for a while or the destination fails.
pub(super) async fn work(gateway: &Rc<Gateway>, worker: &mut Worker, destination: &Destination) {
    let queue = worker.queue;
    let hosts = match gateway.outbound.find(destination).await {
        Ok(hosts) => hosts,
        Err(Unroutable::Temporary(reply)) => {
            return unreachable(gateway, worker, destination, &reply).await;
        }
        Err(Unroutable::Permanent { status, reply }) => {
            return undeliverable(gateway, worker, destination, status, &reply);
        }
    };
    loop {
        match RelaySession::open(gateway, &hosts).await {
            Ok(mut session) => {
                gateway.queues.borrow_mut().destination_reached(queue);
                if !deliver(gateway, worker, &mut session).await {
                    return;
                }
            }
            Err(Unroutable::Temporary(reply)) => {
                return unreachable(gateway, worker, destination, &reply).await;
            }
            Err(Unroutable::Permanent { status, reply }) => {
                return undeliverable(gateway, worker, destination, status, &reply);
            }
        }
    }
}

/// Sends what the queue gives. True: the connection is used up and another one is wanted.
async fn deliver(gateway: &Rc<Gateway>, worker: &mut Worker, session: &mut RelaySession) -> bool {
    let queue = worker.queue;
    let limit = gateway.settings().delivery.messages_per_connection_max;
    let mut sent = 0;
    loop {
        let Some(job) = worker.take() else {
            if idle(gateway, worker, session).await {
                continue;
            }
            session.quit().await;
            return false;
        };
        let Some(body) = gateway.body(queue, &job).await else {
            session.quit().await;
            return false;
        };
        let begun = Instant::now();
        match session.send(gateway, &job.envelope, body).await {
            Ok(attempt) => {
                gateway.metrics.transaction(begun.elapsed());
                gateway.settle(queue, &job, &attempt);
            }
            // The server closed a connection that was kept: the message was not tried.
            Err(SessionEnd::BeforeMessage) => {
                gateway.queues.borrow_mut().give_back(queue, &job);
                return true;
            }
        }
        sent += 1;
        if !session.usable() {
            return true;
        }
        if sent >= limit {
            session.quit().await;
            return true;
        }
    }
}

/// Keeps the connection for the next message. False: none came, or the server closed it.
async fn idle(gateway: &Rc<Gateway>, worker: &mut Worker, session: &mut RelaySession) -> bool {
    let queue = worker.queue;
    let waker = gateway.waker(queue);
    gateway.queues.borrow_mut().worker_idle(queue);
    gateway.changed.notify_one();
    tokio::select! {
        biased;
        () = waker.notified() => {
            worker.woken();
            return true;
        }
        () = session.closed() => {}
        () = tokio::time::sleep(IDLE_MAX) => {}
    }
    gateway.queues.borrow_mut().worker_resumed(queue);
    false
}

/// Pauses the destination. The message at the head has been tried by that and shows it; the others wait
/// untouched, but for those whose time is over.
async fn unreachable(
    gateway: &Rc<Gateway>,
    worker: &mut Worker,
    destination: &Destination,
    reply: &str,
) {
    let queue = worker.queue;
    let remote = destination.to_string();
    let head = worker.take();
    gateway
        .queues
        .borrow_mut()
        .destination_failed(queue, reply, clock::now());
    let settle = |job: &Job| {
        let attempt = Queues::unreachable_attempt(&job.envelope, &remote, reply);
        gateway.settle(queue, job, &attempt);
    };
    head.iter().for_each(settle);
    sweep::expired(gateway, queue, settle).await;
}

/// Fails everything that is ready: the destination says that it never takes mail.
fn undeliverable(
    gateway: &Rc<Gateway>,
    worker: &mut Worker,
    destination: &Destination,
    status: &str,
    reply: &str,
) {
    while let Some(job) = worker.take() {
        let result = RecipientResult {
            disposition: Disposition::Failed,
            status: status.to_owned(),
            reply: reply.to_owned(),
            from_remote: false,
        };
        let attempt = Attempt {
            remote: destination.to_string(),
            reports_taken_over: false,
            results: vec![result; job.envelope.recipients.len()],
        };
        gateway.settle(worker.queue, &job, &attempt);
    }
}
