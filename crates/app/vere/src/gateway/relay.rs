//! Delivers to other hosts by SMTP or LMTP: finds them, connects, and sends message after message over
//! the same connection.

mod hosts;
mod session;

use std::rc::Rc;
use std::time::{Duration, Instant};

use vere_queue::{Attempt, Destination, Disposition, Queues, RecipientResult};

use self::hosts::{Hosts, Unroutable};
use self::session::{RelaySession, SessionEnd};
use super::clock;
use super::state::Gateway;

/// How long a connection without messages is kept for the next one.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// Expired messages taken out of a paused queue at once.
const EXPIRED_MAX: usize = 1_000;

/// One worker: connects and delivers until the queue is empty for a while or the destination fails.
pub(super) async fn work(gateway: &Rc<Gateway>, queue: u32, destination: &Destination) {
    let hosts = match hosts::find(gateway, destination).await {
        Ok(hosts) => hosts,
        Err(Unroutable::Temporary(reply)) => {
            return unreachable(gateway, queue, destination, &reply);
        }
        Err(Unroutable::Permanent { status, reply }) => {
            return undeliverable(gateway, queue, destination, status, &reply);
        }
    };
    loop {
        match connect(gateway, &hosts).await {
            Ok(mut session) => {
                gateway.queues.borrow_mut().destination_reached(queue);
                if !deliver(gateway, queue, &mut session).await {
                    return;
                }
            }
            Err(reply) => return unreachable(gateway, queue, destination, &reply),
        }
    }
}

/// A connection to the first host that takes one; the last complaint when none does.
async fn connect(gateway: &Rc<Gateway>, hosts: &Hosts) -> Result<RelaySession, String> {
    let mut complaint = "no host to connect to".to_owned();
    for host in hosts.in_order() {
        match RelaySession::open(gateway, hosts, host).await {
            Ok(session) => return Ok(session),
            Err(reply) => {
                tracing::debug!(remote = %host.name, %reply, "host does not take mail");
                complaint = format!("{}: {reply}", host.name);
            }
        }
    }
    Err(complaint)
}

/// Sends what the queue gives. True: the connection is used up and another one is wanted.
async fn deliver(gateway: &Rc<Gateway>, queue: u32, session: &mut RelaySession) -> bool {
    let limit = gateway.settings().delivery.messages_per_connection_max;
    let mut sent = 0;
    loop {
        let Some(job) = gateway.take(queue) else {
            if idle(gateway, queue, session).await {
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
        match session.send(&job.envelope, body).await {
            Ok(attempt) => {
                gateway.metrics.transaction(begun.elapsed());
                gateway.settle(queue, &job, &attempt);
            }
            // The server closed a connection that was kept: the message was not tried.
            Err(SessionEnd::BeforeMessage) => {
                gateway.queues.borrow_mut().give_back(queue, job.record);
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
async fn idle(gateway: &Rc<Gateway>, queue: u32, session: &mut RelaySession) -> bool {
    let waker = gateway.waker(queue);
    gateway.queues.borrow_mut().worker_idle(queue);
    gateway.changed.notify_one();
    tokio::select! {
        biased;
        () = waker.notified() => return true,
        () = session.closed() => {}
        () = tokio::time::sleep(IDLE_MAX) => {}
    }
    gateway.queues.borrow_mut().worker_resumed(queue);
    false
}

/// Pauses the destination. The message at the head has been tried by that and shows it; the others wait
/// untouched, but for those whose time is over.
fn unreachable(gateway: &Rc<Gateway>, queue: u32, destination: &Destination, reply: &str) {
    let now = clock::now();
    let remote = destination.to_string();
    let head = gateway.take(queue);
    gateway
        .queues
        .borrow_mut()
        .destination_failed(queue, reply, now);
    let expired = gateway
        .queues
        .borrow_mut()
        .take_expired(queue, EXPIRED_MAX, now);
    for job in head.into_iter().chain(expired) {
        let attempt = Queues::unreachable_attempt(&job.envelope, &remote, reply);
        gateway.settle(queue, &job, &attempt);
    }
}

/// Fails everything that is ready: the destination says that it never takes mail.
fn undeliverable(
    gateway: &Rc<Gateway>,
    queue: u32,
    destination: &Destination,
    status: &str,
    reply: &str,
) {
    while let Some(job) = gateway.take(queue) {
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
        gateway.settle(queue, &job, &attempt);
    }
}
