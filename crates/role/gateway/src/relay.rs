//! Delivers to other hosts by SMTP or LMTP: finds them, connects, and sends message after message over
//! the same connection.

mod session;

use std::rc::Rc;
use std::time::{Duration, Instant};

use vere_queue::{Answered, Attempt, Destination, Disposition, Job, Queues, RecipientResult, Sign};

use self::session::{RelaySession, SessionEnd};
use super::group::Group;
use super::worker::Worker;
use super::{behind, clock};
use vere_outbound::Unroutable;

/// Messages failed for one answer that a destination takes no mail.
const FAILED_AT_ONCE: usize = 100;
/// How long a connection without messages is kept for the next one.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// One worker: connects and delivers until the queue is empty for a while or the destination fails.
pub(super) async fn work(group: &Rc<Group>, worker: &mut Worker, destination: &Destination) {
    let queue = worker.queue;
    let Some(way) = group.queues.look(|queues| queues.way(queue, clock::now())) else {
        return;
    };
    let hosts = match group.process.outbound.find(&way).await {
        Ok(hosts) => hosts,
        Err(none) => return fail_by(group, worker, destination, &way, none).await,
    };
    // An operator may have rerouted the queue during the look-up of the hosts.
    let joined = group.goes_by(queue, &way)
        && group
            .queues
            .change_quietly(|queues| queues.join_site(queue, &hosts.site, clock::now()));
    if !joined {
        return;
    }
    loop {
        match RelaySession::open(&group.process, &hosts).await {
            Ok(mut session) => {
                worker.connected();
                let more = deliver(group, worker, &mut session, &way).await;
                worker.disconnected();
                if !more || !group.goes_by(queue, &way) {
                    return;
                }
                if !group
                    .queues
                    .change_quietly(|queues| queues.may_reopen(queue, clock::now()))
                {
                    return;
                }
            }
            Err(none) => return fail_by(group, worker, destination, &way, none).await,
        }
    }
}

/// Records that no connection to `way` could be opened. Does nothing if the queue was rerouted meanwhile. An operator
/// may have mistyped a reroute, so a permanent failure there counts as temporary and returns no message.
async fn fail_by(
    group: &Rc<Group>,
    worker: &mut Worker,
    destination: &Destination,
    way: &Destination,
    none: Unroutable,
) {
    if !group.goes_by(worker.queue, way) {
        return;
    }
    let none = match none {
        Unroutable::Permanent { reply, .. } if way != destination => Unroutable::Temporary(reply),
        none => none,
    };
    fail(group, worker, destination, none).await;
}

/// Sends what the queue gives. True: the connection is used up and another one is wanted.
async fn deliver(
    group: &Rc<Group>,
    worker: &mut Worker,
    session: &mut RelaySession,
    way: &Destination,
) -> bool {
    let queue = worker.queue;
    let mut sent = 0;
    loop {
        if !group.goes_by(queue, way) {
            session.quit().await;
            return false;
        }
        let Some(job) = worker.take() else {
            if idle(group, worker, session).await {
                continue;
            }
            session.quit().await;
            return false;
        };
        let Some(body) = group.body(queue, &job).await else {
            session.quit().await;
            return false;
        };
        let (began, begun) = (clock::now(), Instant::now());
        match session.send(&group.process, &job.envelope, body).await {
            Ok(attempt) => {
                group.process.metrics.transaction(begun.elapsed());
                group.settle(queue, &job, &attempt);
                let answered = Answered {
                    sign: Sign::of(&attempt),
                    began,
                    latency: begun.elapsed(),
                    closed: !session.usable(),
                };
                group
                    .queues
                    .change_quietly(|queues| queues.answered(queue, &answered, clock::now()));
            }
            // The server closed a connection that was kept: the message was not tried.
            Err(SessionEnd::BeforeMessage) => {
                group.give_back(queue, &job);
                return true;
            }
        }
        sent += 1;
        if !session.usable() {
            return true;
        }
        let limit = messages_max(group, queue);
        let stays = group
            .queues
            .look(|queues| queues.keeps_worker(queue, clock::now()));
        if sent >= limit || !stays {
            session.quit().await;
            return stays;
        }
    }
}

impl Group {
    /// Whether the messages of a queue go this way still.
    fn goes_by(&self, queue: u32, way: &Destination) -> bool {
        self.queues
            .look(|queues| queues.way(queue, clock::now()).as_ref() == Some(way))
    }
}

/// Messages over one connection.
fn messages_max(group: &Group, queue: u32) -> u32 {
    let own = group
        .queues
        .look(|queues| queues.messages_per_connection_max(queue));
    own.unwrap_or_else(|| {
        group
            .process
            .settings()
            .delivery
            .messages_per_connection_max
    })
}

/// Keeps the connection for the next message. False: none came, the server closed it, or others wait for one.
async fn idle(group: &Rc<Group>, worker: &mut Worker, session: &mut RelaySession) -> bool {
    let queue = worker.queue;
    let waker = group.waker(queue);
    if !group.queues.change(|queues| queues.worker_idle(queue)) {
        return false;
    }
    tokio::select! {
        biased;
        () = waker.notified() => {
            let released = group.queues.change_quietly(|queues| queues.worker_released(queue));
            if !released {
                worker.woken();
            }
            return !released;
        }
        () = session.closed() => {}
        () = tokio::time::sleep(IDLE_MAX) => {}
    }
    group
        .queues
        .change_quietly(|queues| queues.worker_resumed(queue));
    false
}

/// What it means that no connection came about.
async fn fail(group: &Rc<Group>, worker: &mut Worker, destination: &Destination, none: Unroutable) {
    let queue = worker.queue;
    match none {
        Unroutable::Permanent { status, reply } => {
            undeliverable(group, worker, destination, status, &reply).await;
        }
        Unroutable::Temporary(reply) => {
            let head = worker.take();
            group
                .queues
                .change_quietly(|queues| queues.destination_failed(queue, &reply, clock::now()));
            unreachable(group, queue, head, destination, &reply);
        }
        Unroutable::Site(reply) => {
            let now = clock::now();
            if group
                .queues
                .change_quietly(|queues| queues.refused_beside_others(queue, now))
            {
                return;
            }
            let head = worker.take();
            let beside = group.queues.change_quietly(|queues| {
                queues.site_failed(queue, &reply, now);
                queues.waiting_beside(queue)
            });
            unreachable(group, queue, head, destination, &reply);
            for other in beside {
                if let Some(destination) = group.queues.destination(other) {
                    unreachable(group, other, None, &destination, &reply);
                }
            }
        }
    }
}

/// The message at the head of a queue has been tried by the attempt to connect and shows it; the others
/// wait untouched, but for those whose time is over; their senders are told when they wait long.
fn unreachable(
    group: &Rc<Group>,
    queue: u32,
    head: Option<Job>,
    destination: &Destination,
    reply: &str,
) {
    let remote = destination.to_string();
    if let Some(job) = head {
        let attempt = Queues::unreachable_attempt(&job.envelope, &remote, reply);
        group.settle(queue, &job, &attempt);
    }
    behind::look_through(group, queue, &remote, reply);
}

/// Fails a limited number of ready messages: the destination refuses mail permanently. The remaining messages lead to
/// another attempt.
async fn undeliverable(
    group: &Rc<Group>,
    worker: &mut Worker,
    destination: &Destination,
    status: &str,
    reply: &str,
) {
    for _ in 0..FAILED_AT_ONCE {
        let Some(job) = worker.take() else { return };
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
        if group.settle(worker.queue, &job, &attempt) > 0 {
            group.room_for_reports().await;
        }
    }
}
